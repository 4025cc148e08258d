/* Prints counters of cards and processes in columns. */
#include "view/dmon.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/moment.h"
#include "render/rows.h"
#include "view/format.h"
#include "view/stat.h"

enum { HEADER_EVERY = 24, CELL_CAP = 32 };

/* How the value of a column is computed from its metric. */
enum how {
	PLAIN,	 /* the value */
	SHARE,	 /* increase in nanoseconds, as percent of the time */
	WHETHER, /* 1 if the value has increased, else 0 */
	RATE,	 /* increase in bytes, as MB per second */
};

/* ccpm is memory of confidential computing. */
static const struct column_row {
	char group;
	const char *title, *unit;
	enum metric metric;
	double scale; /* the value is divided by this */
	enum how how;
} columns[] = {
	{ 'p', "pwr", "W", METRIC_POWER_DRAW, 1, PLAIN },
	{ 'p', "gtemp", "C", METRIC_TEMPERATURE_GPU, 1, PLAIN },
	{ 'p', "mtemp", "C", METRIC_TEMPERATURE_MEMORY, 1, PLAIN },
	{ 'u', "sm", "%", METRIC_UTILIZATION_GPU, 1, PLAIN },
	{ 'u', "mem", "%", METRIC_UTILIZATION_MEMORY, 1, PLAIN },
	{ 'u', "enc", "%", METRIC_UTILIZATION_ENCODER, 1, PLAIN },
	{ 'u', "dec", "%", METRIC_UTILIZATION_DECODER, 1, PLAIN },
	{ 'u', "jpg", "%", METRIC_UTILIZATION_JPEG, 1, PLAIN },
	{ 'u', "ofa", "%", METRIC_UTILIZATION_OFA, 1, PLAIN },
	{ 'c', "mclk", "MHz", METRIC_CLOCK_MEMORY, 1, PLAIN },
	{ 'c', "pclk", "MHz", METRIC_CLOCK_SM, 1, PLAIN },
	{ 'v', "pviol", "%", METRIC_POWER_VIOLATION, 1, SHARE },
	{ 'v', "tviol", "bool", METRIC_THERMAL_VIOLATION, 1, WHETHER },
	{ 'm', "fb", "MB", METRIC_MEMORY_USED, 1048576, PLAIN },
	{ 'm', "bar1", "MB", METRIC_BAR1_USED, 1048576, PLAIN },
	{ 'm', "ccpm", "MB", METRIC_PROTECTED_USED, 1048576, PLAIN },
	{ 'e', "sbecc", "errs", METRIC_ECC_CORRECTED_AGGREGATE, 1, PLAIN },
	{ 'e', "dbecc", "errs", METRIC_ECC_UNCORRECTED_AGGREGATE, 1, PLAIN },
	{ 'e', "pci", "errs", METRIC_PCIE_REPLAYS, 1, PLAIN },
	{ 't', "rxpci", "MB/s", METRIC_PCIE_RX, 1e6, RATE },
	{ 't', "txpci", "MB/s", METRIC_PCIE_TX, 1e6, RATE },
};
enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

/* The source of a process column; smaller values are an enum engine. */
enum process_from { FROM_SM = ENGINE_COUNT, FROM_MEMORY, FROM_NOWHERE };

/* Columns of a process: first those of utilisation, then those of memory. */
static const struct process_column {
	char group;
	const char *title, *unit;
	int from; /* enum engine or process_from */
} process_columns[] = {
	{ 'u', "sm", "%", FROM_SM },
	{ 'u', "mem", "%", ENGINE_MEMORY },
	{ 'u', "enc", "%", ENGINE_ENCODER },
	{ 'u', "dec", "%", ENGINE_DECODER },
	{ 'u', "jpg", "%", ENGINE_JPEG },
	{ 'u', "ofa", "%", ENGINE_FLOW },
	{ 'm', "fb", "MB", FROM_MEMORY },
	{ 'm', "ccpm", "MB", FROM_NOWHERE },
};
enum { PROCESS_COLUMNS = sizeof(process_columns) / sizeof(process_columns[0]) };

_Static_assert((int)COLUMNS <= DMON_COLUMNS_MAX && (int)PROCESS_COLUMNS <= DMON_COLUMNS_MAX,
	"the columns have room");

void dmon_groups(struct str *out)
{
	for (size_t i = 0; i < COLUMNS; i++)
		if (i == 0 || columns[i].group != columns[i - 1].group)
			str_addf(out, "%c ", columns[i].group);
}

int dmon_select(struct dmon *d, const char *groups, struct err *e)
{
	const char *known = d->processes ? "um" : "pucvmet";
	size_t n = d->processes ? (size_t)PROCESS_COLUMNS : (size_t)COLUMNS;
	if (groups[strspn(groups, known)] || !*groups)
		return err_set(
			e, ERR_USAGE, "--select takes letters of %s, not '%s'", known, groups);
	d->n_columns = 0;
	for (const char *at = groups; *at; at++)
		for (size_t i = 0; i < n; i++) {
			char group = d->processes ? process_columns[i].group : columns[i].group;
			if (group == *at && strchr(groups, *at) == at)
				d->columns[d->n_columns++] = (unsigned char)i;
		}
	return 0;
}

