/* The tables of holders: sorts the rows, limits their number, and names them. To add a
 * column, add a row to an array of columns. */
#include "audit/audit.h"
#include "model/card.h"
#include "report/report_parts.h"

/* The data of a row. Times are in milliseconds. */
struct report_holder {
	struct audit_row row;	  /* of shares: without the time that they do not have */
	const char *keys[BY_MAX]; /* its key for programs; NULL: none */
	const char *user, *shown_user, *host, *uuid; /* NULL: several */
	char label[LABEL_CAP + COMMAND_CAP];	     /* its name for people */
	int64_t card_index;			     /* -1: several */
	int64_t late_ms; /* when first known, if that is within the window, or -1 */
	double n_processes, held, squatting;
	double reserved;	      /* NAN: leases are not known */
	double some_unknown;	      /* but 0 is NAN: text omits a column without values */
	double unused, idle_fraction; /* shares of the held time */
	double share, shown_share;
	double observed, coverage; /* of cards, like the next */
	double fraction[HOLDER_STATES], shown[HOLDER_STATES], shown_unknown;
	double reserved_fraction, shown_reserved;
	double money[COSTS + 1]; /* as report_bill_money() */
	double shown_cost, shown_idle_cost, kwh, floor_kwh;
};

#define OF(member) offsetof(struct report_holder, member)
static const struct column time_columns[] = {
	{ "gpu_seconds", "held", NUMBER(GPU_MS, held), .width = 6 },
	{ "active_gpu_seconds", "used", KNOWN(GPU_MS, row.sums.ms[HOLDER_ACTIVE]), .width = 6 },
	{ "idle_held_gpu_seconds", "idle", KNOWN(GPU_MS, row.sums.ms[HOLDER_IDLE_HELD]),
		.width = 6 },
	{ "squatting_gpu_seconds", "idle on\nbusy GPU", NUMBER(GPU_MS, squatting),
		.optional = true, .needed = true },
	{ .title = "use\nunknown", NUMBER(GPU_MS, some_unknown), .optional = true },
	{ .title = "reserved", NUMBER(GPU_MS, reserved), .optional = true, .needed = true },
	{ "unused_fraction", "unused", NUMBER(SHARE, unused), .width = 6 },
	{ "idle_held_fraction", NUMBER(SHARE, idle_fraction) },
	{ .title = "cost", NUMBER(MONEY, shown_cost), .width = 6, .optional = true },
	{ "truly_idle_gpu_seconds", KNOWN(GPU_MS, row.sums.ms[HOLDER_TRULY_IDLE]) },
	{ "use_unknown_gpu_seconds", KNOWN(GPU_MS, row.sums.ms[HOLDER_USE_UNKNOWN]) },
	{ "share_gpu_seconds", NUMBER(GPU_MS, share) },
	{ .title = "share", NUMBER(GPU_MS, shown_share), .width = 6, .optional = true },
	{ "idle_held_share_gpu_seconds", KNOWN(GPU_MS, row.sums.idle_share_ms) },
	{ "context_share_gpu_seconds", KNOWN(GPU_MS, row.sums.context_share_ms) },
	{ "peak_mem_bytes", "peak mem", KNOWN(KIB, row.sums.peak_mem_kib), .width = 8,
		.optional = true },
	{ "last_active", KNOWN(MOMENT, row.sums.last_active_ms) },
	{ .title = "idle\ncost", NUMBER(MONEY, shown_idle_cost), .width = 6, .optional = true },
};

static const struct column cost_columns[] = {
	HELD_COSTS,
	COST_TOTAL,
	{ "squatting_cost", NUMBER(MONEY, money[COST_SQUATTING]) },
	{ "unpriced_gpu_seconds", KNOWN(GPU_MS, row.sums.cost.unpriced_ms) },
	{ "energy_kwh", NUMBER(KWH, kwh) },
	{ "energy_floor_kwh", NUMBER(KWH, floor_kwh) },
	{ "reserved_gpu_seconds", NUMBER(GPU_MS, reserved) },
};

