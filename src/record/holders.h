/* The holders of a card: makes stretches of time, in which a process held one amount of memory,
 * from successive process lists. The moment at which a process came or went lies between two
 * lists; each end of a stretch stores how exactly it is known (struct edge). */
#pragma once

#include "classify/classify.h"
#include "proc/lives.h"

/* The stretches of one card: those that continue, and those that are not accounted yet. */
struct holders {
	struct holder *items;
	size_t n, cap;
};

/* The time within which the changes in a list happened. */
struct look_window {
	int64_t lo_ms, hi_ms; /* the last reading without the change, the first with it */
	bool first;	      /* there was no list before */
	bool stalled;	      /* no reading for too long: only certain time counts */
	bool steady;	 /* used memory stayed the same: one process replaced another ... */
	int64_t left_ms; /* ... that exited at this moment; 0: unknown. Set by holders_take() */
};

/* The parts of a process list entry that are needed here. */
struct listed {
	uint32_t life;
	unsigned kind;
	int64_t mem_bytes; /* or -1 */
};

/* Makes room for this many more stretches. */
int holders_reserve(struct holders *h, size_t more, struct err *e);
void holders_finish(struct holders *h);

/* Takes a list: ends the stretches of processes that are not on it, begins those of new ones,
 * and does both when memory changed. There must be room for 2 x n more. Returns the earliest
 * moment at which something may have changed; INT64_MAX: nothing did. */
int64_t holders_take(struct holders *h, struct lives *lives, const struct listed *list,
	size_t n, const struct look_window *window);
/* A process has ended within the window. Returns whether it was on this card. */
bool holders_exit(struct holders *h, uint32_t life, const struct look_window *window);
/* Ends all stretches that continue, at `at_ms`. */
void holders_end(struct holders *h, int64_t at_ms);
/* Adds a process that is known only from the driver's records. Needs room for one more. */
void holders_add_ended(struct holders *h, const struct lives *lives, const struct listed *p,
	int64_t from_ms, int64_t to_ms);
/* Whether a process with this pid was on the card at some time between the two moments. */
bool holders_had(const struct holders *h, const struct lives *lives, uint32_t pid,
	int64_t from_ms, int64_t to_ms);

/* What the processes that are on the card now, or left it after `since_ms`, hold together. */
struct held holders_since(const struct holders *h, int64_t since_ms);
/* Whether processes of more than one user are on the card. */
bool holders_are_several(const struct holders *h);

/* Drops the stretches that ended before `covered_ms`. */
void holders_drop(struct holders *h, int64_t covered_ms);
/* The clock was set: open stretches count from the start of the new time. */
void holders_restart(struct holders *h);
/* Whether the stretch continues. */
bool holders_is_open(const struct holder *h);
