/* Opens a play and answers questions about its current moment. */
#include "driver/sim/scenario_quirk.h"
#include "driver/sim/play_state.h"

#include <stdlib.h>
#include <string.h>

static bool open_card(
	struct play *p, const struct scenario_card *fixed, struct card_state_now *c)
{
	c->parts_stride = fixed->n_load_seats;
	c->loading = calloc(fixed->n_load_seats + 1, sizeof(*c->loading));
	c->ring = calloc(p->ring_room, sizeof(*c->ring));
	c->parts = calloc(p->ring_room * fixed->n_load_seats + 1, sizeof(*c->parts));
	bool accounts = p->scenario->accounting && fixed->parent < 0 && !fixed->has_mig;
	c->dead = accounts ? calloc(DEAD_KEPT, sizeof(*c->dead)) : NULL;
	return c->loading && c->ring && c->parts && (c->dead || !accounts);
}

int play_open(struct play **out, const struct scenario *s, bool virtual_time, struct err *e)
{
	*out = NULL;
	struct play *p = calloc(1, sizeof(*p));
	if (!p)
		return err_memory(e);
	p->scenario = s;
	p->virtual_time = virtual_time;
	p->t_us = INT64_MIN;
	if (virtual_time && s->has_start)
		p->wall_less_us = s->start_wall_us;
	p->ring_cap = (size_t)(s->ring_us * s->samples_per_second / s->second_us);
	p->ring_room = p->ring_cap + 1;
	p->sample_us = 1000000 / s->samples_per_second + 1;
	p->cards = calloc(s->n_cards + 1, sizeof(*p->cards));
	p->seats = calloc(s->n_seats + 1, sizeof(*p->seats));
	p->lives = calloc(s->n_processes + 1, sizeof(*p->lives));
	p->on = calloc(s->n_faults + 1, sizeof(*p->on));
	bool ok = p->cards && p->seats && p->lives && p->on;
	for (size_t i = 0; ok && i < s->n_cards; i++)
		ok = open_card(p, &s->cards[i], &p->cards[i]);
	if (!ok) {
		play_close(p);
		return err_memory(e);
	}
	*out = p;
	return 0;
}

void play_close(struct play *p)
{
	if (!p)
		return;
	for (size_t i = 0; p->cards && i < p->scenario->n_cards; i++) {
		free(p->cards[i].loading);
		free(p->cards[i].ring);
		free(p->cards[i].parts);
		free(p->cards[i].dead);
	}
	free(p->cards);
	free(p->seats);
	free(p->lives);
	free(p->on);
	free(p);
}

int64_t play_time(const struct play *p)
{
	return p->t_us;
}

int64_t play_wall(const struct play *p, int64_t t_us)
{
	return t_us + p->wall_less_us + p->step_us;
}

enum card_status play_status(const struct play *p, size_t card, int *code)
{
	const struct card_state_now *c = &p->cards[card];
	*code = c->vanished ? 15 : c->code;
	return c->vanished ? CARD_STATUS_LOST : c->status;
}

bool play_vanished(const struct play *p, size_t card)
{
	return p->cards[card].vanished;
}

bool play_garbage(const struct play *p, size_t card)
{
	return p->cards[card].garbage;
}

int64_t play_grow(const struct play *p, size_t card, int64_t *most)
{
	*most = p->cards[card].grow_to;
	return p->cards[card].grow_by;
}

unsigned play_zero_use(const struct play *p, size_t card)
{
	return p->cards[card].zero_use;
}

int64_t play_power_factor(const struct play *p, size_t card)
{
	int64_t factor = p->cards[card].power_factor;
	return factor ? factor : 1;
}

size_t play_ring_size(const struct play *p, size_t card)
{
	return p->cards[card].ring_used;
}

static size_t ring_place(const struct play *p, const struct card_state_now *c, size_t back)
{
	return (c->ring_next + p->ring_room - 1 - back) % p->ring_room;
}

