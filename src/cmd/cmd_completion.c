/* gua completion: prints scripts for bash, zsh and fish: completion.* in this folder, filled in
 * from the tables of commands and options. */
#include <string.h>

#include "base/options.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "cmd/share/configure.h"
#include "completion_bash.h"
#include "completion_fish.h"
#include "completion_zsh.h"

/* What a shell may offer as a value. */
enum completion_value {
	COMPLETION_NONE,	/* no value: a flag, or a command without operands */
	COMPLETION_WORDS,	/* one of some words */
	COMPLETION_LIST,	/* several words, separated by commas */
	COMPLETION_LETTERS,	/* several letters, without a separator */
	COMPLETION_USERS,	/* user names, separated by commas */
	COMPLETION_FILES,	/* a path */
	COMPLETION_DIRECTORIES, /* a path of a directory */
	COMPLETION_OTHER,	/* a value that cannot be completed */
};

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

/* The kind of an option's value. */
static enum completion_value value_of_option(const struct option_row *row)
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

/* Whether the word after an option is always its value. */
static bool needs_value(const struct option_row *row)
{
	return row->kind != OPTION_FLAG && row->kind != OPTION_MAYBE &&
	       row->kind != OPTION_MAYBE_NEXT;
}

/* The kind of a command's operands. */
static enum completion_value value_of_operands(const struct command *command)
{
	if (!command->operands)
		return COMPLETION_NONE;
	return strcmp(command->operands, "FILE") == 0 ? COMPLETION_FILES : COMPLETION_WORDS;
}

/* Appends the words of "a|b|c", separated by spaces. */
static void add_words(struct str *out, const char *choices)
{
	for (const char *at = choices; *at; at++)
		str_add_bytes(out, *at == '|' ? " " : at, 1);
}

/* Appends the words of an option's value, separated by spaces. */
static void add_option_words(struct str *out, const struct option_row *row)
{
	struct str words = { 0 };
	if (row->words)
		row->words(&words);
	else if (row->choices)
		add_words(&words, row->choices);
	if (words.len && words.data[words.len - 1] == ' ')
		words.len--;
	str_add_bytes(out, words.data, words.len);
	str_finish(&words);
}

/* How each kind of value is completed: in bash, the kind for _gua_offer; in the others, the
 * texts before and after the words. */
static const struct value_style {
	const char *bash;
	struct {
		const char *before, *after;
	} fish, zsh;
} styles[] = {
	[COMPLETION_NONE] = { "none", { "", "" }, { " ", "" } },
	[COMPLETION_WORDS] = { "'words:", { " -a '", "'" }, { "(", ")" } },
	[COMPLETION_LIST] = { "'list:", { " -a '(__gua_list ", ")'" },
		{ "_sequence compadd - ", "" } },
	[COMPLETION_LETTERS] = { "'letters:", { " -a '(__gua_letters ", ")'" },
		{ "_values -s \"\" letters ", "" } },
	[COMPLETION_USERS] = { "users", { " -a '(__gua_list (__gua_users))'", "" },
		{ "_sequence _users", "" } },
	[COMPLETION_FILES] = { "files", { "", "" }, { "_files", "" } },
	[COMPLETION_DIRECTORIES] = { "directories",
		{ " -a '(__fish_complete_directories)'", "" }, { "_files -/", "" } },
	[COMPLETION_OTHER] = { "other", { "", "" }, { " ", "" } },
};

/* Appends text inside single quotes: `quote` before a single quote, a backslash before each of
 * `special`. */
static void add_quoted(
	struct str *out, const char *text, const char *quote, const char *special)
{
	for (; *text; text++) {
		if (*text == '\'')
			str_add(out, quote);
		else if (strchr(special, *text))
			str_add(out, "\\");
		str_add_bytes(out, text, 1);
	}
}

static void add_names(struct str *out, const struct option_row *row, const char *between)
{
	if (row->letter)
		str_addf(out, "-%c%s", row->letter, between);
	str_addf(out, "--%s", row->name);
}

static void bash_add_value(
	struct str *out, enum completion_value value, const struct str *words)
{
	str_add(out, styles[value].bash);
	if (styles[value].bash[0] == '\'')
		str_addf(out, "%s'", str_text(words));
}

