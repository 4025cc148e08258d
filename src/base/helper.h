/* A helper: a process of this program that does what may block for ever, such as calls of a
 * driver or files of other processes. A thread that is stuck in the kernel cannot be ended, and
 * then its process cannot end either. A helper that is stuck is left behind, and its owner goes
 * on.
 *
 * The owner sends a request and receives a reply, both plain bytes, one pair at a time. The
 * helper has only its end of the socket and wake_fd open, so it holds no lock and no pipe of
 * its owner. It takes no signals from the terminal, and ends when its owner has ended. The
 * owner logs the lines that the helper logs. */
#pragma once

#include "base/base.h"

/* A short text that the helper leaves for its owner: what it is doing now. */
enum { HELPER_PLACE_CAP = 128 };
struct helper_place {
	char text[HELPER_PLACE_CAP];
};

struct helper_work {
	const char *name; /* as ps shows it, at most 15 characters */
	/* Runs in the helper, once for each request. `context` is a copy made when the helper
	 * was started. Fills the reply, which is empty at first. */
	void (*serve)(void *context, const struct str *request, struct str *reply);
	/* Runs in the helper before the first request; may be NULL. */
	void (*begin)(void *context, struct helper_place *place);
	/* A descriptor that the helper keeps as HELPER_WAKE_FD, so that its owner can make it
	 * readable while a request is served; 0: none. */
	int wake_fd;
	/* Runs in the helper after the last request; may be NULL. */
	void (*end)(void *context);
	void *context;
};

/* The descriptors that the helper has open beside standard input and output: its end of the
 * socket, readable when the owner sends a request or wants the helper to end; and
 * helper_work.wake_fd. */
enum { HELPER_FD = 3, HELPER_WAKE_FD = 4 };

struct helper;

/* Starts a helper. */
int helper_new(struct helper **h, const struct helper_work *work, struct err *e);

/* Sends a request. ERR_BUSY: an earlier request has no reply yet; ERR_WORLD: the helper has
 * ended. */
int helper_send(struct helper *h, const void *request, size_t len, struct err *e);
/* Waits at most `wait_ms` for the reply, which is valid until the next request. ERR_BUSY: there
 * is none yet; ERR_WORLD: the helper has ended, and a new one is needed. */
int helper_receive(struct helper *h, int64_t wait_ms, const struct str **reply, struct err *e);
/* Readable when there is something to receive: for poll(2). */
int helper_fd(const struct helper *h);
/* Copies what the helper left in its place, escaped; "" at first. */
void helper_where(const struct helper *h, char *dst, size_t cap);
pid_t helper_pid(const struct helper *h);

/* Asks the helper to end, and does not wait: it ends while its owner does other work before
 * helper_free(). No request may follow. */
void helper_dismiss(struct helper *h);
/* Asks the helper to end, waits at most `wait_ms`, then kills it. Returns -1 when it has ended.
 * Otherwise the process is stuck; returns its pidfd for helper_is_gone(), or -1 if the kernel
 * has no pidfds. */
int helper_free(struct helper *h, int64_t wait_ms);

/* Whether a process that was left behind has ended. If so, closes its pidfd. */
bool helper_is_gone(int pidfd);
