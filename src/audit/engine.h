/* What every engine adds time to: users, breakdowns, the hours of the week and the days. Only
 * for audit/ and fleet/. */
#pragma once

#include "base/names.h"
#include "audit/audit.h"

struct gather; /* of gather.h */

struct users {
	struct names names;
	struct audit_identity *items; /* by the number of the name */
	size_t n;
};

/* The index of `name`, added when it is new; IDMAP_NONE when out of memory. */
uint32_t holdings_find_user(struct users *u, const char *name, struct err *e);
/* Sorts the users by presence and moves them into the audit, with their names; renumbers what
 * refers to them. */
int holdings_hand_over_users(struct users *u, struct audit *a, struct err *e);
void holdings_finish_users(struct users *u);

/* One process on one card. `user` and `labels` are numbers in `users` and `labels` below and,
 * when the pair is added to the audit, of its identities and its breakdown. */
struct pair {
	int64_t process; /* its id in the store */
	uint32_t card;
	uint32_t place;		 /* index of the card in the store */
	uint32_t user;		 /* IDMAP_NONE: there is no row for the process */
	uint32_t labels[BY_MAX]; /* the names that a breakdown asks for; IDMAP_NONE: none */
	uint32_t pid;		 /* this and the next are from the process row */
	int64_t started_ms;
	/* Only these are kept, because a year has tens of thousands of pairs; the rest is
	 * computed from them. */
	int64_t own_ms[HOLDER_STATES], presence_ms[HOLDER_STATES];
	int64_t active_share_ms, idle_share_ms, unknown_share_ms, reserved_ms;
	int64_t peak_mem_kib, last_active_ms;
	bool context; /* never more than a bare context */
	bool lease;   /* it is a lease on a card: it has reserved time and nothing else */
};

/* Returns the sums of a pair by its own state, without the cost. */
struct audit_sums holdings_sums(const struct pair *pair);

/* The pairs of one file. */
struct pairs {
	struct idmap map;
	struct pair *items;
	size_t n;
	size_t last;	     /* the previous pair: often the same */
	int64_t *unknown_ms; /* by place: presence with unknown use, including processes that
				the audit leaves out; NULL if the file has none */
	struct names users, labels[BY_MAX];
};

void holdings_free_pairs(struct pairs *p);

/* A breakdown that is being made. */
struct breakdown {
	struct gather *g;
	struct audit_breakdown *to;
	const struct users *users;
	struct names names[BY_MAX];
	const char **shown; /* of each name of a job, as people see it; NULL: as it is */
	struct idmap places[BY_MAX]; /* from the key of a row to the row */
	size_t path;		     /* with the next two: the process of the last pair */
	int64_t process;
	uint32_t n_processes; /* how many processes there were */
};

void breakdown_start(struct breakdown *b, struct gather *g, const struct users *users,
	struct audit_breakdown *to, const struct by *by);
/* A job and how people see it, in SQL: the length of its name first. */
#define BREAKDOWN_JOB(job, shown)                                                              \
	"printf('%03d %s%s', length(CAST(" job " AS BLOB)), " job ", " shown                   \
	" || coalesce(' ' || job_name, ''))"
enum { BREAKDOWN_DIGITS = 3 };
/* Returns the columns of the table process that the kinds need, or "NULL". */
const char *breakdown_column(const struct by *by, size_t level);
/* Sets the label of a pair from the text in that column. */
int breakdown_label(
	struct breakdown *b, struct pair *pair, size_t level, const char *text, struct err *e);
/* Adds a pair of the store `path`; pairs of one process must come one after the other. */
int breakdown_add(struct breakdown *b, size_t path, const struct pair *pair, struct err *e);
/* Adds the cards' own time, and gives the names to the audit. */
int breakdown_end(struct breakdown *b, struct err *e);
void breakdown_finish(struct breakdown *b);

/* The hours of the week in local time, or in UTC. */
struct heat_clock {
	bool utc;
	int64_t hour;	  /* the last one that was looked up, unix seconds; 0: none yet */
	int64_t offset_s; /* its offset from UTC */
	bool days_only;	  /* add to the days, not to the hours of the week */
};
struct heat_slot {
	int64_t start, seconds; /* unix time, and length */
};
/* Adds `ms` of `state` in the slot to the heatmap and to its day. */
void hours_add(
	struct audit *a, struct heat_clock *h, struct heat_slot slot, int state, int64_t ms);

/* Adds a card's window to the days that it covers. */
void hours_add_window(struct audit_days *d, int64_t from_ms, int64_t to_ms);
/* Sets the unobserved time of each day. */
void hours_settle(struct audit_days *d);
/* Clear all time except unobserved time; the time of users is added next. */
void hours_clear(struct audit_days *d);
void hours_clear_columns(struct audit_columns *c, size_t n_cards);
/* Adds `ms` of `state` on a card in the slot that starts there (unix seconds). */
void hours_add_column(
	struct audit_columns *c, uint32_t card, int64_t slot, int state, int64_t ms);
