/* Holders that come and go at moments that are not known exactly: the uncertainty is stored. */
#include "account_fixture.h"

static void test_an_ended_holder_counts_until_its_end(void **state)
{
	struct fixture *f = *state;
	struct holder h[] = { holder(0, 0, 1000 * MB, 0) };
	h[0].to = edge_exactly(T0 + 500);
	struct util_sample s[] = { at(0, 0), at(500, 0), at(1000, 0) };
	drain(f, s, 3, h, 1);
	flush(f, 1000, h, 1);
	assert_int_equal(sum_ms(f, CARD_IDLE_HELD), 500);
	assert_int_equal(sum_ms(f, CARD_TRULY_IDLE), 500);
	assert_int_equal(sum_holding(f, 0).ms, 500);
	assert_int_equal(sum_unsure(f), 0);
}

/* Where an edge is not known, the middle counts. Any moment of the window is as likely: twice
 * the standard deviation is its length by the root of 3, 577 ms of a second. */
static void test_a_window_is_unsure(void **state)
{
	struct fixture *f = *state;
	struct holder h[] = { holder(0, 0, 1000 * MB, 0) };
	h[0].from = edge_between(T0 + 200, T0 + 1200);
	struct util_sample s[] = { at(0, 0), at(2000, 0) };
	drain(f, s, 2, h, 1);
	flush(f, 2000, h, 1);
	assert_int_equal(sum_ms(f, CARD_IDLE_HELD), 1300);
	assert_int_equal(sum_ms(f, CARD_TRULY_IDLE), 700);
	assert_int_equal(sum_unsure(f), 577);
}

/* A state that does not depend on the holders is sure. */
static void test_an_active_card_is_sure(void **state)
{
	struct fixture *f = *state;
	struct holder h[] = { holder(0, 0, 1000 * MB, 50) };
	h[0].from = edge_between(T0 + 200, T0 + 1200);
	struct util_sample s[] = { at(0, 50), at(2000, 50) };
	drain(f, s, 2, h, 1);
	flush(f, 2000, h, 1);
	assert_int_equal(sum_ms(f, CARD_ACTIVE), 2000);
	assert_int_equal(sum_unsure(f), 0);
	struct holder two[] = { holder(0, 0, 1000 * MB, 50), h[0] };
	two[1].from = edge_between(T0 + 2200, T0 + 3200);
	struct util_sample idle[] = { at(2000, 0), at(4000, 0) };
	drain(f, idle, 2, two, 2);
	flush(f, 4000, two, 2);
	assert_int_equal(sum_ms(f, CARD_IDLE_HELD), 2000);
	assert_int_equal(sum_unsure(f), 0);
}

/* Memory that changes at an unknown moment: the process held the card all the while. */
static void test_changed_memory_is_sure(void **state)
{
	struct fixture *f = *state;
	struct holder h[] = { holder(0, 0, 4000 * MB, 0), holder(0, 0, 8000 * MB, 0) };
	h[0].to = h[1].from = edge_between(T0 + 200, T0 + 1200);
	struct util_sample s[] = { at(0, 0), at(2000, 0) };
	account_stall(&f->account, T0 + 200, T0 + 1200);
	drain(f, s, 2, h, 2);
	flush(f, 2000, h, 2);
	assert_int_equal(sum_ms(f, CARD_IDLE_HELD), 2000);
	assert_int_equal(sum_unsure(f), 0);
}

/* From above the threshold to below it: that is not sure. */
static void test_memory_that_falls_below_the_threshold(void **state)
{
	struct fixture *f = *state;
	struct holder h[] = { holder(0, 0, 4000 * MB, 0), holder(0, 0, 60 * MB, 0) };
	h[0].to = h[1].from = edge_between(T0 + 200, T0 + 1200);
	struct util_sample s[] = { at(0, 0), at(2000, 0) };
	drain(f, s, 2, h, 2);
	flush(f, 2000, h, 2);
	assert_int_equal(sum_ms(f, CARD_IDLE_HELD), 700);
	assert_int_equal(sum_unsure(f), 577);
	/* 60 MB and then 70 are never 130. */
	struct holder less[] = { holder(0, 0, 60 * MB, 0), holder(0, 0, 70 * MB, 0) };
	less[0].to = less[1].from = edge_between(T0 + 2200, T0 + 3200);
	struct util_sample next[] = { at(2000, 0), at(4000, 0) };
	drain(f, next, 2, less, 2);
	flush(f, 4000, less, 2);
	assert_int_equal(sum_unsure(f), 577);
}

