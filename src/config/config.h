/* gua's configuration as values: what gua.conf(5) describes. The table `config_schema` has one
 * row for each key; settings.h fills a struct config from files with it. */
#ifndef GUA_CONFIG_CONFIG_H
#define GUA_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "config/calendar.h"
#include "config/config_policy.h"
#include "config/engine.h"
#include "config/notices.h"
#include "config/schema.h"
#include "config/web.h"
#include "model/process.h"
#include "model/state.h"

/* What one GPU-hour of a card costs, by the pattern of its name (base/pattern.h). */
struct config_price {
	const char *pattern;
	double per_hour;
};
struct config_prices {
	struct config_price *items; /* the first that matches counts */
	size_t n;
};

/* People whose time is added up: no user is in two groups. */
struct config_group {
	const char *name;
	const char **users;
	size_t n_users;
};
struct config_groups {
	struct config_group *items;
	size_t n;
};

struct config {
	/* [record] */
	int64_t interval_ms, drain_ms, glance_ms, driver_timeout_ms, retry_ms;
	bool count_graphics;
	const char *privacy; /* a word of PRIVACY_WORDS */
	/* [thresholds] */
	double active_util_pct;
	int64_t held_mem_bytes, spell_ms;
	/* [retention] */
	int64_t keep_minutes_ms, keep_five_ms;
	/* [money]; NAN: not given */
	const char *currency;
	double energy_price, co2_g_per_kwh;
	/* [serve] */
	struct config_serve serve;
	/* [price], [groups], [calendar] */
	struct config_prices prices;
	struct config_groups groups;
	struct config_calendar calendar;
	struct config_calendar quiet; /* quiet_hours of [calendar]; has no holidays */
	/* [policy], [rule NAME], [exempt NAME]: see config_policy.h */
	struct config_policy policy;
	struct config_blocks policy_rules, exemptions;
	/* [notices], [end] */
	struct config_notices notices;
	struct config_end end;
	struct config_metrics metrics; /* [metrics] */
	struct config_fleet fleet;
};

/* Values belong to a struct config. */
extern const struct config_schema config_schema;

/* The thresholds, as the recorder and live views use them. */
struct rules config_rules(const struct config *c);
enum privacy config_privacy(const struct config *c);
/* The price of a card by its name; NAN: none. A MIG instance has one only if the pattern names
 * MIG, because it is a part of a card. */
double config_price_of(const struct config_prices *prices, const char *name, bool is_instance);
/* The name of a user's group; NULL: none. */
const char *config_groups_find(const struct config_groups *groups, const char *user);
/* Whether a moment of local time is within the working hours, which no holiday has. */
bool config_is_working(const struct config_calendar *c, const struct tm *local);
/* Whether it is within the quiet hours or on a holiday. */
bool config_is_quiet(const struct config *c, const struct tm *local);

#endif
