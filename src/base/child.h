/* Runs another program with an argument vector, never through a shell: gives it bytes to read,
 * keeps the beginning of what it writes, and kills it after a deadline. The call blocks until
 * the program has ended, so a program that has other work calls it in a helper (base/helper.h).
 */
#pragma once

#include "base/base.h"

enum { CHILD_OUTPUT_CAP = 256 };

struct child_command {
	const char *const *argv; /* ends with NULL; argv[0] is a path, or a name in `path` */
	const char *const *env;	 /* ends with NULL; NULL: PATH and LC_ALL alone */
	const char *input;	 /* for its standard input; NULL: /dev/null */
	size_t input_len;
	/* Above 0: a file that gets the program's standard output, up to `output_max` bytes;
	 * further writes of the program fail. `output` then keeps only its errors. */
	int output_fd;
	int64_t output_max;
	int64_t timeout_ms; /* after this time the program is killed */
	/* If set, and this process is root: the program runs as this user and group. */
	bool change_user;
	uid_t uid;
	gid_t gid;
};

struct child_result {
	int status; /* exit status; -1: it was ended by a signal, or after the deadline */
	int signal; /* the signal that ended it; 0: none */
	bool timed_out;
	char output[CHILD_OUTPUT_CAP]; /* the beginning of its output (unless it goes to
					  output_fd) and of its errors, safe to show */
};

/* ERR_WORLD: the program could not be started. How it ended is in `r`, not in the code. */
int child_run(const struct child_command *c, struct child_result *r, struct err *e);

/* One sentence about a program that did not end with 0: "scancel ended with status 1: ...". */
void child_result_text(
	char *dst, size_t cap, const char *program, const struct child_result *r);
