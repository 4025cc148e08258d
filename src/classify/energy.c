/* Divides joules over states. A card draws one power while processes hold it and another
 * while it is empty; both are learned from the time in which it was surely in that state. If
 * an interval has several states, idle time gets its idle power, and use gets the rest. If
 * it were divided by time alone, a burst of 400 W would count as energy of the idle time
 * next to it. A card still draws more for a moment after use: what it draws then above its
 * idle power belongs to the use. */
#include "classify/energy.h"

/* How long a card cools down after use. */
#define COOLING_MS 1000
/* Begins and ends of holding are known to about this precision: idle power is learned only
 * from time that is further away from them. */
#define MARGIN_MS 600
/* The idle power is the mean over this much time. */
#define LEARNED_MS 60000
#define UNSETTLED_MS 100
/* Readings further apart than this occur only in a demo: a recorder drains more often. */
#define SPARSE_MS 8000
#define SPARSE_RISE 0.0001

void energy_reset(struct energy_split *s)
{
	s->n_pieces = s->n_points = 0;
	s->broken = true;
	s->used_ms = s->used_slot = -1;
	memset(s->levels, 0, sizeof(s->levels));
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

/* The index of the idle power for a state; -1: the state has none. */
static int level_of(enum card_state state)
{
	bool empty = state == CARD_TRULY_IDLE || state == CARD_RESERVED;
	return state == CARD_IDLE_HELD ? ENERGY_HELD : empty ? ENERGY_EMPTY : -1;
}

static void add_piece(struct energy_split *s, const struct energy_piece *piece)
{
	struct energy_piece *last = s->n_pieces ? &s->pieces[s->n_pieces - 1] : NULL;
	bool goes_on = last && last->to_ms == piece->from_ms && last->state == piece->state;
	if (goes_on && last->slot == piece->slot && last->util_pct == piece->util_pct &&
		last->cooling == piece->cooling) {
		last->to_ms = piece->to_ms;
		return;
	}
	int64_t since_ms = goes_on ? last->since_ms : piece->from_ms;
	if (s->n_pieces == ENERGY_PIECES)
		drop_pieces(s, s->pieces[0].to_ms);
	s->pieces[s->n_pieces] = *piece;
	s->pieces[s->n_pieces++].since_ms = since_ms;
}

void energy_piece(struct energy_split *s, const struct energy_piece *piece)
{
	struct energy_piece rest = *piece;
	int64_t cool_ms = s->used_ms + COOLING_MS;
	rest.cooling = false;
	if (piece->state == CARD_ACTIVE) {
		s->used_ms = piece->to_ms;
		s->used_slot = piece->slot;
	}
	if (s->n_points == 0)
		return;
	if (level_of(piece->state) >= 0 && s->used_slot >= 0 && piece->from_ms < cool_ms) {
		struct energy_piece cooling = rest;
		cooling.cooling = true;
		cooling.to_ms = rest.from_ms = cool_ms < rest.to_ms ? cool_ms : rest.to_ms;
		add_piece(s, &cooling);
	}
	if (rest.from_ms < rest.to_ms)
		add_piece(s, &rest);
}

/* The time in each kind of state between two readings. */
struct mixture {
	int64_t all_ms, idle_ms[ENERGY_LEVELS], cooling_ms, active_ms;
	double active_pct_ms; /* utilisation x ms of the active part */
	bool settled;	      /* it was in one state, and is not near a change */
};

static int64_t overlap_ms(const struct energy_piece *p, int64_t from_ms, int64_t to_ms)
{
	int64_t from = p->from_ms > from_ms ? p->from_ms : from_ms;
	int64_t to = p->to_ms < to_ms ? p->to_ms : to_ms;
	return to > from ? to - from : 0;
}

static struct mixture mix_of(const struct energy_split *s, int64_t from_ms, int64_t to_ms)
{
	struct mixture m = { .settled = true };
	for (size_t i = 0; i < s->n_pieces; i++) {
		const struct energy_piece *p = &s->pieces[i];
		int64_t ms = overlap_ms(p, from_ms, to_ms);
		int level = level_of(p->state);
		m.all_ms += ms;
		if (overlap_ms(p, from_ms, to_ms + MARGIN_MS) > 0)
			m.settled = m.settled && p->since_ms + MARGIN_MS <= from_ms;
		if (p->state == CARD_ACTIVE) {
			m.active_ms += ms;
			m.active_pct_ms += p->util_pct * (double)ms;
		} else if (level >= 0) {
			m.idle_ms[level] += ms;
			m.cooling_ms += p->cooling ? ms : 0;
		}
	}
	return m;
}

/* Where samples are far apart, idle time may contain use that no sample saw, so the smallest
 * power is taken as the idle power. It rises slowly, because cards become warmer. */
static void learn_least(struct energy_level *level, double mw)
{
	if (level->ms == 0 || mw < level->mw)
		level->mw = mw;
	else
		level->mw += (mw - level->mw) * SPARSE_RISE;
	level->ms = UNSETTLED_MS;
}

/* Learns what the card draws while it is idle. Every card draws some power: a counter that
 * did not grow was not updated since the last reading. */
static void learn(struct energy_split *s, const struct mixture *m, double mw)
{
	if (!(mw > 0))
		return;
	for (int i = 0; i < ENERGY_LEVELS; i++) {
		struct energy_level *level = &s->levels[i];
		if (m->all_ms > SPARSE_MS) {
			if (m->idle_ms[i] == m->all_ms)
				learn_least(level, mw);
			continue;
		}
		bool pure = m->idle_ms[i] == m->all_ms && m->cooling_ms == 0;
		/* Time near a change has a small weight, and none once there is better data. */
		int64_t weight = m->settled ? m->all_ms : level->ms < UNSETTLED_MS ? 1 : 0;
		if (!pure || weight == 0)
			continue;
		level->ms = level->ms + weight < LEARNED_MS ? level->ms + weight : LEARNED_MS;
		double part = (double)weight / (double)level->ms;
		level->mw += (mw - level->mw) * (part < 1 ? part : 1);
	}
}

/* How one interval is divided: idle time by power, use by utilisation, the rest by time. */
struct division {
	double idle_mw[ENERGY_LEVELS];
	double active_mj; /* energy of use, including cooling down */
	double other_mw;  /* power of other states */
};

/* Unknown idle power is taken from the other idle state. If neither is known, or use would
 * draw less than idle time does, everything is divided by time. */
static struct division divide(
	const struct energy_split *s, const struct mixture *m, double grown_mj)
{
	double mean_mw = 1000 * grown_mj / (double)m->all_ms, idle_mj = 0;
	double idle_mw[ENERGY_LEVELS];
	struct division d = { { mean_mw, mean_mw }, mean_mw * (double)m->active_ms / 1000,
		mean_mw };
	for (int i = 0; i < ENERGY_LEVELS; i++) {
		const struct energy_level *own = &s->levels[i], *other = &s->levels[!i];
		if (own->ms + other->ms == 0)
			return d;
		idle_mw[i] = own->ms ? own->mw : other->mw;
		idle_mj += idle_mw[i] * (double)m->idle_ms[i] / 1000;
	}
	int64_t idle_ms = m->idle_ms[ENERGY_HELD] + m->idle_ms[ENERGY_EMPTY];
	double by_time_mj = mean_mw * (double)idle_ms / 1000, scale = 1;
	bool used = m->active_pct_ms > 0 || m->cooling_ms > 0;
	if (used && idle_mj < by_time_mj)
		d.active_mj += by_time_mj - idle_mj;
	else if (m->active_ms == 0 && idle_mj > 0)
		scale = by_time_mj / idle_mj; /* held and empty time by their powers */
	else
		return d;
	for (int i = 0; i < ENERGY_LEVELS; i++)
		d.idle_mw[i] = scale * idle_mw[i];
	return d;
}

/* Returns the millijoules of `ms` of a piece. */
static double part_of(const struct division *d, const struct mixture *m,
	const struct energy_piece *p, int64_t ms)
{
	int level = level_of(p->state);
	if (level >= 0)
		return d->idle_mw[level] * (double)ms / 1000;
	if (p->state != CARD_ACTIVE)
		return d->other_mw * (double)ms / 1000;
	if (m->active_pct_ms > 0)
		return d->active_mj * p->util_pct * (double)ms / m->active_pct_ms;
	return d->active_mj * (double)ms / (double)m->active_ms;
}

static void add_energy(struct ledger *ledger, uint32_t card, const struct energy_piece *p,
	int64_t mj, int64_t ms)
{
	struct usage_sum *sum = ledger_usage(ledger, p->slot, card, p->state);
	if (sum) {
		sum->energy_mj += mj;
		sum->energy_ms += ms;
	}
}

/* Divides one interval. Rounding is cumulative: the parts add up to the counter's growth. */
static void divide_interval(
	struct energy_split *s, uint32_t card, struct ledger *ledger, struct energy_idle *idle)
{
	int64_t from_ms = s->points[0].at_ms, to_ms = s->points[1].at_ms;
	int64_t grown = (int64_t)s->points[1].mj - (int64_t)s->points[0].mj, given = 0;
	struct mixture m = mix_of(s, from_ms, to_ms);
	double done = 0;
	if (m.all_ms == 0)
		return;
	learn(s, &m, 1000 * (double)grown / (double)m.all_ms);
	struct division d = divide(s, &m, (double)grown);
	if (m.active_ms == 0 && d.active_mj > 0) { /* it cools down after an earlier use */
		done = d.active_mj;
		given = llround(done);
		add_energy(ledger, card,
			&(struct energy_piece){ .slot = s->used_slot, .state = CARD_ACTIVE },
			given, 0);
	}
	int64_t left_ms = m.all_ms;
	for (size_t i = 0; i < s->n_pieces && left_ms > 0; i++) {
		const struct energy_piece *p = &s->pieces[i];
		int64_t ms = overlap_ms(p, from_ms, to_ms);
		if (ms == 0)
			continue;
		left_ms -= ms;
		done += part_of(&d, &m, p, ms);
		int64_t upto = left_ms == 0 ? grown : llround(done);
		add_energy(ledger, card, p, upto - given, ms);
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
		s->n_points -= 1;
		memmove(s->points, s->points + 1, s->n_points * sizeof(s->points[0]));
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
