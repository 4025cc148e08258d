/* Leases of a card: where they cut time, which of them count, and how time is divided. */
#include "test.h"

#include "classify/leased.h"

static const int64_t unended = INT64_MAX;

static struct card_lease lease(uint32_t owner, int64_t from_ms, int64_t to_ms)
{
	return (struct card_lease){
		.owner = owner, .from_ms = from_ms, .to_ms = to_ms, .unknown_ms = unended
	};
}

/* Who has which part of a stretch. */
struct parts {
	enum leased leased;
	bool counts[LEASED_MAX];
	int64_t part_ms[LEASED_MAX];
};

static void divide(const struct card_lease *all, size_t n, int64_t from_ms, int64_t to_ms,
	struct parts *parts)
{
	struct leased_now now;
	leased_find(all, n, from_ms, &now);
	*parts = (struct parts){ .leased = now.leased };
	for (size_t i = 0; i < n; i++) {
		parts->counts[i] = now.counts >> i & 1;
		if (parts->counts[i])
			parts->part_ms[i] = leased_part_ms(&now, i, from_ms, to_ms);
	}
}

static void test_time_is_cut_where_leases_change(void **state)
{
	(void)state;
	struct card_lease all[] = { lease(0, 100, 400), lease(1, 200, unended) };
	all[1].unknown_ms = 300;
	static const int64_t cuts[] = { INT64_MIN, 100, 200, 300, 400, INT64_MAX };
	for (size_t i = 0; i < 5; i++) {
		struct leased_now now;
		leased_find(all, 2, i == 0 ? 0 : cuts[i], &now);
		assert_int_equal(now.from_ms, cuts[i]);
		assert_int_equal(now.to_ms, cuts[i + 1]);
	}
}

static void test_each_owner_has_an_equal_part(void **state)
{
	(void)state;
	struct card_lease all[] = { lease(0, 0, unended), lease(0, 0, unended),
		lease(0, 0, unended), lease(1, 0, unended), lease(2, 0, 50) };
	struct parts parts;
	divide(all, 5, 600, 1200, &parts);
	assert_int_equal(parts.leased, LEASED_SURELY);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(parts.part_ms[i], 100);
	assert_int_equal(parts.part_ms[3], 300);
	assert_false(parts.counts[4]);
}

/* Single milliseconds cannot be divided, but a row of them can. */
static void test_rounding_does_not_add_up(void **state)
{
	(void)state;
	const struct card_lease all[] = { lease(0, 0, unended), lease(1, 0, unended),
		lease(2, 0, unended) };
	const int64_t start = 1794528000000 + 1;
	int64_t sums[3] = { 0 };
	for (int64_t at = start; at < start + 3000; at++) {
		struct parts parts;
		int64_t sum = 0;
		divide(all, 3, at, at + 1, &parts);
		for (size_t i = 0; i < 3; i++) {
			sum += parts.part_ms[i];
			sums[i] += parts.part_ms[i];
		}
		assert_int_equal(sum, 1);
	}
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(sums[i], 1000);
}

static void test_a_scheduler_hides_a_pick(void **state)
{
	(void)state;
	struct card_lease all[] = { lease(0, 0, unended), lease(0, 0, 500),
		lease(1, 0, unended) };
	struct parts parts;
	all[0].pick = all[2].pick = true;
	divide(all, 3, 0, 100, &parts);
	assert_false(parts.counts[0]);
	assert_int_equal(parts.part_ms[1], 50);
	assert_int_equal(parts.part_ms[2], 50);
	divide(all, 3, 500, 600, &parts); /* its job has ended: the pick counts */
	assert_int_equal(parts.part_ms[0], 50);
}

static void test_unknown_leases_count_by_themselves(void **state)
{
	(void)state;
	struct card_lease all[] = { lease(0, 0, unended), lease(1, 0, 200) };
	struct parts parts;
	all[0].unknown_ms = 100;
	divide(all, 2, 100, 200, &parts);
	assert_int_equal(parts.leased, LEASED_SURELY);
	assert_int_equal(parts.part_ms[0], 0);
	assert_int_equal(parts.part_ms[1], 100);
	divide(all, 2, 200, 300, &parts);
	assert_int_equal(parts.leased, LEASED_MAYBE);
	assert_int_equal(parts.part_ms[0], 100);
	divide(all, 0, 200, 300, &parts);
	assert_int_equal(parts.leased, LEASED_NOT);
}

/* Its own time has one row for the slots of a tick; another day has its own, and so has
 * reserved time in another slot. */
static void test_own_time_is_written_once(void **state)
{
	(void)state;
	enum { MIDNIGHT = 1794528000 };
	struct card_lease own = lease(0, 0, unended);
	struct leased_now now;
	struct ledger ledger;
	struct err e = { 0 };
	static const struct {
		int64_t slot, ms;
		bool free;
	} pieces[] = { { MIDNIGHT - 120, 5000, false }, { MIDNIGHT - 60, 7000, false },
		{ MIDNIGHT, 1000, true }, { MIDNIGHT + 60, 2000, false } };
	assert_int_equal(ledger_init(&ledger, &e), 0);
	own.sum.slot = -1;
	leased_find(&own, 1, 1000, &now);
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		int64_t from_ms = pieces[i].slot * 1000;
		const struct leased_piece piece = { .slot = pieces[i].slot,
			.from_ms = from_ms,
			.to_ms = from_ms + pieces[i].ms,
			.free = pieces[i].free,
			.held = !pieces[i].free };
		leased_add(&own, &now, &piece, &ledger);
	}
	leased_settle(&own, 1, 0, &ledger);
	size_t n = 0;
	const struct lease_sum *rows = ledger_leased_rows(&ledger, &n);
	assert_int_equal(n, 3);
	assert_int_equal(rows[0].slot, MIDNIGHT - 60);
	assert_int_equal(rows[0].idle_held_ms, 12000);
	assert_int_equal(rows[1].slot, MIDNIGHT);
	assert_int_equal(rows[1].reserved_ms, 1000);
	assert_int_equal(rows[1].untouched_ms + rows[1].idle_held_ms, 0);
	assert_int_equal(rows[2].slot, MIDNIGHT + 60);
	assert_int_equal(rows[2].untouched_ms, 1000);
	assert_int_equal(rows[2].idle_held_ms, 2000);
	assert_int_equal(rows[2].reserved_ms, 0);
	ledger_finish(&ledger);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_time_is_cut_where_leases_change),
		cmocka_unit_test(test_each_owner_has_an_equal_part),
		cmocka_unit_test(test_rounding_does_not_add_up),
		cmocka_unit_test(test_a_scheduler_hides_a_pick),
		cmocka_unit_test(test_unknown_leases_count_by_themselves),
		cmocka_unit_test(test_own_time_is_written_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
