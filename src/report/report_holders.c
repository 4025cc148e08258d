/* The columns of the tables of holders. To add a column, add a row to an array of columns. */
#include "report/report_holders.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "audit/audit.h"
#include "report/report_bill.h"

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
		return cell_number(NAN);
	return cell_number((double)sums_of(row)->ms[state]);
}

/* A card is not a squatter. */
static struct cell holder_squatting(const void *row, size_t state)
{
	return is_of_cards(row) ? cell_number(NAN) : holder_ms(row, state);
}

/* 0 becomes unknown, so that text shows the column only if there is some. */
static struct cell holder_some_ms(const void *row, size_t state)
{
	return sums_of(row)->ms[state] ? holder_ms(row, state) : cell_number(NAN);
}

/* A card that nobody uses is not held; a user with little memory on one is there. */
static int64_t held_ms(const void *row)
{
	const int64_t *ms = sums_of(row)->ms;
	if (is_of_shares(row)) /* squatting is beside them */
		return ms[HOLDER_ACTIVE] + ms[HOLDER_IDLE_HELD];
	return audit_holder_ms(ms) - (is_of_cards(row) ? ms[HOLDER_TRULY_IDLE] : 0);
}

static struct cell holder_held(const void *row, size_t of)
{
	(void)of;
	return cell_number((double)held_ms(row));
}

static struct cell holder_idle_fraction(const void *row, size_t of)
{
	(void)of;
	return cell_number(part_of(sums_of(row)->ms[HOLDER_IDLE_HELD], held_ms(row)));
}

/* Of the held time whose use is known. */
static struct cell holder_unused(const void *row, size_t of)
{
	const struct audit_sums *sums = sums_of(row);
	(void)of;
	if (is_of_shares(row))
		return cell_number(part_of(sums->ms[HOLDER_IDLE_HELD], held_ms(row)));
	return cell_number(
		part_of(audit_waste(sums), held_ms(row) - sums->ms[HOLDER_USE_UNKNOWN]));
}

static struct cell holder_share(const void *row, size_t of)
{
	const struct audit_sums *sums = sums_of(row);
	(void)of;
	return cell_number((double)(sums->active_share_ms + sums->idle_share_ms));
}

/* To people; not beside the same. */
static struct cell holder_share_shown(const void *row, size_t of)
{
	return is_of_shares(row) ? cell_number(NAN) : holder_share(row, of);
}

static struct cell holder_idle_share(const void *row, size_t of)
{
	(void)of;
	return cell_number((double)sums_of(row)->idle_share_ms);
}

static struct cell holder_context_share(const void *row, size_t of)
{
	(void)of;
	return cell_number(
		is_of_shares(row) ? (double)NAN : (double)sums_of(row)->context_share_ms);
}

static struct cell holder_peak(const void *row, size_t of)
{
	(void)of;
	return cell_known(sums_of(row)->peak_mem_kib);
}

static struct cell holder_last_active(const void *row, size_t of)
{
	(void)of;
	return cell_known(sums_of(row)->last_active_ms);
}

static struct cell holder_processes(const void *row, size_t of)
{
	(void)of;
	if (is_of_shares(row))
		return cell_number(NAN);
	return cell_number((double)((const struct holder_row *)row)->row->n_processes);
}

static struct cell holder_pid(const void *row, size_t of)
{
	(void)of;
	return cell_number(((const struct holder_row *)row)->row->pid);
}

static struct cell holder_started(const void *row, size_t of)
{
	(void)of;
	return cell_known(((const struct holder_row *)row)->row->started_ms);
}

static struct cell holder_user_shown(const void *row, size_t of)
{
	const char *user = ((const struct holder_row *)row)->user;
	(void)of;
	return cell_text(user ? user_shown(user) : "(several)");
}

static struct cell holder_money(const void *row, size_t part)
{
	return cell_number(cost_money(&sums_of(row)->cost, part));
}

