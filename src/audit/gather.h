/* The engine that fills an audit from stores. They are read in passes: each pass opens one
 * store after the other in several threads, reads a part of it there, and adds what was read to
 * the audit in the order of the stores. Functions named _read may run in any thread. Functions
 * named _add take what was read, or read the store themselves. Only for audit/ and fleet/. */
#pragma once

#include "base/names.h"
#include "audit/audit.h"
#include "audit/engine.h"
#include "model/audit.h"
#include "store/sql.h"

/* What a pass has read from a store and not yet added to the audit. */
struct file_part {
	struct audit a; /* cards by their place in the store; sums, heatmap, days, spells */
	struct pairs *pairs;	       /* its holders */
	struct gather_record *records; /* of the survey: its hosts and runs */
	struct gather_run *runs;
	size_t n_records, n_runs;
};

/* Slots in from <= slot < to. */
struct slot_span {
	int64_t from, to;
};

/* One store while it is read. */
struct gather_file {
	const char *path;
	sqlite3 *db;	     /* NULL: it is closed */
	int code;	     /* error code if it cannot be read; 0: it is in the audit */
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
	struct slot_span
		slots[SLOT_TABLES]; /* of each slot table: from its first slot to its last */
	int64_t summed_s;	    /* slots before this are in the sums of hours */
	int64_t from_ms, to_ms;	    /* the requested window, widened to slots that it cuts */
	struct file_part *part;	    /* while a pass runs */
};

/* The index of a card in the audit, by its id in the store; IDMAP_NONE: it is not there. */
uint32_t gather_card(const struct gather_file *file, int64_t id);

/* One reading of all stores. */
struct gather_pass {
	/* Reads a store, in any thread: it may change only the file and its part. NULL: there
	 * is nothing to read first. */
	int (*read)(struct gather *g, struct gather_file *file, struct err *e);
	/* Adds what was read to the audit; the store is still open. */
	int (*add)(struct gather *g, struct gather_file *file, struct err *e);
	bool first; /* before this pass, nothing from a store is in the audit */
};
/* Runs a pass. A store that cannot be read gets its reason in `why`, and gather.again is set if
 * something of it is already in the audit. Fails if there is only one store, or if it is not
 * the fault of a store. */
int gather_each(struct gather *g, const struct gather_pass *pass, struct err *e);

/* The same for a failure that is found after a pass; 0: the audit goes on without the store. */
int gather_failed(struct gather *g, struct gather_file *file, struct err *e);

/* Calls `take` with each row of a store, until it fails. A parameter of the statement is the
 * user whose present was asked for. */
int gather_rows(struct gather *g, struct gather_file *file, const char *sql,
	int (*take)(struct gather *, struct gather_file *, sqlite3_stmt *, struct err *),
	struct err *e);

/* Starts the part of a file, with the days of the window, all empty; and adds its heatmap and
 * days to the audit. */
int gather_start_part(const struct gather *g, struct gather_file *file, struct err *e);
void gather_add_hours(struct gather *g, const struct gather_file *file);

/* Makes the list of files; ERR_USAGE: a store is given twice. */
int gather_list(struct gather *g, struct err *e);
/* Opens a store that is closed, and closes it unless it is kept open. */
int gather_open(struct gather *g, struct gather_file *file, struct err *e);
void gather_leave(struct gather *g, struct gather_file *file);
/* Discards what was gathered, except which stores cannot be read. */
void gather_forget(struct gather *g);
void gather_close(struct gather *g);

/* One start of a recorder. */
struct gather_run {
	size_t host;
	char source[SOURCE_LIST_CAP];
	int64_t started_ms, last_tick_ms, interval_ms;
	bool ended;
	bool strict; /* privacy was strict */
	bool leases; /* a scheduler said what it gave away */
	struct rules rules;
};

/* A row of a host in a store. Several rows can belong to one host: see hosts_unify(). */
struct gather_record {
	size_t file;
	int64_t id; /* in the store */
	char hostname[sizeof(((struct audit_host *)0)->hostname)];
	char machine_id[sizeof(((struct audit_host *)0)->machine_id)];
	char environment[sizeof(((struct audit_host *)0)->environment)];
	char driver[sizeof(((struct audit_host *)0)->driver)];
	int64_t newest_ms; /* its last tick */
	size_t same;	   /* another record of the same host; its own index: the first */
	size_t next;	   /* the next record of the same host; the records form a ring */
	size_t newest;	   /* of the first: the record with the newest tick */
	uint32_t host;	   /* of the first: index in audit.hosts; IDMAP_NONE: not yet */
};

struct gather {
	struct audit *a;
	const struct audit_question *q;
	struct gather_file *files;
	size_t n_files;
	bool kept_open; /* stores stay open, each in one transaction, until gather_close() */
	bool strict;	/* with several stores too, an unreadable one is an error */
	bool has_rows;	/* some card that was asked for has a slot in the window */
	bool again; /* a store turned out to be damaged: the audit must be made without it */
	struct gather_run *runs; /* store by store, sorted by start */
	size_t n_runs;
	struct gather_record *records; /* in the order of the stores */
	size_t n_records;
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
	bool odd_zone; /* in the local time zone, some hours of it do not begin at an hour of
			  UTC */
	struct idmap marks; /* keys of the time line's events; see hours_mark() */
	void *context;	    /* data of the current pass */
};

/* What is read of a store: parts of tables that together have each slot of the window once.
 * `level` says how coarse the rows may be. Days and hours come from the sums of complete hours,
 * the minutes before and after them from the slots. */
