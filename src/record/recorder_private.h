/* The inside of the recorder, shared by recorder.c and recorder_ask.c. */
#ifndef GUA_RECORD_RECORDER_PRIVATE_H
#define GUA_RECORD_RECORDER_PRIVATE_H

#include "base/fault.h"
#include "record/recorder.h"
#include "record/schedule.h"
#include "record/watch.h"
#include "base/clock.h"
#include "proc/reader.h"
#include "driver/host/round.h"
#include "driver/host/worker.h"

struct recorder {
	const struct recorder_options *o;
	struct clock *clock;
	struct store *store;
	struct worker *worker;
	struct reader *reader;
	struct watch watch;
	struct round *round; /* belongs to the worker: used only between its jobs */
	bool late;	     /* its job has not ended in time: r->round must not be used */
	bool stopped;	     /* a stop was requested */
	bool ending;	     /* the last round */
	int64_t begun_us;    /* boot time: when the last round was begun */
	struct schedule schedule;
	/* While the source is on patrol (recorder_patrol.c). */
	struct schedule planned; /* the schedule after the round at its end */
	bool recalled;		 /* it was told to return */
	struct exit_notice {
		bool on;	  /* a process has exited and is not accounted yet */
		int64_t lo_us;	  /* wall clock: not before this ... */
		struct moment at; /* ... and not after this */
	} exit;
	bool run_begun;	 /* the store has this run's row */
	bool told_ready; /* o->ready was called */
	struct clock_watch clock_watch;
	int64_t exits_us; /* boot time: exits before this have been noticed */
	int64_t ticks;
	int64_t tick_ms; /* when the last tick was stored; -1: none yet */
	bool incomplete; /* a part of the source has failed */
	struct fault driver_fault, store_fault, compact_fault, wal_fault, process_fault;
};

/* At the end, the driver is waited for at most this long. */
#define RECORDER_LAST_MS 2000

/* Wall clock. */
int64_t recorder_now_ms(struct recorder *r);
/* Asks the driver for what r->round says. False: it failed, and the failure has been handled.
 */
bool recorder_ask(struct recorder *r);
/* Whether the next readings can be left to the source; then does so, and takes them. */
bool recorder_can_patrol(struct recorder *r);
void recorder_patrol(struct recorder *r);
/* Takes all rounds that the worker's job has made; `rc` and `e` say how it ended. False: the
 * driver failed, and the failure has been handled. */
bool recorder_take(struct recorder *r, int rc, struct err *e);
/* Takes the exits that were noticed while the source was on patrol. */
void recorder_take_exits(struct recorder *r);
/* Waits for the worker's job, at most `wait_ms` and not after a stop was requested. */
int recorder_wait_for_job(struct recorder *r, int64_t wait_ms, struct err *e);
/* Whether a stop was requested; handles a signal that only asks to reload names. */
bool recorder_is_stopped(struct recorder *r);
/* Notices processes that have exited since the last call. `exact`: the recorder was waiting for
 * exits, so the moment of the exit is now. */
void recorder_notice_exits(struct recorder *r, bool exact);

#endif
