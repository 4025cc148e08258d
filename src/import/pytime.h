/* The time stamps of the Python tool: ISO 8601, UTC unless an offset says otherwise. */
#ifndef GUA_IMPORT_PYTIME_H
#define GUA_IMPORT_PYTIME_H

#include <stdbool.h>
#include <stdint.h>

/* Parses "2026-05-01T10:00:00.123456+00:00" and its shorter forms (a blank for T, no fraction,
 * Z or no offset) into unix milliseconds, truncated. False: it is not such a time, or is before
 * 1970. */
bool pytime_parse(const char *text, int64_t *ms);

#endif
