/* The report: what an audit found, as facts, sentences and tables. query/report.h makes it and
 * works out every figure; the formats in render/ print it and compute nothing. */
#ifndef GUA_MODEL_REPORT_H
#define GUA_MODEL_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/audit.h"
#include "model/table.h"

/* What the table of holders is grouped by, and which table CSV has. */
enum report_by { REPORT_BY_USER, REPORT_BY_PROCESS, REPORT_BY_CARD };

/* What output must begin with when some of its data is invented. */
#define SIMULATED_WARNING                                                                      \
	"SIMULATED DATA: invented by a simulated source, not measured on a GPU."

/* What a sentence is about. A format puts each kind in its place, in the order in which the
 * sentences stand. */
enum sentence_kind {
	SENTENCE_SIMULATED,	 /* a warning: the data is invented */
	SENTENCE_SIMULATED_HOST, /* the same for one of several hosts */
	SENTENCE_IMPORTED,	 /* some of the data was imported from another tool */
	SENTENCE_COVERAGE,	 /* the window, and how much of it was observed */
	SENTENCE_ABSENT,	 /* a host without a recorder */
	SENTENCE_OBSERVED,	 /* the total that the shares of the states refer to */
	SENTENCE_UNOBSERVED,	 /* continues "unobserved 5.0%" */
	SENTENCE_WASTE,
	SENTENCE_VERDICT, /* the 20 % rule */
	SENTENCE_CARD,	  /* an event: a card that has no readings now */
	SENTENCE_HOLDERS, /* about the table of identities or processes */
	SENTENCE_EVENT,	  /* how often something happened, and when last */
	SENTENCE_RULES,	  /* the rules that were in force, and how fine time is kept */
};

struct sentence {
	enum sentence_kind kind;
	const char *label; /* its topic in one word, constant; "": the same as the sentence
			      before; NULL: none */
	char *text;
};

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

/* One hour of the week. */
struct report_hour {
	bool observed;
	int64_t ms[CARD_UNOBSERVED];   /* active, idle-held, truly-idle */
	double share[CARD_UNOBSERVED]; /* of the three together */
};

struct report {
	enum report_by by;
	bool utc;			/* for times in sentences and the hours of the week */
	const struct audit_host *hosts; /* the audit's, like all that they hold */
	size_t n_hosts;
	int64_t since_ms, until_ms, length_ms, resolution_ms;
	struct rules rules;
	bool rules_mixed;

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

	struct table host_table, cards;	    /* cards by host: hosts[].n_cards each */
	struct table identities, processes; /* processes: REPORT_BY_PROCESS alone */
	struct table events;		    /* by kind; only for programs */
	struct sentence *sentences;
	size_t n_sentences;
	bool failed; /* out of memory: something is missing */
};

#endif
