/* When the recorder asks the driver for what: distances by cost, tries after a failure. */
#include "test.h"

#include <stdbool.h>

#include "record/schedule.h"

#define SECOND 1000000LL
#define START (1000 * SECOND)

static struct schedule started(void)
{
	struct schedule s = {
		.interval_us = 30 * SECOND,
		.drain_us = 5 * SECOND,
		.glance_us = 1 * SECOND,
		.retry_us = 30 * SECOND,
	};
	schedule_start(&s, START);
	return s;
}

/* Asks at the next moment and makes the round, which costs as given. Returns the moment. */
static int64_t step(
	struct schedule *s, struct round *round, enum health health, int64_t ring_us)
{
	int64_t now_us = schedule_next(s);
	bool asked = schedule_ask(s, now_us, health, round);
	if (asked && health != HEALTH_DOWN)
		schedule_done(s, now_us, round, 0, ring_us);
	if (schedule_is_tick(s, now_us))
		schedule_tick(s, now_us);
	return now_us;
}

static void test_the_first_round_is_now(void **state)
{
	(void)state;
	struct schedule s = started();
	struct round round = { 0 };
	assert_int_equal(schedule_next(&s), START);
	assert_true(schedule_ask(&s, START, HEALTH_GOOD, &round));
	assert_true(round.drain);
	assert_true(round.energy);
	assert_false(round.scan);
	assert_false(round.look_all);
	assert_false(schedule_is_tick(&s, START));
}

/* Ten minutes of a healthy host. */
static void test_drains_glances_and_ticks(void **state)
{
	(void)state;
	struct schedule s = started();
	struct round round = { 0 };
	int64_t drained_us = START, before_us = START, looked_us = START;
	int64_t rounds = 0, ticks = 0, sum_us = 0;
	step(&s, &round, HEALTH_GOOD, 0);
	while (schedule_next(&s) < START + 600 * SECOND) {
		bool is_tick = schedule_next(&s) == s.next_tick_us;
		int64_t now_us = step(&s, &round, HEALTH_GOOD, 0);
		assert_in_range(now_us - before_us, 0, 12 * SECOND / 10);
		if (is_tick) {
			/* All lists were read at most a second before; nothing is asked now. */
			assert_int_equal((now_us - START) % (30 * SECOND), 0);
			assert_in_range(now_us - looked_us, 0, SECOND);
			ticks++;
			continue;
		}
		assert_false(round.scan);
		if (round.look_all) {
			assert_true(round.drain);
			looked_us = now_us;
		}
		if (round.drain) {
			assert_in_range(now_us - drained_us, 0, 5 * SECOND);
			drained_us = now_us;
		}
		assert_in_range(
			s.pace.next_glance_us - now_us, 8 * SECOND / 10, 12 * SECOND / 10);
		sum_us += s.pace.next_glance_us - now_us;
		before_us = now_us;
		rounds++;
	}
	assert_int_equal(ticks, 19);
	assert_in_range(rounds, 600, 900);
	/* About a second apart, and not always the same. */
	assert_in_range(sum_us / rounds, 95 * SECOND / 100, 105 * SECOND / 100);
}

static void test_a_missed_tick_is_not_caught_up(void **state)
{
	(void)state;
	struct schedule s = started();
	assert_int_equal(s.next_tick_us, START + 30 * SECOND);
	schedule_tick(&s, START + 95 * SECOND);
	assert_int_equal(s.next_tick_us, START + 120 * SECOND);
	schedule_tick(&s, START + 120 * SECOND);
	assert_int_equal(s.next_tick_us, START + 150 * SECOND);
}

static void test_cards_are_looked_for_every_ten_minutes(void **state)
{
	(void)state;
	struct schedule s = started();
	struct round round = { 0 };
	assert_true(schedule_ask(&s, START + 600 * SECOND, HEALTH_GOOD, &round));
	assert_true(round.scan && round.drain && round.look_all);
	assert_int_equal(s.next_scan_us, START + 1200 * SECOND);
	assert_true(schedule_ask(&s, START + 601 * SECOND, HEALTH_GOOD, &round));
	assert_false(round.scan);
}

