/* An account with its ledger, and short ways to feed and to read it. */
#ifndef GUA_TESTS_UNIT_ACCOUNT_FIXTURE_H
#define GUA_TESTS_UNIT_ACCOUNT_FIXTURE_H

#include "test.h"

#include <math.h>
#include <stdbool.h>

#include "classify/account.h"

#define MB 1000000LL
#define T0 1794528000000LL /* a full minute */

struct fixture {
	struct account account;
	struct ledger ledger;
};

/* Sums over holding rows of one process, all states. */
struct holder_time {
	int64_t ms, presence_ms, share_ms;
};

int account_setup(void **state);
int account_teardown(void **state);
int64_t sum_ms(const struct fixture *f, enum card_state state);
int64_t sum_energy(const struct fixture *f);
int64_t sum_unsure(const struct fixture *f);
/* A process' own time in a state. */
int64_t sum_state(const struct fixture *f, uint32_t process, enum holder_state state);
struct holder_time sum_holding(const struct fixture *f, uint32_t process);
/* A drain of a driver with a ring, as tests change it. */
struct account_drain ring(const struct util_sample *samples, size_t n);
struct account_scene scene(struct fixture *f, struct holder *holders, size_t n);
/* The holders' sm_pct are what the drain says of them. */
void drain_as(
	struct fixture *f, struct account_drain d, struct holder *holders, size_t n_holders);
void drain(struct fixture *f, const struct util_sample *samples, size_t n,
	struct holder *holders, size_t n_holders);
void flush(struct fixture *f, int64_t after_ms, struct holder *holders, size_t n);
void blind(struct fixture *f, int64_t after_ms, struct holder *holders, size_t n);
struct util_sample at(int64_t after_ms, double pct);
struct holder holder(uint32_t process, uint32_t user, int64_t mem, double sm);

#define TEST(name) cmocka_unit_test_setup_teardown(name, account_setup, account_teardown)

#endif
