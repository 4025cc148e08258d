/* The engine that fills an audit from stores: opens them, then runs its steps in order. Only
 * for query/. */
#ifndef GUA_QUERY_GATHER_H
#define GUA_QUERY_GATHER_H

#include <sqlite3.h>
#include <sys/types.h>

#include "query/audit.h"
#include "query/idmap.h"
#include "query/names.h"
#include "query/restriction.h"

/* One store while it is read. */
struct gather_file {
	const char *path;
	dev_t device; /* with the next: which file it is */
	ino_t inode;
	sqlite3 *db;
	struct idmap hosts; /* from its host ids to audit.hosts */
	struct idmap
		cards; /* from its card ids to audit.cards; IDMAP_NONE: not in the report */
	struct idmap person; /* the processes of the user whose present was asked for */
	struct idmap wanted; /* the processes that the audit is restricted to, if it is */
	int64_t *unknown_ms; /* by card: its time with unknown use; NULL: there is none */
	size_t first_run;    /* index of its first run in gather.runs */
	size_t checked; /* 1 + the host that gather_check_overlap() accepted last; 0: none yet
			 */
};

/* One start of a recorder. */
struct gather_run {
	size_t host;
	char source[SOURCE_LIST_CAP];
	int64_t started_ms, last_tick_ms, interval_ms;
	bool ended;
	bool strict; /* privacy was strict */
	struct rules rules;
};

struct gather {
	struct audit *a;
	const struct audit_question *q;
	struct gather_file *files;
	size_t n_files;
	struct gather_run *runs; /* store by store, sorted by start */
	size_t n_runs;
	struct names users;	    /* of all processes, if the audit is restricted to some */
	int64_t from_slot, to_slot; /* slots in from <= slot < to are in the window */
};

/* Slots in from <= slot < to. */
struct slot_span {
	int64_t from, to;
};
/* The window in parts. The tables usage_1d and holding_1d have daily sums of the slots of five
 * minutes and of an hour, so whole days are read from them. The slots themselves are read only
 * before the first midnight and after the last one. Without a whole day, and `by_hour`, all of
 * the window is `before`: the hours of the week are stored for all cards together, so those of
 * some cards or users must be read from the slots. */
struct window_parts {
	struct slot_span all, before, days, after;
};
struct window_parts window_parts(const struct gather *g, bool by_hour);

/* Opens every store and starts one read transaction on each. */
int gather_open(struct gather *g, struct err *e);
void gather_close(struct gather *g);

/* Reads the hosts, merged over the files, and the runs. */
int gather_hosts(struct gather *g, struct err *e);
/* For a card that is also in an earlier file: fails if both files recorded its host at the same
 * time in the window, because that time would be counted twice. */
int gather_check_overlap(
	const struct gather *g, const struct gather_file *file, size_t host, struct err *e);
/* Sets the window; copies the rules and the state of each host from the runs in it. */
int gather_window(struct gather *g, struct err *e);
/* Makes the days of the window, empty. */
int gather_days(struct gather *g, struct err *e);
/* Reads the cards, merged over the files, their sums and the heatmap; then drops cards that do
 * not belong in the report. */
int gather_cards(struct gather *g, struct err *e);
int gather_usage(struct gather *g, struct err *e);
int gather_settle(struct gather *g, struct err *e);
/* Finds what the audit is restricted to; ERR_NOTHING: something of it is not in the stores. */
int gather_wanted(struct gather *g, struct err *e);
/* Sets what the cards cost; then reads identities and processes. */
int gather_costs(struct gather *g, struct err *e);
int gather_holders(struct gather *g, struct err *e);
/* Reads what the user that was asked for holds now. */
int gather_present(struct gather *g, struct err *e);
/* Counts the events that a report mentions, by kind. */
int gather_events(struct gather *g, struct err *e);
/* Reads the longest idle spells, and memory without a process. */
int gather_spells(struct gather *g, struct err *e);
int gather_orphans(struct gather *g, struct err *e);

#endif
