/* What processes do outside the cards: CPU time of processes and of those that they started,
 * keys pressed at their terminals, and whether they have ended. */
#pragma once

#include "base/base.h"

/* A process: its pid, and when it started. */
struct proc_life {
	uint32_t pid;
	uint64_t start_ticks;
	int64_t uid; /* its real uid; -1: unknown */
};

/* Processes that belong together, and the labels that their manager gave them, or "". */
struct activity_group {
	const struct proc_life *processes;
	size_t n;
	const char *job, *container, *pod;
};

/* CPU seconds of the processes, of all others in their job or container, of their
 * descendants, and of all processes that share a POSIX session with one of them; `proc` is
 * an open /proc. NAN: the list of processes cannot be read. The difference of two readings
 * contains only a part of the processes that came or went in between. */
double activity_cpu_s(int proc, const struct activity_group *s);

/* When a key was last pressed at a controlling terminal of one of the processes, unix
 * milliseconds; -1: never, or there is no terminal. The kernel keeps it with a resolution of
 * 8 seconds. */
int64_t activity_input_ms(int proc, const struct proc_life *processes, size_t n);

/* The path of a terminal by the number that /proc gives it; "" if it is not a pty. */
void activity_terminal(char *dst, size_t cap, int number);

/* Whether the process has ended; a zombie has. False also if that cannot be read. */
bool activity_has_ended(int proc, const struct proc_life *p);
