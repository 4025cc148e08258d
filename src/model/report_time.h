/* The parts of a report about time: hours of the week, the trend, and the time line. */
#pragma once

#include "base/period.h"
#include "model/state.h"
#include "model/table.h"

/* One hour of the week. */
struct report_hour {
	bool observed;
	double share[CARD_STATES]; /* of all its states together */
};

/* One day, week, month or year of the window, in the report's zone. */
struct report_period {
	int64_t from_ms, to_ms; /* within the window */
	int64_t window_ms;	/* of all cards */
	int64_t ms[CARD_STATES];
	double share[CARD_STATES]; /* of observed time, NAN without any; [CARD_UNOBSERVED]: of
				      the cards' time in the period, NAN without any */
	char name[24];		   /* "Mon 11-02", "2026-11-02" (a week's Monday), "2026-11" */
};

/* Every period of the window, oldest first: the smallest unit that makes at most TREND_MAX. */
enum { TREND_MAX = 60 };
struct report_trend {
	enum period_unit unit;
	struct report_period *periods;
	size_t n;
	struct table table; /* the same, for programs */
};

/* A part of the window. */
struct report_column {
	int64_t from_ms, to_ms; /* within the window */
	double from;		/* its position, from 0 (the window's start) to 1 */
	char name[24];		/* "Mon 11-02 06:00" */
};

/* A lane of the time line: a card, or a host that has events. */
struct report_lane {
	const char *heading; /* the audit's: the name of the host that begins here; or NULL */
	const char *uuid;    /* of the card, the audit's; NULL: it is all of a host */
	char label[40];	     /* "GPU 2", "all GPUs" */
	char name[192];	     /* the same, with the host if there are several: "GPU 2 of lab" */
	double (*share)[CARD_STATES]; /* of each column: shares of the card's time in it; their
					 sum may be less than 1. NULL: the lane is a host */
	double mean[CARD_STATES];     /* the same over the window, rounded for people */
	char text[512];		      /* a description for readers who cannot see the picture */
};

/* One or several events of a kind in a column. */
struct report_mark {
	size_t lane, column;
	double at; /* position of the last one */
	enum event_kind kind;
	char label[40], text[160]; /* "XID 79"; "XID 79, 3 times, the last Mon 11-02 03:10" */
};

/* A moment with a label below the time line. */
struct report_tick {
	double at;
	char label[16];
	bool between; /* left out if there is little room */
};
enum { REPORT_TICKS = 12 };

struct report_timeline {
	char width[24]; /* of a column: "2 h" */
	struct report_column *columns;
	size_t n; /* 0: there is no time line */
	struct report_lane *lanes;
	size_t n_lanes;
	struct report_mark *marks; /* lane by lane, in the order of time */
	size_t n_marks;
	struct report_tick ticks[REPORT_TICKS];
	size_t n_ticks;
	bool states[CARD_STATES];	/* those that occur */
	const char *words[CARD_STATES]; /* names of the states; constant */
	bool too_many;			/* there are too many cards for a time line */
	struct table table;		/* a row for each card and column, for programs */
};
