/* The idle stretches of one card: finds spells from the states of its processes.
 *
 * The account hands over each observed piece of time, in order, with the state of each process
 * that is on the card. Time that is not handed over was not observed: it neither ends a stretch
 * nor counts as idle. A stretch ends at the last moment at which it was seen idle, so a process
 * that is active, or gone, after a gap ended its stretch before the gap. */
#pragma once

#include "base/base.h"
#include "model/spell.h"
#include "model/state.h"

/* If spells cannot be stored, at most this many are kept for each card. */
#define SPELLS_MAX_ENDED 4096

struct idle_stretch {
	struct spell spell;
	int64_t metered_ms; /* its idle-held share whose energy is not known yet */
	bool seen;	    /* in the current piece */
	bool gone;	    /* it ended as SPELL_GONE */
	bool changed;	    /* since it was stored */
	bool stored;
};

struct stretches {
	struct idle_stretch *items;
	size_t n, cap;
};

/* Call idle_spells_init() first. */
struct spells {
	uint32_t card;	    /* index in the recorder's table */
	int64_t least_ms;   /* a stretch with this much idle time is a spell */
	int64_t metered_ms; /* idle-held time of the card whose energy is not known yet */
	struct stretches open;
	struct stretches ended; /* spells that wait for the store */
	int64_t lost;		/* spells for which there was no room */
};

void idle_spells_init(struct spells *s, uint32_t card, int64_t least_ms);
void idle_spells_finish(struct spells *s);

/* What one process did in a piece of observed time. */
struct spell_piece {
	uint32_t process;
	int64_t from_ms, to_ms;
	enum holder_state state; /* its own */
	bool unused; /* the driver reports the use of processes, and this one has none. If its
			state is nevertheless active, the card is: then it squats. */
	int64_t mem_bytes;  /* or -1 */
	int64_t metered_ms; /* its part of the card's idle-held time; 0 while the energy counter
			       is not running */
};

/* Takes what a process did. Pieces of a card come in order of time, and have each process at
 * most once. */
void idle_spells_take(struct spells *s, const struct spell_piece *p);
/* All processes of an observed piece were taken: the stretches of others end (SPELL_GONE).
 * `metered_ms` is the card's idle-held time; 0 while the energy counter is not running. */
void idle_spells_piece_end(struct spells *s, int64_t metered_ms);

/* The card's idle-held time since the last call took this much energy: `mj` in `ms`. */
void idle_spells_energy(struct spells *s, int64_t mj, int64_t ms);
/* The energy since the last call of idle_spells_energy() will not be known. */
void idle_spells_energy_lost(struct spells *s);

/* Continues a stretch of an earlier run. */
void idle_spells_restore(struct spells *s, const struct spell *past, uint32_t process);
/* The clock was set by this much: the moments of open stretches move with it, so that lengths
 * stay as they were measured. */
void idle_spells_shift(struct spells *s, int64_t by_ms);
/* Ends all open stretches. */
void idle_spells_end_all(struct spells *s, enum spell_end how);

/* Everything in open and ended was stored. A spell that ended is kept until the next call,
 * because its last energy and how it ended may become known later. */
void idle_spells_stored(struct spells *s);
