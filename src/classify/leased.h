/* The leases of one card: where they begin and end, whether the card is reserved at a moment,
 * and how that time is divided. Pure functions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The largest number of leases that count on one card; further ones have no time. */
enum { LEASED_MAX = 64 };

/* A lease on one card. */
struct card_lease {
	uint32_t lease;		/* index in the recorder's table */
	uint32_t owner;		/* equal numbers mean the same owner */
	bool pick;		/* of `gua pick`: a scheduler's lease of its owner hides it */
	int64_t from_ms, to_ms; /* it covers the card then; INT64_MAX: it goes on */
	int64_t unknown_ms;	/* from then on it may have ended; INT64_MAX: it has not */
};

enum leased {
	LEASED_NOT,
	LEASED_MAYBE, /* it is not known whether the leases have ended */
	LEASED_SURELY,
};

/* How a stretch of time belongs to the leases of a card. */
struct leased_parts {
	enum leased leased;
	bool counts[LEASED_MAX];     /* by lease: it covers the stretch, and is not hidden */
	int64_t part_ms[LEASED_MAX]; /* by lease: 0 unless it counts */
};

/* The first moment after `at_ms` at which a lease begins, ends or becomes unknown; at most
 * `next_ms`. */
int64_t leased_next_ms(
	const struct card_lease *leases, size_t n, int64_t at_ms, int64_t next_ms);
/* Divides a stretch, in which no lease begins or ends, equally among the owners, and the part
 * of each among its leases. Only known leases have a part; if all are unknown, they have it.
 * The parts add up to the stretch. The parts of many stretches in a row are together less than
 * a millisecond off. */
void leased_divide(const struct card_lease *leases, size_t n, int64_t from_ms, int64_t to_ms,
	struct leased_parts *parts);
