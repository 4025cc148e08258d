/* The store: one SQLite file that the recorder writes, one transaction a tick, and everybody
 * else only reads. The schema is schema.sql. */
#ifndef GUA_STORE_STORE_H
#define GUA_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/tick.h"

struct store;	/* a writer */
struct sqlite3; /* of <sqlite3.h> */

#define STORE_VERSION 2

/* Opens for writing; makes the file (mode 0640) and its directory when they are missing,
 * migrates an older schema. Refuses a newer one, a Python gpu-usage-audit file (says to import
 * it) and anything else that is not ours, without touching it. */
int store_open(struct store **s, const char *path, struct err *e);
void store_close(struct store *s);

/* Opens a store for reading and checks that it is ours; for query/. `*db` is the caller's. A
 * store of an older version is not changed, but can be read like one of the present version. */
int store_open_read(struct sqlite3 **db, const char *path, struct err *e);
/* The same, and no statement waits longer than so for another program to unlock it: for who
 * has a screen to keep. */
int store_open_read_within(struct sqlite3 **db, const char *path, int wait_ms, struct err *e);

/* Starts a run: writes its host and run rows, finishes rows that a killed run left behind. A
 * recorder's run takes the lock of the file itself, under whatever name it was opened:
 * ERR_WORLD when another recorder has it. A run whose source is "import" is about the past and
 * may be written beside a live recorder: it leaves other runs, `holder` and newer facts about
 * its host alone. */
int store_begin_run(struct store *s, const struct run_info *info, struct err *e);
/* Writes one tick in one transaction: all or nothing. On success store_id is set and dirty
 * cleared in the entries. ERR_BUSY: locked, try again; ERR_WORLD: disk full, read-only, corrupt
 * ... */
int store_write_tick(struct store *s, struct tick *t, struct err *e);
int store_end_run(struct store *s, int64_t now_ms, const char *how, struct err *e);

/* All that is written between the two is one transaction, ticks, runs and compaction included:
 * an import is whole or not there. With `keep` false, or after a failure inside, nothing of it
 * stays. Batches do not nest; store_close() in the middle of one drops it. */
int store_begin_batch(struct store *s, struct err *e);
int store_end_batch(struct store *s, bool keep, struct err *e);

/* What the store knows of a card from before, by UUID on this run's host: accounted up to, or
 * -1 when it is new. */
int64_t store_card_seen(struct store *s, const char *uuid);

/* How long the finer slots are kept. */
struct retention {
	int64_t minute_s; /* age at which 1-minute slots become 5-minute ones: default 1 day */
	int64_t five_s;	  /* age at which those become hours: default 14 days */
};
#define RETENTION_DEFAULT                                                                      \
	{                                                                                      \
		.minute_s = 86400, .five_s = 14 * 86400                                        \
	}

/* Moves at most `max_slots` slots that are old enough to the next coarser table, in one small
 * transaction that conserves every sum. *more: there is more to do. */
int store_compact(struct store *s, int64_t now_ms, const struct retention *keep, int max_slots,
	bool *more, struct err *e);

/* The writer's connection, for import.c: do not close it, nor begin or commit on it. */
struct sqlite3 *store_handle(struct store *s);

#endif
