/* Decides on requests to keep a session, within the configured limits. */
#ifndef GUA_POLICY_KEEP_LIMITS_H
#define GUA_POLICY_KEEP_LIMITS_H

#include "policy/enforcer.h"
#include "policy/user_talk.h"

struct keep_limits {
	struct enforcer *x;
	const struct sessions_now *now; /* read a moment ago */
	int64_t now_ms;
};

/* The result of a request. */
struct keep_answer {
	bool done; /* the session is kept, or no longer kept */
	int64_t until_ms;
	char why[160]; /* why it was refused */
};

/* Fills the answer, and stores the keep if it is allowed: the process belongs to the uid, or
 * the uid is root's. Fails only when policy.db cannot be read or written. */
int keep_limits_apply(const struct keep_limits *l, const struct user_request *r, uint32_t uid,
	struct keep_answer *answer, struct err *e);

/* Renames keeps: a session gets another name when the name of its user or notebook becomes
 * known later. A keep follows the process for which it was requested. */
int keep_limits_follow(struct policy_file *f, const struct sessions_now *now, struct err *e);

#endif
