/* The table of gua.conf's sections and keys, how their values are read, and questions about
 * them. */
#include "config/config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/moment.h"
#include "base/pattern.h"
#include "base/words.h"
#include "model/policy.h"

/* Values that are of no option's kind: each function is a config_key's `parse`. */

enum { CURRENCY_MAX = 8 };

/* A name of money, at most 8 characters: struct config's `currency`. */
static int parse_currency(const struct config_value *v, struct err *e)
{
	if (str_columns(v->text) > CURRENCY_MAX || strpbrk(v->text, " \t"))
		return err_set(e, ERR_USAGE, "%s takes a short name as EUR, not '%s'", v->name,
			v->text);
	*(const char **)v->at = v->text;
	return 0;
}

/* PATTERN = MONEY: adds to a struct config_prices. */
static int parse_price(const struct config_value *v, struct err *e)
{
	static const struct option_row row = { OPTION_REAL, .name = "price", .max = 1e9 };
	struct config_prices *prices = v->at;
	struct config_price price = { v->name, 0 };
	int rc = options_set_one(
		&row, &(struct written){ v->name, v->text }, &price.per_hour, e);
	if (rc)
		return rc;
	return settings_append(v->arena, &prices->items, &prices->n, &price, sizeof(price))
		       ? 0
		       : err_memory(e);
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

/* The group of this name, made if it is not there; NULL: out of memory. */
static struct config_group *make_group(struct config_groups *all, const struct config_value *v)
{
	for (size_t i = 0; i < all->n; i++)
		if (strcmp(all->items[i].name, v->name) == 0)
			return &all->items[i];
	const struct config_group new = { .name = v->name };
	return settings_append(v->arena, &all->items, &all->n, &new, sizeof(new));
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
	const char *copy = arena_text(v->arena, user);
	if (!copy ||
		!settings_append(v->arena, &group->users, &group->n_users, &copy, sizeof(copy)))
		return err_memory(e);
	return 0;
}

/* GROUP = USER USER ...: adds to a struct config_groups. */
static int parse_group(const struct config_value *v, struct err *e)
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

/* "Mon-Fri 08:00-18:00, Sat 09:00-12:00": adds to a struct config_calendar. */
static int parse_hours(const struct config_value *v, struct err *e)
{
	struct config_calendar *calendar = v->at;
	struct config_hours hours;
	const char *at = v->text;
	while (*at) {
		bool valid = read_hours(&at, &hours);
		at += strspn(at, " \t");
		if (!valid || (*at && *at != ','))
			return err_set(e, ERR_USAGE,
				"%s takes days and times as Mon-Fri 08:00-18:00, with commas "
				"between several, not '%s'",
				v->name, v->text);
		at += strspn(at, ", \t");
		if (!settings_append(v->arena, &calendar->hours, &calendar->n_hours, &hours,
			    sizeof(hours)))
			return err_memory(e);
	}
	return 0;
}

/* "2026-12-25" as 20261225; -1: not a date. */
static int32_t parse_date(const char *text)
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

/* "2026-12-25 2026-12-24..2027-01-01": adds to a struct config_calendar. */
static int parse_holidays(const struct config_value *v, struct err *e)
{
	struct config_calendar *calendar = v->at;
	char **words = NULL;
	int rc = parse_list(v, &words, e);
	for (size_t i = 0; !rc && words[i]; i++) {
		struct config_days days;
		if (!read_range(words[i], &days))
			rc = err_set(e, ERR_USAGE,
				"%s takes dates as 2026-12-25 and 2026-12-24..2027-01-01, not "
				"'%s'",
				v->name, v->text);
		else if (!settings_append(v->arena, &calendar->holidays, &calendar->n_holidays,
				 &days, sizeof(days)))
			rc = err_memory(e);
	}
	free(words);
	return rc;
}

/* PATTERN PATTERN ...: adds to a struct config_patterns. */
static int parse_patterns(const struct config_value *v, struct err *e)
{
	struct config_patterns *all = v->at;
	char **words = NULL;
	int rc = parse_list(v, &words, e);
	for (size_t i = 0; !rc && words[i]; i++) {
		const char *copy = arena_text(v->arena, words[i]);
		if (!copy ||
			!settings_append(v->arena, &all->items, &all->n, &copy, sizeof(copy)))
			rc = err_memory(e);
	}
	free(words);
	return rc;
}

/* "interactive batch": bits of enum session_use. */
static int parse_uses(const struct config_value *v, struct err *e)
{
	char **words = NULL;
	int rc = parse_list(v, &words, e);
	for (size_t i = 0; !rc && words[i]; i++) {
		int use = 0;
		while (use < SESSION_USES && strcasecmp(words[i], session_use_names[use]) != 0)
			use++;
		if (use == SESSION_USES)
			rc = err_set(e, ERR_USAGE,
				"%s takes interactive, batch and service, not '%s'", v->name,
				words[i]);
		else
			*(unsigned *)v->at |= 1u << use;
	}
	free(words);
	return rc;
}

/* A length of time within the key's limits, or "never": int64_t. */
static int parse_stage(const struct config_value *v, struct err *e)
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

/* A date: int32_t as in struct config_days. */
static int parse_last_day(const struct config_value *v, struct err *e)
{
	int32_t day = parse_date(v->text);
	if (day < 0)
		return err_set(e, ERR_USAGE, "%s takes a date as 2026-12-31, not '%s'", v->name,
			v->text);
	*(int32_t *)v->at = day;
	return 0;
}

static const struct config_section sections[] = {
	{ .name = "record", .help = "How the recorder works." },
	{ .name = "thresholds",
		.help = "What counts as active and as held; stored with the data." },
	{ .name = "retention", .help = "How long the store keeps its fine sums." },
	{ .name = "money", .help = "The currency, and what energy costs." },
	{ .name = "price",
		.help = "What one GPU-hour costs, by the card's name; the first match "
			"counts." },
	{ .name = "groups", .help = "Groups of users, for sums over their members." },
	{ .name = "calendar", .help = "When people work." },
	{ .name = "policy", .help = "What gua enforce may do, and how much of it." },
	{ .name = "rule",
		.help = "One rule of policy: which sessions, and what happens when.",
		.block_size = sizeof(struct config_rule),
		.offset = offsetof(struct config, policy_rules) },
	{ .name = "exempt",
		.help = "Sessions that no rule may touch, until a date.",
		.block_size = sizeof(struct config_exemption),
		.offset = offsetof(struct config, exemptions) },
	{ .name = "notices", .help = "How gua enforce tells people." },
	{ .name = "end", .help = "How gua enforce ends a session." },
	{ .name = "fleet", .help = "The engine that has the metrics of all hosts." },
	{ .name = "metrics", .help = "What gua metrics and /metrics show." },
	{ .name = "serve", .help = "The web server: who may ask it, and where." },
	{ 0 },
};

#define RECORDER "daemon start"
#define FLEET "report fleet"
#define AT(member) .offset = offsetof(struct config, member)

static const struct config_key keys[] = {
	{ "record",
		{ OPTION_DURATION, 0, "interval", "D", "length of a tick", AT(interval_ms),
			.min = 100, .max = 86400e3 },
		"30s", .option = "interval", .commands = RECORDER },
	{ "record",
		{ OPTION_DURATION, 0, "drain", "D", "how often the driver's samples are read",
			AT(drain_ms), .min = 100, .max = 8000 },
		"5s", .option = "drain", .commands = RECORDER },
	{ "record",
		{ OPTION_DURATION, 0, "glance", "D",
			"how often used memory is read between drains", AT(glance_ms),
			.min = 100, .max = 8000 },
		"1s", .option = "glance", .commands = RECORDER },
	{ "record",
		{ OPTION_FLAG, 0, "count_graphics", "YES|NO",
			"graphics-only processes are holders too", AT(count_graphics) },
		"no", .option = "count-graphics", .commands = RECORDER },
	{ "record",
		{ OPTION_CHOICE, 0, "privacy", "HOW",
			"strict: keep no command lines, paths or other texts of processes",
			.choices = PRIVACY_WORDS, AT(privacy) },
		"normal", .option = "privacy", .commands = RECORDER },
	{ "record",
		{ OPTION_DURATION, 0, "driver_timeout", "D",
			"a driver that does not answer for this long hangs",
			AT(driver_timeout_ms), .min = 100, .max = 3600e3 },
		"10s", .option = "driver-timeout", .commands = RECORDER },
	{ "record",
		{ OPTION_DURATION, 0, "retry", "D",
			"longest wait before a lost card or driver is tried again",
			AT(retry_ms), .min = 100, .max = 86400e3 },
		"30s", .option = "retry", .commands = RECORDER },
	{ "thresholds",
		{ OPTION_REAL, 0, "active_util_pct", "PCT",
			"a sample of at least this utilisation is active", AT(active_util_pct),
			.min = 0.1, .max = 100 },
		"10", .option = "active-util", .commands = RECORDER },
	{ "thresholds",
		{ OPTION_SIZE, 0, "held_mem", "SIZE", "a card is held by more memory than this",
			AT(held_mem_bytes), .min = 0, .max = 1e12 },
		"100MB", .option = "held-mem", .commands = RECORDER },
	{ "thresholds",
		{ OPTION_DURATION, 0, "spell", "D",
			"a process that holds a card idle for this long has a spell",
			AT(spell_ms), .min = 1000, .max = 366 * 86400e3 },
		"5m", .option = "spell", .commands = RECORDER },
	{ "retention",
		{ OPTION_DURATION, 0, "keep_minutes", "D", "how long one-minute slots are kept",
			AT(keep_minutes_ms), .min = 3600e3 },
		"1d", .option = "keep-minutes", .commands = RECORDER },
	{ "retention",
		{ OPTION_DURATION, 0, "keep_five", "D", "how long five-minute slots are kept",
			AT(keep_five_ms), .min = 3600e3 },
		"14d", .option = "keep-five", .commands = RECORDER },
	{ "money", { OPTION_TEXT, 0, "currency", "CODE", "name of the currency", AT(currency) },
		"USD", .parse = parse_currency, .option = "currency", .commands = "report" },
	{ "money",
		{ OPTION_REAL, 0, "energy_price", "MONEY", "what one kWh costs",
			AT(energy_price), .max = 1e6 },
		.example = "energy_price = 0.30", .option = "energy-price",
		.commands = "report" },
	{ "money",
		{ OPTION_REAL, 0, "co2_g_per_kwh", "GRAMS", "CO2 of one kWh", AT(co2_g_per_kwh),
			.max = 1e5 },
		.example = "co2_g_per_kwh = 380", .option = "co2", .commands = "report" },
	{ "price",
		{ .arg = "PATTERN",
			.help = "a pattern of names (* and ? as in a shell) and a price",
			AT(prices) },
		.example = "\"NVIDIA A100*\" = 2.50", .parse = parse_price, .option = "cost",
		.commands = "report" },
	{ "groups",
		{ .arg = "GROUP",
			.help = "the members of a group; a user is in one group",
			AT(groups) },
		.example = "vision = alice bob", .parse = parse_group, .repeats = true },
	{ "calendar",
		{ .name = "working_hours",
			.arg = "HOURS",
			.help = "hours of the week in which people work",
			AT(calendar) },
		.example = "working_hours = Mon-Fri 08:00-18:00", .parse = parse_hours,
		.repeats = true },
	{ "calendar",
		{ .name = "holidays",
			.arg = "DATES",
			.help = "days without working hours",
			AT(calendar) },
		.example = "holidays = 2026-12-25 2026-12-28..2026-12-31",
		.parse = parse_holidays, .repeats = true },
	{ "calendar",
		{ .name = "quiet_hours",
			.arg = "HOURS",
			.help = "hours in which policy neither warns nor ends; nor on "
				"holidays",
			AT(quiet) },
		.example = "quiet_hours = Mon-Sun 22:00-24:00, Mon-Sun 00:00-07:00",
		.parse = parse_hours, .repeats = true },
#include "config/policy_keys.def"
	{ "notices",
		{ OPTION_TEXT, 0, "channels", "NAMES",
			"how people are told: terminal mail webhook command login",
			AT(notices.channels) },
		.initial = "terminal login" },
	{ "notices",
		{ OPTION_TEXT, 0, "templates", "DIR", "directory of the texts",
			AT(notices.templates) },
		.initial = "/etc/gua/notices" },
	{ "notices",
		{ OPTION_COUNT, 0, "per_day", "N",
			"notices that one user gets in 24 hours; the others wait for a digest",
			AT(notices.per_day), .min = 1, .max = 1000 },
		.initial = "4" },
	{ "notices",
		{ OPTION_DURATION, 0, "timeout", "D", "how long one delivery may take",
			AT(notices.timeout_ms), .min = 100, .max = 300e3 },
		.initial = "20s" },
	{ "notices",
		{ OPTION_TEXT, 0, "sendmail", "PATH", "the program that sends mail",
			AT(notices.sendmail) },
		.initial = "/usr/sbin/sendmail" },
	{ "notices",
		{ OPTION_TEXT, 0, "mail_domain", "DOMAIN", "domain of the users' addresses",
			AT(notices.mail_domain) },
		.example = "mail_domain = example.org" },
	{ "notices",
		{ OPTION_TEXT, 0, "mail_from", "ADDRESS", "sender of mails",
			AT(notices.mail_from) },
		.example = "mail_from = gua@example.org" },
	{ "notices",
		{ OPTION_TEXT, 0, "mail_reply_to", "ADDRESS", "where replies go",
			AT(notices.mail_reply_to) },
		.example = "mail_reply_to = help@example.org" },
	{ "notices",
		{ OPTION_TEXT, 0, "webhook_url", "URL", "where notices are posted",
			AT(notices.webhook_url) },
		.example = "webhook_url = https://chat.example.org/hooks/1" },
	{ "notices",
		{ OPTION_CHOICE, 0, "webhook_kind", "KIND", "what the webhook understands",
			.choices = "generic|slack|mattermost|teams", AT(notices.webhook_kind) },
		.initial = "generic" },
	{ "notices",
		{ OPTION_TEXT, 0, "webhook_secret", "FILE",
			"file with the key that signs what is posted",
			AT(notices.webhook_secret) },
		.example = "webhook_secret = /etc/gua/webhook.key" },
	{ "notices",
		{ OPTION_TEXT, 0, "command", "COMMAND",
			"gets a notice as JSON on standard input; not run by a shell",
			AT(notices.command) },
		.example = "command = /usr/local/bin/tell-user --gpu" },
	{ "notices",
		{ OPTION_TEXT, 0, "command_user", "USER",
			"user that the command runs as, if gua enforce is root's",
			AT(notices.command_user) },
		.initial = "nobody" },
	{ "notices",
		{ OPTION_TEXT, 0, "login_directory", "DIR",
			"directory of the notices that a login shows",
			AT(notices.login_directory) },
		.initial = "/run/gua/motd.d" },
	{ "end",
		{ OPTION_DURATION, 0, "confirm", "D",
			"a session must be idle in fresh samples over this long",
			AT(end.confirm_ms), .min = 100, .max = 3600e3 },
		.initial = "30s" },
	{ "end",
		{ OPTION_DURATION, 0, "sample", "D", "how often the driver is asked then",
			AT(end.sample_ms), .min = 100, .max = 8000 },
		.initial = "5s" },
	{ "end",
		{ OPTION_DURATION, 0, "grace", "D",
			"how long a session has to end after SIGTERM", AT(end.grace_ms),
			.min = 100, .max = 3600e3 },
		.initial = "2m" },
	{ "end",
		{ OPTION_REAL, 0, "cpu_pct", "PCT",
			"a session that uses more of one core is spared", AT(end.cpu_pct),
			.max = 1e6 },
		.initial = "5" },
	{ "end",
		{ OPTION_REAL, 0, "power_pct", "PCT",
			"a card with more power than this above its idle floor is spared",
			AT(end.power_pct), .max = 1e6 },
		.initial = "10" },
	{ "end",
		{ OPTION_TEXT, 0, "socket", "PATH",
			"socket of a gua-end that runs as a service", AT(end.socket) },
		.example = "socket = /run/gua-end/socket" },
	{ "end",
		{ OPTION_TEXT, 0, "slurm", "COMMAND", "ends a Slurm job; its id is added",
			AT(end.slurm) },
		.initial = "scancel" },
	{ "end",
		{ OPTION_TEXT, 0, "pbs", "COMMAND", "ends a PBS job; its id is added",
			AT(end.pbs) },
		.initial = "qdel" },
	{ "end",
		{ OPTION_TEXT, 0, "lsf", "COMMAND", "ends an LSF job; its id is added",
			AT(end.lsf) },
		.initial = "bkill" },
	{ "end",
		{ OPTION_TEXT, 0, "docker", "COMMAND", "ends a container; its id is added",
			AT(end.docker) },
		.initial = "docker stop" },
	{ "end",
		{ OPTION_TEXT, 0, "podman", "COMMAND", "ends a container; its id is added",
			AT(end.podman) },
		.initial = "podman stop" },
	{ "end",
		{ OPTION_DURATION, 0, "manager_timeout", "D",
			"how long such a command may take", AT(end.manager_timeout_ms),
			.min = 100, .max = 3600e3 },
		.initial = "1m" },
	{ "fleet", { OPTION_TEXT, 0, "url", "URL", "its address", AT(fleet.url) },
		.example = "url = http://prometheus:9090" },
	{ "fleet",
		{ OPTION_TEXT, 0, "match", "SELECTOR", "which series belong to the fleet",
			AT(fleet.match) },
		.example = "match = {job=\"gua\"}", .option = "match", .commands = FLEET },
	{ "fleet",
		{ OPTION_TEXT, 0, "host_label", "LABEL", "the label that tells hosts apart",
			AT(fleet.host_label) },
		"instance", .option = "host-label", .commands = FLEET },
	{ "fleet",
		{ OPTION_TEXT, 0, "expect", "N|FILE",
			"how many hosts there should be, or which", AT(fleet.expect) },
		.example = "expect = 120", .option = "expect", .commands = FLEET },
	{ "fleet",
		{ OPTION_TEXT, 0, "bearer_file", "FILE", "file with a bearer token",
			AT(fleet.bearer_file) },
		.example = "bearer_file = /etc/gua/token", .option = "bearer-file",
		.commands = FLEET },
	{ "fleet",
		{ OPTION_TEXT, 0, "basic_file", "FILE", "file with USER:PASSWORD",
			AT(fleet.basic_file) },
		.example = "basic_file = /etc/gua/password", .option = "basic-file",
		.commands = FLEET },
	{ "fleet",
		{ OPTION_TEXT, 0, "cert_file", "FILE", "the client's certificate (PEM)",
			AT(fleet.cert_file) },
		.example = "cert_file = /etc/gua/client.pem", .option = "cert",
		.commands = FLEET },
	{ "fleet",
		{ OPTION_TEXT, 0, "key_file", "FILE", "the client's key (PEM)",
			AT(fleet.key_file) },
		.example = "key_file = /etc/gua/client.key", .option = "key",
		.commands = FLEET },
	{ "fleet",
		{ OPTION_TEXT, 0, "ca_file", "FILE",
			"the authorities to trust instead of the system's (PEM)",
			AT(fleet.ca_file) },
		.example = "ca_file = /etc/gua/ca.pem", .option = "ca", .commands = FLEET },
	{ "fleet",
		{ OPTION_TEXT, 0, "header", "HEADER", "a header of every request",
			AT(fleet.header) },
		.example = "header = X-Scope-OrgID: lab" },
	{ "fleet",
		{ OPTION_TEXT, 0, "header_file", "FILE", "file with headers, one a line",
			AT(fleet.header_file) },
		.example = "header_file = /etc/gua/headers", .option = "header-file",
		.commands = FLEET },
	{ "fleet",
		{ OPTION_TEXT, 0, "param", "NAME=VALUE", "a parameter of every query",
			AT(fleet.param) },
		.example = "param = dedup=false" },
	{ "fleet",
		{ OPTION_DURATION, 0, "timeout", "D", "how long one query may take",
			AT(fleet.timeout_ms), .min = 100, .max = 3600e3 },
		"2m", .option = "timeout", .commands = FLEET },
	{ "fleet",
		{ OPTION_COUNT, 0, "retries", "N",
			"how often a query is repeated after a fault that may pass",
			AT(fleet.retries), .max = 10 },
		"3", .option = "retries", .commands = FLEET },
	{ "metrics",
		{ OPTION_CHOICE, 0, "identities", "HOW",
			"whose time it is: by user, by group of [groups], hashed with a key, "
			"or off",
			.choices = IDENTITY_WORDS, AT(metrics.identities) },
		"user", .option = "identities", .commands = "metrics" },
	{ "metrics",
		{ OPTION_COUNT, 0, "identity_max", "N",
			"users with a series of their own; later ones are in _other",
			AT(metrics.identity_max), .min = 1, .max = 100000 },
		"200", .option = NULL },
	{ "metrics",
		{ OPTION_TEXT, 0, "key_file", "FILE",
			"file with the key of hashed identities, the same on all hosts",
			AT(metrics.key_file) },
		.example = "key_file = /etc/gua/metrics.key" },
	{ "serve",
		{ OPTION_TEXT, 0, "listen", "ADDRESS",
			"where to listen: ADDRESS:PORT or unix:PATH", AT(serve.listen) },
		"127.0.0.1:9848", .option = "listen", .commands = "serve" },
	{ "serve",
		{ OPTION_TEXT, 0, "host_names", "NAMES",
			"names by which clients may call the server", AT(serve.host_names) },
		.example = "host_names = gpu.example.org", .option = "host-names",
		.commands = "serve" },
	{ "serve",
		{ OPTION_TEXT, 0, "auth_file", "FILE",
			"names and secrets of those who may ask, one NAME:SECRET a line",
			AT(serve.auth_file) },
		.example = "auth_file = /etc/gua/serve.auth", .option = "auth-file",
		.commands = "serve" },
	{ "serve",
		{ OPTION_TEXT, 0, "tls_cert", "FILE", "certificate for TLS, as PEM",
			AT(serve.tls_cert) },
		.example = "tls_cert = /etc/gua/serve.crt", .option = "tls-cert",
		.commands = "serve" },
	{ "serve", { OPTION_TEXT, 0, "tls_key", "FILE", "its key, as PEM", AT(serve.tls_key) },
		.example = "tls_key = /etc/gua/serve.key", .option = "tls-key",
		.commands = "serve" },
	{ "serve",
		{ OPTION_FLAG, 0, "insecure", "YES|NO", "answer other hosts without TLS",
			AT(serve.insecure) },
		"no", .option = "insecure", .commands = "serve" },
	{ "serve",
		{ OPTION_TEXT, 0, "trust_proxy", "ADDRESS",
			"believe the user header of this address, or of a unix socket: unix",
			AT(serve.trust_proxy) },
		.example = "trust_proxy = unix", .option = "trust-proxy", .commands = "serve" },
	{ "serve",
		{ OPTION_TEXT, 0, "proxy_user", "USER",
			"the user as whom a proxy on this host runs: a name or a number",
			AT(serve.proxy_user) },
		.example = "proxy_user = www-data", .option = "proxy-user",
		.commands = "serve" },
	{ "serve",
		{ OPTION_TEXT, 0, "user_header", "NAME",
			"the header in which the proxy says who asks", AT(serve.user_header) },
		"X-Forwarded-User", .option = "user-header", .commands = "serve" },
	{ "serve",
		{ OPTION_COUNT, 0, "max_connections", "N", "connections at a time",
			AT(serve.max_connections), .min = 4, .max = 10000 },
		"256", .option = "max-connections", .commands = "serve" },
	{ "serve",
		{ OPTION_COUNT, 0, "max_per_address", "N",
			"connections at a time of one client", AT(serve.max_per_address),
			.min = 1, .max = 10000 },
		"64", .option = "max-per-address", .commands = "serve" },
	{ "serve",
		{ OPTION_DURATION, 0, "request_timeout", "D",
			"a request must have come whole after this time", AT(serve.request_ms),
			.min = 100, .max = 3600e3 },
		.initial = "10s" },
	{ "serve",
		{ OPTION_DURATION, 0, "response_timeout", "D",
			"an answer must have gone whole after this time", AT(serve.response_ms),
			.min = 100, .max = 3600e3 },
		.initial = "1m" },
	{ "serve",
		{ OPTION_FLAG, 0, "access_log", "YES|NO", "log each request",
			AT(serve.access_log) },
		.initial = "yes" },
	{ 0 },
};

const struct config_schema config_schema = { sections, keys, sizeof(struct config) };

struct rules config_rules(const struct config *c)
{
	return (struct rules){ .active_util_pct = c->active_util_pct,
		.held_mem_bytes = c->held_mem_bytes,
		.count_graphics = c->count_graphics,
		.spell_ms = c->spell_ms };
}

enum privacy config_privacy(const struct config *c)
{
	bool strict = strcmp(c->privacy, privacy_names[PRIVACY_STRICT]) == 0;
	return strict ? PRIVACY_STRICT : PRIVACY_NORMAL;
}

double config_price_of(const struct config_prices *prices, const char *name, bool is_instance)
{
	for (size_t i = 0; i < prices->n; i++) {
		const struct config_price *price = &prices->items[i];
		if (is_instance && !strcasestr(price->pattern, "MIG"))
			continue;
		if (pattern_matches(price->pattern, name))
			return price->per_hour;
	}
	return NAN;
}

const char *config_groups_find(const struct config_groups *groups, const char *user)
{
	for (size_t i = 0; i < groups->n; i++)
		for (size_t k = 0; k < groups->items[i].n_users; k++)
			if (strcmp(groups->items[i].users[k], user) == 0)
				return groups->items[i].name;
	return NULL;
}

static bool is_holiday(const struct config_calendar *c, const struct tm *local)
{
	int32_t day =
		(local->tm_year + 1900) * 10000 + (local->tm_mon + 1) * 100 + local->tm_mday;
	for (size_t i = 0; i < c->n_holidays; i++)
		if (day >= c->holidays[i].first && day <= c->holidays[i].last)
			return true;
	return false;
}

bool config_is_working(const struct config_calendar *c, const struct tm *local)
{
	int minute = local->tm_hour * 60 + local->tm_min;
	for (size_t i = 0; i < c->n_hours && !is_holiday(c, local); i++) {
		const struct config_hours *h = &c->hours[i];
		if ((h->days >> local->tm_wday & 1) && minute >= h->from_min &&
			minute < h->until_min)
			return true;
	}
	return false;
}

bool config_is_quiet(const struct config *c, const struct tm *local)
{
	return is_holiday(&c->calendar, local) || config_is_working(&c->quiet, local);
}
