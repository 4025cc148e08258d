/* gua serve: runs gua-serve, the only program that links an HTTP server. */
#include "cmd/serve.h"

#include "cmd/cmd.h"
#include "cmd/hand_over.h"
#include "cmd/window.h"
#include "serve/listen.h"

#define AT(field) .offset = offsetof(struct serve_values, field)

static const struct option_row options[] = {
	{ OPTION_TEXT, 0, "listen", "ADDRESS",
		"where to listen: ADDRESS:PORT or unix:PATH (default " LISTEN_DEFAULT ")",
		AT(listen) },
	{ OPTION_TEXTS, 0, "db", "PATH",
		"store to read, or a directory of stores; may be given several times", AT(db) },
	{ OPTION_FLAG, 0, "utc", .help = "times in UTC instead of local time", AT(utc) },
	CONFIGURE_ROWS(struct serve_values, conf),
	NOW_OPTION(struct serve_values, now),
	{ 0 },
};

static int run(const struct command *self, int argc, char **argv)
{
	struct err e = { 0 };
	struct serve_values v = { 0 };
	int status = 0;
	hand_over(self->name, argv);
	int stop = cmd_options_only(self, argc, argv, &v, &status);
	texts_finish(&v.db);
	if (stop)
		return status;
	err_set(&e, ERR_WORLD,
		"the program gua-serve is not installed; build gua with the option serve");
	return cmd_fail(self, &e);
}

const struct command cmd_serve = {
	.name = "serve",
	.summary = "show the cards and the audit as web pages and JSON, from the store",
	.usage = "[--listen ADDRESS] [--db PATH]... [OPTIONS]",
	.details = "It only reads the store. SIGTERM and Ctrl-C end it.",
	.options = options,
	.handed_over = true,
	.run = run,
};
