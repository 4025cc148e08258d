/* gua metrics: prints the counters and readings of a store for Prometheus, or writes them to a
 * file for node_exporter's textfile collector. */
#include "cmd/share/choose_db.h"
#include "cmd/share/configure.h"
#include "export/scrape.h"
#include "export/exposition.h"

struct metrics_options {
	struct configure_options conf;
	const char *db, *textfile, *now;
	bool openmetrics;
};

#define ROW(member) .offset = offsetof(struct metrics_options, member)
static const struct option_row rows[] = {
	{ OPTION_TEXT, 0, "db", "PATH", "the store (default: see FILES in man gua)", ROW(db) },
	{ OPTION_TEXT, 0, "textfile", "FILE",
		"write to FILE, whole or not at all, for node_exporter's textfile collector",
		ROW(textfile) },
	{ OPTION_FLAG, 0, "openmetrics", .help = "print OpenMetrics 1.0", ROW(openmetrics) },
	KEY_ROW(0, "identities", "metrics.identities"),
	KEY_ROW(0, "compat", "metrics.compat"),
	CONFIGURE_ROWS(struct metrics_options, conf),
	NOW_OPTION(struct metrics_options, now),
	{ 0 },
};

static int print(struct str *out, const struct metrics_options *o, const struct config *config,
	struct err *e)
{
	struct chosen_db db;
	struct identity_names names;
	struct scrape s = { 0 };
	int64_t now_ms = 0;
	if (o->textfile && o->openmetrics)
		return err_set(e, ERR_USAGE,
			"--textfile and --openmetrics exclude each other: node_exporter reads "
			"the text format only");
	if (o->textfile && !str_ends_with(o->textfile, ".prom"))
		return err_set(e, ERR_USAGE,
			"--textfile: the name must end in .prom, or node_exporter ignores it");
	if (cmd_now(o->now, &now_ms, e) || scrape_names_init(&names, config, e))
		return e->code;
	if (!o->db && choose_db_to_read(&db, e))
		return e->code;
	int rc = scrape_read(&s, o->db ? o->db : db.path, &names, now_ms, e);
	if (rc == 0)
		exposition_print(out, &s, o->openmetrics);
	scrape_finish(&s);
	return rc;
}

static int run(const struct call *call, struct err *e)
{
	const struct metrics_options *o = call->values;
	struct str out = { 0 };
	int rc = print(&out, o, &call->conf->values, e);
	if (rc == 0)
		return cmd_print_to(o->textfile, call->self, &out, e);
	str_finish(&out);
	return rc;
}

const struct command cmd_metrics = {
	.name = "metrics",
	.summary = "print counters and readings for Prometheus",
	.usage = "[--db PATH] [--textfile FILE] [OPTIONS]",
	.details = "Counters come from the store and never restart from 0 with the recorder.\n"
		   "gua serve answers the same at /metrics.",
	.options = rows,
	.values_size = sizeof(struct metrics_options),
	.reads_configuration = true,
	.run = run,
};
