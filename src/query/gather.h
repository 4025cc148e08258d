/* The engine that fills an audit from stores: they are open, and its steps follow in their
 * order. For query/ alone. */
#ifndef GUA_QUERY_GATHER_H
#define GUA_QUERY_GATHER_H

#include <sqlite3.h>

#include "query/audit.h"
#include "query/idmap.h"

/* One store while it is read. */
struct gather_file {
	const char *path;
	sqlite3 *db;
	struct idmap hosts; /* its host ids to audit.hosts */
	struct idmap cards; /* its card ids to audit.cards; IDMAP_NONE: not in the report */
	size_t first_run;   /* its runs are gather.runs from here on */
	size_t checked;	    /* a host whose runs overlap with no earlier file's, plus one */
};

/* One start of a recorder. */
struct gather_run {
	size_t host;
	char source[SOURCE_LIST_CAP];
	int64_t started_ms, last_tick_ms, interval_ms;
	bool ended;
	struct rules rules;
};

struct gather {
	struct audit *a;
	const struct audit_question *q;
	struct gather_file *files;
	size_t n_files;
	struct gather_run *runs; /* by start, of each store in turn */
	size_t n_runs;
	int64_t from_slot, to_slot; /* slots in from <= slot < to are in the window */
};

/* Slots in from <= slot < to. */
struct span {
	int64_t from, to;
};
/* The window in parts. usage_1d and holding_1d have the sums of the five-minute and hour slots
 * by day: what is left of those are the hours before the first midnight in it and after the
 * last. Without a whole day in it, all of it is `before`. */
struct window_parts {
	struct span all, before, days, after;
};
struct window_parts window_parts(const struct gather *g);

/* Opens every store and starts one read transaction on each. */
int gather_open(struct gather *g, struct err *e);
void gather_close(struct gather *g);

/* Hosts, merged over the files, and the runs. */
int gather_hosts(struct gather *g, struct err *e);
/* A card is in the file and in an earlier one: fails when both recorded its host at one time of
 * the window, which would be counted twice. */
int gather_check_overlap(
	const struct gather *g, const struct gather_file *file, size_t host, struct err *e);
/* The window that is used, and what the runs in it say. */
int gather_window(struct gather *g, struct err *e);
/* Cards, merged over the files; their sums and the heatmap; then those that stay. */
int gather_cards(struct gather *g, struct err *e);
int gather_usage(struct gather *g, struct err *e);
int gather_settle(struct gather *g, struct err *e);
/* Identities and processes. */
int gather_holders(struct gather *g, struct err *e);

/* Adds `ms` of `state` in the slot to the heatmap; `h` is zero at first. */
struct heat_clock {
	int64_t hour;	  /* the last one that was looked up, unix seconds; 0: none yet */
	int64_t offset_s; /* its offset from UTC */
};
void heat_add(struct audit *a, struct heat_clock *h, bool utc, int64_t slot, int64_t seconds,
	int state, int64_t ms);

#endif
