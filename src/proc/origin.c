/* Combines the parents, the session and the environment of a process. */
#include "proc/origin.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "proc/command.h"
#include "proc/environment.h"
#include "proc/proc_parse.h"
#include "proc/proc.h"
#include "proc/secret.h"
#include "proc/piece.h"

struct ancestry {
	char parents[LABEL_CAP]; /* "bash > torchrun": from the session leader to the nearest.
				    "": there are none. If there are many, the outermost are
				    left out: "... > a > b" */
	char login[LOGIN_CAP];	 /* ssh, tmux, vscode, cron ... of the nearest parent that the
				    table above knows, whether it is inside of the
				    session or not; "": of none */
	bool editor;		 /* that one is the server of an editor */
};

enum {
	PARENTS_MAX = 32, /* how far the walk goes */
	NAMES_MAX = 8,	  /* how many of the nearest names are kept */
	COMM_TEXT_CAP = 64,
	ARGUMENTS_CAP = 1024, /* of a parent: its program and script are at the beginning */
};
#define SEPARATOR " > "
#define LEFT_OUT "... > "

/* Parents by their name, '*' as in piece_is_like(). */
static const struct starter {
	const char *name, *login;
} starters[] = {
	{ "tmux*", "tmux" },
	{ "screen", "screen" },
	{ "SCREEN", "screen" },
	{ "jupyter*", "jupyter" },
	{ "rsession*", "rstudio" },
	{ "code-server", "vscode" },
	{ "code-tunnel", "vscode" },
	{ "code", "vscode" },
	{ "mosh-server", "mosh" },
	{ "sshd*", "ssh" },
	{ "dropbear", "ssh" },
	{ "slurmstepd", "batch" },
	{ "pbs_mom", "batch" },
	{ "sge_shepherd", "batch" },
	{ "cron", "cron" },
	{ "CRON", "cron" },
	{ "crond", "cron" },
	{ "anacron", "cron" },
	{ "atd", "at" },
	{ "login", "tty" },
	{ "agetty", "tty" },
	{ "gnome-shell", "desktop" },
	{ "gnome-terminal*", "desktop" },
	{ "gdm-session-wor", "desktop" },
	{ "plasmashell", "desktop" },
	{ "konsole", "desktop" },
	{ "sddm-helper", "desktop" },
	{ "lightdm", "desktop" },
	{ "xrdp*", "desktop" },
	{ "Xvnc", "desktop" },
};

/* The servers of editors are run by node or a shell; the path of their program or script shows
 * what they are. */
static const struct editor {
	const char *path, *login;
} editors[] = {
	{ "/.vscode-server", "vscode" },
	{ "/.vscodium-server", "vscode" },
	{ "/.cursor-server", "cursor" },
	{ "/.windsurf-server", "windsurf" },
	{ "/JetBrains/", "jetbrains" },
};

static void recognise_name(struct ancestry *a, const struct proc_stat *parent)
{
	const struct piece name = { parent->comm, parent->comm_len };
	for (size_t i = 0; i < sizeof(starters) / sizeof(starters[0]) && !*a->login; i++)
		if (piece_is_like(name, starters[i].name))
			str_copy(a->login, sizeof(a->login), starters[i].login);
}

static void recognise_path(struct ancestry *a, int proc, uint32_t pid)
{
	char bytes[ARGUMENTS_CAP];
	ssize_t n = proc_read_arguments(proc, pid, bytes, sizeof(bytes));
	struct proc_arguments arguments = { .bytes = bytes, .len = n < 0 ? 0 : (size_t)n };
	struct piece arg = { bytes, 0 };
	for (int k = 0; k < 2 && proc_next_argument(&arguments, &arg.at, &arg.len); k++)
		for (size_t i = 0; i < sizeof(editors) / sizeof(editors[0]) && !*a->login; i++)
			if (memmem(arg.at, arg.len, editors[i].path, strlen(editors[i].path)))
				str_copy(a->login, sizeof(a->login), editors[i].login);
	a->editor = *a->login != '\0';
}

/* The nearest names, nearest first. */
struct names {
	char texts[NAMES_MAX][COMM_TEXT_CAP];
	size_t n;
	bool more; /* there were others, further up */
};

/* "tmux: server" is "tmux". */
static void add_name(struct names *names, const struct proc_stat *parent)
{
	if (names->n == NAMES_MAX) {
		names->more = true;
		return;
	}
	char *text = names->texts[names->n];
	command_name(text, COMM_TEXT_CAP, parent);
	size_t len = strlen(text);
	if (len > 1 && text[len - 1] == ':')
		text[len - 1] = '\0';
	if (*text)
		names->n++;
}

