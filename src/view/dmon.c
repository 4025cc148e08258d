/* Prints counters of cards and processes in columns. */
#include "view/dmon.h"

#include "render/rows.h"
#include "view/format.h"
#include "view/smi.h"

enum { HEADER_EVERY = 24 };

/* How the value of a column is computed from its metric. */
enum how {
	PLAIN,	    /* the value */
	SHARE,	    /* increase in nanoseconds, as percent of the time */
	WHETHER,    /* 1 if the value has increased, else 0 */
	RATE,	    /* increase in bytes, as MB per second */
	OF_PROCESS, /* the value; `from` is an enum engine or process_from */
};

/* The source of a process column; smaller values are an enum engine. */
enum process_from { FROM_SM = ENGINE_COUNT, FROM_MEMORY, FROM_NOWHERE };

/* The columns of cards, then those of processes. ccpm is memory of confidential computing. */
static const struct column_row {
	char group;
	const char *title, *unit;
	int from;     /* enum metric; of a process: enum engine or process_from */
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
	{ 'u', "sm", "%", FROM_SM, 1, OF_PROCESS },
	{ 'u', "mem", "%", ENGINE_MEMORY, 1, OF_PROCESS },
	{ 'u', "enc", "%", ENGINE_ENCODER, 1, OF_PROCESS },
	{ 'u', "dec", "%", ENGINE_DECODER, 1, OF_PROCESS },
	{ 'u', "jpg", "%", ENGINE_JPEG, 1, OF_PROCESS },
	{ 'u', "ofa", "%", ENGINE_FLOW, 1, OF_PROCESS },
	{ 'm', "fb", "MB", FROM_MEMORY, 1, OF_PROCESS },
	{ 'm', "ccpm", "MB", FROM_NOWHERE, 1, OF_PROCESS },
};
enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

_Static_assert((int)COLUMNS <= DMON_COLUMNS_MAX, "the columns have room");

void dmon_groups(struct str *out)
{
	for (size_t i = 0; columns[i].how != OF_PROCESS; i++)
		if (i == 0 || columns[i].group != columns[i - 1].group)
			str_addf(out, "%c ", columns[i].group);
}

int dmon_select(struct dmon *d, const char *groups, struct err *e)
{
	const char *known = d->processes ? "um" : "pucvmet";
	if (groups[strspn(groups, known)] || !*groups)
		return err_set(
			e, ERR_USAGE, "--select takes letters of %s, not '%s'", known, groups);
	d->n_columns = 0;
	for (const char *at = groups; *at; at++)
		for (size_t i = 0; i < COLUMNS; i++)
			if ((columns[i].how == OF_PROCESS) == d->processes &&
				columns[i].group == *at && strchr(groups, *at) == at)
				d->columns[d->n_columns++] = (unsigned char)i;
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
		wanted[columns[d->columns[i]].from] = 1;
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
		const struct column_row *c = &columns[d->columns[i]];
		add_cell(d, out, " ", 6, units ? c->unit : c->title);
	}
	if (d->processes)
		add_cell(d, out, "    ", 0, units ? "name" : "command");
	str_add(out, "\n");
}

static void begin_line(struct dmon *d, int64_t now_ms, int index, struct str *out)
{
	d->since_header++;
	d->cells = 0;
	str_add(out, d->csv ? "" : " ");
	if (d->date)
		add_cell(d, out, "", -12, moment_format("%Y%m%d", now_ms, false).text);
	if (d->time)
		add_cell(d, out, "", -12, moment_format("%H:%M:%S", now_ms, false).text);
	add_cell(d, out, "", 4, str_brief("%d", index).text);
}

static void add_number(struct dmon *d, struct str *out, double value)
{
	add_cell(d, out, " ", 6, isnan(value) ? "-" : str_brief("%.0f", floor(value)).text);
}

static void add_board(struct dmon *d, int64_t now_ms, const struct present_board *b,
	struct dmon_before *before, struct str *out)
{
	double ms = before->at_ms ? (double)(now_ms - before->at_ms) : 0;
	begin_line(d, now_ms, b->id.index, out);
	for (size_t i = 0; i < d->n_columns; i++) {
		const struct column_row *c = &columns[d->columns[i]];
		double value = b->values[c->from], grown = value - before->counters[c->from];
		if (c->how == PLAIN)
			value /= c->scale;
		/* Without a previous look there is no difference; a counter that went down was
		 * reset. */
		else if (ms <= 0 || isnan(grown) || grown < 0)
			value = NAN;
		else if (c->how == SHARE)
			value = fmin(grown / (ms * 1e6) * 100, 100);
		else
			value = c->how == WHETHER ? grown > 0 : grown / c->scale * 1000 / ms;
		add_number(d, out, value);
	}
	str_add(out, "\n");
	memcpy(before->counters, b->values, sizeof(before->counters));
	before->at_ms = now_ms;
}