enum window_level { WINDOW_BY_DAY, WINDOW_BY_HOUR, WINDOW_BY_SLOT };
enum { WINDOW_READS = 11 };
struct window_reads {
	struct window_read {
		const struct slot_table *table;
		struct slot_span span;
		bool summed; /* of complete hours: their hours are in heat_1h, too */
	} items[WINDOW_READS];
	size_t n;
	struct slot_span hours; /* that are read from sums */
};
struct window_reads window_reads(
	const struct gather *g, const struct gather_file *file, enum window_level level);
/* The level at which the hours of the week and the columns of the time line can be filled. */
enum window_level hours_level(const struct gather *g);

/* Reads the hosts and the cards, merged over the files, the runs, and the ends of the data. */
int gather_survey(struct gather *g, struct err *e);
/* Sets the window; copies the rules and the state of each host from the runs in it. */
int window_set(struct gather *g, struct err *e);
/* Fails if two files recorded a host that they share at the same time in the window, because
 * that time would be counted twice. */
int hosts_check_overlap(struct gather *g, struct err *e);
/* Makes the days of the window, empty. */
int hours_make_days(struct gather *g, struct err *e);
/* ERR_NOTHING: the audit is restricted to a host, card or model that does not exist. */
int restriction_check_words(struct gather *g, struct err *e);
/* Reads the sums of the cards and the heatmap; then drops cards that are not in the report. */
int usage_read(struct gather *g, struct err *e);
int hosts_settle(struct gather *g, struct err *e);
/* Sets what the cards cost; then reads identities and processes, and everything else that
 * stores have about them. */
int audit_cost_cards(struct gather *g, struct err *e);
int holdings_read(struct gather *g, struct err *e);

/* The survey: hosts and runs, cards, where the data begins and ends. */
int hosts_read(struct gather *g, struct gather_file *file, struct err *e);
int hosts_add(struct gather *g, struct gather_file *file, struct err *e);
/* After all files were read: which rows belong to one host, and to one card. */
int hosts_join(struct gather *g, struct err *e);
/* The first record of the same host. */
size_t hosts_first(const struct gather *g, size_t record);
int window_read_bounds(struct gather *g, struct gather_file *file, struct err *e);
void window_add_bounds(struct gather *g, const struct gather_file *file);

/* The holders: the processes that the audit is restricted to; what a user holds now; the
 * longest idle spells; memory without a process. */
int restriction_read(struct gather *g, struct gather_file *file, struct err *e);
int restriction_add(struct gather *g, struct gather_file *file, struct err *e);
int restriction_check_users(const struct gather *g, struct err *e);
int spells_read(struct gather *g, struct gather_file *file, struct err *e);
int spells_add(struct gather *g, struct gather_file *file, struct err *e);
/* Counts the events that a report mentions, by kind. */
int events_add(struct gather *g, struct gather_file *file, struct err *e);
/* The leases with reserved time; and keeps the most reserved ones. */
int audit_leases_add(struct gather *g, struct gather_file *file, struct err *e);
void audit_leases_sort(struct audit_leases *all, size_t most);
/* Sorts what was read. */
void events_sort(struct audit *a);
/* Puts the longest first, and leaves out all but the first `most`. */
void spells_sort(struct audit_spells *all, size_t most);

/* Makes the columns, if they were asked for, and reads the cards' time in each: 60 to 200 of
 * them, unless the window has fewer slots. */
int hours_read_columns(struct gather *g, struct err *e);
/* Chooses the columns, of whole slots of that length; makes them for all cards, unless there
 * are too many. */
enum { HOURS_MOST_CARDS = 256 };
void hours_plan_columns(struct gather *g, int64_t slot_seconds);
int hours_make_columns(struct audit *a, struct err *e);
enum { EVENT_KIND_CAP = 32, EVENT_TEXT_CAP = 256 };

/* One event while it is read. */
struct event_row {
	int64_t at_ms, value;
	uint32_t host, card; /* indexes into the audit; card IDMAP_NONE: none */
	char kind[EVENT_KIND_CAP], text[EVENT_TEXT_CAP];
};

/* Receives the events in since <= t < until. */
struct event_taker {
	struct gather *g;
	int64_t since_ms, until_ms;
	int (*take)(struct event_taker *t, const struct event_row *row, struct err *e);
	void *context;
};

/* Calls `take` for the events of a store, in no order, unless their host or card is not in the
 * audit. Times without a recorder (EVENT_RECORDER_OFF) come from the runs. */
int events_of(struct event_taker *t, const struct gather_file *file, struct err *e);

/* Counts an event; `known` has the keys of those that were already counted. */
int hours_mark(struct audit *a, struct idmap *known, const struct event_row *row,
	enum event_kind kind, struct err *e);

/* Whether the time of a process counts. */
bool restriction_has(const struct gather *g, const struct gather_file *file, int64_t process);
/* The names of the job of a row of the table lease, in SQL. */
#define LEASE_JOB "iif(kind = 0, 'slurm:' || name, ''), 'slurm:' || task"
/* Whether the time of a job counts, which has a second name if it is a task of an array; the
 * same for one whose names are in a row, from `column` on. */
bool restriction_takes_job(const struct restriction *r, const char *name, const char *task);
bool restriction_takes_job_of(const struct restriction *r, sqlite3_stmt *row, int column);
/* Finds whether the time of a lease with this owner counts, and notes the owner. */
int restriction_take_owner(const struct gather *g, struct gather_file *file, const char *owner,
	bool *takes_it, struct err *e);
/* A condition to append to a query of holdings: " AND wanted(process)", or nothing. An SQL
 * function skips a row before its sums are decoded. */
const char *restriction_sql(const struct gather *g);
