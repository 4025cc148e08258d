/* gua report: prints the audit of a window, for people and for programs. */
#include "base/words.h"
#include "cmd/share/choose_db.h"
#include "cmd/share/configure.h"
#include "cmd/share/hand_over.h"
#include "cmd/share/mine.h"
#include "cmd/cmd_report.h"
#include "cmd/share/terminal.h"
#include "model/sentence.h"
#include "report/report_ask.h"
#include "render/report_formats.h"
#include "store/foreign.h"

struct report_options {
	struct configure_options conf;
	struct texts db;
	struct report_words words;
	const char *now, *format, *output, *table, *interval, *ssh;
	double cost;
	int64_t width;
	const char *color;
	bool json, mine, digest, ascii, no_color, no_pager;
	bool is_mine;	    /* --mine, or --user me */
	struct arena texts; /* names of users that replace "me" */
	struct fleet_values fleet;
};

#define ROW(member) .offset = offsetof(struct report_options, member)
static const struct option_row rows[] = {
	{ OPTION_TEXTS, 0, "db", "PATH",
		"store to read, a directory of stores, or a pattern: '/srv/*/gua.db'; may be "
		"given several times",
		ROW(db) },
	{ OPTION_MAYBE_NEXT, 0, "from", "URL",
		"report over a fleet: the address of its Prometheus-compatible engine "
		"(default: url in [fleet] of gua.conf)",
		ROW(fleet.from) },
	{ OPTION_CHOICE, 0, "metrics", "EXPORTER",
		"whose metrics of a fleet: gua, dcgm (dcgm-exporter), nvidia_gpu_exporter or "
		"jobstats (default auto: gua's, else what is there)",
		.choices = "auto|gua|dcgm|nvidia_gpu_exporter|jobstats", ROW(fleet.metrics) },
	{ OPTION_TEXT, 0, "ssh", "HOSTS",
		"report over the hosts in this file, one a line (-: standard input): fetches "
		"from each, with your ssh, what gua recorded there",
		ROW(ssh) },
	WINDOW_OPTIONS(struct report_options, words.window, "1h ago", "now"),
	{ OPTION_CHOICE, 0, "format", "FORMAT",
		"text, json, csv, html or svg (default text, or as FILE of --output ends)",
		.choices = "text|json|csv|html|svg", ROW(format) },
	{ OPTION_TEXT, 'o', "output", "FILE", "write to this file instead of standard output",
		ROW(output) },
	{ OPTION_FLAG, 0, "json", .help = "same as --format json", ROW(json) },
	{ OPTION_TEXT, 0, "by", "WHAT[,WHAT]",
		"whose time: " IDENTITY_LIST
		"or two of them (default user; of one user, process)",
		ROW(words.by), .words = identity_words },
	{ OPTION_LIST, 0, "user", "USER,...", "only the time of these users; me: your own",
		ROW(words.only.lists[ONLY_USER]) },
	{ OPTION_FLAG, 0, "mine", .help = "same as --user me", ROW(mine) },
	{ OPTION_LIST, 0, "group", "GROUP,...", "only the time of users in these groups",
		ROW(words.only.lists[ONLY_GROUP]) },
	{ OPTION_LIST, 0, "notebook", "PATH",
		"only the time of this notebook: its path, or jupyter:ID",
		ROW(words.only.lists[ONLY_NOTEBOOK]) },
	{ OPTION_LIST, 0, "job", "JOB,...",
		"only the time of these batch jobs: 123 or slurm:123",
		ROW(words.only.lists[ONLY_JOB]) },
	{ OPTION_LIST, 0, "card", "CARD,...",
		"only these cards: index, index:instance, UUID or PCI address",
		ROW(words.only.lists[ONLY_CARD]) },
	{ OPTION_LIST, 0, "host", "HOST,...", "only cards of these hosts",
		ROW(words.only.lists[ONLY_HOST]) },
	{ OPTION_LIST, 0, "model", "TEXT,...", "only cards whose name contains this: a100",
		ROW(words.only.lists[ONLY_MODEL]) },
	{ OPTION_CHOICE, 0, "sort", "ORDER",
		"most first: waste (idle), held, used, idle, squatting, share, memory; or name "
		"(default waste)",
		.choices = ORDER_CHOICES, ROW(words.sort) },
	{ OPTION_MAYBE_NEXT, 0, "compare", "TIME",
		"compare with the window before, with a period (lastmonth, 2026-10), or with "
		"as much time from a moment on",
		.choices = PERIOD_NAMES, ROW(words.compare) },
	{ OPTION_FLAG, 0, "digest",
		.help = "a short text for mail, of last week unless --since is given; with "
			"--user, for one person",
		ROW(digest) },
	{ OPTION_CHOICE, 0, "table", "TABLE",
		"which table csv has: by (what --by lists), bill, trend, events, longest (idle "
		"spells), compare (figures), compare-users or timeline (of each card) "
		"(default by)",
		.choices = REPORT_TABLE_CHOICES, ROW(table) },
	{ OPTION_COUNT, 0, "top", "N",
		"rows of holders, 0 for all (default 10 in text, and 5 in each of these; all "
		"in json and csv)",
		ROW(words.top), .max = 1e9 },
	{ OPTION_COUNT, 0, "longest", "N",
		"show the N longest idle spells, 0 for none (default 5 in text, 20 in json and "
		"csv)",
		ROW(words.longest), .max = 1e6 },
	{ OPTION_REAL, 0, "cost", "MONEY",
		"price of one GPU-hour of any card (default: [price] in gua.conf)", ROW(cost),
		.max = 1e9 },
	KEY_ROW(0, "currency", "money.currency"),
	KEY_ROW(0, "energy-price", "money.energy_price"),
	KEY_ROW(0, "co2", "money.co2_g_per_kwh"),
	CONFIGURE_ROWS(struct report_options, conf),
	FLEET_ROWS(struct report_options, fleet),
	{ OPTION_COUNT, 0, "width", "N", "width of the bar, 10 to 400 (default 60)", ROW(width),
		.min = 10, .max = 400 },
	{ OPTION_FLAG, 0, "utc", .help = "times in UTC instead of local time", ROW(words.utc) },
	{ OPTION_FLAG, 0, "ascii", .help = "use only ASCII characters", ROW(ascii) },
	{ OPTION_FLAG, 0, "no-color", .help = "use no colours, also on a terminal",
		ROW(no_color) },
	COLOR_ROW(struct report_options, color),
	PAGER_ROW(struct report_options, no_pager),
	{ OPTION_TEXT, 0, "interval", "TIME", "accepted for compatibility and ignored",
		ROW(interval), .hidden = true },
	NOW_OPTION(struct report_options, now),
	{ 0 },
};

