/* gua completion: prints scripts for bash, zsh and fish, generated from the tables of commands
 * and options. */
#include <string.h>

#include "base/options.h"
#include "base/str.h"
#include "cmd/cmd.h"

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

static const char bash_head[] =
	"# bash completion for gua, made by 'gua completion bash'.\n"
	"\n"
	"# Sets options, valued, operands and wrapper for a command, and value for an option.\n"
	"_gua_table()\n"
	"{\n"
	"\tcase $1 in\n";

/* Bash passes --name=value as three words, because = is in COMP_WORDBREAKS. */
static const char tail[] =
	"\tesac\n"
	"}\n"
	"\n"
	"# Completes the last word of a comma-separated list with words of compgen that are "
	"not in it yet.\n"
	"_gua_list()\n"
	"{\n"
	"\tlocal last=${1##*,} word\n"
	"\tlocal before=${1%\"$last\"}\n"
	"\tshift\n"
	"\twhile read -r word; do\n"
	"\t\t[[ ,$before == *\",$word,\"* ]] || COMPREPLY+=(\"$before$word\")\n"
	"\tdone < <(compgen \"$@\" -- \"$last\")\n"
	"}\n"
	"\n"
	"# Offers one more of the letters in $2 after those in $1.\n"
	"_gua_letters()\n"
	"{\n"
	"\tlocal letter\n"
	"\tfor letter in $2; do\n"
	"\t\t[[ $1 == *\"$letter\"* ]] || COMPREPLY+=(\"$1$letter\")\n"
	"\tdone\n"
	"}\n"
	"\n"
	"# Offers the values of a kind: words:A B, list:A B, letters:A B, users, files, "
	"directories or commands.\n"
	"_gua_offer()\n"
	"{\n"
	"\tcase $1 in\n"
	"\tlist:*) _gua_list \"$2\" -W \"${1#list:}\" ;;\n"
	"\tusers) _gua_list \"$2\" -u ;;\n"
	"\tletters:*) _gua_letters \"$2\" \"${1#letters:}\" ;;\n"
	"\twords:*) mapfile -t COMPREPLY < <(compgen -W \"${1#words:}\" -- \"$2\") ;;\n"
	"\tfiles) mapfile -t COMPREPLY < <(compgen -f -- \"$2\") ;;\n"
	"\tdirectories) mapfile -t COMPREPLY < <(compgen -d -- \"$2\") ;;\n"
	"\tcommands) mapfile -t COMPREPLY < <(compgen -c -- \"$2\") ;;\n"
	"\tesac\n"
	"\tcase $1 in\n"
	"\tfiles|directories) compopt -o filenames 2>/dev/null ;;\n"
	"\tlist:*|users|letters:*) compopt -o nospace 2>/dev/null ;;\n"
	"\tesac\n"
	"}\n"
	"\n"
	"# The position of the command that gua is to run; 0: there is none yet.\n"
	"_gua_wrapped()\n"
	"{\n"
	"\tlocal i\n"
	"\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
	"\t\tcase ${COMP_WORDS[i]} in\n"
	"\t\t--) echo $((i + 1)); return ;;\n"
	"\t\t=) i=$((i + 1)) ;;\n"
	"\t\t-*) [[ \" $valued \" == *\" ${COMP_WORDS[i]} \"* ]] && "
	"[[ ${COMP_WORDS[i + 1]} != = ]] && i=$((i + 1)) ;;\n"
	"\t\t*) echo $i; return ;;\n"
	"\t\tesac\n"
	"\tdone\n"
	"\techo 0\n"
	"}\n"
	"\n"
	"_gua()\n"
	"{\n"
	"\tlocal current=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD-1]}\n"
	"\tlocal options= valued= operands= wrapper= value= at=0\n"
	"\tCOMPREPLY=()\n"
	"\tif ((COMP_CWORD == 1)); then\n"
	"\t\t_gua_offer \"words:$_gua_commands help version\" \"$current\"\n"
	"\t\treturn\n"
	"\tfi\n"
	"\tif [[ $current == = ]]; then\n"
	"\t\tcurrent= option=$option=\n"
	"\telif [[ $option == = ]]; then\n"
	"\t\toption=${COMP_WORDS[COMP_CWORD-2]}=\n"
	"\tfi\n"
	"\t_gua_table \"${COMP_WORDS[1]}\" \"$option\"\n"
	"\t[[ $wrapper ]] && at=$(_gua_wrapped)\n"
	"\tif ((at > 0)) && declare -F _command_offset >/dev/null; then\n"
	"\t\t_command_offset \"$at\"\n"
	"\telif ((at > 0)); then\n"
	"\t\tif ((COMP_CWORD == at)); then value=commands; else value=files; fi\n"
	"\t\t_gua_offer $value \"$current\"\n"
	"\telif [[ $value ]]; then\n"
	"\t\t_gua_offer \"$value\" \"$current\"\n"
	"\telif [[ $current == -* ]]; then\n"
	"\t\t_gua_offer \"words:$options\" \"$current\"\n"
	"\telif [[ $wrapper ]]; then\n"
	"\t\t_gua_offer commands \"$current\"\n"
	"\telse\n"
	"\t\t_gua_offer \"$operands\" \"$current\"\n"
	"\tfi\n"
	"}\n"
	"complete -F _gua gua gpu-usage-audit\n";

