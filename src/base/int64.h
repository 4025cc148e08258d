/* The smaller and the larger of two numbers, most of them moments or lengths of time. */
#ifndef GUA_BASE_INT64_H
#define GUA_BASE_INT64_H

#include <stdint.h>

static inline int64_t int64_min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t int64_max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* The number if it is between the two, which may be equal; else the nearer one. */
static inline int64_t int64_within(int64_t number, int64_t least, int64_t most)
{
	return number < least ? least : number > most ? most : number;
}

/* For qsort(): negative, 0 or positive as `a` comes before, with or after `b`. */
static inline int int64_compare(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

#endif
