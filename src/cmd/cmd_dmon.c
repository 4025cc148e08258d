/* gua dmon: prints counters of cards or processes, line by line. */
#include "cmd/cmd_dmon.h"

#include "cmd/cmd.h"
#include "view/dmon.h"
#include "view/smi.h"

#define AT(field) .offset = offsetof(struct dmon_values, field)

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
	FILTER_ROWS(struct dmon_values, filter, 'u', 0, 'i'),
	LIVE_ROWS(struct dmon_values, live),
	{ 0 },
};

/* Counters, and the processes and cards that they belong to. */
struct monitored {
	struct dmon dmon;
	struct filter filter;
	bool strict; /* a card that is lost at the first look is an error, as in nvidia-smi */
	struct live_lines *lines;
	int64_t every_ms; /* after the first look */
};

static int look(struct live_session *s, void *context, struct str *out, struct err *e)
{
	struct monitored *m = context;
	bool first = m->strict;
	m->strict = false;
	int rc = first ? smi_check_live(s->live, &m->filter, e) : 0;
	m->lines->every_ms = m->every_ms;
	/* nvidia-smi's pmon begins with the use in the last second; here the first look has the
	 * mean of all samples that the driver keeps. */
	if (rc == 0 && first && m->dmon.processes) {
		m->lines->every_ms = 1000;
		return 0;
	}
	return rc ? rc : dmon_look(&m->dmon, s->live, &m->filter, out, e);
}

static int run(const struct call *call, struct err *e)
{
	struct dmon_values *v = call->values;
	struct monitored m = { .strict = call->self->fail != NULL };
	unsigned char wanted[METRIC_COUNT] = { 0 };
	struct live_lines lines = {
		.path = v->file, .count = v->count, .look = look, .context = &m
	};
	m.dmon.processes = v->processes;
	for (const char *at = v->front ? v->front : ""; *at; at++) {
		m.dmon.date |= *at == 'D';
		m.dmon.time |= *at == 'T';
		if (*at != 'D' && *at != 'T')
			return err_set(e, ERR_USAGE,
				"--options accepts the letters D and T, not '%s'", v->front);
	}
	const char *usual = v->processes ? "um" : "puc";
	if ((v->format && dmon_format(&m.dmon, v->format, e)) ||
		dmon_select(&m.dmon, v->select ? v->select : usual, e))
		return e->code;
	if (cmd_live_seconds(v->delay ? v->delay : "1", &lines.every_ms, e))
		return err_prefix(e, "--delay");
	if (filter_init(&m.filter, &v->filter, e))
		return e->code;
	m.filter.by_index = true;
	m.dmon.as_smi = m.strict;
	m.lines = &lines;
	m.every_ms = lines.every_ms;
	if (m.strict && v->processes && v->count)
		lines.count++;
	dmon_wanted(&m.dmon, wanted);
	v->live.o.cards_only = !v->processes && !filter_has_process(&m.filter);
	int rc = cmd_live_print(&cmd_dmon, &v->live, wanted, &lines, e);
	dmon_finish(&m.dmon);
	return rc;
}

const struct command cmd_dmon = {
	.name = "dmon",
	.summary = "print counters of cards, or with -p of processes, line by line",
	.usage = "[-p] [-s GROUPS] [-d SECONDS] [-c N] [-i CARD] [-o DT]",
	.options = options,
	.values_size = sizeof(struct dmon_values),
	.run = run,
};
