/* Which cards meet the conditions of a pick, and in which order they are picked. Pure functions
 * of the data of a live view; pick/pick_lock.h decides between several picks. */
#ifndef GUA_PICK_PICK_H
#define GUA_PICK_PICK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "present/live.h"
#include "base/str.h"
#include "pick/pick.h"

struct pick_wish {
	size_t n;		/* number of cards */
	int64_t min_free_bytes; /* least free memory, other holders allowed; -1: no other
				   holders */
	double max_util_pct;	/* highest utilisation; NAN: below the threshold of active */
	int64_t free_for_ms;	/* truly idle for this long; 0: now */
	struct rules rules;	/* what active and held mean */
};

/* Why a card is not picked; the message counts them: "2 held". */
enum pick_verdict {
	PICK_GOOD,
	PICK_SPARE,	 /* free, but not picked; set by the caller, like the last two */
	PICK_UNREADABLE, /* lost, asleep, denied, or the driver does not list its processes */
	PICK_INSTANCE,	 /* a MIG instance, but several cards are wanted */
	PICK_ACTIVE,
	PICK_HELD,
	PICK_ORPHAN,   /* much memory is in use that no listed process explains */
	PICK_FULL,     /* too little free memory */
	PICK_RECENT,   /* not free for long enough */
	PICK_TAKEN,    /* another pick has reserved it */
	PICK_PROMISED, /* left for a pick that has waited longer */
	PICK_VERDICTS
};
/* For the message, after a number; and one word each, for JSON. */
extern const char *const pick_verdict_names[PICK_VERDICTS];
extern const char *const pick_verdict_words[PICK_VERDICTS];

struct pick_candidate {
	const struct present_card *card;
	enum pick_verdict verdict;
};

/* Whether a card meets the conditions at `now_ms`. */
enum pick_verdict pick_judge(
	const struct pick_wish *wish, const struct present_card *card, int64_t now_ms);

/* Judges the candidates and sorts them: good ones first, and among them by these criteria:
 * plausible utilisation, most free memory (in steps of 64 MiB), lowest utilisation, longest
 * free, lowest index. Returns how many are good. */
size_t pick_rank(const struct pick_wish *wish, struct pick_candidate *candidates, size_t n,
	int64_t now_ms);

/* Largest number of cards in one pick, and size of the text of a wish with that many UUIDs. */
enum { PICK_MAX_CARDS = 64, PICK_WISH_CAP = 4096 };

struct pick_ask {
	struct pick_wish wish;	   /* without its rules */
	char cards[PICK_WISH_CAP]; /* UUIDs separated by commas; "*": any card */
};

/* Appends one line. `cards`: UUIDs separated by commas; "": any card. */
void pick_wish_add(struct str *out, const struct pick_wish *wish, const char *cards);

/* Reads such a line. Another user wrote it: it may hold anything. */
bool pick_ask_parse(const char *bytes, size_t len, struct pick_ask *ask);

/* Whether the wish is for this card, among others. */
bool pick_ask_names(const struct pick_ask *ask, const char *uuid);

#endif
