/* The past, from the store, for a live view: since when cards and processes are in their state,
 * the size of a bare context, and the thresholds of active and held. It answers questions and
 * does not depend on the view. Zero-initialise, then set `db`: without a store, the functions
 * here must not be called, except past_floor(), past_open() and past_close(). */
#pragma once

#include "audit/audit.h"
#include "present/last_run.h"
#include "model/process.h"

struct past {
	const char *db;	     /* the store, borrowed; NULL: there is none */
	bool named;	     /* the user named it */
	bool invented;	     /* the view shows simulated cards */
	bool cards_only;     /* nothing is asked about processes */
	bool foreign;	     /* one is simulated and the other is not: the store is not used */
	bool trusted;	     /* what it says about processes is believed: see past_trust() */
	uid_t owner, viewer; /* of the store; who looks: if it is trusted */
	struct last_run now; /* as it was last read; zero: never */
	bool fresh;	     /* its recorder is running */
	bool came;	 /* it has started since the last look of the view, which clears this */
	bool was_read;	 /* the store was read, or at least asked */
	int64_t read_us; /* boot time of the last reading */
	char note[256];	 /* "" or why the past is not known */
	struct context_floors floors;
	bool floors_known; /* `floors` has been read */
	bool floors_due;   /* the store was read again since the last attempt */
};

/* Reads the store if it is time to. The first time it waits longer for a locked store. */
void past_read(struct past *p, const struct moment *now);

/* Decides whether to believe what the store says about processes: others cannot write it, and
 * it belongs to root or to the caller, or is the one that the host's recorder writes. */
void past_trust(struct past *p);
/* Calls `take` with each process of this boot that the store, which must be trusted, describes
 * as holding a card, and of which its recorder could see as much as the caller can. When the
 * process began is not set. */
void past_recall(struct past *p, const char *boot_id,
	void (*take)(void *context, const struct process_id *id), void *context);
/* The memory of a bare context on a model; -1: not known. Read from the store at the first
 * call. */
int64_t past_floor(struct past *p, const char *model);

/* Opens the store for the functions below. NULL: it cannot be read; there is nothing to ask
 * then. */
struct sqlite3 *past_open(const struct past *p);
void past_close(struct sqlite3 *db);

/* One number for each of `n` minutes. */
struct past_minutes {
	int64_t from; /* the first one, in minutes since 1970 */
	size_t n;
	double *pct; /* set; NAN where nothing was observed */
};

/* Sets the mean utilisation of a card in each minute; negative: the store cannot be read. */
int past_card_minutes(struct sqlite3 *db, const char *uuid, const struct past_minutes *minutes);

/* The same for one process on the card: its own SM use or, if the driver does not report that,
 * the share of the minute in which it was active. Returns 1 if the store knows the process,
 * else 0. */
int past_process_minutes(struct sqlite3 *db, const char *uuid, const struct process_id *id,
	const struct past_minutes *minutes);
