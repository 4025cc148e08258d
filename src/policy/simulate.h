/* Replays the rules over recorded history: what a live run would have done, session by session,
 * if every notice had been delivered at once. */
#pragma once

#include "policy/judge.h"

/* A session that is used again within this time after its end would have been ended wrongly. */
#define WRONG_MS INT64_C(1800000)

struct simulated {
	const struct idle_session *session;
	char rule[RULE_NAME_CAP]; /* of its last step */
	size_t warnings;	  /* notices, the final one included */
	int64_t first_warning_ms; /* or -1 */
	int64_t ended_ms;	  /* or -1; the rest is -1 or 0 without it */
	int64_t idle_ms;	  /* its clock at the end */
	int64_t idle_since_ms;
	int64_t mem_bytes;
	int64_t idle_below, most_pct; /* at its last step: the limit of use, and the highest use
					 in its idle time, in percent; or -1 */
	int64_t given_back_ms;	      /* card time that became free: see struct simulation */
	size_t nth;		      /* private: which of the ends it is */
	int64_t used_again_ms; /* used again then; -1: not before it released the cards */
	bool wrong;	       /* used again within WRONG_MS */
	struct card_set cards;
};

struct simulate_step {
	int64_t at_ms;
	enum policy_step step;
	enum policy_stage stage;
	const struct idle_session *session;
};

struct simulation {
	const struct policy *policy; /* with its history; the caller's, like the next three */
	struct idle_history *history;
	int64_t interval_ms;
	/* Until when a session was kept, as of a moment; -1: it was not. NULL: no session
	 * ever was. */
	int64_t (*kept_until)(void *context, const char *key, int64_t at_ms);
	/* How many sessions held a card at a moment; NULL: count them in the history. */
	int64_t (*count_sessions)(void *context, int64_t at_ms);
	int64_t *releases; /* when the breaker was released */
	size_t n_releases;
	/* Called for every step; may be NULL. */
	void (*tell)(void *context, const struct simulate_step *step);
	void *context;
	/* Results. */
	struct simulated *items; /* sessions with a warning or an end, by first warning. A
				    session that started again after its end is listed twice */
	size_t n;
	size_t n_warned, n_ended, n_wrong;
	size_t n_sessions;  /* number that were idle at least as long as a spell */
	size_t n_stopped;   /* passes that the breaker stopped */
	int64_t stopped_ms; /* the first of them; -1: none */
	size_t n_notices;
	/* Card time that became free: from the end of a session until the session really used
	 * or released the card. Time does not count in which another session held the card, or
	 * in which the card was active or not observed. Time that several ends made free counts
	 * once, for the latest of them. */
	int64_t given_back_ms;
	int64_t since_ms, until_ms; /* the time that was replayed */
};

/* Zero-initialise and set what is the caller's. ERR_WORLD: out of memory. */
int simulate(struct simulation *s, struct err *e);
void simulate_finish(struct simulation *s);
