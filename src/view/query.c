/* Prints chosen fields of cards as lines, or as JSON. */
#include "view/query.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/moment.h"
#include "render/rows.h"
#include "render/text.h"
#include "view/format.h"
#include "view/stat.h"

enum { CELL_CAP = 160, NEAREST = 3 };

static int unknown_field(const struct query *q, const char *name, size_t len, struct err *e)
{
	bool apps = q->list == QUERY_APPS;
	int near[NEAREST];
	char text[200] = "";
	size_t n = apps			  ? query_list_nearest(name, len, near, NEAREST)
		   : q->list == QUERY_GPU ? metric_nearest(name, len, near, NEAREST)
					  : 0;
	for (size_t i = 0, at = 0; i < n; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s",
			i == 0 ? "; the nearest: " : ", ",
			apps ? query_list_name(near[i]) : metrics[near[i]].name);
	return err_set(e, ERR_USAGE, "there is no field '%.*s'%s; --help-query-%s lists all",
		(int)(len < 100 ? len : 100), name, text, query_list_title(q->list));
}

int query_fields(struct query *q, const char *list, struct err *e)
{
	for (const char *at = list; *at;) {
		at += strspn(at, ", ");
		size_t len = strcspn(at, ", ");
		if (len == 0)
			break;
		int field = q->list ? query_list_find(q->list, at, len) : metric_find(at, len);
		if (field < 0) {
			q->wrong = at;
			return unknown_field(q, at, len, e);
		}
		if (q->n == QUERY_FIELDS_MAX)
			return err_set(e, ERR_USAGE, "more than %d fields", QUERY_FIELDS_MAX);
		q->fields[q->n++] = field;
		at += len;
	}
	return q->n ? 0 : err_set(e, ERR_USAGE, "no field is named");
}

static const struct format_word format_words[] = {
	{ "csv", offsetof(struct query, csv) },
	{ "noheader", offsetof(struct query, no_header) },
	{ "nounits", offsetof(struct query, no_units) },
	{ "json", offsetof(struct query, json) },
	{ 0 },
};

int query_format(struct query *q, const char *text, struct err *e)
{
	if (!format_take(format_words, q, text))
		return err_set(e, ERR_USAGE,
			"--format takes csv[,noheader][,nounits] or json, not '%s'", text);
	if (q->csv == q->json)
		return err_set(e, ERR_USAGE, "--format wants either csv or json");
	return 0;
}

void query_formats(struct str *out)
{
	format_list(format_words, out);
}

void query_gpu_fields(struct str *out)
{
	for (int i = 0; i < METRIC_COUNT; i++)
		str_addf(out, "%s %s%s", metrics[i].name, metrics[i].synonyms,
			*metrics[i].synonyms ? " " : "");
}

void query_wanted(const struct query *q, unsigned char *wanted)
{
	if (q->list)
		query_list_wanted(q, wanted);
	for (size_t i = 0; !q->list && i < q->n; i++)
		wanted[q->fields[i]] = 1;
}

void query_header(const struct query *q, struct str *out)
{
	for (size_t i = 0; i < q->n; i++) {
		int field = q->fields[i];
		const char *name = q->list ? query_list_name(field) : metrics[field].name;
		const char *unit = q->list ? query_list_unit(field) : metrics[field].unit;
		str_addf(out, "%s%s", i ? ", " : "", name);
		if (*unit)
			str_addf(out, " [%s]", unit);
	}
	str_add(out, "\n");
}

/* The moment as nvidia-smi writes it: "2026/11/02 08:00:00.000", local time. */
static void show_moment(char *dst, size_t cap, int64_t ms)
{
	struct tm tm = moment_fields(ms, false);
	snprintf(dst, cap, "%04d/%02d/%02d %02d:%02d:%02d.%03d", tm.tm_year + 1900,
		tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)(ms % 1000));
}

