/* Opens SQLite files that another process wrote: a store, a file to import, a tracking file.
 * Every such file is opened here and nowhere else, because it may be damaged, or made to block
 * the reader or to fill its memory. The file's own code (views, triggers, expressions) is never
 * run, SQLite's memory is limited, and each statement may take only as much work as a file of
 * this size can need. */
#ifndef GUA_STORE_FOREIGN_H
#define GUA_STORE_FOREIGN_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Asks from time to time whether to stop; the statement then fails with SQLITE_INTERRUPT. */
struct foreign_stop {
	int (*asked)(void *context); /* may be NULL */
	void *context;
};

struct foreign_file {
	const char *path;
	int wait_ms;	/* at most this long for another program's lock */
	bool immutable; /* no process writes it: SQLite makes no files beside it */
	bool read_once; /* the limit of work is for all statements together, not for each */
	struct foreign_stop *stop; /* may be NULL; the caller's, while the connection is open */
};

/* Opens a regular file for reading. Nothing is read yet: it may still not be a database. On
 * failure *db is NULL. */
int foreign_open(sqlite3 **db, const struct foreign_file *file, struct err *e);
/* This many files will be open at the same time: SQLite's memory is limited accordingly. */
void foreign_expect(size_t n);
/* Checks that those of these tables which the file has are plain tables: not views or virtual
 * tables, without triggers and computed columns. `tables` ends with NULL. */
int foreign_check_tables(
	sqlite3 *db, const char *const *tables, const char *path, struct err *e);
/* What a writer uses of this for a file that it found: settings and limits, without the limit
 * of work. */
int foreign_restrict(sqlite3 *db);
/* True when SQLite has a log beside the file whose content the file may lack: then it must not
 * be opened as immutable. */
bool foreign_has_log(const char *path);

/* SQLite's memory, for the whole process, and the most that it may be: a file of unknown origin
 * could want any amount. */

/* For programs whose threads read stores at the same time: SQLite counts its memory behind one
 * lock, for which they would mostly wait. From here on it is counted without. To be called
 * before anything else of SQLite, in one thread; afterwards it has no effect. */
void foreign_start_heap(void);
void foreign_set_heap_limit(int64_t bytes);
bool foreign_has_heap_limit(void);

#endif
