/* The ledger: sums that are not in the store yet, one row per (slot, card, state), per (slot,
 * card, process) and per (slot, card, lease). If a tick could not be written, its rows stay
 * here, up to a limit: with too many slots they are folded into hours, which keeps every sum
 * and loses only resolution. Time that does not fit even then is counted in dropped_ms. */
#pragma once

#include "base/idmap.h"
#include "model/tick.h"

#define LEDGER_MAX_ROWS 32768
enum { LEDGER_RECENT = 256 };

/* A set of rows with a key. */
struct row_table {
	const struct row_kind *kind; /* hash, comparison, addition: private to ledger.c */
	char *rows;		     /* n rows of kind->size bytes */
	size_t n, cap;
	bool hourly; /* slots are hours until the rows are stored, because there is little room
		      */
	struct idmap index; /* numbers of rows, by the hash of the key */
	/* Rows that were found lately, by card and state or by process: the same ones are asked
	 * for with every sample. An entry may be out of date, so its key is compared. */
	uint32_t recent[LEDGER_RECENT];
};

struct ledger {
	struct row_table usage;	  /* of struct usage_sum */
	struct row_table holding; /* of struct holding_sum */
	struct row_table leased;  /* of struct lease_sum */
	int64_t dropped_ms;	  /* card time that did not fit */
	int64_t slot_seconds; /* width of a slot: SLOT_SECONDS, or an hour for long simulations
			       */
};

int ledger_init(struct ledger *l, struct err *e);
void ledger_finish(struct ledger *l);
/* Removes the rows that were stored; keeps the memory. */
void ledger_clear(struct ledger *l);
bool ledger_empty(const struct ledger *l);

/* Returns the row for a key, and adds it when it is missing (sums 0, unknown values of a holder
 * -1). NULL: no room: the caller adds its time to dropped_ms. Valid until the next call. */
struct usage_sum *ledger_usage(
	struct ledger *l, int64_t slot, uint32_t card, enum card_state state);
struct holding_sum *ledger_holding(
	struct ledger *l, int64_t slot, uint32_t card, uint32_t process);
struct lease_sum *ledger_leased(struct ledger *l, int64_t slot, uint32_t card, uint32_t lease);
int64_t ledger_slot(const struct ledger *l, int64_t at_ms);

/* The rows, for the store. */
const struct usage_sum *ledger_usage_rows(const struct ledger *l, size_t *n);
const struct holding_sum *ledger_holding_rows(const struct ledger *l, size_t *n);
const struct lease_sum *ledger_leased_rows(const struct ledger *l, size_t *n);
