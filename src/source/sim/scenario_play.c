/* Moves a scenario through time: events are applied in order, cards are sampled in between. */
#include "source/sim/scenario_state.h"

#include <stdlib.h>
#include <string.h>

#define STEPS_MAX_US (1000LL * 366 * 86400 * 1000000)

int64_t play_last_sample(const struct play *p, int64_t t_us)
{
	if (t_us < 0)
		return -1;
	return ((t_us + 1) * p->scenario->samples_per_second - 1) / p->scenario->second_us;
}

int64_t play_sample_time(const struct play *p, int64_t k)
{
	return k * p->scenario->second_us / p->scenario->samples_per_second;
}

static int64_t power_at(const struct scenario_card *card, int util_pct)
{
	return card->idle_mw + (card->max_mw - card->idle_mw) * util_pct / 100;
}

static int load_now(const struct load *load, int64_t t_us)
{
	if (load->on_us == 0)
		return load->pct;
	return (t_us - load->since_us) % (load->on_us + load->off_us) < load->on_us ? load->pct
										    : 0;
}

/* Takes one sample into the ring, which stands for `times` of them; returns the utilisation. */
static int take_sample(struct play *p, size_t card, int64_t t_us, int64_t times)
{
	struct card_state_now *c = &p->cards[card];
	struct play_sample *sample = &c->ring[c->ring_next];
	struct part *parts = &c->parts[c->ring_next * c->parts_stride];
	*sample = (struct play_sample){ .t_us = t_us, .wall_us = play_wall(p, t_us) };
	int sum = load_now(&c->own_load, t_us);
	for (size_t i = 0; i < c->n_loading; i++) {
		int pct = load_now(&p->seats[c->loading[i]].load, t_us);
		if (pct == 0)
			continue;
		parts[sample->n_parts++] = (struct part){ c->loading[i], (uint32_t)pct };
		sum += pct;
		if (p->scenario->seats[c->loading[i]].card == card)
			p->seats[c->loading[i]].account.used += pct * times;
	}
	sample->util_pct = sum < 100 ? sum : 100;
	c->samples += times;
	c->ring_next = (c->ring_next + 1) % p->ring_room;
	c->ring_used += c->ring_used < p->ring_cap ? 1 : 0;
	return sample->util_pct;
}

/* Between two events the use of the card does not change. */
static bool is_steady(const struct play *p, const struct card_state_now *c)
{
	bool steady = c->own_load.on_us == 0;
	for (size_t i = 0; i < c->n_loading; i++)
		steady = steady && p->seats[c->loading[i]].load.on_us == 0;
	return steady;
}

/* Adds `times` samples of utilisation `util_pct` from number `first` on to the card's sums. */
static void add_up(struct play *p, size_t card, int util_pct, int64_t first, int64_t times)
{
	int64_t from_us = play_sample_time(p, first),
		to_us = play_sample_time(p, first + times);
	p->cards[card].energy_mw_samples +=
		power_at(&p->scenario->cards[card], util_pct) * times;
	p->cards[card].util_pct_us += util_pct * (to_us - from_us);
}

/* Samples `card` up to number `last`. */
static void sample_to(struct play *p, size_t card, int64_t last)
{
	struct card_state_now *c = &p->cards[card];
	bool off = c->status != CARD_STATUS_OK || c->vanished || p->suspended;
	if (off && last >= c->next_sample)
		c->next_sample = last + 1;
	/* Samples that would be overwritten at once are not put into the ring. */
	int64_t skip = last + 1 - c->next_sample - (int64_t)p->ring_room;
	if (skip > 0 && is_steady(p, c)) {
		int util = take_sample(p, card, play_sample_time(p, c->next_sample), skip);
		add_up(p, card, util, c->next_sample, skip);
		c->next_sample += skip;
	}
	for (; c->next_sample <= last; c->next_sample++) {
		int64_t t_us = play_sample_time(p, c->next_sample);
		c->util_pct = take_sample(p, card, t_us, 1);
		add_up(p, card, c->util_pct, c->next_sample, 1);
	}
}

/* Samples the card, and the one that it is an instance of, up to just before `t_us`. */
static void sample_before(struct play *p, int card, int64_t t_us)
{
	sample_to(p, (size_t)card, play_last_sample(p, t_us - 1));
	int parent = p->scenario->cards[card].parent;
	if (parent >= 0)
		sample_to(p, (size_t)parent, play_last_sample(p, t_us - 1));
}

static void sample_all_before(struct play *p, int64_t t_us)
{
	for (size_t i = 0; i < p->scenario->n_cards; i++)
		sample_to(p, i, play_last_sample(p, t_us - 1));
}

