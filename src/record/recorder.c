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
#include "record/health.h"
#include "record/machine.h"
#include "record/recorder_private.h"
#include "record/schedule.h"
#include "record/watch.h"
#include "record/watch_spells.h"
#include "base/clock.h"
#include "proc/reader.h"
#include "driver/ring.h"
#include "driver/host/round.h"
#include "driver/host/worker.h"
#include "driver/source.h"
#include "store/statusfile.h"

/* When commits are rarest: one in this many ticks. */
#define TICKS_UNCOMMITTED 20
/* Slots that one tick may move to coarser tables. */
#define COMPACT_SLOTS 10

static bool raise_store_fault(struct recorder *r, const struct err *e)
{
	return fault_raise(&r->store_fault, recorder_now_ms(r),
		"%s; keeping what fits in memory until it works", e->text);
}

static void report_store_fault(struct recorder *r, const struct err *e)
{
	if (raise_store_fault(r, e))
		watch_event(&r->watch,
			&(struct occurrence){ recorder_now_ms(r), EVENT_STORE_FAULT, -1, 0 },
			"%s", e->text);
}

/* Whether the recorder may start although the store cannot be written now. A service may, if
 * the fault can pass (a full disk, a lock); it then continues as if the fault had come
 * later. */
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
	const struct compaction compaction = { recorder_now_ms(r), r->o->keep, COMPACT_SLOTS };
	if (compact_store(r->store, &compaction, &more, &e))
		fault_raise(&r->compact_fault, recorder_now_ms(r), "compaction: %s", e.text);
	else
		fault_clear(&r->compact_fault, recorder_now_ms(r));
	if (store_check_wal(r->store, &e))
		fault_raise(&r->wal_fault, recorder_now_ms(r), "%s", e.text);
	else
		fault_clear(&r->wal_fault, recorder_now_ms(r));
}

/* Logs what did not fit into memory while the store could not be written. */
static void note_losses(struct recorder *r, int64_t dropped_ms)
{
	int64_t now_ms = recorder_now_ms(r), spells = watch_spells_lost(&r->watch);
	if (dropped_ms > 0)
		watch_event(&r->watch,
			&(struct occurrence){ now_ms, EVENT_STORE_FAULT, -1, dropped_ms },
			"%.1f GPU-seconds found no room in memory and are lost",
			(double)dropped_ms / 1000);
	if (spells > 0)
		watch_event(&r->watch,
			&(struct occurrence){ now_ms, EVENT_STORE_FAULT, -1, spells },
			"%lld idle spells found no room in memory and are lost",
			(long long)spells);
}

/* Writes all sums to the store; what cannot be written stays in the ledger. */
static int commit(struct recorder *r, struct err *e)
{
	struct tick t;
	int64_t dropped_ms = r->watch.ledger.dropped_ms;
	int rc = watch_tick(&r->watch, &t, recorder_now_ms(r), e);
	if (!rc)
		rc = write_tick(r->store, &t, e);
	if (rc) {
		report_store_fault(r, e);
		watch_unstored(&r->watch);
		return rc;
	}
	watch_stored(&r->watch);
	r->tick_ms = t.at_ms;
	if (fault_clear(&r->store_fault, recorder_now_ms(r)))
		note_losses(r, dropped_ms);
	compact(r);
	return 0;
}

