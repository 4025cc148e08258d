/* Imports a database of the Python tool gpu-usage-audit. Each card sample counts as the
 * interval of its run, in the state of the tool's rule, so that reports agree with the tool.
 * Everything is one transaction. */
#pragma once

#include "base/base.h"
#include "import/pyfile.h"
#include "store/store.h"

/* What the tool itself assumes for rows without a run. */
#define IMPORT_INTERVAL_MS 30000

struct import_question {
	const char *path;    /* of the file; it is stored */
	int64_t now_ms;	     /* decides how old the data is */
	int64_t interval_ms; /* for rows without a run */
	/* Called from time to time; if it returns non-zero, the import stops and nothing is
	 * imported. May be NULL. */
	int (*progress)(void *context, int64_t rows_done, int64_t rows_total);
	void *context; /* of progress */
};

struct import_summary {
	struct pyfile_facts facts;
	int64_t cards;
	int64_t ticks;		   /* distinct times that were imported */
	int64_t samples;	   /* cards x ticks that were imported */
	int64_t first_ms, last_ms; /* of them, or -1: none */
	int64_t recorded; /* samples left out: the store already has that time of that card */
	int64_t misdated; /* samples left out: dated before 2007 or in the future */
	int64_t bad_rows; /* rows left out: malformed, or without their card's sample */
};

/* Imports `f` into `s` and compacts what is old. Refuses a file that was imported before. */
int import_run(struct store *s, struct pyfile *f, const struct import_question *q,
	struct import_summary *summary, struct err *e);
