/* Measures how near a name is to what a user wrote, for messages that suggest one. */
#pragma once

#include "base/base.h"

/* A distance that no two names have. */
#define NEAREST_NEVER 64

/* How many characters differ between a name and what the user wrote, ignoring case. The
 * distance is small when what the user wrote is a part of the name. */
size_t nearest_distance(const char *name, size_t len, const char *asked, size_t asked_len);
/* Writes at most `max` indexes of the smallest of n distances, nearest first, without those
 * that are too far to suggest; returns how many. */
size_t nearest_few(const size_t *distances, size_t n, size_t asked_len, int *found, size_t max);

/* Looks for the one name that is nearest to what the user wrote, and has something in common
 * with it. */
struct nearest {
	const char *asked; /* `len` bytes */
	size_t len;
	size_t distance;  /* of `name`; at first, what is just too far */
	const char *name; /* the nearest so far; NULL: none is near */
};
struct nearest nearest_to(const char *asked, size_t len);
void nearest_try(struct nearest *n, const char *name);
