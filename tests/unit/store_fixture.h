/* What the store's tests share: a directory of their own, a small world of two cards and three
 * processes, and questions in SQL. */
#ifndef GUA_TESTS_UNIT_STORE_FIXTURE_H
#define GUA_TESTS_UNIT_STORE_FIXTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

enum { WORLD_CARDS = 2, WORLD_PROCESSES = 3, WORLD_SUMS = 16 };

/* Start of the world: a whole day, 2026-11-01 00:00 UTC. */
#define WORLD_START_MS 1793491200000LL

struct world {
	char dir[64];	/* made by world_setup(), removed by world_teardown() */
	char path[128]; /* of the store in it; not made */
	struct run_info info;
	struct card_entry cards[WORLD_CARDS];
	struct process_entry processes[WORLD_PROCESSES];
	struct usage_sum usage[WORLD_SUMS];
	struct holding_sum holding[WORLD_SUMS];
	struct event events[WORLD_SUMS];
	struct holder_now holders[WORLD_SUMS];
	struct tick tick; /* points to all of the above; nothing in the sums yet */
};

/* cmocka's setup and teardown; *state is a struct world. */
int world_setup(void **state);
int world_teardown(void **state);

/* The world as a recorder has it that was started anew: nothing stored yet. */
void world_forget(struct world *w);
/* Fills the tick: each card active for `ms` in `slot` with `energy_mj` (-1: unknown), held by
 * process 0 on card 0, and by 1 and 2 (of one user: 2 counts double) on card 1. */
void world_fill(struct world *w, int64_t slot, int64_t ms, int64_t energy_mj);

/* Opens and begins a run; fails the test when it cannot. */
struct store *world_open(struct world *w);
/* Writes the tick; fails the test when it cannot. */
void world_write(struct world *w, struct store *s);

/* The first column of the first row of a query on the file; fails the test on errors. */
int64_t ask(const char *path, const char *sql);
/* The same as text; valid until the next call of it. */
const char *ask_text(const char *path, const char *sql);
/* Runs SQL in a connection of its own, making the file when it is missing. */
void tell(const char *path, const char *sql);

/* Fails unless `text` has `part` in it. */
void assert_says(const char *text, const char *part);

#endif