/* Names that do not fit are left out, outermost first. */
static void write_names(const struct names *names, char dst[LABEL_CAP])
{
	size_t used = 0, from = 0;
	size_t room = LABEL_CAP - strlen(LEFT_OUT) - 1;
	for (; from < names->n; from++) {
		size_t len = strlen(names->texts[from]) + (from ? strlen(SEPARATOR) : 0);
		if (used + len > room)
			break;
		used += len;
	}
	str_copy(dst, LABEL_CAP, names->more || from < names->n ? LEFT_OUT : "");
	while (from-- > 0) {
		size_t at = strlen(dst);
		str_copy(dst + at, LABEL_CAP - at, names->texts[from]);
		at = strlen(dst);
		str_copy(dst + at, LABEL_CAP - at, from ? SEPARATOR : "");
	}
}

/* Walks up from the process with this pid and stat. Names are those that processes gave
 * themselves. `brief`: read nothing that may block (proc.h); then servers of editors, which are
 * known by their path, are not found. A parent that ended meanwhile ends the walk. */
static void ancestry_read(
	struct ancestry *a, int proc, uint32_t pid, const struct proc_stat *stat, bool brief)
{
	struct names names = { .n = 0 };
	struct proc_stat parent;
	bool outside = (pid_t)pid == stat->session; /* of the session */
	uint64_t born = stat->start_ticks;
	pid_t next = stat->ppid;
	*a = (struct ancestry){ 0 };
	for (int i = 0; i < PARENTS_MAX && next > 1 && !(outside && *a->login); i++) {
		pid_t at = next;
		/* A pid that was used again is not the parent's any more. */
		if (proc_read_stat(proc, (uint32_t)at, &parent) != 0 ||
			parent.start_ticks > born)
			break;
		if (!outside)
			add_name(&names, &parent);
		outside |= at == stat->session;
		recognise_name(a, &parent);
		if (!*a->login && !brief)
			recognise_path(a, proc, (uint32_t)at);
		born = parent.start_ticks;
		next = parent.ppid;
	}
	write_names(&names, a->parents);
}

enum {
	ENVIRONMENT_CAP = 256 * 1024,
	PROGRAM_CAP = 4096,
	SESSION_FILE_CAP = 2048,
};

/* The name is a word that the process chose, so that it is cut like one: before it is
 * shortened, because the end of a secret shows that it is one. */
static void write_env(char dst[TAG_CAP], const char *kind, struct piece name)
{
	char word[PROGRAM_CAP];
	if (!name.len || piece_is_like(name, "/"))
		return;
	size_t len = name.len < sizeof(word) ? name.len : sizeof(word);
	memcpy(word, name.at, len);
	size_t used = str_escape(dst, TAG_CAP, kind, strlen(kind));
	str_escape(dst + used, TAG_CAP - used, word, secret_cut(word, len, SECRET_WORD));
}

/* ".venv" and the like say nothing: then the project above is the name. */
static struct piece venv_name(struct piece path)
{
	static const char *const usual[] = { ".venv", "venv", ".env", "env" };
	struct piece name = piece_basename(path);
	struct piece above = piece_basename(piece_directory(path));
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		if (piece_is_like(name, usual[i]) && above.len && !piece_is_like(above, "/"))
			return above;
	return name;
}

/* Finds the environment in the path of a program: ".../envs/NAME/bin/python" of conda,
 * ".../.pixi/envs/NAME/bin/python", ".../PROJECT/.venv/bin/python". */
static bool env_of_path(char dst[TAG_CAP], struct piece program)
{
	struct piece bin = piece_directory(program), env = piece_directory(bin);
	struct piece name = piece_basename(env), envs = piece_directory(env);
	if (!piece_is_like(piece_basename(bin), "bin") || !name.len)
		return false;
	if (piece_is_like(piece_basename(envs), "envs")) {
		bool pixi = piece_is_like(piece_basename(piece_directory(envs)), ".pixi");
		write_env(dst, pixi ? "pixi:" : "conda:", name);
		return true;
	}
	if (!piece_is_like(name, ".venv") && !piece_is_like(name, "venv"))
		return false;
	write_env(dst, "venv:", venv_name(env));
	return true;
}

/* A venv runs the program of another environment, so that argv[0] and VIRTUAL_ENV know it
 * better than the program file does. */
static void find_python_env(struct proc_origin *origin, const struct origin_known *known,
	const struct environment *env)
{
	char program[PROGRAM_CAP];
	struct piece venv = env->values[VARIABLE_VENV], conda = env->values[VARIABLE_CONDA];
	if (env_of_path(origin->python_env, known->program))
		return;
	if (venv.len) {
		write_env(origin->python_env, "venv:", venv_name(venv));
		return;
	}
	ssize_t n = proc_read_program(known->handle, 0, program, sizeof(program));
	if (n > 0 && env_of_path(origin->python_env, (struct piece){ program, (size_t)n }))
		return;
	if (conda.len)
		write_env(origin->python_env, "conda:", piece_basename(conda));
}

