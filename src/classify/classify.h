/* Pure functions that find the state of a card, of a user on it, and of a process from a
 * sample. gua(1), DEFINITIONS, defines the three levels, each by its own facts. */
#pragma once

#include "base/base.h"
#include "model/reading.h"
#include "classify/cover.h"
#include "classify/edge.h"
#include "classify/turns.h"
#include "model/state.h"

/* What classify_use() computes from one drain. A part (0..1) is the share of the drain's time
 * in which the card was active and the holder was there. */
struct holder_use {
	bool first;	     /* the first stretch of its process in the array */
	double own_part;     /* of this stretch */
	double lead_part;    /* of this stretch, while it leads: see classify_leads() */
	double process_part; /* of all stretches of its process */
	double user_part;    /* of its user */
	double user_pct;     /* SM use of all of its user's processes */
};

/* One stretch of time in which a process held one amount of memory on a card. If the memory of
 * a process changes, it has several stretches, one after the other. */
struct holder {
	uint32_t process;  /* index of the life in the recorder's table */
	uint32_t user;	   /* equal numbers mean the same identity; the recorder numbers them */
	unsigned kind;	   /* process_kind bits */
	int64_t mem_bytes; /* or -1 */
	double sm_pct;	   /* own SM use, mean since the last drain; NAN: not known */
	bool uses_engine;  /* it used another engine (encoder, decoder) since then */
	double own_pct;	   /* for policy: sm_pct, or its card's mean while only its session can
			      have used it; NAN: not known */
	int64_t since_ms;  /* first seen on this card */
	struct edge from, to;	/* the stretch; `to` is EDGE_NEVER while it continues */
	int64_t last_active_ms; /* or -1 */
	/* Set by classify_use() and classify_moment(): the states while the card is active, and
	 * its use then, by which such time is split. */
	enum holder_state own_state, user_state;
	double now_pct;
	double before_pct[COVER_BESIDE]; /* its use in the newest two drains, or parts of one */
	struct turn turn;		 /* set by classify_turns() */
	uint64_t leases; /* a bit for each lease of the card that its process uses ... */
	uint32_t leases_version; /* ... as of account_scene.leases_version */
	bool leads;		 /* set by classify_leads() */
	struct holder_use use;	 /* private to classify.c */
};

/* The holders of a card at one moment, and what they hold together. */
struct held {
	int64_t bytes; /* sum of the known amounts */
	bool unknown;  /* the driver does not report the memory of one of them */
	size_t n;
};

/* Which holders count: those between the moments that count (`at`), only those that certainly
 * held memory, or all that may have held memory. */
enum sureness { HELD_COUNTED, HELD_SURELY, HELD_MAYBE };

/* Whether a process of this kind (process_kind bits) is a holder. */
bool classify_is_holder(unsigned kind, const struct rules *rules);
/* Like classify_holder(), asked for each holder and each piece of time. */
static inline bool classify_holder_counts(const struct holder *h, int64_t at_ms)
{
	return h->from.at <= at_ms && at_ms < h->to.at;
}

/* Adds a holder with this much memory; -1: unknown. */
void classify_held_add(struct held *held, int64_t mem_bytes);
struct held classify_held_at(
	const struct holder *holders, size_t n, int64_t at_ms, enum sureness sure);
/* Finds which holders represent their user at that moment: of the user's holders that count,
 * the busiest, or the first of several equal ones. */
void classify_leads(struct holder *holders, size_t n, int64_t at_ms);

/* Finds the state of a card; a utilisation of NAN means that it cannot be read. Here it is
 * decided that a card is truly-idle, which people call free: for the recorder (account.c) and
 * so for reports, for live views (present/live_judge.c), pages (present/present_store.c) and
 * imports. Elsewhere: `gua pick` has its own conditions in pick_judge(), and judge_sample() in
 * fleet/sampled.c judges samples of other exporters. */
enum card_state classify_card(double util_pct, struct held held, const struct rules *rules);

/* How much of the memory in use on a card without a process may be the driver's own. */
int64_t classify_reserve_bytes(const struct card_reading *r);
/* Whether the utilisation is not trusted: some cards keep reporting about 100 % after their
 * last process was killed ("latched"). Call it only for a card that had no process when the
 * samples were taken and has none now; `used_bytes` is memory in use without the driver's own,
 * -1 unknown. */
bool classify_is_latched(const struct util_sample *samples, size_t n, int64_t used_bytes,
	const struct rules *rules);
/* Whether a latched card may report this utilisation. */
bool classify_may_be_latched(double util_pct);

/* What was seen of a card between two drains; used to find squatters. */
struct use_since {
	const struct util_sample *samples;
	size_t n_samples;
	bool known;		     /* the driver reports the use of processes on this card */
	double mean_pct;	     /* mean utilisation of the samples */
	double active_part;	     /* share of their time that was active, 0..1 */
	int64_t since_us;	     /* where the period of the first sample begins */
	double before[COVER_BESIDE]; /* the samples before the first; NAN: not known */
};
/* The newest sample before the drain, and the one before that. */
struct use_before {
	int64_t wall_us;
	double pct[COVER_BESIDE];
};
/* `before` may be NULL: not known. */
struct use_since classify_use_of_samples(const struct util_sample *samples, size_t n,
	bool known, const struct use_before *before, const struct rules *rules);

/* Sets own_state and user_state of every holder from the use since the last drain. The driver's
 * mean covers idle samples too, so the threshold is scaled to the active samples in which the
 * holder was there: a short burst of 100 % is not idle. */
void classify_use(struct holder *holders, size_t n, const struct use_since *use,
	const struct rules *rules);

/* Finds when the only process that used the card since the last drain did so; if several did,
 * it is not known. */
void classify_turns(struct holder *holders, size_t n, const struct use_since *use,
	const struct rules *rules);
/* The list at that moment shows that one holder took the place of another: it was after the
 * last use of the one and before the first use of the other, by their turns. */
void classify_swap(struct holder *holders, size_t n, int64_t list_ms);
/* The first moment after `at_ms` at which a turn begins or ends; INT64_MAX: none does. */
int64_t classify_next_turn_ms(const struct holder *holders, size_t n, int64_t at_ms);
/* Sets what each holder uses at a moment, by their turns; if it is nobody's turn, the means of
 * the drain count. Returns what the turns use together. */
double classify_now(struct holder *holders, size_t n, int64_t at_ms);
/* Sets the states of the holders, by classify_now(), while their card is active. `unexplained`:
 * others use it, too. */
void classify_moment(
	struct holder *holders, size_t n, bool unexplained, const struct rules *rules);

/* Returns the state of a holder; `when_active` is its state on an active card. */
static inline enum holder_state classify_holder(
	enum card_state card, enum holder_state when_active)
{
	switch (card) {
	case CARD_ACTIVE:
		return when_active;
	case CARD_IDLE_HELD:
		return HOLDER_IDLE_HELD;
	case CARD_USE_UNKNOWN:
		return HOLDER_USE_UNKNOWN;
	default:
		return HOLDER_TRULY_IDLE;
	}
}
