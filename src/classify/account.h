/* Accounting: turns the driver's samples of one card into time in states. Each sample accounts
 * for the period before it, of which cover.h says how much was use; time without a sample is
 * unobserved. The newest sample waits for the next one, with which it is compared. Time is
 * accounted at drains, when the holders up to then are known. Moments are
 * rounded to milliseconds, and lengths are differences of moments, so sums are exact: what is
 * accounted between two moments always adds up to the time between them. */
#pragma once

#include "classify/classify.h"
#include "classify/cover.h"
#include "classify/energy.h"
#include "classify/leased.h"
#include "classify/ledger.h"
#include "classify/idle_spells.h"
#include "driver/ring.h"
#include "model/reading.h"

/* The results of a drain for one card. */
struct account_drain {
	const struct util_sample *samples; /* in time order */
	size_t n_samples;
	struct ring_hold hold; /* dry_ms: instead of hold_ms between two samples of 0; 0: the
				  same */
	bool polled;	       /* single readings: the moment of a change is not known */
	const bool *suspect;   /* by sample: it is not trusted; NULL: all are trusted */
	bool use_known;	       /* the driver reports the use of processes */
	const double *sm_pct;  /* of each holder, NAN unknown */
	const struct turn_parts *parts; /* the same in parts of the drain; NULL: not known */
	const bool *uses_engine;	/* of each holder: another engine; NULL: none does */
	bool one_session; /* all holders belong to one session: the card's use is that session's
			     use */
	double sm_active_pct; /* or NAN */
};

/* A sample that is accounted. */
struct account_sample {
	int64_t at_ms; /* where its period ends */
	double pct;
	bool suspect;
};

/* A stretch within one slot and one state. */
struct account_part {
	int64_t slot, from_ms, to_ms, ms;
	enum card_state state;
	bool free;    /* nobody uses or holds the card */
	bool unsure;  /* a process came or went at a moment that is not known exactly */
	bool metered; /* idle-held, and the energy counter was running */
};

/* One card's running account. Zero-initialise, then account_start(). */
struct account {
	uint32_t card;		     /* index in the recorder's table */
	bool started;		     /* covered_ms is set */
	int64_t covered_ms;	     /* all time before this is accounted */
	int64_t stamp_ms;	     /* of the newest sample that is accounted; -1: none */
	double before[COVER_BESIDE]; /* values of it and of the one before; NAN after a gap */
	int64_t torn_ms;	     /* see account_torn() */
	int64_t calm_ms;	     /* in this call: no holder comes or goes before it ... */
	struct held calm[HELD_MAYBE + 1]; /* ... and this is held until then, by sureness */
	bool led;			  /* holder.leads is set for now */
	bool holds;			  /* `held` waits for its neighbour */
	struct account_sample held;
	struct account_drain latest; /* how long the samples of the newest drain are */
	int64_t even_ms;      /* up to here use was even: not accounted yet, see take_mean() */
	double pct;	      /* utilisation of the time that is being accounted ... */
	bool suspect;	      /* ... and whether it is not trusted: then it is unobserved */
	bool use_known;	      /* the holders' sm_pct of its drain are known */
	bool turns;	      /* ... and the turns, in which each of them used the card */
	int64_t turn_ms;      /* in this call: no turn begins or ends before it */
	bool turn_found;      /* the holders have the states of now ... */
	double turn_pct;      /* ... and use as much as this together ... */
	bool unexplained;     /* ... while the card is used by others, too */
	double sm_active_pct; /* of its drain, or NAN */
	int64_t stall_from_ms, stall_to_ms;   /* see account_stall() */
	int64_t steady_from_ms, steady_to_ms; /* see account_steady() */
	struct held steady;
	int64_t unsure_ms, unsure_held_ms; /* length of the uncertain stretch so far; the part
					      counted as held */
	bool used;			   /* the stretch before was use */
	enum card_state free_state;	   /* of the newest time without use and holders */
	struct leased_now leased;	   /* which leases count, as of ... */
	uint32_t leases_version;	   /* ... account_scene.leases_version */
	struct account_part later;	   /* of this call, and not added to the holders yet */
	double paired_ms;    /* the error of the uncertain stretch just before; 0: none */
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
	struct spells *spells; /* of the card; NULL: not needed */
	struct card_lease *leases;
	size_t n_leases;
	uint32_t leases_version; /* changes when they do; not 0 */
	/* Whether a process uses a lease; both are indexes in the recorder's tables. */
	bool (*is_used_by)(const void *context, uint32_t lease, uint32_t process);
	const void *context;
};

/* Starts (or restarts) at `from_ms`: nothing before it is accounted. With -1 the first sample
 * starts it. */
void account_start(struct account *a, uint32_t card, int64_t from_ms);

/* There is no sample yet: time is accounted from now on. */
void account_begin(struct account *a, int64_t at_ms);

/* For an account that the first sample starts: the time before `seen_ms` is accounted. */
void account_not_before(struct account *a, int64_t seen_ms);

/* Where an account that this drain starts begins: with the period of the first sample or, if
 * the holders were not read by then (account_stall()), of the first sample whose state is
 * certain all the same. */
int64_t account_begin_ms(
	const struct account *a, const struct account_drain *d, const struct account_scene *on);

/* Accounts the time up to the newest sample but one. The newest is accounted at the next drain,
 * with the use of this drain. Sets the holders' use and updates their last_active_ms. */
void account_drain(struct account *a, const struct account_drain *d, struct account_scene *on);

/* Adds a reading of the energy counter (NAN: there is none). Call before account_drain(). */
void account_energy(struct account *a, int64_t at_ms, double energy_mj);

/* The holders were not read between the two moments. Others may have come and gone in that
 * time: it counts as active, or as certainly held, or as unobserved. */
void account_stall(struct account *a, int64_t from_ms, int64_t to_ms);

/* Samples were lost before `at_ms`, or the card was: a gap that begins before it is not the
 * pause of an idle card. */
void account_torn(struct account *a, int64_t at_ms);

/* The process lists cannot be read since `from_ms`, so the holders are not known: time is
 * active or unobserved. INT64_MAX: they are known again. */
void account_unlisted(struct account *a, int64_t from_ms);

/* A process came or went at some time since `from_ms`: accounted time becomes less certain if
 * its state depends on that. */
void account_doubt(struct account *a, int64_t from_ms, const struct account_scene *on);

/* Used memory did not change between the two moments, at any glance: whatever processes came
 * and went, as much memory was held as at the first. */
void account_steady(struct account *a, int64_t from_ms, int64_t to_ms, struct held held);

/* Accounts up to `to_ms`, for the end of a recording: the newest sample as long as it holds,
 * the rest as unobserved. Without a sample it accounts no time: the driver may still have older
 * ones. */
void account_flush(struct account *a, int64_t to_ms, struct account_scene *on);

/* Adds to the ledger what leases have, before it is stored or the leases change. */
void account_leased(struct account *a, struct account_scene *on);

/* There is no reading: accounts up to `to_ms` as unobserved, except for the period of a sample
 * that waits. */
void account_blind(struct account *a, int64_t to_ms, struct account_scene *on);
