/* Measures how near a name is to what a user wrote, for messages that suggest the right name.
 */
#pragma once

#include <stddef.h>

/* A distance that no two names have. */
#define NEAREST_NEVER 64

/* How many characters differ between a name and what the user wrote, ignoring case. The
 * distance is small when what the user wrote is a part of the name. */
size_t nearest_distance(const char *name, size_t len, const char *asked, size_t asked_len);
/* A name with a larger distance is not worth suggesting. */
size_t nearest_far(size_t asked_len);
