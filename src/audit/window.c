/* Sets the window of an audit: what is asked for and was recorded, at whole slots. */
#include "audit/gather.h"
#include "store/sums.h"
#include "driver/source.h"

/* What a file's slots tell: where they begin and end, and which slots a window cuts. */
enum {
	AT_FIRST,
	AT_LAST,
	AT_FROM,
	AT_TO,
	OF_TABLE,
	AT_SEEN = OF_TABLE * SLOT_TABLES,
	AT_TICK,
	AT_SUMS
};
#define OF_SLOTS(table)                                                                        \
	"(SELECT min(slot) FROM " table "), (SELECT max(slot) FROM " table                     \
	"), EXISTS (SELECT 1 FROM " table " WHERE slot = %lld), EXISTS (SELECT 1 FROM " table  \
	" WHERE slot = %lld), "
#define BOUNDS_SQL                                                                             \
	"SELECT " OF_SLOTS("usage_1h") OF_SLOTS("usage_5m") OF_SLOTS(                          \
		"usage_1m") "(SELECT min(first_seen_ms) FROM gpu), (SELECT max(last_tick_ms) " \
			    "FROM run), (" SUMS_END_SQL ")"

/* The start of the slot of a table that a moment is in. */
static long long start_of(int64_t ms, int table)
{
	return ms / 1000 - ms / 1000 % slot_tables[table].seconds;
}

/* Sets where the slots of each table begin and end, and where a file's data does. */
static void set_bounds(struct gather_file *file, sqlite3_stmt *row)
{
	int64_t oldest = INT64_MAX, newest = -1;
	for (int i = 0; i < SLOT_TABLES; i++) {
		const struct slot_table *t = &slot_tables[i];
		int64_t first = sql_int(row, OF_TABLE * i + AT_FIRST, -1),
			last = sql_int(row, OF_TABLE * i + AT_LAST, -1);
		if (first < 0 || last < first || last > ROW_MAX)
			continue;
		file->slots[i] = (struct slot_span){ first, last + t->seconds };
		oldest = clock_earlier(oldest, first * 1000);
		newest = clock_later(newest, (last + t->seconds) * 1000);
	}
	if (newest < 0)
		return;
	int64_t first = sql_int(row, AT_SEEN, 0), tick = sql_int(row, AT_TICK, -1);
	file->summed_s = sql_int(row, AT_SUMS, 0);
	file->first_slot_ms = oldest;
	/* The start of a slot is rounded; the first card's and the last tick's are exact. */
	if (first > oldest && first < oldest + slot_tables[0].seconds * 1000)
		oldest = first;
	if (tick < newest && tick > newest - slot_tables[0].seconds * 1000)
		newest = tick;
	file->oldest_ms = oldest;
	file->newest_ms = newest;
}

/* Moves the file's window outward to the edges of the slots that it cuts: the widest first. */
static void widen(struct gather_file *file, sqlite3_stmt *row)
{
	bool from = false, to = false;
	for (int i = 0; i < SLOT_TABLES; i++) {
		if (!from && sqlite3_column_int(row, OF_TABLE * i + AT_FROM)) {
			file->from_ms = start_of(file->from_ms, i) * 1000;
			from = true;
		}
		if (!to && sqlite3_column_int(row, OF_TABLE * i + AT_TO)) {
			file->to_ms =
				(start_of(file->to_ms - 1, i) + slot_tables[i].seconds) * 1000;
			to = true;
		}
	}
}

/* While a host's recorder is running, its window ends at its last tick: later time is not
 * unobserved, it is only not accounted yet. */
static void end_windows(struct gather *g, int64_t until_ms)
{
	g->a->until_ms = g->a->n_hosts ? INT64_MIN : until_ms;
	for (size_t i = 0; i < g->a->n_hosts; i++) {
		struct audit_host *host = &g->a->hosts[i];
		host->until_ms = until_ms;
		if (host->recording)
			host->until_ms = clock_earlier(host->last_tick_ms, until_ms);
		if (!host->left_out)
			g->a->until_ms = clock_later(g->a->until_ms, host->until_ms);
	}
}