static bool is_format(const struct report_options *o, const char *format)
{
	return o->format && strcmp(o->format, format) == 0;
}

static bool is_for_people(const struct report_options *o)
{
	return !o->json && !is_format(o, "json") && !is_format(o, "csv");
}

enum { SIMULATED_NAMED = 5 };

/* Reports simulated hosts on standard error, because CSV has no place for it. */
static void note_simulated(const struct report *r)
{
	size_t n = 0;
	for (size_t i = 0; i < r->a->n_hosts; i++)
		n += r->a->hosts[i].simulated;
	if (n > SIMULATED_NAMED)
		log_notice("%zu of %zu hosts: simulated data, invented and not measured on a "
			   "GPU",
			n, r->a->n_hosts);
	for (size_t i = 0; i < r->a->n_hosts && n <= SIMULATED_NAMED; i++)
		if (r->a->hosts[i].simulated)
			log_notice("%s: %s", r->a->hosts[i].hostname,
				r->a->hosts[i].captured ? CAPTURED_NOTE : SIMULATED_NOTE);
}

static int print_report(const struct call *call, const struct report *r, struct err *e)
{
	const struct report_options *o = call->values;
	struct str out = { 0 };
	bool text = !o->json && (!o->format || is_format(o, "text"));
	struct report_style style = {
		.text = { .columns = 80,
			.utc = o->words.utc,
			.ascii = o->ascii || !terminal_is_utf8() },
		.bar_cells = (size_t)o->width,
	};
	terminal_choose_color(o->no_color ? "never" : o->color, &style.text.color,
		&style.text.color256, NULL);
	if (o->digest) {
		report_digest(&out, r, &style.text);
	} else if (o->json || is_format(o, "json")) {
		report_json(&out, r);
	} else if (is_format(o, "csv")) {
		note_simulated(r);
		report_csv(&out, r, report_csv_table(o->table));
	} else if (is_format(o, "html")) {
		report_html(&out, r);
	} else if (is_format(o, "svg")) {
		report_svg(&out, r);
	} else {
		report_text(&out, r, &style);
	}
	if (o->output)
		return cmd_print_to(o->output, call->self, &out, e);
	return terminal_page(call->self, &out, o->no_pager || (!text && !o->digest));
}

/* The end of the file's name, if it is what decides the format; else NULL. */
static const char *deciding_end(const struct report_options *o)
{
	bool chosen = o->json || o->format || o->digest;
	const char *point = o->output && !chosen ? strrchr(o->output, '.') : NULL;
	return point ? point + 1 : NULL;
}

