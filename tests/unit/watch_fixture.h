/* A watch over one card, whose readings are made by hand. */
#ifndef GUA_TESTS_UNIT_WATCH_FIXTURE_H
#define GUA_TESTS_UNIT_WATCH_FIXTURE_H

#include "test.h"

#include <stdbool.h>

#include "base/clock.h"
#include "record/watch.h"

#define MB 1000000LL
#define T0 1794528000000LL /* a full minute */
enum { MAX_SAMPLES = 200 };

/* One card, whose readings a test sets before each round. */
struct fixture {
	struct source source;
	struct card_reading card;
	struct util_sample samples[MAX_SAMPLES];
	struct card_process process; /* on the card when n_processes is 1 */
	struct process_util util;
	struct ended_process ended;
	struct source_xid xid;
	int64_t sampled_ms; /* since T0: samples reach up to here */
	struct clock clock;
	struct round *round;
	struct reader *reader; /* of this host, or NULL: the source describes processes */
	struct watch watch;
};

int watch_setup(void **state);
int watch_teardown(void **state);
void make_round(struct fixture *f, int64_t after_ms);
void glance(struct fixture *f, int64_t after_ms);
/* Samples of `pct`, five a second, up to this moment, and as at a tick a look. */
void drain(struct fixture *f, int64_t after_ms, double pct);
void put_process(struct fixture *f, bool there);
int64_t sum_ms(const struct fixture *f, enum card_state state);
/* Presence of a user, all states. */
int64_t presence_ms(const struct fixture *f, const char *user);
size_t n_events(const struct fixture *f, enum event_kind kind);
size_t n_open(const struct fixture *f);
/* The stretch that goes on, of which there must be one. */
const struct holder *open_holder(const struct fixture *f);
const char *open_user(const struct fixture *f);

#define TEST(name) cmocka_unit_test_setup_teardown(name, watch_setup, watch_teardown)

#endif
