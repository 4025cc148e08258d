/* Sessions that are being ended, and those that may be. Each goes through the same steps;
 * no step blocks:
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
#pragma once

#include "policy/enforcer.h"

/* Largest number of sessions that are being ended at the same time. */
enum { ENDINGS_MOST = 8, ENDINGS_FDS = ENDINGS_MOST + 2 };

struct endings_options {
	struct enforcer *enforcer;    /* borrowed; its policy.db may be closed and opened again
					 between calls */
	const char *program, *socket; /* as in end_link_new() */
	const char *nvml;	      /* the driver's library; NULL: the usual one */
	struct clock *look_clock;     /* the clock that times the looks at the driver */
};

struct endings;

/* All of the options are borrowed. */
int endings_new(struct endings **es, const struct endings_options *o, struct err *e);
void endings_free(struct endings *es);

/* Call after a pass has stored a step: holds the processes of the session, begins to end it,
 * or releases it. */
void endings_follow(struct endings *es, const struct enforcer_step *s);
/* Call after all steps of a pass: logs in one line which processes cannot be ended. */
void endings_passed(struct endings *es);
/* Call for each session whose stored state is STAGE_ENDING. If no run is ending it now, because
 * an earlier run began to or the result was lost, spares it and changes its state. */
int endings_left(struct endings *es, const char *key, const char *user,
	struct policy_state *state, struct err *e);

/* Does what is due, without waiting for anything but gua-end. */
void endings_step(struct endings *es);
/* Stores the results of endings that are over and queues the notices. What cannot be stored
 * is tried again later. */
void endings_store(struct endings *es);

/* For poll(2): fills at most ENDINGS_FDS entries and returns how many. */
size_t endings_fds(const struct endings *es, struct pollfd *fds);
/* How long until endings_step() or endings_store() has work; -1: nothing is being ended. */
int64_t endings_wait_ms(const struct endings *es);
/* Whether a reply of the driver or of a manager is outstanding. */
bool endings_is_asking(const struct endings *es);
