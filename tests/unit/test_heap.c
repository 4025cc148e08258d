/* The limit of SQLite's memory: what is too much is refused, what was freed counts no more;
 * with our own count and with SQLite's. */
#include "test.h"

#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/foreign.h"

#define MIB (1LL << 20)

static void check_limit(void)
{
	assert_false(foreign_has_heap_limit());
	void *before = sqlite3_malloc64(8 * MIB);
	assert_non_null(before);
	sqlite3_free(before);
	foreign_set_heap_limit(4 * MIB);
	assert_true(foreign_has_heap_limit());
	for (int i = 0; i < 10; i++) {
		void *most = sqlite3_malloc64(3 * MIB);
		assert_non_null(most);
		assert_null(sqlite3_malloc64(2 * MIB));
		assert_null(sqlite3_realloc64(most, 5 * MIB));
		most = sqlite3_realloc64(most, MIB);
		assert_non_null(most);
		void *rest = sqlite3_malloc64(2 * MIB);
		assert_non_null(rest);
		sqlite3_free(most);
		sqlite3_free(rest);
	}
	foreign_set_heap_limit(16 * MIB);
	void *more = sqlite3_malloc64(8 * MIB);
	assert_non_null(more);
	sqlite3_free(more);
}

/* A connection that wants too much fails as if memory had run out, and the next one works. */
static void check_statement(void)
{
	sqlite3 *db = NULL;
	foreign_set_heap_limit(4 * MIB);
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "SELECT hex(zeroblob(9000000))", NULL, NULL, NULL),
		SQLITE_NOMEM);
	assert_int_equal(
		sqlite3_exec(db, "SELECT hex(zeroblob(9))", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static void test_sqlite_counts(void **state)
{
	(void)state;
	pid_t child = fork();
	if (child == 0) {
		sqlite3_initialize();
		foreign_start_heap(); /* too late */
		check_limit();
		check_statement();
		_exit(0);
	}
	int status = -1;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void test_we_count(void **state)
{
	(void)state;
	foreign_start_heap();
	foreign_start_heap();
	check_limit();
	check_statement();
	/* SQLite itself counts nothing. */
	assert_int_equal(sqlite3_memory_used(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sqlite_counts),
		cmocka_unit_test(test_we_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
