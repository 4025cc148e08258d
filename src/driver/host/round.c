/* Runs a round: drain, glance, look. In this order the process lists are never older than the
 * newest sample. */
#include "driver/host/round.h"

#include "driver/host/apart_site.h"

void round_spacing_add(struct spacing *s, int64_t cost_us)
{
	s->recent_us[s->n++ % SPACING_RECENT] = cost_us;
}

int64_t round_spacing_us(
	const struct spacing *s, double share, int64_t least_us, int64_t most_us)
{
	size_t n = s->n < SPACING_RECENT ? s->n : SPACING_RECENT;
	int64_t cost_us = n ? INT64_MAX : 0;
	for (size_t i = 0; i < n; i++)
		if (s->recent_us[i] < cost_us)
			cost_us = s->recent_us[i];
	double apart_us = (double)cost_us / share;
	if (apart_us < (double)least_us)
		return least_us;
	return apart_us > (double)most_us ? most_us : (int64_t)apart_us;
}

/* The share of one core that glances may take: for memory and the looks that follow, for
 * energy, and for draining shared cards. WALL_SHARE is a share of elapsed time, because the
 * driver serves one caller at a time. */
#define GLANCE_SHARE 0.00015
#define ENERGY_SHARE 0.00005
#define SHARED_SHARE 0.00005
#define WALL_SHARE 0.01
/* A stall: no glance for twice the time between glances plus this. */
#define STALL_US 1000000

void round_pace_start(struct pace *p, int64_t now_us)
{
	p->apart_us = p->least_us;
	p->random = (uint64_t)now_us | 1;
	p->next_glance_us = p->next_energy_us = p->next_shared_us = now_us;
}

double round_pace_chance(struct pace *p)
{
	p->random ^= p->random << 13;
	p->random ^= p->random >> 7;
	p->random ^= p->random << 17;
	return (double)(p->random >> 11) / (double)(1ULL << 53);
}

void round_pace_ask(const struct pace *p, int64_t now_us, struct round *round)
{
	round->energy = now_us >= p->next_energy_us;
	round->shared = now_us >= p->next_shared_us;
}

/* Learns what the parts of a round cost. */
static void learn(struct pace *p, const struct round *round, int64_t took_us)
{
	round_spacing_add(&p->glances, round->cost_us);
	if (round->drain)
		return;
	round_spacing_add(&p->walls, took_us);
	if (round->energy)
		round_spacing_add(&p->energy, round->energy_cost_us);
	if (round->shared)
		round_spacing_add(&p->shared, round->shared_cost_us);
}

void round_pace_done(struct pace *p, int64_t now_us, const struct round *round, int64_t took_us)
{
	learn(p, round, took_us);
	int64_t cpu_us = round_spacing_us(&p->glances, GLANCE_SHARE, p->least_us, p->most_us);
	int64_t wall_us = round_spacing_us(&p->walls, WALL_SHARE, p->least_us, p->most_us);
	p->apart_us = cpu_us > wall_us ? cpu_us : wall_us;
	p->next_glance_us =
		now_us + (int64_t)((double)p->apart_us * (0.8 + 0.4 * round_pace_chance(p)));
	if (round->energy || round->drain)
		p->next_energy_us =
			now_us + round_spacing_us(&p->energy, ENERGY_SHARE, 0, p->most_us);
	if (round->shared || round->drain)
		p->next_shared_us =
			now_us + round_spacing_us(&p->shared, SHARED_SHARE, 0, p->most_us);
}

int64_t round_pace_stall_us(const struct pace *p)
{
	return 2 * p->apart_us + STALL_US;
}

/* Used memory may change by up to this much although no process came or went. */
#define MEMORY_STEP_BYTES (1 << 16)

int round_new(struct round **r, struct clock *clock, struct err *e)
{
	*r = calloc(1, sizeof(**r));
	if (!*r)
		return err_memory(e);
	(*r)->clock = clock;
	return 0;
}

void round_free(void *round)
{
	struct round *r = round;
	if (!r)
		return;
	free(r->cards);
	free(r->flags);
	free(r);
}

void round_want(struct round *r, size_t card)
{
	if (r && card < r->n_cards)
		r->cards[card].want = true;
}

int round_reserve(struct round *r, size_t n, struct err *e)
{
	if (n > r->cap_cards) {
		if (!array_resize(&r->cards, n + 8) || !array_resize(&r->flags, n + 8))
			return err_memory(e);
		r->cap_cards = n + 8;
	}
	for (; r->n_cards < n; r->n_cards++)
		r->cards[r->n_cards] = (struct round_card){ .want = true,
			.mem_bytes = UNKNOWN_BYTES,
			.temperature_c = NAN,
			.power_limit_w = NAN };
	return 0;
}

/* Whether a process may have come or gone since the last look. If memory cannot be read, each
 * drain is followed by a look. */
static bool must_look(const struct round_card *c, const struct card_reading *now)
{
	if (now->status != CARD_STATUS_OK)
		return false;
	if (c->want || (c->drained && now->stranger))
		return true;
	if (now->mem_used_bytes < 0 || c->mem_bytes < 0)
		return c->drained || now->mem_used_bytes != c->mem_bytes;
	return llabs(now->mem_used_bytes - c->mem_bytes) >= MEMORY_STEP_BYTES;
}

