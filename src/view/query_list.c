/* Prints what nvidia-smi lists besides cards and compute processes: the processes that
 * accounting mode knows, retired memory pages, remapped memory rows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "render/rows.h"
#include "view/query.h"
#include "view/stat.h"

enum { CELL_CAP = 160, PAGES_MOST = 4096 };

/* Where a cell comes from. */
enum origin { OF_CARD, UNKNOWN, PID, GPU_USE, MEMORY_USE, PEAK, LENGTH, CAUSE };

enum {
	ACCOUNTED = 1 << QUERY_ACCOUNTED,
	RETIRED = 1 << QUERY_RETIRED,
	REMAPPED = 1 << QUERY_REMAPPED,
	ANY = ACCOUNTED | RETIRED | REMAPPED,
};

static const struct list_field {
	unsigned lists; /* bits: which lists have it */
	const char *name, *synonym, *unit;
	enum origin origin;
	enum metric metric; /* OF_CARD */
	const char *help;
} fields[] = {
	{ ANY, "timestamp", "", "", OF_CARD, METRIC_TIMESTAMP,
		"When the line was made, in local time." },
	{ ANY, "gpu_name", "", "", OF_CARD, METRIC_NAME, "The card's product name." },
	{ ANY, "gpu_bus_id", "", "", OF_CARD, METRIC_PCI_BUS_ID, "The card's PCI address." },
	{ ANY, "gpu_serial", "", "", OF_CARD, METRIC_SERIAL, "The card's serial number." },
	{ ANY, "gpu_uuid", "", "", OF_CARD, METRIC_UUID, "The card's unique identity." },
	{ ACCOUNTED, "vgpu_instance", "", "", UNKNOWN, 0, "gua does not read it." },
	{ ACCOUNTED, "pid", "", "", PID, 0, "The process id." },
	{ ACCOUNTED, "gpu_utilization", "gpu_util", "%", GPU_USE, 0,
		"Mean use of the card while the process was on it." },
	{ ACCOUNTED, "mem_utilization", "mem_util", "%", MEMORY_USE, 0,
		"Mean share of the time in which memory was read or written." },
	{ ACCOUNTED, "max_memory_usage", "", "MiB", PEAK, 0,
		"Most memory that the process had on the card." },
	{ ACCOUNTED, "time", "", "ms", LENGTH, 0,
		"How long the process was on the card; 0 while it is." },
	{ RETIRED, "retired_pages.address", "", "", UNKNOWN, 0, "gua does not read it." },
	{ RETIRED, "retired_pages.timestamp", "", "", UNKNOWN, 0, "gua does not read it." },
	{ RETIRED, "retired_pages.cause", "", "", CAUSE, 0,
		"Single Bit ECC or Double Bit ECC." },
	{ REMAPPED, "remapped_rows.correctable", "remapped_rows.sbe", "", OF_CARD,
		METRIC_REMAPPED_CORRECTABLE, "Memory rows replaced for corrected errors." },
	{ REMAPPED, "remapped_rows.uncorrectable", "remapped_rows.dbe", "", OF_CARD,
		METRIC_REMAPPED_UNCORRECTABLE,
		"Memory rows replaced for errors that could not be corrected." },
	{ REMAPPED, "remapped_rows.pending", "", "", OF_CARD, METRIC_REMAPPED_PENDING,
		"Whether rows will be replaced at a restart." },
	{ REMAPPED, "remapped_rows.failure", "", "", OF_CARD, METRIC_REMAPPED_FAILURE,
		"Whether replacing a row has failed." },
	{ REMAPPED, "remapped_rows.histogram.max", "", "", OF_CARD, METRIC_ROWS_MAX,
		"Memory banks with all their spare rows left." },
	{ REMAPPED, "remapped_rows.histogram.high", "", "", OF_CARD, METRIC_ROWS_HIGH,
		"Memory banks with most of their spare rows left." },
	{ REMAPPED, "remapped_rows.histogram.partial", "", "", OF_CARD, METRIC_ROWS_PARTIAL,
		"Memory banks with some of their spare rows left." },
	{ REMAPPED, "remapped_rows.histogram.low", "", "", OF_CARD, METRIC_ROWS_LOW,
		"Memory banks with few spare rows left." },
	{ REMAPPED, "remapped_rows.histogram.none", "", "", OF_CARD, METRIC_ROWS_NONE,
		"Memory banks with no spare row left." },
};
enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

static const char *const list_names[] = { [QUERY_ACCOUNTED] = "accounted-apps",
	[QUERY_RETIRED] = "retired-pages",
	[QUERY_REMAPPED] = "remapped-rows" };

const char *query_list_title(enum query_list list)
{
	return list_names[list];
}

int query_list_find(enum query_list list, const char *name, size_t len)
{
	for (int i = 0; i < (int)FIELDS; i++) {
		const char *const names[] = { fields[i].name, fields[i].synonym };
		for (size_t k = 0; k < 2 && fields[i].lists & 1u << list; k++)
			if (strlen(names[k]) == len && strncasecmp(names[k], name, len) == 0)
				return i;
	}
	return -1;
}

const char *query_list_name(int field)
{
	return fields[field].name;
}