/* The columns of a kind of identity: its key for programs, and further facts. */
static const struct column key_columns[BY_MAX] = { { STRING(keys[0]) }, { STRING(keys[1]) } };
static const struct column label_column = { .flexible = true, CHARS(label) };
static const struct column user_columns[] = {
	{ "user", STRING(user) },
	{ .title = "user", STRING(shown_user), .width = -12 },
};
static const struct column place_columns[] = {
	{ "host", STRING(host) },
	{ "gpu", STRING(uuid) },
	{ "gpu_index", KNOWN(COUNT, card_index) },
};
static const struct column process_columns[] = {
	{ "pid", UINT(row.pid) },
	{ "started", KNOWN(MOMENT, row.started_ms) },
};
static const struct column count_column = { "processes", NUMBER(COUNT, n_processes) };

/* The columns of cards' own time. */
static const struct column card_columns[] = {
	{ "gpus", "GPUs", UINT(row.n_cards) },
	{ "observed_gpu_seconds", "GPU-hours", NUMBER(GPU_MS, observed) },
	{ "active_gpu_seconds", KNOWN(GPU_MS, row.sums.ms[HOLDER_ACTIVE]) },
	{ "idle_held_gpu_seconds", KNOWN(GPU_MS, row.sums.ms[HOLDER_IDLE_HELD]) },
	{ "truly_idle_gpu_seconds", KNOWN(GPU_MS, row.sums.ms[HOLDER_TRULY_IDLE]) },
	{ "use_unknown_gpu_seconds", KNOWN(GPU_MS, row.sums.ms[HOLDER_USE_UNKNOWN]) },
	{ "unobserved_gpu_seconds", KNOWN(GPU_MS, row.unobserved_ms) },
	{ "share_gpu_seconds", NUMBER(GPU_MS, share) },
	{ "active", NUMBER(SHARE, fraction[HOLDER_ACTIVE]) },
	{ "idle_held", NUMBER(SHARE, fraction[HOLDER_IDLE_HELD]) },
	{ "truly_idle", NUMBER(SHARE, fraction[HOLDER_TRULY_IDLE]) },
	{ .title = "active", NUMBER(SHARE, shown[HOLDER_ACTIVE]), .width = 6 },
	{ .title = "idle-held", NUMBER(SHARE, shown[HOLDER_IDLE_HELD]) },
	{ .title = "reserved",
		NUMBER(SHARE, shown_reserved),
		.optional = true,
		.needed = true },
	{ .title = "truly-idle", NUMBER(SHARE, shown[HOLDER_TRULY_IDLE]) },
	{ .title = "use?", NUMBER(SHARE, shown_unknown), .width = 6, .optional = true },
	{ "observed", "observed", NUMBER(SHARE, coverage) },
	{ .title = "known\nsince", KNOWN(MOMENT, late_ms), .optional = true },
	{ .title = "cost", NUMBER(MONEY, shown_cost), .width = 6, .optional = true },
	CARD_COSTS,
	COST_TOTAL,
	{ "unpriced_gpu_seconds", KNOWN(GPU_MS, row.sums.cost.unpriced_ms) },
	{ "energy_kwh", NUMBER(KWH, kwh) },
	{ "known_since", KNOWN(MOMENT, row.known_ms) },
	{ "reserved_gpu_seconds", NUMBER(GPU_MS, reserved) },
	{ "reserved", NUMBER(SHARE, reserved_fraction) },
};
#undef OF

static void set_cards(struct report_holder *view, const struct audit_row *row)
{
	const int64_t *ms = row->sums.ms, reserved_ms = row->sums.reserved_ms;
	int64_t observed_ms = audit_holder_ms(ms) + reserved_ms;
	double shown[SHARES_MAX];
	report_shown_held(ms, reserved_ms, shown);
	view->reserved_fraction =
		isnan(view->reserved) ? NAN : report_share(reserved_ms, observed_ms);
	view->shown_reserved = reserved_ms ? shown[HOLDER_STATES] : NAN;
	for (size_t state = 0; state < HOLDER_STATES; state++) {
		view->fraction[state] = report_share(ms[state], observed_ms);
		view->shown[state] = shown[state];
	}
	view->shown_unknown = ms[HOLDER_USE_UNKNOWN] ? shown[HOLDER_USE_UNKNOWN] : NAN;
	view->observed = (double)observed_ms;
	view->coverage = report_share(observed_ms, observed_ms + row->unobserved_ms);
}

