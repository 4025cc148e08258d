/* What a live view has read: processes, cards, boards. */
#ifndef GUA_PRESENT_DATA_H
#define GUA_PRESENT_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "classify/context.h"
#include "model/metric.h"
#include "model/process.h"
#include "model/reading.h"
#include "model/state.h"

struct live_process {
	struct process_id id;
	size_t card;			 /* index into live.cards */
	unsigned kind;			 /* process_kind bits */
	int64_t mem_bytes;		 /* on the card, or -1 */
	double sm_pct;			 /* own use since the last refresh; NAN unknown */
	double engine_pct[ENGINE_COUNT]; /* the same for other engines, by enum engine */
	double cpu_pct; /* percent of one core; NAN: unknown, or live_measure() has read it once
			   only */
	int64_t rss_bytes;	/* host memory when live_measure() last read it; or -1 */
	int64_t held_since_ms;	/* first seen on the card; -1: it was there at the first reading
				 */
	int64_t last_active_ms; /* -1: never seen active */
	bool active;		/* computes now, as far as is known */
	int64_t idle_since_ms;	/* idle since; -1: active, or not known */
	bool idle_longer;	/* there is no earlier reading: it may be longer */
	/* If no recorder is running: since when the process was idle at the moment when the
	 * last recorder ended (see live_recorded_until()). What it did later is unknown. -1:
	 * not known, or it was active then. */
	int64_t was_idle_since_ms;
	bool was_idle_longer; /* there is no reading from before that */
	enum context context; /* whether its memory is about a bare context */
	bool holder;	      /* compute or MPS: see the definitions */
};

/* Memory in use that no listed process explains is reported from this size on. Less may belong
 * to the driver (older calls do not report that part separately) or to the display. Usually the
 * process that uses it runs in another container. */
#define ORPHAN_LEAST_BYTES (1LL << 30)

struct live_card {
	struct card_id id;
	char source[SOURCE_CAP]; /* the name of the source that reports it: "nvml", "sim" */
	enum card_status status;
	int code;		/* the driver's error code if the status is not ok */
	bool gone;		/* removed on purpose, which is not a fault: do not show it */
	enum card_state state;	/* of the newest sample; CARD_UNOBSERVED: nothing is known */
	int64_t state_since_ms; /* in this state since, as far as is known; or -1 */
	bool state_longer;	/* not seen before that: it may be longer */
	int64_t free_since_ms;	/* truly idle since, by the store and by this view; or -1 */
	int64_t unexplained_bytes; /* used while no process is listed, beyond what the driver
				      keeps for itself; 0: none, or not known */
	/* By enum metric; NAN unknown. Values that a MIG instance does not have (temperature,
	 * power, clocks) are those of its board: do not add them up. */
	double values[METRIC_COUNT];
	metric_texts texts;		   /* serial number and the like; "" unknown */
	size_t board;			   /* index into live_boards() */
	bool processes_known;		   /* the driver lists processes */
	size_t first_process, n_processes; /* in live.processes */
};

/* A physical card. It is one card or, with MIG, several instances. */
struct live_board {
	struct card_id id;
	enum card_status status;
	int code;
	bool mig;		     /* divided by MIG: its cards are instances */
	size_t first_card;	     /* index of one of its cards in live.cards */
	double values[METRIC_COUNT]; /* as in live_card, for the whole board */
	metric_texts texts;
};

/* A record of accounting mode. */
struct live_account {
	size_t card; /* index into live.cards */
	struct process_account record;
};

#endif
