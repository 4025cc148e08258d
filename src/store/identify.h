/* Identifies a file without opening it for writing: a file that is refused is never changed,
 * not even by SQLite's recovery. */
#pragma once

#include "base/base.h"

/* In the header of the file, where file(1) can find it: "GUA1". */
#define STORE_APPLICATION_ID 0x47554131
/* The same in policy.db: "GUAE", and "GUAP" before the first release. */
#define POLICY_APPLICATION_ID 0x47554145
#define POLICY_OLD_APPLICATION_ID 0x47554150

enum store_kind {
	STORE_MISSING, /* nothing there */
	STORE_EMPTY,   /* a file without bytes, or a database without tables */
	STORE_OURS,    /* a store of a version that this program knows, or an older one */
};

/* Returns an enum store_kind, or fails and says why the file is refused: a directory, not a
 * database, a newer store, the Python tool's database, another program's database. */
int identify_store(const char *path, struct err *e);
/* Whether this program reads stores of a schema version; 0: one without tables. */
bool identify_knows(int64_t version);
/* Fails with the sentence for a schema version that this program does not know. */
int identify_refuse_version(const char *path, int64_t version, struct err *e);
/* Whether a file that was refused may still be meant as a store: its name ends in ".db", or it
 * is a store of a newer version. policy.db, the file of gua enforce, does not count. */
bool identify_is_likely(const char *path);

/* From here on: why a user may not read a store, and which group would help. */

/* Fills `e` for a store that open(2) refuses with EACCES: who may read it, and what an
 * administrator can do. Returns ERR_WORLD. */
int identify_denied(const char *path, struct err *e);

enum { ORIGIN_CAP = 512 };

/* Fills `origin` with a text that two stores share if they have the same first run of the same
 * host; "" if the store has no run. ERR_WORLD: the file is not a store, or is damaged. */
int identify_origin(const char *path, char origin[ORIGIN_CAP], struct err *e);
