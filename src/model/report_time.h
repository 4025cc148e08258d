/* Parts of a report about when: hours of the week, and the trend. */
#ifndef GUA_MODEL_REPORT_TIME_H
#define GUA_MODEL_REPORT_TIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/period.h"
#include "model/state.h"
#include "model/table.h"

/* One hour of the week. */
struct report_hour {
	bool observed;
	int64_t ms[CARD_UNOBSERVED];   /* active, idle-held, truly-idle */
	double share[CARD_UNOBSERVED]; /* of the three together */
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

#endif