/* `p` NULL: a line without a process. */
static void add_process(struct dmon *d, int64_t now_ms, const struct present_card *c,
	const struct present_process *p, struct str *out)
{
	char command[COMMAND_CAP] = "";
	begin_line(d, now_ms, c->id.index, out);
	add_cell(d, out, " ", 11, p ? str_brief("%u", p->id.pid).text : "-");
	add_cell(d, out, " ", 6, p ? smi_type(p).text : "-");
	for (size_t i = 0; i < d->n_columns; i++) {
		int from = columns[d->columns[i]].from;
		double value = NAN;
		if (p && from == FROM_MEMORY)
			value = p->mem_bytes < 0 ? NAN : (double)(p->mem_bytes >> 20);
		else if (p && from != FROM_NOWHERE)
			value = from == FROM_SM ? p->sm_pct : p->engine_pct[from];
		add_number(d, out, d->as_smi && from != FROM_MEMORY && value < 1 ? NAN : value);
	}
	/* A process chooses its name, so in CSV it is quoted. */
	struct str quoted = { 0 };
	if (p)
		stat_command(command, sizeof(command), p);
	if (d->csv && command[0])
		rows_text(&quoted, command);
	out->failed |= quoted.failed;
	const char *text = quoted.len ? str_text(&quoted) : command;
	add_cell(d, out, "    ", 0, text[0] ? text : "-");
	str_finish(&quoted);
	str_add(out, "\n");
}

/* Adds the processes of all picked instances of a board, or one line that says that there are
 * none. */
static void add_board_processes(struct dmon *d, const struct stat_pick *picked,
	const struct present_board *b, struct str *out)
{
	bool any = false;
	size_t at = 0;
	int64_t now_ms = picked->now->now_ms;
	const struct present_card *first = stat_next_card(picked, b, &at);
	for (const struct present_card *c = first; c; c = stat_next_card(picked, b, &at)) {
		const struct present_process *all = &picked->now->processes[c->first_process];
		for (size_t k = 0; k < c->n_processes; k++) {
			if (!filter_process(picked->filter, &all[k]))
				continue;
			add_process(d, now_ms, c, &all[k], out);
			any = true;
		}
	}
	if (!any && !filter_has_process(picked->filter))
		add_process(d, now_ms, first, NULL, out);
}

int dmon_look(
	struct dmon *d, struct live *l, const struct filter *f, struct str *out, struct err *e)
{
	struct stat_pick picked = { 0 };
	const struct present *now = live_present(l);
	if (now->n_boards > d->n_before) {
		if (!array_resize(&d->before, now->n_boards))
			return err_memory(e);
		memset(d->before + d->n_before, 0,
			(now->n_boards - d->n_before) * sizeof(*d->before));
		d->n_before = now->n_boards;
	}
	int rc = stat_pick(&picked, l, f, e);
	/* nvidia-smi of an old driver does not have all columns. */
	enum { FIRST_WITH_ENGINES = 550 }; /* JPEG and optical flow of a process */
	size_t n = 0;
	int major = atoi(now->hosts[0].driver);
	if (d->as_smi && d->processes && major && major < FIRST_WITH_ENGINES) {
		for (size_t i = 0; i < d->n_columns; i++) {
			int from = columns[d->columns[i]].from;
			if (from != ENGINE_JPEG && from != ENGINE_FLOW)
				d->columns[n++] = d->columns[i];
		}
		d->n_columns = n;
	}
	/* The header: in column format repeatedly, in CSV once. */
	if (rc == 0 && !d->no_header &&
		(!d->has_header || (!d->csv && d->since_header >= HEADER_EVERY))) {
		add_header_line(d, false, out);
		if (!d->no_units)
			add_header_line(d, true, out);
		d->has_header = true;
		d->since_header = 0;
	}
	for (size_t i = 0; rc == 0 && i < picked.n_boards; i++) {
		const struct present_board *b = picked.boards[i];
		if (d->processes)
			add_board_processes(d, &picked, b, out);
		else
			add_board(d, now->now_ms, b, &d->before[b - now->boards], out);
	}
	stat_pick_finish(&picked);
	return rc;
}
