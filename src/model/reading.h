/* What a source reports about the cards: identities, samples, process lists, counters. A
 * reading that the driver does not provide is NAN (doubles) or -1 (integers), never 0. */
#pragma once

#include "model/card.h"

/* Where a card's utilisation comes from. */
enum util_kind {
	UTIL_NONE,    /* no reading: the time is unobserved */
	UTIL_RING,    /* every sample of the driver's ring */
	UTIL_POLLED,  /* readings at drains and glances */
	UTIL_MEAN,    /* like a ring, with longer periods: between readings of counters (GPM) */
	UTIL_UNKNOWN, /* the card answers, but does not support utilisation: samples are NAN */
};

/* Whether there are percentages among the samples of that kind. */
static inline bool reading_util_is_known(enum util_kind kind)
{
	return kind != UTIL_NONE && kind != UTIL_UNKNOWN;
}

/* One driver sample: the mean over the period that ends at its stamp. */
struct util_sample {
	int64_t wall_us; /* the driver's stamp, CLOCK_REALTIME */
	double util_pct; /* 0..100, or NAN (UTIL_UNKNOWN) */
};

/* Other engines of a card; drivers that report their use know at least the first three. The
 * first is the use of the memory bus: every computation causes it, so it does not count as
 * work by itself. */
enum engine { ENGINE_MEMORY, ENGINE_ENCODER, ENGINE_DECODER, ENGINE_JPEG, ENGINE_FLOW };
#define ENGINE_COUNT 5

/* The mean use of one process since the last drain. Processes that are not listed had none. */
struct process_util {
	uint32_t pid;
	int64_t wall_us;		 /* stamp of its newest sample */
	double sm_pct;			 /* 0..100 */
	double engine_pct[ENGINE_COUNT]; /* by enum engine; NAN: not reported */
};

/* A drain is asked for in at most this many parts. */
enum { PROCESS_PARTS = 6 };

/* The same from a later moment on: which process used the card when within the drain. */
struct process_part {
	uint32_t pid;	  /* 0: a new moment begins */
	int64_t since_us; /* stamp of a sample of the drain */
	double sm_pct;	  /* mean from then to the end of the drain */
};

/* A process that has ended, from the driver's own records (accounting mode). */
struct ended_process {
	uint32_t pid;
	int64_t started_ms, ended_ms; /* wall clock */
	int64_t mem_peak_bytes;	      /* or -1 */
};

/* The record that accounting mode keeps about a process that is or was on a card. */
struct process_account {
	uint32_t pid;
	double gpu_pct, memory_pct; /* mean use of the card, and of its memory bus */
	int64_t mem_peak_bytes;	    /* or -1 */
	int64_t time_ms;	    /* how long it was on the card; 0: it still is */
};

enum process_kind {
	PROCESS_COMPUTE = 1,
	PROCESS_GRAPHICS = 2,
	PROCESS_MPS = 4, /* client of an MPS server */
};

/* A process on a card; one entry a pid, lists merged: kind is a set of process_kind bits. */
struct card_process {
	uint32_t pid;
	unsigned kind;
	int64_t mem_bytes; /* or -1: the driver does not report it */
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
	const struct process_part *parts; /* if several processes used the card, and not as in
					     the drain before; by since_us */
	size_t n_parts;
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

/* Forgets everything that was read of a card: it keeps its identity and its source. */
void reading_clear(struct card_reading *r, enum card_status status, int code);
/* Forgets what every drain fills. */
void reading_clear_drained(struct card_reading *r);
/* The driver's record of a process; NULL: the driver has none. */
const struct process_util *reading_process_util(const struct card_reading *r, uint32_t pid);
/* Its SM use in percent. A process without a record used nothing; NAN when the driver keeps no
 * records for this card. */
double reading_process_pct(const struct card_reading *r, uint32_t pid);
/* The largest use of an encoder, a decoder, or the engines for JPEG and optical flow, in
 * percent. An engine that the driver does not report counts as unused: old drivers do not know
 * all of them. */
double reading_most_engine(const double engine_pct[ENGINE_COUNT]);
double reading_engine_pct(const struct card_reading *r, uint32_t pid);
