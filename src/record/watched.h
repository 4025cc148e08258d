/* A card that the recorder watches. */
#ifndef GUA_RECORD_WATCHED_H
#define GUA_RECORD_WATCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fault.h"
#include "classify/account.h"
#include "classify/idle_spells.h"
#include "model/reading.h"
#include "record/holders.h"

/* One card: its account and its holders. */
struct watched {
	struct account account;
	struct holders holders;
	struct spells spells;
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

#endif
