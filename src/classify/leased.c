/* Finds which leases of a card count at a moment, divides time among them, and adds it up. */
#include "classify/leased.h"

enum { DAY_S = 86400 };

/* Whether a lease covers the moment, surely or perhaps. */
static enum leased leased_by(const struct card_lease *lease, int64_t at_ms)
{
	if (at_ms < lease->from_ms || at_ms >= lease->to_ms)
		return LEASED_NOT;
	return at_ms >= lease->unknown_ms ? LEASED_MAYBE : LEASED_SURELY;
}

void leased_find(
	const struct card_lease *leases, size_t n, int64_t at_ms, struct leased_now *now)
{
	size_t place[LEASED_MAX], own[LEASED_MAX], owners = 0;
	n = n < LEASED_MAX ? n : LEASED_MAX;
	/* The stretch around the moment in which nothing changes. */
	*now = (struct leased_now){ .from_ms = INT64_MIN, .to_ms = INT64_MAX };
	for (size_t i = 0; i < n; i++) {
		const int64_t moments[] = { leases[i].from_ms, leases[i].to_ms,
			leases[i].unknown_ms };
		for (size_t k = 0; k < sizeof(moments) / sizeof(moments[0]); k++)
			if (moments[k] > at_ms && moments[k] < now->to_ms)
				now->to_ms = moments[k];
			else if (moments[k] <= at_ms && moments[k] > now->from_ms)
				now->from_ms = moments[k];
	}
	/* The leases that count: of those that cover the moment as surely as any does,
	 * all but the picks whose owner has another kind. */
	for (size_t i = 0; i < n; i++) {
		enum leased by = leased_by(&leases[i], at_ms);
		now->leased = by > now->leased ? by : now->leased;
	}
	for (size_t i = 0; i < n && now->leased != LEASED_NOT; i++) {
		bool hidden = false;
		for (size_t k = 0; leases[i].pick && k < n; k++)
			hidden |= !leases[k].pick && leases[k].owner == leases[i].owner &&
				  leased_by(&leases[k], at_ms) == now->leased;
		if (leased_by(&leases[i], at_ms) == now->leased && !hidden)
			now->counts |= UINT64_C(1) << i;
	}
	/* The places of owners, and of each lease among those of its owner. */
	for (size_t i = 0; i < n; i++) {
		place[i] = owners;
		own[i] = 0;
		for (size_t k = 0; k < i; k++)
			if (now->counts >> k & 1 && leases[k].owner == leases[i].owner) {
				place[i] = place[k];
				own[i]++;
			}
		owners += now->counts >> i & 1 && own[i] == 0;
	}
	for (size_t i = 0; i < n; i++) {
		size_t all = 0;
		for (size_t k = 0; k < n; k++)
			all += now->counts >> k & 1 && leases[k].owner == leases[i].owner;
		now->before[i] = (uint16_t)(place[i] * all + own[i]);
		now->of[i] = (uint16_t)(owners * all);
	}
}

/* The whole milliseconds of a part of the time between two moments. It depends on the moments
 * themselves, so that what is rounded off in one stretch is added in the next. */
static int64_t part_of(int64_t from_ms, int64_t to_ms, int64_t part, int64_t of)
{
	return to_ms / of * part + to_ms % of * part / of -
	       (from_ms / of * part + from_ms % of * part / of);
}

int64_t leased_part_ms(
	const struct leased_now *now, size_t lease, int64_t from_ms, int64_t to_ms)
{
	int64_t before = now->before[lease], of = now->of[lease];
	return of == 1 ? to_ms - from_ms
		       : part_of(from_ms, to_ms, before + 1, of) -
				 part_of(from_ms, to_ms, before, of);
}

static void settle(struct card_lease *lease, uint32_t card, struct ledger *ledger)
{
	const struct lease_sum *own = &lease->sum;
	struct lease_sum *sum = ledger_leased(ledger, own->slot, card, lease->lease);
	if (sum) {
		sum->reserved_ms += own->reserved_ms;
		sum->unknown_ms += own->unknown_ms;
		sum->active_ms += own->active_ms;
		sum->idle_held_ms += own->idle_held_ms;
		sum->use_unknown_ms += own->use_unknown_ms;
		sum->untouched_ms += own->untouched_ms;
	}
	lease->sum = (struct lease_sum){ .slot = -1 };
}

/* Settles the part that is kept by slot. The lease's own time is kept by day: as long as that
 * is the same, it goes on in the next slot, so that a tick writes it once. */
static void begin_slot(
	struct card_lease *lease, const struct leased_piece *piece, struct ledger *ledger)
{
	struct lease_sum own = lease->sum;
	bool same_day = own.slot / DAY_S == piece->slot / DAY_S;
	if (same_day)
		lease->sum = (struct lease_sum){ .slot = own.slot,
			.reserved_ms = own.reserved_ms,
			.unknown_ms = own.unknown_ms };
	if (!same_day || own.reserved_ms || own.unknown_ms)
		settle(lease, piece->card, ledger);
	own.reserved_ms = own.unknown_ms = 0;
	lease->sum = same_day ? own : (struct lease_sum){ 0 };
}

void leased_settle(struct card_lease *leases, size_t n, uint32_t card, struct ledger *ledger)
{
	for (size_t i = 0; i < n; i++)
		if (leases[i].sum.slot >= 0)
			settle(&leases[i], card, ledger);
}

void leased_add(struct card_lease *leases, const struct leased_now *now,
	const struct leased_piece *piece, struct ledger *ledger)
{
	bool surely = now->leased == LEASED_SURELY;
	for (size_t i = 0; i < LEASED_MAX && now->counts >> i; i++) {
		struct lease_sum *sum = &leases[i].sum;
		if (!(now->counts >> i & 1))
			continue;
		if (sum->slot >= 0 && sum->slot != piece->slot)
			begin_slot(&leases[i], piece, ledger);
		sum->slot = piece->slot;
		if (piece->free)
			*(surely ? &sum->reserved_ms : &sum->unknown_ms) +=
				leased_part_ms(now, i, piece->from_ms, piece->to_ms);
		if (surely)
			*(piece->use_unknown		 ? &sum->use_unknown_ms
				: piece->active >> i & 1 ? &sum->active_ms
				: piece->held >> i & 1	 ? &sum->idle_held_ms
							 : &sum->untouched_ms) +=
				piece->to_ms - piece->from_ms;
	}
}
