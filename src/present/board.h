/* The present as the store knows it: the cards of a host at the recorder's last tick, and the
 * processes that hold them. For pages and programs that must not ask the driver. */
#ifndef GUA_PRESENT_BOARD_H
#define GUA_PRESENT_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "classify/context.h"
#include "model/card_now.h"
#include "model/process.h"
#include "model/reading.h"
#include "model/state.h"

/* One process on one card. */
struct board_holder {
	size_t card; /* index */
	uint32_t pid;
	int64_t uid; /* or -1, like the next */
	int64_t started_ms;
	const char *user;		  /* the board's, like the next */
	const char *texts[PROCESS_TEXTS]; /* NULL: none */
	int64_t mem_bytes;		  /* or -1 */
	int64_t since_ms;		  /* on the card since then; -1: not known */
	bool active;			  /* at the last tick */
	int64_t last_active_ms;		  /* or -1 */
	int64_t idle_since_ms;		  /* -1: it is active, or its use is not known */
	bool idle_longer;		  /* nothing was recorded before: it may be longer */
	enum context context;
};

struct board_card {
	size_t host; /* index */
	struct card_id id;
	char source[SOURCE_CAP], status[16];
	int64_t last_seen_ms; /* accounted up to here */
	enum card_state state;
	int64_t state_since_ms; /* -1: not known */
	bool state_longer;	/* nothing was recorded before: it may be longer */
	struct card_now now;	/* readings of the last tick */
	size_t first_holder, n_holders;
};

struct board_host {
	char hostname[128], driver[VERSION_CAP], source[SOURCE_LIST_CAP];
	bool any_run, running; /* a recorder wrote here; the newest one has not ended */
	bool killed;	       /* it has not ended and is not there any more */
	int64_t last_tick_ms;  /* or -1 */
	int64_t interval_ms;   /* between its ticks */
	bool stale;	       /* its last tick is too old: the board is not the present */
	bool simulated;	       /* its source invents its data */
	struct rules rules;
};

/* Holders stand by card, the longest idle first. Zero-initialise. */
struct board {
	struct board_host *hosts;
	size_t n_hosts;
	struct board_card *cards; /* by host, then index */
	size_t n_cards;
	struct board_holder *holders;
	size_t n_holders;
	struct arena texts;
};

/* Adds the host of the store at `path`, as of `now_ms`. Waits at most `wait_ms` for a locked
 * store. After a failure the board has what it had before, or more: call board_finish(). */
int board_add(struct board *b, const char *path, int64_t now_ms, int wait_ms, struct err *e);
void board_finish(struct board *b);

#endif
