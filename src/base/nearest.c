/* Computes the edit distance of two names. */
#include "base/nearest.h"

/* How many characters must be changed, added or removed to turn one name into the other. */
static size_t edit_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t row[NEAREST_NEVER + 1];
	for (size_t k = 0; k <= b_len; k++)
		row[k] = k;
	for (size_t i = 1; i <= a_len; i++) {
		size_t corner = row[0];
		row[0] = i;
		for (size_t k = 1; k <= b_len; k++) {
			size_t above = row[k], side = row[k - 1];
			size_t least = (above < side ? above : side) + 1;
			corner += strncasecmp(&a[i - 1], &b[k - 1], 1) != 0;
			row[k] = corner < least ? corner : least;
			corner = above;
		}
	}
	return row[b_len];
}

/* A user who writes "temp" or "memory" knows a part of the name. Parts of one or two letters
 * occur in too many names. */
static bool is_part(const char *name, size_t len, const char *asked, size_t asked_len)
{
	for (size_t at = 0; asked_len >= 3 && at + asked_len <= len; at++)
		if (strncasecmp(name + at, asked, asked_len) == 0)
			return true;
	return false;
}

size_t nearest_distance(const char *name, size_t len, const char *asked, size_t asked_len)
{
	if (len >= NEAREST_NEVER || asked_len >= NEAREST_NEVER)
		return NEAREST_NEVER;
	if (len == asked_len && strncasecmp(name, asked, len) == 0)
		return 0;
	if (is_part(name, len, asked, asked_len))
		return is_part(name, asked_len, asked, asked_len) ? 1 : 2;
	return edit_distance(name, len, asked, asked_len);
}

/* A name with a larger distance is not worth suggesting. */
static size_t farthest(size_t asked_len)
{
	return asked_len / 2 > 2 ? asked_len / 2 : 2;
}

size_t nearest_few(const size_t *distances, size_t n, size_t asked_len, int *found, size_t max)
{
	size_t n_found = 0;
	for (size_t d = 0; d <= farthest(asked_len) && n_found < max; d++)
		for (size_t i = 0; i < n && n_found < max; i++)
			if (distances[i] == d)
				found[n_found++] = (int)i;
	return n_found;
}

struct nearest nearest_to(const char *asked, size_t len)
{
	return (struct nearest){ asked, len, farthest(len) + 1, NULL };
}

void nearest_try(struct nearest *n, const char *name)
{
	size_t distance = nearest_distance(name, strlen(name), n->asked, n->len);
	if (distance >= n->distance || distance >= strlen(name))
		return;
	n->distance = distance;
	n->name = name;
}
