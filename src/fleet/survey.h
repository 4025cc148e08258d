/* A survey: the engine's answers about one window of a fleet, and the audit made from them.
 * Two snapshots of the counters, at both edges, are enough for most series; the others
 * (hosts that came or went, lost stores) are queried one by one: see gua-fleet(7). */
#pragma once

#include "fleet/fleet_fill.h"

/* Counters of a fleet at the two edges of a window: for each card or user of a host and each
 * state, the last value before an edge and the first one after it. */
enum edge { EDGE_START, EDGE_END, EDGES };

enum meter_slot {
	METER_BEFORE_START, /* the last value up to the edge */
	METER_AFTER_START,  /* the first value after it */
	METER_BEFORE_END,
	METER_AFTER_END,
	METER_FIRST, /* smallest value in the window, of series that begin in it */
	METER_SLOTS,
};
/* The slots of an edge. */
#define SLOT_BEFORE(edge) ((edge) == EDGE_START ? METER_BEFORE_START : METER_BEFORE_END)
#define SLOT_AFTER(edge) ((edge) == EDGE_START ? METER_AFTER_START : METER_AFTER_END)

/* What texts say of a card. */
enum survey_info { INFO_MODEL, INFO_DRIVER, INFO_SOURCE, SURVEY_INFOS };

enum { METER_STATES = CARD_STATES }; /* by enum card_state, or enum holder_state */

struct meter {
	double at[METER_SLOTS]; /* NAN: no value */
	double lost;		/* growth that was lost by resets in the window */
};

struct meter_row {
	uint32_t host;
	const char *name;		    /* UUID or identity */
	char gpu[16];			    /* label of a card: "0", "0:1" */
	uint32_t info[SURVEY_INFOS];	    /* numbers of texts, from 1; 0: not known */
	struct meter *states[METER_STATES]; /* NULL: no value; see meter_of() */
};

/* Zero-initialise. */
struct meters {
	struct names names; /* their scope is the host */
	struct meter_row *rows;
	size_t n;
	struct arena values; /* most rows have values in few states */
};

/* The row, added if it is new. NULL: out of memory. */
struct meter_row *meter_find(struct meters *m, uint32_t host, const char *name, struct err *e);
/* What a row has in a state; meter_add(): to be changed. NULL: out of memory. */
const struct meter *meter_of(const struct meter_row *row, int state);
struct meter *meter_add(struct meters *m, struct meter_row *row, int state, struct err *e);
void meter_finish(struct meters *m);

/* Up to when the counters of a host were accounted, around an edge; NAN: unknown. */
struct edge_times {
	double edge, before, after;
};
/* The value at an edge, interpolated between the values around it; the value before it, if
 * there is none after it or that one belongs to another store. NAN: there is none before it. */
double meter_value(double before, double after, const struct edge_times *t);

/* How far from an edge a value may be, in seconds. */
enum { LOOK_S = 600, LONG_LOOK_S = 86400, HOUR_S = 3600 };

/* A counter below this, in seconds, is in its first minutes: its series is new. */
enum { NEWBORN_S = 150 };

struct survey_host {
	const char *key;	/* the values of its labels */
	const char *name;	/* the same without a port */
	double at[METER_SLOTS]; /* up to when its counters were accounted; NAN: unknown */
	double last;		/* the newest one seen */
	bool left_out;		/* the audit does not include it */
	double reset_from,
		reset_to; /* its store was lost between these moments; 0: it was not */
	bool is_partial;  /* the audit includes only some of its cards */
	bool has_cards;	  /* that the audit includes */
	bool has_new_card, has_new_user; /* a series of one begins within the window */
	bool is_listed; /* it is in the audit, with this card before those were sorted */
	uint32_t card;
	size_t n_cards;
	/* Of its cards, by state, in milliseconds: the counters at the start and at the end,
	 * what was added to the hours, and up to when. */
	int64_t start_ms[METER_STATES], end_ms[METER_STATES], booked_ms[METER_STATES];
	double booked_to[METER_STATES];
};