void query_bus_id(char *dst, size_t cap, const char *pci)
{
	unsigned domain, bus, device, function;
	dst[0] = '\0';
	if (sscanf(pci, "%x:%x:%x.%x", &domain, &bus, &device, &function) == 4)
		snprintf(dst, cap, "%08X:%02X:%02X.%X", domain, bus, device, function);
}

/* One line: a card, or a board. */
struct query_line {
	const struct card_id *id;
	enum card_status status;
	const char *state; /* "": a divided board has none */
	const double *values;
	const metric_texts *texts;
};

static struct query_line card_line(const struct present_card *c)
{
	return (struct query_line){ &c->id, c->status,
		c->status == CARD_STATUS_OK ? card_state_names[c->state]
					    : card_status_names[c->status],
		c->values, (const metric_texts *)&c->texts };
}

static struct query_line board_line(
	const struct present_board *b, const struct present_card *cards)
{
	struct query_line line = card_line(&cards[b->first_card]);
	line.id = &b->id;
	line.status = b->status;
	line.values = b->values;
	line.texts = (const metric_texts *)&b->texts;
	if (b->mig && b->status == CARD_STATUS_OK)
		line.state = "";
	return line;
}

/* The text of a field of the card; "" unknown. */
static void card_text(char *dst, size_t cap, enum metric m, const struct present *now,
	const struct query_line *line)
{
	dst[0] = '\0';
	if (metrics[m].form == METRIC_FORM_DRIVER_TEXT)
		str_copy(dst, cap, (*line->texts)[m]);
	else if (m == METRIC_TIMESTAMP)
		show_moment(dst, cap, now->now_ms);
	else if (m == METRIC_DRIVER_VERSION || m == METRIC_KMD_VERSION)
		str_copy(dst, cap, now->hosts[0].driver);
	else if (m == METRIC_NAME)
		str_copy(dst, cap, line->id->name);
	else if (m == METRIC_UUID)
		str_copy(dst, cap, card_has_uuid(line->id) ? line->id->uuid : "");
	else if (m == METRIC_PCI_BUS_ID)
		query_bus_id(dst, cap, line->id->pci);
	else if (m == METRIC_GUA_STATE)
		str_copy(dst, cap, line->state);
}

void query_process_name(char *dst, size_t cap, struct live *l, const struct present_process *p)
{
	struct str arguments = { 0 };
	live_process_arguments(l, p, &arguments);
	if (arguments.len)
		str_copy(dst, cap, arguments.data);
	else
		str_copy(dst, cap, p->id.command[0] ? p->id.command : "[Not Found]");
	str_finish(&arguments);
}

static bool is_text(enum metric m)
{
	return metrics[m].form == METRIC_FORM_DRIVER_TEXT ||
	       metrics[m].form == METRIC_FORM_CARD_TEXT;
}

/* A field as text without its unit; "" unknown. */
static void show(char *dst, size_t cap, enum metric m, const struct present *now,
	const struct query_line *line)
{
	if (is_text(m))
		card_text(dst, cap, m, now, line);
	else
		metric_show(dst, cap, m, line->values[m]);
}

void query_card_text(char *dst, size_t cap, enum metric m, const struct present *now,
	const struct present_card *c)
{
	struct query_line line = card_line(c);
	show(dst, cap, m, now, &line);
}

void query_board_text(char *dst, size_t cap, enum metric m, const struct present *now,
	const struct present_board *b)
{
	struct query_line line = board_line(b, now->cards);
	show(dst, cap, m, now, &line);
}

/* The text for a missing value. nvidia-smi writes some of them without brackets. */
static const char *missing(enum metric m, enum card_status status)
{
	bool bare = m == METRIC_TEMPERATURE_MEMORY ||
		    strncmp(metrics[m].name, "fabric.", strlen("fabric.")) == 0;
	if (status == CARD_STATUS_LOST)
		return "[GPU is lost]";
	if (status == CARD_STATUS_DENIED)
		return "[Insufficient Permissions]";
	return bare ? "N/A" : "[N/A]";
}

