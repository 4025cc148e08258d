/* What a source reports about the cards: identities, samples, process lists, counters. A
 * reading that the driver does not provide is NAN (doubles) or -1 (integers), never 0. */
#ifndef GUA_MODEL_READING_H
#define GUA_MODEL_READING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/card.h"
#include "model/process_reading.h"

/* Where a card's utilisation comes from. */
enum util_kind {
	UTIL_NONE,   /* no reading: the time is unobserved */
	UTIL_RING,   /* every sample of the driver's ring */
	UTIL_POLLED, /* readings at drains and glances */
	UTIL_MEAN,   /* like a ring, with longer periods: between two readings of counters (GPM)
		      */
	UTIL_UNKNOWN, /* the card answers, but does not support utilisation: samples are NAN */
};

/* Whether there are percentages among the samples of that kind. */
bool reading_util_is_known(enum util_kind kind);

/* One driver sample: the mean over the period that ends at its stamp. */
struct util_sample {
	int64_t wall_us; /* the driver's stamp, CLOCK_REALTIME */
	double util_pct; /* 0..100, or NAN (UTIL_UNKNOWN) */
};

/* Everything that is known about one card after a drain or a look. Arrays belong to the
 * source and are valid until its next call. */
struct card_reading {
	struct card_id id;
	char source[SOURCE_CAP]; /* the name of its source: "nvml", "sim" */
	bool own_processes;	 /* the source describes its processes; false: /proc does */
	enum card_status status;
	int code;  /* the driver's return code behind a status that is not ok */
	bool gone; /* lost, but not through a fault: the instance was destroyed, or the card was
		      divided into instances */

	/* Filled by every drain. */
	enum util_kind util_kind;
	const struct util_sample *samples; /* in time order, all newer than at the last drain */
	size_t n_samples;
	size_t n_lost;		 /* samples that the ring dropped before they were read */
	bool process_util_known; /* false: the driver has none for this card */
	const struct process_util *process_utils;
	size_t n_process_utils;
	unsigned n_engines; /* number of engines, from the first of enum engine on, that the
			       driver reports */
	bool stranger;	    /* the process utilisation has a pid that is in no list */
	const struct ended_process *ended; /* recorded since the drain before */
	size_t n_ended;
	double sm_active_pct; /* mean since the drain before (GPM), or NAN */
	double power_mw;      /* now, or NAN; only when the source's caller asks for it */

	/* Filled by every drain, and by glances that ask for it. */
	double energy_mj; /* running counter, or integrated from power; NAN: neither */

	/* Filled by every look (process lists, memory); memory also by glances. */
	bool processes_known; /* false: the lists could not be read */
	const struct card_process *processes;
	size_t n_processes;
	int64_t mem_used_bytes;	    /* or -1 */
	int64_t mem_reserved_bytes; /* kept by the driver and not in used; 0 also if unknown */
	bool mem_includes_reserved; /* used includes what the driver reserves for itself */
	bool mem_is_sum; /* used is the sum over processes: the driver reports nothing else */
};

#endif