/* Distance of glances when each costs as given: CPU and time by the clock. */
static int64_t apart_us(int64_t cost_us, int64_t took_us)
{
	struct schedule s = started();
	struct round round = { .cost_us = cost_us };
	schedule_done(&s, START, &round, took_us, 0);
	return s.pace.apart_us;
}

static void test_what_costs_more_is_done_less_often(void **state)
{
	(void)state;
	assert_int_equal(apart_us(0, 0), SECOND);
	assert_int_equal(apart_us(150, 10000), SECOND);
	assert_int_equal(apart_us(300, 0), 2 * SECOND);
	assert_int_equal(apart_us(0, 30000), 3 * SECOND);
	assert_int_equal(apart_us(300, 30000), 3 * SECOND);
	/* Never further apart than drains. */
	assert_int_equal(apart_us(1000000, 0), 5 * SECOND);
	assert_int_equal(apart_us(0, 1000000), 5 * SECOND);
}

static void test_a_drain_is_not_what_a_glance_takes(void **state)
{
	(void)state;
	struct schedule s = started();
	struct round drain = { .drain = true, .energy = true, .energy_cost_us = 400 };
	schedule_done(&s, START, &drain, 3 * SECOND, 0);
	assert_int_equal(s.pace.apart_us, SECOND);
	assert_int_equal(s.pace.next_energy_us, START);
}

static void test_energy_is_apart_by_its_own_cost(void **state)
{
	(void)state;
	struct schedule s = started();
	struct round round = { .energy = true, .energy_cost_us = 125 };
	schedule_done(&s, START, &round, 0, 0);
	assert_int_equal(s.pace.next_energy_us, START + 25 * SECOND / 10);
	assert_int_equal(s.pace.apart_us, SECOND);
	assert_true(schedule_ask(&s, START + 12 * SECOND / 10, HEALTH_GOOD, &round));
	assert_false(round.energy);
	assert_true(schedule_ask(&s, START + 26 * SECOND / 10, HEALTH_GOOD, &round));
	assert_true(round.energy);
	/* A dear one is still read with each drain. */
	round = (struct round){ .energy = true, .energy_cost_us = 3600 };
	for (int i = 0; i < SPACING_RECENT; i++)
		schedule_done(&s, START, &round, 0, 0);
	assert_int_equal(s.pace.next_energy_us, START + 5 * SECOND);
}

static void test_a_ring_shorter_than_two_drains(void **state)
{
	(void)state;
	struct schedule s = started();
	struct round round = { .drain = true };
	schedule_done(&s, START, &round, 0, 10 * SECOND);
	assert_in_range(s.next_drain_us, START + 4 * SECOND, START + 5 * SECOND);
	schedule_done(&s, START, &round, 0, 4 * SECOND);
	assert_in_range(s.next_drain_us, START + 16 * SECOND / 10, START + 2 * SECOND);
	schedule_done(&s, START, &round, 0, 0);
	assert_in_range(s.next_drain_us, START + 4 * SECOND, START + 5 * SECOND);
}

static void test_shared_cards_are_drained_by_what_that_costs(void **state)
{
	(void)state;
	struct schedule s = started();
	struct round round = { .shared = true, .shared_cost_us = 125 };
	schedule_done(&s, START, &round, 0, 0);
	assert_int_equal(s.pace.next_shared_us, START + 25 * SECOND / 10);
	assert_true(schedule_ask(&s, START + 12 * SECOND / 10, HEALTH_GOOD, &round));
	assert_false(round.shared);
	assert_true(schedule_ask(&s, START + 26 * SECOND / 10, HEALTH_GOOD, &round));
	assert_true(round.shared);
}

