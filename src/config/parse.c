/* Reads lists of users, hours of the week and days of the calendar. */
#include "config/parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/moment.h"
#include "base/words.h"
#include "config/config.h"
#include "model/policy.h"

enum { CURRENCY_MAX = 8 };

int parse_currency(const struct config_value *v, struct err *e)
{
	if (str_columns(v->text) > CURRENCY_MAX || strpbrk(v->text, " \t"))
		return err_set(e, ERR_USAGE, "%s takes a short name as EUR, not '%s'", v->name,
			v->text);
	*(const char **)v->at = v->text;
	return 0;
}

int parse_price(const struct config_value *v, struct err *e)
{
	static const struct option_row row = { OPTION_REAL, .name = "price", .max = 1e9 };
	struct config_prices *prices = v->at;
	void *items = prices->items;
	double per_hour = 0;
	int rc = options_set_one(&row, &(struct written){ v->name, v->text }, &per_hour, e);
	if (rc)
		return rc;
	struct config_price *price =
		settings_one_more(v->arena, &items, prices->n, sizeof(*price));
	if (!price)
		return err_memory(e);
	*price = (struct config_price){ v->name, per_hour };
	prices->items = items;
	prices->n++;
	return 0;
}

/* Splits a list at blanks and commas; the caller frees *words. */
static int parse_list(const struct config_value *v, char ***words, struct err *e)
{
	char *copy = strdup(v->text);
	size_t n = 0;
	if (!copy)
		return err_memory(e);
	for (char *at = copy; *at; at++)
		*at = *at == ',' ? ' ' : *at;
	int rc = words_split(copy, words, &n, e);
	free(copy);
	if (rc)
		return err_prefix(e, "%s", v->name);
	if (n)
		return 0;
	free(*words);
	*words = NULL;
	return err_set(e, ERR_USAGE, "%s needs at least one word after the =", v->name);
}

static struct config_group *find_group(struct config_groups *all, const char *name)
{
	for (size_t i = 0; i < all->n; i++)
		if (strcmp(all->items[i].name, name) == 0)
			return &all->items[i];
	return NULL;
}

static struct config_group *make_group(struct config_groups *all, const struct config_value *v)
{
	struct config_group *group = find_group(all, v->name);
	void *items = all->items;
	if (group)
		return group;
	group = settings_one_more(v->arena, &items, all->n, sizeof(*group));
	if (!group)
		return NULL;
	all->items = items;
	all->n++;
	group->name = v->name;
	return group;
}

/* Adds a user; each may be in one group only, so that sums over groups are sums over users. */
static int add_user(const struct config_value *v, struct config_group *group, const char *user,
	struct err *e)
{
	const char *other = config_groups_find(v->at, user);
	if (other && strcmp(other, group->name) != 0)
		return err_set(e, ERR_USAGE,
			"%s: the user %s is in the group %s already; a user has one group",
			v->name, user, other);
	if (other)
		return 0;
	void *users = group->users;
	const char **at = settings_one_more(v->arena, &users, group->n_users, sizeof(*at));
	*(at ? at : &user) = arena_text(v->arena, user);
	if (v->arena->failed)
		return err_memory(e);
	group->users = users;
	group->n_users++;
	return 0;
}

int parse_group(const struct config_value *v, struct err *e)
{
	char **words = NULL;
	int rc = parse_list(v, &words, e);
	if (rc)
		return rc;
	struct config_group *group = make_group(v->at, v);
	if (!group)
		rc = err_memory(e);
	for (size_t i = 0; !rc && words[i]; i++)
		rc = add_user(v, group, words[i], e);
	free(words);
	return rc;
}

