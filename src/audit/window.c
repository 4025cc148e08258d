/* Sets the window of an audit: the requested time, limited to the recorded time, at whole
 * slots. */
#include <string.h>

#include "audit/gather.h"
#include "base/clock.h"
#include "store/sql.h"
#include "driver/source.h"

/* Finds where the slots of a file begin and end; first > last: there are none. */
static int slot_bounds(
	struct gather_file *file, int64_t *first_ms, int64_t *last_ms, struct err *e)
{
	for (int i = 0; i < SLOT_TABLES; i++) {
		const struct slot_table *t = &slot_tables[i];
		int64_t first = -1, last = -1;
		int rc = sql_number(file->db, &first, e, "SELECT MIN(slot) FROM %s", t->usage);
		if (rc == 0)
			rc = sql_number(
				file->db, &last, e, "SELECT MAX(slot) FROM %s", t->usage);
		if (rc)
			return rc;
		if (first < 0 || last < first || last > ROW_MAX)
			continue;
		*first_ms = clock_earlier(*first_ms, first * 1000);
		*last_ms = clock_later(*last_ms, (last + t->seconds) * 1000);
	}
	return 0;
}

/* Finds where a file's data begins and ends. */
static int file_bounds(struct gather_file *file, struct err *e)
{
	int64_t oldest = INT64_MAX, newest = -1, first = 0, tick = -1;
	file->oldest_ms = file->newest_ms = -1;
	int rc = slot_bounds(file, &oldest, &newest, e);
	if (rc || newest < 0)
		return rc;
	file->first_slot_ms = oldest;
	rc = sql_number(file->db, &first, e, "SELECT MIN(first_seen_ms) FROM gpu");
	if (rc == 0)
		rc = sql_number(file->db, &tick, e, "SELECT MAX(last_tick_ms) FROM run");
	/* The start of a slot is rounded; the times of the first card and the last tick are
	 * exact. */
	if (first > oldest && first < oldest + slot_tables[0].seconds * 1000)
		oldest = first;
	if (tick < newest && tick > newest - slot_tables[0].seconds * 1000)
		newest = tick;
	file->oldest_ms = oldest;
	file->newest_ms = newest;
	return rc;
}

/* Whether a slot of that table starts there. */
static int slot_exists(struct gather_file *file, const struct slot_table *t, int64_t slot,
	bool *exists, struct err *e)
{
	int64_t found = 0;
	int rc = sql_number(file->db, &found, e, "SELECT 1 FROM %s WHERE slot = %lld LIMIT 1",
		t->usage, (long long)slot);
	*exists = found == 1;
	return rc;
}

/* Moves *from_ms and *to_ms outward to the edges of the slots that they cut. */
static int widen(struct gather_file *file, int64_t *from_ms, int64_t *to_ms, struct err *e)
{
	for (int i = 0; i < SLOT_TABLES; i++) {
		const struct slot_table *t = &slot_tables[i];
		int64_t width_ms = t->seconds * 1000;
		int64_t first_ms = *from_ms - *from_ms % width_ms;
		int64_t last_ms = (*to_ms - 1) - (*to_ms - 1) % width_ms;
		bool exists = false;
		int rc = slot_exists(file, t, first_ms / 1000, &exists, e);
		if (rc == 0 && exists)
			*from_ms = first_ms;
		if (rc == 0)
			rc = slot_exists(file, t, last_ms / 1000, &exists, e);
		if (rc)
			return rc;
		if (exists)
			*to_ms = last_ms + width_ms;
	}
	return 0;
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
	int rc = file_bounds(file, e);
	file->from_ms = clock_later(g->q->since_ms, 0);
	file->to_ms = clock_earlier(g->q->until_ms, g->q->now_ms);
	if (rc == 0 && file->from_ms < file->to_ms)
		rc = widen(file, &file->from_ms, &file->to_ms, e);
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
	return 0;
}

struct window_parts window_parts(const struct gather *g, bool by_hour)
{
	const int64_t day = 86400, from = g->from_slot, to = g->to_slot;
	int64_t first = (from + day - 1) / day * day, last = to / day * day;
	if (first >= last || by_hour)
		first = last = to;
	return (struct window_parts){ { from, to }, { from, first }, { first, last },
		{ last, to } };
}