/* A glance that is late when the tick is late, too, is not waited for: the recorder ticks. */
static void test_no_patrol_when_a_tick_or_a_scan_is_late(void **state)
{
	(void)state;
	struct schedule s = started();
	struct round round = { 0 };
	step(&s, &round, HEALTH_GOOD, 0);
	int64_t glance_us = s.pace.next_glance_us;
	assert_true(schedule_can_patrol(&s, START, HEALTH_GOOD));
	assert_true(schedule_can_patrol(&s, glance_us + 1, HEALTH_GOOD));
	assert_false(schedule_can_patrol(&s, glance_us, HEALTH_CARD));
	s.next_look_us = INT64_MAX;
	s.next_tick_us = glance_us + 10;
	assert_true(schedule_can_patrol(&s, glance_us + 9, HEALTH_GOOD));
	assert_false(schedule_can_patrol(&s, glance_us + 10, HEALTH_GOOD));
	s.next_tick_us += SECOND;
	s.next_scan_us = glance_us + 10;
	assert_false(schedule_can_patrol(&s, glance_us + 10, HEALTH_GOOD));
	s.next_scan_us = glance_us;
	assert_false(schedule_can_patrol(&s, START, HEALTH_GOOD));
}

/* A lost card: tried again every second for a minute, then less and less often. */
static void test_tries_after_a_lost_card(void **state)
{
	(void)state;
	struct schedule s = started();
	struct round round = { 0 };
	int64_t scans = 0, before_us = START;
	while (before_us < START + 60 * SECOND) {
		int64_t now_us = step(&s, &round, HEALTH_LOST, 0);
		if (!round.scan)
			continue;
		assert_int_equal(now_us, before_us + SECOND);
		before_us = now_us;
		scans++;
	}
	assert_int_equal(scans, 60);
	static const int64_t later[] = { 2, 6, 14, 30, 60, 90 };
	for (size_t n = 0; n < sizeof(later) / sizeof(later[0]);) {
		int64_t now_us = step(&s, &round, HEALTH_LOST, 0);
		if (round.scan)
			assert_int_equal(now_us, START + (60 + later[n++]) * SECOND);
	}
	/* Back, and lost again later: from the beginning. */
	step(&s, &round, HEALTH_GOOD, 0);
	assert_int_equal(s.wait_us, 0);
	int64_t lost_us = step(&s, &round, HEALTH_LOST, 0);
	assert_int_equal(s.next_scan_us, lost_us + SECOND);
	while (!round.scan)
		step(&s, &round, HEALTH_LOST, 0);
	assert_int_equal(s.next_scan_us, lost_us + 2 * SECOND);
}

/* A card that sleeps for long does not delay the tries for another that is lost. */
static void test_a_lost_card_beside_one_that_sleeps(void **state)
{
	(void)state;
	struct schedule s = started();
	struct round round = { 0 };
	while (schedule_next(&s) < START + 300 * SECOND)
		step(&s, &round, HEALTH_CARD, 0);
	assert_int_equal(s.wait_us, 30 * SECOND);
	int64_t lost_us = step(&s, &round, HEALTH_LOST, 0);
	assert_int_equal(s.next_scan_us, lost_us + SECOND);
	int64_t scans = 0;
	while (schedule_next(&s) <= lost_us + 60 * SECOND) {
		step(&s, &round, HEALTH_LOST, 0);
		scans += round.scan;
	}
	assert_int_equal(scans, 60);
}

/* A card that is not lost: tried again after 1, 2, 4 ... s while the others go on. */
static void test_tries_after_a_card_that_sleeps(void **state)
{
	(void)state;
	static const int64_t expected[] = { 1, 3, 7, 15, 31, 61, 91 };
	struct schedule s = started();
	struct round round = { 0 };
	size_t n = 0;
	int64_t rounds = 0;
	while (n < sizeof(expected) / sizeof(expected[0])) {
		int64_t now_us = step(&s, &round, HEALTH_CARD, 0);
		rounds++;
		if (round.scan) {
			assert_int_equal(now_us, START + expected[n] * SECOND);
			n++;
		}
	}
	assert_true(rounds > 80);
	/* Back, and lost again later: from the beginning. */
	step(&s, &round, HEALTH_GOOD, 0);
	assert_int_equal(s.wait_us, 0);
	int64_t lost_us = step(&s, &round, HEALTH_CARD, 0);
	assert_int_equal(s.next_scan_us, lost_us + SECOND);
}

