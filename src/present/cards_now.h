/* The cards of the newest run's host with their readings at its last tick: for pages and
 * exporters. */
#ifndef GUA_PRESENT_CARDS_NOW_H
#define GUA_PRESENT_CARDS_NOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/card_now.h"
#include "model/reading.h"

struct sqlite3;

struct card_reported {
	int64_t gpu; /* its row in the store */
	struct card_id id;
	char source[SOURCE_CAP]; /* "sim" is invented data; "" when unknown */
	enum card_status status;
	int64_t first_seen_ms, last_seen_ms; /* accounted from and up to there */
	bool current;  /* it was in the last tick; false: the next two are from an older one */
	int64_t at_ms; /* of the readings; -1: there are none */
	struct card_now now; /* what is unknown is NAN or -1 */
};

struct cards_now {
	int64_t last_tick_ms;	     /* of the newest run; -1: there is none */
	struct card_reported *cards; /* by index and MIG index, also those that are gone */
	size_t n;
};

/* Reads them; `db` is open for reading (store_open_read()). Free *c in any case. */
int cards_now_read(struct cards_now *c, struct sqlite3 *db, struct err *e);
/* Does nothing if *c is zero. */
void cards_now_free(struct cards_now *c);

#endif
