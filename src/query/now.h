/* What the store knows of now: who holds which card since when and when each was last active,
 * and since when each card has been in the state that it is in. For the live views. */
#ifndef GUA_QUERY_NOW_H
#define GUA_QUERY_NOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/process.h"
#include "model/reading.h"
#include "model/state.h"

/* A holder as of the recorder's last tick. Idle times reach back as far as recorders watched
 * without a pause, and no further. */
struct now_holder {
	char uuid[UUID_CAP]; /* of the card */
	uint32_t pid;
	uint64_t start_ticks;
	char boot_id[BOOT_ID_CAP];
	int64_t since_ms; /* first seen on the card, or -1: a recorder that ended forgets */
	int64_t last_active_ms; /* or -1 */
	int64_t idle_since_ms;	/* had not computed since */
	bool idle_longer;	/* nobody saw what it did before: it may be for longer */
};

struct now {
	bool any_run;
	bool running;	      /* the newest run has not ended, or was killed */
	bool killed;	      /* ... which is known: nobody holds the recorder's lock */
	int64_t started_ms;   /* of the newest run */
	int64_t last_tick_ms; /* of the newest run; -1: none */
	int64_t interval_ms;
	struct rules rules;	   /* of the newest run */
	int64_t recorded_since_ms; /* runs without a pause until last_tick_ms */
	int64_t watched_since_ms;  /* the same, of holders */
	struct now_holder *holders;
	size_t n_holders;
	struct sqlite3 *db;
};

/* Opens the store and reads the newest run and all its holders: those of now, or those of its
 * end. Waits no longer than so for a store that is locked. *n is to be closed in any case. */
int now_read(struct now *n, const char *path, int wait_ms, struct err *e);
/* Closing zero does nothing. */
void now_close(struct now *n);
/* The holder that is this life on this card, or NULL. A life whose start time is not known
 * (start_ticks 0) is never found. */
const struct now_holder *now_find(const struct now *n, const char *uuid,
	const struct process_id *id, const char *boot_id);

/* A question about a card: since when it has been in one of these states without a pause. */
struct now_ask {
	const char *uuid;
	unsigned states;  /* bits 1 << enum card_state */
	int64_t since_ms; /* the answer; -1: the store has nothing of it */
	bool longer;	  /* nobody saw what it was before: it may be for longer */
};

/* Answers all questions in one walk back through the slots: exact to a slot, never earlier than
 * the truth or than a recorder looked, and no further back than some rows. */
int now_states_since(struct now *n, struct now_ask *asks, size_t n_asks, struct err *e);

#endif
