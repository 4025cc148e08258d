/* gua report: prints the audit of a window, for people and for programs. */
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/timetext.h"
#include "cmd/choose_db.h"
#include "cmd/cmd.h"
#include "cmd/configure.h"
#include "cmd/terminal.h"
#include "cmd/window.h"
#include "query/audit.h"
#include "query/report.h"
#include "render/report.h"

struct report_options {
	struct texts db;
	struct window_words window;
	const char *now, *format, *by, *currency, *interval;
	double cost;
	int64_t top, width;
	bool json, utc, ascii, no_color;
	struct configure_options conf;
};

#define ROW(member) .offset = offsetof(struct report_options, member)
static const struct option_row rows[] = {
	{ OPTION_TEXTS, 0, "db", "PATH",
		"store to read, or a directory of stores; may be given several times",
		ROW(db) },
	WINDOW_OPTIONS(struct report_options, window, "1h ago", "now"),
	{ OPTION_CHOICE, 0, "format", "FORMAT", "text, json or csv (default text)",
		.choices = "text|json|csv", ROW(format) },
	{ OPTION_FLAG, 0, "json", .help = "same as --format json", ROW(json) },
	{ OPTION_CHOICE, 0, "by", "WHAT", "whose time: user, process or card (default user)",
		.choices = "user|process|card", ROW(by) },
	{ OPTION_COUNT, 0, "top", "N",
		"rows of identities or processes, 0 for all (default 10 "
		"in text, all in json and csv)",
		ROW(top), .max = 1e9 },
	{ OPTION_REAL, 0, "cost", "MONEY", "what one GPU-hour costs: idle-held time in money",
		ROW(cost), .max = 1e12 },
	{ OPTION_TEXT, 0, "currency", "CODE", "name of the money (default USD)",
		ROW(currency) },
	CONFIGURE_ROWS(struct report_options, conf),
	{ OPTION_COUNT, 0, "width", "N", "width of the bar, 10 to 400 (default 60)", ROW(width),
		.min = 10, .max = 400 },
	{ OPTION_FLAG, 0, "utc", .help = "times in UTC instead of local time", ROW(utc) },
	{ OPTION_FLAG, 0, "ascii", .help = "no character outside ASCII", ROW(ascii) },
	{ OPTION_FLAG, 0, "no-color", .help = "no colour on a terminal either", ROW(no_color) },
	{ OPTION_TEXT, 0, "interval", "TIME", "accepted for compatibility and ignored",
		ROW(interval), .hidden = true },
	NOW_OPTION(struct report_options, now),
	{ 0 },
};

/* Reads the requested window. */
static int read_window(const struct report_options *o, struct audit_question *q, struct err *e)
{
	struct window window;
	struct window_words words = o->window;
	if (cmd_now(o->now, &q->now_ms, e) != 0)
		return ERR_USAGE;
	window.until_ms = q->now_ms;
	if (!words.since && !words.last)
		words.last = "1h";
	if (window_parse(&window, &words, q->now_ms, o->utc, e) != 0)
		return ERR_USAGE;
	q->since_ms = window.since_ms;
	q->until_ms = window.until_ms;
	return 0;
}

static struct report_style read_style(const struct report_options *o)
{
	bool utf8 = terminal_is_utf8();
	return (struct report_style){
		.text = { .columns = 80,
			.utc = o->utc,
			.ascii = o->ascii || !utf8,
			.color = !o->no_color && terminal_has_color() },
		.bar_cells = (size_t)o->width,
	};
}

static struct report_request read_request(const struct report_options *o)
{
	struct report_request request = {
		.top = o->top < 0 ? 0 : (size_t)o->top,
		.cost = o->cost,
		.currency = o->currency,
		.utc = o->utc,
	};
	if (o->by && strcmp(o->by, "process") == 0)
		request.by = REPORT_BY_PROCESS;
	else if (o->by && strcmp(o->by, "card") == 0)
		request.by = REPORT_BY_CARD;
	return request;
}

