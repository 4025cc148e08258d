/* Moves a scenario through time: events are applied in order, what the cards do in between is
 * added up exactly. */
#include "driver/sim/play.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "driver/sim/scenario_quirk.h"
#include "driver/sim/play_state.h"

static uint32_t running_pid(const struct play *p, size_t seat)
{
	if (!p->seats[seat].held)
		return 0;
	return play_pid(p, p->scenario->seats[seat].process);
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

static void account_come(struct play *p, uint32_t seat, int64_t t_us)
{
	const struct scenario_seat *fixed = &p->scenario->seats[seat];
	if (!p->cards[fixed->card].dead)
		return;
	p->seats[seat].account = (struct accounted){ .process = fixed->process,
		.life = p->lives[fixed->process].number,
		.start_us = t_us,
		.start_wall_us = play_wall(p, t_us),
		.peak_bytes = -1,
		.on_us = -p->cards[fixed->card].on_us };
	settle(p, fixed->card);
}

static void account_memory(struct play *p, uint32_t seat)
{
	struct seat_now *now = &p->seats[seat];
	if (now->account.peak_bytes < now->mem_bytes)
		now->account.peak_bytes = now->mem_bytes;
}

static void account_leave(struct play *p, uint32_t seat, int64_t t_us)
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

/* The pid of a process has become known. */
static void account_name(struct play *p, uint32_t process)
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

size_t play_accounts(const struct play *p, size_t card, struct play_account *out, size_t max)
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

/* The pids of a scenario: from the file itself, from the environment, or from files of their
 * own while it is played. */

static int take_pids(struct scenario *s, const char *(*lookup)(const char *), struct err *e)
{
	for (size_t i = 0; i < s->n_processes; i++) {
		struct scenario_process *p = &s->processes[i];
		const char *variable = p->pid_file[0] ? SCENARIO_PIDS : p->pid_env;
		if (!*variable)
			continue;
		const char *text = lookup ? lookup(variable) : NULL;
		if (!text)
			return err_set(e, ERR_USAGE,
				"the scenario's process '%s' needs the variable %s", p->name,
				variable);
		if (p->pid_file[0])
			continue;
		char *rest = NULL;
		long pid = strtol(text, &rest, 10);
		if (pid < 1 || pid > INT32_MAX || *rest)
			return err_set(
				e, ERR_USAGE, "%s is '%s' and must be a pid", p->pid_env, text);
		p->pid = (uint32_t)pid;
	}
	return 0;
}

static int compare_pids(const void *a, const void *b, void *context)
{
	const struct scenario *s = context;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	uint32_t p = s->processes[x].pid, q = s->processes[y].pid;
	if (p != q)
		return p < q ? -1 : 1;
	return (x > y) - (x < y);
}

size_t scenario_find_pid(const struct scenario *s, uint32_t pid)
{
	size_t low = 0, high = s->n_processes;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (s->processes[s->by_pid[middle]].pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	bool found = low < s->n_processes && s->processes[s->by_pid[low]].pid == pid;
	return found ? low : s->n_processes;
}

/* Whether another process with the pid of `process` lives at the moment. */
static bool pid_taken(const struct scenario *s, const bool *alive, uint32_t process)
{
	uint32_t pid = s->processes[process].pid;
	if (pid == 0)
		return false; /* not known yet */
	for (size_t i = scenario_find_pid(s, pid);
		i < s->n_processes && s->processes[s->by_pid[i]].pid == pid; i++)
		if (s->by_pid[i] != process && alive[s->by_pid[i]])
			return true;
	return false;
}

/* Checks pids over the whole timeline, twice when it repeats. */
static int check_lives(const struct scenario *s, bool *alive, struct err *e)
{
	for (size_t i = 0; i < s->n_events * (s->repeat_us ? 2 : 1); i++) {
		const struct scenario_event *event = &s->events[i % s->n_events];
		bool begins = event->verb == EVENT_VERB_HOLD ||
			      event->verb == EVENT_VERB_LOAD || event->verb == EVENT_VERB_START;
		if (event->process < 0)
			continue;
		if (begins && pid_taken(s, alive, (uint32_t)event->process))
			return err_set(e, ERR_USAGE,
				"line %d of the scenario: pid %u already belongs to a running "
				"process",
				event->line, s->processes[event->process].pid);
		if (begins || event->verb == EVENT_VERB_EXIT)
			alive[event->process] = begins;
	}
	return 0;
}

int scenario_resolve(struct scenario *s, const char *(*lookup)(const char *name), struct err *e)
{
	if (take_pids(s, lookup, e) != 0)
		return ERR_USAGE;
	free(s->by_pid);
	s->by_pid = calloc(s->n_processes + 1, sizeof(*s->by_pid));
	bool *alive = calloc(s->n_processes + 1, sizeof(*alive));
	if (!s->by_pid || !alive) {
		free(alive);
		return err_memory(e);
	}
	for (size_t i = 0; i < s->n_processes; i++)
		s->by_pid[i] = (uint32_t)i;
	qsort_r(s->by_pid, s->n_processes, sizeof(*s->by_pid), compare_pids, s);
	int failed = check_lives(s, alive, e);
	free(alive);
	return failed;
}

void play_read_pids(struct play *p, uint32_t (*read)(const char *file))
{
	for (size_t i = 0; i < p->scenario->n_processes; i++) {
		struct played_life *life = &p->lives[i];
		const char *file = p->scenario->processes[i].pid_file;
		if (*file && life->seated && life->pid == 0)
			life->pid = read(file);
		else
			continue;
		if (life->pid != 0)
			account_name(p, (uint32_t)i);
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

/* The number of the last sample that is not later than `t_us`; -1: there is none. */
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

/* What the card draws while nothing uses it and it does not cool down. */
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

/* When the load changes next, not later than `end_us`. */
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

/* Remembers the power of a stretch, if a moment of the ring of power lies in it. */
static void note_power(struct play *p, struct card_state_now *c, struct power_stretch s)
{
	struct power_stretch *last = c->n_powers ? &c->powers[c->n_powers - 1] : NULL;
	int64_t moment_us =
		(s.from_us + POWER_PERIOD_US - 1) / POWER_PERIOD_US * POWER_PERIOD_US;
	if (moment_us >= s.to_us)
		return;
	s.wall_less_us = play_wall(p, 0);
	if (last && last->to_us == s.from_us && last->mw == s.mw &&
		last->wall_less_us == s.wall_less_us) {
		last->to_us = s.to_us;
		return;
	}
	if (c->n_powers == POWER_RING_MAX)
		memmove(c->powers, c->powers + 1, --c->n_powers * sizeof(c->powers[0]));
	c->powers[c->n_powers++] = s;
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
	note_power(p, c, (struct power_stretch){ from_us, to_us, mw, 0 });
}

bool play_is_off(const struct play *p, const struct card_state_now *c)
{
	return c->status != CARD_STATUS_OK || c->vanished || p->suspended;
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
		if (!play_is_off(p, c))
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

/* Puts the sample that ends at `t_us` into the ring; a card that was off all the time has none.
 */
static void take_sample(struct play *p, struct card_state_now *c, int64_t t_us)
{
	if (c->sample_us > 0 && !play_is_off(p, c)) {
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

/* Between two events the use of the card does not change. */
static bool is_steady(const struct play *p, const struct card_state_now *c)
{
	bool steady = c->own_load.on_us == 0;
	for (size_t i = 0; i < c->n_loading; i++)
		steady = steady && p->seats[c->loading[i]].load.on_us == 0;
	return steady;
}

/* The sample at time 0, of the time before: what begins then was so before. */
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

/* Brings `card` to `t_us`: its sums, and the samples that end by then. A sample is of the time
 * before it, so that one that ends at `t_us` does not know of an event at that moment. */
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
		/* Played with fewer samples, each is still as short as the driver's, and the
		 * time before it used as much energy. */
		int64_t skipped_us = end_us - p->sample_us - c->added_us;
		if (skipped_us > 0) {
			c->added_us += skipped_us;
			begin_sample(c);
		}
		double before_mj = play_energy_mj(p, card);
		add_up(p, card, end_us);
		if (skipped_us > 0)
			c->energy_mj += llround((play_energy_mj(p, card) - before_mj) *
						(double)skipped_us / (double)p->sample_us);
		take_sample(p, c, end_us);
	}
	/* Played with fewer samples, the sums are those of the samples. */
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

static void bring_all_to(struct play *p, int64_t t_us)
{
	for (size_t i = 0; i < p->scenario->n_cards; i++)
		bring_to(p, i, t_us);
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
		bring_both_to(p, (int)p->scenario->seats[seat].card, t_us);
		leave_seat(p, seat, t_us);
	}
}

/* Status, and that of a card's instances. */
static void set_status(struct play *p, const struct scenario_event *event, int64_t t_us)
{
	for (size_t i = 0; i < p->scenario->n_cards; i++) {
		if ((int)i != event->card && p->scenario->cards[i].parent != event->card)
			continue;
		bring_both_to(p, (int)i, t_us);
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
	bring_all_to(p, t_us);
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
