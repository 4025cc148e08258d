/* Matches names with patterns. The time is at most the product of both lengths. */
#include "base/pattern.h"

bool pattern_matches(const char *pattern, const char *name)
{
	const char *star = NULL, *after = NULL; /* the last star, and the end of its match */
	while (*name) {
		if (*pattern == '*') {
			star = pattern++;
			after = name;
		} else if (*pattern &&
			   (*pattern == '?' || strncasecmp(pattern, name, 1) == 0)) {
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
