/* Reads values of gua.conf(5) that are of no option's kind. Each is a config_key's `parse`. */
#ifndef GUA_CONFIG_PARSE_H
#define GUA_CONFIG_PARSE_H

#include <stdint.h>

#include "config/settings.h"

/* A name of money, at most 8 characters: struct config's `currency`. */
int parse_currency(const struct config_value *v, struct err *e);
/* PATTERN = MONEY: adds to a struct config_prices. */
int parse_price(const struct config_value *v, struct err *e);
/* GROUP = USER USER ...: adds to a struct config_groups. */
int parse_group(const struct config_value *v, struct err *e);
/* "Mon-Fri 08:00-18:00, Sat 09:00-12:00": adds to a struct config_calendar. */
int parse_hours(const struct config_value *v, struct err *e);
/* "2026-12-25" as 20261225; -1: not a date. */
int32_t parse_date(const char *text);
/* "2026-12-25 2026-12-24..2027-01-01": adds to a struct config_calendar. */
int parse_holidays(const struct config_value *v, struct err *e);

/* PATTERN PATTERN ...: adds to a struct config_patterns. */
int parse_patterns(const struct config_value *v, struct err *e);
/* "interactive batch": bits of enum session_use. */
int parse_uses(const struct config_value *v, struct err *e);
/* A length of time within the key's limits, or "never": int64_t. */
int parse_stage(const struct config_value *v, struct err *e);
/* A date: int32_t as in struct config_days. */
int parse_last_day(const struct config_value *v, struct err *e);

#endif