/* Sets what audits do not always know. */
static void set_known(
	struct report_holder *view, const struct audit *a, const struct audit_sums *sums)
{
	view->reserved = a->has_leases ? (double)sums->reserved_ms : (double)NAN;
	if (audit_is_sampled(a))
		view->squatting = NAN;
}

static void set_numbers(struct report_holder *view, const struct audit_row *row,
	enum measure measure, const struct bill_cents *cents)
{
	const struct audit_sums *sums = &row->sums;
	bool of_cards = measure == MEASURE_CARDS, of_shares = measure == MEASURE_SHARES;
	/* A truly-idle card is not held; a user with little memory on one still counts. */
	int64_t held_ms =
		audit_holder_ms(sums->ms) - (of_cards ? sums->ms[HOLDER_TRULY_IDLE] : 0);
	view->row = *row;
	if (of_shares)
		view->row.sums.ms[HOLDER_TRULY_IDLE] = view->row.sums.ms[HOLDER_USE_UNKNOWN] =
			view->row.sums.context_share_ms = -1;
	view->some_unknown = of_shares || !sums->ms[HOLDER_USE_UNKNOWN]
				     ? (double)NAN
				     : (double)sums->ms[HOLDER_USE_UNKNOWN];
	if (!isnan(view->squatting)) /* cards cannot squat */
		view->squatting = of_cards ? NAN : (double)sums->ms[HOLDER_SQUATTING];
	view->held = (double)held_ms;
	view->idle_fraction = report_share(sums->ms[HOLDER_IDLE_HELD], held_ms);
	view->unused = report_share(
		audit_waste(sums), held_ms - sums->ms[HOLDER_USE_UNKNOWN] + sums->reserved_ms);
	view->share = (double)(sums->active_share_ms + sums->idle_share_ms);
	view->shown_share = of_shares ? NAN : view->share; /* it equals the hours beside it */
	view->n_processes = of_shares ? NAN : (double)row->n_processes;
	set_cards(view, row);
	/* `cents`: as shown to people. */
	for (size_t part = 0; part <= COSTS; part++)
		view->money[part] = report_bill_money(&sums->cost, part);
	if (isnan(view->reserved))
		view->money[COST_RESERVED] = NAN;
	bool priced = !isnan(view->money[COSTS]);
	view->shown_cost = priced ? report_bill_sum(cents) : NAN;
	view->shown_idle_cost = priced ? (double)cents->parts[COST_IDLE_HELD] / 100 : NAN;
	view->kwh = sums->cost.energy_ms ? sums->cost.energy_mj / 3.6e9 : NAN;
	view->floor_kwh = sums->cost.energy_ms ? sums->cost.floor_mj / 3.6e9 : NAN;
}

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Width that distinguishes notebooks and commands; optional columns give way. */
enum { LONG_LABEL = 26, SHORT_LABEL = 16 };

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

/* Adds user, host and card columns, where the kinds do not already name them. */
static void add_facts(struct choice *c, const struct by *by)
{
	bool host = identity_by_has(by, IDENTITY_HOST), process = false;
	for (size_t i = 0; i < by->n; i++)
		process |= identity_by_measure(by, i, false) == MEASURE_PROCESSES;
	/* For people, the user is shown where a row has only one. */
	if (!identity_by_has(by, IDENTITY_USER))
		append(c, user_columns, process ? COUNT_OF(user_columns) : 1);
	append(c, &place_columns[host], COUNT_OF(place_columns) - host);
	append(c, &count_column, 1);
}

/* Starts the table of users, which is in every report, or that of a breakdown. The columns are
 * in the table's arena. */
