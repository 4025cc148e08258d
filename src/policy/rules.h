/* The rules in force, as gua.conf(5) defines them, and which sessions each rule applies to. */
#pragma once

#include "config/config.h"
#include "config/settings.h"
#include "policy/facts.h"

enum { WHY_CAP = 192 };

struct policy {
	const struct config *config;
	const struct idle_history *history; /* names the cards */
	bool enforce;			    /* mode = enforce */
	bool may_end; /* the configuration is root's, and an admin has armed it */
	bool utc;     /* calendar hours are in UTC; for tests */
};

/* The number of rules: those of the file, and the built-in one, called "default", which
 * observes every session. */
size_t rules_count(const struct policy *p);
const struct config_rule *rules_get(const struct policy *p, size_t i);
/* The first rule that matches; NULL: none, because the session holds too little, or its
 * memory is unknown. */
const struct config_rule *rules_find(
	const struct policy *p, const struct session_facts *f, int64_t now_ms);
/* Prepares a history before it is read: the limits of use of all rules, and whether a rule
 * judges leases. */
void rules_set_limits(const struct policy *p, struct idle_history *h);
/* Writes a sentence about a likely mistake in the times of a rule, such as seconds for
 * minutes. False: there is none. */
bool rules_is_hasty(const struct config_rule *rule, char why[WHY_CAP]);
enum policy_level rules_level(const struct config_rule *rule);

/* Whether the rule judges such sessions, and all of its conditions match; `why` as below. */
bool rules_applies(const struct policy *p, const struct config_rule *rule,
	const struct session_facts *f, int64_t now_ms, char why[WHY_CAP]);
/* Whether all conditions match. `why` names the first that does not: "its user is alice". */
bool rules_match(const struct policy *p, const struct config_match *m,
	const struct session_facts *f, int64_t now_ms, char why[WHY_CAP]);
/* The configured exemption that applies to the session; NULL: none. */
const struct config_exemption *rules_find_exemption(
	const struct policy *p, const struct session_facts *f, int64_t now_ms);
/* Why an exemption is invalid for every session; NULL: it is valid. */
const char *rules_exemption_fault(const struct config_exemption *x, int64_t now_ms, bool utc);

/* Whether notices must wait: quiet hours, or a holiday. */
bool rules_is_quiet(const struct policy *p, int64_t now_ms);
/* The first moment that is not quiet, searched for in the month after `at_ms`. */
int64_t rules_after_quiet(const struct policy *p, int64_t at_ms);
/* The first moment after `now_ms` at which quiet or working hours may begin or end. It is at
 * most an hour later, because summer time may begin or end at a full hour. */
int64_t rules_next_hours(const struct policy *p, int64_t now_ms);

/* When the stages of a rule come, as idle time; AT_NEVER: never. */
struct rules_times {
	int64_t warn_ms, again_ms, final_ms, end_ms;
};
/* The end is never earlier than the last warning and the final notice allow. */
struct rules_times rules_times(
	const struct config_rule *rule, const struct idle_session *session);

/* Whether a configuration may end sessions: every file of it, and its directory, must have
 * belonged to root when it was read, and nobody else may write to them. Lines that are not from
 * files (--set) are not trusted. Returns 0, or ERR_WORLD with the reason. */
int rules_check_trust(const struct settings *s, struct err *e);

/* A hash of the settings, for the log: 16 hexadecimal digits. */
enum { RULES_HASH_CAP = 17 };
void rules_hash(char dst[RULES_HASH_CAP], const struct settings *s);
