/* The recorder: asks the driver, or lets its process go on patrol, notices clock steps and
 * processes that exit, ticks, and handles failures of the driver, the store and the clock. */
#include "record/recorder.h"

#include <malloc.h>
#include <poll.h>

#include "lease/lease_dir.h"
#include "record/machine.h"
#include "record/schedule.h"
#include "record/watch.h"
#include "record/watch_leases.h"
#include "record/watch_spells.h"
#include "proc/reader.h"
#include "driver/ring.h"
#include "driver/host/round.h"
#include "driver/host/worker.h"
#include "store/statusfile.h"

/* When commits are rarest: one in this many ticks. */
#define TICKS_UNCOMMITTED 20
/* Slots that one tick may move to coarser tables; they are looked for when the wall clock, this
 * much behind, begins another hour: the more are moved at once, the fewer pages are written. */
#define COMPACT_SLOTS 60
#define COMPACT_EVERY_MS 3600000
#define COMPACT_AFTER_MS 60000
/* Exits within this time of each other count as the same moment. */
#define SAME_MOMENT_US 50000
/* After a stop, the recorder may wake up this much later than the source. */
#define WAKE_US 250000
/* If the recorder wakes up later than this, it was stopped meanwhile, perhaps together with
 * the source. */
#define FROZEN_US 1000000
/* At the end, the driver is waited for at most this long. */
#define LAST_MS 2000

struct recorder {
	const struct recorder_options *o;
	struct clock *clock;
	struct store *store;
	struct worker *worker;
	struct reader *reader;
	struct lease_dir *leases; /* NULL: none are read */
	struct watch watch;
	struct round *round; /* belongs to the worker: used only between its jobs */
	int64_t born_us;     /* boot time: when it first tried to open the source */
	bool late;	     /* its job has not ended in time: r->round must not be used */
	bool stopped;	     /* a stop was requested */
	bool ending;	     /* the last round */
	int64_t begun_us;    /* boot time: when the last round was begun ... */
	int64_t before_us;   /* ... and the one before */
	struct schedule schedule;
	/* While the source is on patrol. */
	struct schedule planned; /* the schedule after the round at its end */
	bool recalled;		 /* it was told to return */
	struct exit_notice {
		bool on;	  /* a process has exited and is not accounted yet */
		bool in_time;	  /* no other work was due */
		struct moment at; /* not after this */
	} exit;
	bool run_begun;	 /* the store has this run's row */
	bool told_ready; /* o->ready was called */
	struct clock_watch clock_watch;
	int64_t exits_us; /* boot time: exits before this have been noticed */
	int64_t ticks;
	int64_t tick_ms;   /* when the last tick was stored; -1: none yet */
	int64_t compacted; /* the hour in which there was no more to compact */
	bool incomplete;   /* a part of the source has failed */
	struct fault driver_fault, store_fault, compact_fault, wal_fault, process_fault;
};

/* Wall clock. */
static int64_t wall_ms(struct recorder *r)
{
	return clock_now(r->clock).wall_us / 1000;
}

static struct card_past card_past(void *context, struct card_id *id)
{
	struct recorder *r = context;
	/* Without the store, it is unknown how much of the driver's ring was already
	 * counted. */
	if (r->store_fault.on)
		return (struct card_past){ .seen_ms = INT64_MAX, .idle_held_since_ms = -1 };
	return store_card_past(r->store, id);
}

/* The whole driver failed: logs this once; the status file has the current reason. Samples
 * that are still in its ring when it answers again are used, so only older time becomes
 * unobserved. Returns whether the failure is new. */
static bool driver_failed(struct recorder *r, const struct err *e)
{
	int64_t now = wall_ms(r);
	bool begins = fault_raise(&r->driver_fault, now, "%s", e->text);
	if (begins)
		watch_event(&r->watch, &(struct occurrence){ now, EVENT_DRIVER_DOWN, -1, 0 },
			"%s", e->text);
	str_copy(r->driver_fault.text, sizeof(r->driver_fault.text), e->text);
	watch_blind(&r->watch, now - RING_MS);
	return begins;
}

