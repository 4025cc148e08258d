/* Who is on a card: process lists, one after the other, become stretches of time in which a
 * process held one amount of memory. Between two lists nobody looked; the moment at which
 * somebody came or went lies between them, and how sure it is stays with it. */
#ifndef GUA_RECORD_HOLDERS_H
#define GUA_RECORD_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "classify/classify.h"
#include "model/reading.h"
#include "sample/lives.h"

/* The stretches of one card: those that go on, and those that are not accounted yet. */
struct holders {
	struct holder *items;
	size_t n, cap;
};

/* Between which moments what is seen to be new came about. */
struct look_window {
	int64_t lo_ms, hi_ms; /* the sign before this one, and this one */
	bool first;	      /* there was no list before */
	bool stalled;	      /* nobody looked for too long: only what is sure counts */
};

/* What of a process list matters here. */
struct listed {
	uint32_t life;
	unsigned kind;
	int64_t mem_bytes; /* or -1 */
};

/* Makes room for so many stretches more. */
int holders_reserve(struct holders *h, size_t more, struct err *e);
void holders_finish(struct holders *h);

/* Takes a list in: ends the stretches of those that are not on it, begins those that are new,
 * and both where memory changed. There must be room for 2 x n more. Returns the earliest moment
 * at which something may have changed; INT64_MAX: nothing did. */
int64_t holders_take(struct holders *h, const struct lives *lives, const struct listed *list,
	size_t n, const struct look_window *window);
/* A life has ended within the window. Returns whether it was here. */
bool holders_exit(struct holders *h, uint32_t life, const struct look_window *window);
/* Ends all stretches that go on, at `at_ms`. */
void holders_end(struct holders *h, int64_t at_ms);
/* A process that nobody saw was here. There must be room for one more. */
void holders_add_ended(struct holders *h, const struct lives *lives, uint32_t life,
	int64_t mem_bytes, int64_t from_ms, int64_t to_ms);
/* Whether a process of this pid was here at some time between the two. */
bool holders_had(const struct holders *h, const struct lives *lives, uint32_t pid,
	int64_t from_ms, int64_t to_ms);

/* Whether processes of more than one user are here. */
bool holders_are_several(const struct holders *h);

/* Drops the stretches that ended before `covered_ms`. */
void holders_drop(struct holders *h, int64_t covered_ms);
/* The clock was set: all that goes on counts from the beginning of the new reckoning. */
void holders_restart(struct holders *h);
/* Whether the stretch goes on. */
bool holder_is_open(const struct holder *h);

#endif
