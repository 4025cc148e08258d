/* The report: what an audit found, as facts, sentences and tables. report/report.h makes it and
 * works out every figure; the formats in render/ print it and compute nothing. */
#pragma once

#include "model/audit.h"
#include "model/process.h"
#include "model/release.h"
#include "model/report_time.h"
#include "model/restriction.h"
#include "model/sentence.h"
#include "model/state.h"
#include "model/table.h"

/* One state in the headline. */
struct report_state {
	const char *label, *remark; /* constant; remark "": none */
	size_t look;		    /* in state_looks */
	int64_t ms;
	double shown; /* its share, rounded so that the printed shares add up to 100.0 % */
};

/* The report's verdict on the use of the cards. */
enum report_verdict {
	VERDICT_NONE,		 /* nothing was observed, or the report is about users */
	VERDICT_LITTLE_OBSERVED, /* too little of the window was observed: no verdict */
	VERDICT_TOO_SHORT,	 /* the observed time is too short: no verdict */
	VERDICT_POLICY,		 /* idle-held is above 20 % of observed time */
	VERDICT_SQUATTING, /* idle-held is not, but squatting is above 20 % of the time held */
	VERDICT_WITHIN,	   /* neither is above 20 % */
	VERDICTS,
};

/* The cost of idle time. NAN: unknown. */
struct report_waste {
	double idle_held_hours, truly_idle_hours;	/* GPU-hours */
	double reserved_hours;				/* NAN: leases are not known */
	double squatting_hours;				/* presence */
	double equivalent_unavailable, equivalent_free, /* the first two as a number of cards */
		equivalent_reserved;
	double energy_kwh, energy_known; /* of idle-held time; the share with known energy */
	double cost;			 /* of idle-held time on cards with a price */
	double shown_cost; /* the same, rounded to the cents that the bill adds up to */
	double reserved_cost, shown_reserved_cost; /* of reserved time; NAN as above */
	const char *currency;			   /* of the cost; NULL: no price was given */
	enum report_verdict judged;
	const char *verdict; /* the same for programs: "allocation_policy"; NULL: none */
};

/* The lines of a bill. Those of identities, and the next three, add up to the total. */
enum bill_kind {
	BILL_IDENTITY,	   /* a user's or a group's shares */
	BILL_UNATTRIBUTED, /* held time that is in no identity's share */
	BILL_FREE,	   /* truly-idle time */
	BILL_UNOBSERVED,
	BILL_REST, /* identities that are left out: for people only */
	BILL_HELD, /* the sum of the identities, but for ... */
	BILL_RESERVED,
	BILL_TOTAL,
	BILL_KINDS
};

struct report_bill {
	bool shown; /* there is a price of GPU-hours, of energy, or CO2 to show to people */
	const char *currency; /* of prices of GPU-hours; NULL: none was given */
	const char *energy_currency;
	/* NAN: not given. */
	double energy_price, co2_g_per_kwh;
	struct table lines;
	struct table cards, energy; /* only for people */
	bool has_energy;	    /* some is known */
};

enum figure_unit {
	FIGURE_SHARE,	  /* 0..1 */
	FIGURE_GPU_HOURS, /* this and the next are sums: a longer window has more */
	FIGURE_KWH,
	FIGURE_MONEY,
	FIGURE_GPUS, /* cards */
};

/* How two numbers differ; NAN: one of them is unknown. */
struct report_difference {
	double change;	/* now - before */
	double percent; /* the same in percent of before; NAN also if before is 0 */
};

/* A figure in both windows; NAN: unknown. */
struct report_change {
	const char *key, *label; /* for programs, for people; constant */
	enum figure_unit unit;
	int better; /* 1: more is better, -1: less is better, 0: neither */
	double now, before;
	double shown_now,
		shown_before; /* the same for people: shares rounded as in the headline */
	struct report_difference exact, shown;
};

/* How a user used the cards in a window. */
struct report_use {
	int64_t held_ms, used_ms; /* presence */
	int64_t reserved_ms;	  /* by leases, and not touched */
	int64_t unused_ms;	  /* idle, or reserved */
	double cost;		  /* of their share of idle-held time; NAN: no price */
};

/* A user in both windows; absent: all 0. */
struct report_user_change {
	char identity[USER_CAP];
	struct report_use now, before;
	struct report_difference held, unused; /* in milliseconds */
};

enum { FIGURES_MAX = 14 };

struct report_compare {
	bool asked;		    /* else nothing below is set */
	bool empty;		    /* the other window has no data: its values are unknown */
	int64_t since_ms, until_ms; /* the other window as it was used; as asked for if empty */
	double observed;	    /* its share of the window; NAN: unknown */
	struct report_change figures[FIGURES_MAX];
	size_t n_figures;
	struct report_user_change *users; /* those of both windows, in the report's order */
	size_t n_users, n_left_out;
	struct table figure_table, user_table; /* the same, for programs */
};

