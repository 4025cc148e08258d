/* The daily limit of notices, and digests: a digest is one notice for several notices of a
 * user. A message is a notice through all its channels. */
#pragma once

#include "store/policy/policy_notice.h"

/* Takes back notices of a stage that their session has left. */
int policy_digest_drop_stale(struct policy_file *f, int64_t now_ms, struct err *e);

/* Calls `take` for each user who has waiting messages that are not admitted, until it returns
 * non-zero. `take` must not change the queue. */
struct policy_waiting {
	const char *user;
	int64_t messages;
};
typedef int (*policy_waiting_taker)(void *context, const struct policy_waiting *w);
int policy_digest_waiting(
	struct policy_file *f, policy_waiting_taker take, void *context, struct err *e);

/* Counts the messages that the user was sent in the last day, or is being sent. Results and
 * final notices that are sent again do not count. */
int policy_digest_sent(
	struct policy_file *f, const char *user, int64_t now_ms, int64_t *n, struct err *e);

/* Admits all messages that wait for the user. */
int policy_digest_admit(struct policy_file *f, const char *user, struct err *e);
/* Makes one admitted digest of the waiting messages: of at most `most`, the oldest first. */
int policy_digest_make(
	struct policy_file *f, const char *user, int64_t now_ms, int64_t most, struct err *e);
/* Calls `take` with the notices in a digest, the oldest first, until it returns non-zero. */
int policy_digest_parts(struct policy_file *f, int64_t id, policy_notice_taker take,
	void *context, struct err *e);

/* Calls `take` with the newest notice of each session of a user through this channel, sent or
 * not, that says how far the session is now; and with the results of a day. */
int policy_digest_current(struct policy_file *f, const struct policy_notice *like,
	policy_notice_taker take, void *context, struct err *e);
/* Sends the notices of this channel about a session once more. */
int policy_digest_renew(
	struct policy_file *f, const char *session, const char *channel, struct err *e);

/* The stage of a digest in the queue. */
#define POLICY_DIGEST_STAGE "digest"
