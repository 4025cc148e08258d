/* Reads the slots in which a process of a session used a card at all, and the times that
 * nobody observed. */
#include <stdlib.h>

#include "base/array.h"
#include "query/idle_private.h"
#include "query/sql.h"

struct mark_fold {
	struct fold fold;
	struct idle_history *h;
	int64_t slot_ms; /* length of a slot */
	/* The spans of each process, in h->spans' order: first[p] .. first[p + 1] - 1 of
	 * `order`. */
	size_t *first, *order;
};

/* Sorts the spans by their process. */
static bool index_spans(struct mark_fold *f)
{
	const struct idle_history *h = f->h;
	f->first = calloc(h->n_processes + 2, sizeof(*f->first));
	f->order = calloc(h->n_spans + 1, sizeof(*f->order));
	if (!f->first || !f->order)
		return false;
	for (size_t i = 0; i < h->n_spans; i++)
		f->first[h->spans[i].process + 2]++;
	for (size_t p = 2; p < h->n_processes + 2; p++)
		f->first[p] += f->first[p - 1];
	for (size_t i = 0; i < h->n_spans; i++)
		f->order[f->first[h->spans[i].process + 1]++] = i;
	return true;
}

/* A process that was active in the slot was so outside of its own idle stretches: the slot in
 * which one begins or ends is cut there. */
static void cut_mark(
	const struct mark_fold *f, struct idle_mark *m, uint32_t process, uint32_t card)
{
	int64_t from_ms = m->from_ms, until_ms = m->until_ms;
	for (size_t i = f->first[process]; i < f->first[process + 1]; i++) {
		const struct idle_span *s = &f->h->spans[f->order[i]];
		if (s->card != card || s->end_ms < from_ms || s->begin_ms > until_ms)
			continue;
		bool begins = s->begin_ms > from_ms, ends = s->end_ms < until_ms;
		if (begins && !ends && s->begin_ms < m->until_ms)
			m->until_ms = s->begin_ms;
		if (ends && !begins && s->end_ms > m->from_ms)
			m->from_ms = s->end_ms;
	}
}

enum { AT_SLOT, AT_GPU, AT_PROCESS, AT_ACTIVE, AT_ENGINE };

static bool take_mark(struct fold *fold, sqlite3_value **values)
{
	struct mark_fold *f = fold->context;
	struct idle_history *h = f->h;
	uint32_t process = idmap_get(&h->process_ids, sqlite3_value_int64(values[AT_PROCESS]));
	uint32_t card = idmap_get(&h->card_ids, sqlite3_value_int64(values[AT_GPU]));
	if (process == IDMAP_NONE || card == IDMAP_NONE)
		return true;
	struct idle_mark mark = { .session = h->processes[process].session,
		.card = card,
		.from_ms = value_signed(values[AT_SLOT]) * 1000 };
	mark.until_ms = mark.from_ms + f->slot_ms;
	/* An engine is used in idle stretches as well. */
	if (value_sum(values[AT_ACTIVE]) > 0 && value_sum(values[AT_ENGINE]) == 0)
		cut_mark(f, &mark, process, card);
	if (mark.until_ms < mark.from_ms)
		return true;
	if (!array_one_more(&h->marks, h->n_marks)) {
		err_memory(fold->e);
		return false;
	}
	h->marks[h->n_marks++] = mark;
	return true;
}

int64_t idle_first_ms(const struct idle_history *h)
{
	int64_t first = h->n_spans ? h->spans[0].begin_ms : INT64_MAX;
	return !h->present && h->since_ms < first ? h->since_ms : first;
}

/* Where the driver has no use by process, the card's own use of one percent or more counts; use
 * that is not known at all counts as use. */
#define USED                                                                                   \
	"(active_ms > 0 OR sm_pct_ms > 0 OR engine_ms > 0 OR use_unknown_ms > 0 OR "           \
	"(sm_pct_ms IS NULL AND (SELECT "                                                      \
	"sum(util_pct_ms) >= sum(ms) FROM %s AS u WHERE u.slot = h.slot AND u.gpu = h.gpu "    \
	"AND u.state IN (0, 1, 2))))"

