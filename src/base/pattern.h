/* Patterns of names as in shells: * stands for any characters, ? for one. */
#pragma once

#include "base/base.h"

/* Whether the whole name matches, ignoring case. */
bool pattern_matches(const char *pattern, const char *name);
