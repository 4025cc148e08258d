/* Asks the driver for the recorder, and notices what happens meanwhile: clock steps, processes
 * that exit, requests to stop. */
#include <poll.h>

#include "base/log.h"
#include "base/str.h"
#include "record/recorder_private.h"
#include "driver/ring.h"

int64_t recorder_now_ms(struct recorder *r)
{
	return clock_now(r->clock).wall_us / 1000;
}

static struct card_past card_past(void *context, const char *uuid)
{
	struct recorder *r = context;
	/* Without the store, it is unknown how much of the driver's ring was already
	 * counted. */
	if (r->store_fault.on)
		return (struct card_past){ INT64_MAX, -1 };
	return store_card_past(r->store, uuid);
}

/* The whole driver failed: logs this once; the status file has the current reason. Samples
 * that are still in its ring when it answers again are used, so only older time becomes
 * unobserved. */
static void driver_failed(struct recorder *r, const struct err *e)
{
	int64_t now = recorder_now_ms(r);
	if (fault_raise(&r->driver_fault, now, "%s", e->text))
		watch_event(&r->watch, &(struct occurrence){ now, EVENT_DRIVER_DOWN, -1, 0 },
			"%s", e->text);
	str_copy(r->driver_fault.text, sizeof(r->driver_fault.text), e->text);
	watch_blind(&r->watch, now - RING_MS);
}

static void driver_works(struct recorder *r)
{
	int64_t now = recorder_now_ms(r);
	if (fault_clear(&r->driver_fault, now))
		watch_event(&r->watch, &(struct occurrence){ now, EVENT_DRIVER_UP, -1, 0 },
			"the driver answers again");
}

/* Notices clock steps and suspends; true: drained samples cannot be placed in time. */
static bool clock_stepped(struct recorder *r)
{
	struct moment m = clock_now(r->clock);
	int64_t ms = clock_watch_suspend_us(&r->clock_watch, &m) / 1000;
	if (ms) {
		log_notice("the host was suspended for %.1f s", (double)ms / 1000);
		watch_event(&r->watch,
			&(struct occurrence){ m.wall_us / 1000, EVENT_SUSPEND, -1, ms },
			"suspended for %.1f s", (double)ms / 1000);
	}
	int64_t step_us = clock_watch_step_us(&r->clock_watch, &m);
	if (!step_us)
		return false;
	int64_t old_now_ms = (m.wall_us - step_us) / 1000;
	log_notice("the clock was set %+.3f s; the time since the last reading is not observed",
		(double)step_us / 1e6);
	watch_event(&r->watch,
		&(struct occurrence){ m.wall_us / 1000, EVENT_CLOCK_STEP, -1, step_us / 1000 },
		"clock set %+.3f s", (double)step_us / 1e6);
	watch_clock_step(&r->watch, r->round, old_now_ms, m.wall_us / 1000);
	return true;
}

/* Notices processes that have exited since the last call. `exact`: the recorder was waiting for
 * exits, so the moment of the exit is now. */
void recorder_notice_exits(struct recorder *r, bool exact)
{
	struct moment m = clock_now(r->clock);
	int64_t lo_us = exact ? m.wall_us : m.wall_us - (m.boot_us - r->exits_us);
	struct round *round = r->late ? NULL : r->round;
	if (watch_exits(&r->watch, round, lo_us / 1000, m.wall_us / 1000))
		schedule_soon(&r->schedule, m.boot_us);
	r->exits_us = m.boot_us;
}

/* Takes the results of a round. */
static int take_round(struct recorder *r, struct source *s, struct err *e)
{
	int rc = watch_cards(
		&r->watch, s, r->round->ended_ms, &(struct watch_past){ card_past, r }, e);
	r->watch.pace.stall_ms = round_pace_stall_us(&r->schedule.pace) / 1000;
	return rc ? rc : watch_round(&r->watch, s, r->round, e);
}

