/* Sessions that are being ended. Each goes through the same steps, and none of them waits:
 *
 *   confirm   fresh samples of the driver over config_end.confirm_ms, CPU time, terminals,
 *             power: any sign of life spares the session
 *   allow     the owner is asked whether it may still be ended, before each signal
 *   record    the owner commits a row; if it cannot, nothing is done
 *   signal    gua-end checks each process again and sends SIGTERM; or the session's manager
 *             (scancel, podman stop) is run. A batch at a time, with a fresh look before each
 *   grace     until all have ended, at most plan.grace_ms
 *   confirm, allow, record, signal
 *             the same once more before SIGKILL, if the plan says so
 *   verify    the driver is asked whether the memory is free
 *
 * From the first warning on, gua-end holds each process (endings_hold), so that a pid that is
 * given to another process can never be meant. */
#ifndef GUA_POLICY_ENDINGS_H
#define GUA_POLICY_ENDINGS_H

#include <poll.h>

#include "base/clock.h"
#include "config/config.h"
#include "present/live.h"
#include "policy/fresh.h"

/* A batch has this many processes: between two of them others are attended to. */
enum { ENDING_BATCH = 64, ENDING_CARDS = 32, ENDINGS_MOST = 8, ENDING_TEXT_CAP = 256 };

struct ending_card {
	char uuid[UUID_CAP];
	double idle_power_w; /* the floor; NAN: unknown */
};

/* A session that is to be ended. */
struct ending_plan {
	int64_t ticket; /* comes back with the outcome */
	/* In the order of signals; borrowed until the outcome was taken. */
	const struct end_process *processes;
	size_t n_processes;
	struct ending_card cards[ENDING_CARDS];
	size_t n_cards;
	char job[LABEL_CAP], container[LABEL_CAP]; /* labels of its manager, or "" */
	int64_t idle_below; /* use from this on spares it, percent of the SMs */
	int64_t notice_ms;  /* delivery of the final notice: keys pressed since spare it */
	int64_t grace_ms;
	bool kill; /* SIGKILL after the grace period */
};

/* A step that must be on record before it is taken. */
struct ending_step {
	int64_t ticket;
	const char *what; /* "SIGTERM", "SIGKILL", "podman stop 3f2a91c4d5e6"; of one batch of
			     several: "SIGTERM, processes 65 to 128 of 1500" */
	const char *evidence;
};

enum ending_how {
	ENDING_SPARED,	   /* a sign of life, a stop order, or no record: nothing was done, or
			      nothing further; the text says which */
	ENDING_ENDED,	   /* all processes have ended, and the memory is free */
	ENDING_STILL_HELD, /* they have ended, and memory is still in use */
	ENDING_FAILED,	   /* they have not ended, or could not be signalled */
	ENDING_COMPUTES,   /* they use the CPU: nothing was done */
	ENDING_HOWS,
};
extern const char *const ending_how_names[ENDING_HOWS]; /* spared ended still-held failed
							   computes */

struct ending_outcome {
	int64_t ticket;
	enum ending_how how;
	int64_t freed_bytes; /* -1: unknown */
	char text[ENDING_TEXT_CAP];
};

struct endings_options {
	const struct config_end *config; /* borrowed */
	const char *program, *socket;	 /* as in end_link_new(); borrowed */
	const struct clock *clock;	 /* borrowed */
	void *context;
	/* Returns 0 once the step is stored for good. */
	int (*record)(void *context, const struct ending_step *step, struct err *e);
	/* The driver, which is asked only while something is being ended. */
	int (*open_live)(void *context, struct live **l, struct err *e);
	void (*close_live)(void *context, struct live *l);
	/* Asked before each signal and each manager; NULL: yes. Non-zero: spared, `e` says why.
	 * `brief`: all was asked just before, for another process of the same batch. */
	int (*allowed)(void *context, int64_t ticket, bool brief, struct err *e);
};

struct endings;

int endings_new(struct endings **es, const struct endings_options *o, struct err *e);
void endings_free(struct endings *es);

/* At the first warning: holds a process. ERR_NOTHING: it has ended. ERR_USAGE: it must not be
 * signalled. ERR_BUSY: enough are held; it can be signalled all the same. The error says why.
 */
int endings_hold(struct endings *es, const struct end_process *p, struct err *e);
void endings_release(struct endings *es, const struct end_process *p);

/* ERR_BUSY: enough are being ended; try again later. */
int endings_begin(struct endings *es, const struct ending_plan *plan, struct err *e);
/* Does what is due, without waiting for anything but gua-end. */
void endings_step(struct endings *es);
/* Takes an outcome; false: there is none. */
bool endings_next(struct endings *es, struct ending_outcome *o);

/* For poll(2): fills at most ENDINGS_MOST + 2 entries and returns how many. */
size_t endings_fds(const struct endings *es, struct pollfd *fds);
/* Until endings_step() has something to do; -1: nothing is being ended. */
int64_t endings_wait_ms(const struct endings *es);
/* Whether the driver or a manager is being waited for. */
bool endings_is_asking(const struct endings *es);

#endif
