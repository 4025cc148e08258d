/* What a pick found: the picked cards with their reservations, and why the others were not
 * picked. It stays valid after the driver is closed. */
#ifndef GUA_PICK_RESULT_H
#define GUA_PICK_RESULT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "pick/pick_owner.h"
#include "pick/pick.h"

struct pick_fact {
	struct card_id id;
	enum pick_verdict verdict; /* PICK_GOOD: picked */
	int lock;		   /* descriptor that keeps the reservation; -1: not picked */
	struct pick_owner
		by; /* PICK_TAKEN, PICK_PROMISED: who has it, or for whom it is left */
	double free_bytes, util_pct, holders; /* NAN: unknown */
	int64_t free_since_ms;		      /* or -1 */
	char suspect[256];		      /* the sentence about a suspect card, or "" */
};

/* Zero-initialise. */
struct pick_result {
	struct pick_fact *facts; /* the picked ones first, in the order of preference */
	size_t n_facts, n_picked;
	char host[256]; /* "": not known */
	char note[256]; /* why the past is not known, or "" */
	int64_t time_ms;
};

/* Releases the reservations and frees the memory. */
void pick_result_finish(struct pick_result *r);

/* Appends UUIDs, or indexes, separated by commas. UUIDs come from the driver and are passed to
 * a shell: ERR_WORLD if one has characters that a shell interprets. */
int pick_result_uuids(const struct pick_result *r, struct str *out, struct err *e);
void pick_result_indexes(const struct pick_result *r, struct str *out);

/* Fills `e` with why there are fewer than `n` cards: "no free card: 2 held; 1 active". */
int pick_result_refuse(const struct pick_result *r, size_t n, struct err *e);
/* Appends a line for each reserved card: "gua pick: card 3 is reserved by alice (pid 1, sh)".
 */
void pick_result_reservations(const struct pick_result *r, struct str *out);

/* One JSON document. `hold_ms`: how long the cards are kept; `error`: why nothing was picked,
 * or NULL. */
void pick_result_json(
	const struct pick_result *r, int64_t hold_ms, const char *error, struct str *out);

#endif