/* Whether a stop was requested; handles a signal that only asks to reload names. */
bool recorder_is_stopped(struct recorder *r)
{
	struct pollfd signal = { .fd = r->o->stop_fd, .events = POLLIN };
	if (r->stopped || poll(&signal, 1, 0) <= 0)
		return r->stopped;
	r->stopped = !r->o->reload || !r->o->reload(r->o->context);
	if (!r->stopped)
		reader_ask_again(r->reader);
	return r->stopped;
}

/* Waits for the worker's job, at most `wait_ms` and not after a stop was requested. */
int recorder_wait_for_job(struct recorder *r, int64_t wait_ms, struct err *e)
{
	int64_t left_ms = wait_ms, until_us = clock_monotonic_us() + wait_ms * 1000;
	int stop_fd = r->ending ? -1 : r->o->stop_fd;
	int rc;
	do {
		rc = worker_result_or_stop(r->worker, left_ms, stop_fd, e);
		left_ms = (until_us - clock_monotonic_us()) / 1000;
	} while (rc == ERR_BUSY && left_ms > 0 && !recorder_is_stopped(r));
	return rc;
}

static void begin_round(struct recorder *r)
{
	int64_t now_us = clock_now(r->clock).boot_us;
	/* After a stall, process lists are read again even if used memory is unchanged. */
	r->round->look_all |= now_us - r->begun_us > round_pace_stall_us(&r->schedule.pace);
	r->round->patrol.until_us = 0;
	r->begun_us = now_us;
	worker_begin(r->worker, JOB_OWN);
}

/* Begins the round that r->round asks for and waits for it. If an earlier round is late,
 * only checks whether that one has ended: its readings are still valid. */
static int run_round(struct recorder *r, struct err *e)
{
	int64_t wait_ms = r->late ? 0 : r->o->deadline_ms;
	if (r->ending)
		wait_ms = r->o->deadline_ms < RECORDER_LAST_MS ? r->o->deadline_ms
							       : RECORDER_LAST_MS;
	if (!r->late)
		begin_round(r);
	int rc = recorder_wait_for_job(r, wait_ms, e);
	/* The plans from before the delay were replaced. */
	if (r->late)
		r->planned = r->schedule;
	r->late = rc == ERR_BUSY;
	return rc;
}

/* Exits are handled in order of time: before a round that ended later. */
static void notice_exits_before(struct recorder *r)
{
	if (!r->exit.on && !r->round->more)
		recorder_notice_exits(r, false);
	else if (r->exit.on && r->exit.at.boot_us <= r->round->ended_us)
		recorder_take_exits(r);
}

/* Takes one of the rounds that were made. */
static int take_next(struct recorder *r, struct source *s, struct err *e)
{
	const struct round *round = r->round;
	driver_works(r);
	r->incomplete = s->incomplete;
	r->begun_us = round->begun_us;
	notice_exits_before(r);
	if (round->due) {
		r->planned.pace = r->schedule.pace;
		r->schedule = r->planned;
	}
	schedule_done(&r->schedule, round->ended_us, round, round->ended_us - round->begun_us,
		s->ring_us);
	/* The source returns when a clock was set, so only the last round can be after that. */
	if (!round->more && clock_stepped(r))
		return 0;
	return take_round(r, s, e);
}

bool recorder_take(struct recorder *r, int rc, struct err *e)
{
	struct source *s = rc ? NULL : worker_source(r->worker);
	int next = s ? round_next(s, r->round, e) : rc;
	while (next > 0) {
		rc = take_next(r, s, e);
		next = rc ? rc : round_next(s, r->round, e);
	}
	recorder_take_exits(r);
	/* A round that was interrupted by a stop is not a fault. */
	if (next && !(next == ERR_BUSY && !r->ending && recorder_is_stopped(r)))
		driver_failed(r, e);
	return next == 0;
}

/* Asks the driver. False: it failed, and the failure has been handled. */
bool recorder_ask(struct recorder *r)
{
	struct err e = { 0 };
	int rc = run_round(r, &e);
	return recorder_take(r, rc, &e);
}
