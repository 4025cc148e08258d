/* The parts of gua.conf(5) that policy follows: [policy], [rule NAME] and [exempt NAME]. */
#ifndef GUA_CONFIG_CONFIG_POLICY_H
#define GUA_CONFIG_CONFIG_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A list of patterns (base/pattern.h); none: everything matches. */
struct config_patterns {
	const char **items;
	size_t n;
};

/* What a session must be like. All that is given must match. */
struct config_match {
	struct config_patterns users, groups, cards, models, notebooks, containers, jobs, units;
	unsigned kinds;		   /* bits 1 << enum session_use; 0: any */
	int64_t min_memory_bytes;  /* held on all cards together */
	const char *working_hours; /* "yes", "no" (outside of them); NULL: at any time */
};

/* Moments of a rule that are not a length of time. */
enum { AT_NEVER = -1, AT_USUAL = 0 };

struct config_rule {
	const char *name;
	struct config_match match;
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

#endif
