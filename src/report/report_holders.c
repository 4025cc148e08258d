/* The tables of holders: sorts the rows, limits their number, and names them. To add a
 * column, add a row to an array of columns. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "audit/audit.h"
#include "model/card.h"
#include "report/report_parts.h"

/* The data of a row. */
struct holder_row {
	const struct audit_row *row;
	enum measure measure;
	const char *keys[BY_MAX];	/* its key for programs; NULL: none */
	const char *user, *host, *uuid; /* NULL: several */
	int64_t card_index;		/* -1: several */
	int64_t late_ms; /* first known at this moment within the window; or -1 */
	const struct bill_cents *cents;	     /* its cost as shown to people */
	char label[LABEL_CAP + COMMAND_CAP]; /* its name for people */
};

static const struct audit_sums *sums_of(const void *row)
{
	return &((const struct holder_row *)row)->row->sums;
}

static bool is_of_cards(const void *row)
{
	return ((const struct holder_row *)row)->measure == MEASURE_CARDS;
}

static bool is_of_shares(const void *row)
{
	return ((const struct holder_row *)row)->measure == MEASURE_SHARES;
}

static struct cell holder_ms(const void *row, size_t state)
{
	if (is_of_shares(row) && (state == HOLDER_TRULY_IDLE || state == HOLDER_USE_UNKNOWN))
		return table_number(NAN);
	return table_number((double)sums_of(row)->ms[state]);
}

/* Squatting time of a holder; unknown for cards, which cannot squat. */
static struct cell holder_squatting(const void *row, size_t state)
{
	return is_of_cards(row) ? table_number(NAN) : holder_ms(row, state);
}

/* Returns 0 as unknown, so that text omits the column when all rows are 0. */
static struct cell holder_some_ms(const void *row, size_t state)
{
	return sums_of(row)->ms[state] ? holder_ms(row, state) : table_number(NAN);
}

/* Held time. A truly-idle card is not held; a user with little memory on one still counts. */
static int64_t held_ms(const void *row)
{
	const int64_t *ms = sums_of(row)->ms;
	return audit_holder_ms(ms) - (is_of_cards(row) ? ms[HOLDER_TRULY_IDLE] : 0);
}

static struct cell holder_held(const void *row, size_t of)
{
	(void)of;
	return table_number((double)held_ms(row));
}

static struct cell holder_idle_fraction(const void *row, size_t of)
{
	(void)of;
	return table_number(report_share(sums_of(row)->ms[HOLDER_IDLE_HELD], held_ms(row)));
}

/* The unused share of the held time, as far as use is known. */
static struct cell holder_unused(const void *row, size_t of)
{
	const struct audit_sums *sums = sums_of(row);
	(void)of;
	return table_number(
		report_share(audit_waste(sums), held_ms(row) - sums->ms[HOLDER_USE_UNKNOWN]));
}

static struct cell holder_share(const void *row, size_t of)
{
	const struct audit_sums *sums = sums_of(row);
	(void)of;
	return table_number((double)(sums->active_share_ms + sums->idle_share_ms));
}

/* The share for people; omitted where it equals the hours beside it. */
static struct cell holder_share_shown(const void *row, size_t of)
{
	return is_of_shares(row) ? table_number(NAN) : holder_share(row, of);
}

static struct cell holder_idle_share(const void *row, size_t of)
{
	(void)of;
	return table_number((double)sums_of(row)->idle_share_ms);
}

static struct cell holder_context_share(const void *row, size_t of)
{
	(void)of;
	return table_number(
		is_of_shares(row) ? (double)NAN : (double)sums_of(row)->context_share_ms);
}

static struct cell holder_peak(const void *row, size_t of)
{
	(void)of;
	return table_known(sums_of(row)->peak_mem_kib);
}

static struct cell holder_last_active(const void *row, size_t of)
{
	(void)of;
	return table_known(sums_of(row)->last_active_ms);
}

static struct cell holder_processes(const void *row, size_t of)
{
	(void)of;
	if (is_of_shares(row))
		return table_number(NAN);
	return table_number((double)((const struct holder_row *)row)->row->n_processes);
}

