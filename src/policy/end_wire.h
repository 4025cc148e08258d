/* The protocol between gua-enforce and gua-end: fixed-size records over a socket that keeps
 * record boundaries (SOCK_SEQPACKET), one reply for each request, and an unrequested message
 * from gua-end when a process that it holds has ended. */
#pragma once

#include "base/base.h"

#define END_WIRE_MAGIC 0x31646e65U /* "end1": change it when the layout changes */

enum end_ask {
	END_ASK_HOLD = 1,  /* check a process, and hold it by a descriptor */
	END_ASK_CHECK = 2, /* the same checks again, and whether a signal may be sent */
	END_ASK_TERM = 3,  /* the checks, then SIGTERM */
	END_ASK_KILL = 4,  /* the checks, then SIGKILL */
	END_ASK_RELEASE = 5,
};

/* A process that is not held is held first, whatever the request is; if no place is free, it
 * is held only until the request is answered. */
struct end_request {
	uint32_t magic;
	uint32_t ask; /* enum end_ask */
	uint32_t pid;
	uint32_t unused; /* 0 */
	uint64_t start_ticks;
	int64_t uid; /* the real uid that it must have */
};

enum end_answer {
	END_DONE,     /* checked, held, signalled or released */
	END_GONE,     /* the process has ended */
	END_ANOTHER,  /* the pid belongs to another process now */
	END_NOT_HIS,  /* it has another uid */
	END_EXEMPT,   /* a built-in exemption */
	END_NO_PIDFD, /* the kernel has no pidfd, so no process can be named safely: nothing is
			 ever signalled */
	END_DENIED,   /* this process may not be read, or not be signalled */
	END_FULL,     /* too many processes are held, or files open */
	END_REFUSED,  /* the request is malformed */
	END_ANSWERS,
};

enum { END_TEXT_CAP = 160 };

struct end_reply {
	uint32_t magic;
	uint32_t ask; /* of the request; 0: a process that is held has ended */
	uint32_t pid;
	uint32_t answer; /* enum end_answer */
	uint64_t start_ticks;
	char text[END_TEXT_CAP]; /* the reason if it was not done; "": done */
};
