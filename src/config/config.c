/* The table of gua.conf's sections and keys, and questions about the values. */
#include "config/config.h"

#include <math.h>
#include <string.h>

#include "base/pattern.h"
#include "config/parse.h"

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
	{ .name = "notices", .help = "How gua enforce tells people." },
	{ .name = "end", .help = "How gua enforce ends a session." },
	{ .name = "fleet", .help = "The engine that has the metrics of all hosts." },
	{ .name = "metrics", .help = "What gua metrics and /metrics show." },
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
			"notices that one user gets in a day; the others wait for a digest",
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
