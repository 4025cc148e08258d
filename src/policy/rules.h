/* The rules in force: what gua.conf(5) says, and which sessions a rule is about. */
#ifndef GUA_POLICY_RULES_H
#define GUA_POLICY_RULES_H

#include "config/config.h"
#include "policy/facts.h"

enum { WHY_CAP = 192 };

struct policy {
	const struct config *config;
	const struct idle_history *history; /* for the cards */
	bool enforce;			    /* mode = enforce */
	bool may_end; /* the configuration is root's, and an admin has armed it */
	bool utc;     /* hours of the calendar are in UTC; for tests */
};

/* How many rules there are: those of the file, and the built-in one, called "default", which
 * observes every session. */
size_t policy_rules_count(const struct policy *p);
const struct config_rule *policy_rule(const struct policy *p, size_t i);
/* The first rule that matches; NULL: none, because the session holds too little, or nobody
 * knows how much. */
const struct config_rule *policy_find_rule(
	const struct policy *p, const struct session_facts *f, int64_t now_ms);
/* Names the limits of use of all rules to a history, before it is read. */
void policy_set_limits(const struct policy *p, struct idle_history *h);
/* Fills the facts of a session by the limit of the rule that matches it; otherwise as
 * facts_at(), in p->history. */
void policy_facts_at(const struct policy *p, struct session_facts *f,
	const struct idle_session *session, struct open_spans spans, int64_t at_ms);
/* What is likely a mistake in the times of a rule, such as seconds for minutes: a sentence
 * about it. False: nothing is. */
bool policy_rule_is_hasty(const struct config_rule *rule, char why[WHY_CAP]);
enum policy_level policy_rule_level(const struct config_rule *rule);

/* Whether all that is asked for matches. `why` is filled with the first condition that does
 * not: "its user is alice". */
bool policy_matches(const struct policy *p, const struct config_match *m,
	const struct session_facts *f, int64_t now_ms, char why[WHY_CAP]);
/* The configured exemption that the session has; NULL: none. */
const struct config_exemption *policy_find_exemption(
	const struct policy *p, const struct session_facts *f, int64_t now_ms);
/* Why an exemption does not count at all, whatever the session; NULL: it does. */
const char *policy_exemption_fault(const struct config_exemption *x, int64_t now_ms, bool utc);

/* Whether notices wait: quiet hours, or a holiday. */
bool policy_is_quiet(const struct policy *p, int64_t now_ms);

/* When the stages of a rule come, as idle time; AT_NEVER: not. */
struct policy_times {
	int64_t warn_ms, again_ms, final_ms, end_ms;
};
/* The end is never earlier than the last warning and the final notice allow. */
struct policy_times policy_times(const struct config_rule *rule, enum session_use use);

#endif
