/* A year of a plausible lab, written through the store as the recorder would have left it:
 * hours for the past, five-minute slots for two weeks, minutes for the last day. For sizes and
 * speed; what exactly happens in it does not matter, only how much. */
#ifndef GUA_TESTS_UNIT_LAB_YEAR_H
#define GUA_TESTS_UNIT_LAB_YEAR_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

struct lab_year {
	int cards;	      /* at most 64 */
	int days;	      /* at least 15 */
	double lives_per_day; /* of processes, over all cards */
	double holders;	      /* on a card, on average */
	int64_t end_s;	      /* unix seconds; a whole hour */
	bool leased; /* each card has a job of its own each day, which does not always use it */
	uint64_t seed;
	int64_t ticks, lives; /* filled: what was written */
};

/* Writes the year into an open store, in a run of its own. */
int lab_year_write(struct lab_year *lab, struct store *s, struct err *e);

#endif