/* Reads what changes slowly. A MIG instance has the temperature and the limit of its board. */
static int read_slow(struct source *s, struct round *r, struct err *e)
{
	static const unsigned char wanted[METRIC_COUNT] = {
		[METRIC_TEMPERATURE_GPU] = 1, [METRIC_POWER_ENFORCED] = 1
	};
	double values[METRIC_COUNT];
	metric_texts texts;
	for (size_t i = 0; i < s->n_cards; i++) {
		metric_clear(values, texts);
		if (s->ops->metrics && s->cards[i].status == CARD_STATUS_OK)
			s->ops->metrics(
				s, &(struct metric_request){ i, true, wanted }, values, texts);
		r->cards[i].temperature_c = values[METRIC_TEMPERATURE_GPU];
		r->cards[i].power_limit_w = values[METRIC_POWER_ENFORCED];
	}
	return source_unsaid(s, e);
}

/* Looks at the cards that need it. */
static int look_at(struct source *s, struct round *r, struct err *e)
{
	bool any = false;
	size_t before = s->n_cards;
	for (size_t i = 0; i < before; i++) {
		r->flags[i] = r->look_all || must_look(&r->cards[i], &s->cards[i]);
		any |= r->flags[i];
	}
	r->looks = any;
	if (!any)
		return 0;
	int rc = source_look(s, r->look_all ? NULL : r->flags, e);
	if (!rc)
		rc = round_reserve(r, s->n_cards, e);
	for (size_t i = 0; !rc && i < s->n_cards; i++) {
		struct round_card *c = &r->cards[i];
		c->looked = i >= before || r->flags[i];
		if (!c->looked)
			continue;
		c->want = !s->cards[i].processes_known;
		c->mem_bytes = s->cards[i].mem_used_bytes;
	}
	return !rc && r->look_all ? read_slow(s, r, e) : rc;
}

/* CPU time so far: of this thread, and of the process that asks the driver. */
static int64_t cost_us(const struct round *r, const struct source *s)
{
	return clock_cost_us(r->clock) + s->apart_cost_us;
}

/* Returns when the last call of the source ended, by the clock of the process that made it. */
static int64_t read_ms(const struct round *r, const struct source *s)
{
	return s->apart_wall_ms ? s->apart_wall_ms : clock_wall_ms(r->clock);
}

static int glance(struct source *s, struct round *r, struct err *e)
{
	bool energy = r->energy && !r->drain;
	int rc = source_glance(s, GLANCE_MEMORY | (energy ? GLANCE_ENERGY : 0U), e);
	if (energy)
		r->energy_ms = read_ms(r, s);
	return rc ? rc : look_at(s, r, e);
}

/* Drains all cards, or those that are shared. */
static int drain(struct source *s, struct round *r, struct err *e)
{
	int64_t before_us = cost_us(r, s);
	r->drained = false;
	for (size_t i = 0; i < s->n_cards; i++) {
		r->flags[i] = r->cards[i].drained =
			r->drain || (r->shared && r->cards[i].shared);
		r->drained |= r->flags[i];
	}
	int rc = r->drained ? source_drain(s, r->drain ? NULL : r->flags, e) : 0;
	r->energy_ms = r->drained ? read_ms(r, s) : 0;
	r->shared_cost_us = r->drain ? 0 : cost_us(r, s) - before_us;
	return rc;
}

static int run(struct source *s, struct round *r, struct err *e)
{
	struct err later = { 0 };
	if ((r->scan && source_scan(s, e)) || round_reserve(r, s->n_cards, e) || drain(s, r, e))
		return e->code;
	for (size_t i = 0; i < r->n_cards; i++) {
		r->cards[i].looked = false;
		/* A card that comes back needs a look. */
		r->cards[i].want |= s->cards[i].status != CARD_STATUS_OK;
	}
	int64_t before_us = cost_us(r, s);
	int rc = glance(s, r, r->drained ? &later : e);
	r->cost_us = cost_us(r, s) - before_us - s->energy_cost_us;
	r->energy_cost_us = s->energy_cost_us;
	r->glanced = rc == 0;
	/* What was drained is kept even when a later step fails. */
	return r->drained ? 0 : rc;
}

int round_run(struct source *s, void *round, struct err *e)
{
	struct round *r = round;
	if (apart_source_can_round(s))
		return apart_source_round(s, r, e);
	struct moment begun = clock_now(r->clock);
	r->looks = false;
	int rc = run(s, r, e);
	struct moment ended = clock_now(r->clock);
	r->made = rc == 0;
	r->more = r->due = false;
	r->begun_us = begun.boot_us;
	r->begun_ms = begun.wall_us / 1000;
	r->ended_us = ended.boot_us;
	r->ended_ms = ended.wall_us / 1000;
	return rc;
}

int round_next(struct source *s, struct round *r, struct err *e)
{
	if (apart_source_can_round(s))
		return apart_source_round_next(s, r, e);
	bool made = r->made;
	r->made = false;
	return made;
}

bool round_can_patrol(const struct source *s)
{
	return apart_source_can_round(s);
}
