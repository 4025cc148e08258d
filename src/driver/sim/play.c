/* Plays a scenario: moves it through time, applies events in order, adds up exactly what the
 * cards do in between, and answers questions about the current moment. */
#include "driver/sim/play.h"

#include "driver/sim/play_state.h"

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
	for (size_t i = 0; ok && i < s->n_cards; i++) {
		const struct scenario_card *fixed = &s->cards[i];
		struct card_state_now *c = &p->cards[i];
		c->parts_stride = fixed->n_load_seats;
		c->loading = calloc(fixed->n_load_seats + 1, sizeof(*c->loading));
		c->ring = calloc(p->ring_room, sizeof(*c->ring));
		c->parts = calloc(p->ring_room * fixed->n_load_seats + 1, sizeof(*c->parts));
		bool accounts = p->scenario->accounting && fixed->parent < 0 && !fixed->has_mig;
		c->dead = accounts ? calloc(DEAD_KEPT, sizeof(*c->dead)) : NULL;
		c->quirks.power_factor = 1;
		ok = c->loading && c->ring && c->parts && (c->dead || !accounts);
	}
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

void play_read_pids(struct play *p, uint32_t (*read)(const char *file))
{
	for (size_t i = 0; i < p->scenario->n_processes; i++) {
		struct played_life *life = &p->lives[i];
		const char *file = p->scenario->processes[i].pid_file;
		if (!*file || !life->seated || life->pid != 0)
			continue;
		life->pid = read(file);
		if (life->pid != 0)
			play_account_name(p, (uint32_t)i);
	}
}

void play_drop_pids(struct play *p, bool (*ended)(uint32_t pid))
{
	for (size_t i = 0; i < p->scenario->n_processes; i++)
		if (p->scenario->processes[i].pid_file[0] && p->lives[i].pid != 0 &&
			ended(p->lives[i].pid))
			p->lives[i].pid = 0;
}

uint32_t play_pid(const struct play *p, uint32_t process)
{
	const struct scenario_process *fixed = &p->scenario->processes[process];
	return fixed->pid_file[0] ? p->lives[process].pid : fixed->pid;
}

#define NJ_PER_MJ 1000000
#define SECOND_US 1000000
#define STEPS_MAX_US (1000LL * 366 * 86400 * 1000000)

/* Returns the number of the last sample that is not later than `t_us`; -1: there is none. */
static int64_t last_sample(const struct play *p, int64_t t_us)
{
	if (t_us < 0)
		return -1;
	return ((t_us + 1) * p->scenario->samples_per_second - 1) / p->scenario->second_us;
}

/* When sample number `k` ends. */
static int64_t sample_time(const struct play *p, int64_t k)
{
	return k * p->scenario->second_us / p->scenario->samples_per_second;
}

/* Returns what the card draws while nothing uses it and it is not cooling down. */
static int64_t base_mw(const struct play *p, size_t card)
{
	const struct scenario_card *fixed = &p->scenario->cards[card];
	for (size_t i = 0; fixed->held_mw != fixed->idle_mw && i < fixed->n_seats; i++)
		if (p->seats[fixed->first_seat + i].held)
			return fixed->held_mw;
	return fixed->idle_mw;
}

static int64_t power_at(const struct play *p, size_t card, int util_pct, int64_t t_us)
{
	const struct scenario_card *fixed = &p->scenario->cards[card];
	const struct card_state_now *c = &p->cards[card];
	int64_t base = base_mw(p, card);
	if (util_pct == 0 && t_us < c->cool_until_us)
		return base + c->use_mw / 2;
	return base + (fixed->max_mw - base) * util_pct / 100;
}

static int load_now(const struct load *load, int64_t t_us)
{
	if (load->on_us == 0)
		return load->pct;
	return (t_us - load->since_us) % (load->on_us + load->off_us) < load->on_us ? load->pct
										    : 0;
}