static void test_stalls(void **state)
{
	struct fixture *f = *state;
	struct holder h[] = { holder(0, 0, 1000 * MB, 0) };
	h[0].to = edge_between(T0 + 2000, T0 + 5000);
	h[0].to.at = T0 + 2000;
	struct util_sample s[9];
	for (int i = 0; i < 9; i++)
		s[i] = at(1000L * i, i == 4 ? 100 : 0);
	account_stall(&f->account, T0 + 2000, T0 + 5000);
	drain(f, s, 9, h, 1);
	flush(f, 8000, h, 1);
	/* Idle time of the stall may be held or free: unobserved. Active time is active. */
	assert_int_equal(sum_ms(f, CARD_IDLE_HELD), 2000);
	assert_int_equal(sum_ms(f, CARD_UNOBSERVED), 2000);
	assert_int_equal(sum_ms(f, CARD_ACTIVE), 1000);
	assert_int_equal(sum_ms(f, CARD_TRULY_IDLE), 3000);
	assert_int_equal(sum_unsure(f), 0);
	assert_int_equal(sum_holding(f, 0).ms, 2000);
}

static void test_a_stall_without_change_costs_nothing(void **state)
{
	struct fixture *f = *state;
	struct holder h[] = { holder(0, 0, 1000 * MB, 0) };
	struct util_sample s[] = { at(0, 0), at(2000, 0), at(4000, 0) };
	account_stall(&f->account, T0 + 500, T0 + 3500);
	drain(f, s, 3, h, 1);
	flush(f, 4000, h, 1);
	assert_int_equal(sum_ms(f, CARD_IDLE_HELD), 4000);
}

/* The first may have gone at once and the second come at the end: the card may have been empty.
 */
static void test_a_card_that_changes_hands(void **state)
{
	struct fixture *f = *state;
	struct holder h[] = { holder(0, 0, 1000 * MB, 0), holder(1, 1, 1000 * MB, 0) };
	struct util_sample s[] = { at(0, 0), at(1000, 0), at(2000, 0), at(3000, 0) };
	h[0].to = edge_between(T0 + 1000, T0 + 2000);
	h[1].from = edge_between(T0 + 1000, T0 + 2000);
	drain(f, s, 4, h, 2);
	flush(f, 3000, h, 2);
	assert_int_equal(sum_ms(f, CARD_IDLE_HELD), 3000);
	assert_int_equal(sum_unsure(f), 1155);
}

/* When the use changed between two single readings is not known: the middle counts. */
static void test_polled_readings_are_doubtful(void **state)
{
	struct fixture *f = *state;
	struct util_sample a[] = { at(0, 50), at(1000, 60) },
			   b[] = { at(2000, 0), at(3000, 5) };
	struct account_drain one = ring(a, 2), two = ring(b, 2);
	one.polled = two.polled = true;
	drain_as(f, one, NULL, 0);
	assert_int_equal(sum_unsure(f), 0);
	drain_as(f, two, NULL, 0);
	assert_int_equal(sum_ms(f, CARD_ACTIVE), 1500);
	assert_int_equal(sum_ms(f, CARD_TRULY_IDLE), 1500);
	assert_int_equal(sum_unsure(f), 577);
	/* Of a ring only the edges of use are. */
	struct util_sample c[] = { at(4000, 50), at(5000, 0) };
	drain(f, c, 2, NULL, 0);
	assert_int_equal(sum_unsure(f), 577 + 500);
}

/* Bursts of `long_ms` at 60 %, one every 7.13 s, of which single samples of 167 ms are read
 * once a second. Returns how much too long the use seems to be. */
