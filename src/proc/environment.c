/* Finds the variables of one table in the environment of a process. */
#include "proc/environment.h"

#include "proc/proc_parse.h"
#include "proc/secret.h"

enum { VALUE_CAP = 4096 }; /* the longest part of a value that is used */

static const char *const names[VARIABLES] = {
	[VARIABLE_TAG] = "GUA_TAG=",
	[VARIABLE_ACCOUNT] = "SLURM_JOB_ACCOUNT=",
	[VARIABLE_JOB_NAME] = "SLURM_JOB_NAME=",
	[VARIABLE_JOB_ID] = "SLURM_JOB_ID=",
	[VARIABLE_ARRAY_JOB] = "SLURM_ARRAY_JOB_ID=",
	[VARIABLE_ARRAY_TASK] = "SLURM_ARRAY_TASK_ID=",
	[VARIABLE_NOTEBOOK] = "JPY_SESSION_NAME=",
	[VARIABLE_VENV] = "VIRTUAL_ENV=",
	[VARIABLE_CONDA] = "CONDA_DEFAULT_ENV=",
	[VARIABLE_VSCODE] = "VSCODE_IPC_HOOK_CLI=",
	[VARIABLE_TERMINAL_TMUX] = "TMUX=",
	[VARIABLE_TERMINAL_SCREEN] = "STY=",
	[VARIABLE_SSH] = "SSH_CONNECTION=",
};

static void take(struct environment *env, struct piece variable)
{
	for (size_t i = 0; i < VARIABLES; i++) {
		size_t n = strlen(names[i]);
		if (env->values[i].at || variable.len <= n ||
			memcmp(variable.at, names[i], n) != 0)
			continue;
		env->values[i] = piece_skip(variable, n);
		return;
	}
}

void environment_parse(struct environment *env, const char *bytes, size_t len, bool cut)
{
	struct proc_arguments all = { .bytes = bytes, .len = len };
	struct piece variable = { NULL, 0 };
	*env = (struct environment){ 0 };
	while (proc_next_argument(&all, &variable.at, &variable.len)) {
		bool last = variable.at + variable.len == bytes + len;
		if (!cut || !last)
			take(env, variable);
	}
}

static struct piece trim(struct piece text)
{
	while (text.len && piece_is_blank(text.at[0]))
		text = piece_skip(text, 1);
	while (text.len && piece_is_blank(text.at[text.len - 1]))
		text.len--;
	return text;
}

/* Copies the value to `plain` without what may be a secret. */
static struct piece clean(char plain[VALUE_CAP], struct piece value, enum secret_text kind)
{
	value = trim(value);
	size_t n = value.len < VALUE_CAP ? value.len : VALUE_CAP;
	if (n)
		memcpy(plain, value.at, n);
	return trim((struct piece){ plain, secret_cut(plain, n, kind) });
}

void environment_label(char *dst, size_t cap, struct piece value)
{
	char plain[VALUE_CAP];
	struct piece text = clean(plain, value, SECRET_LABEL);
	str_escape(dst, cap, text.at, text.len);
	explicit_bzero(plain, sizeof(plain));
}

/* The end of a path is more useful than its beginning. */
void environment_path(char *dst, size_t cap, struct piece value)
{
	char plain[VALUE_CAP];
	struct piece path = clean(plain, value, SECRET_PATH);
	while (path.len >= cap) {
		const char *slash = memchr(path.at + 1, '/', path.len - 1);
		if (!slash)
			break;
		path = piece_skip(path, (size_t)(slash - path.at));
	}
	str_escape(dst, cap, path.at, path.len);
	explicit_bzero(plain, sizeof(plain));
}
