/* The loop of the recorder: decides what to ask the driver and when to tick, and handles
 * failures of the driver, the store and the clock. */
#include "record/recorder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/str.h"
#include "record/host.h"
#include "record/schedule.h"
#include "record/watch.h"
#include "sample/clock_watch.h"
#include "sample/reader.h"
#include "sample/ring.h"
#include "sample/round.h"
#include "sample/worker.h"
#include "source/kind.h"
#include "store/statusfile.h"

/* A stall: no glance for twice the time between glances plus this. */
#define STALL_US 1000000
/* Slots that one tick may move to coarser tables. */
#define COMPACT_SLOTS 10

struct recorder {
	const struct recorder_options *o;
	struct clock *clock;
	struct store *store;
	struct worker *worker;
	struct reader *reader;
	struct watch watch;
	struct round *round; /* belongs to the worker: used only between its jobs */
	bool late;	     /* its job has not ended in time: r->round must not be used */
	struct moment begun; /* when the last round was begun */
	struct schedule schedule;
	bool run_begun;	 /* the store has this run's row */
	bool told_ready; /* o->ready was called */
	struct clock_watch clock_watch;
	int64_t exits_us; /* boot time: exits before this have been noticed */
	int64_t ticks;
	int64_t tick_ms; /* when the last tick was stored; -1: none yet */
	bool incomplete; /* a part of the source has failed */
	struct fault driver_fault, store_fault, compact_fault, wal_fault, process_fault;
};

static int64_t now_ms(struct recorder *r)
{
	return clock_now(r->clock).wall_us / 1000;
}

static int64_t card_seen(void *context, const char *uuid)
{
	struct recorder *r = context;
	/* Without the store, what the driver's ring holds may have been counted before. */
	return r->store_fault.on ? now_ms(r) : store_card_seen(r->store, uuid);
}

/* The whole driver failed: logs it once. Samples that are still in its ring when it answers
 * again are used, so only older time becomes unobserved. */
static void driver_failed(struct recorder *r, const struct err *e)
{
	int64_t now = now_ms(r);
	if (fault_raise(&r->driver_fault, now, "%s", e->text))
		watch_event(&r->watch, now, EVENT_DRIVER_DOWN, -1, 0, "%s", e->text);
	watch_blind(&r->watch, now - RING_MS);
}

static void driver_works(struct recorder *r)
{
	int64_t now = now_ms(r);
	if (fault_clear(&r->driver_fault, now))
		watch_event(&r->watch, now, EVENT_DRIVER_UP, -1, 0, "the driver answers again");
}

/* Notices clock steps and suspends; true: drained samples cannot be placed in time. */
static bool clock_stepped(struct recorder *r)
{
	struct moment m = clock_now(r->clock);
	int64_t ms = clock_watch_suspend_us(&r->clock_watch, &m) / 1000;
	if (ms) {
		log_notice("the host was suspended for %.1f s", (double)ms / 1000);
		watch_event(&r->watch, m.wall_us / 1000, EVENT_SUSPEND, -1, ms,
			"suspended for %.1f s", (double)ms / 1000);
	}
	int64_t step_us = clock_watch_step_us(&r->clock_watch, &m);
	if (!step_us)
		return false;
	int64_t old_now_ms = (m.wall_us - step_us) / 1000;
	log_notice("the clock was set %+.3f s; the time since the last reading is not observed",
		(double)step_us / 1e6);
	watch_event(&r->watch, m.wall_us / 1000, EVENT_CLOCK_STEP, -1, step_us / 1000,
		"clock set %+.3f s", (double)step_us / 1e6);
	watch_clock_step(&r->watch, r->round, old_now_ms, m.wall_us / 1000);
	return true;
}

/* Notices processes that have exited since the last call. `exact`: the recorder was waiting for
 * exits, so the moment of the exit is now. */
static void notice_exits(struct recorder *r, bool exact)
{
	struct moment m = clock_now(r->clock);
	int64_t lo_us = exact ? m.wall_us : m.wall_us - (m.boot_us - r->exits_us);
	struct round *round = r->late ? NULL : r->round;
	if (watch_exits(&r->watch, round, lo_us / 1000, m.wall_us / 1000))
		schedule_soon(&r->schedule, m.boot_us);
	r->exits_us = m.boot_us;
}

/* Takes the results of the round. */
static int take_round(struct recorder *r, struct source *s, struct err *e)
{
	int64_t now = now_ms(r);
	int rc = watch_cards(&r->watch, s, now, card_seen, r, e);
	r->watch.pace.stall_ms = (2 * r->schedule.apart_us + STALL_US) / 1000;
	return rc ? rc : watch_round(&r->watch, s, r->round, e);
}

