/* The completion script for zsh: one call of _arguments for each command. */
#include <string.h>

#include "cmd/completion.h"

/* Appends text inside single quotes; a backslash before each of `special`. */
static void add_quoted(struct str *out, const char *text, const char *special)
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
	bool valued = completion_option(row) != COMPLETION_NONE;
	const char *equals = !valued ? "" : completion_needs_value(row) ? "=" : "=-";
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
	add_quoted(out, row->help, "[]\\");
	str_add(out, "]");
	if (valued) {
		str_add(out, completion_needs_value(row) ? ":" : "::");
		add_quoted(out, row->arg ? row->arg : "value", ":\\");
		str_add(out, ":");
		str_add(out, actions[completion_option(row)].before);
		completion_add_option_words(out, row);
		str_add(out, actions[completion_option(row)].after);
	}
	str_add(out, "'");
}

static void add_command(struct str *out, const struct command *command)
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
		str_add(out, actions[completion_operands(command)].before);
		if (completion_operands(command) == COMPLETION_WORDS)
			completion_add_words(out, command->operands);
		str_add(out, actions[completion_operands(command)].after);
		str_add(out, "'");
	}
	str_add(out, " ;;\n");
}

static void add_command_list(struct str *out, const struct command *const *commands)
{
	for (size_t i = 0; commands[i]; i++) {
		str_addf(out, "\t\t'%s:", commands[i]->name);
		add_quoted(out, commands[i]->summary, "\\");
		str_add(out, "'\n");
	}
}

/* zsh has its own parameter `commands`, which it needs to complete the name of a command, so
 * the script uses another name. */
void completion_zsh(struct str *out, const struct command *const *commands)
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
		add_command(out, commands[i]);
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
