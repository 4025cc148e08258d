/* Matches names with patterns, in time that grows with the product of their lengths at most. */
#include "base/pattern.h"

#include <ctype.h>
#include <stddef.h>

static bool is_same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

bool pattern_matches(const char *pattern, const char *name)
{
	const char *star = NULL, *after = NULL; /* the last star, and what it stands for ends */
	while (*name) {
		if (*pattern == '*') {
			star = pattern++;
			after = name;
		} else if (*pattern && (*pattern == '?' || is_same(*pattern, *name))) {
			pattern++;
			name++;
		} else if (star) {
			pattern = star + 1;
			name = ++after;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return *pattern == '\0';
}
