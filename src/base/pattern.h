/* Patterns of names as shells have them: * stands for any characters, ? for one. */
#ifndef GUA_BASE_PATTERN_H
#define GUA_BASE_PATTERN_H

#include <stdbool.h>

/* Whether all of the name matches, whatever the case of its letters. */
bool pattern_matches(const char *pattern, const char *name);

#endif
