/* The stores of an audit. They are read in passes: each pass opens one store after the other in
 * several threads, reads a part of it there, and adds what was read to the audit in the order
 * of the stores. Only for audit/. */
#ifndef GUA_AUDIT_FILES_H
#define GUA_AUDIT_FILES_H

#include <sqlite3.h>

#include "model/audit.h"
#include "audit/idmap.h"
#include "audit/names.h"

struct gather;
struct pairs;

/* What a pass has read of a store and not added to the audit yet. */
struct file_part {
	struct audit a; /* cards by their place in the store; sums, heatmap, days, spells */
	struct pairs *pairs; /* its holders; see holders.h */
};

/* One store while it is read. */
struct gather_file {
	const char *path;
	sqlite3 *db;	     /* NULL: it is closed */
	int code;	     /* of the error if it cannot be read; 0: it is in the audit */
	char *why;	     /* the reason; NULL with a code: out of memory */
	bool failed;	     /* in this pass */
	struct idmap hosts;  /* from its host ids to audit.hosts */
	struct idmap places; /* from its card ids to their places in `cards` */
	uint32_t *cards; /* by place: index into audit.cards; IDMAP_NONE: not in the report */
	size_t n_cards;
	struct idmap person;	  /* the processes of the user whose present was asked for */
	struct idmap wanted;	  /* the processes that the audit is restricted to, if it is */
	struct names users;	  /* the users of its processes, if the audit is restricted */
	int64_t *unknown_ms;	  /* by place: time with unknown use; NULL: there is none */
	size_t first_run, n_runs; /* its runs in gather.runs */
	size_t first_record;	  /* its hosts in gather.records */
	struct idmap shared;	  /* hosts of cards that are also in an earlier file */
	int64_t oldest_ms, newest_ms; /* where its data begins and ends; -1: it has none */
	int64_t first_slot_ms;	      /* where its first slot begins */
	int64_t from_ms, to_ms;	      /* the requested window, widened to slots that it cuts */
	struct file_part *part;	      /* while a pass runs */
};

/* The index of a card in the audit, by its id in the store; IDMAP_NONE: it is not there. */
uint32_t file_card(const struct gather_file *file, int64_t id);

/* One reading of all stores. */
struct gather_pass {
	/* Reads a store, in any thread: it may change only the file and its part. NULL: there
	 * is nothing to read before. */
	int (*read)(struct gather *g, struct gather_file *file, struct err *e);
	/* Adds what was read to the audit; the store is still open. */
	int (*add)(struct gather *g, struct gather_file *file, struct err *e);
	bool first; /* before it, nothing of a store is in the audit */
};
/* Runs a pass. A store that cannot be read gets its reason in `why`, and gather.again is set if
 * something of it is already in the audit. Fails if there is only one store, or if it is not
 * the fault of a store. */
int gather_each(struct gather *g, const struct gather_pass *pass, struct err *e);

/* The same for a failure that is found after a pass: 0 if the audit goes on without the store.
 */
int gather_failed(struct gather *g, struct gather_file *file, struct err *e);

/* Starts the part of a file, with the days of the window, all empty; and adds its heatmap and
 * days to the audit. */
int part_start(const struct gather *g, struct gather_file *file, struct err *e);
void part_add_hours(struct gather *g, const struct gather_file *file);

/* Makes the list of files; a store that is given twice is ERR_USAGE. */
int gather_list(struct gather *g, struct err *e);
/* Opens a store that is closed, and closes it unless it is kept open. */
int gather_open(struct gather *g, struct gather_file *file, struct err *e);
void gather_leave(struct gather *g, struct gather_file *file);
/* Forgets what was gathered, but not which stores cannot be read. */
void gather_forget(struct gather *g);
void gather_close(struct gather *g);

#endif
