/* A survey: what the engine answers for one window of a fleet, and the audit made of it. Two
 * snapshots of the counters, at both edges, are enough for most series; the others (hosts that
 * came or went, lost stores) are asked for one by one: see gua-fleet(7). */
#ifndef GUA_FLEET_SURVEY_H
#define GUA_FLEET_SURVEY_H

#include "base/err.h"
#include "base/names.h"
#include "audit/audit.h"
#include "audit/hours.h"
#include "fleet/fleet.h"

/* Counters of a fleet at the edges of a window: for each card or user of a host and each
 * state, the last value before an edge and the first one after it. */
/* The two edges of a window. */
enum edge { EDGE_START, EDGE_END, EDGES };

enum meter_slot {
	METER_BEFORE_START, /* the last value up to the edge */
	METER_AFTER_START,  /* the first value after it */
	METER_BEFORE_END,
	METER_AFTER_END,
	METER_FIRST, /* the least value in the window, of series that begin in it */
	METER_SLOTS,
};

enum { METER_STATES = 5 }; /* by enum card_state, or enum holder_state */

struct meter {
	double at[METER_SLOTS]; /* NAN: no value */
	double lost;		/* what resets in the window took away */
};

struct meter_row {
	uint32_t host;
	const char *name; /* UUID or identity */
	char gpu[16];	  /* label of a card: "0", "0:1" */
	uint32_t info;	  /* the survey's */
	struct meter states[METER_STATES];
};

/* Zero-initialise. */
struct meters {
	struct names names; /* their scope is the host */
	struct meter_row *rows;
	size_t n;
};

/* The row, added when it is new. NULL: out of memory. */
struct meter_row *meter_find(struct meters *m, uint32_t host, const char *name, struct err *e);
void meter_finish(struct meters *m);

/* When the counters of a host were accounted, at an edge; NAN: not known. */
struct edge_times {
	double edge, before, after;
};
/* The value at an edge, on the line between the values around it; the value before it if that
 * is all there is, or if the one after it belongs to another store. NAN: none before it. */
double meter_value(double before, double after, const struct edge_times *t);

/* How far from an edge a value may be. */
enum { LOOK_S = 600, LONG_LOOK_S = 86400, HOUR_S = 3600 };

/* What a counter shows in its first minutes: its series began with it. */
enum { NEWBORN_S = 150 };

struct survey_host {
	const char *key;		    /* what its labels say */
	const char *name;		    /* the same without a port */
	double before[EDGES], after[EDGES]; /* when its counters were accounted; NAN unknown */
	double first;			    /* the same of METER_FIRST */
	double last;			    /* the newest that was seen */
	bool left_out;			    /* the audit is restricted to others */
	double reset_from, reset_to;	    /* its store was lost between them; 0: it was not */
	bool is_partial;		    /* the audit is restricted to some of its cards */
	bool is_expected;		    /* by name: from the start of the window on */
	bool is_listed;			    /* it is in the audit, at the next */
	uint32_t index;
	size_t n_cards;
	/* Of its cards, by state, in milliseconds: the counters at the start, what was added to
	 * the hours, and where the last of it was added. */
	int64_t start_ms[METER_STATES], booked_ms[METER_STATES];
	double booked_to[METER_STATES];
};

/* What a card is. */
struct survey_info {
	char model[CARD_NAME_CAP], driver[VERSION_CAP], source[SOURCE_CAP];
};

struct survey {
	struct fleet *f;
	const struct audit_question *q;
	struct audit *a;
	const struct roster *expected;
	double edges[EDGES]; /* unix seconds */
	double oldest; /* the first sight of any host, in the window or a day before; or NAN */
	double now_s;
	double lag_s;	/* counters are this much older than a scrape, mostly */
	bool has_after; /* there is a time after the end */
	bool has_twins; /* replicas: a host has two series of one kind */
	bool no_users;	/* they cannot be known of these cards */
	struct names names;
	struct survey_host *hosts;
	size_t n_hosts;
	struct meters cards, energy, users;
	struct heat_clock clock;
	struct names info_names; /* texts of a card: numbered, because few differ */
	struct survey_info *infos;
	size_t n_infos;
	size_t n_resets, n_assumed; /* series of users whose start was taken to be 0 */
	struct arena arena;
};

/* Asks for a window, and fills `*a`. Without data in it, n_cards is 0. A host that is expected
 * by its name should have reported from the start of the window on. */
struct roster;
int survey_run(struct audit *a, struct fleet *f, const struct audit_question *q,
	struct roster *expected, struct err *e);

/* The steps. Only for survey*.c. */
int survey_edges(struct survey *s, struct err *e);
int survey_exceptions(struct survey *s, struct err *e);
int survey_choose(struct survey *s, struct err *e);
/* Whether the audit is about this user. */
bool survey_takes_user(const struct survey *s, const struct meter_row *row);
int survey_hours(struct survey *s, struct err *e);
int survey_newborn(struct survey *s, struct err *e);
int survey_resets(struct survey *s, struct err *e);
int survey_fill(struct survey *s, struct err *e);

/* The counter at the start of the window; *in_sum (may be NULL): it was there then, or its host
 * was not. */
double survey_start(
	const struct survey *s, const struct meter_row *row, int state, bool *in_sum);
double survey_end(const struct survey *s, const struct meter_row *row, int state);
/* Where the samples of a query go. */
struct survey_take {
	struct survey *s;
	struct meters *to;
	int slot;
	int state; /* -1: the label says it */
};
/* The host of a sample, added when it is new; NULL with an error set. */
struct survey_host *survey_host(struct survey *s, const struct sample *sample, struct err *e);
/* Adds the questions for all counters, with `extra` matchers, into a slot. */
struct survey_question {
	const char *extra; /* matchers */
	const char *over;  /* "last_over_time" or "min_over_time" */
	double time_s, range_s;
	int slot;
};
void survey_ask(struct survey *s, struct batch *b, const struct survey_question *q);
/* The state that a label names; -1: none of those that a card has. */
int survey_state(const char *label);

/* The identity of time that no user has: the audit works it out. */
#define NOBODY "_unknown"

/* What a counter grew over the window, in thousandths: milliseconds or millijoules. */
int64_t survey_grown(const struct survey *s, const struct meter_row *row, int state);
/* Adds to the hours what the sums at full hours did not show: what a lost store had counted,
 * and the differences between snapshots. */
void survey_settle_hours(struct survey *s);
/* The hours and days of the users that the audit is restricted to, instead of the cards'. */
int survey_user_hours(struct survey *s, struct err *e);

#endif
