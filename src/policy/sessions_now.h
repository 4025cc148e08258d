/* The sessions that hold a card now, with the facts about each: from the store, and what /proc
 * says about built-in exemptions. */
#ifndef GUA_POLICY_SESSIONS_NOW_H
#define GUA_POLICY_SESSIONS_NOW_H

#include "policy/rules.h"

/* Zero-initialise; set the members above "Results". */
struct sessions_now {
	const char *db;
	const char *root; /* of /proc; NULL: do not look at processes */
	int64_t now_ms;
	bool brief; /* as in idle_history.h */
	const struct policy
		*policy; /* its rules set the limits of use; NULL: the default limit */
	/* Results. */
	struct idle_history history;
	struct session_facts *facts; /* one for each session of the history */
	uint32_t *spans; /* indexes of h->spans, session by session: see sessions_now_spans() */
	size_t *first;
};

/* Finish *p even after a failure. */
int sessions_now_read(struct sessions_now *p, struct err *e);
/* Computes the facts again, after the caller has set used_ms of sessions. */
void sessions_now_judge_again(struct sessions_now *p);
void sessions_now_finish(struct sessions_now *p);

/* Whether the store knows the present: a recorder runs and its last tick is recent. */
bool sessions_now_is_known(const struct sessions_now *p);
struct open_spans sessions_now_spans(const struct sessions_now *p, size_t session);
/* Calls `take` with every built-in exemption of a session's processes. */
typedef void (*sessions_now_exemption_taker)(void *context, uint32_t pid, const char *why);
void sessions_now_exemptions(const struct sessions_now *p, size_t session,
	sessions_now_exemption_taker take, void *context);
/* The session of a process; -1: it holds no card. */
int64_t sessions_now_find(const struct sessions_now *p, uint32_t pid);

#endif
