/* Sessions that are being ended, and those that may be. Each goes through the same steps, and
 * none of them waits:
 *
 *   confirm   fresh samples of the driver over config_end.confirm_ms, CPU time, terminals,
 *             power: any sign of life spares the session
 *   allow     whether it may still be ended, before each signal
 *   record    a row is committed; if it cannot be, nothing is done
 *   signal    gua-end checks each process again and sends SIGTERM; or the session's manager
 *             (scancel, podman stop) is run. A batch at a time, with a fresh look before each
 *   grace     until all have ended, at most config_end.grace_ms
 *   confirm, allow, record, signal
 *             the same once more before SIGKILL, if the rule says so
 *   verify    the driver is asked whether the memory is free
 *
 * From the first warning on, gua-end holds each process, so that a pid that is
 * given to another process can never be meant. Every step becomes
 * a row of policy.db, and people are told the result. Only for gua-enforce. */
#ifndef GUA_POLICY_ENDINGS_H
#define GUA_POLICY_ENDINGS_H

#include <poll.h>

#include "policy/enforcer.h"

/* At most this many at a time. */
enum { ENDINGS_MOST = 8, ENDINGS_FDS = ENDINGS_MOST + 2 };

struct endings_options {
	struct enforcer *enforcer;    /* its file may be opened and closed in between */
	const char *program, *socket; /* as in end_link_new() */
	const char *nvml;	      /* the driver's library; NULL: the usual one */
	struct clock *look_clock;     /* of the looks at the driver */
};

struct endings;

/* All of the options are borrowed. */
int endings_new(struct endings **es, const struct endings_options *o, struct err *e);
void endings_free(struct endings *es);

/* After a pass has stored a step: holds the processes of the session, begins to end it, or lets
 * go. */
void endings_follow(struct endings *es, const struct enforcer_step *s);
/* After all steps of a pass: says in one line which processes cannot be ended. */
void endings_passed(struct endings *es);
/* Sessions that another run began to end, or whose result was lost: nobody ends them now, so
 * they are spared. */
int endings_left(struct endings *es, int64_t now_ms, struct err *e);

/* Does what is due, without waiting for anything but gua-end. */
void endings_step(struct endings *es);
/* Stores what came of those that are over, and tells people. What cannot be stored waits. */
void endings_store(struct endings *es);

/* For poll(2): fills at most ENDINGS_FDS entries and returns how many. */
size_t endings_fds(const struct endings *es, struct pollfd *fds);
/* Until endings_step() and endings_store() have something to do; -1: nothing is being ended. */
int64_t endings_wait_ms(const struct endings *es);
/* Whether the driver or a manager is being waited for. */
bool endings_is_asking(const struct endings *es);

#endif
