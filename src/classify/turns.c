/* Fits the turns of processes to the utilisation of their card: for one process after the
 * other, the stretch of the drain in which its use, at an even level, leaves the least
 * unexplained. */
#include "classify/turns.h"

#include <math.h>
#include <stdbool.h>

#define FULL_PCT 100
/* Pieces that differ by less are joined: the driver reports whole percents. */
#define SAME_PCT 1.5
/* A use seldom begins or changes exactly at the edge of a drain: the cost of the square of
 * such a change, compared with the same difference over the whole drain. */
#define CHANGE_COST 0.05
/* A use that begins during the drain, at a level that is hidden because the card is full,
 * may be short or long. Its level is taken as about the geometric mean of the smallest and
 * largest possible. */
#define GUESS_COST 0.01
/* How often all turns are fitted again, each to what the others leave. */
enum { ROUNDS = 2 };

void turns_add(struct turn_card *card, double to_ms, double pct)
{
	double begin_ms = card->to_ms[card->n];
	if (!(to_ms > begin_ms))
		return;
	double last_ms = card->n > 0 ? begin_ms - card->to_ms[card->n - 1] : 0;
	if (card->n > 0 && (card->n == TURNS_PIECES ||
				   (last_ms < card->least_ms &&
					   fabs(pct - card->pct[card->n - 1]) < SAME_PCT))) {
		double *last = &card->pct[card->n - 1];
		double part = (to_ms - begin_ms) / (to_ms - begin_ms + last_ms);
		*last += (pct - *last) * part;
		card->to_ms[card->n] = to_ms;
		return;
	}
	card->pct[card->n++] = pct;
	card->to_ms[card->n] = to_ms;
}

static double length_of(const struct turn_card *c, size_t from, size_t to)
{
	return c->to_ms[to] - c->to_ms[from];
}

/* A turn that is tried: pieces from..to-1, at one level. */
struct trial {
	size_t from, to;
	double pct, cost;
};

/* What the other processes use in a piece. */
static double others_in(const struct trial *trials, size_t n, size_t self, size_t piece)
{
	double pct = 0;
	for (size_t i = 0; i < n; i++)
		if (i != self && trials[i].from <= piece && piece < trials[i].to)
			pct += trials[i].pct;
	return pct;
}

/* How much the use differs from that of the drain before, if it lasted for the whole drain. */
static double change_of(const struct turn_use *use)
{
	double last = fabs(use->mean_pct - use->last_pct);
	double mean = fabs(use->mean_pct - use->last_mean_pct);
	return isnan(last) ? 0 : fmin(last, mean);
}

/* How unlikely the trial is by itself, as a square. */
static double oddity_of(
	const struct turn_card *c, const struct trial *t, const struct turn_use *use)
{
	double first_pct = t->from == 0 ? t->pct : 0;
	double change = isnan(use->last_pct) ? 0 : first_pct - use->last_pct;
	double guess = t->from > 0 ? t->pct - sqrt(FULL_PCT * use->mean_pct) : 0;
	if (t->from == 0 && t->to == c->n)
		change = change_of(use);
	return (CHANGE_COST * change * change + GUESS_COST * guess * guess) *
	       length_of(c, 0, c->n);
}

/* How badly the trial explains the card, beside what others use. */
static double cost_of(const struct turn_card *c, const double *others, const struct trial *t,
	const struct turn_use *use)
{
	double cost = oddity_of(c, t, use);
	for (size_t k = 0; k < c->n; k++) {
		double pct = others[k] + (t->from <= k && k < t->to ? t->pct : 0);
		double off = c->pct[k] - (pct < FULL_PCT ? pct : FULL_PCT);
		cost += off * off * length_of(c, k, k + 1);
	}
	return cost;
}

static struct trial best_turn(
	const struct turn_card *c, const double *others, const struct turn_use *use)
{
	struct trial best = { 0, c->n, use->mean_pct, 0 };
	double whole_ms = length_of(c, 0, c->n);
	best.cost = cost_of(c, others, &best, use);
	for (size_t from = 0; from < c->n; from++)
		for (size_t to = c->n; to > from; to--) {
			double pct = use->mean_pct * whole_ms / length_of(c, from, to);
			struct trial t = { from, to, pct, 0 };
			if (pct > FULL_PCT + SAME_PCT)
				break;
			t.cost = cost_of(c, others, &t, use);
			best = t.cost < best.cost ? t : best;
		}
	return best;
}