const char *query_list_unit(int field)
{
	return fields[field].unit;
}

static void add_words(enum query_list list, struct str *out)
{
	for (int i = 0; i < (int)FIELDS; i++)
		if (fields[i].lists & 1u << list)
			str_addf(out, "%s %s%s", fields[i].name, fields[i].synonym,
				*fields[i].synonym ? " " : "");
}

void query_list_accounted_fields(struct str *out)
{
	add_words(QUERY_ACCOUNTED, out);
}

void query_list_retired_fields(struct str *out)
{
	add_words(QUERY_RETIRED, out);
}

void query_list_remapped_fields(struct str *out)
{
	add_words(QUERY_REMAPPED, out);
}

void query_list_help(enum query_list list, struct str *out)
{
	str_addf(out, "Fields of --query-%s:\n", list_names[list]);
	for (int i = 0; i < (int)FIELDS; i++) {
		if (!(fields[i].lists & 1u << list))
			continue;
		str_addf(out, "\n\"%s\"", fields[i].name);
		if (*fields[i].synonym)
			str_addf(out, " or \"%s\"", fields[i].synonym);
		str_addf(out, "\n    %s\n", fields[i].help);
	}
}

void query_list_wanted(const struct query *q, unsigned char *wanted)
{
	for (size_t i = 0; i < q->n; i++)
		if (fields[q->fields[i]].origin == OF_CARD)
			wanted[fields[q->fields[i]].metric] = 1;
	if (q->list == QUERY_RETIRED)
		wanted[METRIC_RETIRED_SBE] = wanted[METRIC_RETIRED_DBE] = 1;
}

/* One line: a card, and a process or a page of it. */
struct list_row {
	const struct present *now;
	const struct present_board *board;
	const struct process_account *account; /* NULL: the row is not about a process */
	const char *cause;
};

/* The text of a cell by its origin; "" if unknown. */
static void show_cell(
	char *dst, size_t cap, const struct list_field *field, const struct list_row *r)
{
	const struct process_account *a = r->account;
	const double numbers[] = { [PID] = a ? (double)a->pid : NAN,
		[GPU_USE] = a ? a->gpu_pct : NAN,
		[MEMORY_USE] = a ? a->memory_pct : NAN,
		[PEAK] = a && a->mem_peak_bytes >= 0 ? (double)(a->mem_peak_bytes >> 20) : NAN,
		[LENGTH] = a ? (double)a->time_ms : NAN };
	dst[0] = '\0';
	if (field->origin == OF_CARD)
		query_board_text(dst, cap, field->metric, r->now, r->board);
	else if (field->origin == CAUSE)
		str_copy(dst, cap, r->cause);
	else if (field->origin != UNKNOWN && !isnan(numbers[field->origin]))
		snprintf(dst, cap, "%.0f", numbers[field->origin]);
}

static void add_row(const struct query_answer *to, const struct list_row *r)
{
	const struct query *q = to->query;
	if (to->json)
		json_open(to->json, NULL, '{');
	for (size_t i = 0; i < q->n; i++) {
		const struct list_field *field = &fields[q->fields[i]];
		char text[CELL_CAP];
		show_cell(text, sizeof(text), field, r);
		if (to->json) {
			json_text(to->json, field->name, *text ? text : NULL);
			continue;
		}
		str_add(to->out, i ? ", " : "");
		rows_text(to->out, *text ? text : "[N/A]");
		if (*text && *field->unit && !q->no_units)
			str_addf(to->out, " %s", field->unit);
	}
	if (to->json)
		json_close(to->json, '}');
	else
		str_add(to->out, "\n");
}

/* A line for each page; one line if the card does not count them. */
static void add_pages(const struct query_answer *to, struct list_row *r)
{
	static const struct {
		enum metric count;
		const char *cause;
	} kinds[] = { { METRIC_RETIRED_SBE, "Single Bit ECC" },
		{ METRIC_RETIRED_DBE, "Double Bit ECC" } };
	for (size_t k = 0; k < 2; k++) {
		double count = r->board->values[kinds[k].count];
		r->cause = kinds[k].cause;
		for (int i = 0; i < (isnan(count) ? 1 : fmin(count, PAGES_MOST)); i++)
			add_row(to, r);
	}
}

static void add_accounts(const struct query_answer *to, struct list_row *r)
{
	const struct present *now = r->now;
	for (size_t i = 0; i < now->n_accounts; i++) {
		size_t card = now->accounts[i].card;
		if (card >= now->n_cards || &now->boards[now->cards[card].board] != r->board)
			continue;
		r->account = &now->accounts[i].record;
		add_row(to, r);
	}
}

int query_list_look(const struct query_answer *to, struct err *e)
{
	struct stat_boards boards = { 0 };
	int rc = stat_boards(&boards, to->live, to->filter, e);
	for (size_t i = 0; rc == 0 && i < boards.n; i++) {
		struct list_row r = { .now = to->now, .board = boards.all[i] };
		if (to->query->list == QUERY_RETIRED)
			add_pages(to, &r);
		else if (to->query->list == QUERY_ACCOUNTED)
			add_accounts(to, &r);
		else
			add_row(to, &r);
	}
	stat_boards_finish(&boards);
	return rc;
}