const struct play_sample *play_ring_at(const struct play *p, size_t card, size_t i)
{
	const struct card_state_now *c = &p->cards[card];
	return &c->ring[ring_place(p, c, c->ring_used - 1 - i)];
}

/* Adds up one sample's parts. */
static void add_parts(struct play *p, const struct card_state_now *c, size_t place)
{
	const struct part *parts = &c->parts[place * c->parts_stride];
	for (size_t i = 0; i < c->ring[place].n_parts; i++) {
		struct seat_now *seat = &p->seats[parts[i].seat];
		seat->sum += parts[i].pct_us;
		seat->newest = place;
	}
}

size_t play_uses(
	struct play *p, size_t card, struct play_since since, struct play_use *uses, size_t max)
{
	const struct scenario_card *fixed = &p->scenario->cards[card];
	const struct card_state_now *c = &p->cards[card];
	int64_t length_us = 0;
	size_t n = 0;
	for (size_t i = 0; i < fixed->n_seats; i++)
		p->seats[fixed->first_seat + i].sum = 0;
	for (size_t back = play_ring_size(p, card); back-- > 0;) {
		size_t place = ring_place(p, c, back);
		const struct play_sample *sample = &c->ring[place];
		if ((since.by_wall ? sample->wall_us : sample->t_us) <= since.us)
			continue;
		length_us += sample->length_us;
		add_parts(p, c, place);
	}
	for (size_t i = 0; i < fixed->n_seats; i++) {
		const struct seat_now *seat = &p->seats[fixed->first_seat + i];
		uint32_t process = p->scenario->seats[fixed->first_seat + i].process;
		if (seat->sum == 0 || play_pid(p, process) == 0)
			continue;
		if (n < max)
			uses[n] = (struct play_use){ process, c->ring[seat->newest].wall_us,
				c->ring[seat->newest].t_us,
				(double)seat->sum / (double)length_us };
		n++;
	}
	return n;
}

/* Whether a process is on the card and the driver can name it. */
static bool holds(const struct play *p, size_t seat)
{
	return p->seats[seat].held && play_pid(p, p->scenario->seats[seat].process) != 0;
}

/* The holders of one card or instance. */
static size_t own_holders(
	const struct play *p, size_t card, struct play_holder *out, size_t max)
{
	const struct scenario_card *fixed = &p->scenario->cards[card];
	size_t n = 0;
	for (size_t i = 0; i < fixed->n_seats; i++) {
		const struct seat_now *seat = &p->seats[fixed->first_seat + i];
		if (!holds(p, fixed->first_seat + i))
			continue;
		if (n < max)
			out[n] = (struct play_holder){
				p->scenario->seats[fixed->first_seat + i].process,
				(uint32_t)card, seat->mem_bytes
			};
		n++;
	}
	return n;
}

size_t play_holders(const struct play *p, size_t card, struct play_holder *out, size_t max)
{
	if (!p->scenario->cards[card].has_mig)
		return own_holders(p, card, out, max);
	size_t n = 0;
	for (size_t i = p->scenario->n_physical; i < p->scenario->n_cards; i++)
		if (p->scenario->cards[i].parent == (int)card)
			n += own_holders(p, i, n < max ? out + n : NULL, n < max ? max - n : 0);
	return n;
}

/* What a process without reported memory adds to the used memory of the card. */
#define UNKNOWN_USES_BYTES (1LL << 30)

static int64_t own_memory(const struct play *p, size_t card)
{
	const struct scenario_card *fixed = &p->scenario->cards[card];
	int64_t sum = p->cards[card].orphan_bytes;
	for (size_t i = 0; i < fixed->n_seats; i++) {
		int64_t bytes = p->seats[fixed->first_seat + i].mem_bytes;
		if (holds(p, fixed->first_seat + i))
			sum += bytes < 0 ? UNKNOWN_USES_BYTES : bytes;
	}
	return sum;
}