/* Reports where there is data, if the requested window has none. */
static int no_data(const struct command *self, const struct audit *a,
	const struct audit_question *q, bool utc)
{
	char since[48], until[48], oldest[48], newest[48];
	struct err e = { 0 };
	moment_text(since, sizeof(since), q->since_ms, utc);
	moment_text(until, sizeof(until), q->until_ms, utc);
	moment_text(oldest, sizeof(oldest), a->oldest_ms, utc);
	moment_text(newest, sizeof(newest), a->newest_ms, utc);
	int64_t hours = (q->now_ms - a->newest_ms) / 3600000 + 1;
	if (a->oldest_ms < 0)
		err_set(&e, ERR_WORLD,
			"the store has no data yet; the recorder stores the first after one "
			"interval (30 s by default)");
	else if (a->newest_ms > q->now_ms || q->until_ms < q->now_ms)
		err_set(&e, ERR_WORLD,
			"no data between %s and %s; the store has data from %s to %s", since,
			until, oldest, newest);
	else
		err_set(&e, ERR_WORLD,
			"no data between %s and %s; the store has data from %s to %s: try "
			"--since %lld%c",
			since, until, oldest, newest,
			(long long)(hours < 48 ? hours + 1 : hours / 24 + 2),
			hours < 48 ? 'h' : 'd');
	return cmd_fail(self, &e);
}

/* Reports simulated hosts on standard error, because CSV cannot contain it. */
static void note_simulated(const struct report *r)
{
	for (size_t i = 0; i < r->n_hosts; i++)
		if (r->hosts[i].simulated)
			log_notice("%s: simulated data, invented and not measured on a GPU",
				r->hosts[i].hostname);
}

static int print_report(
	const struct command *self, const struct report_options *o, const struct report *r)
{
	struct str out = { 0 };
	if (o->json || (o->format && strcmp(o->format, "json") == 0)) {
		report_json(&out, r);
	} else if (o->format && strcmp(o->format, "csv") == 0) {
		note_simulated(r);
		report_csv(&out, r);
	} else {
		struct report_style style = read_style(o);
		report_text(&out, r, &style);
	}
	return cmd_print(self, &out);
}

/* Checks options that exclude each other, and sets the defaults. */
static int finish_options(struct report_options *o, struct err *e)
{
	bool text = !o->json && (!o->format || strcmp(o->format, "text") == 0);
	if (o->json && o->format && strcmp(o->format, "json") != 0)
		return err_set(
			e, ERR_USAGE, "--json and --format %s exclude each other", o->format);
	if (o->top < 0)
		o->top = text ? 10 : 0;
	return 0;
}

/* Reads the stores and prints their report. */
static int audit_stores(const struct command *self, const struct report_options *o,
	struct audit_question *q, const struct store_list *stores)
{
	struct audit a = { 0 };
	struct report r = { 0 };
	struct err e = { 0 };
	struct report_request request = read_request(o);
	int status;
	q->paths = (const char *const *)stores->paths;
	q->n_paths = stores->n;
	q->utc = o->utc;
	q->want_processes = request.by == REPORT_BY_PROCESS;
	q->max_processes = request.top;
	if (stores->n > 1) /* all are open at the same time */
		file_allow_many();
	if (audit_run(&a, q, &e))
		status = cmd_fail(self, &e);
	else if (a.n_cards == 0)
		status = no_data(self, &a, q, o->utc);
	else {
		report_make(&r, &a, &request);
		status = print_report(self, o, &r);
	}
	report_finish(&r);
	audit_finish(&a);
	return status;
}

/* Reads the window and the stores, and prints the report. */
static int report(const struct command *self, struct report_options *o, const struct config *c)
{
	struct audit_question q = { 0 };
	struct store_list stores = { 0 };
	struct err e = { 0 };
	char currency[64];
	int rc = finish_options(o, &e);
	if (rc == 0)
		rc = read_window(o, &q, &e);
	if (rc == 0)
		rc = choose_db_list(&stores, &o->db, &e);
	if (rc == 0 && o->interval)
		log_notice("--interval is ignored: time is measured, not counted in ticks");
	text_escape(currency, sizeof(currency), c->currency, strlen(c->currency));
	o->currency = currency;
	int status = rc ? cmd_fail(self, &e) : audit_stores(self, o, &q, &stores);
	store_list_finish(&stores);
	return status;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct report_options o = { .cost = NAN, .top = -1, .width = 60 };
	struct configuration conf = { 0 };
	struct command_line line = { .argc = argc, .argv = argv, .given = conf.given };
	int status = 0;
	if (!cmd_line_only(self, &line, &o, &status) &&
		!configure(self, &conf, &o.conf, &o, &status))
		status = report(self, &o, &conf.values);
	configuration_finish(&conf);
	texts_finish(&o.db);
	return status;
}

const struct command cmd_report = {
	.name = "report",
	.summary = "what the cards did, who held them, what was wasted",
	.usage = "[--db PATH]... [--since TIME | --last LENGTH] [--until TIME] [OPTIONS]",
	.details = WINDOW_DETAILS,
	.options = rows,
	.run = run,
};
