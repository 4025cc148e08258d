/* Whether a session is idle by the newest samples of the driver: the last look before it is
 * ended. A pure function of what a live view has read; unknown never counts as idle. */
#ifndef GUA_POLICY_FRESH_H
#define GUA_POLICY_FRESH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/present.h"
#include "policy/signs.h"

enum { FRESH_WHY_CAP = 160 };

enum fresh_verdict {
	FRESH_IDLE,
	FRESH_ACTIVE,	/* one of its processes used a card, or a new one has come to a card */
	FRESH_UNKNOWN,	/* the driver does not answer for a card, or not about its use */
	FRESH_RELEASED, /* the session holds no card any more */
};

/* What a live view has read. */
struct fresh_look {
	const struct present_card *cards;
	size_t n_cards;
	const struct present_process *processes;
	size_t n_processes;
	bool first;	   /* the first look: use may not be known yet */
	double idle_below; /* a session that uses less than this is idle, percent of the SMs */
};

struct fresh_result {
	enum fresh_verdict verdict;
	char why[FRESH_WHY_CAP]; /* "": idle */
	int64_t held_bytes;	 /* by the session, on all cards; -1: unknown */
};

/* Sorts processes in the order that the functions below need. */
void fresh_sort(struct end_process *processes, size_t n);

/* `processes`, sorted, are those that held a card when it was decided to end the session.
 * Other processes of the same session are judged as well: a worker, a command in the
 * container, another job step. */
void fresh_judge(struct fresh_result *r, const struct fresh_look *look,
	const struct end_process *processes, size_t n);

/* The power of a card that the session alone holds; NAN: it is not alone there, does not hold
 * it, or the power is not known. `*limit_w` is the card's power limit, or NAN. */
double fresh_power_w(const struct fresh_look *look, const char *uuid,
	const struct end_process *processes, size_t n, double *limit_w);

/* A process on a card that is not one of the session's, but is in its job or container: a
 * manager would end it as well. NULL: there is none. */
const struct present_process *fresh_companion(
	const struct fresh_look *look, const struct signs_session *session);

#endif
