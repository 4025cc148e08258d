/* The present: the cards now, the processes on them, and since when each is in its state. Two
 * engines fill it: the driver joined with the store (present/live.h), and the store alone
 * (present/present_store.h), for readers that must not ask the driver. Readers of the present
 * do not look behind it: what an engine does not know is NAN, -1, "" or a flag that says so.
 *
 * An engine fills
 *   - now_ms: the moment that it is about;
 *   - hosts: the driver one, the store one for each store. The data of a host is current unless
 *     it is `stale`: then it is from the last tick of its recorder, last_tick_ms;
 *   - cards: by host; the store by index and instance, the driver in its own order, where new
 *     ones come last and none moves. Values are those that were asked for (driver), or those
 *     that a tick has: use, power, its limit, temperature, memory (store);
 *   - processes: by card. The driver lists all, also those that only draw, in its own order;
 *     the store lists holders, the longest idle first;
 *   - boards and accounts: the driver alone.
 * Texts are safe to show. */
#pragma once

#include "model/lease.h"
#include "model/metric.h"
#include "model/process.h"
#include "model/reading.h"
#include "model/release.h"
#include "model/state.h"

enum { LEASED_TO_CAP = 96 };

struct present_host {
	char hostname[128], driver[VERSION_CAP];
	char source[SOURCE_LIST_CAP]; /* of its newest recorder (store) */
	bool any_run, running; /* a recorder wrote; the newest one has not ended (store) */
	bool killed;	/* it was killed: it has not ended, and no longer exists (store) */
	bool stale;	/* the data is from last_tick_ms, not current (store) */
	bool simulated; /* its source invents its data (store) */
	int64_t last_tick_ms; /* of its newest recorder (store); or -1 */
	int64_t interval_ms;  /* between its ticks (store) */
	/* When its last recorder last wrote; -1: a recorder is running, or there was none. */
	int64_t recorded_until_ms;
	char note[256];	    /* "" or why the past is not known (driver) */
	struct rules rules; /* what active and held mean */
};

/* Memory in use that no listed process explains is reported from this size on. Less may belong
 * to the driver (older calls do not report that part separately) or to the display. Usually the
 * process that uses it runs in another container. */
#define ORPHAN_LEAST_BYTES (1LL << 30)

/* A card, or a MIG instance, which is a card of its own. */
struct present_card {
	size_t host; /* index into hosts */
	struct card_id id;
	char source[SOURCE_CAP]; /* the name of the source that reports it: "nvml", "sim" */
	enum card_status status;
	int code;		/* the driver's error code if the status is not ok */
	bool gone;		/* removed on purpose, which is not a fault: do not show it */
	int64_t last_seen_ms;	/* accounted up to here (store); or -1 */
	enum card_state state;	/* of the newest sample; CARD_UNOBSERVED: nothing is known */
	int64_t state_since_ms; /* in this state since, as far as is known; or -1 */
	bool state_longer;	/* no earlier reading: it may be longer */
	int64_t free_since_ms;	/* truly-idle since then; or -1 */
	/* Its leases: to whom it was given, "alice (slurm 4)", and since when. With several,
	 * the oldest, and how many more there are; "": none is known. */
	char leased_to[LEASED_TO_CAP];
	char lease_owner[USER_CAP], lease_job[LABEL_CAP]; /* of it: "alice", "slurm:4" */
	char lease_task[TASK_CAP]; /* of a task of an array: "slurm:3_2" */
	int64_t leased_since_ms;   /* or -1 */
	size_t n_leases;
	int64_t unexplained_bytes; /* memory in use without a listed process, beyond what the
				      driver keeps for itself; 0: none, or unknown */
	/* By enum metric; NAN unknown. Values that a MIG instance does not have (temperature,
	 * power, clocks) are those of its board: do not add them up. */
	double values[METRIC_COUNT];
	metric_texts texts;   /* serial number and the like; "" unknown */
	metric_codes codes;   /* calls that failed, also of a value that is known otherwise */
	size_t board;	      /* index into boards */
	bool processes_known; /* all processes are listed */
	size_t first_process, n_processes; /* in processes */
};

/* A process on a card. */
struct present_process {
	struct process_id id;
	size_t card;			 /* index into cards */
	unsigned kind;			 /* process_kind bits */
	bool holder;			 /* compute or MPS: see the definitions */
	int64_t mem_bytes;		 /* on the card, or -1 */
	enum context context;		 /* whether its memory is about a bare context */
	double sm_pct;			 /* own use since the last look; NAN unknown */
	double engine_pct[ENGINE_COUNT]; /* the same for other engines, by enum engine */
	double cpu_pct;	   /* of one core; NAN: unknown, or live_process_measure() read it only
			      once */
	int64_t rss_bytes; /* host memory when live_process_measure() last read it; or -1 */
	int64_t held_since_ms;	/* first seen on the card; -1: not known */
	int64_t last_active_ms; /* -1: never seen active */
	bool active;		/* computing now, as far as is known */
	int64_t idle_since_ms;	/* idle since; -1: active, or not known */
	bool idle_longer;	/* no earlier reading: it may be longer */
	/* If no recorder is running: since when the process was idle at recorded_until_ms. What
	 * it did later is unknown. -1: not known, or it was active then. */
	int64_t was_idle_since_ms;
	bool was_idle_longer; /* no earlier reading: it may be longer */
};

/* A physical card. It is one card or, with MIG, several instances. */
struct present_board {
	struct card_id id;
	enum card_status status;
	int code;
	bool mig;		     /* divided by MIG: its cards are instances */
	size_t first_card;	     /* index of one of its cards */
	double values[METRIC_COUNT]; /* as in present_card, for the whole board */
	metric_texts texts;
	metric_codes codes;
};

/* A record of accounting mode. */
struct present_account {
	size_t card; /* index into cards */
	struct process_account record;
};

struct present {
	int64_t now_ms;
	struct present_host *hosts;
	size_t n_hosts;
	struct present_card *cards;
	size_t n_cards;
	struct present_board *boards;
	size_t n_boards;
	struct present_process *processes; /* by card */
	size_t n_processes;
	struct present_account *accounts; /* by card */
	size_t n_accounts;
};

/* Whether a process was idle when the last recorder ended, and may still be. */
bool present_was_idle(const struct present_process *p);
/* The command that releases what an idle holder holds (model/release.h). False: there is none,
 * because it may compute, has ended, or the command would also end another process on a card
 * that may compute. */
bool present_release(
	const struct present *all, const struct present_process *p, char command[RELEASE_CAP]);
/* How long a holder has been idle; -1: it computes, is not a holder, or it is not known. Of a
 * stale host: how long it was at its last tick. */
int64_t present_idle_ms(const struct present *all, const struct present_process *p);
/* Notes that a lease covers the card; unless it is unknown, it makes a truly-idle card
 * reserved. */
void present_add_lease(struct present_card *card, const struct lease *lease);
/* The sentence for a card that is CARD_SUSPECT: "card 3 reports 100 % use with ...". */
void present_suspect_text(char *dst, size_t cap, const struct present_card *card);
