/* Reads the rows of a store unchanged, one at a time, in order of time, in constant memory. */
#pragma once

#include "base/period.h"
#include "model/table.h"

enum export_what {
	EXPORT_USAGE,
	EXPORT_HOLDING,
	EXPORT_PROCESS,
	EXPORT_EVENT,
	EXPORT_SPELL,
	EXPORT_LEASE,
	EXPORT_WHATS
};
#define EXPORT_NAMES "usage|holding|process|event|spell|lease" /* in that order */
enum { EXPORT_MAX_COLUMNS = 24 };

struct export; /* an open store and a position in it */

/* Sets the columns of this kind of row, for a format; returns how many there are. */
size_t export_columns(enum export_what what, struct column columns[EXPORT_MAX_COLUMNS]);

/* Opens a store. Returns whole slots that overlap the window, processes that were seen in it,
 * and events in it. */
int export_open(struct export **x, enum export_what what, const char *path,
	struct window window, struct err *e);
/* Reads the next row. Returns 1 with its cells (texts are valid until the next call), 0 at the
 * end, negative on failure. */
int export_next(struct export *x, struct cell cells[EXPORT_MAX_COLUMNS], struct err *e);
void export_close(struct export *x);
enum { EXPORT_HOST_CAP = 128 };
/* Writes the name of the host that the stores are about; "" if they are about several, or none
 * is known. */
int export_host(char dst[EXPORT_HOST_CAP], char *const *paths, size_t n, struct err *e);
/* Whether rows of the window may be simulated, or replayed from a capture: such a source was
 * recording in it. */
struct export_marks {
	bool simulated, captured;
};
struct export_marks export_marks(struct export *x, struct window window);