static struct cell holder_pid(const void *row, size_t of)
{
	(void)of;
	return table_number(((const struct holder_row *)row)->row->pid);
}

static struct cell holder_started(const void *row, size_t of)
{
	(void)of;
	return table_known(((const struct holder_row *)row)->row->started_ms);
}

static struct cell holder_user_shown(const void *row, size_t of)
{
	const char *user = ((const struct holder_row *)row)->user;
	(void)of;
	return table_text(user ? process_shown_user(user) : "(several)");
}

static struct cell holder_money(const void *row, size_t part)
{
	return table_number(report_bill_money(&sums_of(row)->cost, part));
}

static struct cell holder_shown_money(const void *row, size_t part)
{
	const struct holder_row *view = row;
	if (!view->cents || isnan(report_bill_money(&view->row->sums.cost, COSTS)))
		return table_number(NAN);
	return table_number(part == COSTS ? report_bill_sum(view->cents)
					  : (double)view->cents->parts[part] / 100);
}

static struct cell holder_unpriced(const void *row, size_t of)
{
	(void)of;
	return table_number((double)sums_of(row)->cost.unpriced_ms);
}

/* Energy or, with `of` 1, the idle power in it. */
static struct cell holder_energy(const void *row, size_t of)
{
	const struct audit_cost *cost = &sums_of(row)->cost;
	if (!cost->energy_ms)
		return table_number(NAN);
	return table_number((of ? cost->floor_mj : cost->energy_mj) / 3.6e9);
}

static const struct column time_columns[] = {
	{ .key = "gpu_seconds", .title = "held", .width = 6, VALUE(GPU_MS, holder_held, 0) },
	{ .key = "active_gpu_seconds",
		.title = "used",
		.width = 6,
		VALUE(GPU_MS, holder_ms, HOLDER_ACTIVE) },
	{ .key = "idle_held_gpu_seconds",
		.title = "idle",
		.width = 6,
		VALUE(GPU_MS, holder_ms, HOLDER_IDLE_HELD) },
	{ .key = "squatting_gpu_seconds",
		.title = "idle on\nbusy GPU",
		VALUE(GPU_MS, holder_squatting, HOLDER_SQUATTING) },
	{ .title = "use\nunknown",
		.optional = true,
		VALUE(GPU_MS, holder_some_ms, HOLDER_USE_UNKNOWN) },
	{ .key = "unused_fraction",
		.title = "unused",
		.width = 6,
		VALUE(SHARE, holder_unused, 0) },
	{ .key = "idle_held_fraction", VALUE(SHARE, holder_idle_fraction, 0) },
	{ .title = "cost",
		.width = 6,
		.optional = true,
		VALUE(MONEY, holder_shown_money, COSTS) },
	{ .key = "truly_idle_gpu_seconds", VALUE(GPU_MS, holder_ms, HOLDER_TRULY_IDLE) },
	{ .key = "use_unknown_gpu_seconds", VALUE(GPU_MS, holder_ms, HOLDER_USE_UNKNOWN) },
	{ .key = "share_gpu_seconds", VALUE(GPU_MS, holder_share, 0) },
	{ .title = "share",
		.width = 6,
		.optional = true,
		VALUE(GPU_MS, holder_share_shown, 0) },
	{ .key = "idle_held_share_gpu_seconds", VALUE(GPU_MS, holder_idle_share, 0) },
	{ .key = "context_share_gpu_seconds", VALUE(GPU_MS, holder_context_share, 0) },
	{ .key = "peak_mem_bytes",
		.title = "peak mem",
		.width = 8,
		.optional = true,
		VALUE(KIB, holder_peak, 0) },
	{ .key = "last_active", VALUE(MOMENT, holder_last_active, 0) },
	{ .title = "idle\ncost",
		.width = 6,
		.optional = true,
		VALUE(MONEY, holder_shown_money, COST_IDLE_HELD) },
};

