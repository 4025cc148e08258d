/* The idle stretches of the watched cards. Each account finds those of its card; a tick has all
 * of them. */
#pragma once

#include "model/spell.h"
#include "model/tick.h"

struct watch;

/* Idle stretches of an earlier run that had not ended; takes over the array. When a card is
 * listed for the first time, they are continued or dropped. */
void watch_spells_take_past(struct watch *w, struct past_spell *past, size_t n);
/* How many spells found no room in memory since the last call. */
int64_t watch_spells_lost(struct watch *w);

/* For the watch: the processes of card `i` were listed for the first time; they are the
 * first `n` of w->list. Continues their stretches of an earlier run. */
void watch_spells_resume(struct watch *w, size_t i, size_t n);
/* Adds the spells to a tick. */
int watch_spells_tick(struct watch *w, struct tick *t, struct err *e);
/* Marks the lives to which spells refer. */
void watch_spells_keep(struct watch *w);
