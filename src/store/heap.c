/* Counts what SQLite allocates, and refuses what is too much. Without heap_start(), SQLite does
 * both. */
#include "store/heap.h"

#include <malloc.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>

static bool started;
static atomic_llong used, limit; /* bytes; a limit of 0: none */

/* Several threads may pass the limit at the same moment, each by one allocation. */
static bool is_too_much(long long more)
{
	long long most = atomic_load(&limit);
	return most > 0 && atomic_load(&used) + more > most;
}

static void *count(void *block)
{
	atomic_fetch_add(&used, (long long)malloc_usable_size(block));
	return block;
}

static void *heap_malloc(int bytes)
{
	return is_too_much(bytes) ? NULL : count(malloc((size_t)bytes));
}

static void heap_free(void *block)
{
	atomic_fetch_sub(&used, (long long)malloc_usable_size(block));
	free(block);
}

static void *heap_realloc(void *block, int bytes)
{
	long long before = (long long)malloc_usable_size(block);
	if (is_too_much(bytes - before))
		return NULL;
	void *moved = realloc(block, (size_t)bytes);
	if (!moved)
		return NULL;
	atomic_fetch_sub(&used, before);
	return count(moved);
}

static int heap_size(void *block)
{
	return (int)malloc_usable_size(block);
}

static int heap_round_up(int bytes)
{
	return (bytes + 7) & ~7;
}

static int heap_init(void *context)
{
	(void)context;
	return SQLITE_OK;
}

static void heap_shut_down(void *context)
{
	(void)context;
}

void heap_start(void)
{
	static const sqlite3_mem_methods methods = { heap_malloc, heap_free, heap_realloc,
		heap_size, heap_round_up, heap_init, heap_shut_down, NULL };
	if (!started && sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) == SQLITE_OK)
		started = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0) == SQLITE_OK;
}

void heap_set_limit(int64_t bytes)
{
	if (started)
		atomic_store(&limit, bytes);
	else
		sqlite3_hard_heap_limit64(bytes);
}

bool heap_has_limit(void)
{
	return started ? atomic_load(&limit) > 0 : sqlite3_hard_heap_limit64(-1) > 0;
}
