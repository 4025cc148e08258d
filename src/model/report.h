/* The report: what an audit found, as facts, sentences and tables. query/report.h makes it and
 * works out every figure; the formats in render/ print it and compute nothing. */
#ifndef GUA_MODEL_REPORT_H
#define GUA_MODEL_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/audit.h"
#include "model/report_compare.h"
#include "model/report_time.h"
#include "model/sentence.h"
#include "model/table.h"

/* A state of observed time as the headline shows it. */
struct report_state {
	enum card_state state;
	const char *label, *remark; /* constant; remark "": none */
};

/* What idle cards cost. NAN: unknown. */
struct report_waste {
	double idle_held_hours, truly_idle_hours;	/* GPU-hours */
	double equivalent_unavailable, equivalent_free; /* the same in cards */
	double energy_kwh, energy_known; /* of idle-held time; the share with known energy */
	double cost;			 /* of idle-held time */
	const char *currency;		 /* of the cost; NULL: no cost was asked for */
	const char *verdict; /* "allocation_policy", "within_rule"; NULL: nothing observed */
};

/* The table of what the report was asked to be broken down by: rows of the first level, each
 * followed by its rows of the second. */
struct report_breakdown {
	struct by by;
	enum measure measures[BY_MAX];
	struct table table;
	struct report_row {
		unsigned level;
		bool rest; /* sums of the rows that --top leaves out: for people only */
	} * rows;	   /* as many as the table has */
};

struct report {
	bool utc;			/* for times in sentences and the hours of the week */
	const struct audit_host *hosts; /* the audit's, like all that they hold */
	size_t n_hosts;
	int64_t since_ms, until_ms, length_ms, resolution_ms;
	struct rules rules;
	bool rules_mixed, strict; /* as in audit.h */

	int64_t ms[CARD_STATES], observed_ms;
	double share[CARD_STATES]; /* of observed time, NAN without any; [CARD_UNOBSERVED]: of
				      the window */
	double shown[CARD_STATES]; /* the same for people, rounded so that what is printed adds
				      up to 100.0 % */
	double shown_observed;	   /* with shown[CARD_UNOBSERVED] */
	double observed;	   /* share of the window; NAN without a window */
	double uncertainty; /* the largest error of the share of idle-held time; or NAN */
	size_t observed_cards;
	struct report_state states[CARD_STATES]; /* those to show, in their order */
	size_t n_states;
	struct report_waste waste;
	int64_t unattributed_ms;
	struct report_hour hours[7][24]; /* Sunday first */
	struct report_trend trend;
	struct report_compare compare;

	struct table host_table, cards;	   /* cards by host: hosts[].n_cards each */
	struct table identities;	   /* users */
	struct table events;		   /* by kind; only for programs */
	struct report_breakdown breakdown; /* by users: only `by` is set, like by cards */
	struct sentence *sentences;
	size_t n_sentences;
	bool failed; /* out of memory: something is missing */
};

#endif
