/* Follows the idle stretches of a card. */
#include "classify/idle_spells.h"

void idle_spells_init(struct spells *s, uint32_t card, int64_t least_ms)
{
	*s = (struct spells){ .card = card, .least_ms = least_ms };
}

void idle_spells_finish(struct spells *s)
{
	free(s->open.items);
	free(s->ended.items);
	*s = (struct spells){ 0 };
}

static struct idle_stretch *find(const struct spells *s, uint32_t process)
{
	for (size_t i = 0; i < s->open.n; i++)
		if (s->open.items[i].spell.process == process)
			return &s->open.items[i];
	return NULL;
}

/* NULL: out of memory; then the stretch begins a piece later. */
static struct idle_stretch *add(struct stretches *to, const struct idle_stretch *item)
{
	if (!array_reserve(&to->items, &to->cap, to->n + 1))
		return NULL;
	to->items[to->n] = *item;
	return &to->items[to->n++];
}

static void drop(struct stretches *from, size_t i)
{
	from->items[i] = from->items[--from->n];
}

/* Ends an open stretch; it is kept if it is a spell, or if the store has it as one. */
static void end(struct spells *s, struct idle_stretch *item, enum spell_end how)
{
	bool kept =
		spell_idle_ms(&item->spell) >= s->least_ms || item->spell.stored_end_ms >= 0;
	item->spell.how = how;
	item->gone = how == SPELL_GONE;
	item->changed = true;
	if (kept && (s->ended.n >= SPELLS_MAX_ENDED || !add(&s->ended, item)))
		s->lost++;
	drop(&s->open, (size_t)(item - s->open.items));
}

static void grow(struct idle_stretch *item, const struct spell_piece *p)
{
	struct spell *spell = &item->spell;
	int64_t ms = p->to_ms - p->from_ms;
	int64_t kib = p->mem_bytes < 0 ? -1 : (p->mem_bytes + 1023) / 1024;
	/* The clock was set back while no recorder ran: the length of the pause is unknown. */
	if (p->from_ms < spell->end_ms)
		spell->begin_ms -= spell->end_ms - p->from_ms;
	spell->end_ms = p->to_ms;
	if (p->state == HOLDER_IDLE_HELD)
		spell->idle_held_ms += ms;
	else
		spell->squatting_ms += ms;
	if (kib > spell->mem_peak_kib)
		spell->mem_peak_kib = kib;
	item->metered_ms += p->metered_ms;
}

void idle_spells_take(struct spells *s, const struct spell_piece *p)
{
	struct idle_stretch *item = find(s, p->process);
	bool active = p->state == HOLDER_ACTIVE && !p->unused;
	if (item)
		item->seen = true;
	if (p->state == HOLDER_USE_UNKNOWN)
		return;
	if (active || p->state == HOLDER_TRULY_IDLE) {
		if (item)
			end(s, item, active ? SPELL_ACTIVE : SPELL_RELEASED);
	} else if (item) {
		grow(item, p);
	} else {
		struct idle_stretch *added =
			add(&s->open, &(struct idle_stretch){ .seen = true,
					      .spell = { .card = s->card,
						      .process = p->process,
						      .begin_ms = p->from_ms,
						      .end_ms = p->from_ms,
						      .mem_peak_kib = -1,
						      .energy_mj = -1,
						      .how = SPELL_OPEN,
						      .stored_end_ms = -1 } });
		if (added)
			grow(added, p);
	}
}

void idle_spells_piece_end(struct spells *s, int64_t metered_ms)
{
	s->metered_ms += metered_ms;
	for (size_t i = s->open.n; i-- > 0;) {
		struct idle_stretch *item = &s->open.items[i];
		bool seen = item->seen;
		item->seen = false;
		if (!seen)
			end(s, item, SPELL_GONE);
	}
}

static void divide(struct stretches *among, double mj_per_ms)
{
	for (size_t i = 0; i < among->n; i++) {
		struct idle_stretch *item = &among->items[i];
		if (item->metered_ms == 0)
			continue;
		int64_t known_mj = item->spell.energy_mj < 0 ? 0 : item->spell.energy_mj;
		item->spell.energy_mj =
			known_mj + llround(mj_per_ms * (double)item->metered_ms);
		item->metered_ms = 0;
		item->changed = true;
	}
}

void idle_spells_energy(struct spells *s, int64_t mj, int64_t ms)
{
	/* Pieces that the energy counter no longer covers are in metered_ms but not in `ms`. */
	double whole_ms = (double)(ms > s->metered_ms ? ms : s->metered_ms);
	if (ms > 0) {
		divide(&s->open, (double)mj / whole_ms);
		divide(&s->ended, (double)mj / whole_ms);
	}
	idle_spells_energy_lost(s);
}

static void lose(struct stretches *all)
{
	for (size_t i = 0; i < all->n; i++)
		all->items[i].metered_ms = 0;
}

void idle_spells_energy_lost(struct spells *s)
{
	lose(&s->open);
	lose(&s->ended);
	s->metered_ms = 0;
}

void idle_spells_restore(struct spells *s, const struct spell *past, uint32_t process)
{
	struct idle_stretch item = { .spell = *past };
	item.spell.card = s->card;
	item.spell.process = process;
	item.spell.how = SPELL_OPEN;
	if (!find(s, process))
		add(&s->open, &item);
}

void idle_spells_shift(struct spells *s, int64_t by_ms)
{
	for (size_t i = 0; i < s->open.n; i++) {
		s->open.items[i].spell.begin_ms += by_ms;
		s->open.items[i].spell.end_ms += by_ms;
	}
}

void idle_spells_end_all(struct spells *s, enum spell_end how)
{
	while (s->open.n > 0)
		end(s, &s->open.items[s->open.n - 1], how);
}

void idle_spells_stored(struct spells *s)
{
	for (size_t i = 0; i < s->open.n; i++)
		s->open.items[i].spell.stored_end_ms = -1;
	for (size_t i = s->ended.n; i-- > 0;)
		if (s->ended.items[i].stored)
			drop(&s->ended, i);
	for (size_t i = 0; i < s->ended.n; i++) {
		s->ended.items[i].stored = true;
		s->ended.items[i].changed = false;
		s->ended.items[i].spell.stored_end_ms = -1;
	}
}
