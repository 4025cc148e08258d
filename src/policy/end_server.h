/* The one place that signals processes: requests in, replies out. It holds each process by a
 * pidfd, which can never refer to another process, and by an open /proc/PID, through which
 * it reads start time, uid, program and cgroup. It repeats all checks and the built-in
 * exemptions for each signal and trusts nothing that it is told. It never uses kill(2), a
 * process group, or a name. */
#pragma once

#include "base/base.h"
#include "policy/end_wire.h"

/* Largest number of processes held, in all and of one uid, so that no user can take all places.
 * Further processes can still be checked and signalled: each is held for that one request. */
enum { END_MOST_HELD = 1024, END_MOST_OF_UID = 256 };

struct end_held {
	uint32_t pid;
	uint64_t start_ticks;
	int64_t uid;
	int pidfd;  /* -1: it has ended */
	int handle; /* its directory in /proc */
};

struct end_server {
	int proc;	       /* an open /proc */
	pid_t never[2];	       /* this process and the one that it serves; 0: none */
	struct end_held *held; /* END_MOST_HELD */
	size_t n_held;
};

/* `proc` belongs to the server from now on. False: out of memory. */
bool end_server_init(struct end_server *s, int proc);
void end_server_finish(struct end_server *s);

/* Answers one request: `len` bytes, which may be anything. */
void end_server_answer(
	struct end_server *s, const void *bytes, size_t len, struct end_reply *reply);

/* Fills in the descriptors to poll: the pidfds of held processes. Returns how many. */
size_t end_server_watch(const struct end_server *s, struct pollfd *fds);
/* Takes one process that has ended since the last call; false: there is none. `fds` are from
 * end_server_watch(). */
bool end_server_ended(
	struct end_server *s, const struct pollfd *fds, size_t n, struct end_reply *reply);
