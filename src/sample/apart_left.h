/* Processes that were given up because the driver did not answer them, and the cards that they
 * were asking. A card is left alone while its process lives, and for a while afterwards: a
 * minute, and twice as long each time it happens again. Times are monotonic microseconds. */
#ifndef GUA_SAMPLE_APART_LEFT_H
#define GUA_SAMPLE_APART_LEFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "source/source_host.h"

/* So many may live at once: then no other is started. */
enum { LEFT_MOST = 3 };
#define LEFT_FIRST_US (60 * 1000000LL)
#define LEFT_LONGEST_US (3600 * 1000000LL)

struct left_card {
	struct source_avoid card;
	int pidfd;	  /* of the process that is stuck on it; -1: it has ended */
	int64_t until_us; /* the card is not asked before */
	int64_t wait_us;  /* how long it is left alone */
};

struct left {
	struct left_card cards[SOURCE_AVOID_MAX];
	size_t n_cards;
	int pidfds[LEFT_MOST]; /* of processes that are stuck on no card; -1: none */
	bool used;	       /* pidfds are set */
};

/* Notes a process that was given up while it asked a card, or no card (NULL). `pidfd` -1: it
 * has ended. The pidfd is this module's from now on. */
void left_add(struct left *l, int pidfd, const struct source_avoid *card, int64_t now_us);
/* Forgets processes that have ended and cards that may be asked again; returns how many
 * processes live. */
size_t left_check(struct left *l, int64_t now_us);
/* The cards to leave alone. */
void left_avoids(const struct left *l, int64_t now_us, struct source_avoids *out);
void left_finish(struct left *l);

#endif
