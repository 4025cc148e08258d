/* The idle stretches of the watched cards: continues those of an earlier run, and stores
 * them with each tick. */
#include "record/watch_spells.h"

#include "record/watch.h"

enum { EXIT_MS = 10000 };

void watch_spells_take_past(struct watch *w, struct past_spell *past, size_t n)
{
	free(w->past);
	w->past = past;
	w->n_past = n;
}

/* Without a start time two lives of a pid cannot be distinguished. */
static void resume_one(struct watch *w, size_t i, size_t n, const struct past_spell *past)
{
	for (size_t k = 0; k < n && past->start_ticks; k++) {
		uint32_t life = w->list[k].life;
		const struct process_id *id = &w->lives.entries[life].id;
		if (past->pid == id->pid && past->start_ticks == id->start_ticks) {
			idle_spells_restore(&w->cards[i].spells, &past->spell, life);
			return;
		}
	}
}

void watch_spells_resume(struct watch *w, size_t i, size_t n)
{
	size_t left = 0;
	for (size_t k = 0; k < w->n_past; k++) {
		if (strcmp(w->past[k].uuid, w->entries[i].id.uuid) == 0)
			resume_one(w, i, n, &w->past[k]);
		else
			w->past[left++] = w->past[k];
	}
	w->n_past = left;
}

/* Whether the process has ended. The driver frees the memory of a process that ends up to
 * EXIT_MS earlier. Without a pidfd the moment of the end is not known, only that it has ended
 * by the next tick. */
static bool has_exited(const struct watch *w, const struct idle_stretch *item)
{
	const struct process_entry *entry = &w->lives.entries[item->spell.process];
	int64_t exited_ms = w->lives.lives[item->spell.process].exited_ms;
	if (exited_ms >= 0)
		return exited_ms - item->spell.end_ms <= EXIT_MS;
	return entry->ended_ms >= 0;
}

/* How the stretch of a process ended that is no longer on the card. It can become clear a tick
 * later. */
static void find_how(const struct watch *w, struct idle_stretch *item)
{
	if (!item->gone || item->spell.how == SPELL_EXITED)
		return;
	enum spell_end how = has_exited(w, item) ? SPELL_EXITED : SPELL_RELEASED;
	item->changed |= how != item->spell.how;
	item->spell.how = how;
}

/* Whether an open stretch is stored. It is not if its process has ended, because it can only
 * end. */
static bool is_worth_storing(const struct watch *w, const struct spell *spell)
{
	return w->lives.entries[spell->process].ended_ms < 0 ||
	       spell_idle_ms(spell) >= w->rules.spell_ms;
}

/* Memory that no process explains has no spells: nobody holds it. */
static void add_spell(struct watch *w, struct tick *t, const struct spell *spell)
{
	if (w->lives.entries[spell->process].id.pid == 0)
		return;
	if (spell->how != SPELL_OPEN || spell_idle_ms(spell) >= w->rules.spell_ms)
		w->lives.entries[spell->process].has_spell = true;
	w->spells[t->n_spells++] = *spell;
}

int watch_spells_tick(struct watch *w, struct tick *t, struct err *e)
{
	size_t need = 0;
	for (size_t i = 0; i < w->n_cards; i++)
		need += w->cards[i].spells.open.n + w->cards[i].spells.ended.n;
	if (!array_reserve(&w->spells, &w->cap_spells, need))
		return err_memory(e);
	for (size_t i = 0; i < w->n_cards; i++) {
		struct spells *s = &w->cards[i].spells;
		for (size_t k = 0; k < s->open.n; k++)
			if (is_worth_storing(w, &s->open.items[k].spell))
				add_spell(w, t, &s->open.items[k].spell);
		for (size_t k = 0; k < s->ended.n; k++) {
			find_how(w, &s->ended.items[k]);
			if (s->ended.items[k].changed)
				add_spell(w, t, &s->ended.items[k].spell);
		}
	}
	t->spells = w->spells;
	return 0;
}

static void keep(struct watch *w, const struct stretches *all)
{
	for (size_t i = 0; i < all->n; i++)
		w->lives.lives[all->items[i].spell.process].kept = true;
}

void watch_spells_keep(struct watch *w)
{
	for (size_t i = 0; i < w->n_cards; i++) {
		keep(w, &w->cards[i].spells.open);
		keep(w, &w->cards[i].spells.ended);
	}
}

int64_t watch_spells_lost(struct watch *w)
{
	int64_t lost = 0;
	for (size_t i = 0; i < w->n_cards; i++) {
		lost += w->cards[i].spells.lost;
		w->cards[i].spells.lost = 0;
	}
	return lost;
}
