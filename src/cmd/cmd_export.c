/* gua export: prints the rows of a store as CSV or JSON, its past as OpenMetrics, or a part of
 * it as a store. */
#include "cmd/share/choose_db.h"
#include "cmd/share/configure.h"
#include "driver/source.h"
#include "export/export.h"
#include "export/exposition.h"
#include "export/history.h"
#include "model/sentence.h"
#include "render/rows.h"
#include "store/extract.h"

struct export_options {
	struct configure_options conf;
	struct texts db;
	struct window_words window;
	const char *format, *what, *now;
	bool json, utc, openmetrics, store;
	int64_t step_ms;	 /* 0: a minute */
	struct text_list labels; /* NAME=VALUE */
};

#define STEP_DEFAULT_MS 60000

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"

/* Adds NAME=VALUE; the value may be any text after the first '='. */
static int add_label(struct str *labels, const char *text, struct err *e)
{
	static const char *const own[] = { "gpu", "uuid", "state", "identity", "model",
		"driver_version", "mig", "source" };
	char name[128];
	const char *equals = strchr(text, '=');
	size_t len = equals ? (size_t)(equals - text) : 0;
	if (len == 0 || len >= sizeof(name) || strspn(text, LETTERS) == 0 ||
		strspn(text, LETTERS "0123456789") != len)
		return err_set(e, ERR_USAGE,
			"--label '%s' is not NAME=VALUE with a name of letters, digits and _",
			text);
	memcpy(name, text, len);
	name[len] = '\0';
	enum { OWN = sizeof(own) / sizeof(own[0]) };
	if (strncmp(name, "__", 2) == 0 || str_place(own, OWN, name) < OWN)
		return err_set(e, ERR_USAGE, "--label: the name '%s' is taken", name);
	exposition_label(labels, name, equals + 1);
	return 0;
}

static int print_lines(struct str *out, void *context, struct err *e)
{
	(void)context;
	return cmd_write(stdout, out, e);
}

/* Prints to stdout. */
static int export_openmetrics(const struct store_list *stores, struct window window,
	const struct export_options *o, const struct config *config, struct err *e)
{
	struct str labels = { 0 }, out = { 0 };
	struct identity_names names;
	struct history *h = NULL;
	if (stores->n != 1)
		return err_set(e, ERR_USAGE,
			"--openmetrics is about one store: export each with its own --label "
			"instance=HOST");
	const char *path = stores->paths[0];
	int rc = scrape_names_init(&names, config, e);
	for (size_t i = 0; rc == 0 && i < o->labels.n; i++)
		rc = add_label(&labels, o->labels.items[i], e);
	if (rc == 0)
		rc = history_open(&h, path, window, &names, e);
	const char *source = rc == 0 ? history_totals(h)->source : "";
	if (source_is_invented(source))
		log_notice("%s: %s", path,
			source_is_captured(source) ? CAPTURED_NOTE : SIMULATED_NOTE);
	const struct backfill backfill = {
		.step_s = (o->step_ms ? o->step_ms : STEP_DEFAULT_MS) / 1000,
		.labels = str_text(&labels),
		.flush = print_lines
	};
	if (rc == 0)
		rc = history_print(&out, h, &backfill, e);
	str_finish(&out);
	history_close(h);
	str_finish(&labels);
	return rc;
}

/* Writes a part of the store to standard output. ERR_USAGE: there are several stores, or
 * standard output is a terminal. */
