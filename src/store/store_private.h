/* What the files of the store share: the writer's struct, and functions of one file that
 * another one calls. Nothing outside src/store includes this. */
#pragma once

#include <sqlite3.h>

#include "model/tick.h"
#include "store/sums.h"

/* Statements of the tick, prepared at first use and kept; the texts are in write.c. */
enum statement {
	STATEMENT_CARD,
	STATEMENT_PAST_CARD,
	STATEMENT_PAST_CARD_SEEN,
	STATEMENT_NAME_CARD,
	STATEMENT_FIND_PROCESS,
	STATEMENT_ADD_PROCESS,
	STATEMENT_SET_PROCESS,
	STATEMENT_HAS_NUMBER,
	STATEMENT_JOIN_TOTALS,
	STATEMENT_DROP_TOTALS,
	STATEMENT_NAME_PROCESSES,
	STATEMENT_USAGE,
	STATEMENT_HOLDING,
	STATEMENT_SM_ACTIVE,
	STATEMENT_OVERFULL,
	STATEMENT_CUT_USAGE,
	STATEMENT_CUT_HOLDING,
	STATEMENT_CUT_RESERVED,
	STATEMENT_RESERVED,
	STATEMENT_LEASED,
	STATEMENT_FIND_LEASE,
	STATEMENT_ADD_LEASE,
	STATEMENT_SET_LEASE,
	STATEMENT_END_LEASES,
	STATEMENT_RUN_LEASES,
	STATEMENT_TOTAL_GPU,
	STATEMENT_TOTAL_USER,
	STATEMENT_EVENT,
	STATEMENT_CLEAR_HOLDERS,
	STATEMENT_HOLDER,
	STATEMENT_HOLDER_GONE,
	STATEMENT_RUN_TICK,
	STATEMENT_PAST_HOST_TICK,
	STATEMENT_LAST_OPEN,
	STATEMENT_CLEAR_OPEN,
	STATEMENT_CUT_OPEN,
	STATEMENT_OPEN_SPELL,
	STATEMENT_SPELL,
	STATEMENT_FORGET_SPELL,
	STATEMENT_READING,
	STATEMENT_NEW_USER,
	STATEMENT_NAME_USER,
	STATEMENT_DROP_USER,
	STATEMENT_NEWBORN,
	STATEMENT_NAMED,
	STATEMENT_SUMS_END,
	STATEMENT_COUNT,
};

/* A row of the holder table as it was written last. */
struct stored_holder {
	int64_t gpu, process, kind, mem_bytes, since_ms, last_active_ms;
};

/* The sums of a user in one tick. */
struct user_sum {
	const char *user; /* borrowed from the tick */
	int64_t presence_ms[HOLDER_STATES], share_ms[HOLDER_STATES];
	bool moved[HOLDER_STATES]; /* one of its holders has such time */
};

struct store {
	char path[PATH_MAX];
	sqlite3 *db; /* NULL after a fault that made it unusable: opened again when needed */
	dev_t dev;   /* of the open file, to detect that it was deleted or replaced */
	ino_t ino;
	bool locked; /* lock_fd is open: the recorder's lock of the file itself */
	int lock_fd;
	int shm_fd; /* the -shm file, to ask who has a lock there; -1: not needed yet */
	int64_t page_bytes;
	int64_t wal_bytes;  /* in the -wal file after the last commit ... */
	int64_t wal_synced; /* ... and at its last sync */
	int n_unsynced;	    /* commits since then */
	sqlite3_stmt *statements[STATEMENT_COUNT];
	struct run_info info;  /* of the run that was begun */
	bool in_batch;	       /* between store_begin_batch() and store_end_batch() */
	bool batch_failed;     /* ... and it was rolled back: nothing more is written */
	bool has_run;	       /* a run was asked for and not ended */
	bool run_ready;	       /* ... and its rows are in the open file */
	bool past;	       /* an import: does not change what is known about the present */
	bool ids_stale;	       /* the file was opened again: ids may be of another file */
	int64_t swept;	       /* processes up to this id were examined by compact.c */
	int64_t host, run;     /* row ids, valid when run_ready */
	int64_t summed_s;      /* where the sums of complete hours end; see sums.h */
	struct sums_span late; /* hours before that which were changed: sums_settle() */
	bool told_cut;	       /* it was logged that a slot had more time than its length */
	bool leases_checked;   /* those that ended while no recorder ran were found */
	bool leases_noted;     /* the run's row says that there is a source of leases */
	bool host_found;       /* the host's cards were looked for under older names */

	/* Ids of the current tick, by index in its arrays; grown, never shrunk. */
	int64_t *card_ids, *process_ids, *lease_ids;
	size_t card_cap, process_cap, lease_cap;
	/* The content of the holder table, to see what changed; `next` is that of this tick. */
	struct stored_holder *holders, *next;
	size_t n_holders, n_next, holder_cap, next_cap;
	bool holders_known; /* `holders` is what the file has */
	/* The rows of open_spell that are of this run: so many, from this rowid on. */
	int64_t open_first, n_open, n_next_open;
	size_t n_listed; /* cards whose stretches are among them */
	bool open_known;
	unsigned ticks;
	struct user_sum *users; /* of the tick that is written */
	size_t n_users, user_cap;
	struct crowds *crowds; /* of crowd.c; NULL: not needed yet */
};

/* How long a writer waits for another one. It is short, so that the next tick is not late; the
 * recorder keeps the sums and tries again. */
enum { STORE_BUSY_MS = 1000 };

/* Makes sure that a checked, migrated connection is open to the file at the path. */
int store_connect(struct store *s, struct err *e);
/* Makes sure that the run's rows are in the file. */
int store_ensure_run(struct store *s, struct err *e);
/* BEGIN IMMEDIATE; every change of the store is between this and one of the next two. In a
 * batch the first two do nothing. */
int store_begin(struct store *s, struct err *e);
int store_commit(struct store *s, struct err *e);
/* Fills `e` from the connection's failure, rolls back and drops the connection when it is no
 * longer reliable. Returns e->code. */
int store_abandon(struct store *s, const char *doing, struct err *e);
/* Before the first tick of a host with a new name: continues with the row that the host had
 * under its old name, if there is one. Call it in a transaction. */
bool store_find_host(struct store *s, const struct tick *t);

/* Opens, sets up and migrates. The caller closes `*db`, even after a failure. */
int store_open_writer(sqlite3 **db, const char *path, struct err *e);
/* Makes the schema in an empty file, brings an older one up to date. */
int store_open_upgrade(sqlite3 *db, const char *path, struct err *e);
