/* The states of a card's time and of a holder's time, and the rules that decide them. The words
 * are defined once, in gua(1), DEFINITIONS. The numbers are stored: never change one. */
#pragma once

#include "base/base.h"

/* What a card did in a stretch of time. */
enum card_state {
	CARD_ACTIVE = 0,      /* utilisation at or above the threshold */
	CARD_IDLE_HELD = 1,   /* below it, and holders keep more than the memory threshold */
	CARD_TRULY_IDLE = 2,  /* below it, and they do not: the card is free */
	CARD_UNOBSERVED = 3,  /* the recorder ran and had no reading */
	CARD_USE_UNKNOWN = 4, /* processes are on it, and its utilisation cannot be read */
	CARD_RESERVED = 5,    /* truly-idle but for a lease: nobody uses it or can have it */
	CARD_STATES = 6,
	/* Live views only, never stored: the utilisation is not plausible. The recorder counts
	   that time as unobserved. */
	CARD_SUSPECT = CARD_STATES,
	CARD_SHOWN_STATES,
};

/* What one holder did in a stretch of time: a process by its own facts, or a user on a card by
 * all of its processes there. While the card is not active, both have the state of the card. */
enum holder_state {
	HOLDER_ACTIVE = 0,
	HOLDER_IDLE_HELD = 1, /* a process can have this state on an active card too, when
				 another process of its user keeps the card active */
	HOLDER_TRULY_IDLE = 2,
	HOLDER_SQUATTING = 3,	/* idle itself while another user keeps the card active */
	HOLDER_USE_UNKNOWN = 4, /* the card's utilisation cannot be read */
	HOLDER_STATES = 5,
};

/* How a state looks everywhere: a new state is a row of this table, and a colour in
 * render/tokens.css and render/states.css, where its class is its key. Beside the states of
 * cards, a bar has the time that users were idle on a busy card. */
enum { STATE_SQUATTING = CARD_SHOWN_STATES, STATE_LOOKS };
enum { STATE_DIM = -1 };
struct state_look {
	const char *key;	   /* JSON keys, CSV and classes of pages: "idle_held" */
	const char *word;	   /* what people read: "idle-held" */
	const char *users;	   /* the same time as users' time: "unused"; NULL: has none */
	const char *label;	   /* of exported counters: "idle"; NULL: not exported */
	const char *block, *ascii; /* a cell of a bar; " ": none */
	signed char color;	   /* of a terminal, 0 to 7; STATE_DIM: none, but dim */
	bool bold;		   /* asks for attention */
	bool pattern;		   /* pages fill it with a pattern of html_patterns() */
};
extern const struct state_look state_looks[STATE_LOOKS];
/* The states in the order in which they are listed, and stacked from the ground up. */
extern const enum card_state state_order[CARD_SHOWN_STATES];
enum { STATE_CODES_CAP = 8 };
/* The parameters of the terminal's sequence for a look: "1;33". */
void state_codes(char dst[STATE_CODES_CAP], size_t look);
/* Whether time in that state has a known utilisation. */
bool state_has_util(enum card_state state);
/* The sum of the times in all states but CARD_UNOBSERVED. */
int64_t state_observed_ms(const int64_t ms[CARD_STATES]);
/* "active" "idle_held" "truly_idle" "squatting" "use_unknown" */
extern const char *const holder_state_names[HOLDER_STATES];

/* How near a holder's memory is to a bare CUDA context: see classify/context.h. */
enum context {
	CONTEXT_MORE,  /* more than a context, or less than one */
	CONTEXT_ABOUT, /* within the range of contexts */
	CONTEXT_ONLY,  /* at most the floor of its model plus a quarter */
};
extern const char *const context_texts[]; /* "", "about a context", "context only" */

/* The thresholds of a run; stored with it and printed with every report. */
struct rules {
	double active_util_pct; /* default 10 */
	int64_t held_mem_bytes; /* default 100 MB = 100000000 */
	bool count_graphics;	/* graphics-only processes are holders too */
	int64_t spell_ms;	/* idle for at least this long is a spell; default 5 minutes */
};

/* Whether two rules give the same states. spell_ms is not compared. */
bool state_rules_equal(const struct rules *a, const struct rules *b);

/* gua.conf has the same defaults as texts (config.c); a test compares them. */
#define RULES_DEFAULT                                                                          \
	{                                                                                      \
		.active_util_pct = 10, .held_mem_bytes = 100 * 1000 * 1000,                    \
		.spell_ms = 5 * 60 * 1000                                                      \
	}
