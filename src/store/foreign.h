/* Opens SQLite files that another process wrote: a store, a file to import, a tracking file.
 * Such files are opened here and nowhere else, because they may be damaged, or made to block
 * the reader or to fill its memory. Code in the file (views, triggers, expressions) is never
 * run, SQLite's memory is limited, and each statement may do only as much work as a file of
 * this size can need. */
#pragma once

#include <sqlite3.h>

#include "base/base.h"

/* Asks from time to time whether to stop; then the statement fails with SQLITE_INTERRUPT. */
struct foreign_stop {
	int (*asked)(void *context); /* may be NULL */
	void *context;
};

struct foreign_file {
	const char *path;
	int wait_ms;	/* longest wait for another program's lock */
	bool immutable; /* no process writes it: SQLite makes no files beside it */
	bool read_once; /* the limit of work is for all statements together, not for each */
	struct foreign_stop *stop; /* may be NULL; must live while the connection is open */
};

/* Opens a regular file for reading. Nothing is read yet, so it may still not be a database. On
 * failure *db is NULL. */
int foreign_open(sqlite3 **db, const struct foreign_file *file, struct err *e);
/* Says how many files will be open at the same time: SQLite's memory is limited accordingly. */
void foreign_expect(size_t n);
/* Checks that those of the tables which the file has are plain tables: not views or virtual
 * tables, and without triggers and computed columns. `tables` ends with NULL. */
int foreign_check_tables(
	sqlite3 *db, const char *const *tables, const char *path, struct err *e);
/* Sets the same settings and limits, except for the limit of work, on a writer's connection to
 * an existing file. */
int foreign_restrict(sqlite3 *db);
/* Whether SQLite has a log beside the file with content that the file may lack. Then the file
 * must not be opened as immutable. */
bool foreign_has_log(const char *path);

/* The memory that SQLite uses in the whole process, and its limit: a file of unknown origin
 * could make it use any amount. */

/* For programs whose threads read stores at the same time. SQLite counts its memory under one
 * lock, for which the threads would mostly wait; this counts it without the lock. Call it in
 * one thread, before anything else of SQLite; later it has no effect. */
void foreign_start_heap(void);
void foreign_set_heap_limit(int64_t bytes);
bool foreign_has_heap_limit(void);
