/* The report: what an audit found, as facts, sentences and tables. report/report.h makes it and
 * works out every figure; the formats in render/ print it and compute nothing. */
#ifndef GUA_MODEL_REPORT_H
#define GUA_MODEL_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/audit.h"
#include "model/report_bill.h"
#include "model/report_compare.h"
#include "model/report_person.h"
#include "model/report_facts.h"
#include "model/report_time.h"
#include "model/report_timeline.h"
#include "model/restriction.h"
#include "model/sentence.h"
#include "model/table.h"

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

/* A table that belongs to no other part, such as what a policy did. Every format prints it; one
 * without rows is left out for people. */
struct report_section {
	const char *key, *title, *caption; /* constant; key: of JSON */
	struct table table;
};
enum { REPORT_SECTIONS = 4 };

struct report {
	bool utc;    /* for times in sentences and the hours of the week */
	bool linked; /* set by who shows it: it is part of a page of gua serve, which has the
			heading; names and days lead to other pages */
	const char *link_rest;	 /* of a linked one, the page's: what follows the window in a
				    link, written for HTML */
	const char *link_spells; /* the same: leads to this page with more idle spells */
	size_t n_spells_left;	 /* idle spells that are not in `longest` */
	const struct audit_host *hosts; /* the audit's, like all that they hold */
	size_t n_hosts;
	size_t n_listed; /* people see the cards of these first ones: all, or a few of many */
	int64_t since_ms, until_ms, length_ms, resolution_ms;
	int64_t asked_since_ms, asked_until_ms; /* as in audit.h, like the next two */
	bool clipped_start, clipped_end;
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
	bool of_users; /* it is about some users: the headline, waste and hours of the week are
			  of the time that they held cards, `held`; ms[] is the cards' own */
	struct audit_sums held; /* presence of all users in the report, added up */
	int64_t held_ms;	/* over all states */
	double held_share[HOLDER_STATES];
	const struct restriction *only;		  /* the caller's; NULL: it is not restricted */
	struct report_state states[REPORT_MARKS]; /* of the headline, those to show */
	size_t n_states;
	struct report_waste waste;
	int64_t unattributed_ms;
	struct report_hour hours[7][24]; /* Sunday first */
	bool has_hours;			 /* some of them is observed */
	struct report_trend trend;
	struct report_timeline timeline; /* if the audit has columns */
	struct report_compare compare;
	struct report_person person;

	struct table host_table, cards; /* cards by host: hosts[].n_cards each */
	struct table identities;	/* users */
	struct table events;		/* by kind; only for programs */
	struct table longest;		/* the longest idle spells */
	struct table orphans;		/* orphan memory; only for programs */
	struct report_bill bill;
	struct report_breakdown breakdown; /* by card alone: only `by` is set */
	struct report_section sections[REPORT_SECTIONS];
	size_t n_sections;
	struct report_breakdown by_card; /* of_users: their time on each card */
	struct sentence *sentences;
	size_t n_sentences;
	const struct audit_stores *stores; /* the audit's */
	const struct audit_fleet *fleet;   /* the audit's; NULL: it is not of metrics */
	const struct asked_hosts *asked;   /* of the request; may be NULL */
	bool failed;			   /* out of memory: something is missing */
};

#endif
