/* Names of the ends of spells, and the lengths of a spell. */
#include "model/spell.h"

const char *const spell_end_names[SPELL_ENDS] = {
	[SPELL_ACTIVE] = "active",
	[SPELL_RELEASED] = "released",
	[SPELL_EXITED] = "exited",
	[SPELL_STOPPED] = "stopped",
};

int64_t spell_idle_ms(const struct spell *s)
{
	return s->idle_held_ms + s->squatting_ms;
}

int64_t spell_unobserved_ms(const struct spell *s)
{
	return s->end_ms - s->begin_ms - spell_idle_ms(s);
}
