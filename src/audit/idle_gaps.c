/* Reads the times in which cards were not observed. */
#include <stdlib.h>

#include "base/array.h"
#include "audit/idle_private.h"
#include "store/sql.h"

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

/* Takes a slot of a card with its observed time. A missing slot is a gap. Time that is
 * missing within a slot counts as its beginning, so that an idle clock is late rather than
 * early. The exception is a one-minute slot after one without a gap: there it counts as the
 * end, where a gap begins that continues in the next slot. */
static bool take_slot(struct fold *fold, sqlite3_value **values)
{
	struct gap_fold *f = fold->context;
	uint32_t card = idmap_get(&f->h->card_ids, sqlite3_value_int64(values[1]));
	if (card == IDMAP_NONE)
		return true;
	int64_t from_ms = sql_value_signed(values[0]) * 1000, *seen = &f->seen_until[card];
	int64_t observed_ms = sql_value_sum(values[2]);
	/* The current slot is only as long as the time that has passed. */
	int64_t passed_ms = f->h->last_tick_ms - from_ms;
	int64_t length_ms = passed_ms < 0 ? 0 : passed_ms < f->slot_ms ? passed_ms : f->slot_ms;
	int64_t missing_ms = observed_ms < length_ms ? length_ms - observed_ms : 0;
	bool ok = *seen < 0 || add_gap(f, card, *seen, from_ms);
	/* Before the first slot nothing was recorded. */
	bool after_gap = f->gap_to[card] == from_ms || *seen < from_ms;
	if (f->slot_ms == MINUTE_MS && !after_gap)
		from_ms += length_ms - missing_ms;
	*seen = sql_value_signed(values[0]) * 1000 + f->slot_ms;
	f->gap_to[card] = from_ms + missing_ms;
	return ok && add_gap(f, card, from_ms, from_ms + missing_ms);
}

int idle_read_gaps(struct idle_history *h, struct err *e)
{
	struct gap_fold f = { .h = h };
	f.fold = (struct fold){ .row = take_slot, .context = &f };
	if (!h->n_processes)
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
	/* A card without slots up to the last tick is no longer observed. */
	for (uint32_t i = 0; i < h->n_cards && rc == 0; i++)
		if (f.seen_until[i] >= 0 && !add_gap(&f, i, f.seen_until[i], h->last_tick_ms))
			rc = err_memory(e);
	free(f.seen_until);
	free(f.gap_to);
	idle_join_gaps(h);
	return rc;
}