static void bash_add_command(struct str *out, const struct command *command)
{
	struct str words = { 0 };
	const char *blank = "";
	str_addf(out, "\t%s)\n\t\toptions='", command->name);
	for (const struct option_row *row = command->options; row->name; row++) {
		if (row->hidden)
			continue;
		add_names(out, row, " ");
		str_add(out, " ");
	}
	str_add(out, "-h --help'\n\t\tvalued='");
	for (const struct option_row *row = command->options; row->name; row++) {
		if (!needs_value(row))
			continue;
		str_add(out, blank);
		add_names(out, row, " ");
		blank = " ";
	}
	str_add(out, "'\n\t\toperands=");
	add_words(&words, command->operands ? command->operands : "");
	bash_add_value(out, value_of_operands(command), &words);
	str_addf(out, "\n\t\twrapper=%s\n\t\tcase $2 in\n",
		command->stop_at_operand ? "yes" : "");
	for (const struct option_row *row = command->options; row->name; row++) {
		if (row->hidden || value_of_option(row) == COMPLETION_NONE)
			continue;
		str_add(out, "\t\t");
		if (needs_value(row)) {
			add_names(out, row, "|");
			str_add(out, "|");
		}
		str_addf(out, "--%s=) value=", row->name);
		str_clear(&words);
		add_option_words(&words, row);
		bash_add_value(out, value_of_option(row), &words);
		str_add(out, " ;;\n");
	}
	str_add(out, "\t\tesac ;;\n");
	str_finish(&words);
}

/* The names of the commands, for bash and fish. */
static void add_name(struct str *out, const struct command *command, bool first)
{
	str_addf(out, "%s%s", first ? "" : " ", command->name);
}

/* A line for each option; -x: its value is not a file. */
static void fish_add_options(struct str *out, const struct command *command)
{
	for (const struct option_row *row = command->options; row->name; row++) {
		enum completion_value value = value_of_option(row);
		if (row->hidden)
			continue;
		str_addf(out, "complete -c gua -n '__gua_is %s' -l %s", command->name,
			row->name);
		if (row->letter)
			str_addf(out, " -s %c", row->letter);
		if (needs_value(row))
			str_add(out, value == COMPLETION_FILES ? " -r -F" : " -x");
		str_add(out, styles[value].fish.before);
		if (value != COMPLETION_NONE && value != COMPLETION_FILES)
			add_option_words(out, row);
		str_addf(out, "%s -d '", styles[value].fish.after);
		add_quoted(out, row->help, "\\", "\\");
		str_add(out, "'\n");
	}
}

static void fish_add_command(struct str *out, const struct command *command)
{
	const char *name = command->name;
	str_addf(out, "complete -c gua -n __gua_first -a %s -d '", name);
	add_quoted(out, command->summary, "\\", "\\");
	str_add(out, "'\n");
	fish_add_options(out, command);
	str_addf(out, "complete -c gua -n '__gua_is %s' -l help -s h -d 'this text'\n", name);
	if (command->stop_at_operand) {
		/* It runs another command, which is completed too: after the options that take
		 * the next word as value. */
		str_addf(out, "set -g __gua_valued_%s", name);
		for (const struct option_row *row = command->options; row->name; row++) {
			if (!needs_value(row))
				continue;
			str_add(out, " ");
			add_names(out, row, " ");
		}
		str_addf(out,
			"\ncomplete -c gua -n '__gua_runs %s' -x -a '(complete -C (__gua_run "
			"%s))'\n",
			name, name);
	} else if (value_of_operands(command) == COMPLETION_FILES) {
		str_addf(out, "complete -c gua -n '__gua_is %s' -F\n", name);
	} else if (command->operands) {
		str_addf(out, "complete -c gua -n '__gua_is %s' -f -a '", name);
		add_words(out, command->operands);
		str_add(out, "'\n");
	}
}

