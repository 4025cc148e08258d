/* Fills the present from stores alone: the cards of a host at its recorder's last tick, and the
 * processes that held them. For pages and programs that must not ask the driver. */
#pragma once

#include "model/card.h"
#include "model/present.h"

struct sqlite3;

/* Adds the host of the store at `path`, as of `now_ms`, to *p (zero-initialise it). Waits at
 * most `wait_ms` for a locked store. After a failure *p has what it had before, or more: call
 * present_store_finish(). */
int present_store_add(
	struct present *p, const char *path, int64_t now_ms, int wait_ms, struct err *e);
void present_store_finish(struct present *p);

/* What it reads of the cards, for exporters, which also count cards that are gone. */
struct store_card {
	int64_t gpu; /* its row in the store */
	struct card_id id;
	char source[SOURCE_CAP]; /* "sim" is invented data; "" when unknown */
	enum card_status status;
	int64_t first_seen_ms, last_seen_ms; /* accounted from and up to there */
	bool current;  /* it was in the last tick; false: the next two are from an older one */
	int64_t at_ms; /* of the readings; -1: there are none */
	struct card_now now; /* what is unknown is NAN or -1 */
};

struct store_cards {
	int64_t last_tick_ms;	  /* of the newest run; -1: there is none */
	struct store_card *cards; /* by index and MIG index, also those that are gone */
	size_t n;
};

/* Reads them; `db` is open for reading (store_open_read()). Free *c in any case. */
int present_store_cards(struct store_cards *c, struct sqlite3 *db, struct err *e);
/* Does nothing if *c is zero. */
void present_store_cards_free(struct store_cards *c);