/* "mon", "Tuesday": 0 for Sunday; -1: not a day. */
static int read_day(const char **at)
{
	static const char *const names[] = { "sunday", "monday", "tuesday", "wednesday",
		"thursday", "friday", "saturday" };
	size_t len = strspn(*at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
	for (int day = 0; day < 7; day++) {
		bool whole = len == strlen(names[day]);
		if ((len == 3 || whole) && strncasecmp(*at, names[day], len) == 0) {
			*at += len;
			return day;
		}
	}
	return -1;
}

/* "Mon" or "Mon-Fri", as bits. False: neither. */
static bool read_days(const char **at, unsigned *days)
{
	int first = read_day(at), last = first;
	if (first >= 0 && **at == '-') {
		++*at;
		last = read_day(at);
	}
	if (first < 0 || last < 0)
		return false;
	for (int day = first;; day = (day + 1) % 7) {
		*days |= 1u << day;
		if (day == last)
			return true;
	}
}

/* A number of at most two digits; -1: none. */
static int read_digits(const char **at)
{
	size_t len = strspn(*at, "0123456789");
	int number = len == 1 || len == 2 ? atoi(*at) : -1;
	*at += len;
	return number;
}

/* "08:00", "24:00": minutes of the day; -1: neither. */
static int read_minute(const char **at)
{
	int hour = read_digits(at);
	if (hour < 0 || **at != ':')
		return -1;
	++*at;
	int minute = read_digits(at);
	bool valid = minute >= 0 && minute < 60 && hour * 60 + minute <= 24 * 60;
	return valid ? hour * 60 + minute : -1;
}

static bool read_hours(const char **at, struct config_hours *h)
{
	*h = (struct config_hours){ 0 };
	if (!read_days(at, &h->days) || strspn(*at, " \t") == 0)
		return false;
	*at += strspn(*at, " \t");
	h->from_min = read_minute(at);
	if (h->from_min < 0 || **at != '-')
		return false;
	++*at;
	h->until_min = read_minute(at);
	return h->until_min > h->from_min;
}

int parse_hours(const struct config_value *v, struct err *e)
{
	struct config_calendar *calendar = v->at;
	struct config_hours hours;
	const char *at = v->text;
	while (*at) {
		void *items = calendar->hours;
		bool valid = read_hours(&at, &hours);
		at += strspn(at, " \t");
		if (!valid || (*at && *at != ','))
			return err_set(e, ERR_USAGE,
				"%s takes days and times as Mon-Fri 08:00-18:00, with commas "
				"between several, not '%s'",
				v->name, v->text);
		at += strspn(at, ", \t");
		struct config_hours *new =
			settings_one_more(v->arena, &items, calendar->n_hours, sizeof(*new));
		if (!new)
			return err_memory(e);
		*new = hours;
		calendar->hours = items;
		calendar->n_hours++;
	}
	return 0;
}

int32_t parse_date(const char *text)
{
	int64_t ms = 0;
	if (strlen(text) != 10 || moment_parse(text, 0, true, &ms, NULL) != 0)
		return -1;
	struct tm tm = moment_fields(ms, true);
	return (tm.tm_year + 1900) * 10000 + (tm.tm_mon + 1) * 100 + tm.tm_mday;
}

/* A date, or FIRST..LAST. */
static bool read_range(char *word, struct config_days *days)
{
	char *dots = strstr(word, "..");
	if (dots)
		*dots = '\0';
	days->first = parse_date(word);
	days->last = dots ? parse_date(dots + 2) : days->first;
	return days->first > 0 && days->last >= days->first;
}

int parse_holidays(const struct config_value *v, struct err *e)
{
	struct config_calendar *calendar = v->at;
	char **words = NULL;
	int rc = parse_list(v, &words, e);
	for (size_t i = 0; !rc && words[i]; i++) {
		struct config_days days;
		void *items = calendar->holidays;
		if (!read_range(words[i], &days)) {
			rc = err_set(e, ERR_USAGE,
				"%s takes dates as 2026-12-25 and 2026-12-24..2027-01-01, not "
				"'%s'",
				v->name, v->text);
			break;
		}
		struct config_days *new =
			settings_one_more(v->arena, &items, calendar->n_holidays, sizeof(*new));
		if (!new) {
			rc = err_memory(e);
			break;
		}
		*new = days;
		calendar->holidays = items;
		calendar->n_holidays++;
	}
	free(words);
	return rc;
}

int parse_patterns(const struct config_value *v, struct err *e)
{
	struct config_patterns *all = v->at;
	char **words = NULL;
	int rc = parse_list(v, &words, e);
	for (size_t i = 0; !rc && words[i]; i++) {
		void *items = all->items;
		const char **at = settings_one_more(v->arena, &items, all->n, sizeof(*at));
		if (!at || !(*at = arena_text(v->arena, words[i]))) {
			rc = err_memory(e);
			break;
		}
		all->items = items;
		all->n++;
	}
	free(words);
	return rc;
}

static int find_use(const char *word)
{
	for (int i = 0; i < SESSION_USES; i++)
		if (strcasecmp(word, session_use_names[i]) == 0)
			return i;
	return -1;
}

int parse_uses(const struct config_value *v, struct err *e)
{
	char **words = NULL;
	int rc = parse_list(v, &words, e);
	for (size_t i = 0; !rc && words[i]; i++) {
		int use = find_use(words[i]);
		if (use < 0)
			rc = err_set(e, ERR_USAGE,
				"%s takes interactive, batch and service, not '%s'", v->name,
				words[i]);
		else
			*(unsigned *)v->at |= 1u << use;
	}
	free(words);
	return rc;
}

int parse_stage(const struct config_value *v, struct err *e)
{
	int64_t ms = 0;
	if (strcasecmp(v->text, "never") == 0) {
		*(int64_t *)v->at = AT_NEVER;
		return 0;
	}
	if (duration_parse(v->text, &ms, NULL) != 0 || ms < (int64_t)v->key->value.min ||
		ms > (int64_t)v->key->value.max)
		return err_set(e, ERR_USAGE,
			"%s takes a length of time between 5m and 52w, or never, not '%s'",
			v->name, v->text);
	*(int64_t *)v->at = ms;
	return 0;
}

int parse_last_day(const struct config_value *v, struct err *e)
{
	int32_t day = parse_date(v->text);
	if (day < 0)
		return err_set(e, ERR_USAGE, "%s takes a date as 2026-12-31, not '%s'", v->name,
			v->text);
	*(int32_t *)v->at = day;
	return 0;
}