static const struct column cost_columns[] = {
	{ .key = "active_cost",
		.json = "cost.active",
		VALUE(MONEY, holder_money, COST_ACTIVE) },
	{ .key = "idle_held_cost",
		.json = "cost.idle_held",
		VALUE(MONEY, holder_money, COST_IDLE_HELD) },
	{ .key = "use_unknown_cost",
		.json = "cost.use_unknown",
		VALUE(MONEY, holder_money, COST_USE_UNKNOWN) },
	{ .key = "cost", .json = "cost.total", VALUE(MONEY, holder_money, COSTS) },
	{ .key = "squatting_cost", VALUE(MONEY, holder_money, COST_SQUATTING) },
	{ .key = "unpriced_gpu_seconds", VALUE(GPU_MS, holder_unpriced, 0) },
	{ .key = "energy_kwh", VALUE(KWH, holder_energy, 0) },
	{ .key = "energy_floor_kwh", VALUE(KWH, holder_energy, 1) },
};

#define OF(member) offsetof(struct holder_row, member)
/* The columns of a kind of identity: its key for programs, and further facts. */
static const struct column key_columns[BY_MAX] = { { TEXT(table_get_string, OF(keys[0])) },
	{ TEXT(table_get_string, OF(keys[1])) } };
static const struct column label_column = { .flexible = true,
	TEXT(table_get_chars, OF(label)) };
static const struct column user_columns[] = {
	{ .key = "user", TEXT(table_get_string, OF(user)) },
	{ .title = "user", .width = -12, TEXT(holder_user_shown, 0) },
};
static const struct column place_columns[] = {
	{ .key = "host", TEXT(table_get_string, OF(host)) },
	{ .key = "gpu", TEXT(table_get_string, OF(uuid)) },
	{ .key = "gpu_index", VALUE(COUNT, table_get_known, OF(card_index)) },
};
static const struct column process_columns[] = {
	{ .key = "pid", VALUE(COUNT, holder_pid, 0) },
	{ .key = "started", VALUE(MOMENT, holder_started, 0) },
};
static const struct column count_column = { .key = "processes",
	VALUE(COUNT, holder_processes, 0) };
#undef OF

/* The columns of cards' own time. */
static struct cell cards_n(const void *row, size_t of)
{
	(void)of;
	return table_number((double)((const struct holder_row *)row)->row->n_cards);
}

static struct cell cards_unobserved(const void *row, size_t of)
{
	(void)of;
	return table_number((double)((const struct holder_row *)row)->row->unobserved_ms);
}

static struct cell cards_observed(const void *row, size_t of)
{
	(void)of;
	return table_number((double)audit_holder_ms(sums_of(row)->ms));
}

static struct cell cards_share(const void *row, size_t state)
{
	const int64_t *ms = sums_of(row)->ms;
	return table_number(report_share(ms[state], audit_holder_ms(ms)));
}

/* The share, rounded together with the other states. */
static struct cell cards_shown(const void *row, size_t state)
{
	double shown[SHARES_MAX];
	report_shown_held(sums_of(row)->ms, shown);
	return table_number(shown[state]);
}

static struct cell cards_some_shown(const void *row, size_t state)
{
	return sums_of(row)->ms[state] ? cards_shown(row, state) : table_number(NAN);
}

static struct cell cards_coverage(const void *row, size_t of)
{
	int64_t seen_ms = audit_holder_ms(sums_of(row)->ms);
	(void)of;
	return table_number(report_share(
		seen_ms, seen_ms + ((const struct holder_row *)row)->row->unobserved_ms));
}

static struct cell cards_known_since(const void *row, size_t of)
{
	(void)of;
	return table_known(((const struct holder_row *)row)->row->known_ms);
}

/* Since when the cards are known, for people; omitted if that is before the window. */
static struct cell cards_late(const void *row, size_t of)
{
	(void)of;
	return table_known(((const struct holder_row *)row)->late_ms);
}