/* Without --format the end of the file's name decides: week.html is a page. */
static void choose_format(struct report_options *o)
{
	const char *end = deciding_end(o);
	if (end && options_choice("json|csv|html|svg", end) >= 0)
		o->format = end;
}

/* Checks options that exclude each other. */
static int check_options(const struct report_options *o, struct err *e)
{
	if (o->json && o->format && !is_format(o, "json"))
		return err_set(
			e, ERR_USAGE, "--json and --format %s exclude each other", o->format);
	bool color = false;
	if (terminal_choose_color(o->color, &color, &color, e))
		return e->code;
	if (o->no_color && o->color)
		return err_set(e, ERR_USAGE, "--no-color and --color exclude each other");
	const char *end = deciding_end(o);
	if (end && options_choice("pdf|png|jpg|xls|xlsx|ods|docx|htm|xml", end) >= 0)
		return err_set(e, ERR_USAGE,
			"--output %s: gua does not write .%s; a browser prints .html, a "
			"spreadsheet reads .csv, and --format text writes a text",
			o->output, end);
	if (o->table && !is_format(o, "csv"))
		return err_set(e, ERR_USAGE, "--table needs --format csv");
	if (o->table && strncmp(o->table, "compare", 7) == 0 && !o->words.compare)
		return err_set(e, ERR_USAGE, "--table %s needs --compare", o->table);
	if ((o->fleet.from != NULL) + (o->db.n > 0) + (o->ssh != NULL) > 1)
		return err_set(e, ERR_USAGE, "--from, --ssh and --db exclude each other");
	if (o->digest && (o->json || o->format || o->words.by || o->words.top >= 0))
		return err_set(e, ERR_USAGE,
			"--digest is a text of its own: it takes no --json, --format, --by or "
			"--top");
	return 0;
}

/* Reads the stores and prints their report. */
static int audit_stores(const struct call *call, struct report_asked *asked,
	const struct store_list *stores, struct err *e)
{
	const struct report_options *o = call->values;
	struct report_answer answer = { 0 };
	struct audit_question *q = &asked->question;
	q->paths = (const char *const *)stores->paths;
	q->n_paths = stores->n;
	q->unread = (const char *const *)stores->unread;
	q->n_unread = stores->n_unread;
	if (stores->n > 1) /* several are open at the same time */
		file_allow_many();
	int rc = report_ask_answer(&answer, asked, e);
	for (size_t i = 0; i < q->n_paths && rc && rc != ERR_NOTHING && o->is_mine; i++)
		mine_explain(q->paths[i], e);
	rc = rc ? rc : print_report(call, &answer.report, e);
	/* Which stores are not in the report, unless the report itself names them (as a page or
	 * a text does). */
	const struct audit_stores *s = &answer.audit.stores;
	if (rc == 0 && s->n_unread) {
		bool named = is_for_people(o) && !o->digest && !is_format(o, "svg");
		for (size_t i = 0; i < s->n_unread && !named; i++)
			log_notice("not read: %s", s->unread[i]);
		rc = err_set(e, ERR_WORLD, "%zu of %zu stores could not be read%s", s->n_unread,
			s->n, named ? "; the report ends with the reasons" : "");
	}
	report_ask_finish(&answer);
	return rc;
}

/* Reads the users whose time is asked for: the caller's name for "me", and groups that are
 * configured. A digest is for one user; the others stay in the audit, because the rank needs
 * them. */
static int read_people(struct report_options *o, const struct config *c, struct err *e)
{
	struct text_list *users = &o->words.only.lists[ONLY_USER];
	if (o->mine && users->n == TEXT_LIST_MAX)
		return err_set(e, ERR_USAGE, "too many users");
	if (o->mine)
		users->items[users->n++] = "me";
	if (report_ask_check_groups(&o->words, c, e) ||
		mine_expand(users, &o->texts, &o->is_mine, e))
		return e->code;
	if (!o->digest)
		return 0;
	if (!o->words.compare)
		o->words.compare = "";
	if (!o->words.window.since && !o->words.window.last)
		o->words.window.since = "lastweek";
	if (users->n > 1 || (users->n && strchr(users->items[0], ',')))
		return err_set(e, ERR_USAGE, "--digest takes at most one user");
	if (users->n)
		o->words.person = users->items[0];
	users->n = 0;
	return 0;
}

static void add_option(struct str *out, const char *option, const char *value)
{
	if (!value)
		return;
	str_addf(out, " --%s ", option);
	words_quote(out, value);
}

/* Writes the command for another report about the same time and cards. A path would not fit
 * into a line, so the report only says to give it again. */
