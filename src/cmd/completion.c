/* gua completion: prints scripts for bash, zsh and fish, generated from the tables of commands
 * and options. */
#include "cmd/completion.h"

#include <string.h>

static const struct option_row rows[] = { { 0 } };

/* The kind of a value, by its placeholder in the help. */
static const struct value_name {
	const char *arg;
	enum completion_value value;
} value_names[] = {
	{ "PATH", COMPLETION_FILES },
	{ "FILE", COMPLETION_FILES },
	{ "DIR", COMPLETION_DIRECTORIES },
	{ "USER,...", COMPLETION_USERS },
	{ "GROUPS", COMPLETION_LETTERS },
	{ "LETTERS", COMPLETION_LETTERS },
};

enum completion_value completion_option(const struct option_row *row)
{
	const char *arg = row->arg ? row->arg : "";
	if (row->kind == OPTION_FLAG)
		return COMPLETION_NONE;
	for (size_t i = 0; i < sizeof(value_names) / sizeof(value_names[0]); i++)
		if (strcmp(arg, value_names[i].arg) == 0)
			return value_names[i].value;
	if (!row->choices && !row->words)
		return COMPLETION_OTHER;
	return strchr(arg, ',') ? COMPLETION_LIST : COMPLETION_WORDS;
}

bool completion_needs_value(const struct option_row *row)
{
	return row->kind != OPTION_FLAG && row->kind != OPTION_MAYBE &&
	       row->kind != OPTION_MAYBE_NEXT;
}

enum completion_value completion_operands(const struct command *command)
{
	if (!command->operands)
		return COMPLETION_NONE;
	return strcmp(command->operands, "FILE") == 0 ? COMPLETION_FILES : COMPLETION_WORDS;
}

void completion_add_words(struct str *out, const char *choices)
{
	for (const char *at = choices; *at; at++)
		str_add_bytes(out, *at == '|' ? " " : at, 1);
}

void completion_add_option_words(struct str *out, const struct option_row *row)
{
	struct str words = { 0 };
	if (row->words)
		row->words(&words);
	else if (row->choices)
		completion_add_words(&words, row->choices);
	if (words.len && words.data[words.len - 1] == ' ')
		words.len--;
	str_add_bytes(out, words.data, words.len);
	str_finish(&words);
}

static const struct shell {
	const char *name;
	void (*write)(struct str *out, const struct command *const *commands);
} shells[] = {
	{ "bash", completion_bash },
	{ "zsh", completion_zsh },
	{ "fish", completion_fish },
};

#define COMMAND_POINTER(name) &cmd_##name,
static const struct command *const commands[] = { COMMANDS(COMMAND_POINTER) NULL };

static int run(const struct command *self, int argc, char **argv)
{
	struct err e = { 0 };
	struct str out = { 0 };
	int status = 0;
	int first = cmd_options(self, argc, argv, NULL, &status);
	if (!first)
		return status;
	for (size_t i = 0; first + 1 == argc && i < sizeof(shells) / sizeof(shells[0]); i++) {
		if (strcmp(shells[i].name, argv[first]) != 0)
			continue;
		shells[i].write(&out, commands);
		return cmd_print(self, &out);
	}
	err_set(&e, ERR_USAGE, "give a shell: bash, zsh or fish");
	return cmd_fail(self, &e);
}

const struct command cmd_completion = {
	.name = "completion",
	.summary = "print a completion script for bash, zsh or fish",
	.usage = "bash|zsh|fish",
	.details = "For this shell only, in bash: source <(gua completion bash)",
	.options = rows,
	.operands = "bash|zsh|fish",
	.run = run,
};