/* Returns when the load changes next, not later than `end_us`. */
static int64_t load_until(const struct load *load, int64_t t_us, int64_t end_us)
{
	if (load->on_us == 0)
		return end_us;
	int64_t turn_us = load->on_us + load->off_us, at_us = (t_us - load->since_us) % turn_us;
	int64_t next_us = t_us + (at_us < load->on_us ? load->on_us : turn_us) - at_us;
	return next_us < end_us ? next_us : end_us;
}

int64_t play_power_mw(const struct play *p, size_t card)
{
	const struct card_state_now *c = &p->cards[card];
	int sum = load_now(&c->own_load, p->t_us);
	for (size_t i = 0; i < c->n_loading; i++)
		sum += load_now(&p->seats[c->loading[i]].load, p->t_us);
	return power_at(p, card, sum < 100 ? sum : 100, p->t_us);
}

/* Adds the use of a process to the sample that is being made. */
static void add_part(struct card_state_now *c, uint32_t seat, int64_t pct_us)
{
	struct part *parts = &c->parts[c->ring_next * c->parts_stride];
	size_t i = 0;
	while (i < c->n_parts && parts[i].seat != seat)
		i++;
	if (i == c->n_parts)
		parts[c->n_parts++] = (struct part){ seat, 0 };
	parts[i].pct_us += pct_us;
}

/* Puts the power of a stretch of time into the ring of power. */
static void note_power(
	struct play *p, struct card_state_now *c, int64_t from_us, int64_t to_us, int64_t mw)
{
	int64_t k = (from_us + POWER_PERIOD_US - 1) / POWER_PERIOD_US;
	int64_t end = (to_us + POWER_PERIOD_US - 1) / POWER_PERIOD_US;
	for (k = k > end - POWER_RING_MAX ? k : end - POWER_RING_MAX; k < end; k++)
		c->powers[c->n_powers++ % POWER_RING_MAX] =
			(struct play_power){ .t_us = k * POWER_PERIOD_US,
				.wall_us = play_wall(p, k * POWER_PERIOD_US),
				.mw = mw };
}

/* Adds a stretch of time in which no load changes to the card's sums. */
static void add_stretch(struct play *p, size_t card, int64_t from_us, int64_t to_us)
{
	struct card_state_now *c = &p->cards[card];
	int sum = load_now(&c->own_load, from_us);
	for (size_t i = 0; i < c->n_loading; i++) {
		struct seat_now *seat = &p->seats[c->loading[i]];
		int pct = load_now(&seat->load, from_us);
		if (pct == 0)
			continue;
		sum += pct;
		add_part(c, c->loading[i], pct * (to_us - from_us));
		if (p->scenario->seats[c->loading[i]].card == card)
			seat->account.used += pct * (to_us - from_us);
	}
	sum = sum < 100 ? sum : 100;
	int64_t mw = power_at(p, card, sum, from_us);
	if (sum > 0) {
		c->use_mw = mw - base_mw(p, card);
		c->cool_until_us = to_us + p->scenario->cards[card].cool_us;
	}
	c->util_pct_us += sum * (to_us - from_us);
	c->sample_pct_us += sum * (to_us - from_us);
	c->sample_us += to_us - from_us;
	c->on_us += to_us - from_us;
	c->energy_nj += mw * (to_us - from_us);
	c->energy_mj += c->energy_nj / NJ_PER_MJ;
	c->energy_nj %= NJ_PER_MJ;
	note_power(p, c, from_us, to_us, mw);
}

/* Whether the card takes no samples now. */
static bool is_off(const struct play *p, const struct card_state_now *c)
{
	return c->status != CARD_STATUS_OK || c->quirks.vanished || p->suspended;
}

/* Adds up what the card did until `to_us`. */
static void add_up(struct play *p, size_t card, int64_t to_us)
{
	struct card_state_now *c = &p->cards[card];
	while (c->added_us < to_us) {
		int64_t end_us = load_until(&c->own_load, c->added_us, to_us);
		for (size_t i = 0; i < c->n_loading; i++)
			end_us = load_until(&p->seats[c->loading[i]].load, c->added_us, end_us);
		if (c->added_us < c->cool_until_us && c->cool_until_us < end_us)
			end_us = c->cool_until_us;
		if (!is_off(p, c))
			add_stretch(p, card, c->added_us, end_us);
		c->added_us = end_us;
	}
}