static void driver_works(struct recorder *r)
{
	int64_t now = wall_ms(r);
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
static void notice_exits(struct recorder *r, bool exact)
{
	struct moment m = clock_now(r->clock);
	int64_t lo_us = exact ? m.wall_us : m.wall_us - (m.boot_us - r->exits_us);
	struct round *round = r->late ? NULL : r->round;
	watch_exits(&r->watch, round, lo_us / 1000, m.wall_us / 1000);
	r->exits_us = m.boot_us;
}

/* Takes the results of a round. */
static int take_round(struct recorder *r, struct source *s, struct err *e)
{
	int rc = watch_cards(
		&r->watch, s, r->round->ended_ms, &(struct watch_past){ card_past, r }, e);
	r->watch.pace.stall_ms = round_pace_stall_us(&r->schedule.pace) / 1000;
	int64_t now_ms = r->round->ended_ms;
	/* Rounds that were made on patrol are taken together: only the last is of now. */
	if (!rc && r->leases && r->round->drained && !r->round->more)
		rc = watch_leases_take(&r->watch, lease_dir_read(r->leases, now_ms), now_ms, e);
	return rc ? rc : watch_round(&r->watch, s, r->round, e);
}

/* Whether a stop was requested; handles a signal that only asks to reload names. */
static bool is_stopped(struct recorder *r)
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
static int wait_for_job(struct recorder *r, int64_t wait_ms, struct err *e)
{
	int64_t left_ms = wait_ms, until_us = clock_monotonic_us() + wait_ms * 1000;
	int stop_fd = r->ending ? -1 : r->o->stop_fd;
	int rc;
	do {
		rc = worker_result_or_stop(r->worker, left_ms, stop_fd, e);
		left_ms = (until_us - clock_monotonic_us()) / 1000;
	} while (rc == ERR_BUSY && left_ms > 0 && !is_stopped(r));
	return rc;
}

static void note_round(struct recorder *r, int64_t begun_us)
{
	r->before_us = r->begun_us;
	r->begun_us = begun_us;
}

static void begin_round(struct recorder *r)
{
	int64_t now_us = clock_now(r->clock).boot_us;
	/* After a stall, process lists are read again even if used memory is unchanged. */
	r->round->look_all |= now_us - r->begun_us > round_pace_stall_us(&r->schedule.pace);
	r->round->patrol.until_us = 0;
	note_round(r, now_us);
	worker_begin(r->worker, JOB_OWN);
}

/* Begins the round that r->round asks for and waits for it. If an earlier round is late,
 * only checks whether that one has ended: its readings are still valid. */
static int run_round(struct recorder *r, struct err *e)
{
	int64_t wait_ms = r->late ? 0 : r->o->deadline_ms;
	if (r->ending)
		wait_ms = r->o->deadline_ms < LAST_MS ? r->o->deadline_ms : LAST_MS;
	if (!r->late)
		begin_round(r);
	int rc = wait_for_job(r, wait_ms, e);
	/* The plans from before the delay were replaced. */
	if (r->late)
		r->planned = r->schedule;
	r->late = rc == ERR_BUSY;
	return rc;
}

/* Since when the process may have exited that was noticed at r->exit.at (boot time). If glances
 * did not come as usual, the recorder was stopped meanwhile, together with the source; when
 * they continue, either can be first. */
static int64_t exit_lo_us(const struct recorder *r)
{
	int64_t at_us = r->exit.at.boot_us, usual_us = 3 * r->schedule.pace.apart_us / 2;
	bool glanced = r->begun_us <= at_us;
	int64_t last_us = glanced ? r->begun_us : r->before_us;
	if (glanced && at_us - last_us < WAKE_US && last_us - r->before_us > usual_us)
		return r->before_us;
	if (at_us - last_us > usual_us)
		return last_us;
	return r->exit.in_time ? at_us : clock_later(last_us, r->exits_us);
}

/* Takes the exits that were noticed while the source was on patrol. */
static void take_exits(struct recorder *r)
{
	struct moment now = clock_now(r->clock);
	struct moment at = r->exit.at;
	bool at_once = now.boot_us - at.boot_us < SAME_MOMENT_US;
	if (!r->exit.on)
		return;
	r->exit.on = false;
	int64_t lo_us = at.wall_us - (at.boot_us - exit_lo_us(r));
	watch_exits(&r->watch, r->late ? NULL : r->round, lo_us / 1000,
		(at_once ? at.wall_us : now.wall_us) / 1000);
	r->exits_us = now.boot_us;
}

/* Exits are handled in order of time: before a round that ended later. */
static void notice_exits_before(struct recorder *r)
{
	if (!r->exit.on && !r->round->more)
		notice_exits(r, false);
	else if (r->exit.on && r->exit.at.boot_us <= r->round->ended_us)
		take_exits(r);
}

/* Takes one of the rounds that were made. */
static int take_next(struct recorder *r, struct source *s, struct err *e)
{
	const struct round *round = r->round;
	driver_works(r);
	r->incomplete = s->incomplete;
	note_round(r, round->begun_us);
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

/* Takes all rounds that the worker's job has made; `rc` and `e` say how it ended. False: the
 * driver failed, and the failure has been handled. */
static bool take_rounds(struct recorder *r, int rc, struct err *e)
{
	struct source *s = rc ? NULL : worker_source(r->worker);
	int next = s ? round_next(s, r->round, e) : rc;
	while (next > 0) {
		rc = take_next(r, s, e);
		next = rc ? rc : round_next(s, r->round, e);
	}
	take_exits(r);
	/* A round that was interrupted by a stop is not a fault. */
	if (next && !(next == ERR_BUSY && !r->ending && is_stopped(r)))
		driver_failed(r, e);
	return next == 0;
}

/* Asks the driver. False: it failed, and the failure has been handled. */
static bool ask(struct recorder *r)
{
	struct err e = { 0 };
	int rc = run_round(r, &e);
	return take_rounds(r, rc, &e);
}

/* How well the recorder sees the cards. */
static enum health health_now(const struct recorder *r)
{
	const struct watch *w = &r->watch;
	if (r->driver_fault.on)
		return HEALTH_DOWN;
	bool wrong = r->incomplete;
	for (size_t i = 0; i < w->n_cards; i++) {
		if (w->entries[i].status == CARD_STATUS_OK || w->cards[i].gone)
			continue;
		if (w->entries[i].status == CARD_STATUS_LOST && !w->cards[i].stuck)
			return HEALTH_LOST;
		wrong = true;
	}
	return wrong ? HEALTH_CARD : HEALTH_GOOD;
}

/* Whether the next readings can be left to the source. */
static bool can_patrol(struct recorder *r)
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
	r->exit = (struct exit_notice){
		.on = true, .in_time = now.boot_us <= r->round->patrol.until_us, .at = now
	};
	recall(r);
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
	if (r->stopped && deadline_ms > LAST_MS)
		deadline_ms = LAST_MS;
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
		if (ready > 0 && fds[1].revents && is_stopped(r))
			recall(r);
	}
	return worker_result(r->worker, 0, e);
}

