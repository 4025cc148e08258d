/* Signs of life of a session outside its cards: CPU time of its processes and of those that
 * they started, and keys pressed at its terminals. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/present.h"
#include "policy/end_link.h"

/* A session: its processes, and the labels that its manager gave it, or "". */
struct signs_session {
	const struct end_process *processes;
	size_t n;
	const char *job, *container, *pod;
};

/* CPU seconds of the processes, of all others in their job or container, of their
 * descendants, and of all processes that share a POSIX session with one of them; `proc` is
 * an open /proc. NAN: the list of processes cannot be read. The difference of two readings
 * contains only a part of the processes that came or went in between. */
double signs_cpu_s(int proc, const struct signs_session *s);

/* When a key was last pressed at a controlling terminal of one of the processes, unix
 * milliseconds; -1: never, or there is no terminal. The kernel keeps it with a resolution of
 * 8 seconds. */
int64_t signs_input_ms(int proc, const struct end_process *processes, size_t n);

/* The path of a terminal by the number that /proc gives it; "" if it is not a pty. */
void signs_terminal(char *dst, size_t cap, int number);

/* Whether a session is idle by the newest samples of the driver: the last look before it is
 * ended. A pure function of what a live view has read; unknown never counts as idle. */
enum { SIGNS_WHY_CAP = 160 };

enum signs_verdict {
	SIGNS_IDLE,
	SIGNS_ACTIVE,	/* one of its processes used a card, or a new process appeared on a card
			 */
	SIGNS_UNKNOWN,	/* the driver does not answer for a card, or not about its use */
	SIGNS_RELEASED, /* the session holds no card any more */
};

/* What a live view has read. */
struct signs_look {
	const struct present_card *cards;
	size_t n_cards;
	const struct present_process *processes;
	size_t n_processes;
	bool first;	   /* the first look: use may not be known yet */
	double idle_below; /* a session that uses less than this is idle, percent of the SMs */
};

struct signs_result {
	enum signs_verdict verdict;
	char why[SIGNS_WHY_CAP]; /* "": idle */
	int64_t held_bytes;	 /* by the session, on all cards; -1: unknown */
};

/* Sorts processes in the order that the functions below need. */
void signs_sort(struct end_process *processes, size_t n);

/* `processes`, sorted, are those that held a card when it was decided to end the session.
 * Other processes of the same session are judged as well: a worker, a command in the
 * container, another job step. */
void signs_judge(struct signs_result *r, const struct signs_look *look,
	const struct end_process *processes, size_t n);

/* The power of a card that the session alone holds; NAN: it is not alone there, does not hold
 * it, or the power is not known. `*limit_w` is the card's power limit, or NAN. */
double signs_power_w(const struct signs_look *look, const char *uuid,
	const struct end_process *processes, size_t n, double *limit_w);

/* A process on a card that is not one of the session's, but is in its job or container: a
 * manager would end it as well. NULL: there is none. */
const struct present_process *signs_companion(
	const struct signs_look *look, const struct signs_session *session);