static struct cell holder_shown_money(const void *row, size_t part)
{
	const struct holder_row *view = row;
	if (!view->cents || isnan(cost_money(&view->row->sums.cost, COSTS)))
		return cell_number(NAN);
	return cell_number(
		part == COSTS ? bill_sum(view->cents) : (double)view->cents->parts[part] / 100);
}

static struct cell holder_unpriced(const void *row, size_t of)
{
	(void)of;
	return cell_number((double)sums_of(row)->cost.unpriced_ms);
}

/* Energy, or at 1 the floor in it. */
static struct cell holder_energy(const void *row, size_t of)
{
	const struct audit_cost *cost = &sums_of(row)->cost;
	if (!cost->energy_ms)
		return cell_number(NAN);
	return cell_number((of ? cost->floor_mj : cost->energy_mj) / 3.6e9);
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
/* The columns of a kind: how programs name it, and more about it. */
static const struct column key_columns[BY_MAX] = { { TEXT(get_string, OF(keys[0])) },
	{ TEXT(get_string, OF(keys[1])) } };
static const struct column label_column = { .flexible = true, TEXT(get_chars, OF(label)) };
static const struct column user_columns[] = {
	{ .key = "user", TEXT(get_string, OF(user)) },
	{ .title = "user", .width = -12, TEXT(holder_user_shown, 0) },
};
static const struct column place_columns[] = {
	{ .key = "host", TEXT(get_string, OF(host)) },
	{ .key = "gpu", TEXT(get_string, OF(uuid)) },
	{ .key = "gpu_index", VALUE(COUNT, get_known, OF(card_index)) },
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
	return cell_number((double)((const struct holder_row *)row)->row->n_cards);
}

static struct cell cards_unobserved(const void *row, size_t of)
{
	(void)of;
	return cell_number((double)((const struct holder_row *)row)->row->unobserved_ms);
}

static struct cell cards_observed(const void *row, size_t of)
{
	(void)of;
	return cell_number((double)audit_holder_ms(sums_of(row)->ms));
}

static struct cell cards_share(const void *row, size_t state)
{
	const int64_t *ms = sums_of(row)->ms;
	return cell_number(part_of(ms[state], audit_holder_ms(ms)));
}

/* Rounded together with the other states. */
static struct cell cards_shown(const void *row, size_t state)
{
	double shown[SHARES_MAX];
	shown_held_shares(sums_of(row)->ms, shown);
	return cell_number(shown[state]);
}

static struct cell cards_some_shown(const void *row, size_t state)
{
	return sums_of(row)->ms[state] ? cards_shown(row, state) : cell_number(NAN);
}

static struct cell cards_coverage(const void *row, size_t of)
{
	int64_t seen_ms = audit_holder_ms(sums_of(row)->ms);
	(void)of;
	return cell_number(part_of(
		seen_ms, seen_ms + ((const struct holder_row *)row)->row->unobserved_ms));
}

static struct cell cards_known_since(const void *row, size_t of)
{
	(void)of;
	return cell_known(((const struct holder_row *)row)->row->known_ms);
}

/* To people; not of what is known since before the window. */
static struct cell cards_late(const void *row, size_t of)
{
	(void)of;
	return cell_known(((const struct holder_row *)row)->late_ms);
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

/* What notebooks and commands need to be told apart; columns that are optional make room. */
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

/* How programs read the kinds, and how people do. */
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
	if (by_has(by, IDENTITY_PROCESS))
		append(c, process_columns, COUNT_OF(process_columns));
}

/* Whose time it is, and of which cards, where the kinds do not tell. */
static void add_facts(struct choice *c, const struct by *by)
{
	bool host = by_has(by, IDENTITY_HOST), process = false;
	for (size_t i = 0; i < by->n; i++)
		process |= by_measure(by, i, false) == MEASURE_PROCESSES;
	/* To people it is said of what has one user. */
	if (!by_has(by, IDENTITY_USER))
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

void holder_table_of_users(struct table *t)
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

void holder_table_by(struct table *t, const struct by *by, bool of_users)
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