/* Puts a seat into a card's list of those that load it, or takes it out; order is kept. */
static void list_loading(struct card_state_now *c, uint32_t seat, bool on)
{
	size_t at = 0;
	while (at < c->n_loading && c->loading[at] != seat)
		at++;
	if (on && at == c->n_loading)
		c->loading[c->n_loading++] = seat;
	if (on || at == c->n_loading)
		return;
	c->n_loading--;
	memmove(&c->loading[at], &c->loading[at + 1], (c->n_loading - at) * sizeof(uint32_t));
}

static void set_load(struct play *p, uint32_t seat, struct load load)
{
	const struct scenario_seat *fixed = &p->scenario->seats[seat];
	int parent = p->scenario->cards[fixed->card].parent;
	p->seats[seat].load = load;
	if (!fixed->loads)
		return;
	list_loading(&p->cards[fixed->card], seat, load.pct > 0);
	if (parent >= 0)
		list_loading(&p->cards[parent], seat, load.pct > 0);
}

static void begin_life(struct play *p, int process, int64_t t_us)
{
	struct played_life *life = &p->lives[process];
	const struct scenario_process *fixed = &p->scenario->processes[process];
	if (life->alive)
		return;
	life->alive = true;
	life->number++;
	life->seated = false;
	life->pid = 0;
	life->started_us = !life->lived && fixed->has_started ? fixed->started_us : t_us;
	life->lived = true;
}

static void leave_seat(struct play *p, uint32_t seat, int64_t t_us)
{
	bool held = p->seats[seat].held;
	p->seats[seat].held = false;
	if (held)
		account_leave(p, seat, t_us);
	set_load(p, seat, (struct load){ 0 });
}

static void end_life(struct play *p, int process, int64_t t_us)
{
	p->lives[process].alive = false;
	for (uint32_t seat = p->scenario->processes[process].first_seat; seat != SEAT_NONE;
		seat = p->scenario->seats[seat].next) {
		sample_before(p, (int)p->scenario->seats[seat].card, t_us);
		leave_seat(p, seat, t_us);
	}
}

/* Status, and that of a card's instances. */
static void set_status(struct play *p, const struct scenario_event *event, int64_t t_us)
{
	for (size_t i = 0; i < p->scenario->n_cards; i++) {
		if ((int)i != event->card && p->scenario->cards[i].parent != event->card)
			continue;
		sample_before(p, (int)i, t_us);
		if (event->verb == EVENT_VERB_VANISH) {
			p->cards[i].vanished = event->value != 0;
		} else {
			p->cards[i].status = (enum card_status)event->value;
			p->cards[i].code = event->code;
		}
	}
}

static void turn_fault(struct play *p, const struct scenario_event *event, int64_t t_us)
{
	size_t at = 0;
	while (at < p->n_on && p->on[at].fault != event->fault)
		at++;
	if (at < p->n_on) {
		p->n_on--;
		memmove(&p->on[at], &p->on[at + 1], (p->n_on - at) * sizeof(p->on[0]));
	}
	if (event->value)
		p->on[p->n_on++] = (struct fault_on){ event->fault, t_us - event->at_us };
}

static void note_xid(struct play *p, const struct scenario_event *event)
{
	p->xids[p->n_xids % XIDS_KEPT] = (struct xid){ (uint32_t)event->card, event->value };
	p->n_xids++;
}

static void apply_to_host(struct play *p, const struct scenario_event *event, int64_t t_us)
{
	if (!p->virtual_time)
		return;
	sample_all_before(p, t_us);
	if (event->verb == EVENT_VERB_SUSPEND) {
		p->suspended = event->value > 0;
		p->suspended_us += event->value;
		return;
	}
	/* Clock steps that would add up to millennia are ignored. */
	int64_t step_us = p->step_us + event->value;
	if (step_us > -STEPS_MAX_US && step_us < STEPS_MAX_US)
		p->step_us = step_us;
}

/* Events of a process on a card. */
static void apply_to_seat(struct play *p, const struct scenario_event *event, int64_t t_us)
{
	if (event->verb != EVENT_VERB_RELEASE) {
		begin_life(p, event->process, t_us);
		p->lives[event->process].seated = true;
	}
	if (event->verb == EVENT_VERB_RELEASE)
		leave_seat(p, event->seat, t_us);
	if (event->verb == EVENT_VERB_HOLD) {
		bool comes = !p->seats[event->seat].held;
		p->seats[event->seat].held = true;
		if (comes)
			account_come(p, event->seat, t_us);
		p->seats[event->seat].mem_bytes = event->value;
		account_memory(p, event->seat);
	}
	if (event->verb == EVENT_VERB_LOAD)
		set_load(p, event->seat,
			(struct load){ (int)event->value, event->on_us, event->off_us, t_us });
}

