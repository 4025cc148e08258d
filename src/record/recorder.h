/* The recorder: drains, ticks, and continues when the driver, the store or the clock fails. It
 * has no network code. */
#pragma once

#include "base/fault.h"
#include "model/state.h"
#include "driver/source.h"
#include "store/store.h"

struct statusfile; /* of store/statusfile.h */

struct recorder_options {
	const char *db;
	struct source_options source; /* its clock is the recorder's clock */
	struct rules rules;
	const char *host_name; /* instead of the system's name of this host; or NULL */
	enum privacy privacy;  /* what to keep about processes */
	bool keep_uids;	       /* see OWNERS_BY_UID */
	const char *numbering; /* of cards in leases; see lease/lease_dir.h */
	const char *leases;    /* where schedulers say what they give away; NULL: the usual
				  directory, and for simulated cards none */
	int64_t interval_ms;   /* tick */
	int64_t drain_ms;      /* at most 8000 */
	int64_t glance_ms;     /* shortest time between glances */
	int64_t deadline_ms;   /* deadline of one round of driver calls; 0: see worker_new() */
	int64_t retry_ms;      /* longest wait before a lost card or driver is tried again */
	int64_t max_ticks;     /* end after this many; 0: never. */
	bool once;	       /* end after the first look, with what the driver's ring holds */
	bool wait_for_driver;  /* no driver at the start: keep trying instead of failing */
	int64_t slot_seconds;  /* 0: SLOT_SECONDS; an hour for demonstrations over weeks */
	struct retention keep;
	bool one_batch; /* the whole run is one transaction, and the caller compacts the store
			   after it */
	int stop_fd;	/* a signalfd: readable means stop, or ask reload(); or -1 */
	struct statusfile *status; /* ticks and faults are published there; or NULL */
	const struct fault
		*own_fault; /* the caller's fault, published with the others; or NULL */
	/* Called once, after the first look is in the store, or when the recorder begins to
	 * wait for a driver: a service manager must not treat that as a failed start. May be
	 * NULL. */
	void (*ready)(void *context);
	/* Given one line for each tick; may be NULL. */
	void (*tick_line)(void *context, const char *line);
	/* Called at least once per drain, to show that the recorder is alive; may be NULL. */
	void (*alive)(void *context);
	/* Called when stop_fd is readable: reads the signal, and returns true if it only
	 * asks to reopen the log and to reload names. NULL: every signal means stop. */
	bool (*reload)(void *context);
	/* Called after each tick that was stored while the driver answers: true ends the
	 * run, as a stop would. May be NULL. */
	bool (*is_over)(void *context);
	void *context;
};

/* Runs until a stop is requested. 0: ended as requested. */
int recorder_run(const struct recorder_options *o, struct err *e);
