/* The engine that fills an audit from stores: runs its steps in order; most are passes over all
 * stores. Only for audit/. */
#ifndef GUA_AUDIT_GATHER_H
#define GUA_AUDIT_GATHER_H

#include "audit/audit.h"
#include "audit/files.h"
#include "audit/restriction.h"

/* One start of a recorder. */
struct gather_run {
	size_t host;
	char source[SOURCE_LIST_CAP];
	int64_t started_ms, last_tick_ms, interval_ms;
	bool ended;
	bool strict; /* privacy was strict */
	struct rules rules;
};

/* A row of a host in a store. Several can be of one host: see hosts_unify(). */
struct gather_record {
	size_t file;
	int64_t id; /* in the store */
	char hostname[sizeof(((struct audit_host *)0)->hostname)];
	char machine_id[sizeof(((struct audit_host *)0)->machine_id)];
	int64_t newest_ms;	    /* its last tick */
	size_t first_span, n_spans; /* its runs in gather.spans */
	size_t same;   /* another record of the same host; its own index: the first */
	size_t next;   /* the next record of the same host: they are a ring */
	size_t newest; /* of the first: the record with the newest tick */
	uint32_t host; /* of the first: index in audit.hosts; IDMAP_NONE: not yet */
};

struct gather {
	struct audit *a;
	const struct audit_question *q;
	struct gather_file *files;
	size_t n_files;
	bool kept_open; /* stores stay open, each in one transaction, until gather_close() */
	bool strict;	/* a store that cannot be read is an error, also of several */
	bool has_rows;	/* some card that was asked for has a slot in the window */
	bool again; /* a store turned out to be damaged: the audit must be made without it */
	struct gather_run *runs; /* store by store, sorted by start */
	size_t n_runs;
	struct gather_record *records; /* in the order of the stores */
	size_t n_records;
	struct gather_span {
		int64_t from_ms, to_ms;
	} * spans; /* of records: when recorders ran */
	size_t n_spans;
	struct gather_sight {
		uint32_t record, next; /* the next record with the same card; IDMAP_NONE */
	} * sights;
	size_t n_sights;
	uint32_t *last_sight; /* by number of a card in `uuids` */
	/* Numbers of UUIDs, of host names, of runs, of cards, and of cards that have MIG
	 * instances; those of cards are indexes into the audit. */
	struct names uuids, hostnames, run_keys, card_keys, parents;
	size_t *n_named;	/* by number of a host name: how many hosts have it */
	struct names users;	/* of all processes, if the audit is restricted to some */
	size_t n_wanted;	/* processes that it is then restricted to */
	int64_t from_ms, to_ms; /* the requested window, widened to the slots that it cuts */
	int64_t first_slot_ms;	/* where the first slot of all stores begins */
	int64_t from_slot, to_slot; /* slots in from <= slot < to are in the window */
	struct idmap marks;	    /* of the time line's events; see columns.h */
	void *context;		    /* of the pass that runs */
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

/* Reads the hosts and the cards, merged over the files, the runs, and where data begins and
 * ends. */
int gather_survey(struct gather *g, struct err *e);
/* Sets the window; copies the rules and the state of each host from the runs in it. */
int gather_window(struct gather *g, struct err *e);
/* Fails if two files recorded a host that they share at the same time in the window, because
 * that time would be counted twice. */
int gather_check_overlap(struct gather *g, struct err *e);
/* Makes the days of the window, empty. */
int gather_days(struct gather *g, struct err *e);
/* Checks that there is a host, card and model for each that the audit is restricted to;
 * ERR_NOTHING: there is not. */
int gather_words(struct gather *g, struct err *e);
/* Reads the sums of the cards and the heatmap; then drops cards that do not belong in the
 * report. */
int gather_usage(struct gather *g, struct err *e);
int gather_settle(struct gather *g, struct err *e);
/* Sets what the cards cost; then reads identities and processes, and all else that stores have
 * about them. */
int gather_costs(struct gather *g, struct err *e);
int gather_holders(struct gather *g, struct err *e);
#endif