/* Lets the process that asks the driver make the glances until the next drain, and that
 * drain, on its own, so that the recorder can sleep. The recorder wakes up when that process
 * returns (at the drain, or when something has changed), when a process exits, when a stop
 * is requested, or when a glance is late. */
static void patrol(struct recorder *r)
{
	struct source_host *host = r->o->source.host;
	struct err e = { 0 };
	if (r->recalled)
		host->recall(host, false);
	r->recalled = false;
	notice_exits(r, false);
	plan(r);
	worker_begin(r->worker, JOB_OWN);
	int rc = wait_for_source(r, &e);
	r->late = rc == ERR_BUSY;
	take_rounds(r, rc, &e);
}

static bool raise_store_fault(struct recorder *r, const struct err *e)
{
	return fault_raise(&r->store_fault, wall_ms(r),
		"%s; keeping what fits in memory until it works", e->text);
}

static void report_store_fault(struct recorder *r, const struct err *e)
{
	if (raise_store_fault(r, e))
		watch_event(&r->watch,
			&(struct occurrence){ wall_ms(r), EVENT_STORE_FAULT, -1, 0 }, "%s",
			e->text);
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
	const struct compaction compaction = { wall_ms(r), r->o->keep, COMPACT_SLOTS };
	int64_t now = (compaction.now_ms - COMPACT_AFTER_MS) / COMPACT_EVERY_MS;
	if (r->o->one_batch)
		return;
	if (r->compacted != now) {
		if (compact_store(r->store, &compaction, &more, &e))
			fault_raise(&r->compact_fault, wall_ms(r), "compaction: %s", e.text);
		else
			fault_clear(&r->compact_fault, wall_ms(r));
		malloc_trim(0); /* it needs more memory than a tick */
		r->compacted = more || r->compact_fault.on ? -1 : now;
	}
	if (store_check_wal(r->store, &e))
		fault_raise(&r->wal_fault, wall_ms(r), "%s", e.text);
	else
		fault_clear(&r->wal_fault, wall_ms(r));
}