/* Odd answers of the driver. */
static void apply_quirk(struct card_state_now *c, const struct scenario_event *event)
{
	if (event->verb == EVENT_VERB_GARBAGE)
		c->garbage = event->value != 0;
	if (event->verb == EVENT_VERB_ZERO_USE)
		c->zero_use = (unsigned)event->value;
	if (event->verb == EVENT_VERB_POWER_FACTOR)
		c->power_factor = event->value;
	if (event->verb == EVENT_VERB_GROW) {
		c->grow_by = event->value;
		c->grow_to = event->on_us;
	}
}

static void apply(struct play *p, const struct scenario_event *event, int64_t t_us)
{
	struct card_state_now *c = event->card >= 0 ? &p->cards[event->card] : NULL;
	if (c)
		sample_before(p, event->card, t_us);
	switch (event->verb) {
	case EVENT_VERB_HOLD:
	case EVENT_VERB_LOAD:
	case EVENT_VERB_RELEASE:
		apply_to_seat(p, event, t_us);
		break;
	case EVENT_VERB_CARD_LOAD:
		c->own_load =
			(struct load){ (int)event->value, event->on_us, event->off_us, t_us };
		break;
	case EVENT_VERB_START:
		begin_life(p, event->process, t_us);
		break;
	case EVENT_VERB_EXIT:
		end_life(p, event->process, t_us);
		break;
	case EVENT_VERB_ORPHAN:
		c->orphan_bytes = event->value;
		break;
	case EVENT_VERB_STATUS:
	case EVENT_VERB_VANISH:
		set_status(p, event, t_us);
		break;
	case EVENT_VERB_ENERGY_RESET:
		c->energy_mw_samples = 0;
		c->energy_from = t_us;
		break;
	case EVENT_VERB_XID:
		note_xid(p, event);
		break;
	case EVENT_VERB_FAULT:
		turn_fault(p, event, t_us);
		break;
	case EVENT_VERB_STEP:
	case EVENT_VERB_SUSPEND:
		apply_to_host(p, event, t_us);
		break;
	case EVENT_VERB_GARBAGE:
	case EVENT_VERB_GROW:
	case EVENT_VERB_ZERO_USE:
	case EVENT_VERB_POWER_FACTOR:
		apply_quirk(c, event);
		break;
	}
}

/* The driver forgets what is older than the ring is long, whether or not it has new samples. */
static void forget(const struct play *p, struct card_state_now *c, int64_t t_us)
{
	while (c->ring_used) {
		size_t oldest = (c->ring_next + p->ring_room - c->ring_used) % p->ring_room;
		if (c->ring[oldest].t_us > t_us - p->scenario->ring_us)
			return;
		c->ring_used--;
	}
}

void play_advance(struct play *p, int64_t t_us, int64_t wall_less_us)
{
	const struct scenario *s = p->scenario;
	if (!s->has_start || !p->virtual_time)
		p->wall_less_us = wall_less_us;
	if (t_us < p->t_us)
		return;
	while (s->n_events) {
		const struct scenario_event *event = &s->events[p->next_event];
		int64_t at_us = p->round_us + event->at_us;
		if (p->finished || at_us > t_us)
			break;
		apply(p, event, at_us);
		if (++p->next_event < s->n_events)
			continue;
		p->next_event = 0;
		p->round_us += s->repeat_us;
		p->finished = s->repeat_us == 0;
	}
	for (size_t i = 0; i < s->n_cards; i++) {
		sample_to(p, i, play_last_sample(p, t_us));
		forget(p, &p->cards[i], t_us);
	}
	p->t_us = t_us;
}

int64_t play_follow(struct play *p, struct clock *clock, int64_t origin_us)
{
	struct virtual_time *v = clock->virtual_time;
	for (;;) {
		struct moment now = clock_now(clock);
		int64_t less = now.wall_us - (now.boot_us - origin_us);
		/* The difference between two readings of real clocks is smaller than a clock
		 * step. */
		int64_t off = less - p->wall_less_us;
		bool same = !v && p->wall_less_us != 0 && off > -1000 && off < 1000;
		play_advance(p, now.boot_us - origin_us, same ? p->wall_less_us : less);
		if (v && p->scenario->has_start)
			v->wall_less_us = p->scenario->start_wall_us + p->step_us - origin_us;
		if (!v || v->suspended_us >= p->suspended_us)
			return p->t_us;
		v->boot_us += p->suspended_us - v->suspended_us;
		v->suspended_us = p->suspended_us;
	}
}