static void add_names(struct str *out, const struct option_row *row, const char *between)
{
	if (row->letter)
		str_addf(out, "-%c%s", row->letter, between);
	str_addf(out, "--%s", row->name);
}

/* Appends the kind of values for _gua_offer. */
static void bash_add_value(
	struct str *out, enum completion_value value, const struct str *words)
{
	static const char *const names[] = {
		[COMPLETION_NONE] = "none",
		[COMPLETION_WORDS] = "'words:",
		[COMPLETION_LIST] = "'list:",
		[COMPLETION_LETTERS] = "'letters:",
		[COMPLETION_USERS] = "users",
		[COMPLETION_FILES] = "files",
		[COMPLETION_DIRECTORIES] = "directories",
		[COMPLETION_OTHER] = "other",
	};
	str_add(out, names[value]);
	if (names[value][0] == '\'')
		str_addf(out, "%s'", str_text(words));
}

static void add_option_value(struct str *out, const struct option_row *row)
{
	struct str words = { 0 };
	add_option_words(&words, row);
	bash_add_value(out, value_of_option(row), &words);
	str_finish(&words);
}

static void add_operands(struct str *out, const struct command *command)
{
	struct str words = { 0 };
	if (command->operands)
		add_words(&words, command->operands);
	bash_add_value(out, value_of_operands(command), &words);
	str_finish(&words);
}

static void add_lists(struct str *out, const struct command *command)
{
	str_add(out, "\t\toptions='");
	for (const struct option_row *row = command->options; row->name; row++) {
		if (row->hidden)
			continue;
		add_names(out, row, " ");
		str_add(out, " ");
	}
	str_add(out, "-h --help'\n\t\tvalued='");
	const char *blank = "";
	for (const struct option_row *row = command->options; row->name; row++) {
		if (!needs_value(row))
			continue;
		str_add(out, blank);
		add_names(out, row, " ");
		blank = " ";
	}
	str_add(out, "'\n");
}

static void bash_add_command(struct str *out, const struct command *command)
{
	str_addf(out, "\t%s)\n", command->name);
	add_lists(out, command);
	str_add(out, "\t\toperands=");
	add_operands(out, command);
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
		add_option_value(out, row);
		str_add(out, " ;;\n");
	}
	str_add(out, "\t\tesac ;;\n");
}

static void add_command_names(struct str *out, const struct command *const *commands)
{
	for (size_t i = 0; commands[i]; i++)
		str_addf(out, "%s%s", i ? " " : "", commands[i]->name);
}

static void write_bash(struct str *out, const struct command *const *commands)
{
	str_add(out, bash_head);
	for (size_t i = 0; commands[i]; i++)
		bash_add_command(out, commands[i]);
	str_add(out, "\thelp) operands=\"words:$_gua_commands\" ;;\n");
	str_add(out, tail);
	str_add(out, "_gua_commands='");
	add_command_names(out, commands);
	str_add(out, "'\n");
}

/* Appends text in single quotes. */
static void fish_add_quoted(struct str *out, const char *text)
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
static void fish_add_value(struct str *out, const struct option_row *row)
{
	enum completion_value value = value_of_option(row);
	if (value == COMPLETION_NONE)
		return;
	if (needs_value(row))
		str_add(out, value == COMPLETION_FILES ? " -r -F" : " -x");
	if (value == COMPLETION_FILES)
		return;
	str_add(out, makers[value].before);
	add_option_words(out, row);
	str_add(out, makers[value].after);
}

/* For a command that runs another one: which options take the next word as value, and the call
 * that completes the other command. */
static void add_wrapper(struct str *out, const struct command *command)
{
	str_addf(out, "set -g __gua_valued_%s", command->name);
	for (const struct option_row *row = command->options; row->name; row++) {
		if (!needs_value(row))
			continue;
		if (row->letter)
			str_addf(out, " -%c", row->letter);
		str_addf(out, " --%s", row->name);
	}
	str_addf(out,
		"\ncomplete -c gua -n '__gua_runs %s' -x -a '(complete -C (__gua_run %s))'\n",
		command->name, command->name);
}

static void fish_add_command(struct str *out, const struct command *command)
{
	str_addf(out, "complete -c gua -n __gua_first -a %s -d ", command->name);
	fish_add_quoted(out, command->summary);
	str_add(out, "\n");
	for (const struct option_row *row = command->options; row->name; row++) {
		if (row->hidden)
			continue;
		str_addf(out, "complete -c gua -n '__gua_is %s' -l %s", command->name,
			row->name);
		if (row->letter)
			str_addf(out, " -s %c", row->letter);
		fish_add_value(out, row);
		str_add(out, " -d ");
		fish_add_quoted(out, row->help);
		str_add(out, "\n");
	}
	str_addf(out, "complete -c gua -n '__gua_is %s' -l help -s h -d 'this text'\n",
		command->name);
	if (command->stop_at_operand)
		add_wrapper(out, command);
	else if (value_of_operands(command) == COMPLETION_FILES)
		str_addf(out, "complete -c gua -n '__gua_is %s' -F\n", command->name);
	else if (command->operands) {
		str_addf(out, "complete -c gua -n '__gua_is %s' -f -a '", command->name);
		add_words(out, command->operands);
		str_add(out, "'\n");
	}
}

