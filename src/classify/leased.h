/* The leases of one card: where they begin and end, whether the card is leased at a moment,
 * and how reserved time is divided. Pure functions. */
#pragma once

#include "classify/ledger.h"
#include "model/tick.h"

/* The largest number of leases that count on one card; further ones have no time. */
enum { LEASED_MAX = 64 };

/* A lease on one card. */
struct card_lease {
	uint32_t lease;		/* index in the recorder's table */
	uint32_t owner;		/* equal numbers mean the same owner */
	bool pick;		/* of `gua pick`: a scheduler's lease of its owner hides it */
	int64_t from_ms, to_ms; /* it covers the card then; INT64_MAX: it goes on */
	int64_t unknown_ms;	/* from then on it may have ended; INT64_MAX: it has not */
	struct lease_sum sum;	/* of one slot; leased_settle() adds it to the ledger */
};

enum leased {
	LEASED_NOT,
	LEASED_MAYBE, /* it is not known whether the leases have ended */
	LEASED_SURELY,
};

/* The leases of a card at a moment. Only known leases count; if all are unknown, they do. */
struct leased_now {
	int64_t from_ms, to_ms; /* it is so then: no lease begins, ends or becomes unknown */
	enum leased leased;
	uint64_t counts; /* a bit for each lease that covers the card and is not hidden */
	/* The part of each: from `before` / `of` of the time on, 1 / `of` long. */
	uint16_t before[LEASED_MAX], of[LEASED_MAX];
};

/* Finds which leases count: time is divided equally among their owners, and the part of each
 * among its leases. */
void leased_find(
	const struct card_lease *leases, size_t n, int64_t at_ms, struct leased_now *now);
/* The part of a lease that counts. The parts of all add up to the time, and the parts of many
 * stretches in a row are together less than a millisecond off. */
int64_t leased_part_ms(
	const struct leased_now *now, size_t lease, int64_t from_ms, int64_t to_ms);

/* A stretch of a card's time within one slot. */
struct leased_piece {
	uint32_t card;
	int64_t slot, from_ms, to_ms;
	bool free, use_unknown; /* nobody uses or holds the card; its use is unknown */
	uint64_t active, held;	/* bits of leases whose processes use it, or hold it idle */
};
/* Adds the stretch to the sums of the leases that count. */
void leased_add(struct card_lease *leases, const struct leased_now *now,
	const struct leased_piece *piece, struct ledger *ledger);
/* Adds the sums of all leases to the ledger. */
void leased_settle(struct card_lease *leases, size_t n, uint32_t card, struct ledger *ledger);
