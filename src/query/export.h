/* Rows of the store as they are, one at a time, in the order of time: constant memory. */
#ifndef GUA_QUERY_EXPORT_H
#define GUA_QUERY_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/table.h"

enum export_what { EXPORT_USAGE, EXPORT_HOLDING, EXPORT_PROCESS, EXPORT_EVENT, EXPORT_WHATS };
#define EXPORT_NAMES "usage|holding|process|event" /* in that order */
enum { EXPORT_MAX_COLUMNS = 20 };

struct export; /* an open store and a place in it */

/* The columns of each kind of row. */
const struct column *export_columns(enum export_what what, size_t *n);

/* Opens a store. Slots that touch since <= t < until are given whole; processes that were seen
 * in it; events in it. */
int export_open(struct export **x, enum export_what what, const char *path, int64_t since_ms,
	int64_t until_ms, struct err *e);
/* The next row: 1 with its cells (texts are valid until the next call), 0 at the end, negative
 * when it failed. */
int export_next(struct export *x, struct cell cells[EXPORT_MAX_COLUMNS], struct err *e);
void export_close(struct export *x);
/* Whether some of the rows of the window may be invented: a simulated source recorded in it. */
bool export_simulated(struct export *x, int64_t since_ms, int64_t until_ms);

#endif