/* Begins the round that r->round asks for and waits for it. If an earlier round is late, only
 * checks whether that one has ended: its readings are as good as new ones. */
static int run_round(struct recorder *r, struct err *e)
{
	int rc;
	if (r->late) {
		rc = worker_result(r->worker, 0, e);
	} else {
		struct moment now = clock_now(r->clock);
		int64_t apart_us = now.boot_us - r->begun.boot_us;
		/* After a stall, process lists are read again even if used memory is the same.
		 */
		r->round->look_all |= apart_us > 2 * r->schedule.apart_us + STALL_US;
		r->begun = now;
		rc = worker_run(r->worker, JOB_OWN, e);
	}
	r->late = rc == ERR_BUSY;
	return rc;
}

/* Asks the driver. False: it failed, and the failure has been handled. */
static bool ask(struct recorder *r)
{
	struct err e = { 0 };
	int rc = run_round(r, &e);
	struct source *s = rc ? NULL : worker_source(r->worker);
	struct moment ended = clock_now(r->clock);
	if (s) {
		driver_works(r);
		r->incomplete = s->incomplete;
		notice_exits(r, false);
		r->round->begun_ms = r->begun.wall_us / 1000;
		r->round->ended_ms = ended.wall_us / 1000;
		schedule_done(&r->schedule, ended.boot_us, r->round,
			ended.boot_us - r->begun.boot_us, s->ring_us);
		rc = clock_stepped(r) ? 0 : take_round(r, s, &e);
	}
	if (rc)
		driver_failed(r, &e);
	return rc == 0;
}

static enum health health_of(const struct recorder *r)
{
	if (r->driver_fault.on)
		return HEALTH_DOWN;
	for (size_t i = 0; i < r->watch.n_cards; i++)
		if (r->watch.entries[i].status != CARD_STATUS_OK && !r->watch.cards[i].gone)
			return HEALTH_CARD;
	return r->incomplete ? HEALTH_CARD : HEALTH_GOOD;
}

static bool raise_store_fault(struct recorder *r, const struct err *e)
{
	return fault_raise(&r->store_fault, now_ms(r),
		"%s; keeping what fits in memory until it works", e->text);
}

static void report_store_fault(struct recorder *r, const struct err *e)
{
	if (raise_store_fault(r, e))
		watch_event(&r->watch, now_ms(r), EVENT_STORE_FAULT, -1, 0, "%s", e->text);
}

/* Whether the recorder starts although the store cannot be written now. A service does if that
 * may pass: a full disk, a lock. It goes on as it would if this happened later. */
static bool starts_without_store(struct recorder *r, int rc, const struct err *e)
{
	if (rc != ERR_BUSY || !r->o->wait_for_driver)
		return false;
	raise_store_fault(r, e);
	return true;
}

static int open_store(struct recorder *r, struct err *e)
{
	int rc = store_open(&r->store, r->o->db, e);
	return starts_without_store(r, rc, e) ? store_new(&r->store, r->o->db, e) : rc;
}

static void compact(struct recorder *r)
{
	struct err e = { 0 };
	bool more = false;
	const struct compaction compaction = { now_ms(r), r->o->keep, COMPACT_SLOTS };
	if (store_compact(r->store, &compaction, &more, &e))
		fault_raise(&r->compact_fault, now_ms(r), "compaction: %s", e.text);
	else
		fault_clear(&r->compact_fault, now_ms(r));
	if (store_check_wal(r->store, &e))
		fault_raise(&r->wal_fault, now_ms(r), "%s", e.text);
	else
		fault_clear(&r->wal_fault, now_ms(r));
}

/* Writes all sums to the store; what the store does not take stays in the ledger. */
static int commit(struct recorder *r, struct err *e)
{
	struct tick t;
	int64_t dropped_ms = r->watch.ledger.dropped_ms;
	int rc = watch_tick(&r->watch, &t, now_ms(r), e);
	if (!rc)
		rc = store_write_tick(r->store, &t, e);
	if (rc) {
		report_store_fault(r, e);
		watch_unstored(&r->watch);
		return rc;
	}
	watch_stored(&r->watch);
	r->tick_ms = t.at_ms;
	if (fault_clear(&r->store_fault, now_ms(r)) && dropped_ms > 0)
		watch_event(&r->watch, now_ms(r), EVENT_STORE_FAULT, -1, dropped_ms,
			"%.1f GPU-seconds found no room in memory and are lost",
			(double)dropped_ms / 1000);
	compact(r);
	return 0;
}