/* Begins a sample, which has the mean of what follows. */
static void begin_sample(struct card_state_now *c)
{
	c->sample_pct_us = c->sample_us = 0;
	c->n_parts = 0;
}

/* Puts the sample that ends at `t_us` into the ring, unless the card was off all the time. */
static void take_sample(struct play *p, struct card_state_now *c, int64_t t_us)
{
	if (c->sample_us > 0 && !is_off(p, c)) {
		c->ring[c->ring_next] = (struct play_sample){
			.t_us = t_us,
			.wall_us = play_wall(p, t_us),
			.util_pct = (int)((c->sample_pct_us + c->sample_us / 2) / c->sample_us),
			.length_us = c->sample_us,
			.n_parts = c->n_parts,
		};
		c->ring_next = (c->ring_next + 1) % p->ring_room;
		c->ring_used += c->ring_used < p->ring_cap ? 1 : 0;
	}
	begin_sample(c);
}

/* Whether the use of the card does not change between two events. */
static bool is_steady(const struct play *p, const struct card_state_now *c)
{
	bool steady = c->own_load.on_us == 0;
	for (size_t i = 0; i < c->n_loading; i++)
		steady = steady && p->seats[c->loading[i]].load.on_us == 0;
	return steady;
}

/* Takes the sample at time 0. It is of the time before, in which the loads that begin at 0
 * count as already on. */
static void take_first(struct play *p, size_t card)
{
	struct card_state_now *c = &p->cards[card];
	int sum = load_now(&c->own_load, 0);
	if (c->next_sample > 0)
		return;
	for (size_t i = 0; i < c->n_loading; i++) {
		int pct = load_now(&p->seats[c->loading[i]].load, 0);
		sum += pct;
		if (pct > 0)
			add_part(c, c->loading[i], pct);
	}
	c->sample_us = 1;
	c->sample_pct_us = sum < 100 ? sum : 100;
	take_sample(p, c, 0);
	c->next_sample = 1;
}

static double added_mj(const struct card_state_now *c)
{
	return (double)c->energy_mj + (double)c->energy_nj / 1e6;
}

/* Brings `card` to `t_us`: its sums, and the samples that end by then. A sample is of the time
 * before it, so one that ends at `t_us` does not include an event at that moment. */
static void bring_to(struct play *p, size_t card, int64_t t_us)
{
	struct card_state_now *c = &p->cards[card];
	int64_t last = last_sample(p, t_us);
	if (t_us <= 0)
		return;
	take_first(p, card);
	/* Samples that would be overwritten at once are not put into the ring. */
	int64_t skip = last - c->next_sample - (int64_t)p->ring_room;
	if (skip > 0 && is_steady(p, c)) {
		c->next_sample += skip;
		add_up(p, card, sample_time(p, c->next_sample - 1));
		begin_sample(c);
	}
	for (; c->next_sample <= last; c->next_sample++) {
		int64_t end_us = sample_time(p, c->next_sample);
		/* When played with fewer samples, each is still as short as the driver's, and
		 * the time before it used energy at the same rate. */
		int64_t skipped_us = end_us - p->sample_us - c->added_us;
		if (skipped_us > 0) {
			c->added_us += skipped_us;
			begin_sample(c);
		}
		double before_mj = added_mj(c);
		add_up(p, card, end_us);
		if (skipped_us > 0)
			c->energy_mj += llround((added_mj(c) - before_mj) * (double)skipped_us /
						(double)p->sample_us);
		take_sample(p, c, end_us);
	}
	/* When played with fewer samples, the sums are computed from the samples. */
	if (p->scenario->second_us == SECOND_US)
		add_up(p, card, t_us);
}

/* Brings the card, and the one that it is an instance of, to `t_us`. */
static void bring_both_to(struct play *p, int card, int64_t t_us)
{
	bring_to(p, (size_t)card, t_us);
	int parent = p->scenario->cards[card].parent;
	if (parent >= 0)
		bring_to(p, (size_t)parent, t_us);
}

