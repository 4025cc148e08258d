/* gua's configuration as values: what gua.conf(5) describes. The table `config_schema` has one
 * row for each key; settings.h fills a struct config from files with it. */
#pragma once

#include "config/settings.h"
#include "model/process.h"
#include "model/state.h"

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

/* The parts of gua.conf(5) that policy follows: [policy], [rule NAME] and [exempt NAME]. */

/* A list of patterns (base/pattern.h); none: everything matches. */
struct config_patterns {
	const char **items;
	size_t n;
};

/* What a session must be like. All that is given must match. */
struct config_match {
	struct config_patterns users, groups, cards, models, notebooks, containers, jobs, units,
		namespaces;
	unsigned kinds;		   /* bits 1 << enum session_use; 0: any */
	int64_t min_memory_bytes;  /* held on all cards together */
	const char *working_hours; /* "yes", "no" (outside of them); NULL: at any time */
};

/* Moments of a rule that are not a length of time. */
enum { AT_NEVER = -1, AT_USUAL = 0 };

struct config_rule {
	const char *name;
	struct config_match match;
	int64_t reserved_for_ms;   /* 0: a rule for sessions; else one for leases: the first
				      warning after this time without use */
	int64_t warn_ms, final_ms; /* idle for this long; this long before the end */
	int64_t again_ms;	   /* or AT_NEVER */
	int64_t end_ms;		   /* AT_NEVER, or AT_USUAL: by the kind of the session */
	int64_t idle_below; /* a session is idle while it uses less: percent of the SMs */
	const char *level;  /* a word of POLICY_LEVEL_WORDS */
	bool kill_after_term;
};

struct config_exemption {
	const char *name;
	struct config_match match;
	const char *owner, *reason; /* reason NULL: none */
	int32_t until;		    /* the last day, as in struct config_days; 0: not given */
};

struct config_policy {
	const char *mode; /* "observe" or "enforce" */
	int64_t interval_ms;
	int64_t ends_per_hour, ends_per_user_day; /* at most */
	double breaker_pct;
	int64_t keep_longest_ms, keep_per_week_ms;
	const char *socket; /* where users ask; NULL: the usual place */
};

/* The sections [notices] and [end] of gua.conf(5) as values: how people are told, and how a
 * session is ended. */

struct config_notices {
	const char *channels;  /* names with blanks between them */
	const char *templates; /* directory of the texts */
	int64_t per_day;       /* notices to one user; the others wait for a digest */
	int64_t timeout_ms;    /* of one delivery */
	const char *sendmail;  /* path of the program */
	const char *mail_domain, *mail_from, *mail_reply_to; /* NULL: not given */
	const char *webhook_url, *webhook_kind, *webhook_secret;
	const char *command, *command_user;
	const char *login_directory;
};

struct config_end {
	int64_t confirm_ms; /* fresh samples over this long come before the end */
	int64_t sample_ms;  /* how often the driver is asked then */
	int64_t grace_ms;   /* between SIGTERM and SIGKILL, or giving up */
	double cpu_pct;	    /* a session that uses more of one core is at work */
	double power_pct;   /* above the idle floor of its card */
	const char *socket; /* of a gua-end that runs as a service; NULL: start one */
	/* Commands of managers; of kubernetes NULL: none. */
	const char *slurm, *slurm_notify, *pbs, *lsf, *docker, *podman, *kubernetes;
	int64_t manager_timeout_ms;
};

/* What gua.conf(5) says about metrics and the engine that has them: [metrics] and [fleet]. */

#define IDENTITY_WORDS "user|group|namespace|hashed|off"
#define COMPAT_WORDS "off|dcgm"

struct config_metrics {
	const char *identities; /* a word of IDENTITY_WORDS */
	const char *key_file;	/* NULL: none */
	int64_t identity_max;
	const char *compat; /* a word of COMPAT_WORDS */
};

/* How the engine of a fleet is reached; NULL: not given. */
struct config_fleet {
	const char *url, *match, *host_label, *expect;
	const char *bearer_file, *basic_file, *cert_file, *key_file, *ca_file;
	const char *header, *header_file, *param;
	int64_t timeout_ms, retries;
};

/* What it says about leases: section [leases]. */
struct config_leases {
	const char *numbering; /* of cards: auto, nvml or minor */
	bool private;	       /* only the group gua may read them */
	int64_t every_ms, timeout_ms;
	const char *slurm;   /* command */
	const char *node;    /* NULL: the name of this host */
	const char *kubelet; /* path of a socket */
};

/* The web server: section [serve]; NULL: not given. */
struct config_serve {
	const char *listen, *host_names, *auth_file, *tls_cert, *tls_key;
	const char *trust_proxy, *proxy_user, *user_header;
	int64_t max_connections, max_per_address, request_timeout_ms, response_timeout_ms;
	bool insecure, access_log;
};

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
	/* [policy], [rule NAME], [exempt NAME] */
	struct config_policy policy;
	struct config_blocks policy_rules, exemptions;
	/* [notices], [end] */
	struct config_notices notices;
	struct config_end end;
	struct config_metrics metrics; /* [metrics] */
	struct config_leases leases;   /* [leases] */
	const char *pod_user;	       /* [kubernetes] user: "namespace" or "uid" */
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
