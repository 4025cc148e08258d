/* Growing arrays: all reallocation is done here. The caller owns an array and its capacity, and
 * frees it with free(). A NULL array is empty. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes room for `need` items in the array at `items` (a T **); its capacity is at `cap`. The
 * capacity is at least doubled when it grows. False: out of memory, and the array and its
 * capacity are unchanged. */
#define array_reserve(items, cap, need)                                                        \
	array_reserve_sized((items), (cap), (need), sizeof(**(items)))

/* Makes room for exactly `n` items in the array at `items` (a T **), for arrays that seldom
 * grow and for several that share a capacity. With `n` 0 it does nothing. False: out of memory,
 * and the array is unchanged. */
#define array_resize(items, n) array_resize_sized((items), (n), sizeof(**(items)))

/* Makes room for one more item in the array at `items` (a T **) of `n` items, for arrays
 * without a stored capacity: it grows when `n` is 0 or a power of two. False: out of memory,
 * and the array is unchanged. */
#define array_one_more(items, n) array_one_more_sized((items), (n), sizeof(**(items)))

/* The capacity that follows `cap` when `need` items must fit: doubled, a power of two if `cap`
 * is one or 0. */
size_t array_next_cap(size_t cap, size_t need);

/* The same for items of `size` bytes; `items` is the address of the pointer. */
bool array_reserve_sized(void *items, size_t *cap, size_t need, size_t size);
bool array_resize_sized(void *items, size_t n, size_t size);
bool array_one_more_sized(void *items, size_t n, size_t size);

/* Sorts the n items of an array as qsort() does, also an empty one. */
#define array_sort(items, n, compare)                                                          \
	array_sort_sized((items), (n), sizeof(*(items)), (compare))
void array_sort_sized(
	void *items, size_t n, size_t size, int (*compare)(const void *x, const void *y));

/* For array_sort(): negative, 0 or positive as `a` comes before, with or after `b`. */
static inline int array_compare(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}
