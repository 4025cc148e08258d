/* Accounting: the driver's samples of one card become time in states. Each sample is classified
 * by itself and accounts for the time until the next one, at most `hold_ms`; what no sample
 * covers is unobserved. Moments are quantised to milliseconds, not lengths, so sums are exact:
 * what is accounted between two moments always adds up to the time between them. */
#ifndef GUA_CLASSIFY_ACCOUNT_H
#define GUA_CLASSIFY_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "classify/classify.h"
#include "classify/ledger.h"
#include "model/reading.h"

/* Pieces of one drain, kept until its energy is known and split over them. */
#define ACCOUNT_PIECES 32
struct account_piece {
	int64_t slot;
	enum card_state state;
	int64_t ms;
};

/* One card's running account. Zero-initialise, then account_start(). */
struct account {
	uint32_t card;			    /* index in the recorder's table */
	bool started;			    /* covered_ms is set */
	int64_t covered_ms;		    /* all time before is accounted */
	bool pending;			    /* there is a sample whose time goes on */
	double pending_pct;		    /* its utilisation */
	int64_t pending_to_ms;		    /* how long it may account at most */
	struct use_since use;		    /* of the drain that is being accounted */
	double energy_mj;		    /* counter at the last drain, or NAN */
	int64_t observed_ms, unobserved_ms; /* since account_start(), for the log and events */
	struct account_piece pieces[ACCOUNT_PIECES];
	size_t n_pieces;
};

/* What a drain brings for one card. */
struct account_drain {
	const struct util_sample *samples; /* in time order */
	size_t n_samples;
	int64_t hold_ms;  /* how long a sample of this drain may account */
	bool use_known;	  /* the holders' sm_pct are known */
	double energy_mj; /* running counter, or NAN */
};

/* Starts (or starts over) at `from_ms`: nothing before is accounted. Without this the first
 * sample starts it. */
void account_start(struct account *a, uint32_t card, int64_t from_ms);

/* Accounts what the samples say; time after the newest one waits for the next. Holders'
 * last_active_ms are brought forward. */
void account_drain(struct account *a, const struct account_drain *d, struct holder *holders,
	size_t n_holders, const struct rules *rules, struct ledger *ledger);

/* Accounts up to `to_ms` with the sample that is pending as far as it holds, the rest as
 * unobserved: before the holders change, and at the end. Without a pending sample it waits: the
 * driver may still have older ones. */
void account_flush(struct account *a, int64_t to_ms, struct holder *holders, size_t n_holders,
	const struct rules *rules, struct ledger *ledger);

/* There is no reading: drops the pending sample and accounts up to `to_ms` as unobserved. */
void account_blind(struct account *a, int64_t to_ms, struct ledger *ledger);

#endif
