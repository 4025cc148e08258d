/* Makes notices from the steps of a pass and puts them into the queue of policy.db. */
#ifndef GUA_POLICY_TELL_H
#define GUA_POLICY_TELL_H

#include "policy/enforcer.h"
#include "policy/notice.h"

/* Fills a notice of this kind with what is known about the session. */
void tell_describe(struct notice *n, const struct enforcer_step *s, enum notice_kind kind);

/* Queues a notice, once for each configured channel. `stage` is its name in the queue. */
struct tell_queue {
	const struct config_notices *config;
	const char *key; /* of the session */
	const struct policy_state *state;
	int64_t now_ms;
};
int tell_add(struct policy_file *f, const struct tell_queue *q, const struct notice *n,
	const char *stage, struct err *e);

/* Queues an alarm for root, through the channels that reach administrators: mail, webhook and
 * command. */
int tell_alarm(struct policy_file *f, const struct config_notices *config, const char *text,
	int64_t now_ms, struct err *e);

/* Queues or withdraws the notices of a step: a warning is queued; when a session recovered,
 * was kept, exempted or released, its waiting notices are withdrawn. */
int tell_step(struct policy_file *f, const struct enforcer_step *s, struct err *e);

#endif
