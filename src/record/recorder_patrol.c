/* Lets the process that asks the driver make the glances until the next drain, and that
 * drain, on its own, so that the recorder can sleep. The recorder wakes up when that process
 * returns (at the drain, or when something has changed), when a process exits, when a stop
 * is requested, or when a glance is late. */
#include <poll.h>

#include "record/health.h"
#include "record/recorder_private.h"

/* Exits within this time of each other count as the same moment. */
#define SAME_MOMENT_US 50000
/* If the recorder wakes up later than this, it was stopped meanwhile, perhaps together with
 * the source. */
#define FROZEN_US 1000000

static enum health health_now(const struct recorder *r)
{
	return health_of(&r->watch, r->driver_fault.on, r->incomplete);
}

bool recorder_can_patrol(struct recorder *r)
{
	const struct source *s = r->late ? NULL : worker_source(r->worker);
	return s && r->o->deadline_ms > 0 && round_can_patrol(s) &&
	       schedule_can_patrol(&r->schedule, clock_now(r->clock).boot_us, health_now(r));
}

/* Asks for glances until the next stop of the schedule, and for the round that is due there.
 * A scan is not delegated, because it may have to start another process. */
static void plan(struct recorder *r)
{
	int64_t until_us = schedule_next_stop(&r->schedule);
	struct round *round = r->round;
	r->planned = r->schedule;
	schedule_ask(&r->planned, until_us, health_now(r), round);
	round->patrol = (struct patrol){ .until_us = until_us,
		.only = round->scan || !round->drain,
		.deadline_ms = r->o->deadline_ms,
		.begun_us = r->begun_us,
		.pace = r->schedule.pace,
		.clocks = r->clock_watch };
	round->scan = false;
}

static void recall(struct recorder *r)
{
	struct source_host *host = r->o->source.host;
	if (!r->recalled)
		host->recall(host, true);
	r->recalled = true;
}

/* A process has exited: notes the moment, and requests a look at its card. */
static void note_exit(struct recorder *r)
{
	struct moment now = clock_now(r->clock);
	bool in_time = now.boot_us <= r->round->patrol.until_us;
	r->exit = (struct exit_notice){ .on = true,
		.lo_us = in_time ? now.wall_us : now.wall_us - (now.boot_us - r->exits_us),
		.at = now };
	recall(r);
}

void recorder_take_exits(struct recorder *r)
{
	struct moment now = clock_now(r->clock);
	bool at_once = now.boot_us - r->exit.at.boot_us < SAME_MOMENT_US;
	if (!r->exit.on)
		return;
	r->exit.on = false;
	if (watch_exits(&r->watch, r->late ? NULL : r->round, r->exit.lo_us / 1000,
		    (at_once ? r->exit.at.wall_us : now.wall_us) / 1000))
		schedule_soon(&r->schedule, now.boot_us);
	r->exits_us = now.boot_us;
}

/* How much longer the source may take: a glance must be made within a deadline after it is
 * due. */
static int64_t patience_us(const struct recorder *r, int64_t begun_us)
{
	struct source_host *host = r->o->source.host;
	int64_t due_us = host->due_us(host), now_us = clock_monotonic_us();
	int64_t deadline_ms = r->o->deadline_ms;
	if (due_us < begun_us)
		due_us = begun_us;
	if (r->stopped && deadline_ms > RECORDER_LAST_MS)
		deadline_ms = RECORDER_LAST_MS;
	return due_us + deadline_ms * 1000 - now_us;
}

/* Waits until the source has returned. ERR_BUSY: it is late. */
static int wait_for_source(struct recorder *r, struct err *e)
{
	int64_t begun_us = clock_monotonic_us(), left_us;
	int back_fd = worker_fd(r->worker);
	while ((left_us = patience_us(r, begun_us)) > 0) {
		const struct lives *l = &r->watch.lives;
		struct pollfd fds[] = { { .fd = back_fd, .events = POLLIN },
			{ .fd = r->stopped ? -1 : r->o->stop_fd, .events = POLLIN },
			{ .fd = l->pidfds && !r->exit.on ? l->exits_fd : -1,
				.events = POLLIN } };
		int64_t end_us = clock_monotonic_us() + left_us;
		int ready = poll(fds, 3, (int)(left_us / 1000) + 1);
		if (clock_monotonic_us() > end_us + FROZEN_US)
			begun_us = clock_monotonic_us();
		if (ready > 0 && fds[2].revents)
			note_exit(r);
		else if (!r->exit.on)
			r->exits_us = clock_now(r->clock).boot_us;
		if (ready > 0 && fds[0].revents)
			break;
		if (ready > 0 && fds[1].revents && recorder_is_stopped(r))
			recall(r);
	}
	return worker_result(r->worker, 0, e);
}

void recorder_patrol(struct recorder *r)
{
	struct source_host *host = r->o->source.host;
	struct err e = { 0 };
	if (r->recalled)
		host->recall(host, false);
	r->recalled = false;
	recorder_notice_exits(r, false);
	plan(r);
	worker_begin(r->worker, JOB_OWN);
	int rc = wait_for_source(r, &e);
	r->late = rc == ERR_BUSY;
	recorder_take(r, rc, &e);
}
