/* The store: one SQLite file that the recorder writes, one transaction per tick, and all other
 * programs only read. The schema is schema.sql. */
#pragma once

#include "model/tick.h"

struct store;	/* a writer */
struct sqlite3; /* of <sqlite3.h> */

#define STORE_VERSION 5
/* The oldest version that is read and upgraded: older ones were never released. */
#define STORE_OLDEST 4

/* Opens a store for writing. Makes the file (mode 0640) and its directory when they are
 * missing, and migrates an older schema. Refuses a newer store, a Python gpu-usage-audit file
 * (the error says to import it) and any other file, without changing it. */
int store_open(struct store **s, const char *path, struct err *e);
/* The same, but the file is opened when something is written for the first time. */
int store_new(struct store **s, const char *path, struct err *e);
void store_close(struct store *s);

/* Opens a store for reading and checks that it is ours; for the stages below. The caller closes
 * `*db`. A store of an older version is not changed, but can be read like a current one. */
int store_open_read(struct sqlite3 **db, const char *path, struct err *e);
/* The same, but a statement waits at most this long for another program's lock; interactive
 * programs pass a short limit. */
int store_open_read_within(struct sqlite3 **db, const char *path, int wait_ms, struct err *e);
/* The same, but statements fail when `stop` (of foreign.h, may be NULL) says so. */
struct foreign_stop;
int store_open_read_until(struct sqlite3 **db, const char *path, int wait_ms,
	struct foreign_stop *stop, struct err *e);

/* Starts a run: writes its host and run rows, and closes rows that a killed run left open. A
 * recorder's run takes the lock of the file itself, whatever path it was opened by: ERR_WORLD
 * when another recorder has it. A run with the source "import" is about the past and may be
 * written while a recorder runs: it does not change other runs, `holder` and newer facts about
 * its host. */
int store_begin_run(struct store *s, const struct run_info *info, struct err *e);
/* Writes one tick in one transaction: all or nothing. On success store_id is set and dirty
 * cleared in the entries. ERR_BUSY: trying again may help (locked, disk full); ERR_WORLD:
 * read-only, corrupt ... */
int write_tick(struct store *s, struct tick *t, struct err *e);
int store_end_run(struct store *s, int64_t now_ms, const char *how, struct err *e);

/* Everything written between the two calls is one transaction, including ticks, runs and
 * compaction: an import is stored completely or not at all. With `keep` false, or after a
 * failure, nothing of it is kept. Batches do not nest; store_close() inside drops it. */
int store_begin_batch(struct store *s, struct err *e);
int store_end_batch(struct store *s, bool keep, struct err *e);

/* Reads what the store knows about a card, by UUID, whatever name its host had. A placeholder
 * of the driver becomes the identity of the card that this host had at its address or index
 * last. */
struct card_past store_card_past(struct store *s, struct card_id *id);

/* Reads the idle stretches that had not ended when the last run of this boot ended, for
 * whatever reason. The next tick replaces them, so call it after store_begin_run(). The caller
 * frees `*past`. */
int store_past_spells(struct store *s, struct past_spell **past, size_t *n, struct err *e);

/* How long the finer slots are kept. */
struct retention {
	int64_t minute_s; /* age at which 1-minute slots become 5-minute ones: default 1 day */
	int64_t five_s;	  /* age at which those become hours: default 14 days */
};
#define RETENTION_DEFAULT                                                                      \
	{                                                                                      \
		.minute_s = 86400, .five_s = 14 * 86400                                        \
	}

struct compaction {
	int64_t now_ms;
	struct retention keep;
	int max_slots; /* at most this many in one call */
};

/* Moves slots that are old enough to the next coarser table, in one small transaction that
 * keeps every sum. *more is set when there is more to move. When there is nothing to move, it
 * removes some of the processes that nothing refers to. Does nothing for six hours after the
 * clock has leaped forward by more than a day. */
int compact_store(struct store *s, const struct compaction *c, bool *more, struct err *e);

/* ERR_WORLD, with the process that is the cause, when the -wal file has grown far beyond its
 * usual size because a reader keeps an old state of the store. */
int store_check_wal(struct store *s, struct err *e);
/* How many times as long as it should be the -wal file is, rounded down. */
unsigned store_wal_excess(const struct store *s);

/* The writer's connection, for import.c: do not close it, nor begin or commit on it. */
struct sqlite3 *store_handle(struct store *s);