static const struct fault *fault_at(const struct recorder *r, size_t i)
{
	const struct fault *const fixed[] = { &r->driver_fault, &r->store_fault,
		&r->compact_fault, &r->wal_fault, &r->process_fault };
	size_t n_fixed = sizeof(fixed) / sizeof(fixed[0]);
	if (i < n_fixed)
		return fixed[i];
	size_t card = (i - n_fixed) / 3;
	if (card >= r->watch.n_cards)
		return NULL;
	const struct watched *w = &r->watch.cards[card];
	const struct fault *const own[] = { &w->fault, &w->suspect, &w->unlisted };
	return own[(i - n_fixed) % 3];
}

/* Writes the current faults to the file that `gua status` reads. */
static void publish_faults(struct recorder *r)
{
	reader_check(r->reader, &r->process_fault, now_ms(r));
	const struct fault *faults[STATUS_MAX_FAULTS];
	size_t n = 0;
	const struct fault *f;
	for (size_t i = 0; (f = fault_at(r, i)) && n < STATUS_MAX_FAULTS; i++)
		if (f->on)
			faults[n++] = f;
	statusfile_publish(r->o->status, r->tick_ms, faults, n);
}

static void log_tick(struct recorder *r)
{
	size_t ok = 0, holders = 0;
	for (size_t i = 0; i < r->watch.n_cards; i++) {
		ok += r->watch.entries[i].status == CARD_STATUS_OK;
		for (size_t k = 0; k < r->watch.cards[i].holders.n; k++)
			holders += holder_is_open(&r->watch.cards[i].holders.items[k]);
	}
	log_notice(
		"tick %lld: %zu of %zu cards read, %zu holders, %zu usage and %zu holding sums",
		(long long)r->ticks, ok, r->watch.n_cards, holders, r->watch.ledger.usage.n,
		r->watch.ledger.holding.n);
}

static void tick(struct recorder *r)
{
	struct err e = { 0 };
	r->ticks++;
	if (r->o->verbose)
		log_tick(r);
	/* While the driver does not answer, time becomes unobserved tick by tick. */
	if (r->driver_fault.on)
		watch_blind(&r->watch, now_ms(r) - RING_MS);
	commit(r, &e);
	publish_faults(r);
}

/* Waits until the next work is due or a process ends; true: a stop was requested. */
static bool wait_for_work(struct recorder *r, int64_t until_us)
{
	const struct lives *l = &r->watch.lives;
	struct pollfd fds[] = { { .fd = r->o->stop_fd, .events = POLLIN },
		{ .fd = l->exits_fd, .events = POLLIN } };
	notice_exits(r, false);
	int ready = clock_wait(r->clock, until_us, fds, l->pidfds ? 2 : 1);
	if (ready > 0 && fds[0].revents) {
		if (!r->o->reload || !r->o->reload(r->o->context))
			return true;
		reader_ask_again(r->reader);
	}
	/* After waking up late, the moment of an exit is not known exactly. */
	notice_exits(r, clock_now(r->clock).boot_us <= until_us);
	return false;
}

/* Asks the driver, and ticks when it is time, until done (true) or stopped (false). */
static bool loop(struct recorder *r)
{
	while (r->o->max_ticks == 0 || r->ticks < r->o->max_ticks) {
		if (wait_for_work(r, schedule_next(&r->schedule)))
			return false;
		int64_t now_us = clock_now(r->clock).boot_us;
		if (now_us < schedule_next(&r->schedule))
			continue;
		if (r->o->alive)
			r->o->alive(r->o->context);
		bool is_tick = schedule_is_tick(&r->schedule, now_us);
		struct round unused = { 0 };
		if (schedule_ask(
			    &r->schedule, now_us, health_of(r), r->late ? &unused : r->round))
			ask(r);
		if (!is_tick)
			continue;
		tick(r);
		schedule_tick(&r->schedule, clock_now(r->clock).boot_us);
	}
	return true;
}

static void tell_ready(struct recorder *r)
{
	if (r->o->ready && !r->told_ready)
		r->o->ready(r->o->context);
	r->told_ready = true;
}

/* Opens the source, and tries again if the recorder may wait for a driver. 1: a stop was
 * requested. */
static int open_source(struct recorder *r, struct err *e)
{
	struct fault waiting = { 0 };
	int64_t wait_us = 0;
	for (;;) {
		int rc = worker_run(r->worker, JOB_OPEN, e);
		if (rc == 0) {
			fault_clear(&waiting, now_ms(r));
			return 0;
		}
		if (!r->o->wait_for_driver || rc == ERR_USAGE)
			return rc;
		const struct fault *faults[] = { &waiting };
		if (fault_raise(&waiting, now_ms(r), "%s; trying again", e->text))
			statusfile_publish(r->o->status, -1, faults, 1);
		tell_ready(r);
		if (r->o->alive)
			r->o->alive(r->o->context);
		wait_us = schedule_wait(wait_us, r->o->retry_ms * 1000);
		if (wait_for_work(r, clock_now(r->clock).boot_us + wait_us))
			return 1;
	}
}

