/* How a source does each of its jobs: which call it uses, and whether that works. */
#ifndef GUA_DRIVER_SOURCE_H
#define GUA_DRIVER_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "driver/source_host.h"
#include "model/metric.h"
#include "model/process.h"
#include "model/reading.h"

/* How one job of the source is done: for the log and `gua doctor`. */
struct facility {
	const char *job; /* "utilisation", "process list", "energy" ... */
	const char *how; /* the symbol or way in use: "nvmlDeviceGetMemoryInfo_v2" */
	bool fallback;	 /* not the preferred way */
	bool works;	 /* false: no way works; `how` says why */
	char note[96];	 /* which cards, or the code that made it fall back; may be "" */
};

/* A source of GPU numbers: the real driver, a simulated one, or several joined (set.c). A
 * source owns the arrays that its readings point to; they are valid until its next call. All
 * calls are made from one thread at a time and may block when a driver hangs: driver/host/ puts
 * a deadline around them. */

struct source;

/* What a glance reads. */
enum glance { GLANCE_MEMORY = 1, GLANCE_ENERGY = 2 };

struct source_ops {
	const char *name; /* "nvml", "sim" */
	/* Finds the cards again: new ones are added, lost ones matched by UUID, MIG instances
	 * enumerated. Order of cards[] never changes and none is removed while the source is
	 * open. Fails only when there is no driver to ask. */
	int (*scan)(struct source *s, struct err *e);
	/* Utilisation samples since its last drain, process utilisation and energy of the cards
	 * whose flag is set (n_cards flags; NULL: of all). A card's fault is its status, not a
	 * failure; fails only when the driver as a whole is gone. */
	int (*drain)(struct source *s, const bool *which, struct err *e);
	/* The cheap reading between two drains: what `what` (enum glance bits) asks for, of all
	 * cards. Where utilisation is not sampled by the driver, a glance reads it, too; the
	 * next drain has it among its samples. Fails as drain() does. */
	int (*glance)(struct source *s, unsigned what, struct err *e);
	/* Process lists and memory of the cards whose flag is set (n_cards flags; NULL: of all,
	 * and MIG instances are enumerated again). Fails as drain() does. */
	int (*look)(struct source *s, const bool *which, struct err *e);
	/* Describes a process of a card with own_processes; false: there is no such process.
	 * NULL: there is no such card. */
	bool (*describe)(struct source *s, uint32_t pid, struct process_id *id);
	/* Reads the wanted metrics of a card; does not change the values that it does not know.
	 * Only for cards whose status is ok; the status may have changed afterwards. NULL: the
	 * source has no metrics. */
	void (*metrics)(struct source *s, const struct metric_request *request, double *values,
		metric_texts texts);
	/* Reads at most `max` records of accounting mode; returns how many. NULL: none. */
	size_t (*accounts)(
		struct source *s, size_t card, struct process_account *a, size_t max);
	/* The identity of the card that a MIG instance is a part of; NULL: there are none. */
	void (*board)(struct source *s, size_t card, struct card_id *id);
	/* See source_late(). NULL: no call goes on without its caller. */
	int (*late)(struct source *s, struct err *e);
	/* How each job is done; at most `max` rows. */
	size_t (*facilities)(struct source *s, struct facility *rows, size_t max);
	void (*close)(struct source *s);
};

/* An error that the driver reported of a card. */
struct source_xid {
	size_t card;	/* index into cards[] */
	int64_t number; /* which: NVIDIA's list of XIDs */
};

/* The common head of every source. */
struct source {
	const struct source_ops *ops;
	struct card_reading *cards; /* owned by the source */
	size_t n_cards;
	const struct source_xid *xids; /* reported since the drain before; filled by drain() */
	size_t n_xids;
	char driver_version[VERSION_CAP]; /* "" when unknown */
	char hostname[128];		  /* a simulated source names its own host; else "" */
	int64_t sample_period_us; /* longest time between two samples; 0: at most a second */
	int code;		  /* the driver's code behind a call that failed; 0: none */
	bool incomplete;	  /* a part of it is down: a scan may bring cards back */
	int64_t ring_us; /* that the shortest ring spans, as seen so far; 0: not known yet */
	/* What the last glance cost, by clock_cost_us(): for memory and for energy. */
	int64_t memory_cost_us, energy_cost_us;
	/* Of a source in another process: the CPU time that it has taken there, in all, and the
	 * wall clock there at the end of the last call. */
	int64_t apart_cost_us, apart_wall_ms;
	struct err unsaid; /* of a call that returns no code: see source_unsaid() */
	bool want_power;   /* set by the caller: drains read power_mw, slow on some drivers */
};

/* Opens the source and does the first scan. ERR_WORLD with one sentence that says why not. */
int source_open(struct source **s, const struct source_options *options, struct err *e);
void source_close(struct source *s);
int source_scan(struct source *s, struct err *e);
int source_drain(struct source *s, const bool *which, struct err *e);
int source_glance(struct source *s, unsigned what, struct err *e);
int source_look(struct source *s, const bool *which, struct err *e);
/* Why a call that returns no code has failed since this was last asked: no reading is left. */
int source_unsaid(struct source *s, struct err *e);
/* The result of a call that returned ERR_BUSY and goes on; ERR_BUSY: not done, ask again. */
int source_late(struct source *s, struct err *e);

#endif
