/* The figures of a report, group by group. Only for model/report.h. */
#ifndef GUA_MODEL_REPORT_FACTS_H
#define GUA_MODEL_REPORT_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/state.h"

/* How a state looks in a bar: an enum card_state, or this for users. */
enum { MARK_SQUATTING = CARD_STATES, REPORT_MARKS };

/* A state of the time that the headline is about. */
struct report_state {
	const char *label, *remark; /* constant; remark "": none */
	int mark;
	int64_t ms;
	double shown; /* its share, rounded so that what is printed adds up to 100.0 % */
};

/* What a report says about the cards' use. */
enum report_verdict {
	VERDICT_NONE,		 /* nothing was observed, or it is about users */
	VERDICT_LITTLE_OBSERVED, /* of the window: no verdict */
	VERDICT_TOO_SHORT,	 /* the observed time: no verdict */
	VERDICT_POLICY,		 /* idle-held is above 20 % of observed time */
	VERDICT_SQUATTING,	 /* it is not; squatting is above 20 % of the time held */
	VERDICT_WITHIN,		 /* neither is */
	VERDICTS,
};

/* What idle time cost. NAN: unknown. */
struct report_waste {
	double idle_held_hours, truly_idle_hours;	/* GPU-hours */
	double squatting_hours;				/* presence */
	double equivalent_unavailable, equivalent_free; /* the first two in cards */
	double energy_kwh, energy_known; /* of idle-held time; the share with known energy */
	double cost;			 /* of idle-held time on cards with a price */
	double shown_cost;		 /* the same in cents that the bill adds up to */
	const char *currency;		 /* of the cost; NULL: no price was given */
	enum report_verdict judged;
	const char *verdict; /* the same for programs: "allocation_policy"; NULL: none */
};

#endif
