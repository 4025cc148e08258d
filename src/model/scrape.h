/* The running totals and the readings of one host at a moment: what an exporter shows. */
#pragma once

#include "model/spell.h"
#include "model/state.h"

/* Names for time of unknown users, and of users without a series of their own. */
#define IDENTITY_UNKNOWN "_unknown"
#define IDENTITY_OTHER "_other"
/* A series ends when its card or user has had no time for this long. */
#define SCRAPE_KEEP_MS (35 * INT64_C(86400000))
/* A user's series is 0 for this long after it appears, so that an engine that scrapes every
 * minute sees the zero, and no time before its first scrape is lost. */
#define SCRAPE_NEWBORN_MS 150000

struct scrape_card {
	int64_t gpu; /* its row in the store */
	struct card_id id;
	char source[SOURCE_CAP];
	int64_t ms[CARD_STATES], energy_mj[CARD_STATES];
	bool has_energy; /* some is known */
	bool live;	 /* the readings below are of the present */
	struct card_now now;
	int64_t processes, spells; /* on it now; spells that go on */
};

enum { IDENTITY_NAME_CAP = 160 };

/* What exporters count for an identity: shares of the cards' time, and squatting. */
enum identity_sum {
	IDENTITY_ACTIVE,
	IDENTITY_IDLE_HELD,
	IDENTITY_SQUATTING,
	IDENTITY_RESERVED,
	IDENTITY_SUMS,
};

struct scrape_identity {
	char name[IDENTITY_NAME_CAP];
	int64_t ms[IDENTITY_SUMS];
};

/* How often gua enforce took a step. */
struct scrape_action {
	char step[32], mode[32];
	int64_t count;
};

struct scrape {
	bool any_run;	 /* a recorder has written here */
	bool has_leases; /* some recorder here knew of leases: else there is no reserved time */
	bool up;	 /* it is running, and its last tick is not too old */
	int64_t last_tick_ms, started_ms, interval_ms;
	char version[32], source[SOURCE_LIST_CAP], driver[VERSION_CAP];
	int64_t faults; /* number of current faults; -1: unknown */
	int64_t events; /* since the store was made */
	int64_t db_bytes;
	struct scrape_card *cards; /* by index */
	size_t n_cards;
	int64_t present; /* cards that should have been observed at the last tick */
	bool has_identities;
	struct scrape_identity *identities;
	size_t n_identities;
	int64_t others;			     /* users that are part of _other */
	int64_t spells_ended[SPELL_STOPPED]; /* by how they ended */
	struct scrape_action *actions;
	size_t n_actions;
	bool dcgm; /* show the names of dcgm-exporter, too */
};
