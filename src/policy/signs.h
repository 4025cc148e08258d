/* Whether a session is idle by the newest samples of the driver: the last look before it is
 * ended. Pure functions of what a live view has read; unknown never counts as idle. */
#pragma once

#include "model/present.h"
#include "proc/activity.h"

enum { SIGNS_WHY_CAP = 160 };

enum signs_verdict {
	SIGNS_IDLE,
	SIGNS_ACTIVE,	/* one of its processes used a card, or a new one appeared */
	SIGNS_UNKNOWN,	/* the driver does not answer for a card, or not about its use */
	SIGNS_RELEASED, /* the session holds no card any more */
};

/* What a live view has read. */
struct signs_look {
	const struct present *now;
	bool first;	   /* the first look: use may not be known yet */
	double idle_below; /* a session that uses less than this is idle, percent of the SMs */
};

struct signs_result {
	enum signs_verdict verdict;
	char why[SIGNS_WHY_CAP]; /* "": idle */
	int64_t held_bytes;	 /* by the session, on all cards; -1: unknown */
};

/* Sorts processes in the order that the functions below need. */
void signs_sort(struct proc_life *processes, size_t n);

/* `processes`, sorted, are those that held a card when it was decided to end the session.
 * Other processes of the same session are judged as well: a worker, a command in the
 * container, another job step. */
void signs_judge(struct signs_result *r, const struct signs_look *look,
	const struct proc_life *processes, size_t n);

/* The power of a card that the session alone holds; NAN: it is not alone there, does not hold
 * it, or the power is not known. `*limit_w` is the card's power limit, or NAN. */
double signs_power_w(const struct signs_look *look, const char *uuid,
	const struct proc_life *processes, size_t n, double *limit_w);

/* A process on a card that is not one of the session's, but is in its job or container: a
 * manager would end it as well. NULL: there is none. */
const struct present_process *signs_companion(
	const struct signs_look *look, const struct activity_group *session);
