/* Hours of the week and days of the calendar, as gua.conf(5) has them. */
#ifndef GUA_CONFIG_CALENDAR_H
#define GUA_CONFIG_CALENDAR_H

#include <stddef.h>
#include <stdint.h>

/* A part of the week: on these days, from one minute of the day until before another. */
struct config_hours {
	unsigned days; /* bit 0: Sunday, as in tm_wday */
	int from_min, until_min;
};

/* Days of the calendar, the first and the last, as year * 10000 + month * 100 + day. */
struct config_days {
	int32_t first, last;
};

struct config_calendar {
	struct config_hours *hours; /* none: no hours are set apart */
	size_t n_hours;
	struct config_days *holidays;
	size_t n_holidays;
};

#endif