static int64_t read_bursts(struct fixture *f, int64_t long_ms)
{
	enum { READ_MS = 167, EVERY_MS = 7130, BURSTS = 1000 };
	account_start(&f->account, 0, -1);
	for (int64_t t = READ_MS; t < EVERY_MS * BURSTS; t += 1000) {
		int64_t from = t - READ_MS, begin = t / EVERY_MS * EVERY_MS + 1000;
		int64_t lo = from > begin ? from : begin;
		int64_t hi = t < begin + long_ms ? t : begin + long_ms;
		struct util_sample s = at(t, hi > lo ? 60 * (double)(hi - lo) / READ_MS : 0);
		struct account_drain d = ring(&s, 1);
		d.polled = true;
		d.hold.reading_ms = READ_MS;
		drain_as(f, d, NULL, 0);
	}
	return sum_ms(f, CARD_ACTIVE) - long_ms * BURSTS;
}

/* An edge sample of more than 10 % does not make a stretch of use longer. */
static void test_polled_readings_do_not_lean(void **state)
{
	struct fixture *f = *state;
	assert_in_range(llabs(read_bursts(f, 2300)), 0, 2300 * 1000 / 200);
}

/* Of bursts shorter than the time between readings some are missed. */
static void test_polled_readings_of_short_bursts(void **state)
{
	struct fixture *f = *state;
	int64_t off_ms = llabs(read_bursts(f, 400));
	assert_in_range(off_ms, 0, 400 * 1000 / 10);
	assert_in_range(off_ms, 0, sum_unsure(f));
}

/* Only where it depends on who came or went. */
static void test_doubt_comes_later(void **state)
{
	struct fixture *f = *state;
	struct holder h[] = { holder(0, 0, 1000 * MB, 0), holder(1, 1, 1000 * MB, 0) };
	struct util_sample s[] = { at(0, 0), at(1000, 0) };
	struct account_scene one = scene(f, h, 1), two = scene(f, h, 2);
	h[0].from = edge_between(T0 + 700, T0 + 1100);
	account_doubt(&f->account, T0 + 700, &one);
	assert_true(ledger_empty(&f->ledger));
	drain(f, s, 2, NULL, 0);
	flush(f, 1000, NULL, 0);
	account_doubt(&f->account, T0 + 700, &one);
	account_doubt(&f->account, T0 + 1005, &one);
	assert_int_equal(sum_unsure(f), 346);
	h[1].from = EDGE_ALWAYS;
	account_doubt(&f->account, T0 + 700, &two);
	assert_int_equal(sum_unsure(f), 346);
	assert_int_equal(sum_ms(f, CARD_TRULY_IDLE), 1000);
}

/* Lists that cannot be read: only that a card is active is known. */
static void test_unlisted(void **state)
{
	struct fixture *f = *state;
	struct util_sample s[] = { at(0, 0), at(1000, 0), at(2000, 100), at(3000, 0) };
	account_unlisted(&f->account, T0 + 500);
	drain(f, s, 4, NULL, 0);
	flush(f, 3000, NULL, 0);
	assert_int_equal(sum_ms(f, CARD_TRULY_IDLE), 500);
	assert_int_equal(sum_ms(f, CARD_ACTIVE), 1000);
	assert_int_equal(sum_ms(f, CARD_UNOBSERVED), 1500);
	account_unlisted(&f->account, INT64_MAX);
	struct util_sample later[] = { at(4000, 0) };
	drain(f, later, 1, NULL, 0);
	flush(f, 4000, NULL, 0);
	assert_int_equal(sum_ms(f, CARD_TRULY_IDLE), 1500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_an_ended_holder_counts_until_its_end),
		TEST(test_a_window_is_unsure),
		TEST(test_an_active_card_is_sure),
		TEST(test_changed_memory_is_sure),
		TEST(test_memory_that_falls_below_the_threshold),
		TEST(test_stalls),
		TEST(test_a_stall_without_change_costs_nothing),
		TEST(test_a_card_that_changes_hands),
		TEST(test_polled_readings_are_doubtful),
		TEST(test_polled_readings_do_not_lean),
		TEST(test_polled_readings_of_short_bursts),
		TEST(test_doubt_comes_later),
		TEST(test_unlisted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