static void write_command(struct str *out, const struct report_options *o)
{
	str_add(out, "gua report");
	add_option(out, "from", o->fleet.from);
	add_option(out, "metrics", o->fleet.metrics);
	add_option(out, "ssh", o->ssh);
	add_option(out, "since", o->words.window.since);
	add_option(out, "until", o->words.window.until);
	add_option(out, "last", o->words.window.last);
	for (size_t kind = ONLY_CARD; kind < RESTRICTIONS; kind++)
		for (size_t i = 0; i < o->words.only.lists[kind].n; i++)
			add_option(out, restriction_names[kind],
				o->words.only.lists[kind].items[i]);
}

/* Fetches the stores of other hosts, with the time that both windows need. */
static int fetch_stores(struct store_list *stores, struct report_asked *asked,
	struct report_hosts hosts, const struct report_engine *engine, struct err *e)
{
	const struct audit_question *q = &asked->question;
	const struct window *other = &asked->other;
	hosts.since_ms = q->since_ms;
	hosts.until_ms = q->until_ms;
	if (asked->compares && other->since_ms < hosts.since_ms)
		hosts.since_ms = other->since_ms;
	if (asked->compares && other->until_ms > hosts.until_ms)
		hosts.until_ms = other->until_ms;
	asked->request.asked = engine->asked(engine->context);
	int rc = engine->fetch(engine->context, &hosts, stores, e);
	asked->question.fetched_to = asked->request.asked->directory;
	return rc;
}

/* Reads the window and the stores, and prints the report. */
static int report(const struct call *call, struct err *e)
{
	struct report_options *o = call->values;
	const struct config *c = &call->conf->values;
	const struct report_engine *engine = call->self->parts;
	struct report_asked asked = { 0 };
	int64_t now_ms = 0;
	struct store_list stores = { 0 };
	struct str command = { 0 };
	const struct report_hosts hosts = { .file = o->ssh, .timeout_ms = c->fleet.timeout_ms };
	char currency[64];
	str_escape(currency, sizeof(currency), c->currency, strlen(c->currency));
	foreign_start_heap();
	choose_format(o);
	int rc = check_options(o, e) || read_people(o, c, e) || cmd_now(o->now, &now_ms, e);
	if (engine && !o->ssh && !o->words.by) /* metrics have no processes */
		o->words.by = "user";
	o->words.people = is_for_people(o);
	/* The time line is read only if it is printed. */
	o->words.timeline = is_format(o, "html") || is_format(o, "svg") ||
			    (o->table && strcmp(o->table, "timeline") == 0);
	if (rc == 0)
		rc = report_ask(&asked, &o->words, now_ms, e);
	if (rc == 0 && o->ssh) {
		rc = fetch_stores(&stores, &asked, hosts, engine, e);
	} else if (rc == 0 && engine) {
		/* The engine answers instead of stores. */
		asked.question.engine = engine->audit;
		asked.question.engine_context = engine->context;
		rc = engine->open(engine->context, &o->fleet, c, e);
	} else if (rc == 0) {
		rc = choose_db_list(&stores, &o->db, e);
	}
	if (rc == 0 && o->interval)
		log_notice("--interval is ignored: time is measured, not counted in ticks");
	write_command(&command, o);
	asked.request.currency = currency;
	asked.request.same_db = o->db.n > 0;
	asked.request.command = command.failed ? NULL : str_text(&command);
	const struct report_prices prices = { o->cost, &c->prices };
	report_ask_configure(&asked.question, &asked.request, c, &prices);
	rc = rc ? e->code : audit_stores(call, &asked, &stores, e);
	store_list_finish(&stores);
	str_finish(&command);
	arena_finish(&o->texts);
	return rc;
}

static int run(const struct call *call, struct err *e)
{
	const struct report_options *o = call->values;
	int status = 0;
	/* gua-fleet reads the configuration itself, and says what it cannot read. */
	if ((o->fleet.from || o->ssh) && !call->self->parts)
		return hand_over("fleet", call->argv, e);
	return configure(call->self, call->conf, &o->conf, &status) ? status : report(call, e);
}

const struct command cmd_report = {
	.name = "report",
	.summary = "report what cards did, which users held them, what was wasted",
	.usage = "[--db PATH]... [--from URL] [--ssh HOSTS] [--since TIME | --last LENGTH] "
		 "[--until TIME] [OPTIONS]",
	.details = WINDOW_DETAILS,
	.options = rows,
	.values_size = sizeof(struct report_options),
	.initial =
		&(const struct report_options){
			.words = REPORT_WORDS_NONE, .cost = NAN, .width = 60 },
	.run = run,
};
