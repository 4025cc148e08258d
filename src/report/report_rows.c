/* Sorts the holders, takes as many as were asked for, and names them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "model/card_name.h"
#include "audit/audit.h"
#include "report/report_holders.h"

enum { PATH_SHOWN = 24 };

/* What is made into a table: the rows of an audit, and how many are shown. */
struct listing {
	const struct audit *a;
	const struct report_request *q;
	const struct audit_breakdown *from;
	struct report_breakdown *to;
	bool rest; /* what is left out is summed up in a row */
	bool failed;
	struct bill_totals totals;
	struct bill_cents *cents[BY_MAX]; /* what people read of the rows' costs */
};

/* A level while it is sorted. */
struct sorting {
	const struct listing *l;
	size_t level;
	const size_t *rank; /* of the rows of the first level; NULL: this is it */
};

/* Cards and hosts by their place, others by name; those without a name have been sorted
 * already. */
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

/* Those without a name come last, whatever they sum up to. */
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

/* The end of a long path: its last parts tell notebooks apart. */
static const char *path_end(const char *path)
{
	const char *end = path + strlen(path), *at = path;
	while (end - at > PATH_SHOWN && strchr(at + 1, '/'))
		at = strchr(at + 1, '/');
	return at;
}

/* How people read what the row stands for. */
static void show_label(struct holder_row *view, const struct listing *l, size_t level)
{
	const struct audit_row *row = view->row;
	enum identity kind = l->from->by.kinds[level];
	const char *key = row->key ? row->key : identity_kinds[kind].none;
	char before[16] = "";
	text_copy(view->label, sizeof(view->label), level ? "  " : "");
	if (kind == IDENTITY_CARD) {
		show_card(view, l->a);
		return;
	}
	if (kind == IDENTITY_PROCESS)
		snprintf(before, sizeof(before), "%u ", (unsigned)row->pid);
	if (kind == IDENTITY_NOTEBOOK && path_end(key) != key) {
		text_copy(before, sizeof(before), "...");
		key = path_end(key);
	}
	if (kind == IDENTITY_USER)
		key = user_shown(key);
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

/* What is left out, in one row. */
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
	bill_add(&rest->cents, cents);
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

/* How many of n rows are shown. A row that says "(1 more)" has room for that one. */
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

/* Divides `whole` among rows of a level: those at `order`, which may be NULL for all in their
 * place. */
static void divide_costs(struct listing *l, size_t level, const size_t *order, size_t n,
	const struct bill_cents *whole)
{
	const struct audit_cost **costs = calloc(n + 1, sizeof(*costs));
	struct bill_cents *cents = calloc(n + 1, sizeof(*cents));
	for (size_t i = 0; i < n && costs; i++)
		costs[i] = &l->from->rows[level][order ? order[i] : i].sums.cost;
	bool fits = costs && cents && bill_divide(costs, n, whole, cents);
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
	bill_total(&l->totals, l->a);
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

void report_add_identities(
	struct report *r, const struct audit *a, const struct report_request *q)
{
	struct report_breakdown users = { 0 };
	r->failed |= !list_users((struct listing){ .a = a, .q = q, .to = &users });
	free(users.rows);
	r->identities = users.table;
}

/* The measure of a level. Of one user, presence added up over users is presence. */
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

void report_add_breakdown(
	struct report *r, const struct audit *a, const struct report_request *q)
{
	struct report_breakdown *to = &r->breakdown;
	struct listing l = { .a = a, .q = q, .from = &a->breakdown, .to = to, .rest = q->rest };
	struct report_request all = *q;
	all.top = 0;
	to->by = q->by;
	for (size_t i = 0; i < q->by.n; i++)
		to->measures[i] = measure_of(&q->by, i, a);
	if (by_is(&q->by, IDENTITY_USER))
		r->failed |= !list_users(l);
	else if (by_is(&q->by, IDENTITY_PROCESS))
		report_add_processes(r, a, q);
	else if (!by_is(&q->by, IDENTITY_CARD))
		list_breakdown(r, l);
	r->by_card.by = a->by_card.by;
	if (a->of_users && a->by_card.by.n)
		list_breakdown(
			r, (struct listing){
				   .a = a, .q = &all, .from = &a->by_card, .to = &r->by_card });
}