static const struct format_word format_words[] = {
	{ "csv", offsetof(struct dmon, csv) },
	{ "noheader", offsetof(struct dmon, no_header) },
	{ "nounit", offsetof(struct dmon, no_units) },
	{ 0 },
};

void dmon_formats(struct str *out)
{
	format_list(format_words, out);
}

int dmon_format(struct dmon *d, const char *text, struct err *e)
{
	if (!format_take(format_words, d, text))
		return err_set(
			e, ERR_USAGE, "--format takes csv[,noheader][,nounit], not '%s'", text);
	return d->csv ? 0 : err_set(e, ERR_USAGE, "--format wants csv");
}

void dmon_wanted(const struct dmon *d, unsigned char *wanted)
{
	for (size_t i = 0; !d->processes && i < d->n_columns; i++)
		wanted[columns[d->columns[i]].metric] = 1;
}

void dmon_finish(struct dmon *d)
{
	free(d->before);
	d->before = NULL;
	d->n_before = 0;
}

/* Appends a cell. In column format, `lead` and `width` (negative: left-aligned) set its
 * layout. */
static void add_cell(
	struct dmon *d, struct str *out, const char *lead, int width, const char *text)
{
	if (d->csv)
		str_addf(out, "%s%s", d->cells ? ", " : "", text);
	else
		str_addf(out, "%s%*s", lead, width, text);
	d->cells++;
}

/* One of the two header lines: titles, or units. */
static void add_header_line(struct dmon *d, bool units, struct str *out)
{
	d->cells = 0;
	str_add(out, "#");
	if (d->date)
		add_cell(d, out, "", -12, units ? "YYYYMMDD" : "Date");
	if (d->time)
		add_cell(d, out, "", -12, units ? "HH:MM:SS" : "Time");
	add_cell(d, out, "", 4, units ? "Idx" : "gpu");
	if (d->processes) {
		add_cell(d, out, " ", 11, units ? "#" : "pid");
		add_cell(d, out, " ", 6, units ? "C/G" : "type");
	}
	for (size_t i = 0; i < d->n_columns; i++) {
		size_t at = d->columns[i];
		const char *unit = d->processes ? process_columns[at].unit : columns[at].unit;
		const char *title =
			d->processes ? process_columns[at].title : columns[at].title;
		add_cell(d, out, " ", 6, units ? unit : title);
	}
	if (d->processes)
		add_cell(d, out, "    ", 0, units ? "name" : "command");
	str_add(out, "\n");
}

/* Adds the header if it is due: in column format repeatedly, in CSV once. */
static void add_header(struct dmon *d, struct str *out)
{
	bool again = !d->csv && d->since_header >= HEADER_EVERY;
	if (d->no_header || (d->has_header && !again))
		return;
	add_header_line(d, false, out);
	if (!d->no_units)
		add_header_line(d, true, out);
	d->has_header = true;
	d->since_header = 0;
}

static void begin_line(struct dmon *d, int64_t now_ms, int index, struct str *out)
{
	struct tm tm = moment_fields(now_ms, false);
	char text[CELL_CAP];
	d->since_header++;
	d->cells = 0;
	str_add(out, d->csv ? "" : " ");
	if (d->date) {
		strftime(text, sizeof(text), "%Y%m%d", &tm);
		add_cell(d, out, "", -12, text);
	}
	if (d->time) {
		strftime(text, sizeof(text), "%H:%M:%S", &tm);
		add_cell(d, out, "", -12, text);
	}
	snprintf(text, sizeof(text), "%d", index);
	add_cell(d, out, "", 4, text);
}

static void add_number(struct dmon *d, struct str *out, double value)
{
	char text[CELL_CAP] = "-";
	if (!isnan(value))
		snprintf(text, sizeof(text), "%.0f", floor(value));
	add_cell(d, out, " ", 6, text);
}

/* The column's value now. NAN also if it needs a previous look and there was none. */
static double column_value(const struct column_row *c, const double *values,
	const struct dmon_before *before, int64_t now_ms)
{
	double value = values[c->metric], grown = value - before->counters[c->metric];
	double ms = (double)(now_ms - before->at_ms);
	if (c->how == PLAIN)
		return value / c->scale;
	/* A counter that went down was reset. */
	if (!before->at_ms || ms <= 0 || isnan(grown) || grown < 0)
		return NAN;
	if (c->how == SHARE)
		return fmin(grown / (ms * 1e6) * 100, 100);
	if (c->how == WHETHER)
		return grown > 0;
	return grown / c->scale * 1000 / ms;
}

static void add_board(struct dmon *d, int64_t now_ms, const struct present_board *b,
	struct dmon_before *before, struct str *out)
{
	begin_line(d, now_ms, b->id.index, out);
	for (size_t i = 0; i < d->n_columns; i++)
		add_number(d, out,
			column_value(&columns[d->columns[i]], b->values, before, now_ms));
	str_add(out, "\n");
	memcpy(before->counters, b->values, sizeof(before->counters));
	before->at_ms = now_ms;
}

