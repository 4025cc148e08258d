/* Accounting: the driver's samples of one card become time in states. Each sample is classified
 * by itself and accounts for the time until the next one; what no sample covers is unobserved.
 * Time is accounted at drains, when the holders up to then are known. Moments are rounded to
 * milliseconds, and lengths are differences of moments, so sums are exact: what is accounted
 * between two moments always adds up to the time between them. */
#ifndef GUA_CLASSIFY_ACCOUNT_H
#define GUA_CLASSIFY_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "classify/classify.h"
#include "classify/energy.h"
#include "classify/ledger.h"
#include "model/reading.h"

/* One card's running account. Zero-initialise, then account_start(). */
struct account {
	uint32_t card;		  /* index in the recorder's table */
	bool started;		  /* covered_ms is set */
	int64_t covered_ms;	  /* all time before is accounted */
	bool pending;		  /* the newest sample is not accounted to its end */
	bool pending_suspect;	  /* it is not believed: its time is unobserved */
	double pending_pct;	  /* its utilisation */
	int64_t pending_ms;	  /* when it was taken */
	int64_t pending_to_ms;	  /* it lasts to the next sample, if that is not later ... */
	int64_t pending_short_ms; /* ... and else only until here */
	bool use_known;		  /* the holders' sm_pct of its drain are known */
	double sm_active_pct;	  /* of its drain, or NAN */
	bool doubtful;		  /* the state may have changed within this stretch */
	int64_t stall_from_ms, stall_to_ms; /* see account_stall() */
	int64_t unlisted_ms; /* see account_unlisted(); INT64_MAX: who holds is known */
	int64_t observed_ms, unobserved_ms; /* since account_start(), for the log and events */
	struct energy_split energy;
};

/* The holders on the card, and the rules; passed to everything that accounts time. */
struct account_scene {
	struct holder *holders;
	size_t n;
	const struct rules *rules;
	struct ledger *ledger;
};

/* What a drain brings for one card. */
struct account_drain {
	const struct util_sample *samples; /* in time order */
	size_t n_samples;
	int64_t hold_ms;      /* samples further apart than this leave a gap ... */
	int64_t period_ms;    /* ... before which a sample accounts for no more than this */
	bool polled;	      /* single readings: when the use changed is not known */
	bool suspect;	      /* the samples are not believed */
	bool use_known;	      /* the driver reports the use of processes */
	const double *sm_pct; /* of each holder, NAN unknown */
	double sm_active_pct; /* or NAN */
};

/* Starts (or starts over) at `from_ms`: nothing before is accounted. With -1 the first sample
 * starts it. */
void account_start(struct account *a, uint32_t card, int64_t from_ms);

/* For an account that the first sample starts: the time before `seen_ms` is accounted already.
 */
void account_not_before(struct account *a, int64_t seen_ms);

/* Accounts the time up to the newest sample; the time after it is accounted with the next
 * drain, by the use of this one. Sets the holders' sm_pct and updates their last_active_ms. */
void account_drain(struct account *a, const struct account_drain *d, struct account_scene *on);

/* Adds a reading of the energy counter (NAN: there is none). Call before account_drain(). */
void account_energy(struct account *a, int64_t at_ms, double energy_mj);

/* The holders were not read between the two moments. Where the card's state depends on
 * processes that came or went then, the time is unobserved. */
void account_stall(struct account *a, int64_t from_ms, int64_t to_ms);

/* The process lists cannot be read since then, so the holders are not known: time is active or
 * unobserved. INT64_MAX: they are known again. */
void account_unlisted(struct account *a, int64_t from_ms);

/* A process came or went at some time since `from_ms`: accounted time whose state depends on
 * that becomes less certain. */
void account_doubt(struct account *a, int64_t from_ms, const struct account_scene *on);

/* Accounts up to `to_ms` with the sample that is pending as far as it holds, the rest as
 * unobserved: at the end. Without a pending sample it waits: the driver may still have older
 * ones. */
void account_flush(struct account *a, int64_t to_ms, struct account_scene *on);

/* There is no reading: accounts up to `to_ms` as unobserved, but for what the pending sample
 * covers. */
void account_blind(struct account *a, int64_t to_ms, struct account_scene *on);

#endif