struct survey {
	struct fleet_fill *fill;
	struct fleet *f; /* the fill's, like the next two */
	const struct audit_question *q;
	struct audit *a;
	double edges[EDGES]; /* unix seconds */
	double oldest; /* when a host was first seen, in the window or a day before; or NAN */
	double now_s;
	double lag_s;	/* typical age of counters at a scrape, in seconds */
	bool has_after; /* there is time after the end */
	bool has_twins; /* replicas: a host has two series of one kind */
	bool no_users;	/* users cannot be known for these cards */
	struct names names;
	struct survey_host *hosts;
	size_t n_hosts;
	struct meters cards, energy, users; /* the first two are freed when cards are added */
	size_t n_cards;			    /* that were surveyed */
	struct names infos;		    /* texts of cards: numbered, because few differ */
	size_t n_resets, n_assumed; /* number of lost stores; series of users whose start was
				       assumed to be 0 */
	struct arena arena;
};

/* Queries the window, and adds hosts and cards to the fill; zero-initialise the survey. */
int survey_run(struct survey *s, struct fleet_fill *fill, struct err *e);
/* Adds the users, when the cards are sorted. */
int survey_fill_users(struct survey *s, struct err *e);
void survey_finish(struct survey *s);

/* The steps. Only for survey*.c. */
int survey_edges(struct survey *s, struct err *e);
int survey_edges_exceptions(struct survey *s, struct err *e);
/* Whether the audit includes this user. */
bool survey_takes_user(const struct survey *s, const struct meter_row *row);
int survey_hours(struct survey *s, struct err *e);
int survey_edges_newborn(struct survey *s, struct err *e);
int survey_edges_resets(struct survey *s, struct err *e);
int survey_fill(struct survey *s, struct err *e);

/* The counter at the start of the window; *in_sum (may be NULL): the series, or not even its
 * host, existed then. */
double survey_start(
	const struct survey *s, const struct meter_row *row, int state, bool *in_sum);
double survey_end(const struct survey *s, const struct meter_row *row, int state);
/* The families of counters. */
enum survey_kind { COUNT_CARDS, COUNT_ENERGY, COUNT_USERS, COUNT_SQUATTING, COUNT_KINDS };
extern const struct survey_family {
	const char *name;
	const char *label; /* of a row's name */
	const char *by;	   /* all labels that tell series of a host apart, each after a comma */
	int state;	   /* of all series; -1: a label has it */
} survey_families[COUNT_KINDS];
struct meters *survey_meters(struct survey *s, const struct survey_family *family);
/* Where the samples of a query go. */
struct survey_take {
	struct survey *s;
	const struct survey_family *family; /* NULL: they are times of hosts */
	enum meter_slot slot;
};
/* The host of a sample, added if it is new; NULL with an error set. */
struct survey_host *survey_host(struct survey *s, const struct sample *sample, struct err *e);
/* Adds the queries for the values of all counters that go into a slot, within `range_s` of its
 * moment; `extra`: matchers. */
struct survey_question {
	enum meter_slot slot;
	double range_s;
	const char *extra;
};
void survey_ask(struct survey *s, struct batch *b, const struct survey_question *q);
/* The row in `to` and the state that a sample is of. NULL: with an error set, or without if it
 * is of none. */
struct meter_row *survey_row(const struct survey_take *take, struct meters *to,
	const struct sample *sample, int *state, struct err *e);
/* A text about a card; "": not known. */
const char *survey_info(
	const struct survey *s, const struct meter_row *row, enum survey_info which);
/* Sets index, UUID and model of a card. */
void survey_card_id(struct card_id *id, const struct survey *s, const struct meter_row *row);
/* Takes the value of the only sample: the context is a double. */
int survey_take_value(void *context, const struct sample *sample, struct err *e);
/* The state of a sample, by its family or its label; -1: not a state of a card. */
int survey_state(const struct survey_family *family, const struct sample *sample);

/* The identity for time that no user has; the audit computes it itself. */
#define NOBODY "_unknown"

/* The growth of a counter over the window, in thousandths: milliseconds or millijoules.
 * survey_growth(): -1 if the counter did not exist. */
int64_t survey_growth(const struct survey *s, const struct meter_row *row, int state);
int64_t survey_grown(const struct survey *s, const struct meter_row *row, int state);
/* Adds to the hours what the sums at full hours did not show: what a lost store had counted,
 * and differences between snapshots. */
void survey_hours_settle(struct survey *s, const struct meters *m);
/* Reads the hours and days of the users that the audit is restricted to, instead of those of
 * the cards. */
int survey_hours_of_users(struct survey *s, struct err *e);
