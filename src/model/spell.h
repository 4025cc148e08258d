/* A spell: one stretch of time in which a process held a card idle. gua(1), DEFINITIONS, has
 * the words. */
#pragma once

#include "model/reading.h"

/* How a spell ended. The numbers are stored: never change one. */
enum spell_end {
	SPELL_ACTIVE = 0,   /* the process became active */
	SPELL_RELEASED = 1, /* it freed its memory, or so much that little is held */
	SPELL_EXITED = 2,   /* it ended */
	SPELL_STOPPED = 3,  /* the recorder stopped, and the spell was not seen to go on */
	SPELL_ENDS = 4,
	/* Never stored as the end of a spell: */
	SPELL_GONE = SPELL_ENDS, /* it is no longer on the card: released or exited */
	SPELL_OPEN,		 /* it goes on */
};
/* Names as in JSON, CSV and views: "active" "released" "exited" "stopped". */
extern const char *const spell_end_names[SPELL_ENDS];

/* A stretch of idle time; it is a spell when it is long enough (see spell_idle_ms()). All of
 * the time between begin_ms and end_ms that is not idle was not observed: a process that was
 * seen active or without memory ends the stretch. */
struct spell {
	uint32_t card, process;		    /* indexes into tick.cards and tick.processes */
	int64_t begin_ms, end_ms;	    /* end: the last moment at which it was seen idle */
	int64_t idle_held_ms, squatting_ms; /* by its own state */
	int64_t mem_peak_kib;		    /* or -1 */
	int64_t energy_mj; /* its share of the card's idle-held energy; -1: none is known */
	enum spell_end how;
	int64_t stored_end_ms; /* end of the spell as an earlier run stored it, if it was open
				  then; -1: none is stored */
};

/* The idle time of the stretch, which must reach rules.spell_ms to be a spell. */
static inline int64_t spell_idle_ms(const struct spell *s)
{
	return s->idle_held_ms + s->squatting_ms;
}

static inline int64_t spell_unobserved_ms(const struct spell *s)
{
	return s->end_ms - s->begin_ms - spell_idle_ms(s);
}

/* A stretch that had not ended when an earlier run of this boot did. */
struct past_spell {
	char uuid[UUID_CAP]; /* of the card */
	uint32_t pid;
	uint64_t start_ticks;
	struct spell spell; /* without its indexes */
};
