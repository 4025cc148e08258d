/* Names of the states, and the comparison of rules. */
#include "model/state.h"

const char *const card_state_names[CARD_SHOWN_STATES] = {
	[CARD_ACTIVE] = "active",
	[CARD_IDLE_HELD] = "idle_held",
	[CARD_TRULY_IDLE] = "truly_idle",
	[CARD_UNOBSERVED] = "unobserved",
	[CARD_USE_UNKNOWN] = "use_unknown",
	[CARD_SUSPECT] = "suspect",
};

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
	return state == CARD_ACTIVE || state == CARD_IDLE_HELD || state == CARD_TRULY_IDLE;
}
