/* What all commands share: options, errors, output. */
#include "cmd/cmd.h"

#include "cmd/share/configure.h"
#include "cmd/share/hand_over.h"

struct brief cmd_name(const struct command *self)
{
	return self->called ? str_brief("%s", self->called) : str_brief("gua %s", self->name);
}

/* "usage: gua NAME ARGUMENTS" */
static void add_usage(struct str *out, const struct command *self)
{
	str_addf(out, "usage: %s%s%s\n", cmd_name(self).text, *self->usage ? " " : "",
		self->usage);
}

/* Returns the index of the first operand, or 0 if *status must be returned. */
static int parse_line(
	const struct command *self, struct command_line *line, void *values, int *status)
{
	struct err e = { 0 };
	struct str help = { 0 };
	struct option_row rows[OPTIONS_MAX];
	configure_rows(self, rows);
	line->stop_at_operand = self->stop_at_operand;
	if (options_parse(line, rows, values, &e) != 0) {
		*status = cmd_fail(self, &e);
		return 0;
	}
	if (!line->help)
		return line->first_operand;
	add_usage(&help, self);
	str_addf(&help, "\n%s\n\n", self->summary);
	options_describe(rows, &help);
	if (self->details)
		str_addf(&help, "\n%s\n", self->details);
	str_addf(&help, "\nManual: man gua-%s\n", self->name);
	*status = cmd_print(self, &help);
	return 0;
}

/* Refuses a word that is no option, for a command without operands. If it is the name of a
 * store, the message names --db. */
static int check_operand(const struct command *self, const char *word, struct err *e)
{
	const struct option_row *row = self->options;
	if (!word || self->operands || self->stop_at_operand)
		return 0;
	bool path = strchr(word, '/') || str_ends_with(word, ".db");
	while (row->name && strcmp(row->name, "db") != 0)
		row++;
	return err_set(e, ERR_USAGE, "unexpected argument '%s'%s%s", word,
		row->name && path ? "; write --db " : "", row->name && path ? word : "");
}

/* Runs a command whose options are read. */
static int run_call(struct call *call, int *status, struct err *e)
{
	const struct command *self = call->self;
	if (check_operand(self, *call->operands, e))
		return e->code;
	if (!self->run)
		return hand_over(self->name, call->argv, e);
	if (self->reads_configuration && configure(self, call->conf, call->values, status))
		return 0;
	int rc = self->run(call, e);
	*status = rc < 0 ? 0 : rc;
	return rc < 0 ? rc : 0;
}

int cmd_not_started(char *const *argv, int reason, struct err *e)
{
	bool none = reason == ENOENT || reason == ENOTDIR;
	err_set(e, ERR_WORLD, "cannot start %s: %s%s", argv[0], strerror(reason),
		none && !argv[1] && strchr(argv[0], ' ')
			? "; this is one word: leave out the quotes, or use sh -c '...'"
			: "");
	return none ? 127 : 126;
}

int cmd_call(const struct command *self, int argc, char **argv)
{
	struct configuration conf = { 0 };
	struct call call = { .self = self, .argv = argv, .conf = &conf };
	struct command_line line = {
		.argc = argc, .argv = argv, .given = conf.given, .config = &conf.options
	};
	struct err e = { 0 };
	int status = 0;
	if (!self->run)
		hand_over(self->name, argv, NULL);
	call.values = calloc(1, self->values_size + 1);
	if (!call.values) {
		err_memory(&e);
		return cmd_fail(self, &e);
	}
	if (self->initial)
		memcpy(call.values, self->initial, self->values_size);
	int first = parse_line(self, &line, call.values, &status);
	call.operands = argv + first;
	if (first && run_call(&call, &status, &e))
		status = cmd_fail(self, &e);
	configure_finish(&conf);
	for (const struct option_row *row = self->options; row->name; row++)
		if (row->kind == OPTION_TEXTS)
			options_texts_finish((void *)((char *)call.values + row->offset));
	free(call.values);
	return status;
}

int cmd_run(const struct command *self, int argc, char **argv)
{
	return self->start ? self->start(self, argc, argv) : cmd_call(self, argc, argv);
}

int cmd_fail(const struct command *self, const struct err *e)
{
	struct str out = { 0 };
	if (self->fail)
		return self->fail(self, e);
	str_addf(&out, "%s: %s\n", cmd_name(self).text, e->text);
	if (e->code == ERR_USAGE)
		add_usage(&out, self);
	fputs(str_text(&out), stderr);
	str_finish(&out);
	return err_exit_code(e->code);
}

int cmd_write(FILE *to, struct str *text, struct err *e)
{
	bool whole = !text->failed && fwrite(str_text(text), 1, text->len, to) == text->len &&
		     fflush(to) == 0;
	if (!whole)
		err_set(e, ERR_WORLD, "cannot write the output: %s",
			text->failed ? ERR_MEMORY_TEXT : strerror(errno));
	str_clear(text);
	return whole ? 0 : ERR_WORLD;
}

int cmd_print(const struct command *self, struct str *out)
{
	struct err e = { 0 };
	int rc = cmd_write(stdout, out, &e);
	str_finish(out);
	return rc ? cmd_fail(self, &e) : 0;
}

int cmd_print_to(const char *path, const struct command *self, struct str *out, struct err *e)
{
	if (!path)
		return cmd_print(self, out);
	int rc = out->failed ? err_memory(e) : file_replace(path, str_text(out), out->len, e);
	str_finish(out);
	return rc;
}

const char *cmd_variable(const char *name)
{
	const char *value = secure_getenv(name);
	return value && *value ? value : NULL;
}

const char *cmd_nvml_path(const char *option)
{
	return option ? option : cmd_variable("GUA_NVML");
}

int cmd_now(const char *option, int64_t *now_ms, struct err *e)
{
	struct clock clock;
	clock_init_real(&clock);
	*now_ms = clock_wall_ms(&clock);
	if (option && moment_parse(option, *now_ms, true, now_ms, e) != 0)
		return err_prefix(e, "--now");
	return 0;
}
