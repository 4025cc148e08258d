/* CUDA_VISIBLE_DEVICES as CUDA reads it. */
#include "test.h"

#include <stdio.h>

#include "track/visible.h"

/* Four cards: one may not be opened, one has two MIG instances. */
static struct card_reading cards[5];
enum { N = 5 };

static int set_up(void **state)
{
	static const char *const uuids[N] = { "GPU-aaaa-1", "GPU-dddd-1", "GPU-aabb-2",
		"MIG-1111", "MIG-1122" };
	(void)state;
	for (int i = 0; i < N; i++) {
		struct card_id *id = &cards[i].id;
		cards[i].status = i == 1 ? CARD_STATUS_DENIED : CARD_STATUS_OK;
		snprintf(id->uuid, sizeof(id->uuid), "%s", uuids[i]);
		id->index = i < 3 ? i : 3;
		id->mig_index = i < 3 ? -1 : i - 3;
		id->gpu_instance = i < 3 ? -1 : i;
		id->compute_instance = i < 3 ? -1 : 0;
		if (i >= 3)
			snprintf(id->parent_uuid, sizeof(id->parent_uuid), "GPU-cccc-3");
	}
	return 0;
}

/* The cards that are shown, as a text: "034". */
static const char *shown(const char *list)
{
	static char text[N + 1];
	const struct visible v = { cards, N, list };
	size_t len = 0;
	for (size_t i = 0; i < N; i++)
		if (visible_has(&v, i))
			text[len++] = (char)('0' + i);
	text[len] = '\0';
	return text;
}

static void test_lists(void **state)
{
	static const struct {
		const char *list, *shown;
	} cases[] = {
		{ NULL, "0234" },
		{ "", "" },
		{ "-1", "" },
		{ "NoDevFiles", "" },
		/* Cards that may not be opened have no number. */
		{ "0", "0" },
		{ "1", "2" },
		{ "2", "34" },
		{ "3", "" },
		{ "1,0", "02" },
		{ " 0 , 1 ", "02" },
		{ "0,0", "0" },
		/* What names no card ends the list. */
		{ "0,-1,1", "0" },
		{ "0,,1", "0" },
		{ "0,7,1", "0" },
		{ "0,1x,1", "0" },
		{ "0 1", "0" },
		{ "99999999999999999999999999", "" },
		{ "GPU-aaaa-1", "0" },
		{ "GPU-aabb", "2" },
		{ "GPU-aa", "" },
		{ "GPU-aabb-22", "" },
		{ "GPU-dddd-1,0", "0" },
		{ "GPU-cccc", "34" },
		{ "MIG-1111", "3" },
		{ "MIG-112,0", "04" },
		{ "MIG-11", "" },
		{ "MIG-GPU-cccc-3/4/0", "4" },
		{ "MIG-GPU-cccc-3/5/0", "" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(shown(cases[i].list), cases[i].shown);
}

static void test_a_whole_uuid_is_not_the_beginning_of_another(void **state)
{
	(void)state;
	snprintf(cards[2].id.uuid, sizeof(cards[2].id.uuid), "GPU-aaaa-12");
	assert_string_equal(shown("GPU-aaaa-1"), "0");
	assert_string_equal(shown("GPU-aaaa-12"), "2");
	assert_string_equal(shown("GPU-aaaa"), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_lists, set_up),
		cmocka_unit_test_setup(
			test_a_whole_uuid_is_not_the_beginning_of_another, set_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
