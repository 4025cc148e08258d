/* gua dmon: prints counters of cards or processes, line by line. */
#include "cmd/cmd.h"
#include "cmd/share/line_output.h"
#include "cmd/share/cmd_live.h"
#include "view/dmon.h"

struct values {
	struct live_values live;
	struct filter_values filter;
	const char *select, *delay, *front, *format, *file;
	int64_t count;
	bool processes;
};

#define AT(field) .offset = offsetof(struct values, field)

static const struct option_row options[] = {
	{ OPTION_TEXT, 's', "select", "GROUPS",
		"p power, u use, c clocks, v violations, m memory, e errors, t PCIe (default "
		"puc; with -p: um)",
		AT(select), .words = dmon_groups },
	{ OPTION_TEXT, 'd', "delay", "SECONDS", "time between two readings (default 1)",
		AT(delay) },
	{ OPTION_COUNT, 'c', "count", "N", "stop after N readings", AT(count), .min = 1 },
	{ OPTION_TEXT, 'o', "options", "LETTERS",
		"start each line with the date (D) or time (T)", .choices = "D|T", AT(front) },
	{ OPTION_TEXT, 0, "format", "FORMAT,...", "csv[,noheader][,nounit] instead of columns",
		AT(format), .words = dmon_formats },
	{ OPTION_FLAG, 'p', "processes", .help = "processes instead of cards", AT(processes) },
	{ OPTION_TEXT, 'f', "filename", "FILE", "write to FILE instead of standard output",
		AT(file) },
	FILTER_ROWS(struct values, filter, 'u', 0, 'i'),
	LIVE_ROWS(struct values, live),
	{ 0 },
};

static int read_options(
	const struct values *v, struct dmon *d, int64_t *every_ms, struct err *e)
{
	const char *usual = v->processes ? "um" : "puc";
	*d = (struct dmon){ .processes = v->processes };
	for (const char *at = v->front ? v->front : ""; *at; at++) {
		d->date |= *at == 'D';
		d->time |= *at == 'T';
		if (*at != 'D' && *at != 'T')
			return err_set(e, ERR_USAGE,
				"--options accepts the letters D and T, not '%s'", v->front);
	}
	int rc = v->format ? dmon_format(d, v->format, e) : 0;
	if (rc == 0)
		rc = dmon_select(d, v->select ? v->select : usual, e);
	if (rc == 0 && cmd_live_seconds(v->delay ? v->delay : "1", every_ms, e) != 0)
		rc = err_prefix(e, "--delay");
	return rc;
}

static int look(struct live_session *s, struct dmon *d, const struct filter *f,
	struct line_output *o, struct err *e)
{
	struct str out = { 0 };
	int64_t looks = 0;
	int rc;
	do {
		rc = cmd_live_refresh(s, e);
		if (rc == 0)
			rc = dmon_look(d, s->live, f, &out, e);
		if (rc == 0)
			rc = line_output_write(o, &out, e);
		looks++;
	} while ((o->count == 0 || looks < o->count) &&
		 cmd_live_again(s, &cmd_dmon, &rc, e, o->every_ms));
	str_finish(&out);
	return rc;
}

static int monitor(const struct values *v, struct err *e)
{
	struct dmon d;
	struct filter f;
	static struct live_session s; /* a thread that hangs may still use its clock */
	struct line_output o = { .path = v->file, .count = v->count };
	unsigned char wanted[METRIC_COUNT] = { 0 };
	int rc = read_options(v, &d, &o.every_ms, e);
	if (rc == 0)
		rc = filter_init(&f, &v->filter, e);
	if (rc)
		return rc;
	dmon_wanted(&d, wanted);
	struct live_values live = v->live;
	live.cards_only = !v->processes && !filter_has_process(&f);
	rc = cmd_live_open(&s, &live, wanted, e);
	if (rc)
		return rc;
	rc = line_output_open(&o, e);
	if (rc == 0)
		rc = look(&s, &d, &f, &o, e);
	rc = line_output_close(&o, rc, e);
	dmon_finish(&d);
	cmd_live_close(&s);
	return rc;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct values v = { 0 };
	struct err e = { 0 };
	int status = 0;
	if (cmd_options_only(self, argc, argv, &v, &status))
		return status;
	return monitor(&v, &e) ? cmd_fail(self, &e) : 0;
}

const struct command cmd_dmon = {
	.name = "dmon",
	.summary = "print counters of cards, or with -p of processes, line by line",
	.usage = "[-p] [-s GROUPS] [-d SECONDS] [-c N] [-i CARD] [-o DT]",
	.options = options,
	.run = run,
};