static void test_no_longer_than_retry(void **state)
{
	(void)state;
	struct schedule s = started();
	struct round round = { 0 };
	int64_t scans = 0;
	s.retry_us = SECOND;
	while (schedule_next(&s) <= START + 10 * SECOND) {
		step(&s, &round, HEALTH_CARD, 0);
		scans += round.scan;
	}
	assert_int_equal(scans, 10);
}

/* A driver that does not answer is asked at the tries only, and ticks go on. */
static void test_a_driver_that_is_down(void **state)
{
	(void)state;
	static const int64_t expected[] = { 1, 3, 7, 15, 30, 31, 60, 61 };
	struct schedule s = started();
	struct round round = { 0 };
	assert_false(schedule_ask(&s, START, HEALTH_DOWN, &round));
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		bool is_try = expected[i] % 30 != 0;
		int64_t now_us = schedule_next(&s);
		assert_int_equal(now_us, START + expected[i] * SECOND);
		assert_int_equal(schedule_is_tick(&s, now_us), !is_try);
		assert_int_equal(schedule_ask(&s, now_us, HEALTH_DOWN, &round), is_try);
		assert_int_equal(round.scan, is_try);
		if (!is_try)
			schedule_tick(&s, now_us);
	}
}

/* The try that succeeds: glances and drains go on at once, not at the next try. */
static void test_a_driver_that_is_back(void **state)
{
	(void)state;
	struct schedule s = started();
	struct round round = { 0 };
	assert_false(schedule_ask(&s, START, HEALTH_DOWN, &round));
	int64_t now_us = START;
	for (int i = 0; i < 4; i++) {
		now_us = schedule_next(&s);
		assert_true(schedule_ask(&s, now_us, HEALTH_DOWN, &round));
	}
	schedule_done(&s, now_us, &round, 0, 0);
	assert_in_range(schedule_next(&s), now_us, now_us + 12 * SECOND / 10);
	now_us = schedule_next(&s);
	assert_true(schedule_ask(&s, now_us, HEALTH_GOOD, &round));
	assert_int_equal(s.next_scan_us, now_us + 600 * SECOND);
}

static void test_spacing(void **state)
{
	(void)state;
	struct spacing s = { 0 };
	assert_int_equal(round_spacing_us(&s, 0.01, 5, 1000), 5);
	round_spacing_add(&s, 3);
	assert_int_equal(round_spacing_us(&s, 0.01, 5, 1000), 300);
	/* The least of the newest counts: one that met other work does not. */
	round_spacing_add(&s, 900);
	assert_int_equal(round_spacing_us(&s, 0.01, 5, 1000), 300);
	assert_int_equal(round_spacing_us(&s, 0.01, 400, 1000), 400);
	for (int i = 0; i < SPACING_RECENT - 1; i++)
		round_spacing_add(&s, 8);
	assert_int_equal(round_spacing_us(&s, 0.01, 5, 1000), 800);
	for (int i = 0; i < SPACING_RECENT; i++)
		round_spacing_add(&s, 50);
	assert_int_equal(round_spacing_us(&s, 0.01, 5, 1000), 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_first_round_is_now),
		cmocka_unit_test(test_drains_glances_and_ticks),
		cmocka_unit_test(test_a_missed_tick_is_not_caught_up),
		cmocka_unit_test(test_cards_are_looked_for_every_ten_minutes),
		cmocka_unit_test(test_what_costs_more_is_done_less_often),
		cmocka_unit_test(test_a_drain_is_not_what_a_glance_takes),
		cmocka_unit_test(test_energy_is_apart_by_its_own_cost),
		cmocka_unit_test(test_a_ring_shorter_than_two_drains),
		cmocka_unit_test(test_shared_cards_are_drained_by_what_that_costs),
		cmocka_unit_test(test_no_patrol_when_a_tick_or_a_scan_is_late),
		cmocka_unit_test(test_tries_after_a_lost_card),
		cmocka_unit_test(test_tries_after_a_card_that_sleeps),
		cmocka_unit_test(test_a_lost_card_beside_one_that_sleeps),
		cmocka_unit_test(test_no_longer_than_retry),
		cmocka_unit_test(test_a_driver_that_is_down),
		cmocka_unit_test(test_a_driver_that_is_back),
		cmocka_unit_test(test_spacing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
