/* Patterns of names as in shells: * stands for any characters, ? for one. */
#ifndef GUA_BASE_PATTERN_H
#define GUA_BASE_PATTERN_H

#include <stdbool.h>

/* Whether the whole name matches, ignoring case. */
bool pattern_matches(const char *pattern, const char *name);

#endif
