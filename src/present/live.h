/* The cards now, for all live views: cards with their readings and state, processes with their
 * owners and how long they have been idle. "idle since" comes from the store if there is one,
 * else from the readings of this view. The driver is asked by another process
 * (driver/host/apart.h), and a thread waits for it (driver/host/worker.h), so that a driver
 * that hangs delays the view only until a deadline. */
#pragma once

#include "present/past.h"
#include "driver/source.h"
#include "model/present.h"

struct live_options {
	struct source_options source;
	const char *db; /* store to ask for the past, or NULL: none */
	bool db_named;	/* the user named it: a simulated store may be used beside real cards */
	struct rules rules;  /* thresholds of the states, unless the store has others */
	int64_t deadline_ms; /* a driver that does not answer for this long counts as hung */
	const unsigned char *metrics; /* flags: which to read; NULL: live_usual_metrics */
	bool accounts;		      /* read the records of accounting mode, too */
	bool once;	 /* there is only one refresh: nothing is prepared for a second one */
	bool cards_only; /* owners of processes are not shown: /proc is not read */
	bool keep_uids;	 /* see OWNERS_BY_UID */
	bool leases;	 /* find what schedulers have given away, of measured cards */
};

struct live;
struct reader;

/* What stat, top and pick show: METRIC_COUNT flags. */
extern const unsigned char live_usual_metrics[METRIC_COUNT];

/* Opens the source and, if there is one, the store. A store that cannot be read is not a
 * failure: the note of the host then says why. Close *l even if this fails. */
int live_open(struct live **l, const struct live_options *o, struct err *e);
/* From the next request on these metrics (METRIC_COUNT flags, borrowed) are not read, and keep
 * the values that they had last. NULL: all that the options name are read. */
void live_rest(struct live *l, const unsigned char *resting);
/* Closes the driver, whatever it is doing. */
void live_close(struct live *l);
/* Reads everything again. A fault of one card is in its status. Fails if the whole driver is
 * gone; with ERR_BUSY if it has not answered within the deadline, or still has not answered an
 * earlier request. Stops waiting when `stop_fd` becomes readable (-1: there is none). */
int live_refresh(struct live *l, int stop_fd, struct err *e);

/* The same in steps, for a view that handles keys meanwhile. Asks the driver, unless the answer
 * to an earlier request has not been taken yet. */
void live_ask(struct live *l);
/* Takes the answer; waits at most `wait_ms`. ERR_BUSY: there is none yet, and the last readings
 * stay. */
int live_take(struct live *l, int64_t wait_ms, struct err *e);
/* How long ago the shown answer was requested, if the driver always takes longer than the
 * deadline; else 0. (A single late answer is not shown.) */
int64_t live_late_ms(const struct live *l);
/* How long the driver has not answered a pending request; -1: none is pending. */
int64_t live_silent_ms(struct live *l);
/* For poll(2): readable when the pending request can be taken; -1: none is pending, or not
 * available. */
int live_fd(struct live *l);

/* Reads the CPU time and memory of a process (an index into the present), unless they were
 * read less than `every_us` ago. cpu_pct is then the use since the previous reading, and
 * rss_bytes current or, if `every_us` is not 0, up to 12 s old. A refresh does not read them.
 */
void live_process_measure(struct live *l, size_t process, int64_t every_us);
void live_process_measure_all(struct live *l, int64_t every_us);

/* What was read last; valid until the next refresh, and its accounts until the next request. */
const struct present *live_present(const struct live *l);
/* Appends the arguments of a process, NUL-terminated one after the other, safe to show; nothing
 * when they cannot be read. They may hold secrets: root and the process's own user get all,
 * others the words of the command as it is stored. */
void live_process_arguments(struct live *l, const struct present_process *p, struct str *out);
/* Sets the mean utilisation of the cards from `first` on, from the store: `pct` has
 * minutes->n numbers for each card, one card after the other. */
void live_recent_cards(const struct live *l, size_t first, const struct past_minutes *minutes);
/* Sets the use of a card by one process. False: the store does not know the process. */
bool live_recent_process(const struct live *l, size_t card, const struct process_id *id,
	const struct past_minutes *minutes);
/* The reader of this view, for other processes; the caller must not close it. */
struct reader *live_reader(struct live *l);