static double process_value(
	const struct dmon *d, const struct process_column *c, const struct present_process *p)
{
	if (!p || c->from == FROM_NOWHERE)
		return NAN;
	if (c->from == FROM_MEMORY)
		return p->mem_bytes < 0 ? NAN : (double)(p->mem_bytes >> 20);
	double use = c->from == FROM_SM ? p->sm_pct : p->engine_pct[c->from];
	return d->as_smi && use < 1 ? NAN : use;
}

/* Drops the columns that nvidia-smi of an old driver does not have. */
static void drop_columns(struct dmon *d, const char *driver)
{
	enum { FIRST_WITH_ENGINES = 550 }; /* JPEG and optical flow of a process */
	size_t n = 0;
	int major = atoi(driver);
	if (!d->as_smi || !d->processes || !major || major >= FIRST_WITH_ENGINES)
		return;
	for (size_t i = 0; i < d->n_columns; i++) {
		int from = process_columns[d->columns[i]].from;
		if (from != ENGINE_JPEG && from != ENGINE_FLOW)
			d->columns[n++] = d->columns[i];
	}
	d->n_columns = n;
}

static void add_process(struct dmon *d, int64_t now_ms, const struct present_card *c,
	const struct present_process *p, struct str *out)
{
	char command[COMMAND_CAP] = "", kind[CELL_CAP] = "-", pid[CELL_CAP] = "-";
	begin_line(d, now_ms, c->id.index, out);
	if (p) {
		snprintf(kind, sizeof(kind), "%s%s%s", p->kind & PROCESS_MPS ? "M+" : "",
			p->kind & PROCESS_COMPUTE ? "C" : "",
			!(p->kind & PROCESS_GRAPHICS) ? ""
			: p->kind & PROCESS_COMPUTE   ? "+G"
						      : "G");
		stat_command(command, sizeof(command), p);
		snprintf(pid, sizeof(pid), "%u", p->id.pid);
	}
	add_cell(d, out, " ", 11, pid);
	add_cell(d, out, " ", 6, kind);
	for (size_t i = 0; i < d->n_columns; i++)
		add_number(d, out, process_value(d, &process_columns[d->columns[i]], p));
	/* A process chooses its name, so in CSV it is quoted. */
	struct str quoted = { 0 };
	if (d->csv && command[0])
		rows_text(&quoted, command);
	out->failed |= quoted.failed;
	const char *text = quoted.len ? str_text(&quoted) : command;
	add_cell(d, out, "    ", 0, text[0] ? text : "-");
	str_finish(&quoted);
	str_add(out, "\n");
}

/* Adds the processes of a card that match the filter; returns how many. */
static size_t add_processes(struct dmon *d, const struct stat_pick *picked,
	const struct present_card *c, struct str *out)
{
	size_t shown = 0;
	const struct present_process *all = picked->now->processes;
	for (size_t k = 0; k < c->n_processes; k++) {
		const struct present_process *p = &all[c->first_process + k];
		if (!filter_process(picked->filter, p))
			continue;
		add_process(d, picked->now->now_ms, c, p, out);
		shown++;
	}
	return shown;
}

/* Adds the processes of all picked instances of a board, or one line that says that there are
 * none. */
static void add_board_processes(
	struct dmon *d, const struct stat_pick *picked, size_t first, struct str *out)
{
	size_t shown = 0;
	const struct present_card *cards = picked->now->cards;
	const struct present_card *c = &cards[picked->cards[first]];
	for (size_t i = first; i < picked->n; i++)
		if (cards[picked->cards[i]].board == c->board)
			shown += add_processes(d, picked, &cards[picked->cards[i]], out);
	if (shown == 0 && !filter_has_process(picked->filter))
		add_process(d, picked->now->now_ms, c, NULL, out);
}

static bool reserve(struct dmon *d, size_t n)
{
	if (n <= d->n_before)
		return true;
	if (!array_resize(&d->before, n))
		return false;
	memset(d->before + d->n_before, 0, (n - d->n_before) * sizeof(*d->before));
	d->n_before = n;
	return true;
}

int dmon_look(
	struct dmon *d, struct live *l, const struct filter *f, struct str *out, struct err *e)
{
	struct stat_pick picked = { 0 };
	if (!reserve(d, live_present(l)->n_boards))
		return err_memory(e);
	int rc = stat_pick(&picked, l, f, e);
	drop_columns(d, live_present(l)->hosts[0].driver);
	if (rc == 0)
		add_header(d, out);
	for (size_t i = 0; rc == 0 && i < picked.n; i++) {
		size_t board = picked.now->cards[picked.cards[i]].board;
		if (!stat_pick_is_first(&picked, i))
			continue;
		if (d->processes)
			add_board_processes(d, &picked, i, out);
		else
			add_board(d, picked.now->now_ms, &picked.now->boards[board],
				&d->before[board], out);
	}
	stat_pick_finish(&picked);
	return rc;
}
