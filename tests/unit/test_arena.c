/* Memory that is freed whole. The sanitizers see what is not freed. */
#include "test.h"

#include <stdalign.h>

#include "base/arena.h"

/* With the sanitizers too, an allocation that is too large fails and does not end the test. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

enum { PIECES = 500 };

static void test_pieces_are_apart(void **state)
{
	(void)state;
	struct arena a = { 0 };
	unsigned char *pieces[PIECES];
	for (size_t i = 0; i < PIECES; i++) {
		pieces[i] = arena_take(&a, i);
		assert_non_null(pieces[i]);
		assert_int_equal((uintptr_t)pieces[i] % alignof(max_align_t), 0);
		memset(pieces[i], (int)(i % 256), i);
	}
	for (size_t i = 0; i < PIECES; i++)
		for (size_t k = 0; k < i; k++)
			assert_int_equal(pieces[i][k], i % 256);
	arena_finish(&a);
	assert_null(a.newest);
	arena_finish(&a);
}

static void test_large_piece(void **state)
{
	(void)state;
	struct arena a = { 0 };
	const char *before = arena_text(&a, "before");
	char *large = arena_take(&a, 100000);
	assert_non_null(large);
	memset(large, 'x', 100000);
	const char *after = arena_text(&a, "");
	assert_string_equal(before, "before");
	assert_string_equal(after, "");
	assert_false(a.failed);
	arena_finish(&a);
}

static void test_text_is_formatted(void **state)
{
	(void)state;
	struct arena a = { 0 };
	const char *text = arena_textf(&a, "%s=%d", "answer", 42);
	const char *wide = arena_textf(&a, "%5000s", text);
	assert_string_equal(text, "answer=42");
	assert_int_equal(strlen(wide), 5000);
	assert_string_equal(wide + 5000 - strlen(text), text);
	assert_false(a.failed);
	arena_finish(&a);
}

static void test_failure_is_remembered(void **state)
{
	(void)state;
	struct arena a = { 0 };
	const char *text = arena_text(&a, "text");
	assert_null(arena_take(&a, SIZE_MAX));
	assert_true(a.failed);
	assert_null(arena_take(&a, SIZE_MAX / 2));
	assert_non_null(arena_take(&a, 1));
	assert_true(a.failed);
	assert_string_equal(text, "text");
	arena_finish(&a);
	assert_false(a.failed);
}

static void test_pieces_are_moved(void **state)
{
	(void)state;
	struct arena to = { 0 }, from = { 0 };
	arena_move(&to, &from);
	const char *first = arena_text(&from, "first");
	assert_non_null(arena_take(&from, 10000));
	arena_move(&to, &from);
	const char *second = arena_text(&from, "second");
	arena_move(&to, &from);
	arena_finish(&from);
	assert_string_equal(first, "first");
	assert_string_equal(second, "second");
	arena_finish(&to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pieces_are_apart),
		cmocka_unit_test(test_large_piece),
		cmocka_unit_test(test_text_is_formatted),
		cmocka_unit_test(test_failure_is_remembered),
		cmocka_unit_test(test_pieces_are_moved),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
