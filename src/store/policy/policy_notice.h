/* The queue of notices in policy.db: one notice for each session, stage and channel; the daily
 * limit; and digests, of which each is one notice for several notices of a user. A message is
 * a notice through all its channels. */
#pragma once

#include "store/policy/policy_file.h"

struct policy_notice {
	int64_t id; /* when read: the id of the row */
	const char *session, *stage, *channel, *user, *body;
	int64_t uid, idle_since_ms, round;
	int64_t queued_ms, due_ms, tries;
	bool counts;	    /* a delivery counts as a warning */
	bool admitted;	    /* it may be sent; else the daily limit decides when */
	const char *result; /* when read: the result of the last try, or "" */
};

/* Adds a notice to the queue. It replaces one of the same session, stage and channel. */
int policy_notice_add(struct policy_file *f, const struct policy_notice *n, struct err *e);
/* Calls `take` with the notices that are due and admitted, the oldest first, until it returns
 * non-zero. */
typedef int (*policy_notice_taker)(void *context, const struct policy_notice *n);
int policy_notice_due(struct policy_file *f, int64_t now_ms, policy_notice_taker take,
	void *context, struct err *e);

/* The same with the waiting notices that would count as a warning: those of one session, or of
 * all (""). */
int policy_notice_waiting(struct policy_file *f, const char *session, policy_notice_taker take,
	void *context, struct err *e);

/* The result of a try: "delivered", "failed" (not tried again), or "waiting" (tried again at
 * due_ms). For a digest it is also the result of the notices in it. */
struct policy_delivery {
	int64_t id, now_ms, due_ms;
	const char *state, *result;
};
int policy_notice_done(struct policy_file *f, const struct policy_delivery *d, struct err *e);

/* Queues a notice, or the notices in a digest, for another channel too, unless that was done
 * before. */
int policy_notice_copy(
	struct policy_file *f, int64_t id, const char *channel, bool counts, struct err *e);

/* Reads how often a notice was tried. */
int policy_notice_tries(struct policy_file *f, int64_t id, int64_t *tries, struct err *e);
/* Takes back the waiting notices of the session, because they are no longer true. */
int policy_notice_cancel(
	struct policy_file *f, const char *session, int64_t now_ms, struct err *e);

/* Reads when a notice of the session's current stage first reached its user; *ms -1: not yet.
 */
int policy_notice_delivered(struct policy_file *f, const char *session,
	const struct policy_state *state, int64_t *ms, struct err *e);

/* Takes back notices of a stage that their session has left. */
int policy_notice_drop_stale(struct policy_file *f, int64_t now_ms, struct err *e);

/* Makes a list, in the arena, of the users who have waiting messages that are not admitted. */
struct policy_waiting {
	const char *user;
	int64_t messages;
	int64_t sent; /* messages that the user was sent in the last day, or is being sent,
			 without results and final notices that are sent again */
	struct policy_waiting *next; /* NULL: it is the last one */
};
int policy_notice_users(struct policy_file *f, int64_t now_ms, struct arena *arena,
	struct policy_waiting **first, struct err *e);

/* Admits all messages that wait for the user. */
int policy_notice_admit(struct policy_file *f, const char *user, struct err *e);
/* Makes one admitted digest of the waiting messages: of at most `most`, the oldest first. */
int policy_notice_make_digest(
	struct policy_file *f, const char *user, int64_t now_ms, int64_t most, struct err *e);
/* Calls `take` with the notices in a digest, the oldest first, until it returns non-zero. */
int policy_notice_parts(struct policy_file *f, int64_t id, policy_notice_taker take,
	void *context, struct err *e);

/* Calls `take` with what is true now of the sessions of a user, by this channel: of each
 * session the newest notice, sent or not, whose stage it still has; and the results of the last
 * day. */
int policy_notice_current(struct policy_file *f, const struct policy_notice *like,
	policy_notice_taker take, void *context, struct err *e);
/* Sends the notices of this channel about a session once more. */
int policy_notice_renew(
	struct policy_file *f, const char *session, const char *channel, struct err *e);

/* The stage of a digest in the queue. */
#define POLICY_NOTICE_DIGEST "digest"