int idle_read_marks(struct idle_history *h, struct err *e)
{
	struct mark_fold f = { .h = h };
	f.fold = (struct fold){ .row = take_mark, .context = &f };
	int rc = h->n_spans == 0 ? 0 : index_spans(&f) ? 0 : err_memory(e);
	for (size_t i = 0; i < SLOT_TABLES && rc == 0 && h->n_spans; i++) {
		const struct slot_table *t = &slot_tables[i];
		f.slot_ms = t->seconds * 1000;
		rc = sql_fold(h->db, &f.fold, e,
			"SELECT fold(slot, gpu, process, active_ms, engine_ms) FROM %s AS h "
			"WHERE slot >= %lld AND slot < %lld AND " USED,
			t->holding, (long long)(idle_first_ms(h) / 1000 - t->seconds),
			(long long)(h->until_ms / 1000 + 1), t->usage);
	}
	free(f.first);
	free(f.order);
	return rc;
}

#define MINUTE_MS INT64_C(60000)

struct gap_fold {
	struct fold fold;
	struct idle_history *h;
	int64_t slot_ms;
	int64_t *seen_until; /* by card: slots were read up to here, or -1 */
	int64_t *gap_to;     /* by card: the end of its last gap */
};

static bool add_gap(struct gap_fold *f, uint32_t card, int64_t from_ms, int64_t to_ms)
{
	struct idle_history *h = f->h;
	if (to_ms <= from_ms)
		return true;
	if (!array_one_more(&h->gaps, h->n_gaps)) {
		err_memory(f->fold.e);
		return false;
	}
	h->gaps[h->n_gaps++] = (struct idle_gap){ card, from_ms, to_ms };
	return true;
}

/* A slot of a card with its observed time. Slots that are missing are a gap. What is missing in
 * a slot is at its beginning: an idle clock is late rather than early. Only in a slot of a
 * minute after one without a gap it is at the end, where a gap begins that goes on in the next.
 */
static bool take_slot(struct fold *fold, sqlite3_value **values)
{
	struct gap_fold *f = fold->context;
	uint32_t card = idmap_get(&f->h->card_ids, sqlite3_value_int64(values[1]));
	if (card == IDMAP_NONE)
		return true;
	int64_t from_ms = value_signed(values[0]) * 1000, *seen = &f->seen_until[card];
	int64_t observed_ms = value_sum(values[2]);
	int64_t missing_ms = observed_ms < f->slot_ms ? f->slot_ms - observed_ms : 0;
	bool ok = *seen < 0 || add_gap(f, card, *seen, from_ms);
	bool after_gap = f->gap_to[card] == from_ms || (*seen >= 0 && *seen < from_ms);
	if (f->slot_ms == MINUTE_MS && !after_gap)
		from_ms += f->slot_ms - missing_ms;
	*seen = value_signed(values[0]) * 1000 + f->slot_ms;
	f->gap_to[card] = from_ms + missing_ms;
	return ok && add_gap(f, card, from_ms, from_ms + missing_ms);
}

int idle_read_gaps(struct idle_history *h, struct err *e)
{
	struct gap_fold f = { .h = h };
	f.fold = (struct fold){ .row = take_slot, .context = &f };
	if (!h->n_spans)
		return 0;
	f.seen_until = malloc((h->n_cards + 1) * sizeof(*f.seen_until));
	f.gap_to = calloc(h->n_cards + 1, sizeof(*f.gap_to));
	int rc = f.seen_until && f.gap_to ? 0 : err_memory(e);
	for (size_t i = 0; i < h->n_cards && rc == 0; i++)
		f.seen_until[i] = -1;
	/* The coarsest table has the oldest slots: in this order, time does not go back. */
	for (size_t i = 0; i < SLOT_TABLES && rc == 0; i++) {
		f.slot_ms = slot_tables[i].seconds * 1000;
		rc = sql_fold(h->db, &f.fold, e,
			"SELECT fold(slot, gpu, ms) FROM (SELECT slot, gpu, "
			"sum(iif(state = 3, 0, ms)) AS ms FROM %s WHERE slot >= %lld "
			"GROUP BY slot, gpu ORDER BY slot)",
			slot_tables[i].usage,
			(long long)(idle_first_ms(h) / 1000 - slot_tables[i].seconds));
	}
	free(f.seen_until);
	free(f.gap_to);
	return rc;
}
