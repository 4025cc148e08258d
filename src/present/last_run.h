/* What the store knows about the present: which process holds which card since when, when it
 * was last active, and since when each card has been in its state. For the live views. */
#pragma once

#include "model/process.h"
#include "model/spell.h"
#include "model/state.h"

/* A holder at the recorder's last tick. Idle times reach back only as far as recorders ran
 * without a pause: a view must not show more than was seen. An idle stretch goes on over a
 * pause, which is unobserved in it. */
struct last_run_holder {
	char uuid[UUID_CAP];	       /* of the card */
	int64_t card_row, process_row; /* their ids in the store */
	uint32_t pid;
	uint64_t start_ticks;
	char boot_id[BOOT_ID_CAP];
	int64_t since_ms; /* first seen on the card; -1: not known, because the recorder has
			     ended */
	int64_t last_active_ms; /* or -1 */
	int64_t idle_since_ms;	/* has not been active on this card since then */
	bool idle_longer;	/* nothing was recorded before: it may be longer */
	struct spell idle; /* its idle stretch, a spell if it is as long as rules.spell_ms says,
			      without indexes; begin_ms -1: it is in none */
};

struct last_run {
	bool any_run;
	bool running;	      /* the newest run has not ended, or was killed */
	bool killed;	      /* it was killed: the recorder's lock is free */
	int64_t started_ms;   /* of the newest run */
	int64_t last_tick_ms; /* of the newest run; -1: none */
	int64_t interval_ms;
	char source[SOURCE_LIST_CAP]; /* of the newest run */
	struct rules rules;	      /* of the newest run */
	int64_t recorded_since_ms; /* recorded without a pause from then until last_tick_ms */
	int64_t watched_since_ms;  /* holders were recorded without a pause from then on */
	struct last_run_holder *holders;
	size_t n_holders;
	struct sqlite3 *db;
};

/* Opens the store and reads the newest run and, with `holders`, its holders: the current ones,
 * or those at its end. Waits at most `wait_ms` for a locked store. Close *n in any case. */
int last_run_read(
	struct last_run *n, const char *path, int wait_ms, bool holders, struct err *e);
/* Does nothing if *n is zero. */
void last_run_close(struct last_run *n);
/* The record of this process on this card, or NULL. A process without a known start time
 * (start_ticks 0) is never found. */
const struct last_run_holder *last_run_find(const struct last_run *n, const char *uuid,
	const struct process_id *id, const char *boot_id);

/* Columns of `process` that say who it is, and the function that reads them, the first of which
 * is number `first` of the row. All of *id but pid, start_ticks and started_ms is set. */
#define LAST_RUN_IDENTITY "user, uid, posix_session, " PROCESS_TEXT_COLUMNS
struct sqlite3_stmt;
void last_run_identity(struct sqlite3_stmt *row, int first, struct process_id *id);

/* A question about a card: since when it has been in one of these states without a pause. */
struct last_run_ask {
	const char *uuid;
	unsigned states;  /* bits 1 << enum card_state */
	int64_t since_ms; /* the answer; -1: the store has none */
	bool longer;	  /* nothing was recorded before: it may be longer */
};

/* Answers all questions in one pass back through the slots. An answer is exact to a slot, and
 * never earlier than the truth or than the first recording. The pass is limited to a number of
 * rows. */
int last_run_states_since(
	struct last_run *n, struct last_run_ask *asks, size_t n_asks, struct err *e);
