/* Pure functions: what a sample says about a card, and what it says about a holder. */
#ifndef GUA_CLASSIFY_CLASSIFY_H
#define GUA_CLASSIFY_CLASSIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/state.h"

/* A holder on one card, as it was at the last look, with its use since the last drain. */
struct holder {
	uint32_t process;	/* index of the life in the recorder's table */
	uint32_t user;		/* same number, same identity; the sampler numbers them */
	unsigned kind;		/* process_kind bits */
	int64_t mem_bytes;	/* or -1 */
	double sm_pct;		/* own SM use, mean since the last drain; NAN: not known */
	double user_pct;	/* the same of all of its user's; set by classify_use() */
	int64_t since_ms;	/* first seen on this card */
	int64_t from_ms;	/* counted from here ... */
	int64_t to_ms;		/* ... to here: INT64_MAX, or when the process ended */
	int64_t last_active_ms; /* or -1 */
	enum holder_state
		when_active; /* its state while the card is active; see classify_use() */
};

/* The holders of a card that count at one moment, and what they hold together. */
struct held {
	int64_t bytes; /* sum of what is known */
	bool unknown;  /* one of them has memory that the driver cannot tell */
	size_t n;
};

/* Whether a process of that kind (process_kind bits) is a holder. */
bool is_holder(unsigned kind, const struct rules *rules);
bool holder_counts(const struct holder *h, int64_t at_ms);
struct held held_at(const struct holder *holders, size_t n, int64_t at_ms);
/* The same for the holders of one user. */
struct held held_by_user(const struct holder *holders, size_t n, uint32_t user, int64_t at_ms);

/* Active, idle-held or truly-idle: the definition of the three. */
enum card_state classify_card(double util_pct, struct held held, const struct rules *rules);

/* What was seen of a card between two drains: decides who squats. */
struct use_since {
	bool known;	    /* the driver tells the use of processes on this card */
	double mean_pct;    /* mean utilisation of the samples */
	double active_part; /* share of the samples that were active, 0..1 */
};

/* Sets every holder's when_active from the use since the last drain. A user squats when its own
 * use during active samples is below the threshold and that of another user, or of processes
 * that are no holders, is not. All processes of a user on one card share its state. */
void classify_use(struct holder *holders, size_t n, const struct use_since *use,
	const struct rules *rules);

/* The state of holders[i] at a moment in which its card is in state `card`. */
enum holder_state classify_holder(const struct holder *holders, size_t n, size_t i,
	enum card_state card, int64_t at_ms, const struct rules *rules);

#endif
