/* Signs of life of a session outside its cards: CPU time of its processes and of those that
 * they started, and keys pressed at its terminals. */
#ifndef GUA_POLICY_SIGNS_H
#define GUA_POLICY_SIGNS_H

#include <stddef.h>
#include <stdint.h>

#include "policy/end_link.h"

/* A session: its processes, and the labels that its manager gave it, or "". */
struct signs_session {
	const struct end_process *processes;
	size_t n;
	const char *job, *container;
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

#endif