/* What a login manager calls the service that began a session. */
static const struct session_service {
	const char *service, *login;
} session_services[] = {
	{ "sshd*", "ssh" },
	{ "login", "tty" },
	{ "cron*", "cron" },
	{ "atd", "at" },
	{ "gdm*", "desktop" },
	{ "sddm*", "desktop" },
	{ "lightdm*", "desktop" },
	{ "xrdp*", "desktop" },
};

/* Reads how the session began from the file of the login manager (systemd-logind), which is
 * beside /proc and in memory. */
static void ask_session(struct proc_origin *origin, int proc)
{
	static const char key[] = "\nSERVICE=";
	char path[64 + SESSION_CAP], bytes[SESSION_FILE_CAP];
	if (!*origin->session)
		return;
	snprintf(path, sizeof(path), "../run/systemd/sessions/%s", origin->session);
	ssize_t n = file_read_at(proc, path, bytes, sizeof(bytes));
	const char *line = n > 0 ? memmem(bytes, (size_t)n, key, sizeof(key) - 1) : NULL;
	if (!line)
		return;
	struct piece service = { line + sizeof(key) - 1, 0 };
	service.len = strcspn(service.at, "\n");
	for (size_t i = 0; i < sizeof(session_services) / sizeof(session_services[0]); i++)
		if (!*origin->login && piece_is_like(service, session_services[i].service))
			str_copy(origin->login, sizeof(origin->login),
				session_services[i].login);
}

static void or_login(struct proc_origin *origin, bool is, const char *login)
{
	if (is && !*origin->login)
		str_copy(origin->login, sizeof(origin->login), login);
}

static bool is_console(int tty)
{
	enum { CONSOLE_MAJOR = 4 };
	return (tty >> 8 & 0xfff) == CONSOLE_MAJOR;
}

/* The nearest parent that is known decides; without one, what the process inherited; then what
 * its managers know. A kernel is Jupyter's, unless an editor started it. */
static void find_login(struct proc_origin *origin, const struct origin_known *known,
	const struct ancestry *ancestry, const struct environment *env)
{
	const struct cgroup_labels *labels = known->labels;
	size_t unit = strlen(labels->unit);
	or_login(origin, known->kernel && !ancestry->editor, "jupyter");
	or_login(origin, *ancestry->login, ancestry->login);
	or_login(origin, env->values[VARIABLE_VSCODE].len, "vscode");
	or_login(origin, env->values[VARIABLE_TERMINAL_TMUX].len, "tmux");
	or_login(origin, env->values[VARIABLE_TERMINAL_SCREEN].len, "screen");
	or_login(origin, env->values[VARIABLE_SSH].len, "ssh");
	ask_session(origin, known->proc);
	or_login(origin, *labels->job, "batch");
	or_login(origin, *labels->container || *labels->pod, "container");
	or_login(origin, piece_is_like((struct piece){ labels->unit, unit }, "*.service"),
		"service");
	or_login(origin, is_console(known->stat->tty), "tty");
}

static void take_claims(struct proc_origin *origin, const struct origin_known *known,
	const struct environment *env)
{
	const struct piece *values = env->values;
	environment_label(origin->tag, sizeof(origin->tag), values[VARIABLE_TAG]);
	environment_label(origin->account, sizeof(origin->account), values[VARIABLE_ACCOUNT]);
	environment_label(
		origin->job_name, sizeof(origin->job_name), values[VARIABLE_JOB_NAME]);
	if (known->kernel)
		environment_path(origin->notebook_path, sizeof(origin->notebook_path),
			values[VARIABLE_NOTEBOOK]);
}

void origin_read(struct proc_origin *origin, const struct origin_known *known)
{
	struct ancestry ancestry;
	struct environment env = { 0 };
	bool brief = !known->program.at;
	char *bytes = brief ? NULL : malloc(ENVIRONMENT_CAP);
	ssize_t n = -1;
	*origin = (struct proc_origin){ 0 };
	memcpy(origin->session, known->labels->session, sizeof(origin->session));
	ancestry_read(&ancestry, known->proc, known->pid, known->stat, brief);
	memcpy(origin->parents, ancestry.parents, sizeof(origin->parents));
	if (bytes)
		n = proc_read_environment(known->handle, 0, bytes, ENVIRONMENT_CAP);
	if (n > 0)
		environment_parse(&env, bytes, (size_t)n, n == ENVIRONMENT_CAP - 1);
	find_login(origin, known, &ancestry, &env);
	if (!brief) {
		take_claims(origin, known, &env);
		find_python_env(origin, known, &env);
	}
	if (n > 0)
		explicit_bzero(bytes, (size_t)n);
	free(bytes);
}
