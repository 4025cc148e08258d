/* Arrays that grow, and what is left of them when they cannot. */
#include "test.h"

#include <stdbool.h>

#include "base/array.h"

/* With the sanitizers too, an allocation that is too large fails and does not end the test. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static void test_grows_by_doubling(void **state)
{
	(void)state;
	uint64_t *items = NULL;
	size_t cap = 0, grown = 0;
	for (size_t n = 0; n < 1000; n++) {
		size_t before = cap;
		assert_true(array_reserve(&items, &cap, n + 1));
		grown += cap != before;
		items[n] = n;
	}
	assert_int_equal(cap, 1024);
	assert_int_equal(grown, 7); /* 16, 32 ... 1024 */
	for (size_t n = 0; n < 1000; n++)
		assert_int_equal(items[n], n);
	free(items);
}

static void test_next_cap(void **state)
{
	(void)state;
	assert_int_equal(array_next_cap(0, 1), 16);
	assert_int_equal(array_next_cap(0, 17), 32);
	assert_int_equal(array_next_cap(16, 17), 32);
	assert_int_equal(array_next_cap(5, 21), 40);
	assert_int_equal(array_next_cap(16, 3), 16);
	assert_true(array_next_cap(16, SIZE_MAX) == SIZE_MAX);
	assert_true(array_next_cap(SIZE_MAX / 2 + 1, SIZE_MAX) == SIZE_MAX);
}

static void test_no_items_need_no_memory(void **state)
{
	(void)state;
	int *items = NULL;
	size_t cap = 0;
	assert_true(array_reserve(&items, &cap, 0));
	assert_true(array_resize(&items, 0));
	assert_null(items);
	assert_int_equal(cap, 0);
	assert_true(array_resize(&items, 2));
	items[1] = 7;
	assert_true(array_resize(&items, 0));
	assert_int_equal(items[1], 7);
	free(items);
}

/* The product of number and size has more than 64 bits, or is more than any memory. */
static void test_failure_leaves_the_old_array(void **state)
{
	(void)state;
	static const size_t too_many[] = { SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 8 + 2,
		SIZE_MAX / 16 };
	uint64_t *items = NULL;
	size_t cap = 0;
	assert_true(array_reserve(&items, &cap, 3));
	const uint64_t *before = items;
	items[2] = 42;
	for (size_t i = 0; i < sizeof(too_many) / sizeof(*too_many); i++) {
		assert_false(array_reserve(&items, &cap, too_many[i]));
		assert_false(array_resize(&items, too_many[i]));
		assert_ptr_equal(items, before);
		assert_int_equal(cap, 16);
		assert_int_equal(items[2], 42);
	}
	assert_false(array_one_more(&items, SIZE_MAX / 2 + 1));
	assert_ptr_equal(items, before);
	free(items);
}

static void test_one_more_without_a_capacity(void **state)
{
	(void)state;
	uint32_t *items = NULL;
	for (uint32_t n = 0; n < 100; n++) {
		assert_true(array_one_more(&items, n));
		items[n] = n;
	}
	for (uint32_t n = 0; n < 100; n++)
		assert_int_equal(items[n], n);
	free(items);
}

static int compare_numbers(const void *x, const void *y)
{
	const int *a = x, *b = y;
	return array_compare(*a, *b);
}

static void test_sorts_also_no_items(void **state)
{
	(void)state;
	int numbers[] = { 3, 1, 2 }, *none = NULL;
	array_sort(none, 0, compare_numbers);
	array_sort(numbers, 3, compare_numbers);
	for (int i = 0; i < 3; i++)
		assert_int_equal(numbers[i], i + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grows_by_doubling),
		cmocka_unit_test(test_next_cap),
		cmocka_unit_test(test_no_items_need_no_memory),
		cmocka_unit_test(test_failure_leaves_the_old_array),
		cmocka_unit_test(test_one_more_without_a_capacity),
		cmocka_unit_test(test_sorts_also_no_items),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
