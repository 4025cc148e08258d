/* The queue of notices in policy.db: once for each session, stage and channel. */
#ifndef GUA_STORE_POLICY_POLICY_NOTICE_H
#define GUA_STORE_POLICY_POLICY_NOTICE_H

#include "store/policy/policy_file.h"

struct policy_notice {
	int64_t id; /* of a row that was read */
	const char *session, *stage, *channel, *user, *body;
	int64_t uid, idle_since_ms, round;
	int64_t queued_ms, due_ms, tries;
	bool counts;	    /* a delivery counts as a warning */
	bool admitted;	    /* it may be sent; else policy_digest.h decides when */
	const char *result; /* when read: of the last try, or "" */
};

/* Adds one to the queue, in place of one of the same session, stage and channel. */
int policy_notice_add(struct policy_file *f, const struct policy_notice *n, struct err *e);
/* Calls `take` with those that are due and admitted, the oldest first, until it returns
 * non-zero. */
typedef int (*policy_notice_taker)(void *context, const struct policy_notice *n);
int policy_notice_due(struct policy_file *f, int64_t now_ms, policy_notice_taker take,
	void *context, struct err *e);

/* The same with those that would count as a warning and wait, of a session or ("") of all. */
int policy_notice_waiting(struct policy_file *f, const char *session, policy_notice_taker take,
	void *context, struct err *e);

/* What became of one: "delivered" or "failed" (no more tries), also for what a digest stands
 * for, or "waiting", which is tried again at due_ms. */
struct policy_delivery {
	int64_t id, now_ms, due_ms;
	const char *state, *result;
};
int policy_notice_done(struct policy_file *f, const struct policy_delivery *d, struct err *e);

/* Queues a notice, or what a digest stands for, for another channel, too, unless it has been.
 */
int policy_notice_copy(
	struct policy_file *f, int64_t id, const char *channel, bool counts, struct err *e);

/* How often it was tried. */
int policy_notice_tries(struct policy_file *f, int64_t id, int64_t *tries, struct err *e);
/* Takes back what waits for the session: it is no longer true. */
int policy_notice_cancel(
	struct policy_file *f, const char *session, int64_t now_ms, struct err *e);

/* When a notice of the session's present stage first reached its user; *ms -1: not yet. */
int policy_notice_delivered(struct policy_file *f, const char *session,
	const struct policy_state *state, int64_t *ms, struct err *e);

#endif
