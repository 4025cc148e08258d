/* Finds which leases of a card count at a moment, and divides time among them. */
#include "classify/leased.h"

static int64_t min64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

int64_t leased_next_ms(
	const struct card_lease *leases, size_t n, int64_t at_ms, int64_t next_ms)
{
	for (size_t i = 0; i < n; i++) {
		const int64_t moments[] = { leases[i].from_ms, leases[i].to_ms,
			leases[i].unknown_ms };
		for (size_t k = 0; k < sizeof(moments) / sizeof(moments[0]); k++)
			if (moments[k] > at_ms)
				next_ms = min64(next_ms, moments[k]);
	}
	return next_ms;
}

/* Whether a lease covers the moment, surely or perhaps. */
static enum leased leased_by(const struct card_lease *lease, int64_t at_ms)
{
	if (at_ms < lease->from_ms || at_ms >= lease->to_ms)
		return LEASED_NOT;
	return at_ms >= lease->unknown_ms ? LEASED_MAYBE : LEASED_SURELY;
}

/* Marks the leases that count: of those that cover the moment as surely as any does, all but
 * the picks whose owner has another kind. */
static void find_counting(
	const struct card_lease *leases, size_t n, int64_t at_ms, struct leased_parts *parts)
{
	for (size_t i = 0; i < n; i++) {
		enum leased by = leased_by(&leases[i], at_ms);
		parts->leased = by > parts->leased ? by : parts->leased;
	}
	for (size_t i = 0; i < n && parts->leased != LEASED_NOT; i++) {
		bool hidden = false;
		for (size_t k = 0; leases[i].pick && k < n; k++)
			hidden |= !leases[k].pick && leases[k].owner == leases[i].owner &&
				  leased_by(&leases[k], at_ms) == parts->leased;
		parts->counts[i] = leased_by(&leases[i], at_ms) == parts->leased && !hidden;
	}
}

/* How many leases of the same owner count before the lease, and in all. */
static size_t count_of_owner(const struct card_lease *leases, size_t n,
	const struct leased_parts *parts, size_t lease, size_t *all)
{
	size_t before = 0;
	*all = 0;
	for (size_t i = 0; i < n; i++)
		if (parts->counts[i] && leases[i].owner == leases[lease].owner) {
			before += i < lease;
			++*all;
		}
	return before;
}

/* The whole milliseconds of a part of the time between two moments. It depends on the moments
 * themselves, so that what is rounded off in one stretch is added in the next. */
static int64_t part_of(int64_t from_ms, int64_t to_ms, size_t part, size_t of)
{
	int64_t p = (int64_t)part, n = (int64_t)of;
	return to_ms / n * p + to_ms % n * p / n - (from_ms / n * p + from_ms % n * p / n);
}

void leased_divide(const struct card_lease *leases, size_t n, int64_t from_ms, int64_t to_ms,
	struct leased_parts *parts)
{
	size_t owners = 0, own_place[LEASED_MAX], in_all, mine;
	*parts = (struct leased_parts){ .leased = LEASED_NOT };
	n = n < LEASED_MAX ? n : LEASED_MAX;
	find_counting(leases, n, from_ms, parts);
	for (size_t i = 0; i < n; i++) {
		if (!parts->counts[i])
			continue;
		own_place[i] = owners;
		mine = count_of_owner(leases, n, parts, i, &in_all);
		for (size_t k = 0; mine > 0 && k < i; k++)
			if (parts->counts[k] && leases[k].owner == leases[i].owner)
				own_place[i] = own_place[k];
		owners += mine == 0;
	}
	for (size_t i = 0; i < n; i++) {
		if (!parts->counts[i])
			continue;
		mine = count_of_owner(leases, n, parts, i, &in_all);
		size_t before = own_place[i] * in_all + mine, of = owners * in_all;
		parts->part_ms[i] = part_of(from_ms, to_ms, before + 1, of) -
				    part_of(from_ms, to_ms, before, of);
	}
}
