/* Processes that were given up because the driver did not answer them, and the cards that they
 * were asking. A card is left alone while its process lives, and for a while afterwards: a
 * minute, and twice as long each time it happens again. Times are monotonic microseconds. */
#ifndef GUA_DRIVER_HOST_APART_LEFT_H
#define GUA_DRIVER_HOST_APART_LEFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "driver/source_host.h"

/* So many may live at once: then no other is started. */
enum { LEFT_MOST = 3 };
#define LEFT_FIRST_US (60 * 1000000LL)
#define LEFT_LONGEST_US (3600 * 1000000LL)

struct left_process {
	pid_t pid;
	int pidfd; /* -1: it has ended, or there is none */
};

struct left_card {
	struct source_avoid card;
	struct left_process process; /* that is stuck on it */
	int64_t until_us;	     /* the card is not asked before */
	int64_t wait_us;	     /* how long it is left alone */
};

struct left {
	struct left_card cards[SOURCE_AVOID_MAX];
	size_t n_cards;
	struct left_process others[LEFT_MOST]; /* that are stuck on no card */
	bool used;			       /* others are set */
};

/* Notes a process that was given up while it asked a card, or no card (NULL). The pidfd is this
 * module's from now on. */
void apart_left_add(struct left *l, struct left_process process,
	const struct source_avoid *card, int64_t now_us);
/* The processes that live, and their cards; returns how many. */
size_t apart_left_list(const struct left *l, struct source_stuck *out, size_t max);
/* Forgets processes that have ended and cards that may be asked again; returns how many
 * processes live. */
size_t apart_left_check(struct left *l, int64_t now_us);
/* The cards to leave alone. */
void apart_left_avoids(const struct left *l, int64_t now_us, struct source_avoids *out);
void apart_left_finish(struct left *l);

#endif
