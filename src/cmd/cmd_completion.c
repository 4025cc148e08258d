/* gua completion: prints scripts for bash, zsh and fish: completion.* in this folder, with the
 * tables of commands and options, which the scripts read. */
#include "cmd/share/configure.h"
#include "completion_bash.h"
#include "completion_fish.h"
#include "completion_zsh.h"

/* The kind of a value: none; words: one of some; list: several of them, with commas between
 * them; letters: the same without commas; users: a list of users; files, directories: a path;
 * other: it cannot be completed. These are found by the placeholder in the help. */
static const struct {
	const char *arg, *kind;
} kinds[] = {
	{ "PATH", "files" },
	{ "FILE", "files" },
	{ "DIR", "directories" },
	{ "USER,...", "users" },
	{ "GROUPS", "letters" },
	{ "LETTERS", "letters" },
};

static const char *kind_of(const struct option_row *row)
{
	const char *arg = row->arg ? row->arg : "";
	if (row->kind == OPTION_FLAG)
		return "none";
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(arg, kinds[i].arg) == 0)
			return kinds[i].kind;
	if (!row->choices && !row->words)
		return "other";
	return strchr(arg, ',') ? "list" : "words";
}

/* Appends the words that a value may have: those of a row, or of "a|b|c". */
static void add_words(struct str *out, void (*words)(struct str *out), const char *choices)
{
	size_t start = out->len;
	if (words)
		words(out);
	for (const char *at = words || !choices ? "" : choices; *at; at++)
		str_add_bytes(out, *at == '|' ? " " : at, 1);
	if (out->len > start && out->data[out->len - 1] == ' ')
		out->len--;
	if (out->len == start)
		str_add(out, "-");
}

/* Appends a line of the table, with tabs between its fields: name, letter, marks, the kind of
 * the value, its words, its placeholder, help; "-" is an empty one. Marks: v: the next word is
 * the value, m: there may be one after "=", r: may be repeated, h: hidden. */
static void add_option(struct str *out, const struct option_row *row)
{
	bool may = row->kind == OPTION_MAYBE || row->kind == OPTION_MAYBE_NEXT;
	bool repeats = row->kind == OPTION_LIST || row->kind == OPTION_TEXTS;
	str_addf(out, "%s\t%c\t-%s%s%s\t%s\t", row->name, row->letter ? row->letter : '-',
		may			   ? "m"
		: row->kind == OPTION_FLAG ? ""
					   : "v",
		repeats ? "r" : "", row->hidden ? "h" : "", kind_of(row));
	add_words(out, row->words, row->choices);
	str_addf(out, "\t%s\t%s\n", row->arg ? row->arg : "value", row->help ? row->help : "");
}

/* Appends the table of a command. Its first line, "=", is about the operands and has the
 * summary; mark w: it runs another command. */
static void add_table(struct str *out, const struct command *command)
{
	struct option_row rows[OPTIONS_MAX];
	const char *operands =
		command->operands && *command->operands ? command->operands : NULL;
	bool files = operands && strcmp(operands, "FILE") == 0;
	str_addf(out, "=\t-\t-%s\t%s\t", command->stop_at_operand ? "w" : "",
		!operands ? "none"
		: files	  ? "files"
			  : "words");
	add_words(out, NULL, files ? NULL : operands);
	str_addf(out, "\t-\t%s\n", command->summary);
	configure_rows(command, rows);
	for (const struct option_row *row = rows; row->name; row++)
		add_option(out, row);
}

/* The script of a shell has two marks: one for the names of the commands, and a line for the
 * table of each command, between `before`, the name, `between` and `after`. In the texts, which
 * are in single quotes, `quote` replaces a single quote and `backslash` a backslash. */
#define NAMES_MARK "@gua-names@"
#define OPTIONS_MARK "@gua-options@\n"

static const struct shell {
	const char *name, *script, *quote, *backslash, *before, *between, *after;
	bool summaries; /* lines NAME:SUMMARY instead of names */
} shells[] = {
	{ "bash", completion_bash, "'\\''", "\\", "\t", ") rows='", "' ;;\n", false },
	{ "zsh", completion_zsh, "'\\''", "\\", "\t\t", ") rows='", "' ;;\n", true },
	{ "fish", completion_fish, "\\'", "\\\\", "__gua_command ", " '", "'\n", false },
};

static void add_quoted(struct str *out, const struct shell *shell, const char *text)
{
	for (; *text; text++)
		if (*text == '\'' || *text == '\\')
			str_add(out, *text == '\'' ? shell->quote : shell->backslash);
		else
			str_add_bytes(out, text, 1);
}

static void add_name(struct str *out, const struct shell *shell, const struct command *command)
{
	if (!shell->summaries) {
		str_addf(out, "%s ", command->name);
		return;
	}
	str_addf(out, "\t\t'%s:", command->name);
	add_quoted(out, shell, command->summary);
	str_add(out, "'\n");
}

static void add_command(
	struct str *out, const struct shell *shell, const struct command *command)
{
	struct str table = { 0 };
	add_table(&table, command);
	str_addf(out, "%s%s%s", shell->before, command->name, shell->between);
	add_quoted(out, shell, str_text(&table));
	str_add(out, shell->after);
	out->failed |= table.failed;
	str_finish(&table);
}

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
		for (size_t i = 0; all_commands[i]; i++)
			(names ? add_name : add_command)(&out, shell, all_commands[i]);
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
