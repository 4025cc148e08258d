/* Accounting: turns the driver's samples of one card into time in states. Each sample is
 * classified on its own and accounts for the time until the next one; time without a sample is
 * unobserved. Time is accounted at drains, when the holders up to then are known. Moments are
 * rounded to milliseconds, and lengths are differences of moments, so sums are exact: what is
 * accounted between two moments always adds up to the time between them. */
#ifndef GUA_CLASSIFY_ACCOUNT_H
#define GUA_CLASSIFY_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "classify/classify.h"
#include "classify/energy.h"
#include "classify/ledger.h"
#include "classify/spell.h"
#include "model/reading.h"

/* One card's running account. Zero-initialise, then account_start(). */
struct account {
	uint32_t card;		  /* index in the recorder's table */
	bool started;		  /* covered_ms is set */
	int64_t covered_ms;	  /* all time before this is accounted */
	bool pending;		  /* the newest sample is not yet accounted to its end */
	bool pending_suspect;	  /* it is not trusted: its time is unobserved */
	double pending_pct;	  /* its utilisation */
	int64_t pending_ms;	  /* when it was taken */
	int64_t pending_to_ms;	  /* it lasts to the next sample, if that one is not later than
				     this ... */
	int64_t pending_short_ms; /* ... otherwise only until this moment */
	bool use_known;		  /* the holders' sm_pct of its drain are known */
	double sm_active_pct;	  /* of its drain, or NAN */
	bool doubtful;		  /* the state may have changed within this stretch */
	int64_t stall_from_ms, stall_to_ms; /* see account_stall() */
	int64_t unlisted_ms; /* see account_unlisted(); INT64_MAX: the holders are known */
	int64_t observed_ms, unobserved_ms; /* since account_start(), for the log and events */
	int64_t idle_held_since_ms; /* idle-held without a pause since then; -1: it is not */
	int64_t pause_ms;	    /* time without an observation since the last one */
	struct energy_split energy;
};

/* The holders on the card, and the rules; passed to everything that accounts time. */
struct account_scene {
	struct holder *holders;
	size_t n;
	const struct rules *rules;
	struct ledger *ledger;
	struct spells *spells; /* of the card; NULL: not asked for */
};

/* The results of a drain for one card. */
struct account_drain {
	const struct util_sample *samples; /* in time order */
	size_t n_samples;
	int64_t hold_ms;	 /* samples further apart than this leave a gap ... */
	int64_t period_ms;	 /* ... before which a sample accounts for no more than this */
	bool polled;		 /* single readings: the moment of a change is not known */
	bool suspect;		 /* the samples are not trusted */
	bool use_known;		 /* the driver reports the use of processes */
	const double *sm_pct;	 /* of each holder, NAN unknown */
	const bool *uses_engine; /* of each holder: another engine; NULL: none does */
	double sm_active_pct;	 /* or NAN */
};

/* Starts (or restarts) at `from_ms`: nothing before it is accounted. With -1 the first sample
 * starts it. */
void account_start(struct account *a, uint32_t card, int64_t from_ms);

/* For an account that the first sample starts: the time before `seen_ms` is already accounted.
 */
void account_not_before(struct account *a, int64_t seen_ms);

/* Accounts the time up to the newest sample. The time after it is accounted at the next drain,
 * with the use of this drain. Sets the holders' use and updates their last_active_ms. */
void account_drain(struct account *a, const struct account_drain *d, struct account_scene *on);

/* Adds a reading of the energy counter (NAN: there is none). Call before account_drain(). */
void account_energy(struct account *a, int64_t at_ms, double energy_mj);

/* The holders were not read between the two moments. If the card's state depends on processes
 * that came or went in that time, the time is unobserved. */
void account_stall(struct account *a, int64_t from_ms, int64_t to_ms);

/* The process lists cannot be read since `from_ms`, so the holders are not known: time is
 * active or unobserved. INT64_MAX: they are known again. */
void account_unlisted(struct account *a, int64_t from_ms);

/* A process came or went at some time since `from_ms`: accounted time becomes less certain if
 * its state depends on that. */
void account_doubt(struct account *a, int64_t from_ms, const struct account_scene *on);

/* Accounts up to `to_ms`, for the end of a recording: the pending sample as long as it holds,
 * the rest as unobserved. Without a pending sample it accounts no time: the driver may still
 * have older ones. */
void account_flush(struct account *a, int64_t to_ms, struct account_scene *on);

/* There is no reading: accounts up to `to_ms` as unobserved, except for the time that the
 * pending sample covers. */
void account_blind(struct account *a, int64_t to_ms, struct account_scene *on);

#endif