static void start_table(
	struct table *t, const struct by *by, const struct audit *a, bool all_users)
{
	struct choice c = { .n = 0 };
	*t = (struct table){ 0 };
	/* The columns that name the identity, for programs and for people. */
	for (size_t i = 0; i < by->n; i++) {
		bool process = by->kinds[i] == IDENTITY_PROCESS;
		append(&c, &key_columns[i], 1)->key =
			process ? "command" : identity_kinds[by->kinds[i]].name;
	}
	struct column *label = append(&c, &label_column, 1);
	label->title =
		by->n < 2 ? identity_kinds[by->kinds[0]].name
			  : arena_textf(&t->texts, "%s, %s", identity_kinds[by->kinds[0]].name,
				    identity_kinds[by->kinds[1]].name);
	for (size_t i = 0; i < by->n; i++)
		if (identity_by_measure(by, i, false) == MEASURE_PROCESSES ||
			by->kinds[i] == IDENTITY_MODEL)
			label->width = a->ms[CARD_RESERVED] ? SHORT_LABEL : LONG_LABEL;
	if (identity_by_has(by, IDENTITY_PROCESS))
		append(&c, process_columns, COUNT_OF(process_columns));
	if (all_users)
		c.items[0].key = "identity";
	if (!all_users && identity_by_measure(by, by->n - 1, a->of_users) == MEASURE_CARDS) {
		append(&c, card_columns, COUNT_OF(card_columns));
	} else {
		if (!all_users)
			add_facts(&c, by);
		append(&c, time_columns, COUNT_OF(time_columns));
		append(&c, cost_columns, COUNT_OF(cost_columns));
	}
	struct column *columns = arena_take(&t->texts, c.n * sizeof(*columns));
	if (columns)
		memcpy(columns, c.items, c.n * sizeof(*columns));
	t->failed = !columns;
	t->columns = columns;
	t->n_columns = columns ? c.n : 0;
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

/* The end of a long path: its last components distinguish notebooks. */
static const char *path_end(const char *path)
{
	const char *end = path + strlen(path), *at = path;
	while (end - at > PATH_SHOWN && strchr(at + 1, '/'))
		at = strchr(at + 1, '/');
	return at;
}

static void add_row(struct listing *l, const struct report_holder *view, struct report_row mark)
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
	struct report_holder view = { .keys = { outer->key, level ? row->key : NULL },
		.shown_user = "(several)",
		.card_index = -1,
		.late_ms = audit_is_late(a, row->known_ms) ? row->known_ms : -1 };
	if (row->user < a->n_identities) {
		view.user = a->identities[row->user].identity;
		view.shown_user = process_shown_user(view.user);
	}
	if (row->host < a->n_hosts)
		view.host = a->hosts[row->host].hostname;
	if (row->card < a->n_cards) {
		view.uuid = a->cards[row->card].id.uuid;
		view.card_index = a->cards[row->card].id.index;
	}
	set_known(&view, a, &row->sums);
	set_numbers(&view, row, l->from->measures[level],
		&l->cents[level][row - l->from->rows[level]]);
	enum identity kind = l->from->by.kinds[level];
	const char *key = row->shown ? row->shown
			  : row->key ? row->key
				     : identity_kinds[kind].none;
	const char *indent = level ? "  " : "";
	char before[16] = "";
	struct report_place place;
	if (kind == IDENTITY_CARD) {
		place = report_place(a, row->card);
		key = place.where;
	} else if (kind == IDENTITY_PROCESS) {
		snprintf(before, sizeof(before), "%u ", (unsigned)row->pid);
	} else if (kind == IDENTITY_NOTEBOOK && path_end(key) != key) {
		str_copy(before, sizeof(before), "...");
		key = path_end(key);
	} else if (kind == IDENTITY_USER) {
		key = process_shown_user(key);
	} else if (kind == IDENTITY_MODEL) {
		key = card_short_name(key);
	}
	snprintf(view.label, sizeof(view.label), "%s%s%s", indent, before, key);
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
	struct report_holder view = {
		.shown_user = "(several)", .card_index = -1, .late_ms = -1
	};
	if (rest->n == 0 || !l->rest)
		return;
	set_known(&view, l->a, &rest->sums.sums);
	set_numbers(&view, &rest->sums, l->from->measures[level], &rest->cents);
	snprintf(view.label, sizeof(view.label), "%s(%zu more)", level ? "  " : "", rest->n);
	add_row(l, &view, (struct report_row){ .level = (unsigned)level, .rest = true });
}

/* How many of n rows are shown. One row beyond the limit is shown itself, instead of "(1
 * more)". */
static size_t shown_of(const struct listing *l, size_t n, size_t top)
{
	return top == 0 || n <= top || (l->rest && n == top + 1) ? n : top;
}

/* Whether row `i` of those at a level is shown, if `n_shown` may be. */
static bool shows(const struct listing *l, size_t i, size_t n_shown)
{
	return i < n_shown && (l->q->most == 0 || l->to->table.n_rows < l->q->most);
}

/* Divides `whole` among the rows of a level that `order` lists; NULL: all rows, in their own
 * order. */
