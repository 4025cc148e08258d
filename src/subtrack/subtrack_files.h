/* Reading tracking and sub-tracking files, CSV or SQLite, into memory; private to sub-tracking.
 */
#ifndef GUA_SUBTRACK_SUBTRACK_FILES_H
#define GUA_SUBTRACK_SUBTRACK_FILES_H

#include <stdbool.h>

#include "subtrack/subtrack.h"

/* One row of a tracking file. */
struct timepoint {
	double at; /* unix seconds */
	double values[SUBTRACK_MEASUREMENTS];
};

struct timepoints {
	struct timepoint *rows; /* by time */
	size_t n, cap;
};

/* One row of a sub-tracking file. */
struct mark {
	int64_t process;
	char *block; /* escaped; heap */
	bool stop;
	double at;
	size_t order; /* its position in the file */
};

struct marks {
	struct mark *rows;
	size_t n, cap;
};

enum { SUBTRACK_MAX_FILE = 1 << 30 }; /* bytes of a CSV file */

struct sqlite3;

/* Opens a tracking or sub-tracking file in SQLite for reading, with limits. */
int subtrack_open(struct sqlite3 **db, const char *path, struct err *e);
bool subtrack_is_csv(const char *path);
int timepoints_read(struct timepoints *t, char **statics, const char *path, struct err *e);
void timepoints_finish(struct timepoints *t);
int marks_read(struct marks *m, const char *path, struct err *e);
void marks_finish(struct marks *m);

#endif
