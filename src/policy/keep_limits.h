/* Decides about a request to keep a session, by the limits of the configuration. */
#ifndef GUA_POLICY_KEEP_LIMITS_H
#define GUA_POLICY_KEEP_LIMITS_H

#include "policy/enforcer.h"
#include "policy/user_talk.h"

struct keep_limits {
	struct enforcer *x;
	const struct sessions_now *now; /* read a moment ago */
	int64_t now_ms;
};

/* What became of a request. */
struct keep_answer {
	bool done; /* it is kept, or not any more */
	int64_t until_ms;
	char why[160]; /* it was refused */
};

/* Fills the answer, and writes the keep if it is allowed: the process belongs to the uid, or
 * the uid is root's. Fails only when policy.db does. */
int keep_limits_apply(const struct keep_limits *l, const struct user_request *r, uint32_t uid,
	struct keep_answer *answer, struct err *e);

/* A session gets another name when the name of its user or notebook becomes known later. Its
 * keeps follow the process for which they were asked. */
int keep_limits_follow(struct policy_file *f, const struct sessions_now *now, struct err *e);

#endif