/* Copies the state of hosts and the rules from the runs in the window. */
static void judge_runs(struct gather *g)
{
	const struct gather_run *newest = NULL;
	for (size_t i = 0; i < g->n_runs; i++) {
		const struct gather_run *run = &g->runs[i];
		struct audit_host *host = &g->a->hosts[run->host];
		if (run->started_ms >= g->a->until_ms || run->last_tick_ms < g->a->since_ms ||
			host->left_out)
			continue;
		host->ran = true;
		host->simulated |= source_is_invented(run->source);
		host->captured |= source_is_captured(run->source);
		host->imported |= strcmp(run->source, "import") == 0;
		host->has_leases |= run->leases;
		g->a->has_leases |= run->leases;
		g->a->strict |= run->strict;
		if (newest && (!state_rules_equal(&newest->rules, &run->rules) ||
				      newest->rules.spell_ms != run->rules.spell_ms))
			g->a->rules_mixed = true;
		if (!newest || run->started_ms >= newest->started_ms)
			newest = run;
	}
	if (newest)
		g->a->rules = newest->rules;
}

/* Finds the hosts that a recorder measured. True: there are none, because all data was
 * imported or simulated. */
static bool is_past(struct gather *g)
{
	bool past = true;
	for (size_t i = 0; i < g->n_runs; i++) {
		const struct gather_run *run = &g->runs[i];
		struct audit_host *host = &g->a->hosts[run->host];
		host->measured |=
			strcmp(run->source, "import") != 0 &&
			(source_is_measured(run->source) || !source_is_invented(run->source));
		past &= host->left_out || !host->measured;
	}
	return past;
}

/* If the audit is restricted to some cards, only their data counts. */
static void restrict_bounds(struct gather *g)
{
	struct audit *a = g->a;
	int64_t oldest_ms = INT64_MAX, newest_ms = -1;
	if (!restriction_of_cards(&g->q->only) || a->oldest_ms < 0)
		return;
	for (size_t i = 0; i < a->n_cards; i++) {
		const struct audit_card *card = &a->cards[i];
		if (card->left_out)
			continue;
		oldest_ms = clock_earlier(oldest_ms, card->first_seen_ms);
		newest_ms = clock_later(newest_ms, card->last_seen_ms);
	}
	if (oldest_ms <= newest_ms && oldest_ms > a->oldest_ms && oldest_ms < a->newest_ms)
		a->oldest_ms = oldest_ms;
	if (newest_ms > a->oldest_ms && newest_ms < a->newest_ms)
		a->newest_ms = newest_ms;
}

int window_read_bounds(struct gather *g, struct gather_file *file, struct err *e)
{
	sqlite3_stmt *row = NULL;
	int64_t from = clock_later(g->q->since_ms, 0);
	int64_t to = clock_earlier(g->q->until_ms, g->q->now_ms), last = to > 0 ? to - 1 : 0;
	file->from_ms = from;
	file->to_ms = to;
	file->oldest_ms = file->newest_ms = -1;
	int rc = sql_prepare(file->db, &row, e, BOUNDS_SQL, start_of(from, 0),
		start_of(last, 0), start_of(from, 1), start_of(last, 1), start_of(from, 2),
		start_of(last, 2));
	if (sql_next(&row, &rc, e)) {
		set_bounds(file, row);
		if (from < to)
			widen(file, row);
	}
	sqlite3_finalize(row);
	return rc;
}

void window_add_bounds(struct gather *g, const struct gather_file *file)
{
	struct audit *a = g->a;
	g->from_ms = clock_earlier(g->from_ms, file->from_ms);
	g->to_ms = clock_later(g->to_ms, file->to_ms);
	if (file->oldest_ms < 0)
		return;
	if (a->oldest_ms < 0 || file->first_slot_ms < g->first_slot_ms)
		g->first_slot_ms = file->first_slot_ms;
	if (a->oldest_ms < 0 || file->oldest_ms < a->oldest_ms)
		a->oldest_ms = file->oldest_ms;
	a->newest_ms = clock_later(a->newest_ms, file->newest_ms);
}

