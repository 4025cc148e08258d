/* Commands whose work does not run below them in the process tree: another program starts it,
 * on this host or on another one. What the tree used is then not what the work used. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct elsewhere {
	const char *program;
	const char *verbs;  /* one of these words is among its arguments; NULL: any */
	const char *unless; /* not with this option; NULL: none */
	const char *use;    /* how to track the work */
	bool in_job;	    /* its work is in the cgroup of its Slurm job */
	bool of_shell; /* other programs have it as a part of them: only what a user or a script
			  started counts */
};

/* `comm` is the process's name, of `n` bytes; `bytes` are its arguments as in
 * /proc/PID/cmdline, and may be empty. NULL: its work runs below it. */
const struct elsewhere *elsewhere_find(
	const char *comm, size_t n, const char *bytes, size_t len);

/* Whether a process of this name is a shell. `comm` has 16 bytes, as in struct member. */
bool elsewhere_is_shell(const char comm[16]);