static int export_store(const struct store_list *stores, struct window window, struct err *e)
{
	const char *directory = secure_getenv("TMPDIR");
	char block[65536];
	int fd = -1;
	ssize_t n;
	if (stores->n != 1)
		return err_set(e, ERR_USAGE,
			"--format store is about one store: give one with --db PATH");
	if (isatty(STDOUT_FILENO))
		return err_set(
			e, ERR_USAGE, "a store is not a text: redirect the output to a file");
	const struct extract_wish wish = { .path = stores->paths[0],
		.since_ms = window.since_ms,
		.until_ms = window.until_ms,
		.directory = directory && *directory == '/' ? directory : "/tmp" };
	int rc = extract_store(&fd, &wish, e);
	if (rc)
		return rc;
	while ((n = read(fd, block, sizeof(block))) > 0)
		if (fwrite(block, 1, (size_t)n, stdout) != (size_t)n)
			break;
	if (n < 0)
		rc = err_set(
			e, ERR_WORLD, "cannot read the temporary file: %s", strerror(errno));
	else if (n > 0 || fflush(stdout) != 0)
		rc = err_set(e, ERR_WORLD, "cannot write the output: %s", strerror(errno));
	close(fd);
	return rc;
}

#define ROW(member) .offset = offsetof(struct export_options, member)
static const struct option_row rows[] = {
	{ OPTION_TEXTS, 0, "db", "PATH",
		"store to read, or a directory of stores; may be given several times",
		ROW(db) },
	{ OPTION_CHOICE, 0, "format", "FORMAT",
		"csv, json, openmetrics, or store: a store with what reports about the window "
		"read (default csv)",
		.choices = "csv|json|openmetrics|store", ROW(format) },
	{ OPTION_FLAG, 0, "json", .help = "same as --format json", ROW(json) },
	{ OPTION_FLAG, 0, "openmetrics",
		.help = "same as --format openmetrics: the counters of gua metrics with "
			"timestamps, to fill an engine with the past",
		ROW(openmetrics) },
	{ OPTION_CHOICE, 0, "what", "WHAT",
		"usage (slots of cards), holding (slots of processes on cards), process, "
		"event, spell or lease (default usage)",
		.choices = EXPORT_NAMES, ROW(what) },
	WINDOW_OPTIONS(struct export_options, window, "all", "all"),
	{ OPTION_FLAG, 0, "utc", .help = "dates in --since and --until are UTC", ROW(utc) },
	{ OPTION_DURATION, 0, "step", "D", "openmetrics: time between two samples (default 1m)",
		ROW(step_ms), .min = 1000, .max = 86400e3 },
	{ OPTION_LIST, 0, "label", "NAME=VALUE",
		"openmetrics: a label of all series, such as instance=gpu01:9848; may be given "
		"several times",
		ROW(labels) },
	{ .name = "identities",
		.key = "metrics.identities",
		.help = "openmetrics: whose time it is: user, group, namespace, hashed or "
			"off" },
	CONFIGURE_ROWS(struct export_options, conf),
	NOW_OPTION(struct export_options, now),
	{ 0 },
};

/* The output of the rows. */
struct sink {
	struct column columns[EXPORT_MAX_COLUMNS];
	size_t n_columns;
	struct str out;
	struct json json;
	bool is_json;
};

enum { FLUSH_BYTES = 64 * 1024 };

static int export_file(struct sink *s, const char *path, struct window window,
	enum export_what what, struct err *e)
{
	struct export *x = NULL;
	struct cell cells[EXPORT_MAX_COLUMNS];
	int rc = export_open(&x, what, path, window, e);
	if (rc == 0) {
		struct export_marks marks = export_marks(x, window);
		if (marks.simulated)
			log_notice("%s: " SIMULATED_NOTE, path);
		if (marks.captured)
			log_notice("%s: " CAPTURED_NOTE, path);
	}
	while (rc == 0) {
		rc = export_next(x, cells, e);
		if (rc <= 0)
			break;
		if (s->is_json)
			rows_json_row(&s->json, s->columns, s->n_columns, cells);
		else
			rows_add(&s->out, s->columns, s->n_columns, cells);
		bool full = s->out.failed || s->out.len >= FLUSH_BYTES;
		rc = full ? cmd_write(stdout, &s->out, e) : 0;
	}
	export_close(x);
	return rc;
}

/* The host of a JSON document is that of all rows; null if there are several hosts, because
 * then each row names its host. */
