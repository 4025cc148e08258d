/* Which cards pick takes, and in which order. */
#include "test.h"

#include <math.h>

#include "pick/pick.h"

#define GB 1e9
#define NOW_MS 10000000

static struct present_card card(int index, double free_bytes, double util_pct, double holders,
	double held_bytes, int64_t free_since_ms)
{
	struct present_card c = { .id = { .uuid = "GPU-x", .index = index, .mig_index = -1 },
		.processes_known = true,
		.free_since_ms = free_since_ms };
	for (size_t i = 0; i < METRIC_COUNT; i++)
		c.values[i] = NAN;
	c.values[METRIC_MEMORY_FREE] = free_bytes;
	c.values[METRIC_UTILIZATION_GPU] = util_pct;
	c.values[METRIC_GUA_HOLDERS] = holders;
	c.values[METRIC_GUA_HELD_MEMORY] = held_bytes;
	return c;
}

static const struct pick_wish any = {
	.n = 1, .min_free_bytes = -1, .max_util_pct = NAN, .rules = RULES_DEFAULT
};

static enum pick_verdict judge(struct pick_wish wish, struct present_card c)
{
	return pick_judge(&wish, &c, NOW_MS);
}

static void test_free_means_idle_and_held_by_nobody(void **state)
{
	(void)state;
	assert_int_equal(judge(any, card(0, 80 * GB, 0, 0, 0, 0)), PICK_GOOD);
	assert_int_equal(judge(any, card(0, 80 * GB, 9, 1, 0.1 * GB, 0)), PICK_GOOD);
	assert_int_equal(judge(any, card(0, 80 * GB, 0, 1, 0.2 * GB, -1)), PICK_HELD);
	assert_int_equal(judge(any, card(0, 80 * GB, 0, 1, NAN, -1)), PICK_HELD);
	assert_int_equal(judge(any, card(0, 80 * GB, 10, 0, 0, -1)), PICK_ACTIVE);
}

static void test_wishes(void **state)
{
	(void)state;
	struct pick_wish wish = any;
	wish.min_free_bytes = 20000000000;
	assert_int_equal(judge(wish, card(0, 20 * GB, 0, 3, 60 * GB, -1)), PICK_GOOD);
	assert_int_equal(judge(wish, card(0, 19.9 * GB, 0, 0, 0, 0)), PICK_FULL);
	assert_int_equal(judge(wish, card(0, NAN, 0, 0, 0, 0)), PICK_FULL);
	wish = any;
	wish.max_util_pct = 30;
	assert_int_equal(judge(wish, card(0, GB, 30, 0, 0, -1)), PICK_GOOD);
	assert_int_equal(judge(wish, card(0, GB, 31, 0, 0, -1)), PICK_ACTIVE);
	wish = any;
	wish.free_for_ms = 600000;
	assert_int_equal(judge(wish, card(0, GB, 0, 0, 0, NOW_MS - 600000)), PICK_GOOD);
	assert_int_equal(judge(wish, card(0, GB, 0, 0, 0, NOW_MS - 599999)), PICK_RECENT);
	assert_int_equal(judge(wish, card(0, GB, 0, 0, 0, -1)), PICK_RECENT);
}

static void test_memory_of_nobody_who_is_listed(void **state)
{
	(void)state;
	struct present_card c = card(0, 80 * GB, 0, 0, 0, 0);
	struct pick_wish wish = any;
	c.unexplained_bytes = any.rules.held_mem_bytes;
	assert_int_equal(judge(any, c), PICK_GOOD);
	c.unexplained_bytes++;
	assert_int_equal(judge(any, c), PICK_ORPHAN);
	wish.min_free_bytes = 1;
	assert_int_equal(judge(wish, c), PICK_GOOD);
}

static void test_what_cannot_be_asked_is_not_picked(void **state)
{
	(void)state;
	struct present_card c = card(0, 80 * GB, 0, 0, 0, 0);
	c.status = CARD_STATUS_ASLEEP;
	assert_int_equal(judge(any, c), PICK_UNREADABLE);
	c.status = CARD_STATUS_OK;
	c.processes_known = false;
	assert_int_equal(judge(any, c), PICK_UNREADABLE);
}

/* Instances have no utilisation: whoever is on one may be computing. */
static void test_instances(void **state)
{
	(void)state;
	struct pick_wish wish = any;
	struct present_card c = card(0, 9 * GB, NAN, 0, 0, -1);
	c.id.mig_index = 1;
	assert_int_equal(judge(wish, c), PICK_GOOD);
	wish.n = 2;
	assert_int_equal(judge(wish, c), PICK_INSTANCE);
	wish = any;
	wish.min_free_bytes = 1000;
	assert_int_equal(judge(wish, c), PICK_GOOD);
	wish = any;
	wish.free_for_ms = 600000;
	assert_int_equal(judge(wish, c), PICK_RECENT);
	c.free_since_ms = NOW_MS - 600000;
	assert_int_equal(judge(wish, c), PICK_GOOD);
	wish = any;
	c.values[METRIC_GUA_HOLDERS] = 1;
	c.values[METRIC_GUA_HELD_MEMORY] = 1e6; /* even a small one may be computing */
	assert_int_equal(judge(wish, c), PICK_HELD);
	wish.min_free_bytes = 1000;
	c.values[METRIC_GUA_HOLDERS] = 1;
	c.values[METRIC_GUA_HELD_MEMORY] = GB;
	assert_int_equal(judge(wish, c), PICK_HELD);
}