static const char fish_head[] =
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

static void write_fish(struct str *out, const struct command *const *commands)
{
	str_add(out, fish_head);
	for (size_t i = 0; commands[i]; i++)
		fish_add_command(out, commands[i]);
	str_add(out, "complete -c gua -n '__gua_is help' -f -a '");
	for (size_t i = 0; commands[i]; i++)
		str_addf(out, "%s%s", i ? " " : "", commands[i]->name);
	str_add(out, "'\n");
}

/* Appends text inside single quotes; a backslash before each of `special`. */
static void zsh_add_quoted(struct str *out, const char *text, const char *special)
{
	for (; *text; text++) {
		if (*text == '\'')
			str_add(out, "'\\'");
		else if (strchr(special, *text))
			str_add(out, "\\");
		str_add_bytes(out, text, 1);
	}
}

/* The texts before and after the words of a completion, by kind of value. */
static const struct action {
	const char *before, *after;
} actions[] = {
	[COMPLETION_NONE] = { " ", "" },
	[COMPLETION_WORDS] = { "(", ")" },
	[COMPLETION_LIST] = { "_sequence compadd - ", "" },
	[COMPLETION_LETTERS] = { "_values -s \"\" letters ", "" },
	[COMPLETION_USERS] = { "_sequence _users", "" },
	[COMPLETION_FILES] = { "_files", "" },
	[COMPLETION_DIRECTORIES] = { "_files -/", "" },
	[COMPLETION_OTHER] = { " ", "" },
};

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
	zsh_add_quoted(out, row->help, "[]\\");
	str_add(out, "]");
	if (valued) {
		str_add(out, needs_value(row) ? ":" : "::");
		zsh_add_quoted(out, row->arg ? row->arg : "value", ":\\");
		str_add(out, ":");
		str_add(out, actions[value_of_option(row)].before);
		add_option_words(out, row);
		str_add(out, actions[value_of_option(row)].after);
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
		str_add(out, " \\\n\t\t\t'*:argument:");
		str_add(out, actions[value_of_operands(command)].before);
		if (value_of_operands(command) == COMPLETION_WORDS)
			add_words(out, command->operands);
		str_add(out, actions[value_of_operands(command)].after);
		str_add(out, "'");
	}
	str_add(out, " ;;\n");
}

static void add_command_list(struct str *out, const struct command *const *commands)
{
	for (size_t i = 0; commands[i]; i++) {
		str_addf(out, "\t\t'%s:", commands[i]->name);
		zsh_add_quoted(out, commands[i]->summary, "\\");
		str_add(out, "'\n");
	}
}

/* zsh has its own parameter `commands`, which it needs to complete the name of a command, so
 * the script uses another name. */
static void write_zsh(struct str *out, const struct command *const *commands)
{
	str_add(out, "#compdef gua gpu-usage-audit\n"
		     "# zsh completion for gua, made by 'gua completion zsh'.\n\n"
		     "_gua() {\n"
		     "\tlocal curcontext=\"$curcontext\" state line\n"
		     "\tlocal -a gua_commands\n"
		     "\tgua_commands=(\n");
	add_command_list(out, commands);
	str_add(out,
		"\t\t'help:explain a command'\n"
		"\t\t'version:print the version'\n"
		"\t)\n"
		"\t_arguments -C '1:command:->command' '*::argument:->argument' && return\n"
		"\tcase $state in\n"
		"\tcommand) _describe -t commands command gua_commands ;;\n"
		"\targument)\n"
		"\t\tcase $words[1] in\n");
	for (size_t i = 0; commands[i]; i++)
		zsh_add_command(out, commands[i]);
	str_add(out, "\t\thelp) _describe -t commands command gua_commands ;;\n"
		     "\t\tesac ;;\n"
		     "\tesac\n"
		     "}\n\n"
		     "if [[ $funcstack[1] == _gua ]]; then\n"
		     "\t_gua \"$@\"\n"
		     "else\n"
		     "\tcompdef _gua gua gpu-usage-audit\n"
		     "fi\n");
}

static const struct shell {
	const char *name;
	void (*write)(struct str *out, const struct command *const *commands);
} shells[] = {
	{ "bash", write_bash },
	{ "zsh", write_zsh },
	{ "fish", write_fish },
};

#define COMMAND_POINTER(name) &cmd_##name,
static const struct command *const all_commands[] = { COMMANDS(COMMAND_POINTER) NULL };

static const struct option_row rows[] = { { 0 } };

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
		shells[i].write(&out, all_commands);
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
