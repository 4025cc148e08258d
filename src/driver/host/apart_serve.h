/* What the two sides of a source apart say to each other: requests, and the side that serves
 * them. A request is a number of enum apart_call and what the call needs. A reply is the
 * result, the state of the source (driver/host/wire.h), what the call answers, and the
 * cost.
 */
#ifndef GUA_DRIVER_HOST_APART_SERVE_H
#define GUA_DRIVER_HOST_APART_SERVE_H

#include "base/helper.h"
#include "driver/host/wire.h"
#include "driver/host/round.h"
#include "driver/source.h"

enum apart_call {
	APART_OPEN,	  /* cards to avoid */
	APART_SCAN,	  /* the same */
	APART_DRAIN,	  /* whether power is wanted, flags of cards */
	APART_GLANCE,	  /* enum glance */
	APART_LOOK,	  /* flags of cards */
	APART_METRICS,	  /* card, board, flags, values and texts; answers the last two */
	APART_BOARD,	  /* card; answers an identity */
	APART_ACCOUNTS,	  /* card, most records; answers their number and the records */
	APART_ROUND,	  /* see apart_source.c, which also has what it answers */
	APART_FACILITIES, /* answers their number, and job, how, note, fallback, works of each
			   */
	APART_CALLS
};

/* What a round is to do, or has done, and the same of each card of it. */
enum {
	ROUND_DRAIN = 1,
	ROUND_SHARED = 2,
	ROUND_LOOK_ALL = 4,
	ROUND_ENERGY = 8,
	ROUND_DRAINED = 16,
	ROUND_GLANCED = 32,
	ROUND_LOOKS = 64,
	ROUND_DUE = 128,
	ROUND_FLAGS = 256
};

enum {
	ROUND_CARD_WANT = 1,
	ROUND_CARD_SHARED = 2,
	ROUND_CARD_DRAINED = 4,
	ROUND_CARD_LOOKED = 8
};

/* Flags of cards are sent as their number, or as this: NULL. */
#define APART_ALL (-1)

enum { APART_FACILITIES_MAX = 64, APART_ACCOUNTS_MAX = 4096, APART_HOW_CAP = 512 };

/* The memory of a helper; set the first two before it is started. */
struct apart_serving {
	const struct source_kind *kind;
	struct source_options options;
	int wake_fd; /* readable: the owner wants an answer now; or -1 */
	struct source *source;
	struct wire_sent *sent;
	struct round *round;
	struct source_avoids avoids;
	bool *flags;
	size_t cap_flags;
	int64_t cost_us; /* CPU time that was reported so far */
};

/* For struct helper_work: the context is a struct apart_serving. */
void apart_serve_begin(void *context, struct helper_place *unused);
void apart_serve(void *context, const struct str *request, struct str *reply);
void apart_serve_end(void *context);

#endif