static const struct column card_columns[] = {
	{ .key = "gpus", .title = "GPUs", VALUE(COUNT, cards_n, 0) },
	{ .key = "observed_gpu_seconds",
		.title = "GPU-hours",
		VALUE(GPU_MS, cards_observed, 0) },
	{ .key = "active_gpu_seconds", VALUE(GPU_MS, holder_ms, HOLDER_ACTIVE) },
	{ .key = "idle_held_gpu_seconds", VALUE(GPU_MS, holder_ms, HOLDER_IDLE_HELD) },
	{ .key = "truly_idle_gpu_seconds", VALUE(GPU_MS, holder_ms, HOLDER_TRULY_IDLE) },
	{ .key = "use_unknown_gpu_seconds", VALUE(GPU_MS, holder_ms, HOLDER_USE_UNKNOWN) },
	{ .key = "unobserved_gpu_seconds", VALUE(GPU_MS, cards_unobserved, 0) },
	{ .key = "share_gpu_seconds", VALUE(GPU_MS, holder_share, 0) },
	{ .key = "active", VALUE(SHARE, cards_share, HOLDER_ACTIVE) },
	{ .key = "idle_held", VALUE(SHARE, cards_share, HOLDER_IDLE_HELD) },
	{ .key = "truly_idle", VALUE(SHARE, cards_share, HOLDER_TRULY_IDLE) },
	{ .title = "active", .width = 6, VALUE(SHARE, cards_shown, HOLDER_ACTIVE) },
	{ .title = "idle-held", VALUE(SHARE, cards_shown, HOLDER_IDLE_HELD) },
	{ .title = "truly-idle", VALUE(SHARE, cards_shown, HOLDER_TRULY_IDLE) },
	{ .title = "use?",
		.width = 6,
		.optional = true,
		VALUE(SHARE, cards_some_shown, HOLDER_USE_UNKNOWN) },
	{ .key = "observed", .title = "observed", VALUE(SHARE, cards_coverage, 0) },
	{ .title = "known\nsince", .optional = true, VALUE(MOMENT, cards_late, 0) },
	{ .title = "cost",
		.width = 6,
		.optional = true,
		VALUE(MONEY, holder_shown_money, COSTS) },
	{ .key = "active_cost",
		.json = "cost.active",
		VALUE(MONEY, holder_money, COST_ACTIVE) },
	{ .key = "idle_held_cost",
		.json = "cost.idle_held",
		VALUE(MONEY, holder_money, COST_IDLE_HELD) },
	{ .key = "use_unknown_cost",
		.json = "cost.use_unknown",
		VALUE(MONEY, holder_money, COST_USE_UNKNOWN) },
	{ .key = "truly_idle_cost",
		.json = "cost.truly_idle",
		VALUE(MONEY, holder_money, COST_TRULY_IDLE) },
	{ .key = "unobserved_cost",
		.json = "cost.unobserved",
		VALUE(MONEY, holder_money, COST_UNOBSERVED) },
	{ .key = "cost", .json = "cost.total", VALUE(MONEY, holder_money, COSTS) },
	{ .key = "unpriced_gpu_seconds", VALUE(GPU_MS, holder_unpriced, 0) },
	{ .key = "energy_kwh", VALUE(KWH, holder_energy, 0) },
	{ .key = "known_since", VALUE(MOMENT, cards_known_since, 0) },
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Width that distinguishes notebooks and commands; optional columns give way. */
enum { LONG_LABEL = 26 };

/* The columns of a table while they are chosen. */
struct choice {
	struct column items[44];
	size_t n;
};

static struct column *append(struct choice *c, const struct column *columns, size_t n)
{
	struct column *first = &c->items[c->n];
	memcpy(first, columns, n * sizeof(*columns));
	c->n += n;
	return first;
}

/* Adds the columns that name the identity, for programs and for people. */
static void add_keys(struct choice *c, const struct by *by, const char *title)
{
	for (size_t i = 0; i < by->n; i++) {
		bool process = by->kinds[i] == IDENTITY_PROCESS;
		append(c, &key_columns[i], 1)->key =
			process ? "command" : identity_kinds[by->kinds[i]].name;
	}
	struct column *label = append(c, &label_column, 1);
	label->title = title;
	for (size_t i = 0; i < by->n; i++)
		if (by_measure(by, i, false) == MEASURE_PROCESSES ||
			by->kinds[i] == IDENTITY_MODEL)
			label->width = LONG_LABEL;
	if (identity_by_has(by, IDENTITY_PROCESS))
		append(c, process_columns, COUNT_OF(process_columns));
}

/* Adds user, host and card columns, where the kinds do not already name them. */
static void add_facts(struct choice *c, const struct by *by)
{
	bool host = identity_by_has(by, IDENTITY_HOST), process = false;
	for (size_t i = 0; i < by->n; i++)
		process |= by_measure(by, i, false) == MEASURE_PROCESSES;
	/* For people, the user is shown where a row has only one. */
	if (!identity_by_has(by, IDENTITY_USER))
		append(c, user_columns, process ? COUNT_OF(user_columns) : 1);
	append(c, &place_columns[host], COUNT_OF(place_columns) - host);
	append(c, &count_column, 1);
}

static void start_table(struct table *t, const struct choice *c)
{
	struct column *columns = arena_take(&t->texts, c->n * sizeof(*columns));
	if (columns)
		memcpy(columns, c->items, c->n * sizeof(*columns));
	t->failed = !columns;
	t->columns = columns;
	t->n_columns = columns ? c->n : 0;
}

static void holder_table_of_users(struct table *t)
{
	const struct by users = { { IDENTITY_USER }, 1 };
	struct choice c = { .n = 0 };
	*t = (struct table){ 0 };
	add_keys(&c, &users, "user");
	c.items[0].key = "identity";
	append(&c, time_columns, COUNT_OF(time_columns));
	append(&c, cost_columns, COUNT_OF(cost_columns));
	start_table(t, &c);
}

/* Starts the table of users, which is in every report, and that of a breakdown. The columns are
 * in the table's arena. `of_users`: see by_measure(). */
static void holder_table_by(struct table *t, const struct by *by, bool of_users)
{
	struct choice c = { .n = 0 };
	char title[64] = "";
	*t = (struct table){ 0 };
	for (size_t i = 0; i < by->n; i++)
		snprintf(title + strlen(title), sizeof(title) - strlen(title), "%s%s",
			i ? ", " : "", identity_kinds[by->kinds[i]].name);
	const char *copy = arena_text(&t->texts, title);
	add_keys(&c, by, copy ? copy : "");
	if (by_measure(by, by->n - 1, of_users) == MEASURE_CARDS) {
		append(&c, card_columns, COUNT_OF(card_columns));
	} else {
		add_facts(&c, by);
		append(&c, time_columns, COUNT_OF(time_columns));
		append(&c, cost_columns, COUNT_OF(cost_columns));
	}
	start_table(t, &c);
}

enum { PATH_SHOWN = 24 };

/* The rows of an audit that become a table, and how many are shown. */
struct listing {
	const struct audit *a;
	const struct report_request *q;
	const struct audit_breakdown *from;
	struct report_breakdown *to;
	bool rest; /* the rows beyond the limit become one row */
	bool failed;
	struct bill_totals totals;
	struct bill_cents *cents[BY_MAX]; /* the cost of each row as shown to people */
};

/* A level while it is sorted. */
struct sorting {
	const struct listing *l;
	size_t level;
	const size_t
		*rank; /* ranks of the rows of the first level; NULL: this is the first level */
};

/* Compares cards and hosts by position, others by name. Rows without a name are sorted
 * before this. */
static int compare_names(
	enum identity kind, const struct audit_row *p, const struct audit_row *q)
{
	if (kind == IDENTITY_HOST && p->host != q->host)
		return p->host < q->host ? -1 : 1;
	if (kind == IDENTITY_CARD && p->card != q->card)
		return p->card < q->card ? -1 : 1;
	int difference = p->key && q->key ? strcmp(p->key, q->key) : 0;
	return difference ? difference : p->pid < q->pid ? -1 : p->pid > q->pid;
}

/* Rows without a name come last, whatever their sums are. */
static int compare_rows(const void *x, const void *y, void *sorting)
{
	const struct sorting *s = sorting;
	const struct audit_breakdown *from = s->l->from;
	const struct audit_row *p = &from->rows[s->level][*(const size_t *)x];
	const struct audit_row *q = &from->rows[s->level][*(const size_t *)y];
	enum order order = s->l->q->order;
	int difference = 0;
	if (s->rank && s->rank[p->outer] != s->rank[q->outer])
		return s->rank[p->outer] < s->rank[q->outer] ? -1 : 1;
	if (!p->key != !q->key)
		return !p->key - !q->key;
	if (from->by.kinds[s->level] == IDENTITY_CARD && order == ORDER_DEFAULT)
		return compare_names(IDENTITY_CARD, p, q);
	if (from->measures[s->level] != MEASURE_CARDS || order != ORDER_DEFAULT)
		difference = audit_order_compare(order, &p->sums, &q->sums);
	return difference ? difference : compare_names(from->by.kinds[s->level], p, q);
}

/* The rows of a level in order, as indexes. NULL: out of memory. */
static size_t *sort_level(const struct listing *l, size_t level, const size_t *rank)
{
	struct sorting s = { l, level, rank };
	size_t n = l->from->n[level], *order = calloc(n + 1, sizeof(*order));
	for (size_t i = 0; i < n && order; i++)
		order[i] = i;
	if (order)
		qsort_r(order, n, sizeof(*order), compare_rows, &s);
	return order;
}

static void show_card(struct holder_row *view, const struct audit *a)
{
	const struct audit_card *card = &a->cards[view->row->card];
	char label[CARD_LABEL_CAP];
	card_label(label, sizeof(label), &card->id);
	snprintf(view->label + strlen(view->label), sizeof(view->label) - strlen(view->label),
		"%s%s%s", a->n_hosts > 1 ? a->hosts[card->host].hostname : "",
		a->n_hosts > 1 ? " " : "", label);
}

/* The end of a long path: its last components distinguish notebooks. */
static const char *path_end(const char *path)
{
	const char *end = path + strlen(path), *at = path;
	while (end - at > PATH_SHOWN && strchr(at + 1, '/'))
		at = strchr(at + 1, '/');
	return at;
}

/* Writes the name of the row for people. */
static void show_label(struct holder_row *view, const struct listing *l, size_t level)
{
	const struct audit_row *row = view->row;
	enum identity kind = l->from->by.kinds[level];
	const char *key = row->key ? row->key : identity_kinds[kind].none;
	char before[16] = "";
	str_copy(view->label, sizeof(view->label), level ? "  " : "");
	if (kind == IDENTITY_CARD) {
		show_card(view, l->a);
		return;
	}
	if (kind == IDENTITY_PROCESS)
		snprintf(before, sizeof(before), "%u ", (unsigned)row->pid);
	if (kind == IDENTITY_NOTEBOOK && path_end(key) != key) {
		str_copy(before, sizeof(before), "...");
		key = path_end(key);
	}
	if (kind == IDENTITY_USER)
		key = process_shown_user(key);
	if (kind == IDENTITY_MODEL)
		key = card_short_name(key);
	snprintf(view->label + strlen(view->label), sizeof(view->label) - strlen(view->label),
		"%s%s", before, key);
}

static void add_row(struct listing *l, const struct holder_row *view, struct report_row mark)
{
	size_t n = l->to->table.n_rows;
	if (!array_one_more(&l->to->rows, n)) {
		l->failed = true;
		return;
	}
	l->to->rows[n] = mark;
	table_add(&l->to->table, view);
}

static void list_row(struct listing *l, size_t level, const struct audit_row *row)
{
	const struct audit *a = l->a;
	const struct audit_row *outer = level ? &l->from->rows[0][row->outer] : row;
	struct holder_row view = { .row = row,
		.measure = l->from->measures[level],
		.keys = { outer->key, level ? row->key : NULL },
		.card_index = -1,
		.late_ms = audit_is_late(a, row->known_ms) ? row->known_ms : -1,
		.cents = &l->cents[level][row - l->from->rows[level]] };
	if (row->user < a->n_identities)
		view.user = a->identities[row->user].identity;
	if (row->host < a->n_hosts)
		view.host = a->hosts[row->host].hostname;
	if (row->card < a->n_cards) {
		view.uuid = a->cards[row->card].id.uuid;
		view.card_index = a->cards[row->card].id.index;
	}
	show_label(&view, l, level);
	add_row(l, &view, (struct report_row){ .level = (unsigned)level });
}

/* The sum of the rows beyond the limit. */
struct rest {
	struct audit_row sums;
	struct bill_cents cents;
	size_t n;
};

static void leave_out(
	struct rest *rest, const struct audit_row *row, const struct bill_cents *cents)
{
	if (rest->n++ == 0)
		rest->sums = (struct audit_row){ .sums = AUDIT_SUMS_NONE,
			.user = AUDIT_SEVERAL,
			.host = AUDIT_SEVERAL,
			.card = AUDIT_SEVERAL,
			.known_ms = -1 };
	audit_sums_add(&rest->sums.sums, &row->sums);
	report_bill_add_cents(&rest->cents, cents);
	rest->sums.unobserved_ms += row->unobserved_ms;
	rest->sums.n_processes += row->n_processes;
	rest->sums.n_cards += row->n_cards;
}

static void list_rest(struct listing *l, size_t level, const struct rest *rest)
{
	struct holder_row view = { .row = &rest->sums,
		.measure = l->from->measures[level],
		.card_index = -1,
		.late_ms = -1,
		.cents = &rest->cents };
	if (rest->n == 0 || !l->rest)
		return;
	snprintf(view.label, sizeof(view.label), "%s(%zu more)", level ? "  " : "", rest->n);
	add_row(l, &view, (struct report_row){ .level = (unsigned)level, .rest = true });
}

/* How many of n rows are shown. One row beyond the limit is shown itself, instead of "(1
 * more)". */
static size_t shown_of(const struct listing *l, size_t n, size_t top)
{
	return top == 0 || n <= top || (l->rest && n == top + 1) ? n : top;
}

/* Whether one more row may be shown. */
static bool has_room(const struct listing *l)
{
	return l->q->most == 0 || l->to->table.n_rows < l->q->most;
}

/* The end of the rows of the second level that belong to `outer`, from order[from] on. */
static size_t end_of_inner(
	const struct listing *l, size_t outer, const size_t *order, size_t from)
{
	while (from < l->from->n[1] && l->from->rows[1][order[from]].outer == outer)
		from++;
	return from;
}

/* Divides `whole` among the rows of a level that `order` lists; NULL: all rows, in their own
 * order. */
static void divide_costs(struct listing *l, size_t level, const size_t *order, size_t n,
	const struct bill_cents *whole)
{
	const struct audit_cost **costs = calloc(n + 1, sizeof(*costs));
	struct bill_cents *cents = calloc(n + 1, sizeof(*cents));
	for (size_t i = 0; i < n && costs; i++)
		costs[i] = &l->from->rows[level][order ? order[i] : i].sums.cost;
	bool fits = costs && cents && report_bill_divide(costs, n, whole, cents);
	for (size_t i = 0; i < n && fits; i++)
		l->cents[level][order ? order[i] : i] = cents[i];
	l->failed |= !fits;
	free(costs);
	free(cents);
}

static void list_inner(struct listing *l, const size_t *order, size_t from, size_t to)
{
	size_t shown = shown_of(l, to - from, l->q->top_inner);
	struct rest rest = { .n = 0 };
	for (size_t i = from; i < to; i++) {
		const struct audit_row *row = &l->from->rows[1][order[i]];
		if (i - from < shown && has_room(l))
			list_row(l, 1, row);
		else
			leave_out(&rest, row, &l->cents[1][order[i]]);
	}
	list_rest(l, 1, &rest);
}

static void list_all(struct listing *l, const size_t *outer, const size_t *inner)
{
	struct rest rest = { .n = 0 };
	size_t at = 0, n_shown = shown_of(l, l->from->n[0], l->q->top);
	bool of_cards = l->from->measures[0] == MEASURE_CARDS;
	divide_costs(l, 0, NULL, l->from->n[0], of_cards ? &l->totals.all : &l->totals.held);
	for (size_t i = 0; i < l->from->n[0]; i++) {
		bool shown = i < n_shown && has_room(l);
		if (shown)
			list_row(l, 0, &l->from->rows[0][outer[i]]);
		else
			leave_out(&rest, &l->from->rows[0][outer[i]], &l->cents[0][outer[i]]);
		size_t end = inner ? end_of_inner(l, outer[i], inner, at) : at;
		if (end > at)
			divide_costs(l, 1, inner + at, end - at, &l->cents[0][outer[i]]);
		if (inner && shown)
			list_inner(l, inner, at, end);
		at = end;
	}
	list_rest(l, 0, &rest);
}

static void list(struct listing *l)
{
	size_t *outer = sort_level(l, 0, NULL), *rank = NULL, *inner = NULL;
	bool two = l->from->by.n > 1;
	if (two && outer)
		rank = calloc(l->from->n[0] + 1, sizeof(*rank));
	for (size_t i = 0; rank && i < l->from->n[0]; i++)
		rank[outer[i]] = i;
	if (rank)
		inner = sort_level(l, 1, rank);
	report_bill_total(&l->totals, l->a);
	for (size_t level = 0; level < BY_MAX; level++) {
		l->cents[level] = calloc(l->from->n[level] + 1, sizeof(*l->cents[level]));
		l->failed |= !l->cents[level];
	}
	if (!l->failed && outer && (inner || !two))
		list_all(l, outer, inner);
	else
		l->failed = true;
	for (size_t level = 0; level < BY_MAX; level++)
		free(l->cents[level]);
	free(outer);
	free(rank);
	free(inner);
}

/* Makes the table of users. */
static bool list_users(struct listing l)
{
	const struct audit *a = l.a;
	struct audit_breakdown users = { .by = { { IDENTITY_USER }, 1 },
		.measures = { a->fleet.asked ? MEASURE_SHARES : MEASURE_PRESENCE } };
	l.from = &users;
	users.rows[0] = calloc(a->n_identities + 1, sizeof(*users.rows[0]));
	holder_table_of_users(&l.to->table);
	for (size_t i = 0; i < a->n_identities && users.rows[0]; i++)
		users.rows[0][users.n[0]++] =
			(struct audit_row){ .key = a->identities[i].identity,
				.sums = a->identities[i].sums,
				.user = i,
				.host = AUDIT_SEVERAL,
				.card = AUDIT_SEVERAL };
	l.failed = !users.rows[0];
	if (!l.failed)
		list(&l);
	free(users.rows[0]);
	return !l.failed;
}

void report_holders_add_users(
	struct report *r, const struct audit *a, const struct report_request *q)
{
	struct report_breakdown users = { 0 };
	r->failed |= !list_users((struct listing){ .a = a, .q = q, .to = &users });
	free(users.rows);
	r->identities = users.table;
}

/* The measure of a level. For a single user, presence added up over users is plain presence. */
static enum measure measure_of(const struct by *by, size_t level, const struct audit *a)
{
	enum measure measure = by_measure(by, level, a->of_users);
	if (a->fleet.asked && measure != MEASURE_CARDS)
		return MEASURE_SHARES;
	return measure == MEASURE_USERS && a->n_identities == 1 ? MEASURE_PRESENCE : measure;
}

/* Lists a breakdown of the audit. */
static void list_breakdown(struct report *r, struct listing l)
{
	holder_table_by(&l.to->table, &l.from->by, l.a->of_users);
	list(&l);
	r->failed |= l.failed;
}

void report_holders_add_breakdown(
	struct report *r, const struct audit *a, const struct report_request *q)
{
	struct report_breakdown *to = &r->breakdown;
	struct listing l = { .a = a, .q = q, .from = &a->breakdown, .to = to, .rest = q->rest };
	struct report_request all = *q;
	all.top = 0;
	to->by = q->by;
	for (size_t i = 0; i < q->by.n; i++)
		to->measures[i] = measure_of(&q->by, i, a);
	if (identity_by_is(&q->by, IDENTITY_USER))
		r->failed |= !list_users(l);
	else if (identity_by_is(&q->by, IDENTITY_PROCESS))
		report_processes_add(r, a, q);
	else if (!identity_by_is(&q->by, IDENTITY_CARD))
		list_breakdown(r, l);
	r->by_card.by = a->by_card.by;
	if (a->of_users && a->by_card.by.n)
		list_breakdown(
			r, (struct listing){
				   .a = a, .q = &all, .from = &a->by_card, .to = &r->by_card });
}