static void divide_costs(struct listing *l, size_t level, const size_t *order, size_t n,
	const struct bill_cents *whole)
{
	struct bill_share *shares = calloc(n + 1, sizeof(*shares));
	for (size_t i = 0; i < n && shares; i++) {
		size_t row = order ? order[i] : i;
		shares[i] = (struct bill_share){ &l->from->rows[level][row].sums.cost,
			&l->cents[level][row] };
	}
	l->failed |= !shares || !report_bill_divide(shares, n, whole);
	free(shares);
}

static void list_inner(struct listing *l, const size_t *order, size_t n)
{
	size_t n_shown = shown_of(l, n, l->q->top_inner);
	struct rest rest = { .n = 0 };
	for (size_t i = 0; i < n; i++) {
		const struct audit_row *row = &l->from->rows[1][order[i]];
		if (shows(l, i, n_shown))
			list_row(l, 1, row);
		else
			leave_out(&rest, row, &l->cents[1][order[i]]);
	}
	list_rest(l, 1, &rest);
}

/* `inner`: the rows of the second level in order, or NULL. */
static void list_all(struct listing *l, const size_t *outer, const size_t *inner)
{
	struct rest rest = { .n = 0 };
	size_t n_inner = inner ? l->from->n[1] : 0;
	size_t at = 0, n_shown = shown_of(l, l->from->n[0], l->q->top);
	bool of_cards = l->from->measures[0] == MEASURE_CARDS;
	divide_costs(l, 0, NULL, l->from->n[0], of_cards ? &l->totals.all : &l->totals.held);
	for (size_t i = 0; i < l->from->n[0]; i++) {
		const struct audit_row *row = &l->from->rows[0][outer[i]];
		const struct bill_cents *cents = &l->cents[0][outer[i]];
		size_t end = at;
		bool shown = shows(l, i, n_shown);
		if (shown)
			list_row(l, 0, row);
		else
			leave_out(&rest, row, cents);
		while (end < n_inner && l->from->rows[1][inner[end]].outer == outer[i])
			end++;
		if (end > at)
			divide_costs(l, 1, inner + at, end - at, cents);
		if (end > at && shown)
			list_inner(l, inner + at, end - at);
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

static bool list_users(struct listing l)
{
	const struct audit *a = l.a;
	struct audit_breakdown users = { .by = { { IDENTITY_USER }, 1 },
		.measures = { a->fleet.asked ? MEASURE_SHARES : MEASURE_PRESENCE } };
	l.from = &users;
	users.rows[0] = calloc(a->n_identities + 1, sizeof(*users.rows[0]));
	start_table(&l.to->table, &users.by, a, true);
	for (uint32_t i = 0; i < a->n_identities && users.rows[0]; i++)
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

void report_holders_add_breakdown(
	struct report *r, const struct audit *a, const struct report_request *q)
{
	struct report_breakdown *to = &r->breakdown;
	struct listing l = { .a = a, .q = q, .from = &a->breakdown, .to = to, .rest = q->rest };
	struct report_request all = *q;
	to->by = q->by;
	for (size_t i = 0; i < q->by.n; i++) {
		enum measure measure = identity_by_measure(&q->by, i, a->of_users);
		if (a->fleet.asked && measure != MEASURE_CARDS)
			measure = MEASURE_SHARES;
		/* For a single user, presence added up over users is plain presence. */
		if (measure == MEASURE_USERS && a->n_identities == 1)
			measure = MEASURE_PRESENCE;
		to->measures[i] = measure;
	}
	if (identity_by_is(&q->by, IDENTITY_USER)) {
		l.failed = !list_users(l);
	} else if (identity_by_is(&q->by, IDENTITY_PROCESS)) {
		report_processes_add(r, a, q);
	} else if (!identity_by_is(&q->by, IDENTITY_CARD)) {
		start_table(&to->table, &a->breakdown.by, a, false);
		list(&l);
	}
	r->failed |= l.failed;
	r->by_card.by = a->by_card.by;
	if (!a->of_users || !a->by_card.by.n)
		return;
	all.top = 0;
	l = (struct listing){ .a = a, .q = &all, .from = &a->by_card, .to = &r->by_card };
	start_table(&r->by_card.table, &a->by_card.by, a, false);
	list(&l);
	r->failed |= l.failed;
}