/* Its 100 % are not believed: nobody is there. Since when is not known. */
static void test_a_suspect_card_is_free_and_comes_last(void **state)
{
	(void)state;
	struct pick_wish wish = any;
	struct present_card cards[] = { card(0, 96 * GB, 100, 0, 0, -1),
		card(1, 40 * GB, 9, 0, 0, -1) };
	struct pick_candidate order[] = { { .card = &cards[0] }, { .card = &cards[1] } };
	cards[0].state = CARD_SUSPECT;
	assert_int_equal(judge(wish, cards[0]), PICK_GOOD);
	assert_int_equal(pick_rank(&wish, order, 2, NOW_MS), 2);
	assert_ptr_equal(order[0].card, &cards[1]);
	wish.max_util_pct = 50;
	assert_int_equal(judge(wish, cards[0]), PICK_GOOD);
	wish.free_for_ms = 1000;
	assert_int_equal(judge(wish, cards[0]), PICK_RECENT);
}

static void test_the_least_loaded_comes_first(void **state)
{
	(void)state;
	struct present_card cards[] = {
		card(0, 80 * GB, 5, 0, 0, 500),
		card(1, 80 * GB, 0, 1, 10 * GB, -1), /* held */
		card(2, 80 * GB, 0, 0, 0, 900),
		card(3, 80 * GB + 9e6, 0, 0, 0, 100), /* a few MB more count for nothing */
		card(4, 96 * GB, 9, 0, 0, -1),
		card(5, 80 * GB, 0, 0, 0, 100),
	};
	const int expected[] = { 4, 3, 5, 2, 0, 1 };
	struct pick_candidate order[6];
	for (size_t i = 0; i < 6; i++)
		order[i] = (struct pick_candidate){ .card = &cards[i] };
	assert_int_equal(pick_rank(&any, order, 6, NOW_MS), 5);
	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(order[i].card->id.index, expected[i]);
		assert_int_equal(order[i].verdict, i < 5 ? PICK_GOOD : PICK_HELD);
	}
}

/* What a waiting pick writes into its ticket, read back. */
static void test_a_wish_as_text(void **state)
{
	(void)state;
	struct pick_wish wish = { .n = 3,
		.min_free_bytes = 20000000000,
		.max_util_pct = 12.5,
		.free_for_ms = 600000 };
	struct str text = { 0 };
	struct pick_ask ask;
	pick_wish_add(&text, &wish, "GPU-a,GPU-b");
	assert_true(pick_ask_parse(text.data, text.len, &ask));
	assert_int_equal(ask.wish.n, 3);
	assert_int_equal(ask.wish.min_free_bytes, 20000000000);
	assert_true(ask.wish.max_util_pct == 12.5);
	assert_int_equal(ask.wish.free_for_ms, 600000);
	assert_true(pick_ask_names(&ask, "GPU-a") && pick_ask_names(&ask, "GPU-b"));
	assert_false(pick_ask_names(&ask, "GPU") || pick_ask_names(&ask, "GPU-a,GPU-b"));
	str_clear(&text);
	pick_wish_add(&text, &any, "");
	assert_true(pick_ask_parse(text.data, text.len, &ask));
	assert_true(isnan(ask.wish.max_util_pct) && ask.wish.min_free_bytes == -1);
	assert_true(pick_ask_names(&ask, "GPU-z"));
	str_finish(&text);
}

static void test_a_text_that_is_not_a_wish(void **state)
{
	(void)state;
	static const char *const texts[] = { "", "x", "gua-pick-1", "gua-pick-1 1 -1 - 0",
		"gua-pick-1 0 -1 - 0 *\n", "gua-pick-1 65 -1 - 0 *\n",
		"gua-pick-1 1 -2 - 0 *\n", "gua-pick-1 1 -1 nan 0 *\n",
		"gua-pick-1 1 -1 inf 0 *\n", "gua-pick-1 1 -1 - -1 *\n",
		"gua-pick-1 1 -1 - 0 \n", "gua-pick-1 1 -1 - 0 *", "gua-pick-2 1 -1 - 0 *\n",
		"gua-pick-1 99999999999999999999 -1 - 0 *\n" };
	struct pick_ask ask;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		assert_false(pick_ask_parse(texts[i], strlen(texts[i]), &ask));
	assert_true(pick_ask_parse("gua-pick-1 1 -1 - 0 *\n", 22, &ask));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_free_means_idle_and_held_by_nobody),
		cmocka_unit_test(test_wishes),
		cmocka_unit_test(test_memory_of_nobody_who_is_listed),
		cmocka_unit_test(test_what_cannot_be_asked_is_not_picked),
		cmocka_unit_test(test_instances),
		cmocka_unit_test(test_a_suspect_card_is_free_and_comes_last),
		cmocka_unit_test(test_the_least_loaded_comes_first),
		cmocka_unit_test(test_a_wish_as_text),
		cmocka_unit_test(test_a_text_that_is_not_a_wish),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