/* "--name=": the value is in the same word or in the next one, "--name=-": in the same. */
static void add_option(struct str *out, const struct option_row *row)
{
	bool valued = value_of_option(row) != COMPLETION_NONE;
	const char *equals = !valued ? "" : needs_value(row) ? "=" : "=-";
	str_add(out, " \\\n\t\t\t");
	if (row->kind == OPTION_LIST || row->kind == OPTION_TEXTS)
		str_add(out, "'*'");
	else if (row->letter)
		str_addf(out, "'(-%c --%s)'", row->letter, row->name);
	if (row->letter)
		str_addf(out, "{-%c%s,--%s%s}'[", row->letter, valued ? "+" : "", row->name,
			equals);
	else
		str_addf(out, "'--%s%s[", row->name, equals);
	add_quoted(out, row->help, "'\\'", "[]\\");
	str_add(out, "]");
	if (valued) {
		str_add(out, needs_value(row) ? ":" : "::");
		add_quoted(out, row->arg ? row->arg : "value", "'\\'", ":\\");
		str_addf(out, ":%s", styles[value_of_option(row)].zsh.before);
		add_option_words(out, row);
		str_add(out, styles[value_of_option(row)].zsh.after);
	}
	str_add(out, "'");
}

static void zsh_add_command(struct str *out, const struct command *command)
{
	str_addf(out, "\t\t%s)\n\t\t\t_arguments -s -S%s", command->name,
		command->stop_at_operand ? " -A '-*'" : "");
	for (const struct option_row *row = command->options; row->name; row++)
		if (!row->hidden)
			add_option(out, row);
	str_add(out, " \\\n\t\t\t'(-h --help)'{-h,--help}'[this text]'");
	if (command->stop_at_operand) {
		str_add(out, " \\\n\t\t\t'(-)1:command: _command_names -e'"
			     " \\\n\t\t\t'*::argument: _normal'");
	} else if (command->operands) {
		const struct value_style *style = &styles[value_of_operands(command)];
		str_addf(out, " \\\n\t\t\t'*:argument:%s", style->zsh.before);
		if (value_of_operands(command) == COMPLETION_WORDS)
			add_words(out, command->operands);
		str_addf(out, "%s'", style->zsh.after);
	}
	str_add(out, " ;;\n");
}

static void zsh_add_name(struct str *out, const struct command *command, bool first)
{
	str_addf(out, "%s\t\t'%s:", first ? "" : "\n", command->name);
	add_quoted(out, command->summary, "'\\'", "\\");
	str_add(out, "'");
}

/* The script of a shell has two marks: one for the names of the commands, and a line for what
 * is generated for each command. */
#define NAMES_MARK "@gua-names@"
#define OPTIONS_MARK "@gua-options@\n"

static const struct shell {
	const char *name, *script;
	void (*add_name)(struct str *out, const struct command *command, bool first);
	void (*add_command)(struct str *out, const struct command *command);
} shells[] = {
	{ "bash", completion_bash, add_name, bash_add_command },
	{ "zsh", completion_zsh, zsh_add_name, zsh_add_command },
	{ "fish", completion_fish, add_name, fish_add_command },
};

#define COMMAND_POINTER(name) &cmd_##name,
static const struct command *const all_commands[] = { COMMANDS(COMMAND_POINTER) NULL };

static const struct option_row no_options[] = { { 0 } };

static int run(const struct call *call, struct err *e)
{
	struct str out = { 0 };
	const char *name = call->operands[0] && !call->operands[1] ? call->operands[0] : "";
	const struct shell *shell = shells, *end = shells + sizeof(shells) / sizeof(shells[0]);
	while (shell < end && strcmp(shell->name, name) != 0)
		shell++;
	if (shell == end)
		return err_set(e, ERR_USAGE, "give a shell: bash, zsh or fish");
	const char *at = shell->script;
	for (const char *mark; (mark = strstr(at, "@gua-")) != NULL;) {
		bool names = strncmp(mark, NAMES_MARK, strlen(NAMES_MARK)) == 0;
		str_add_bytes(&out, at, (size_t)(mark - at));
		for (size_t i = 0; all_commands[i]; i++) {
			struct option_row rows[OPTIONS_MAX];
			struct command whole = *all_commands[i];
			configure_rows(&whole, rows);
			whole.options = rows;
			if (names)
				shell->add_name(&out, &whole, i == 0);
			else
				shell->add_command(&out, &whole);
		}
		at = mark + strlen(names ? NAMES_MARK : OPTIONS_MARK);
	}
	str_add(&out, at);
	return cmd_print(call->self, &out);
}

const struct command cmd_completion = {
	.name = "completion",
	.summary = "print a completion script for bash, zsh or fish",
	.usage = "bash|zsh|fish",
	.details = "For this shell only, in bash: source <(gua completion bash)",
	.options = no_options,
	.operands = "bash|zsh|fish",
	.run = run,
};