static int export_all(struct sink *s, const struct store_list *stores, struct window window,
	const char *name, struct err *e)
{
	char host[EXPORT_HOST_CAP] = "";
	enum export_what what = (enum export_what)options_choice(EXPORT_NAMES, name);
	int rc = s->is_json ? export_host(host, stores->paths, stores->n, e) : 0;
	s->n_columns = export_columns(what, s->columns);
	if (s->is_json) {
		s->json = (struct json){ .out = &s->out, .lines = 2 };
		json_open(&s->json, NULL, '{');
		json_text(&s->json, "schema", "gua-export-1");
		json_label(&s->json, "host", host);
		json_text(&s->json, "what", name);
		json_open(&s->json, "rows", '[');
	} else {
		rows_header(&s->out, s->columns, s->n_columns);
	}
	for (size_t i = 0; i < stores->n && rc == 0; i++)
		rc = export_file(s, stores->paths[i], window, what, e);
	if (s->is_json && rc == 0) {
		json_close(&s->json, ']');
		json_close(&s->json, '}');
	}
	return rc ? rc : cmd_write(stdout, &s->out, e);
}

/* Sets the format; ERR_USAGE if two are given, or if an option belongs to another format. */
static int read_format(struct export_options *o, bool identities, struct err *e)
{
	const char *flag = o->json ? "json" : o->openmetrics ? "openmetrics" : NULL;
	if (o->json && o->openmetrics)
		return err_set(e, ERR_USAGE, "--json and --openmetrics exclude each other");
	if (flag && o->format && strcmp(flag, o->format) != 0)
		return err_set(e, ERR_USAGE, "--%s and --format %s exclude each other", flag,
			o->format);
	o->format = flag ? flag : o->format ? o->format : "csv";
	o->openmetrics = strcmp(o->format, "openmetrics") == 0;
	o->json = strcmp(o->format, "json") == 0;
	o->store = strcmp(o->format, "store") == 0;
	if (!o->openmetrics && (o->step_ms || o->labels.n || identities))
		return err_set(e, ERR_USAGE,
			"--step, --label and --identities are for --openmetrics only");
	if (o->what && (o->openmetrics || o->store))
		return err_set(e, ERR_USAGE, "--what does not go with %s",
			o->store ? "--format store" : "--openmetrics");
	return 0;
}

static int run(const struct call *call, struct err *e)
{
	struct export_options *o = call->values;
	struct sink s = { 0 };
	struct store_list stores = { 0 };
	struct window w = { .since_ms = 0, .until_ms = INT64_MAX / 4 };
	int64_t now_ms;
	const char *identities = call->conf->options.metrics.identities;
	if (read_format(o, identities != NULL, e) || cmd_now(o->now, &now_ms, e))
		return ERR_USAGE;
	s.is_json = o->json;
	if (o->window.last)
		w.until_ms = now_ms;
	if (period_parse_window(&w, &o->window, now_ms, o->utc, e))
		return ERR_USAGE;
	int rc = choose_db_list(&stores, &o->db, e);
	choose_db_note_unread(&stores);
	if (rc == 0 && o->store)
		rc = export_store(&stores, w, e);
	else if (rc == 0 && o->openmetrics)
		rc = export_openmetrics(&stores, w, o, &call->conf->values, e);
	else if (rc == 0)
		rc = export_all(&s, &stores, w, o->what ? o->what : "usage", e);
	str_finish(&s.out);
	store_list_finish(&stores);
	return rc;
}

const struct command cmd_export = {
	.name = "export",
	.summary = "print the rows of a store as CSV, JSON or OpenMetrics",
	.usage = "[--db PATH]... [--what WHAT] [--format FORMAT] [OPTIONS]",
	.details = WINDOW_DETAILS,
	.options = rows,
	.values_size = sizeof(struct export_options),
	.reads_configuration = true,
	.run = run,
};