/* Adds a seat to the list of those that load a card, or removes it; keeps the order. */
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
		play_account_leave(p, seat, t_us);
	set_load(p, seat, (struct load){ 0 });
}

static void end_life(struct play *p, int process, int64_t t_us)
{
	p->lives[process].alive = false;
	for (uint32_t seat = p->scenario->processes[process].first_seat; seat != SEAT_NONE;
		seat = p->scenario->seats[seat].next) {
		bring_both_to(p, (int)p->scenario->seats[seat].card, t_us);
		leave_seat(p, seat, t_us);
	}
}

/* Sets the status of a card and of its instances. */
static void set_status(struct play *p, const struct scenario_event *event, int64_t t_us)
{
	for (size_t i = 0; i < p->scenario->n_cards; i++) {
		if ((int)i != event->card && p->scenario->cards[i].parent != event->card)
			continue;
		bring_both_to(p, (int)i, t_us);
		if (event->verb == EVENT_VERB_VANISH) {
			p->cards[i].quirks.vanished = event->value != 0;
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

static void apply_to_host(struct play *p, const struct scenario_event *event, int64_t t_us)
{
	if (!p->virtual_time)
		return;
	for (size_t i = 0; i < p->scenario->n_cards; i++)
		bring_to(p, i, t_us);
	if (event->verb == EVENT_VERB_SUSPEND) {
		p->suspended = event->value > 0;
		p->suspended_us += event->value;
		return;
	}
	/* Ignore clock steps that would add up to millennia. */
	int64_t step_us = p->step_us + event->value;
	if (step_us > -STEPS_MAX_US && step_us < STEPS_MAX_US)
		p->step_us = step_us;
}

/* Events of a process on a card. */
static void apply_to_seat(struct play *p, const struct scenario_event *event, int64_t t_us)
{
	if (event->verb == EVENT_VERB_RELEASE) {
		leave_seat(p, event->seat, t_us);
		return;
	}
	begin_life(p, event->process, t_us);
	p->lives[event->process].seated = true;
	if (event->verb == EVENT_VERB_HOLD) {
		bool comes = !p->seats[event->seat].held;
		p->seats[event->seat].held = true;
		p->seats[event->seat].mem_bytes = event->value;
		play_account_hold(p, event->seat, comes, t_us);
	}
	if (event->verb == EVENT_VERB_LOAD)
		set_load(p, event->seat,
			(struct load){ (int)event->value, event->on_us, event->off_us, t_us });
}

static void apply_quirk(struct play_quirks *q, const struct scenario_event *event)
{
	if (event->verb == EVENT_VERB_GARBAGE)
		q->garbage = event->value != 0;
	if (event->verb == EVENT_VERB_ZERO_USE)
		q->zero_use = (unsigned)event->value;
	if (event->verb == EVENT_VERB_POWER_FACTOR)
		q->power_factor = event->value ? event->value : 1;
	if (event->verb == EVENT_VERB_GROW) {
		q->grow_by = event->value;
		q->grow_to = event->on_us;
	}
}

static void apply(struct play *p, const struct scenario_event *event, int64_t t_us)
{
	struct card_state_now *c = event->card >= 0 ? &p->cards[event->card] : NULL;
	if (c)
		bring_both_to(p, event->card, t_us);
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
		c->energy_mj = c->energy_nj = 0;
		break;
	case EVENT_VERB_XID:
		p->xids[p->n_xids++ % XIDS_KEPT] =
			(struct xid){ (uint32_t)event->card, event->value };
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
		apply_quirk(&c->quirks, event);
		break;
	}
}

/* The driver forgets samples older than the ring is long, whether or not it has new ones. */
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
		bring_to(p, i, t_us);
		if (t_us == 0)
			take_first(p, i);
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
		/* The difference between two readings of real clocks is below a clock step. */
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
	*code = c->quirks.vanished ? 15 : c->code;
	return c->quirks.vanished ? CARD_STATUS_LOST : c->status;
}

const struct play_quirks *play_quirks(const struct play *p, size_t card)
{
	return &p->cards[card].quirks;
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

/* Adds up the parts of one sample. */
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

/* The units whose holders are those of the card end here: it is the only one or, with MIG, its
 * instances are among those that follow. */
static size_t units_end(const struct play *p, size_t card)
{
	return p->scenario->cards[card].has_mig ? p->scenario->n_cards : card + 1;
}

static bool is_part(const struct play *p, size_t unit, size_t card)
{
	return unit == card || p->scenario->cards[unit].parent == (int)card;
}

size_t play_holders(const struct play *p, size_t card, struct play_holder *out, size_t max)
{
	size_t n = 0;
	for (size_t unit = card; unit < units_end(p, card); unit++) {
		const struct scenario_card *fixed = &p->scenario->cards[unit];
		size_t end = fixed->first_seat + (is_part(p, unit, card) ? fixed->n_seats : 0);
		for (size_t i = fixed->first_seat; i < end; i++) {
			if (!holds(p, i))
				continue;
			if (n < max)
				out[n] = (struct play_holder){ p->scenario->seats[i].process,
					(uint32_t)unit, p->seats[i].mem_bytes };
			n++;
		}
	}
	return n;
}

/* What a process without reported memory adds to the used memory of the card. */
#define UNKNOWN_USES_BYTES (1LL << 30)

int64_t play_memory_used(const struct play *p, size_t card)
{
	const struct card_id *id = &p->scenario->cards[card].id;
	int64_t sum = 0, most = id->mem_total_bytes - p->scenario->cards[card].reserved_bytes;
	for (size_t unit = card; unit < units_end(p, card); unit++) {
		const struct scenario_card *fixed = &p->scenario->cards[unit];
		if (!is_part(p, unit, card))
			continue;
		sum += p->cards[unit].orphan_bytes;
		for (size_t i = fixed->first_seat; i < fixed->first_seat + fixed->n_seats; i++)
			if (holds(p, i))
				sum += p->seats[i].mem_bytes < 0 ? UNKNOWN_USES_BYTES
								 : p->seats[i].mem_bytes;
	}
	return sum < most ? sum : most;
}

size_t play_power_ring(const struct play *p, size_t card, struct play_power *out)
{
	const struct card_state_now *c = &p->cards[card];
	int64_t newest = p->t_us / POWER_PERIOD_US;
	size_t n = 0;
	for (size_t i = c->n_powers > POWER_RING_MAX ? c->n_powers - POWER_RING_MAX : 0;
		i < c->n_powers; i++) {
		const struct play_power *one = &c->powers[i % POWER_RING_MAX];
		if (one->t_us / POWER_PERIOD_US > newest - POWER_RING_MAX)
			out[n++] = *one;
	}
	/* The current moment is not in a stretch yet. */
	if (p->t_us >= 0 && p->t_us % POWER_PERIOD_US == 0 && !is_off(p, c))
		out[n++] = (struct play_power){ .t_us = p->t_us,
			.wall_us = play_wall(p, p->t_us),
			.mw = play_power_mw(p, card) };
	return n;
}

double play_energy_mj(const struct play *p, size_t card)
{
	double mj = added_mj(&p->cards[card]);
	/* When played with fewer samples: use is added with the next one, but the counter of a
	 * card that only idles must not stand still. */
	if (p->scenario->second_us != SECOND_US && !is_off(p, &p->cards[card])) {
		int64_t since_us = p->t_us - sample_time(p, last_sample(p, p->t_us));
		mj += (double)p->scenario->cards[card].idle_mw * (double)since_us / 1e6;
	}
	return mj;
}

int64_t play_util_sum(const struct play *p, size_t card)
{
	return p->cards[card].util_pct_us;
}

int play_process(const struct play *p, uint32_t pid, int64_t *started_us)
{
	const struct scenario *s = p->scenario;
	uint32_t i;
	size_t step = 0;
	while ((i = idmap_next(&s->by_pid, pid, &step)) != IDMAP_NONE) {
		if (!p->lives[i].alive || s->processes[i].dead)
			continue;
		*started_us = p->lives[i].started_us;
		return (int)i;
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