/* A process of theirs that holds a card idle now, and how to end it. */
struct report_release {
	const struct audit_present *held; /* the audit's */
	const char *where;		  /* "GPU 2", "GPU 2 of lab" */
	char command[RELEASE_CAP];
};

enum { RELEASES_MAX = 4 };

struct report_person {
	char name[USER_CAP];	       /* "": the report is not about one user */
	struct report_use now, before; /* in this window and in the other */
	size_t rank, n_users;	       /* place by unused hours, from 1; 0: they held nothing */
	struct report_release releases[RELEASES_MAX]; /* longest idle first */
	size_t n_releases, n_more;
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
	} * rows;	   /* one for each row of the table */
};

/* What stands in a section: sentences of a kind, a table, or a part of the report that each
 * format draws in its own way. */
enum block_kind {
	BLOCK_SENTENCES,
	BLOCK_TABLE,
	BLOCK_HEADLINE, /* the states, with a bar */
	BLOCK_COMPARE,
	BLOCK_TIMELINE,
	BLOCK_CARDS, /* a table for each host */
	BLOCK_TREND,
	BLOCK_HOURS,
};
struct report_block {
	enum block_kind kind;
	enum sentence_kind sentences;
	const struct table *table;
	const char *caption, *bars;    /* on a page: title of the column with bars, or NULL */
	const struct report_row *rows; /* the level of each row; NULL: all are 0 */
	bool no_links;		       /* names in it are not links */
};

/* A section of the report for people. report_sections() lists them; a format loops over them
 * and decides only how a block looks. */
struct report_section {
	const char *id;			  /* of its heading on a page; constant */
	char title[128], page_title[128]; /* in text, on a page */
	bool page_only;			  /* not in text */
	bool detail;			  /* left out of the brief report */
	struct report_block blocks[4];
	size_t n_blocks;
};
enum { REPORT_SECTIONS = 14 };

struct report {
	const struct audit *a; /* what it is made from, and borrows */
	bool utc;	       /* for times in sentences and the hours of the week */
	bool minutes; /* the cards' time is short: people see GPU-minutes, not GPU-hours */
	bool linked;  /* set by the caller that shows it: the report is part of a page of gua
			 serve, which has its own heading, and names and days are links */
	const char *link_rest; /* if linked, set by the page: what follows the window in a link,
				  escaped for HTML */
	const char *link_spells; /* if linked, set by the page: link to this page with more idle
				    spells */
	size_t n_spells_left;	 /* idle spells that are not in `longest` */
	size_t n_listed;   /* people see the cards of the first n_listed hosts: all, or a few of
			      many */
	int64_t length_ms; /* of the window */

	int64_t ms[CARD_STATES], observed_ms;
	double share[CARD_STATES]; /* of observed time, NAN without any; [CARD_UNOBSERVED]: of
				      the window */
	double shown[CARD_STATES]; /* the same for people, rounded so that the printed shares
				      add up to 100.0 % */
	double shown_observed;	   /* with shown[CARD_UNOBSERVED] */
	double observed;	   /* share of the window; NAN without a window */
	double uncertainty; /* the largest error of the share of idle-held time; or NAN */
	size_t observed_cards;
	/* In a report about some users (a->of_users), the headline, waste and hours of the week
	 * cover the time that they held cards; ms[] is still the time of the cards. */
	struct audit_sums held; /* presence of all users in the report, added up */
	int64_t held_ms;	/* over all states */
	double held_share[HOLDER_STATES], shown_held[HOLDER_STATES]; /* shown: rounded */
	const struct restriction *only;		 /* the caller's; NULL: it is not restricted */
	struct report_state states[STATE_LOOKS]; /* the states of the headline that are shown */
	size_t n_states;
	struct report_waste waste;
	struct report_hour hours[7][24]; /* Sunday first */
	bool has_hours;			 /* enough of them were observed to show them */
	struct report_trend trend;
	struct report_timeline timeline; /* if the audit has columns */
	struct report_compare compare;
	struct report_person person;

	struct table host_table, cards; /* cards by host: hosts[].n_cards each */
	struct table identities;	/* users */
	struct table events;		/* by kind; only for programs */
	struct table longest;		/* the longest idle spells */
	struct table leases;		/* the leases with the most reserved time */
	struct table orphans;		/* orphan memory; only for programs */
	struct report_bill bill;
	struct report_breakdown breakdown; /* by card alone: only `by` is set */
	struct table policy;		   /* what gua enforce did */
	struct report_breakdown by_card;   /* of_users: their time on each card */
	struct sentence *sentences;
	struct arena texts; /* of sentences */
	size_t n_sentences;
	const struct audit_fleet *fleet; /* the audit's; NULL: it is not of metrics */
	const struct asked_hosts *asked; /* of the request; may be NULL */
	bool failed;			 /* out of memory: the report is incomplete */
};
