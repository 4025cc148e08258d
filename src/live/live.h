/* The cards now, for all live views: cards with their readings and state, processes with their
 * owners and how long they have been idle. "idle since" comes from the store if there is one,
 * else from the readings of this view. The driver is called in a separate thread
 * (sample/worker.h), so that a driver that hangs delays the view only until a deadline. */
#ifndef GUA_LIVE_LIVE_H
#define GUA_LIVE_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "source/source.h"
#include "live/live_data.h"

struct live_options {
	struct source_options source;
	const char *db;	     /* store to ask for the past, or NULL: none */
	struct rules rules;  /* of the states, where no store has others */
	int64_t deadline_ms; /* a driver that does not answer for this long counts as hung */
	const unsigned char *metrics; /* flags: which to read; NULL: live_usual_metrics */
};

struct live;

/* What stat, top and pick show: METRIC_COUNT flags. */
extern const unsigned char live_usual_metrics[METRIC_COUNT];

/* Opens the source and, when there is one, the store (a store that cannot be read is a note in
 * live_note(), not a failure). When it fails *l is still to be closed. */
int live_open(struct live **l, const struct live_options *o, struct err *e);
/* False: the driver hangs. The thread that asks it is left behind and still uses what the
 * options of the source point to: the program is to end, or to become another one. */
bool live_close(struct live *l);
/* Reads everything again. A card's fault is its status; fails when the driver as a whole is
 * gone, with ERR_BUSY when it has not answered within the deadline, or still does not. Waits no
 * longer once `stop_fd` is readable (-1: there is none). */
int live_refresh(struct live *l, int stop_fd, struct err *e);

/* The same in steps, for a view that has keys to answer meanwhile. Asks the driver, unless the
 * answer to an earlier question is still to be taken. */
void live_ask(struct live *l);
/* Takes the answer, after at most `wait_ms`. ERR_BUSY: there is none yet; what was read before
 * stands. */
int live_take(struct live *l, int64_t wait_ms, struct err *e);
/* How long ago what is shown was asked for, when the driver always takes longer than the
 * deadline; 0: it does not. (A single answer that comes too late is not shown.) */
int64_t live_late_ms(const struct live *l);
/* How long the driver has owed an answer; -1: it owes none. */
int64_t live_silent_ms(struct live *l);
/* For poll(2): readable once there is an answer to be taken; -1: there is none to be had. */
int live_fd(struct live *l);

/* Reads CPU time and memory of a process, an index into live_processes(), unless that was done
 * more recently than the given time: then rss_bytes is of now, and cpu_pct since the previous
 * reading. A refresh does not read them. */
void live_measure(struct live *l, size_t process, int64_t every_us);
void live_measure_all(struct live *l, int64_t every_us);

/* Valid until the next refresh. */
const struct live_card *live_cards(const struct live *l, size_t *n);
const struct live_process *live_processes(const struct live *l, size_t *n); /* by card */
const struct live_board *live_boards(const struct live *l, size_t *n);
/* Appends the arguments of a process, NUL-terminated one after the other, safe to show; nothing
 * when they cannot be read. */
void live_arguments(struct live *l, const struct live_process *p, struct str *out);
/* What the store has of the last minutes, `n` of them from `from_minute` (since 1970) on; NAN
 * where it has nothing. The mean utilisation of the cards from `first` on, one after the other:
 * */
void live_recent_cards(
	const struct live *l, size_t first, int64_t from_minute, double *pct, size_t n);
/* and the use of a card by one process; false: the store does not know it. */
bool live_recent_process(const struct live *l, size_t card, const struct process_id *id,
	int64_t from_minute, double *pct, size_t n);
/* What a process belongs to: the notebook's path, else the kernel, job, container or pod; "".
 */
const char *live_label(const struct live_process *p);
/* The same of one that is on no card. */
const char *live_label_of(const struct process_id *id);
int64_t live_now_ms(const struct live *l);
/* The thresholds of active and held: those of the store's newest recorder, else the options'.
 */
const struct rules *live_rules(const struct live *l);
const char *live_driver(const struct live *l);
const char *live_hostname(const struct live *l);
const char *live_note(const struct live *l); /* "" or why the past is not known */
/* The sentence for a card that is CARD_SUSPECT: "card 3 reports 100 % use with ...". */
void live_suspect_text(char *dst, size_t cap, const struct live_card *card);
/* When the last recorder wrote last; -1: one is at work, or there was none. */
int64_t live_recorded_until(const struct live *l);

#endif