int64_t play_memory_used(const struct play *p, size_t card)
{
	const struct scenario_card *fixed = &p->scenario->cards[card];
	int64_t sum = own_memory(p, card);
	for (size_t i = p->scenario->n_physical; fixed->has_mig && i < p->scenario->n_cards;
		i++)
		if (p->scenario->cards[i].parent == (int)card)
			sum += own_memory(p, i);
	int64_t most = fixed->id.mem_total_bytes - fixed->reserved_bytes;
	return sum < most ? sum : most;
}

size_t play_power_ring(const struct play *p, size_t card, struct play_power *out)
{
	const struct card_state_now *c = &p->cards[card];
	int64_t newest = p->t_us / POWER_PERIOD_US;
	size_t n = 0;
	for (size_t i = 0; i < c->n_powers; i++) {
		const struct power_stretch *s = &c->powers[i];
		int64_t k = (s->from_us + POWER_PERIOD_US - 1) / POWER_PERIOD_US;
		k = k > newest - POWER_RING_MAX ? k : newest - POWER_RING_MAX + 1;
		for (; k * POWER_PERIOD_US < s->to_us; k++)
			out[n++] = (struct play_power){ .t_us = k * POWER_PERIOD_US,
				.wall_us = k * POWER_PERIOD_US + s->wall_less_us,
				.mw = s->mw };
	}
	/* This very moment is in no stretch yet. */
	if (p->t_us >= 0 && p->t_us % POWER_PERIOD_US == 0 && !play_is_off(p, c))
		out[n++] = (struct play_power){ .t_us = p->t_us,
			.wall_us = play_wall(p, p->t_us),
			.mw = play_power_mw(p, card) };
	return n;
}

double play_energy_mj(const struct play *p, size_t card)
{
	return (double)p->cards[card].energy_mj + (double)p->cards[card].energy_nj / 1e6;
}

int64_t play_util_sum(const struct play *p, size_t card)
{
	return p->cards[card].util_pct_us;
}

int play_process(const struct play *p, uint32_t pid, int64_t *started_us)
{
	const struct scenario *s = p->scenario;
	for (size_t i = scenario_find_pid(s, pid);
		i < s->n_processes && s->processes[s->by_pid[i]].pid == pid; i++) {
		const struct played_life *life = &p->lives[s->by_pid[i]];
		if (!life->alive || s->processes[s->by_pid[i]].dead)
			continue;
		*started_us = life->started_us;
		return (int)s->by_pid[i];
	}
	return -1;
}

const struct scenario_fault *play_fault(
	const struct play *p, enum scenario_fault_kind kind, const char *call, int card)
{
	for (size_t i = p->n_on; i-- > 0;) {
		const struct scenario_fault *fault = &p->scenario->faults[p->on[i].fault];
		bool named = fault->prefix
				     ? strncmp(call, fault->call, strlen(fault->call)) == 0
				     : strcmp(call, fault->call) == 0;
		if (named && fault->kind == kind && (fault->card < 0 || fault->card == card))
			return fault;
	}
	return NULL;
}

int64_t play_fault_end(const struct play *p, const struct scenario_fault *fault)
{
	for (size_t i = 0; i < p->n_on && fault->until_us != INT64_MAX; i++)
		if (&p->scenario->faults[p->on[i].fault] == fault)
			return p->on[i].round_us + fault->until_us;
	return INT64_MAX;
}

bool play_xid(const struct play *p, uint64_t *seen, uint32_t *card, int64_t *xid)
{
	if (p->n_xids > XIDS_KEPT && *seen < p->n_xids - XIDS_KEPT)
		*seen = p->n_xids - XIDS_KEPT;
	if (*seen >= p->n_xids)
		return false;
	const struct xid *next = &p->xids[(*seen)++ % XIDS_KEPT];
	*card = next->card;
	*xid = next->xid;
	return true;
}

uint64_t play_xid_count(const struct play *p)
{
	return p->n_xids;
}