/* Logs what did not fit into memory while the store could not be written. */
static void note_losses(struct recorder *r, int64_t dropped_ms)
{
	int64_t now_ms = wall_ms(r), spells = watch_spells_lost(&r->watch);
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
	int rc = watch_tick(&r->watch, &t, wall_ms(r), e);
	if (!rc)
		rc = write_tick(r->store, &t, e);
	if (rc) {
		report_store_fault(r, e);
		watch_unstored(&r->watch);
		return rc;
	}
	watch_stored(&r->watch);
	r->tick_ms = t.at_ms;
	if (fault_clear(&r->store_fault, wall_ms(r)))
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
	reader_check(r->reader, &r->process_fault, wall_ms(r));
	const struct fault *faults[STATUS_MAX_FAULTS];
	size_t n = 0;
	const struct fault *f;
	for (size_t i = 0; (f = fault_at(r, i)) && n < STATUS_MAX_FAULTS; i++)
		if (f->on)
			faults[n++] = f;
	note_stuck(r);
	if (r->o->status)
		r->o->status->unread = r->driver_fault.on;
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

/* What the log says of a tick. */
static void describe_tick(const struct recorder *r, char *line, size_t size)
{
	const struct watch *w = &r->watch;
	size_t ok = 0, holders = 0;
	for (size_t i = 0; i < w->n_cards; i++) {
		ok += w->entries[i].status == CARD_STATUS_OK;
		for (size_t k = 0; k < w->cards[i].holders.n; k++)
			holders += holders_is_open(&w->cards[i].holders.items[k]);
	}
	snprintf(line, size,
		"tick %lld: %zu of %zu cards read, %zu holders, %zu usage and %zu holding sums",
		(long long)r->ticks, ok, w->n_cards, holders, w->ledger.usage.n,
		w->ledger.holding.n);
}

static void tick(struct recorder *r)
{
	char line[200];
	struct err e = { 0 };
	r->ticks++;
	if (r->o->tick_line) {
		describe_tick(r, line, sizeof(line));
		r->o->tick_line(r->o->context, line);
	}
	/* While the driver does not answer, time becomes unobserved tick by tick. */
	if (r->driver_fault.on)
		watch_blind(&r->watch, wall_ms(r) - RING_MS);
	if (commits_later(r))
		r->tick_ms = wall_ms(r);
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
	notice_exits(r, false);
	int ready = clock_wait(r->clock, until_us, fds, l->pidfds ? 2 : 1);
	if (r->stopped || (ready > 0 && fds[0].revents && is_stopped(r)))
		return true;
	/* After waking up late, the moment of an exit is not known exactly. */
	notice_exits(r, clock_now(r->clock).boot_us <= until_us);
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
		if (can_patrol(r)) {
			if (r->o->alive)
				r->o->alive(r->o->context);
			patrol(r);
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
		enum health health = health_now(r);
		if (schedule_ask(&r->schedule, now_us, health, r->late ? &unused : r->round))
			ask(r);
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
	int64_t wait_us = 0;
	r->born_us = clock_now(r->clock).boot_us;
	for (;;) {
		bool begun = worker_begin(r->worker, JOB_OPEN);
		int rc = wait_for_job(r, begun ? r->o->deadline_ms : 0, e);
		if (rc == 0) {
			driver_works(r);
			return 0;
		}
		if (is_stopped(r))
			return 1;
		if (!r->o->wait_for_driver || rc == ERR_USAGE)
			return rc;
		const struct fault *faults[] = { &r->driver_fault };
		struct err again;
		err_set(&again, rc, "%s; trying again", e->text);
		if (driver_failed(r, &again))
			statusfile_publish(r->o->status, -1, faults, 1);
		if (wait_for_driver(r, &wait_us))
			return 1;
	}
}

static int begin_run(struct recorder *r, struct err *e)
{
	struct source *s = worker_source(r->worker);
	struct moment now = clock_now(r->clock);
	struct run_info info = {
		/* The wait for the driver belongs to the run: a recorder was there. */
		.started_ms = (now.wall_us - (now.boot_us - r->born_us)) / 1000,
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
	str_copy(info.boot_id, sizeof(info.boot_id), owners_boot_id(reader_owners(r->reader)));
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
	while (!ask(r)) {
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
	bool answers = !r->driver_fault.on && ask(r);
	if (answers)
		watch_flush(&r->watch, wall_ms(r));
	else
		watch_blind(&r->watch, wall_ms(r));
	for (size_t i = 0; i < r->watch.lives.n; i++)
		r->watch.lives.entries[i].dirty |= r->watch.lives.lives[i].used;
	watch_leases_close(&r->watch);
	commit(r, &e);
	if (store_end_run(r->store, wall_ms(r), how, &e))
		log_error("%s", e.text);
}

static int prepare(struct recorder *r, struct err *e)
{
	const struct recorder_options *o = r->o;
	bool own_host = o->source.root[0] == '\0' && source_is_measured(o->source.name);
	/* A missing store is created when a driver answers, so no file is left behind if none
	 * does. If the recorder waits for a driver, the store is created now. */
	bool now = o->wait_for_driver || access(o->db, F_OK) == 0;
	unsigned manner = (o->privacy == PRIVACY_STRICT ? READER_BRIEF : 0) |
			  (o->keep_uids ? OWNERS_BY_UID : 0);
	int rc = reader_open(&r->reader, o->source.root, manner, e);
	/* The reader's process is a copy of this one: start it while this one is small. */
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
	if (!rc && (o->leases || source_is_measured(o->source.name)))
		rc = lease_dir_open(&r->leases,
			&(struct lease_dir_options){ .path = o->leases,
				.root = o->source.root,
				.numbering = o->numbering },
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
	r->tick_ms = r->compacted = -1;
	int rc = prepare(r, e);
	if (!rc)
		rc = open_source(r, e);
	if (!rc && !r->store)
		rc = open_store(r, e);
	if (!rc)
		rc = open_run(r, e);
	if (!rc && o->one_batch)
		rc = store_begin_batch(r->store, e);
	const char *how = rc == 1 ? "stopped" : "failed";
	if (!rc) {
		tell_ready(r);
		how = o->once || loop(r) ? "finished" : "stopped";
	}
	close_run(r, how);
	if (!rc && o->one_batch)
		rc = store_end_batch(r->store, true, e);
	worker_free(r->worker);
	watch_finish(&r->watch);
	lease_dir_close(r->leases);
	reader_close(r->reader);
	store_close(r->store);
	free(r);
	return rc == 1 ? 0 : rc;
}
