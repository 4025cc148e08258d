/* Keeps the list of processes that are stuck, and of their cards. */
#include "driver/host/apart_left.h"

#include <string.h>
#include <unistd.h>

#include "base/helper.h"

static void start(struct left *l)
{
	for (size_t i = 0; i < LEFT_MOST && !l->used; i++)
		l->others[i].pidfd = -1;
	l->used = true;
}

static struct left_card *find(struct left *l, const struct source_avoid *card)
{
	for (size_t i = 0; i < l->n_cards; i++)
		if (l->cards[i].card.index == card->index)
			return &l->cards[i];
	if (l->n_cards == SOURCE_AVOID_MAX)
		return NULL;
	l->cards[l->n_cards] = (struct left_card){ .card = *card, .process = { .pidfd = -1 } };
	return &l->cards[l->n_cards++];
}

static void keep(struct left *l, struct left_process process)
{
	for (size_t i = 0; i < LEFT_MOST; i++)
		if (l->others[i].pidfd < 0) {
			l->others[i] = process;
			return;
		}
	close(process.pidfd);
}

void apart_left_add(struct left *l, struct left_process process,
	const struct source_avoid *card, int64_t now_us)
{
	start(l);
	struct left_card *c = card ? find(l, card) : NULL;
	if (!c) {
		if (process.pidfd >= 0)
			keep(l, process);
		return;
	}
	int64_t wait_us = c->wait_us ? 2 * c->wait_us : LEFT_FIRST_US;
	c->card = *card;
	c->process = process;
	c->wait_us = wait_us < LEFT_LONGEST_US ? wait_us : LEFT_LONGEST_US;
	c->until_us = now_us + c->wait_us;
}

/* True: it lives. */
static bool check(struct left_process *p)
{
	if (p->pidfd >= 0 && helper_is_gone(p->pidfd))
		p->pidfd = -1;
	return p->pidfd >= 0;
}

size_t apart_left_check(struct left *l, int64_t now_us)
{
	size_t living = 0, kept = 0;
	start(l);
	for (size_t i = 0; i < LEFT_MOST; i++)
		living += check(&l->others[i]);
	for (size_t i = 0; i < l->n_cards; i++) {
		struct left_card *c = &l->cards[i];
		bool was_stuck = c->process.pidfd >= 0;
		bool lives = check(&c->process);
		living += lives;
		/* One that could not be ended has ended after all: the driver goes on. */
		if (was_stuck && !lives)
			c->until_us = now_us;
		/* How often it happened is remembered for as long as it was left alone. */
		if (lives || now_us < c->until_us + c->wait_us)
			l->cards[kept++] = *c;
	}
	l->n_cards = kept;
	return living;
}

void apart_left_avoids(const struct left *l, int64_t now_us, struct source_avoids *out)
{
	out->n = 0;
	for (size_t i = 0; i < l->n_cards; i++)
		if (l->cards[i].process.pidfd >= 0 || now_us < l->cards[i].until_us)
			out->cards[out->n++] = l->cards[i].card;
}

size_t apart_left_list(const struct left *l, struct source_stuck *out, size_t max)
{
	size_t n = 0;
	for (size_t i = 0; l->used && i < LEFT_MOST && n < max; i++)
		if (l->others[i].pidfd >= 0)
			out[n++] = (struct source_stuck){ .pid = l->others[i].pid,
				.card.index = -1 };
	for (size_t i = 0; i < l->n_cards && n < max; i++)
		if (l->cards[i].process.pidfd >= 0)
			out[n++] = (struct source_stuck){ .pid = l->cards[i].process.pid,
				.card = l->cards[i].card };
	return n;
}

void apart_left_finish(struct left *l)
{
	for (size_t i = 0; l->used && i < LEFT_MOST; i++)
		if (l->others[i].pidfd >= 0)
			close(l->others[i].pidfd);
	for (size_t i = 0; i < l->n_cards; i++)
		if (l->cards[i].process.pidfd >= 0)
			close(l->cards[i].process.pidfd);
	*l = (struct left){ 0 };
}
