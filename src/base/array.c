/* Makes room in growing arrays. */
#include "base/array.h"

#include "base/base.h"

enum { FIRST_CAP = 16 };

size_t array_next_cap(size_t cap, size_t need)
{
	size_t next = cap ? cap : FIRST_CAP;
	while (next < need)
		next = next > SIZE_MAX / 2 ? need : 2 * next;
	return next;
}

/* The pointer is copied as bytes: a T * must not be read as a void *. */
bool array_resize_sized(void *items, size_t n, size_t size)
{
	void *old, *grown;
	if (n == 0 || size == 0)
		return true;
	memcpy(&old, items, sizeof(old));
	grown = reallocarray(old, n, size);
	if (!grown)
		return false;
	memcpy(items, &grown, sizeof(grown));
	return true;
}

bool array_reserve_sized(void *items, size_t *cap, size_t need, size_t size)
{
	if (need <= *cap)
		return true;
	size_t next = array_next_cap(*cap, need);
	if (!array_resize_sized(items, next, size))
		return false;
	*cap = next;
	return true;
}

bool array_one_more_sized(void *items, size_t n, size_t size)
{
	if (n & (n - 1))
		return true;
	return array_resize_sized(items, n ? array_next_cap(n, n + 1) : 1, size);
}

void array_sort_sized(
	void *items, size_t n, size_t size, int (*compare)(const void *x, const void *y))
{
	if (n > 1)
		qsort(items, n, size, compare);
}
