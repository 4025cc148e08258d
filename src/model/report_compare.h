/* The part of a report that compares two windows. */
#ifndef GUA_MODEL_REPORT_COMPARE_H
#define GUA_MODEL_REPORT_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/process.h"
#include "model/table.h"

enum figure_unit {
	FIGURE_SHARE,	  /* 0..1 */
	FIGURE_GPU_HOURS, /* the next ones are sums too: a longer window has more */
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
		shown_before; /* the same for people: shares as the headline has them */
	struct report_difference exact, shown;
};

/* A user's hours in both windows, in milliseconds of presence; 0: absent. */
struct report_user_change {
	char identity[USER_CAP];
	int64_t held_ms, held_before_ms;
	int64_t unused_ms, unused_before_ms;   /* idle, also on a card that others keep busy */
	struct report_difference held, unused; /* in milliseconds */
};

enum { FIGURES_MAX = 12 };

struct report_compare {
	bool asked;		    /* else nothing below is set */
	bool empty;		    /* the other window has no data; what is of it is unknown */
	int64_t since_ms, until_ms; /* the other window as it was used; as asked for if empty */
	double observed;	    /* its share of the window; NAN: unknown */
	struct report_change figures[FIGURES_MAX];
	size_t n_figures;
	struct report_user_change *users; /* those of both windows, in the report's order */
	size_t n_users, n_left_out;
	struct table figure_table, user_table; /* the same, for programs */
};

#endif
