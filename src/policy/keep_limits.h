/* Decides about a request to keep a session, by the limits of the configuration. */
#ifndef GUA_POLICY_KEEP_LIMITS_H
#define GUA_POLICY_KEEP_LIMITS_H

#include "policy/enforcer.h"

struct keep_request;
struct keep_answer;

/* Zero-initialise and set what is the caller's. */
struct keep_limits {
	struct enforcer *x;
	int64_t now_ms;
	/* Private: the present, read for the first request. */
	struct present now;
	bool read;
};

/* Fills the answer, and writes the keep if it is allowed: the process belongs to the uid, or
 * the uid is root's. Fails only when the store or policy.db does. */
int keep_limits_apply(struct keep_limits *l, const struct keep_request *r, uint32_t uid,
	struct keep_answer *answer, struct err *e);
void keep_limits_finish(struct keep_limits *l);

/* A session gets another name when the name of its user or notebook becomes known later. Its
 * keeps follow the process for which they were asked. */
int keep_limits_follow(struct policy_file *f, const struct present *now, struct err *e);

#endif
