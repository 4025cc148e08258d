/* The table of gua.conf's sections and keys, how values are read, and questions about them. */
#include "config/config.h"

#include "base/pattern.h"
#include "model/policy.h"

/* Values that are of no option's kind: each function is a config_key's `parse` or `each`. */

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

/* GROUP = USER USER ...: adds to a struct config_groups. A user may be in one group only, so
 * that sums over groups are sums over users. */
static int add_user(const struct config_value *v, char *user, struct err *e)
{
	struct config_groups *all = v->at;
	struct config_group *group = NULL;
	const struct config_group new = { .name = v->name };
	for (size_t i = 0; i < all->n && !group; i++)
		if (strcmp(all->items[i].name, v->name) == 0)
			group = &all->items[i];
	if (!group)
		group = settings_append(v->arena, &all->items, &all->n, &new, sizeof(new));
	if (!group)
		return err_memory(e);
	const char *other = config_groups_find(all, user);
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

/* "2026-12-25 2026-12-24..2027-01-01": adds to a struct config_calendar. */
static int add_days(const struct config_value *v, char *word, struct err *e)
{
	struct config_calendar *calendar = v->at;
	struct config_days days;
	char *dots = strstr(word, "..");
	if (dots)
		*dots = '\0';
	days.first = parse_date(word);
	days.last = dots ? parse_date(dots + 2) : days.first;
	if (days.first <= 0 || days.last < days.first)
		return err_set(e, ERR_USAGE,
			"%s takes dates as 2026-12-25 and 2026-12-24..2027-01-01, not '%s'",
			v->name, v->text);
	return settings_append(v->arena, &calendar->holidays, &calendar->n_holidays, &days,
		       sizeof(days))
		       ? 0
		       : err_memory(e);
}

/* PATTERN PATTERN ...: adds to a struct config_patterns. */
static int add_pattern(const struct config_value *v, char *word, struct err *e)
{
	struct config_patterns *all = v->at;
	const char *copy = arena_text(v->arena, word);
	bool added =
		copy && settings_append(v->arena, &all->items, &all->n, &copy, sizeof(copy));
	return added ? 0 : err_memory(e);
}

/* "interactive batch": bits of enum session_use. */
static int add_use(const struct config_value *v, char *word, struct err *e)
{
	for (int use = 0; use < SESSION_USES; use++)
		if (strcasecmp(word, session_use_names[use]) == 0) {
			*(unsigned *)v->at |= 1u << use;
			return 0;
		}
	return err_set(e, ERR_USAGE, "%s takes interactive, batch and service, not '%s'",
		v->name, word);
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
	{ .name = "leases", .help = "What schedulers have given to whom." },
	{ .name = "kubernetes", .help = "Pods of a cluster." },
	{ .name = "fleet", .help = "The engine that has the metrics of all hosts." },
	{ .name = "metrics", .help = "What gua metrics and /metrics show." },
	{ .name = "serve", .help = "The web server: who may ask it, and where." },
	{ 0 },
};

#define AT(member) .offset = offsetof(struct config, member)
/* A key and the place of its value; what else it has follows. With `parse` or `each` the kind
 * does not count. */
#define KEY_AT(in, kind_, name_, arg_, help_, at, ...)                                         \
	{                                                                                      \
		.section = (in), .value = { OPTION_##kind_, 0, name_, arg_, help_, at },       \
		__VA_ARGS__                                                                    \
	}
/* The same if section and key are the names of the members, but for the unit. */
#define KEY(in, kind_, name_, arg_, help_, ...)                                                \
	KEY_AT(#in, kind_, #name_, arg_, help_, AT_##kind_(in.name_), __VA_ARGS__)
#define AT_TEXT(member) AT(member)
#define AT_CHOICE(member) AT(member)
#define AT_FLAG(member) AT(member)
#define AT_COUNT(member) AT(member)
#define AT_REAL(member) AT(member)
#define AT_DURATION(member) AT(member##_ms)
#define RULE(kind_, name_, arg_, help_, member, ...)                                           \
	KEY_AT("rule", kind_, name_, arg_, help_, IN_RULE(member), __VA_ARGS__)
#define EXEMPTION(name_, arg_, help_, member, ...)                                             \
	KEY_AT("exempt", TEXT, name_, arg_, help_, IN_EXEMPTION(member), __VA_ARGS__)
#define LIMITS(least, most) .value.min = (least), .value.max = (most)

#define IN_RULE(member) .offset = offsetof(struct config_rule, member)
#define IN_EXEMPTION(member) .offset = offsetof(struct config_exemption, member)
#define WEEKS_MS (7 * 86400e3)

/* The keys that say which sessions a rule or an exemption is about. */
#define PATTERN_KEY(in, at, word, what, like)                                                  \
	KEY_AT(in, TEXT, word, "PATTERNS", what, at, .example = like, .each = add_pattern,     \
		.repeats = true)
#define MATCH_KEYS(in, at)                                                                     \
	PATTERN_KEY(in, at(match.users), "user", "users", "alice bob"),                        \
		PATTERN_KEY(in, at(match.groups), "group", "groups of [groups]", "vision"),    \
		PATTERN_KEY(in, at(match.cards), "card",                                       \
			"one of its cards: index, UUID or PCI address", "0 1"),                \
		PATTERN_KEY(in, at(match.models), "model", "names of one of its cards",        \
			"\"NVIDIA A100*\""),                                                   \
		PATTERN_KEY(in, at(match.notebooks), "notebook",                               \
			"ids or paths of Jupyter kernels", "*.ipynb"),                         \
		PATTERN_KEY(in, at(match.containers), "container", "containers", "docker:*"),  \
		PATTERN_KEY(in, at(match.jobs), "job", "jobs of a batch system", "slurm:*"),   \
		PATTERN_KEY(in, at(match.units), "unit", "systemd units", "ollama.service"),   \
		PATTERN_KEY(in, at(match.namespaces), "namespace",                             \
			"namespaces of Kubernetes' pods", "\"team-*\""),                       \
		KEY_AT(in, TEXT, "kind", "KINDS", "interactive, batch or service",             \
			at(match.kinds), .example = "interactive", .each = add_use,            \
			.repeats = true),                                                      \
		KEY_AT(in, CHOICE, "working_hours", "YES|NO",                                  \
			"only within working hours, or only outside of them",                  \
			at(match.working_hours), .value.choices = "yes|no", .example = "yes")

static const struct config_key keys[] = {
	KEY_AT("record", DURATION, "interval", "D",
		"time between two ticks; each writes to the store", AT(interval_ms),
		.initial = "30s", LIMITS(100, 86400e3)),
	KEY_AT("record", DURATION, "drain", "D",
		"time between two readings of the driver's samples, at most 8s", AT(drain_ms),
		.initial = "5s", LIMITS(100, 8000)),
	KEY_AT("record", DURATION, "glance", "D",
		"time between two readings of used memory, which show that processes come or "
		"go, at most 8s",
		AT(glance_ms), .initial = "1s", LIMITS(100, 8000)),
	KEY_AT("record", FLAG, "count_graphics", "YES|NO",
		"graphics-only processes are holders too", AT(count_graphics), .initial = "no"),
	KEY_AT("record", CHOICE, "privacy", "HOW",
		"strict: keep no command lines, paths or other texts of processes", AT(privacy),
		.initial = "normal", .value.choices = PRIVACY_WORDS),
	KEY_AT("record", DURATION, "driver_timeout", "D",
		"how long to wait for an answer of the driver", AT(driver_timeout_ms),
		.initial = "10s", LIMITS(100, 3600e3)),
	KEY_AT("record", DURATION, "retry", "D",
		"longest wait before a lost card or driver is tried again", AT(retry_ms),
		.initial = "30s", LIMITS(100, 86400e3)),
	KEY_AT("thresholds", REAL, "active_util_pct", "PCT",
		"a sample of at least this utilisation is active", AT(active_util_pct),
		.initial = "10", LIMITS(0.1, 100)),
	KEY_AT("thresholds", SIZE, "held_mem", "SIZE",
		"a card is held by more memory than this", AT(held_mem_bytes),
		.initial = "100MB", LIMITS(0, 1e12)),
	KEY_AT("thresholds", DURATION, "spell", "D",
		"a process that holds a card idle for this long has a spell", AT(spell_ms),
		.initial = "5m", LIMITS(1000, 366 * 86400e3)),
	KEY_AT("retention", DURATION, "keep_minutes", "D", "keep one-minute slots this long",
		AT(keep_minutes_ms), .initial = "1d", LIMITS(3600e3, 0)),
	KEY_AT("retention", DURATION, "keep_five", "D", "keep five-minute slots this long",
		AT(keep_five_ms), .initial = "14d", LIMITS(3600e3, 0)),
	KEY_AT("money", TEXT, "currency", "CODE", "currency of prices", AT(currency),
		.initial = "USD", .parse = parse_currency),
	KEY_AT("money", REAL, "energy_price", "MONEY", "what one kWh costs", AT(energy_price),
		LIMITS(0, 1e6), .example = "0.30"),
	KEY_AT("money", REAL, "co2_g_per_kwh", "GRAMS", "CO2 of one kWh", AT(co2_g_per_kwh),
		LIMITS(0, 1e5), .example = "380"),
	KEY_AT("price", TEXT, NULL, "PATTERN",
		"a pattern of names (* and ? as in a shell) and a price", AT(prices),
		.example = "\"NVIDIA A100*\" = 2.50", .parse = parse_price),
	KEY_AT("groups", TEXT, NULL, "GROUP", "the members of a group; a user is in one group",
		AT(groups), .example = "vision = alice bob", .each = add_user, .repeats = true),
	KEY_AT("calendar", TEXT, "working_hours", "HOURS",
		"hours of the week in which people work", AT(calendar),
		.example = "Mon-Fri 08:00-18:00", .parse = parse_hours, .repeats = true),
	KEY_AT("calendar", TEXT, "holidays", "DATES", "days without working hours",
		AT(calendar), .example = "2026-12-25 2026-12-28..2026-12-31", .each = add_days,
		.repeats = true),
	KEY_AT("calendar", TEXT, "quiet_hours", "HOURS",
		"hours in which policy neither warns nor ends; nor on holidays", AT(quiet),
		.example = "Mon-Sun 22:00-24:00, Mon-Sun 00:00-07:00", .parse = parse_hours,
		.repeats = true),
	KEY(policy, CHOICE, mode, "MODE",
		"observe: write down what would happen, and do nothing",
		.value.choices = "observe|enforce", .initial = "observe"),
	KEY_AT("policy", DURATION, "every", "D", "time between two passes",
		AT(policy.interval_ms), LIMITS(1000, 600e3), .initial = "60s"),
	KEY(policy, COUNT, ends_per_hour, "N", "sessions ended in an hour, at most",
		LIMITS(0, 1000), .initial = "2"),
	KEY_AT("policy", COUNT, "ends_per_user", "N",
		"sessions of one user ended in a day, at most", AT(policy.ends_per_user_day),
		LIMITS(0, 1000), .initial = "3"),
	KEY(policy, REAL, breaker_pct, "PCT",
		"part of the sessions that a pass ends, at most; one may always be ended",
		LIMITS(0, 100), .initial = "30"),
	KEY(policy, DURATION, keep_longest, "D",
		"longest time for which a user may keep a session", LIMITS(0, 4 * WEEKS_MS),
		.initial = "8h"),
	KEY(policy, DURATION, keep_per_week, "D",
		"time for which a user may keep sessions in seven days",
		LIMITS(0, 4 * WEEKS_MS), .initial = "40h"),
	KEY(policy, TEXT, socket, "PATH",
		"where users ask gua enforce; without it: /run/gua-enforce/socket, or "
		"enforce.sock beside a store of one's own",
		.example = "/run/gua-enforce/socket"),
	MATCH_KEYS("rule", IN_RULE),
	RULE(SIZE, "min_memory", "SIZE", "memory that it holds on all cards together, at least",
		match.min_memory_bytes, LIMITS(0, 1e15), .initial = "1GiB"),
	RULE(COUNT, "idle_below", "PCT",
		"it is idle while it uses less than this of a card's multiprocessors",
		idle_below, LIMITS(1, 10), .initial = "5"),
	RULE(DURATION, "reserved_for", "D",
		"for leases instead of sessions: first warning after this time in "
		"which the job touched none of its cards",
		reserved_for_ms, LIMITS(1e3, 52 * WEEKS_MS), .example = "2h"),
	RULE(DURATION, "warn", "D", "first warning after this idle time", warn_ms,
		LIMITS(1e3, 52 * WEEKS_MS), .initial = "60m"),
	RULE(DURATION, "warn_again", "D|never", "second warning after this idle time", again_ms,
		LIMITS(1e3, 52 * WEEKS_MS), .initial = "105m", .parse = parse_stage),
	RULE(DURATION, "final_notice", "D", "final notice this long before the end", final_ms,
		LIMITS(1e3, WEEKS_MS), .initial = "10m"),
	RULE(DURATION, "end", "D|never",
		"end after this idle time; without it: batch 2h, interactive 8h, service never",
		end_ms, LIMITS(1e3, 52 * WEEKS_MS), .example = "4h", .parse = parse_stage),
	RULE(CHOICE, "level", "LEVEL", "what it may do", level,
		.value.choices = POLICY_LEVEL_WORDS, .initial = "observe"),
	RULE(FLAG, "kill_after_term", "YES|NO",
		"SIGKILL for what is left after the grace period", kill_after_term,
		.initial = "no"),
	MATCH_KEYS("exempt", IN_EXEMPTION),
	EXEMPTION("owner", "NAME", "who asked for it", owner, .example = "carol"),
	EXEMPTION("until", "DATE", "the last day on which it counts", until,
		.example = "2026-12-31", .parse = parse_last_day),
	EXEMPTION("reason", "TEXT", "why", reason, .example = "\"paper deadline\""),
	KEY(notices, TEXT, channels, "NAMES",
		"how people are told: terminal mail webhook command login",
		.initial = "terminal login"),
	KEY(notices, TEXT, templates, "DIR", "directory of the texts",
		.initial = "/etc/gua/notices"),
	KEY(notices, COUNT, per_day, "N",
		"notices that one user gets in 24 hours; the others wait for a digest",
		LIMITS(1, 1000), .initial = "4"),
	KEY(notices, DURATION, timeout, "D", "how long one delivery may take",
		LIMITS(100, 300e3), .initial = "20s"),
	KEY(notices, TEXT, sendmail, "PATH", "the program that sends mail",
		.initial = "/usr/sbin/sendmail"),
	KEY(notices, TEXT, mail_domain, "DOMAIN", "domain of the users' addresses",
		.example = "example.org"),
	KEY(notices, TEXT, mail_from, "ADDRESS", "sender of mails",
		.example = "gua@example.org"),
	KEY(notices, TEXT, mail_reply_to, "ADDRESS", "where replies go",
		.example = "help@example.org"),
	KEY(notices, TEXT, webhook_url, "URL", "where notices are posted",
		.example = "https://chat.example.org/hooks/1"),
	KEY(notices, CHOICE, webhook_kind, "KIND", "what the webhook understands",
		.value.choices = "generic|slack|mattermost|teams", .initial = "generic"),
	KEY(notices, TEXT, webhook_secret, "FILE",
		"file with the key that signs what is posted",
		.example = "/etc/gua/webhook.key"),
	KEY(notices, TEXT, command, "COMMAND",
		"gets a notice as JSON on standard input; not run by a shell",
		.example = "/usr/local/bin/tell-user --gpu"),
	KEY(notices, TEXT, command_user, "USER",
		"user that the command runs as, if gua enforce is root's", .initial = "nobody"),
	KEY(notices, TEXT, login_directory, "DIR",
		"directory of the notices that a login shows", .initial = "/run/gua/motd.d"),
	KEY(end, DURATION, confirm, "D",
		"a session must be idle in fresh samples over this long", LIMITS(100, 3600e3),
		.initial = "30s"),
	KEY(end, DURATION, sample, "D", "how often the driver is asked then", LIMITS(100, 8000),
		.initial = "5s"),
	KEY(end, DURATION, grace, "D", "how long a session has to end after SIGTERM",
		LIMITS(100, 3600e3), .initial = "2m"),
	KEY(end, REAL, cpu_pct, "PCT", "a session that uses more of one core is spared",
		LIMITS(0, 1e6), .initial = "5"),
	KEY(end, REAL, power_pct, "PCT",
		"a card with more power than this above its idle floor is spared",
		LIMITS(0, 1e6), .initial = "10"),
	KEY(end, TEXT, socket, "PATH", "socket of a gua-end that runs as a service",
		.example = "/run/gua-end/socket"),
	KEY(end, TEXT, slurm, "COMMAND", "ends a Slurm job; its id is added",
		.initial = "scancel"),
	KEY(end, TEXT, slurm_notify, "COMMAND",
		"tells the user in the job's output before it is ended; its id and a text are "
		"added",
		.example = "scontrol notify"),
	KEY(end, TEXT, pbs, "COMMAND", "ends a PBS job; its id is added", .initial = "qdel"),
	KEY(end, TEXT, lsf, "COMMAND", "ends an LSF job; its id is added", .initial = "bkill"),
	KEY(end, TEXT, docker, "COMMAND", "ends a container; its id is added",
		.initial = "docker stop"),
	KEY(end, TEXT, podman, "COMMAND", "ends a container; its id is added",
		.initial = "podman stop"),
	KEY(end, TEXT, kubernetes, "COMMAND",
		"ends a pod, or scales what made it down; its namespace, its name, its "
		"workload and the reason are added",
		.example = "/usr/local/sbin/scale-to-zero"),
	KEY(end, DURATION, manager_timeout, "D", "how long such a command may take",
		LIMITS(100, 3600e3), .initial = "1m"),
	KEY(leases, CHOICE, numbering, "HOW",
		"what a number of a card means: auto counts only where nvml and minor agree",
		.initial = "auto", .value.choices = "auto|nvml|minor"),
	KEY(leases, FLAG, private, "YES|NO", "only the group gua may read leases",
		.initial = "no"),
	KEY(leases, DURATION, every, "D", "how often gua lease watch asks",
		LIMITS(1000, 3600e3), .initial = "30s"),
	KEY(leases, DURATION, timeout, "D", "how long an answer may take", LIMITS(100, 600e3),
		.initial = "10s"),
	KEY(leases, TEXT, slurm, "COMMAND", "the command that shows Slurm's jobs",
		.initial = "scontrol"),
	KEY(leases, TEXT, node, "NAME", "Slurm's name of this host, if it differs",
		.example = "gpu01"),
	KEY(leases, TEXT, kubelet, "SOCKET", "the kubelet's socket of pod resources",
		.initial = "/var/lib/kubelet/pod-resources/kubelet.sock"),
	KEY_AT("kubernetes", CHOICE, "user", "WHAT",
		"whose time that of a pod is: its namespace's, or that of the process's user",
		AT(pod_user), .initial = "namespace", .value.choices = "namespace|uid"),
	KEY(fleet, TEXT, url, "URL", "its address", .example = "http://prometheus:9090"),
	KEY(fleet, TEXT, match, "SELECTOR",
		"only series that match, of a fleet: '{job=\"gua\"}'",
		.example = "{job=\"gua\"}"),
	KEY(fleet, TEXT, host_label, "LABEL", "label that tells the hosts of a fleet apart",
		.initial = "instance"),
	KEY(fleet, TEXT, expect, "N|FILE",
		"how many hosts a fleet should have, or a file with their names",
		.example = "120"),
	KEY(fleet, TEXT, bearer_file, "FILE", "file with a bearer token for the engine",
		.example = "/etc/gua/token"),
	KEY(fleet, TEXT, basic_file, "FILE", "file with USER:PASSWORD for the engine",
		.example = "/etc/gua/password"),
	KEY(fleet, TEXT, cert_file, "FILE", "the client's certificate (PEM)",
		.example = "/etc/gua/client.pem"),
	KEY(fleet, TEXT, key_file, "FILE", "the client's key (PEM)",
		.example = "/etc/gua/client.key"),
	KEY(fleet, TEXT, ca_file, "FILE", "authorities to trust instead of the system's (PEM)",
		.example = "/etc/gua/ca.pem"),
	KEY(fleet, TEXT, header, "HEADER", "a header of every request",
		.example = "X-Scope-OrgID: lab"),
	KEY(fleet, TEXT, header_file, "FILE", "file with headers, one a line",
		.example = "/etc/gua/headers"),
	KEY(fleet, TEXT, param, "NAME=VALUE", "a parameter of every query",
		.example = "dedup=false"),
	KEY(fleet, DURATION, timeout, "D", "how long one query may take, or one host of --ssh",
		.initial = "2m", LIMITS(100, 3600e3)),
	KEY(fleet, COUNT, retries, "N",
		"how often a query is repeated after a fault that may pass", .initial = "3",
		LIMITS(0, 10)),
	KEY(metrics, CHOICE, identities, "HOW",
		"whose time it is: by user, by group of [groups], by namespace of Kubernetes, "
		"hashed with a key, or off",
		.initial = "user", .value.choices = IDENTITY_WORDS),
	KEY(metrics, COUNT, identity_max, "N",
		"users with a series of their own; later ones are in _other", .initial = "200",
		LIMITS(1, 100000)),
	KEY(metrics, TEXT, key_file, "FILE",
		"file with the key of hashed identities, the same on all hosts",
		.example = "/etc/gua/metrics.key"),
	KEY(metrics, CHOICE, compat, "EXPORTER",
		"show the cards also by the names of this exporter, for dashboards that ask "
		"for them: dcgm, or off",
		.initial = "off", .value.choices = COMPAT_WORDS),
	KEY(serve, TEXT, listen, "ADDRESS", "where to listen: ADDRESS:PORT or unix:PATH",
		.initial = "127.0.0.1:9848"),
	KEY(serve, TEXT, host_names, "NAMES",
		"names by which clients may call the server, besides localhost and addresses",
		.example = "gpu.example.org"),
	KEY(serve, TEXT, auth_file, "FILE",
		"ask for a token or a password; FILE has lines NAME:SECRET",
		.example = "/etc/gua/serve.auth"),
	KEY(serve, TEXT, tls_cert, "FILE", "certificate for TLS, as PEM",
		.example = "/etc/gua/serve.crt"),
	KEY(serve, TEXT, tls_key, "FILE", "its key, as PEM", .example = "/etc/gua/serve.key"),
	KEY(serve, FLAG, insecure, "YES|NO", "answer other hosts without TLS", .initial = "no"),
	KEY(serve, TEXT, trust_proxy, "ADDRESS",
		"believe the user header of requests from ADDRESS, or from a unix socket: unix",
		.example = "unix"),
	KEY(serve, TEXT, proxy_user, "USER",
		"the user as whom a proxy on this host runs: a name or a number (default: the "
		"owner of the socket)",
		.example = "www-data"),
	KEY(serve, TEXT, user_header, "NAME", "the header in which the proxy says who asks",
		.initial = "X-Forwarded-User"),
	KEY(serve, COUNT, max_connections, "N", "connections at a time", .initial = "256",
		LIMITS(4, 10000)),
	KEY(serve, COUNT, max_per_address, "N", "connections at a time of one client",
		.initial = "64", LIMITS(1, 10000)),
	KEY(serve, DURATION, request_timeout, "D",
		"a request must have come whole after this time", LIMITS(100, 3600e3),
		.initial = "10s"),
	KEY(serve, DURATION, response_timeout, "D",
		"an answer must have gone whole after this time", LIMITS(100, 3600e3),
		.initial = "1m"),
	KEY(serve, FLAG, access_log, "YES|NO", "log each request", .initial = "yes"),
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
	return (enum privacy)options_choice(PRIVACY_WORDS, c->privacy);
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
