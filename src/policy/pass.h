/* One pass over all sessions: each is judged, then the limits that concern several are applied.
 * Pure: the caller stores the states and takes the steps, in one transaction. */
#ifndef GUA_POLICY_PASS_H
#define GUA_POLICY_PASS_H

#include "policy/judge.h"

/* A session that was ended, is being ended, or would have been. */
struct past_end {
	int64_t at_ms;
	const char *user;
	const char *session; /* its key */
	bool signalled;	     /* a signal was sent, or a manager's command was run */
};

struct pass {
	const struct policy *policy;
	int64_t now_ms;
	const struct session_facts *facts;
	struct policy_state *states; /* in: stored; out: to be stored */
	struct verdict *verdicts;    /* out */
	size_t n;
	const struct past_end *past; /* the ends of the last 24 hours */
	size_t n_past;
	/* Returns how many sessions hold a card now; called only when several are to be
	 * ended. */
	int64_t (*count_sessions)(void *context);
	void *context;
	bool stopped;	 /* the breaker has tripped before and was not released */
	bool tripped;	 /* out: it trips in this pass */
	size_t n_jumped; /* out: sessions whose clocks grew too fast */
};

/* False: out of memory, and nothing was changed. */
bool pass_run(struct pass *p);

#endif
