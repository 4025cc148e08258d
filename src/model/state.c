/* Names of the states. */
#include "model/state.h"

const char *const card_state_names[CARD_STATES] = {
	[CARD_ACTIVE] = "active",
	[CARD_IDLE_HELD] = "idle_held",
	[CARD_TRULY_IDLE] = "truly_idle",
	[CARD_UNOBSERVED] = "unobserved",
};

const char *const holder_state_names[HOLDER_STATES] = {
	[HOLDER_ACTIVE] = "active",
	[HOLDER_IDLE_HELD] = "idle_held",
	[HOLDER_TRULY_IDLE] = "truly_idle",
	[HOLDER_SQUATTING] = "squatting",
};
