/* What the two halves of pyfile share: opening (pyfile.c) and reading in order (pyrows.c). */
#ifndef GUA_IMPORT_PYFILE_PRIVATE_H
#define GUA_IMPORT_PYFILE_PRIVATE_H

#include <sqlite3.h>

#include "base/str.h"
#include "import/pyfile.h"
#include "store/foreign.h"

/* More than a card can have; a larger value is not a reading. */
#define MAX_MEM_MB 1e9
/* No sample is older: CUDA, and the driver's way to ask for processes, came in 2007. */
#define EARLIEST_MS INT64_C(1167609600000)
#define DAY_MS INT64_C(86400000)
enum { MAX_PROCESSES = 8192, MAX_INTERVAL_S = 86400, TS_CAP = 64 };

/* The key that both sample tables are ordered and joined by. Raw text, as in the file. */
struct key {
	char ts[TS_CAP];
	char uuid[UUID_CAP];
	int64_t run; /* -1: NULL, which matches NULL */
	bool valid;  /* false: cannot be a key (too long, empty, not a text) */
};

struct pyfile {
	sqlite3 *db;
	char *path;		 /* for messages */
	sqlite3_stmt *cards;	 /* gpu_sample in order; NULL before the first sample */
	sqlite3_stmt *processes; /* proc_sample in the same order */
	sqlite3_stmt *device;	 /* gpu_device by uuid, or NULL */
	struct key card_key, process_key; /* of the current rows of the two */
	bool cards_end, processes_end;	  /* no row is left */
	struct key last;		  /* of the last sample that was returned */
	char time_text[TS_CAP];		  /* the last text that was a time ... */
	int64_t time_ms;		  /* ... and what it meant */
	struct pyfile_process *list;	  /* of the last sample that was returned */
	size_t n_list, cap_list;
	int64_t rows_done, rows_bad, rows_misdated;
	int64_t latest_ms;	       /* a later sample is not plausible */
	struct foreign_stop stop, ask; /* what SQLite asks, and what that asks */
	bool stopped;		       /* ... and the answer was yes */
};

/* Sets the message for SQLite's last failure. */
int pyfile_failed(const struct pyfile *f, struct err *e);
/* Is this a time at which a sample can have been taken? */
bool pyfile_plausible(const struct pyfile *f, int64_t at_ms);
bool pyfile_has(struct pyfile *f, const char *table, const char *column);
/* Adds ", TABLE.COLUMN", or ", NULL" where the layout has none. */
void pyfile_add_column(
	struct pyfile *f, struct str *sql, const char *table, const char *column);
/* Prepares and finishes `sql`. */
int pyfile_prepare(struct pyfile *f, sqlite3_stmt **statement, struct str *sql, struct err *e);
/* Reads a text column and escapes it; `otherwise` for NULL and "". */
void pyfile_text(sqlite3_stmt *row, int column, char *dst, size_t cap, const char *otherwise);
/* Reads a number within 0..max; -1: NULL, a text, negative, too large, not finite. */
double pyfile_number(sqlite3_stmt *row, int column, double max);
/* Reads seconds and returns milliseconds, or -1. */
int64_t pyfile_interval_ms(sqlite3_stmt *row, int column);

#endif
