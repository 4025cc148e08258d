/* Names of the ends of spells. */
#include "model/spell.h"

const char *const spell_end_names[SPELL_ENDS] = {
	[SPELL_ACTIVE] = "active",
	[SPELL_RELEASED] = "released",
	[SPELL_EXITED] = "exited",
	[SPELL_STOPPED] = "stopped",
};
