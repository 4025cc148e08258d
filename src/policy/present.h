/* The sessions that hold a card now, with the facts about each: from the store, and what /proc
 * says about built-in exemptions. */
#ifndef GUA_POLICY_PRESENT_H
#define GUA_POLICY_PRESENT_H

#include "policy/rules.h"

/* Zero-initialise; set what is the caller's. */
struct present {
	const char *db;
	const char *root; /* of /proc; NULL: do not look at processes */
	int64_t now_ms;
	bool brief;		     /* as in idle_history.h */
	const struct policy *policy; /* whose rules limit use; NULL: as usual */
	/* Results. */
	struct idle_history history;
	struct session_facts *facts; /* one for each session of the history */
	uint32_t *spans; /* indexes of h->spans, session by session: see present_spans() */
	size_t *first;
};

/* Finish *p even after a failure. */
int present_read(struct present *p, struct err *e);
/* Makes the facts once more, after the caller has set used_ms of sessions. */
void present_judge_again(struct present *p);
void present_finish(struct present *p);

/* Whether the store can say anything about now: a recorder runs and its last tick is recent. */
bool present_is_known(const struct present *p);
struct open_spans present_spans(const struct present *p, size_t session);
/* Calls `take` with every built-in exemption of a session's processes. */
typedef void (*present_exemption_taker)(void *context, uint32_t pid, const char *why);
void present_exemptions(
	const struct present *p, size_t session, present_exemption_taker take, void *context);
/* The session of a process; -1: it holds no card. */
int64_t present_find(const struct present *p, uint32_t pid);

#endif
