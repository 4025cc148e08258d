/* Recognises commands that have their work done outside of the process tree. */
#include "track/elsewhere.h"

#include <string.h>

#include "proc/piece.h"
#include "proc/proc_parse.h"

static const struct elsewhere rows[] = {
	{ "srun", .use = "srun gua track -- COMMAND", .in_job = true },
	{ "sbatch", .use = "gua track -- COMMAND in the script" },
	{ "docker", "run exec start up", .use = "gua track --pid N for its process" },
	{ "podman", "run exec start up", .use = "gua track --pid N for its process" },
	{ "systemd-run", .unless = "--scope", .use = "systemd-run gua track -- COMMAND" },
	{ "ssh", .use = "ssh HOST gua track -- COMMAND", .of_shell = true },
};

static bool is_word(struct piece word, const char *text)
{
	return word.len == strlen(text) && memcmp(word.at, text, word.len) == 0;
}

/* Whether the word is in a list that is separated by blanks. */
static bool is_in(struct piece word, const char *list)
{
	for (size_t n; *list; list += n + (list[n] == ' ')) {
		n = strcspn(list, " ");
		if (word.len == n && memcmp(word.at, list, n) == 0)
			return true;
	}
	return false;
}

/* Whether the arguments after the program's name are such that its work is elsewhere. */
static bool has_words(const struct elsewhere *row, struct proc_arguments arguments)
{
	bool found = !row->verbs;
	struct piece word;
	while (proc_next_argument(&arguments, &word.at, &word.len)) {
		if (row->unless && is_word(word, row->unless))
			return false;
		found |= row->verbs && is_in(word, row->verbs);
	}
	return found;
}

const struct elsewhere *elsewhere_find(
	const char *comm, size_t n, const char *bytes, size_t len)
{
	struct proc_arguments arguments = { .bytes = bytes, .len = len };
	struct piece program = { "", 0 };
	if (proc_next_argument(&arguments, &program.at, &program.len))
		program = piece_basename(program);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool named = is_word(program, rows[i].program) ||
			     is_word((struct piece){ comm, n }, rows[i].program);
		if (named && has_words(&rows[i], arguments))
			return &rows[i];
	}
	return NULL;
}

bool elsewhere_is_shell(const char comm[16])
{
	return is_in((struct piece){ comm, strnlen(comm, 16) }, "sh bash dash zsh ksh fish");
}
