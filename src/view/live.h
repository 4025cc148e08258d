/* What is on the cards now, for all live views: cards with their readings and state, processes
 * with their owners and how long they have been idle. Where there is a store, "idle since"
 * comes from it; without one, from what this view has seen itself. */
#ifndef GUA_VIEW_LIVE_H
#define GUA_VIEW_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "model/metric.h"
#include "model/process.h"
#include "model/reading.h"
#include "model/state.h"
#include "source/source.h"

struct live_process {
	struct process_id id;
	size_t card;			 /* index into live.cards */
	unsigned kind;			 /* process_kind bits */
	int64_t mem_bytes;		 /* on the card, or -1 */
	double sm_pct;			 /* own use since the last refresh; NAN unknown */
	double engine_pct[ENGINE_COUNT]; /* the same of what else it uses, by enum engine */
	double cpu_pct;	       /* of one core since the last refresh; NAN unknown or first */
	int64_t rss_bytes;     /* host memory, or -1 */
	int64_t held_since_ms; /* first seen on the card; -1: was there before anybody looked */
	int64_t last_active_ms; /* -1: never seen active */
	bool active;		/* computes now, as far as can be told */
	int64_t idle_since_ms;	/* has not computed since; -1: active, or not known */
	bool idle_longer;	/* nobody saw what it did before: it may be for longer */
	bool context_only;	/* holds about as much as a bare context */
	bool holder;		/* compute or MPS: see the definitions */
};

struct live_card {
	struct card_id id;
	enum card_status status;
	int code;		/* the driver's code behind a status that is not ok */
	enum card_state state;	/* of the newest sample; CARD_UNOBSERVED: none */
	int64_t state_since_ms; /* in this state since, as far as is known; or -1 */
	bool state_longer;	/* nobody saw it before: it may be for longer */
	int64_t free_since_ms;	/* truly idle since, by the store and what was seen; or -1 */
	/* By enum metric; NAN unknown. What an instance has not (temperature, power, clocks) is
	 * that of its card: do not add it up. */
	double values[METRIC_COUNT];
	metric_texts texts;		   /* serial number and the like; "" unknown */
	size_t board;			   /* index into live_boards() */
	bool processes_known;		   /* the driver lists processes */
	size_t first_process, n_processes; /* in live.processes */
};

/* A physical card: one card, or with MIG on those that it is divided into. */
struct live_board {
	struct card_id id;
	enum card_status status;
	int code;
	bool mig;		     /* divided: its cards are instances */
	size_t first_card;	     /* one of them, in live.cards */
	double values[METRIC_COUNT]; /* as of a card; of the whole board */
	metric_texts texts;
};

struct live_options {
	struct source_options source;
	const char *db;		      /* store to ask for the past, or NULL: none */
	struct rules rules;	      /* of the states */
	const unsigned char *metrics; /* flags: which to read; NULL: live_usual_metrics */
};

struct live;

/* What stat, top and pick show: METRIC_COUNT flags. */
extern const unsigned char live_usual_metrics[METRIC_COUNT];

/* Opens the source and, when there is one, the store (a store that cannot be read is a note in
 * live_note(), not a failure). */
int live_open(struct live **l, const struct live_options *o, struct err *e);
void live_close(struct live *l);
/* Reads everything again. A card's fault is its status; fails when the driver is gone. */
int live_refresh(struct live *l, struct err *e);

/* Reads the processes' CPU time once more, some time after a refresh: their cpu_pct is then
 * known after one refresh already. */
void live_measure_cpu(struct live *l);

/* Valid until the next refresh. */
const struct live_card *live_cards(const struct live *l, size_t *n);
const struct live_process *live_processes(const struct live *l, size_t *n); /* by card */
const struct live_board *live_boards(const struct live *l, size_t *n);
/* Appends the arguments of a process, NUL-terminated one after the other, safe to show; nothing
 * when they cannot be read. */
void live_arguments(struct live *l, const struct live_process *p, struct str *out);
int64_t live_now_ms(const struct live *l);
const char *live_driver(const struct live *l), *live_hostname(const struct live *l);
const char *live_note(const struct live *l); /* "" or why the past is not known */

#endif