/* Whether a slot table has slots in the span. */
static bool has_slots(const struct gather_file *file, int table, struct slot_span span)
{
	const struct slot_span *has = &file->slots[table];
	return clock_later(has->from, span.from) < clock_earlier(has->to, span.to);
}

/* Sets how wide the widest slot in the window is. */
static void set_resolution(struct gather *g)
{
	const struct slot_span window = { g->from_slot, g->to_slot };
	for (size_t i = 0; i < g->n_files; i++)
		for (int table = 0; table < SLOT_TABLES; table++)
			if (!g->files[i].code && has_slots(&g->files[i], table, window))
				g->a->resolution_ms = clock_later(
					g->a->resolution_ms, slot_tables[table].seconds * 1000);
}

int window_set(struct gather *g, struct err *e)
{
	struct audit *a = g->a;
	int64_t from_ms = g->from_ms, to_ms = g->to_ms;
	(void)e;
	restrict_bounds(g);
	audit_clip(a, g->q, is_past(g));
	if (a->oldest_ms < 0 || a->until_ms <= a->since_ms)
		return 0;
	if (a->since_ms > g->q->since_ms)
		from_ms = g->first_slot_ms;
	if (a->until_ms < a->asked_until_ms)
		to_ms = a->until_ms;
	g->from_slot = (from_ms + 999) / 1000;
	g->to_slot = (to_ms + 999) / 1000;
	a->since_ms = clock_later(from_ms, a->oldest_ms);
	end_windows(g, clock_earlier(to_ms, g->q->now_ms));
	judge_runs(g);
	set_resolution(g);
	return 0;
}

static void add_read(struct window_reads *r, const struct slot_table *table,
	struct slot_span span, bool summed)
{
	if (span.from < span.to)
		r->items[r->n++] = (struct window_read){ table, span, summed };
}

static void add_slots(
	struct window_reads *r, const struct gather_file *file, struct slot_span span)
{
	for (int i = 0; i < SLOT_TABLES; i++)
		if (has_slots(file, i, span))
			add_read(r, &slot_tables[i], span, false);
}

/* Sums of hours are in two tables, one of which has no finer slots. */
static void add_hours(
	struct window_reads *r, const struct gather_file *file, struct slot_span span)
{
	static const struct slot_table fine = { "usage_hour", "holding_hour", NULL, 3600 };
	if (has_slots(file, 0, span))
		add_read(r, &slot_tables[0], span, true);
	if (has_slots(file, 1, span) || has_slots(file, 2, span))
		add_read(r, &fine, span, true);
}

struct window_reads window_reads(
	const struct gather *g, const struct gather_file *file, enum window_level level)
{
	static const struct slot_table days = { "usage_1d", "holding_1d", NULL, 86400 };
	const int64_t hour = 3600, day = 86400, from = g->from_slot, to = g->to_slot,
		      end = file->summed_s;
	struct window_reads r = { .n = 0 };
	/* Rows of the last hour and day have what is before the end of the sums: they can be
	 * taken if the window does not end earlier. */
	int64_t first = (from + hour - 1) / hour * hour,
		last = to >= end ? end : to / hour * hour;
	int64_t first_day = (from + day - 1) / day * day,
		last_day = to >= end ? (end + day - 1) / day * day : to / day * day;
	if (level == WINDOW_BY_SLOT || first >= last) {
		add_slots(&r, file, (struct slot_span){ from, to });
		return r;
	}
	if (level == WINDOW_BY_HOUR || first_day >= last_day)
		first_day = last_day = last;
	r.hours = (struct slot_span){ first, last };
	add_slots(&r, file, (struct slot_span){ from, first });
	add_hours(&r, file, (struct slot_span){ first, first_day });
	add_read(&r, &days, (struct slot_span){ first_day, last_day }, true);
	add_hours(&r, file, (struct slot_span){ last_day, last });
	add_slots(&r, file, (struct slot_span){ last, to });
	return r;
}
