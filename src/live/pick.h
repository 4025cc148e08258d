/* Which cards meet the conditions of a pick, and in which order they are picked. Pure functions
 * of the data of a live view; cmd/pick_lock.h decides between several picks. */
#ifndef GUA_LIVE_PICK_H
#define GUA_LIVE_PICK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "live/live.h"

struct pick_wish {
	size_t n;		/* number of cards */
	int64_t min_free_bytes; /* so much free memory, whoever else is there; -1: nobody else
				 */
	double max_util_pct;	/* utilisation at most; NAN: below the threshold of active */
	int64_t free_for_ms;	/* truly idle for this long; 0: now */
	struct rules rules;	/* what active and held mean */
};

/* Why a card is not picked; the message counts them: "2 held". */
enum pick_verdict {
	PICK_GOOD,
	PICK_UNREADABLE, /* lost, asleep, denied, or the driver does not list its processes */
	PICK_INSTANCE,	 /* a MIG instance, and several cards are wished for */
	PICK_ACTIVE,
	PICK_HELD,
	PICK_ORPHAN, /* much memory is in use by nobody that is listed */
	PICK_FULL,   /* too little free memory */
	PICK_RECENT, /* not free for so long, as far as is known */
	PICK_TAKEN,  /* another pick has it; the caller says so */
	PICK_VERDICTS
};
extern const char *const pick_verdict_names[PICK_VERDICTS];

/* Whether a card meets the conditions at `now_ms`. */
enum pick_verdict pick_judge(
	const struct pick_wish *wish, const struct live_card *card, int64_t now_ms);

/* Sorts `candidates` (indexes into `cards`): those that are good first, least loaded first:
 * those whose utilisation is not believed last, most free memory (in steps of 64 MiB), lowest
 * utilisation, longest free, lowest index. Adds each one's verdict to `counts`; returns how
 * many are good. */
size_t pick_rank(const struct pick_wish *wish, const struct live_card *cards,
	size_t *candidates, size_t n, int64_t now_ms, size_t counts[PICK_VERDICTS]);

#endif
