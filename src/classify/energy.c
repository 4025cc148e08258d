/* Divides joules over states. If a card was both active and idle in an interval, the idle part
 * gets the power that the card drew when it was last idle, and the active part gets the rest.
 * If it were divided by time alone, a burst of 400 W would count as energy of the idle time
 * next to it. */
#include "classify/energy.h"

#include <math.h>
#include <string.h>

void energy_reset(struct energy_split *s)
{
	s->n_pieces = s->n_points = 0;
	s->broken = true;
	s->idle_before = false;
	s->idle_mw = NAN;
}

static void drop_points(struct energy_split *s, size_t n)
{
	s->n_points -= n;
	memmove(s->points, s->points + n, s->n_points * sizeof(s->points[0]));
}

static void drop_pieces(struct energy_split *s, int64_t before_ms)
{
	size_t n = 0;
	while (n < s->n_pieces && s->pieces[n].to_ms <= before_ms)
		n++;
	s->n_pieces -= n;
	memmove(s->pieces, s->pieces + n, s->n_pieces * sizeof(s->pieces[0]));
}

void energy_read(struct energy_split *s, int64_t at_ms, double mj)
{
	const struct energy_point *last = s->n_points ? &s->points[s->n_points - 1] : NULL;
	if (isnan(mj)) {
		s->n_points = 0;
		s->broken = true;
		return;
	}
	if (last && (mj < last->mj || at_ms < last->at_ms)) {
		s->n_points = 0;
		s->broken = true;
	} else if (last && at_ms == last->at_ms)
		return;
	if (s->n_points == ENERGY_POINTS) /* full: join the two oldest intervals */
		memmove(s->points + 1, s->points + 2,
			(--s->n_points - 1) * sizeof(s->points[0]));
	s->points[s->n_points++] = (struct energy_point){ at_ms, mj };
}

void energy_piece(struct energy_split *s, const struct energy_piece *piece)
{
	struct energy_piece *last = s->n_pieces ? &s->pieces[s->n_pieces - 1] : NULL;
	if (s->n_points == 0)
		return;
	if (last && last->to_ms == piece->from_ms && last->slot == piece->slot &&
		last->state == piece->state && last->util_pct == piece->util_pct) {
		last->to_ms = piece->to_ms;
		return;
	}
	if (s->n_pieces == ENERGY_PIECES)
		drop_pieces(s, s->pieces[0].to_ms);
	s->pieces[s->n_pieces++] = *piece;
}

/* The time in each kind of state between two readings. */
struct mixture {
	int64_t all_ms, idle_ms, active_ms;
	double active_pct_ms; /* utilisation x ms of the active part */
};

static int64_t overlap_ms(const struct energy_piece *p, int64_t from_ms, int64_t to_ms)
{
	int64_t from = p->from_ms > from_ms ? p->from_ms : from_ms;
	int64_t to = p->to_ms < to_ms ? p->to_ms : to_ms;
	return to > from ? to - from : 0;
}

static struct mixture mix_of(const struct energy_split *s, int64_t from_ms, int64_t to_ms)
{
	struct mixture m = { 0 };
	for (size_t i = 0; i < s->n_pieces; i++) {
		const struct energy_piece *p = &s->pieces[i];
		int64_t ms = overlap_ms(p, from_ms, to_ms);
		m.all_ms += ms;
		if (p->state == CARD_ACTIVE) {
			m.active_ms += ms;
			m.active_pct_ms += p->util_pct * (double)ms;
		} else if (p->state == CARD_IDLE_HELD || p->state == CARD_TRULY_IDLE) {
			m.idle_ms += ms;
		}
	}
	return m;
}

/* Learns the card's power when it is idle. The counter may lag a tenth of a second behind a
 * burst, so the first idle interval after a burst may only lower the value. */