static int begin_run(struct recorder *r, struct err *e)
{
	struct source *s = worker_source(r->worker);
	struct run_info info = {
		.started_ms = now_ms(r),
		.interval_ms = r->o->interval_ms,
		.drain_ms = r->o->drain_ms,
		.glance_ms = r->o->glance_ms,
		.rules = r->o->rules,
		.one_look = r->o->once,
	};
	host_describe(&info, r->o->source.root, s->hostname);
	text_copy(info.driver, sizeof(info.driver), s->driver_version);
	text_copy(info.source, sizeof(info.source), s->ops->name);
	text_copy(info.boot_id, sizeof(info.boot_id), reader_boot_id(r->reader));
	return store_begin_run(r->store, &info, e);
}

/* Makes the first look: cards, holders, and the last seconds that the driver's ring still
 * holds. */
static int open_run(struct recorder *r, struct err *e)
{
	struct moment m = clock_now(r->clock);
	clock_watch_start(&r->clock_watch, &m);
	r->exits_us = m.boot_us;
	r->begun = m;
	schedule_start(&r->schedule, m.boot_us);
	int rc = begin_run(r, e);
	if (rc && !starts_without_store(r, rc, e))
		return rc;
	r->run_begun = true;
	r->round->drain = r->round->look_all = true;
	r->round->scan = r->round->shared = false;
	if (!ask(r))
		return err_set(e, ERR_WORLD, "%s", r->driver_fault.text);
	rc = commit(r, e);
	publish_faults(r);
	return starts_without_store(r, rc, e) ? 0 : rc;
}

/* Stores the last sums: what was drained, the samples that still last, and the last activity of
 * all current holders. */
static void close_run(struct recorder *r, const char *how)
{
	struct err e = { 0 };
	if (!r->run_begun)
		return;
	if (!r->late) {
		r->round->drain = r->round->look_all = true;
		r->round->scan = r->round->shared = false;
	}
	bool answers = !r->driver_fault.on && ask(r);
	if (answers)
		watch_flush(&r->watch, now_ms(r));
	else
		watch_blind(&r->watch, now_ms(r));
	for (size_t i = 0; i < r->watch.lives.n; i++)
		r->watch.lives.entries[i].dirty |= r->watch.lives.lives[i].used;
	commit(r, &e);
	if (store_end_run(r->store, now_ms(r), how, &e))
		log_error("%s", e.text);
}

static int prepare(struct recorder *r, struct err *e)
{
	const struct recorder_options *o = r->o;
	bool own_host = o->source.root[0] == '\0' && source_is_measured(o->source.name);
	/* A missing store is created when a driver answers, so no file is left behind if none
	 * does. If the recorder waits for a driver, the store is created now. */
	bool now = o->wait_for_driver || access(o->db, F_OK) == 0;
	int rc = reader_open(&r->reader, o->source.root, e);
	/* Its process is a copy of this one: start it while that is small. */
	if (!rc)
		reader_start(r->reader);
	if (!rc && now)
		rc = open_store(r, e);
	if (!rc)
		rc = watch_init(&r->watch, &o->rules,
			&(struct watch_pace){ .drain_ms = o->drain_ms }, r->reader, own_host,
			e);
	if (!rc)
		rc = worker_new(&r->worker, &o->source, o->deadline_ms, e);
	if (!rc)
		rc = round_new(&r->round, r->clock, e);
	if (!rc)
		worker_own(r->worker, round_run, r->round, round_free);
	r->schedule = (struct schedule){ .interval_us = o->interval_ms * 1000,
		.drain_us = o->drain_ms * 1000,
		.glance_us = o->glance_ms * 1000,
		.retry_us = o->retry_ms * 1000 };
	if (!rc && o->slot_seconds)
		r->watch.ledger.slot_seconds = o->slot_seconds;
	return rc;
}

int recorder_run(const struct recorder_options *o, struct err *e)
{
	struct recorder *r = calloc(1, sizeof(*r));
	if (!r)
		return err_memory(e);
	r->o = o;
	r->clock = o->source.clock;
	r->tick_ms = -1;
	int rc = prepare(r, e);
	if (!rc)
		rc = open_source(r, e);
	if (!rc && !r->store)
		rc = open_store(r, e);
	if (!rc)
		rc = open_run(r, e);
	const char *how = "failed";
	if (!rc) {
		tell_ready(r);
		how = o->once || loop(r) ? "finished" : "stopped";
	}
	close_run(r, how);
	worker_free(r->worker);
	watch_finish(&r->watch);
	reader_close(r->reader);
	store_close(r->store);
	free(r);
	return rc == 1 ? 0 : rc;
}