/* An edge of use may lie within a piece: if the level is known, it determines how long the
 * turn is. */
static struct turn turn_of(const struct turn_card *c, const struct trial *t,
	const struct turn_use *use, double left_pct)
{
	double begin_ms = c->to_ms[0], end_ms = c->to_ms[c->n];
	double use_ms = use->mean_pct * (end_ms - begin_ms);
	struct turn turn = {
		.from_ms = c->to_ms[t->from], .to_ms = c->to_ms[t->to], .pct = t->pct
	};
	bool first = t->from == 0, last = t->to == c->n;
	double pct = first && !last ? use->last_pct : last && !first ? left_pct : NAN;
	double length_ms = use_ms / pct, was_ms = turn.to_ms - turn.from_ms;
	/* The length is uncertain by at most the piece beside it. */
	if (length_ms < 1.3 * was_ms && length_ms > 0.7 * was_ms) {
		turn.pct = pct;
		if (first)
			turn.to_ms = fmin(begin_ms + length_ms, end_ms);
		else
			turn.from_ms = fmax(end_ms - length_ms, begin_ms);
	}
	turn.last_pct = !last						   ? 0
			: !first && c->pct[c->n - 1] > FULL_PCT - SAME_PCT ? NAN
									   : turn.pct;
	turn.mean_pct = use->mean_pct;
	turn.from_ms = first ? -INFINITY : turn.from_ms;
	turn.to_ms = last ? INFINITY : turn.to_ms;
	return turn;
}

/* The use with the rank-th largest change. */
static size_t next_to_fit(const struct turn_use *uses, size_t n, size_t rank)
{
	for (size_t i = 0; i < n; i++) {
		size_t larger = 0;
		for (size_t k = 0; k < n; k++) {
			double more = change_of(&uses[k]) - change_of(&uses[i]);
			larger += more > 0 || (more >= 0 && k < i);
		}
		if (larger == rank)
			return i;
	}
	return 0;
}

/* A first guess: a use continued as before until it ended; without use before, there is
 * none. */
static struct trial going_on(const struct turn_card *c, const struct turn_use *use)
{
	double left_ms = use->mean_pct * length_of(c, 0, c->n) / use->last_pct;
	struct trial t = { 0, 0, use->last_pct, 0 };
	while (t.to < c->n && length_of(c, 0, t.to + 1) < 1.1 * left_ms)
		t.to++;
	return t;
}

/* Fits all turns to each other, from a first guess. Returns the unexplained rest. */
static double fit(
	const struct turn_card *card, struct turn_use *uses, size_t n, struct trial *trials)
{
	double others[TURNS_PIECES], cost = 0;
	/* Uses that continued as before are fitted last. */
	for (size_t i = 0; i < ROUNDS * n; i++) {
		size_t self = next_to_fit(uses, n, i % n);
		for (size_t k = 0; k < card->n; k++)
			others[k] = others_in(trials, n, self, k);
		trials[self] = best_turn(card, others, &uses[self]);
		cost = trials[self].cost - oddity_of(card, &trials[self], &uses[self]);
	}
	for (size_t i = 0; i < n; i++)
		cost += oddity_of(card, &trials[i], &uses[i]);
	return cost;
}

void turns_find(const struct turn_card *card, struct turn_use *uses, size_t n)
{
	struct trial even[TURNS_MOST], as_before[TURNS_MOST];
	for (size_t i = 0; i < n; i++) {
		even[i] = (struct trial){ 0, card->n, uses[i].mean_pct, 0 };
		as_before[i] = going_on(card, &uses[i]);
	}
	double cost = fit(card, uses, n, even);
	const struct trial *best = fit(card, uses, n, as_before) < cost ? as_before : even;
	for (size_t i = 0; i < n; i++) {
		double left_pct = card->pct[card->n - 1] - others_in(best, n, i, card->n - 1);
		uses[i].turn = turn_of(card, &best[i], &uses[i], left_pct);
	}
}
