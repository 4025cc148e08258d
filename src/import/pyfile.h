/* Reads a database of the Python tool gpu-usage-audit, in any of its layouts. It is opened
 * read-only and never changed, and read in time order, one card and tick at a time. */
#pragma once

#include "base/base.h"
#include "model/process.h"
#include "model/reading.h"

struct pyfile;

/* What the file says about itself. Texts are escaped. */
struct pyfile_facts {
	char hostname[128];   /* "unknown" when the file does not say */
	char environment[16]; /* bare docker k8s, "" when unknown */
	char driver[VERSION_CAP];
	int64_t first_ms; /* of its card samples, or -1: none has a time */
	int64_t last_ms;
	int64_t samples;     /* rows of gpu_sample */
	int64_t rows;	     /* of both sample tables */
	int64_t interval_ms; /* of its newest run, or -1 */
};

/* A process on a card at a tick; rows of one pid, user and command are added up. */
struct pyfile_process {
	uint32_t pid;
	int64_t mem_bytes;	   /* the file's MB x 10^6, or -1 unknown */
	char user[USER_CAP];	   /* "unknown" for NULL; escaped, like the next */
	char command[COMMAND_CAP]; /* "" when the layout has none */
};

/* One card at one tick. Pointers are valid until the next call. */
struct pyfile_sample {
	int64_t at_ms;
	int64_t interval_ms;			/* of its run, or -1 */
	char uuid[UUID_CAP];			/* escaped */
	int index;				/* or -1 */
	double util_pct;			/* 0..100 */
	const struct pyfile_process *processes; /* holders, by user: graphics left out */
	size_t n_processes;
};

/* Opens the file and checks its columns and its structure. Refuses, with a message, a file of
 * another kind and a damaged one. Samples dated later than a day after `now_ms`, or before
 * 2007, are left out. */
int pyfile_open(struct pyfile **f, const char *path, int64_t now_ms, struct err *e);
void pyfile_close(struct pyfile *f);
int pyfile_facts(struct pyfile *f, struct pyfile_facts *facts, struct err *e);

/* Calls `stop` from time to time while SQLite works (it sorts before the first sample). If
 * `stop` returns non-zero, the current call fails with "interrupted". */
void pyfile_interrupt(struct pyfile *f, int (*stop)(void *), void *context);

/* Reads the next card and tick. Returns 1: there is one, 0: no more, or an error code. */
int pyfile_next(struct pyfile *f, struct pyfile_sample *sample, struct err *e);
/* Reads name and memory of a card; leaves them unchanged when the file does not have them. */
void pyfile_device(struct pyfile *f, const char *uuid, struct card_id *id);

/* Rows read so far, how many of them were malformed, and how many card samples had a time that
 * is not plausible. */
struct pyfile_rows {
	int64_t done, bad, misdated;
};
const struct pyfile_rows *pyfile_rows(const struct pyfile *f);

/* Parses "2026-05-01T10:00:00.123456+00:00" and its shorter forms (a blank for T, no fraction,
 * Z or no offset) into unix milliseconds, truncated. False: no such time, or before 1970. */
bool pyfile_parse_time(const char *text, int64_t *ms);