static void learn_idle(struct energy_split *s, const struct mixture *m, double mw)
{
	bool idle = m->idle_ms > 0 && m->idle_ms == m->all_ms;
	if (idle && (s->idle_before || isnan(s->idle_mw) || mw < s->idle_mw))
		s->idle_mw = mw;
	s->idle_before = idle;
}

/* Returns the millijoules of a piece of the mixture. */
static double weight_of(const struct energy_piece *p, int64_t ms, const struct mixture *m,
	double grown_mj, double idle_mw)
{
	double by_time = grown_mj * (double)ms / (double)m->all_ms;
	bool mixed = m->idle_ms > 0 && m->active_ms > 0 && m->active_pct_ms > 0;
	double mean_mw = 1000 * grown_mj / (double)m->all_ms;
	if (!mixed || isnan(idle_mw) || idle_mw >= mean_mw)
		return by_time;
	if (p->state == CARD_IDLE_HELD || p->state == CARD_TRULY_IDLE)
		return idle_mw * (double)ms / 1000;
	if (p->state != CARD_ACTIVE)
		return by_time;
	double other_ms = (double)(m->all_ms - m->idle_ms - m->active_ms);
	double rest = grown_mj - idle_mw * (double)m->idle_ms / 1000 -
		      grown_mj * other_ms / (double)m->all_ms;
	return rest * p->util_pct * (double)ms / m->active_pct_ms;
}

/* Divides one interval. Rounding is cumulative: the parts add up to the growth of the counter.
 */
static void divide_interval(
	struct energy_split *s, uint32_t card, struct ledger *ledger, struct energy_idle *idle)
{
	int64_t from_ms = s->points[0].at_ms, to_ms = s->points[1].at_ms;
	int64_t grown = (int64_t)s->points[1].mj - (int64_t)s->points[0].mj, given = 0;
	struct mixture m = mix_of(s, from_ms, to_ms);
	double done = 0;
	if (m.all_ms > 0)
		learn_idle(s, &m, 1000 * (double)grown / (double)m.all_ms);
	int64_t left_ms = m.all_ms;
	for (size_t i = 0; i < s->n_pieces && left_ms > 0; i++) {
		const struct energy_piece *p = &s->pieces[i];
		int64_t ms = overlap_ms(p, from_ms, to_ms);
		if (ms == 0)
			continue;
		left_ms -= ms;
		done += weight_of(p, ms, &m, (double)grown, s->idle_mw);
		int64_t upto = left_ms == 0 ? grown : llround(done);
		struct usage_sum *sum = ledger_usage(ledger, p->slot, card, p->state);
		if (sum) {
			sum->energy_mj += upto - given;
			sum->energy_ms += ms;
		}
		if (p->state == CARD_IDLE_HELD) {
			idle->mj += upto - given;
			idle->ms += ms;
		}
		given = upto;
	}
}

bool energy_is_due(const struct energy_split *s, int64_t covered_ms)
{
	return s->n_points > 1 && s->points[1].at_ms <= covered_ms;
}

struct energy_idle energy_divide(
	struct energy_split *s, uint32_t card, int64_t covered_ms, struct ledger *ledger)
{
	struct energy_idle idle = { 0 };
	while (energy_is_due(s, covered_ms)) {
		divide_interval(s, card, ledger, &idle);
		idle.any = true;
		drop_points(s, 1);
		drop_pieces(s, s->points[0].at_ms);
	}
	if (s->n_points)
		drop_pieces(s, s->points[0].at_ms);
	else
		s->n_pieces = 0;
	return idle;
}

bool energy_is_metered(const struct energy_split *s, int64_t at_ms)
{
	return s->n_points > 0 && s->points[0].at_ms <= at_ms;
}

int64_t energy_next_ms(const struct energy_split *s, int64_t at_ms)
{
	for (size_t i = 0; i < s->n_points; i++)
		if (s->points[i].at_ms > at_ms)
			return s->points[i].at_ms;
	return INT64_MAX;
}

bool energy_was_broken(struct energy_split *s)
{
	bool broken = s->broken;
	s->broken = false;
	return broken;
}