static void add_cell(const struct query_answer *a, enum metric m, const struct query_line *line)
{
	char text[CELL_CAP];
	show(text, sizeof(text), m, a->now, line);
	(is_text(m) ? rows_text : rows_own_text)(
		a->out, *text ? text : missing(m, line->status));
	if (*text && !a->query->no_units && *metrics[m].unit)
		str_addf(a->out, " %s", metrics[m].unit);
}

static void add_item(const struct query_answer *a, enum metric m, const struct query_line *line)
{
	const struct metric_info *info = &metrics[m];
	char text[CELL_CAP];
	double value = line->values[m] / info->scale;
	if (info->form == METRIC_FORM_NUMBER) {
		json_number(
			a->json, info->name, info->detail ? value : floor(value), info->detail);
		return;
	}
	show(text, sizeof(text), m, a->now, line);
	json_text(a->json, info->name, *text ? text : NULL);
}

static void add_line(const struct query_answer *a, const struct query_line *line)
{
	const struct query *q = a->query;
	if (a->json)
		json_open(a->json, NULL, '{');
	for (size_t i = 0; i < q->n; i++) {
		enum metric m = (enum metric)q->fields[i];
		if (a->json) {
			add_item(a, m, line);
			continue;
		}
		str_add(a->out, i ? ", " : "");
		add_cell(a, m, line);
	}
	if (a->json)
		json_close(a->json, '}');
	else
		str_add(a->out, "\n");
}

/* Adds every card that matches or, for boards, each board of these cards once. */
static int add_cards(const struct query_answer *a, struct err *e)
{
	const struct present_card *cards = a->now->cards;
	struct stat_pick picked = { 0 };
	int rc = stat_pick(&picked, a->live, a->filter, e);
	for (size_t i = 0; rc == 0 && i < picked.n; i++) {
		const struct present_card *c = &cards[picked.cards[i]];
		struct query_line line = a->query->instances
						 ? card_line(c)
						 : board_line(&a->now->boards[c->board], cards);
		if (a->query->instances || stat_pick_is_first(&picked, i))
			add_line(a, &line);
	}
	stat_pick_finish(&picked);
	return rc;
}

int query_look(const struct query *q, struct live *l, const struct filter *f, struct str *out,
	struct err *e)
{
	struct json json = { .out = out, .lines = q->lines };
	struct json *to = q->json ? &json : NULL;
	const struct query_answer a = { q, l, live_present(l), f, to, out };
	if (to) {
		json_open(to, NULL, '{');
		json_text(to, "schema", "gua-query-1");
		json_moment(to, "time", a.now->now_ms);
		json_text(to, "host", a.now->hosts[0].hostname);
		json_open(to,
			q->list == QUERY_GPU	? "gpus"
			: q->list == QUERY_APPS ? "processes"
						: "rows",
			'[');
	}
	int rc = q->list ? query_list_look(&a, e) : add_cards(&a, e);
	if (to) {
		json_close(to, ']');
		json_close(to, '}');
	}
	return rc;
}

/* Names and descriptions are within 80 columns. An empty line comes before each: programs that
 * read nvidia-smi's list use it to find the next name. */
void query_help(enum query_list list, struct str *out)
{
	const struct text_style style = { .columns = 80, .ascii = true };
	if (list) {
		query_list_help(list, out);
		return;
	}
	str_add(out, "Fields of --query-gpu, with the names that mean the same:\n");
	for (const struct metric_info *m = metrics; m < metrics + METRIC_COUNT; m++) {
		str_addf(out, "\n\"%s\"", m->name);
		for (const char *at = m->synonyms; *at;) {
			size_t len = strcspn(at, " ");
			str_addf(out, " or \"%.*s\"", (int)len, at);
			at += len + (at[len] == ' ');
		}
		str_add(out, "\n    ");
		text_add_wrapped(out, m->help, 4, 4, &style);
	}
}