static const struct fault *fault_at(const struct recorder *r, size_t i)
{
	static const struct fault none;
	const struct fault *const fixed[] = { &r->driver_fault, &r->store_fault,
		&r->compact_fault, &r->wal_fault, &r->process_fault,
		r->o->own_fault ? r->o->own_fault : &none };
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

/* Logs which processes are stuck in the driver, while none asks it. */
static void note_stuck(const struct recorder *r)
{
	struct source_host *host = r->o->source.host;
	struct source_stuck stuck[SOURCE_STUCK_MAX];
	if (host && !r->late)
		statusfile_set_stuck(
			r->o->status, stuck, host->stuck(host, stuck, SOURCE_STUCK_MAX));
}

/* Writes the current faults to the file that `gua status` reads. */
static void publish_faults(struct recorder *r)
{
	reader_check(r->reader, &r->process_fault, recorder_now_ms(r));
	const struct fault *faults[STATUS_MAX_FAULTS];
	size_t n = 0;
	const struct fault *f;
	for (size_t i = 0; (f = fault_at(r, i)) && n < STATUS_MAX_FAULTS; i++)
		if (f->on)
			faults[n++] = f;
	note_stuck(r);
	statusfile_publish(r->o->status, r->tick_ms, faults, n);
}

/* Whether the sums of this tick stay in memory. While another program keeps an old state of the
 * store open, every commit makes the -wal file longer: the longer it is, the fewer there are,
 * so that a reader cannot fill the disk. */
static bool commits_later(const struct recorder *r)
{
	unsigned every = store_wal_excess(r->store);
	every = every < TICKS_UNCOMMITTED ? every : TICKS_UNCOMMITTED;
	return every > 1 && r->ticks % every != 0;
}

static void tick(struct recorder *r)
{
	char line[200];
	struct err e = { 0 };
	r->ticks++;
	if (r->o->tick_line) {
		health_tick_line(&r->watch, r->ticks, line, sizeof(line));
		r->o->tick_line(r->o->context, line);
	}
	/* While the driver does not answer, time becomes unobserved tick by tick. */
	if (r->driver_fault.on)
		watch_blind(&r->watch, recorder_now_ms(r) - RING_MS);
	if (commits_later(r))
		r->tick_ms = recorder_now_ms(r);
	else
		commit(r, &e);
	publish_faults(r);
}

/* Waits until the next work is due or a process ends; true: a stop was requested. */
static bool wait_for_work(struct recorder *r, int64_t until_us)
{
	const struct lives *l = &r->watch.lives;
	struct pollfd fds[] = { { .fd = r->o->stop_fd, .events = POLLIN },
		{ .fd = l->exits_fd, .events = POLLIN } };
	recorder_notice_exits(r, false);
	int ready = clock_wait(r->clock, until_us, fds, l->pidfds ? 2 : 1);
	if (r->stopped || (ready > 0 && fds[0].revents && recorder_is_stopped(r)))
		return true;
	/* After waking up late, the moment of an exit is not known exactly. */
	recorder_notice_exits(r, clock_now(r->clock).boot_us <= until_us);
	return false;
}

/* Whether to end the run after this tick: not while memory has sums that the store could not
 * take, nor while the driver is stuck, because the next run would meet the same driver. */
static bool ends_here(const struct recorder *r)
{
	return r->o->is_over && !r->store_fault.on && !r->driver_fault.on &&
	       r->o->is_over(r->o->context);
}

/* Asks the driver, and ticks when it is time, until done (true) or stopped (false). */
static bool loop(struct recorder *r)
{
	while (r->o->max_ticks == 0 || r->ticks < r->o->max_ticks) {
		if (recorder_can_patrol(r)) {
			if (r->o->alive)
				r->o->alive(r->o->context);
			recorder_patrol(r);
			if (r->stopped)
				return false;
			continue;
		}
		if (wait_for_work(r, schedule_next(&r->schedule)))
			return false;
		int64_t now_us = clock_now(r->clock).boot_us;
		if (now_us < schedule_next(&r->schedule))
			continue;
		if (r->o->alive)
			r->o->alive(r->o->context);
		bool is_tick = schedule_is_tick(&r->schedule, now_us);
		struct round unused = { 0 };
		enum health health = health_of(&r->watch, r->driver_fault.on, r->incomplete);
		if (schedule_ask(&r->schedule, now_us, health, r->late ? &unused : r->round))
			recorder_ask(r);
		if (!is_tick)
			continue;
		tick(r);
		schedule_tick(&r->schedule, clock_now(r->clock).boot_us);
		if (ends_here(r))
			return false;
	}
	return true;
}

static void tell_ready(struct recorder *r)
{
	if (r->o->ready && !r->told_ready)
		r->o->ready(r->o->context);
	r->told_ready = true;
}

/* Waits before the next try, longer each time; true: a stop was requested. */
static bool wait_for_driver(struct recorder *r, int64_t *wait_us)
{
	tell_ready(r);
	if (r->o->alive)
		r->o->alive(r->o->context);
	*wait_us = schedule_wait(*wait_us, r->o->retry_ms * 1000);
	return wait_for_work(r, clock_now(r->clock).boot_us + *wait_us);
}

/* Opens the source, and tries again if the recorder may wait for a driver. 1: a stop was
 * requested. */
static int open_source(struct recorder *r, struct err *e)
{
	struct fault waiting = { 0 };
	int64_t wait_us = 0;
	for (;;) {
		bool begun = worker_begin(r->worker, JOB_OPEN);
		int rc = recorder_wait_for_job(r, begun ? r->o->deadline_ms : 0, e);
		if (rc == 0) {
			fault_clear(&waiting, recorder_now_ms(r));
			return 0;
		}
		if (recorder_is_stopped(r))
			return 1;
		if (!r->o->wait_for_driver || rc == ERR_USAGE)
			return rc;
		const struct fault *faults[] = { &waiting };
		if (fault_raise(&waiting, recorder_now_ms(r), "%s; trying again", e->text))
			statusfile_publish(r->o->status, -1, faults, 1);
		if (wait_for_driver(r, &wait_us))
			return 1;
	}
}

static int begin_run(struct recorder *r, struct err *e)
{
	struct source *s = worker_source(r->worker);
	struct run_info info = {
		.started_ms = recorder_now_ms(r),
		.interval_ms = r->o->interval_ms,
		.drain_ms = r->o->drain_ms,
		.glance_ms = r->o->glance_ms,
		.rules = r->o->rules,
		.one_look = r->o->once,
		.privacy = r->o->privacy,
	};
	str_copy(info.source, sizeof(info.source), s->ops->name);
	machine_describe(&info, r->o->source.root, s->hostname);
	if (r->o->host_name)
		str_escape(info.hostname, sizeof(info.hostname), r->o->host_name,
			strlen(r->o->host_name));
	str_copy(info.driver, sizeof(info.driver), s->driver_version);
	str_copy(info.boot_id, sizeof(info.boot_id), reader_boot_id(r->reader));
	return store_begin_run(r->store, &info, e);
}

/* Continues the idle stretches of an earlier run. If that fails, new ones begin. */
static void resume_spells(struct recorder *r)
{
	struct err e = { 0 };
	struct past_spell *past = NULL;
	size_t n = 0;
	if (store_past_spells(r->store, &past, &n, &e))
		log_warning("%s; idle spells begin anew", e.text);
	watch_spells_take_past(&r->watch, past, n);
}

/* Asks until the driver answers, if the recorder may wait for it. 1: a stop was requested. */
static int first_look(struct recorder *r, struct err *e)
{
	int64_t wait_us = 0;
	r->round->drain = r->round->look_all = true;
	r->round->scan = r->round->shared = false;
	while (!recorder_ask(r)) {
		if (!r->driver_fault.on)
			return 1;
		if (!r->o->wait_for_driver)
			return err_set(e, ERR_WORLD, "%s", r->driver_fault.text);
		publish_faults(r);
		if (wait_for_driver(r, &wait_us))
			return 1;
		if (!r->late)
			r->round->scan = r->round->drain = r->round->look_all = true;
	}
	return 0;
}

/* Makes the first look: cards, holders, and the last seconds that the driver's ring still
 * holds. */
static int open_run(struct recorder *r, struct err *e)
{
	struct moment m = clock_now(r->clock);
	clock_watch_start(&r->clock_watch, &m);
	r->exits_us = m.boot_us;
	r->begun_us = m.boot_us;
	schedule_start(&r->schedule, m.boot_us);
	int rc = begin_run(r, e);
	if (rc && !starts_without_store(r, rc, e))
		return rc;
	r->run_begun = true;
	if (rc == 0)
		resume_spells(r);
	rc = first_look(r, e);
	if (!rc)
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
	r->ending = true;
	bool answers = !r->driver_fault.on && recorder_ask(r);
	if (answers)
		watch_flush(&r->watch, recorder_now_ms(r));
	else
		watch_blind(&r->watch, recorder_now_ms(r));
	for (size_t i = 0; i < r->watch.lives.n; i++)
		r->watch.lives.entries[i].dirty |= r->watch.lives.lives[i].used;
	commit(r, &e);
	if (store_end_run(r->store, recorder_now_ms(r), how, &e))
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
	/* The reader's process is a copy of this one: start it while this one is small. */
	if (!rc && o->privacy == PRIVACY_STRICT)
		reader_be_brief(r->reader);
	if (!rc)
		reader_start(r->reader);
	if (!rc && now)
		rc = open_store(r, e);
	if (!rc)
		rc = watch_init(&r->watch,
			&(struct watch_options){ .rules = &o->rules,
				.pace.drain_ms = o->drain_ms,
				.reader = r->reader,
				.pidfds = own_host,
				.privacy = o->privacy },
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
	const char *how = rc == 1 ? "stopped" : "failed";
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
