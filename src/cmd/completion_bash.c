/* The completion script for bash: a generated table of cases, and fixed functions. */
#include "cmd/completion.h"

static const char head[] =
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
static void add_value(struct str *out, enum completion_value value, const struct str *words)
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
	completion_add_option_words(&words, row);
	add_value(out, completion_option(row), &words);
	str_finish(&words);
}

static void add_operands(struct str *out, const struct command *command)
{
	struct str words = { 0 };
	if (command->operands)
		completion_add_words(&words, command->operands);
	add_value(out, completion_operands(command), &words);
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
		if (!completion_needs_value(row))
			continue;
		str_add(out, blank);
		add_names(out, row, " ");
		blank = " ";
	}
	str_add(out, "'\n");
}

static void add_command(struct str *out, const struct command *command)
{
	str_addf(out, "\t%s)\n", command->name);
	add_lists(out, command);
	str_add(out, "\t\toperands=");
	add_operands(out, command);
	str_addf(out, "\n\t\twrapper=%s\n\t\tcase $2 in\n",
		command->stop_at_operand ? "yes" : "");
	for (const struct option_row *row = command->options; row->name; row++) {
		if (row->hidden || completion_option(row) == COMPLETION_NONE)
			continue;
		str_add(out, "\t\t");
		if (completion_needs_value(row)) {
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

void completion_bash(struct str *out, const struct command *const *commands)
{
	str_add(out, head);
	for (size_t i = 0; commands[i]; i++)
		add_command(out, commands[i]);
	str_add(out, "\thelp) operands=\"words:$_gua_commands\" ;;\n");
	str_add(out, tail);
	str_add(out, "_gua_commands='");
	add_command_names(out, commands);
	str_add(out, "'\n");
}
