/* What the recorder knows between two ticks: cards, holders, accounts, and the sums and events
 * that wait for the store. The caller passes in the time and the readings; this module reads
 * nothing itself. */
#pragma once

#include "base/fault.h"
#include "classify/account.h"
#include "classify/idle_spells.h"
#include "classify/ledger.h"
#include "model/reading.h"
#include "model/tick.h"
#include "record/holders.h"
#include "proc/lives.h"
#include "driver/host/round.h"
#include "driver/source.h"

#define WATCH_MAX_EVENTS 256

struct watch_pace {
	int64_t drain_ms;
	int64_t stall_ms; /* a longer time without a glance is a stall */
};

/* One card: its account and its holders. */
struct watched {
	struct account account;
	struct holders holders;
	struct spells spells;
	struct card_lease *leases; /* of watch_leases.c */
	size_t n_leases, cap_leases;
	uint32_t leases_version; /* see struct account_scene */
	int64_t glance_ms; /* last glance with the same memory as at its last look; -1 never */
	int64_t look_ms;   /* its last process list; -1 none yet */
	int64_t mem_bytes; /* used at its last look; -1 unknown */
	int64_t floor_bytes; /* smallest memory in use without a process */
	bool exits;	     /* a holder exited since its last look */
	int64_t empty_ms; /* no process has been listed since then; -1: some are, or there is no
			     list */
	bool high_known;  /* its newest sample is about 100 %, because of a holder or latched */
	struct fault fault;	  /* lost, asleep, denied */
	struct fault suspect;	  /* its utilisation is not trusted */
	struct fault unlisted;	  /* its process lists cannot be read */
	bool stuck;		  /* it must not be asked: an earlier call has not returned */
	bool gone;		  /* no longer present: it has no time to account */
	enum util_kind util_kind; /* of the last drain */
	int64_t unobserved_ms; /* of the account, at the last tick: if it grows, there is a gap
				*/
	bool gap_told; /* at the last tick it was lost, asleep ..., which explains a gap */
	struct card_now now;		/* read since the last tick */
	struct energy_point meter;	/* the newest reading of the energy counter ... */
	struct energy_point tick_meter; /* ... and that at the last tick; NAN: none */
};

struct watch {
	struct rules rules;
	struct watch_pace pace;
	struct lives lives;
	struct ledger ledger;
	struct watched *cards;	    /* same order as the source's cards */
	struct card_entry *entries; /* the same cards for the store */
	size_t n_cards, cap_cards;
	struct event *events;	/* that wait for the store */
	struct holder_now *now; /* filled by watch_tick(), like the next */
	struct spell *spells;
	size_t n_events, cap_events, cap_now, cap_spells;
	struct lease_entry *leases; /* those that go on, or are not accounted and stored yet */
	size_t n_leases, cap_leases;
	bool has_leases;			     /* a scheduler says what it gives away */
	int64_t leases_ms;			     /* when they were read; -1: not yet ... */
	size_t n_lease_cards;			     /* ... for this many cards ... */
	uint64_t lease_generation, named_generation; /* ... and which they were */
	uint32_t *lease_at; /* private: entries, by the place in what was read */
	size_t cap_lease_at;
	struct past_spell *past; /* those of cards that were not listed yet */
	size_t n_past;
	struct listed *list; /* private, like the next: of one card */
	double *sm_pct;
	bool *uses_engine;
	double (*part_pct)[PROCESS_PARTS]; /* of each holder */
	bool *suspect;			   /* by sample of one drain: it is not trusted */
	size_t cap_list, cap_sm_pct, cap_part_pct, cap_uses_engine, cap_suspect;
};

struct watch_options {
	const struct rules *rules; /* is copied */
	struct watch_pace pace;
	struct reader *reader; /* borrowed; NULL: every card has own_processes */
	bool pidfds;	       /* pids belong to this host */
	enum privacy privacy;
};
int watch_init(struct watch *w, const struct watch_options *o, struct err *e);
void watch_finish(struct watch *w);

/* Returns what the store has about a card; completes the identity of one that the driver cannot
 * name. */
struct watch_past {
	struct card_past (*card)(void *context, struct card_id *id);
	void *context;
};

/* Takes new cards and status changes; a card that was accounted a moment ago continues. */
int watch_cards(struct watch *w, const struct source *s, int64_t now_ms,
	const struct watch_past *past, struct err *e);

/* Takes the results of a round: processes that came and went, energy, and samples of cards that
 * were drained. Asks in `round` for another look where it is needed. */
int watch_round(struct watch *w, struct source *s, struct round *round, struct err *e);

/* The driver does not answer: time up to `until_ms` is unobserved. */
void watch_blind(struct watch *w, int64_t until_ms);
/* Accounts up to now with the last samples, before the recorder ends. */
void watch_flush(struct watch *w, int64_t now_ms);
/* The wall clock jumped: time up to `old_now_ms` of the old clock is unobserved, and accounts
 * continue at `new_now_ms`. The current round is lost: asks for another look. */
void watch_clock_step(
	struct watch *w, struct round *round, int64_t old_now_ms, int64_t new_now_ms);

/* An event without its text; see struct event. */
struct occurrence {
	int64_t at_ms;
	enum event_kind kind;
	int card;
	int64_t value;
};
void watch_event(struct watch *w, const struct occurrence *what, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Holders that exited at some time between the two moments count until then; requests a look
 * at their cards. Returns whether there was one. */
bool watch_exits(struct watch *w, struct round *round, int64_t lo_ms, int64_t now_ms);

/* Fills a tick with all data that waits. Then call watch_stored(); if the tick was not written,
 * watch_unstored(), which forgets ended lives without a sum when there are too many. */
int watch_tick(struct watch *w, struct tick *t, int64_t now_ms, struct err *e);
void watch_stored(struct watch *w);
void watch_unstored(struct watch *w);

/* The holders of card `i`, for its account. */
struct account_scene watch_scene(struct watch *w, size_t i);
