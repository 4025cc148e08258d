/* Keeps the records of accounting mode while a scenario is played: when a process comes to a
 * card, gets or frees memory, or leaves. */
#include "driver/sim/play_state.h"

static uint32_t running_pid(const struct play *p, size_t seat)
{
	return p->seats[seat].held ? play_pid(p, p->scenario->seats[seat].process) : 0;
}

/* Whether a newer entry than the dead one at `at` has its pid. */
static bool is_replaced(const struct play *p, size_t card, size_t at)
{
	const struct scenario_card *fixed = &p->scenario->cards[card];
	const struct card_state_now *c = &p->cards[card];
	uint32_t pid = c->dead[at].pid;
	if (pid == 0)
		return false;
	for (size_t i = at + 1; i < c->n_dead; i++)
		if (c->dead[i].pid == pid)
			return true;
	for (size_t i = 0; i < fixed->n_seats; i++)
		if (running_pid(p, fixed->first_seat + i) == pid)
			return true;
	return false;
}

static void remove_dead(struct card_state_now *c, size_t at)
{
	c->n_dead--;
	memmove(&c->dead[at], &c->dead[at + 1], (c->n_dead - at) * sizeof(c->dead[0]));
}

/* The driver keeps only the latest entry of a pid. */
static void settle(struct play *p, size_t card)
{
	struct card_state_now *c = &p->cards[card];
	for (size_t i = c->n_dead; i-- > 0;)
		if (is_replaced(p, card, i))
			remove_dead(c, i);
}

void play_account_hold(struct play *p, uint32_t seat, bool comes, int64_t t_us)
{
	const struct scenario_seat *fixed = &p->scenario->seats[seat];
	struct seat_now *now = &p->seats[seat];
	if (comes && p->cards[fixed->card].dead) {
		now->account = (struct accounted){ .process = fixed->process,
			.life = p->lives[fixed->process].number,
			.start_us = t_us,
			.start_wall_us = play_wall(p, t_us),
			.peak_bytes = -1,
			.on_us = -p->cards[fixed->card].on_us };
		settle(p, fixed->card);
	}
	if (now->account.peak_bytes < now->mem_bytes)
		now->account.peak_bytes = now->mem_bytes;
}

void play_account_leave(struct play *p, uint32_t seat, int64_t t_us)
{
	const struct scenario_seat *fixed = &p->scenario->seats[seat];
	struct card_state_now *c = &p->cards[fixed->card];
	if (!c->dead)
		return;
	if (c->n_dead == DEAD_KEPT)
		remove_dead(c, 0);
	struct accounted *entry = &c->dead[c->n_dead++];
	*entry = p->seats[seat].account;
	entry->pid = play_pid(p, fixed->process);
	entry->end_us = t_us;
	entry->on_us += c->on_us;
	settle(p, fixed->card);
}

void play_account_name(struct play *p, uint32_t process)
{
	const struct played_life *life = &p->lives[process];
	for (size_t card = 0; card < p->scenario->n_physical; card++) {
		struct card_state_now *c = &p->cards[card];
		for (size_t i = 0; i < c->n_dead; i++)
			if (c->dead[i].process == process && c->dead[i].life == life->number)
				c->dead[i].pid = life->pid;
		settle(p, card);
	}
}

static struct play_account account_of(const struct accounted *a, uint32_t pid, bool running)
{
	return (struct play_account){ .pid = pid,
		.running = running,
		.start_wall_us = a->start_wall_us,
		.length_us = running ? 0 : a->end_us - a->start_us,
		.peak_bytes = a->peak_bytes,
		.sm_pct = a->on_us > 0 ? (double)a->used / (double)a->on_us : 0 };
}

size_t play_account_list(
	const struct play *p, size_t card, struct play_account *out, size_t max)
{
	const struct scenario_card *fixed = &p->scenario->cards[card];
	const struct card_state_now *c = &p->cards[card];
	size_t n = 0;
	for (size_t i = 0; c->dead && i < fixed->n_seats; i++) {
		struct accounted a = p->seats[fixed->first_seat + i].account;
		uint32_t pid = running_pid(p, fixed->first_seat + i);
		a.on_us += c->on_us;
		if (pid != 0 && n++ < max)
			out[n - 1] = account_of(&a, pid, true);
	}
	for (size_t i = 0; i < c->n_dead; i++)
		if (c->dead[i].pid != 0 && n++ < max)
			out[n - 1] = account_of(&c->dead[i], c->dead[i].pid, false);
	return n;
}
