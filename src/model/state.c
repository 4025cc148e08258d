/* Names and looks of the states, and the comparison of rules. */
#include "model/state.h"

const struct state_look state_looks[STATE_LOOKS] = {
	[CARD_ACTIVE] = { "active", "active", "used", "active", "█", "#", 2, false, false },
	[CARD_IDLE_HELD] = { "idle_held", "idle-held", "unused", "idle_held", "▒", "=", 3, true,
		true },
	[CARD_TRULY_IDLE] = { "truly_idle", "truly-idle", "little memory", "idle", "░", ".", 6,
		false, false },
	[CARD_UNOBSERVED] = { "unobserved", "unobserved", "unobserved", "unobserved", " ", " ",
		STATE_DIM, false, true },
	[CARD_USE_UNKNOWN] = { "use_unknown", "use unknown", "use unknown", "use_unknown", "▚",
		"?", 5, false, false },
	[CARD_RESERVED] = { "reserved", "reserved", "reserved", "reserved", "╱", "/", 4, true,
		true },
	[CARD_SUSPECT] = { "suspect", "suspect", NULL, NULL, " ", " ", 1, true, false },
	[STATE_SQUATTING] = { "squatting", "idle on busy GPU", "idle on busy GPU", NULL, "▓",
		"%", 1, false, false },
};

const enum card_state state_order[CARD_SHOWN_STATES] = { CARD_ACTIVE, CARD_IDLE_HELD,
	CARD_RESERVED, CARD_USE_UNKNOWN, CARD_TRULY_IDLE, CARD_UNOBSERVED, CARD_SUSPECT };

void state_codes(char dst[STATE_CODES_CAP], size_t look)
{
	const struct state_look *l = &state_looks[look];
	snprintf(dst, STATE_CODES_CAP, "%s%d", l->bold ? "1;" : "",
		l->color == STATE_DIM ? 2 : 30 + l->color);
}

const char *const holder_state_names[HOLDER_STATES] = {
	[HOLDER_ACTIVE] = "active",
	[HOLDER_IDLE_HELD] = "idle_held",
	[HOLDER_TRULY_IDLE] = "truly_idle",
	[HOLDER_SQUATTING] = "squatting",
	[HOLDER_USE_UNKNOWN] = "use_unknown",
};

const char *const context_texts[] = {
	[CONTEXT_MORE] = "",
	[CONTEXT_ABOUT] = "about a context",
	[CONTEXT_ONLY] = "context only",
};

bool state_rules_equal(const struct rules *a, const struct rules *b)
{
	return a->active_util_pct == b->active_util_pct &&
	       a->held_mem_bytes == b->held_mem_bytes && a->count_graphics == b->count_graphics;
}

bool state_has_util(enum card_state state)
{
	return state == CARD_ACTIVE || state == CARD_IDLE_HELD || state == CARD_TRULY_IDLE ||
	       state == CARD_RESERVED;
}

int64_t state_observed_ms(const int64_t ms[CARD_STATES])
{
	int64_t sum_ms = 0;
	for (int state = 0; state < CARD_STATES; state++)
		sum_ms += state == CARD_UNOBSERVED ? 0 : ms[state];
	return sum_ms;
}
