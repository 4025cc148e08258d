/* The completion script for fish: one line for each command and each option. */
#include "cmd/completion.h"

/* Appends text in single quotes. */
static void add_quoted(struct str *out, const char *text)
{
	str_add(out, "'");
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			str_add(out, "\\");
		str_add_bytes(out, text, 1);
	}
	str_add(out, "'");
}

/* The texts before and after the words of a completion, by kind of value. */
static const struct maker {
	const char *before, *after;
} makers[] = {
	[COMPLETION_WORDS] = { " -a '", "'" },
	[COMPLETION_LIST] = { " -a '(__gua_list ", ")'" },
	[COMPLETION_LETTERS] = { " -a '(__gua_letters ", ")'" },
	[COMPLETION_USERS] = { " -a '(__gua_list (__gua_users))'", "" },
	[COMPLETION_DIRECTORIES] = { " -a '(__fish_complete_directories)'", "" },
	[COMPLETION_OTHER] = { "", "" },
};

/* Appends the values that may follow an option; -x: the value is not a file. */
static void add_value(struct str *out, const struct option_row *row)
{
	enum completion_value value = completion_option(row);
	if (value == COMPLETION_NONE)
		return;
	if (completion_needs_value(row))
		str_add(out, value == COMPLETION_FILES ? " -r -F" : " -x");
	if (value == COMPLETION_FILES)
		return;
	str_add(out, makers[value].before);
	completion_add_option_words(out, row);
	str_add(out, makers[value].after);
}

/* For a command that runs another one: which options take the next word as value, and the call
 * that completes the other command. */
static void add_wrapper(struct str *out, const struct command *command)
{
	str_addf(out, "set -g __gua_valued_%s", command->name);
	for (const struct option_row *row = command->options; row->name; row++) {
		if (!completion_needs_value(row))
			continue;
		if (row->letter)
			str_addf(out, " -%c", row->letter);
		str_addf(out, " --%s", row->name);
	}
	str_addf(out,
		"\ncomplete -c gua -n '__gua_runs %s' -x -a '(complete -C (__gua_run %s))'\n",
		command->name, command->name);
}

static void add_command(struct str *out, const struct command *command)
{
	str_addf(out, "complete -c gua -n __gua_first -a %s -d ", command->name);
	add_quoted(out, command->summary);
	str_add(out, "\n");
	for (const struct option_row *row = command->options; row->name; row++) {
		if (row->hidden)
			continue;
		str_addf(out, "complete -c gua -n '__gua_is %s' -l %s", command->name,
			row->name);
		if (row->letter)
			str_addf(out, " -s %c", row->letter);
		add_value(out, row);
		str_add(out, " -d ");
		add_quoted(out, row->help);
		str_add(out, "\n");
	}
	str_addf(out, "complete -c gua -n '__gua_is %s' -l help -s h -d 'this text'\n",
		command->name);
	if (command->stop_at_operand)
		add_wrapper(out, command);
	else if (completion_operands(command) == COMPLETION_FILES)
		str_addf(out, "complete -c gua -n '__gua_is %s' -F\n", command->name);
	else if (command->operands) {
		str_addf(out, "complete -c gua -n '__gua_is %s' -f -a '", command->name);
		completion_add_words(out, command->operands);
		str_add(out, "'\n");
	}
}

static const char head[] =
	"# fish completion for gua, made by 'gua completion fish'.\n"
	"\n"
	"function __gua_first\n"
	"    test (count (commandline -opc)) -eq 1\n"
	"end\n"
	"\n"
	"function __gua_at\n"
	"    set -l words (commandline -opc)\n"
	"    test (count $words) -gt 1; and test $words[2] = $argv[1]\n"
	"end\n"
	"\n"
	"# The current word, without --option= in front of it.\n"
	"function __gua_typed\n"
	"    string replace -r -- '^--[a-z-]+=' '' (commandline -ct)\n"
	"end\n"
	"\n"
	"# Completes a comma-separated list with each of the words that are not in it yet.\n"
	"function __gua_list\n"
	"    set -l before (string match -r '^.*,' -- (__gua_typed))\n"
	"    for word in $argv\n"
	"        contains -- $word (string split , -- $before); or echo \"$before$word\"\n"
	"    end\n"
	"end\n"
	"\n"
	"function __gua_letters\n"
	"    set -l typed (__gua_typed)\n"
	"    for letter in $argv\n"
	"        string match -q -- \"*$letter*\" $typed; or echo \"$typed$letter\"\n"
	"    end\n"
	"end\n"
	"\n"
	"function __gua_users\n"
	"    string replace -r '\\t.*' '' -- (__fish_complete_users)\n"
	"end\n"
	"\n"
	"# The words of the command that gua is to run; fails if there are none yet.\n"
	"function __gua_run\n"
	"    set -l valued __gua_valued_$argv[1]\n"
	"    set -q $valued; or return 1\n"
	"    set -l words (commandline -opc | string escape) (commandline -ct)\n"
	"    set -e words[1..2]\n"
	"    while set -q words[1]\n"
	"        switch $words[1]\n"
	"            case --\n"
	"                set -e words[1]\n"
	"                break\n"
	"            case '-*'\n"
	"                contains -- $words[1] $$valued; and set -e words[1]\n"
	"                set -e words[1]\n"
	"            case '*'\n"
	"                break\n"
	"        end\n"
	"    end\n"
	"    set -q words[1]; and printf '%s\\n' \"$words\"\n"
	"end\n"
	"\n"
	"function __gua_runs\n"
	"    __gua_at $argv[1]; and __gua_run $argv[1] >/dev/null\n"
	"end\n"
	"\n"
	"# Whether this is the command, and the current word is one of its own options.\n"
	"function __gua_is\n"
	"    __gua_at $argv[1]; and not __gua_run $argv[1] >/dev/null\n"
	"end\n"
	"\n"
	"complete -c gua -f\n"
	"complete -c gpu-usage-audit -w gua\n"
	"complete -c gua -n __gua_first -a help -d 'explain a command'\n"
	"complete -c gua -n __gua_first -a version -d 'print the version'\n";

void completion_fish(struct str *out, const struct command *const *commands)
{
	str_add(out, head);
	for (size_t i = 0; commands[i]; i++)
		add_command(out, commands[i]);
	str_add(out, "complete -c gua -n '__gua_is help' -f -a '");
	for (size_t i = 0; commands[i]; i++)
		str_addf(out, "%s%s", i ? " " : "", commands[i]->name);
	str_add(out, "'\n");
}
