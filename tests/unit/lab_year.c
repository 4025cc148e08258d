/* A year of a plausible lab, in C so that it takes seconds. */
#include "lab_year.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CARDS_MAX = 64, LIVES_MAX = 4096, SUMS_MAX = 8192, DAY = 86400 };

struct lab_life {
	int card;
	bool trains; /* keeps its card busy; otherwise a notebook that is mostly idle */
	int64_t from_ms, to_ms;
	int64_t mem_kib;
};

struct world {
	struct lab_year *lab;
	uint64_t random;
	struct card_entry cards[CARDS_MAX];
	struct process_entry processes[LIVES_MAX];
	struct lab_life lives[LIVES_MAX]; /* by place, as `processes` */
	size_t n;
	struct usage_sum usage[SUMS_MAX];
	struct holding_sum holding[SUMS_MAX];
	struct holder_now holders[LIVES_MAX];
	struct lease_entry leases[CARDS_MAX];
	struct lease_sum leased[CARDS_MAX];
	size_t n_usage, n_holding, n_holders;
};

/* 0 .. 1, xorshift64*. */
static double chance(struct world *w)
{
	w->random ^= w->random >> 12;
	w->random ^= w->random << 25;
	w->random ^= w->random >> 27;
	return (double)((w->random * 0x2545F4914F6CDD1DULL) >> 11) / 9007199254740992.0;
}

static void add_cards(struct world *w, int64_t start_ms)
{
	for (int i = 0; i < w->lab->cards; i++) {
		struct card_entry *c = &w->cards[i];
		*c = (struct card_entry){
			.first_seen_ms = start_ms, .last_seen_ms = start_ms, .dirty = true
		};
		c->id = (struct card_id){ .index = i,
			.mig_index = -1,
			.gpu_instance = -1,
			.compute_instance = -1,
			.mem_total_bytes = 80LL << 30 };
		snprintf(c->id.uuid, sizeof(c->id.uuid), "GPU-%08x-1f2e-4d3c-8b9a-0123456789ab",
			i * 2654435 + 77);
		snprintf(c->id.name, sizeof(c->id.name), "NVIDIA A100-SXM4-80GB");
		snprintf(c->id.pci, sizeof(c->id.pci), "0000:%02x:00.0", i + 1);
	}
}

static void add_life(struct world *w, int card, int64_t at_ms)
{
	struct lab_year *lab = w->lab;
	if (w->n == LIVES_MAX)
		return;
	double mean_days = lab->holders * lab->cards / lab->lives_per_day;
	int64_t length = (int64_t)(-log(1 - chance(w)) * mean_days * DAY * 1000);
	bool trains = chance(w) < 0.5;
	w->lives[w->n] = (struct lab_life){ card, trains, at_ms, at_ms + length,
		(int64_t)(chance(w) * (60 << 20)) + (400 << 10) };
	struct process_entry *p = &w->processes[w->n++];
	*p = (struct process_entry){ .first_seen_ms = at_ms,
		.last_seen_ms = at_ms,
		.last_active_ms = at_ms,
		.ended_ms = -1,
		.dirty = true };
	int64_t user = (int64_t)(chance(w) * 25);
	p->id = (struct process_id){ .pid = (uint32_t)(1000 + chance(w) * 4000000),
		.start_ticks = (uint64_t)(at_ms / 10),
		.started_ms = at_ms - 4000,
		.uid = 1000 + user };
	snprintf(p->id.user, sizeof(p->id.user), "user%02d", (int)user);
	snprintf(p->id.command, sizeof(p->id.command),
		trains ? "python3 train_resnet_%d.py" : "python3 -m ipykernel_launcher %d",
		(int)(chance(w) * 1000));
	if (trains)
		snprintf(p->id.job, sizeof(p->id.job), "slurm:%d", (int)lab->lives);
	else
		snprintf(p->id.notebook, sizeof(p->id.notebook), "analysis-%d.ipynb",
			(int)(chance(w) * 100));
	snprintf(p->id.unit, sizeof(p->id.unit), "session-%d.scope", (int)lab->lives % 5000);
	lab->lives++;
}

static void add_usage(
	struct world *w, int64_t slot, int card, enum card_state state, int64_t ms, double util)
{
	/* Edges of use are in active time, those of holding in time that is truly idle: two for
	 * each life, of which there are fewer than bursts. */
	bool unsure = chance(w) < (state == CARD_ACTIVE ? 0.3 : 0.05);
	if (ms > 0)
		w->usage[w->n_usage++] = (struct usage_sum){ .slot = slot,
			.card = (uint32_t)card,
			.state = state,
			.ms = ms,
			.util_pct_ms = (int64_t)(util * (double)ms),
			.energy_mj = (int64_t)((60 + 2.4 * util) * (double)ms),
			.energy_ms = ms,
			.unsure_ms = state == CARD_ACTIVE && unsure ? 25 : 0,
			.unsure_ms2 = state == CARD_TRULY_IDLE && unsure ? 333333 : 0 };
}

static void add_holding(struct world *w, int64_t slot, size_t i, int64_t active, int64_t idle,
	bool leads, int64_t holders)
{
	const struct lab_life *life = &w->lives[i];
	enum holder_state busy = life->trains ? HOLDER_ACTIVE : HOLDER_SQUATTING;
	struct holding_sum *h = &w->holding[w->n_holding++];
	*h = (struct holding_sum){ .slot = slot,
		.card = (uint32_t)life->card,
		.process = (uint32_t)i,
		.mem_peak_kib = life->mem_kib };
	if (active > 0) {
		h->ms[busy] = active;
		h->presence_ms[busy] = leads || chance(w) < 0.8 ? active : 0;
		h->active_share_ms = (int64_t)((double)active / (double)holders * chance(w));
		if (life->trains)
			h->sm_pct_ms = (int64_t)(chance(w) * 90 * (double)active);
	}
	if (idle > 0) {
		h->ms[HOLDER_IDLE_HELD] = idle;
		h->presence_ms[HOLDER_IDLE_HELD] = leads || chance(w) < 0.8 ? idle : 0;
		h->idle_share_ms = (int64_t)((double)idle / (double)holders * chance(w));
	}
	w->holders[w->n_holders++] =
		(struct holder_now){ (uint32_t)life->card, (uint32_t)i, PROCESS_COMPUTE,
			life->mem_kib << 10, life->from_ms, w->processes[i].last_active_ms };
}

/* One card in one slot: the share of it that is held, how much of that is active, the rest. */
static void play_card(struct world *w, int64_t slot, int64_t width_ms, int card)
{
	int64_t held = 0, count = 0, from = slot * 1000, to = from + width_ms;
	bool trains = false;
	for (size_t i = 0; i < w->n; i++) {
		const struct lab_life *life = &w->lives[i];
		if (life->card != card)
			continue;
		int64_t a = life->from_ms > from ? life->from_ms : from;
		int64_t b = life->to_ms < to ? life->to_ms : to;
		held = b - a > held ? b - a : held;
		trains |= life->trains;
		count++;
	}
	double busy = trains ? 0.8 + chance(w) * 0.25 : chance(w) < 0.3 ? chance(w) * 0.3 : 0;
	int64_t active = (int64_t)((busy > 1 ? 1 : busy) * (double)held);
	add_usage(w, slot, card, CARD_ACTIVE, active, 40 + chance(w) * 59);
	add_usage(w, slot, card, CARD_IDLE_HELD, held - active, chance(w) * 3);
	add_usage(w, slot, card, w->lab->leased ? CARD_RESERVED : CARD_TRULY_IDLE,
		width_ms - held, chance(w));
	w->leased[card] = (struct lease_sum){ .slot = slot,
		.card = (uint32_t)card,
		.lease = (uint32_t)card,
		.reserved_ms = width_ms - held,
		.active_ms = active,
		.idle_held_ms = held - active,
		.untouched_ms = width_ms - held };
	for (size_t i = 0; i < w->n; i++)
		if (w->lives[i].card == card)
			add_holding(w, slot, i, active, held - active, count == 1, count);
}

/* At midnight the jobs end, and others get their cards. */
static void change_jobs(struct world *w, int64_t slot)
{
	for (int i = 0; i < w->lab->cards && slot % DAY == 0; i++) {
		struct lease_entry *l = &w->leases[i];
		int64_t now_ms = slot * 1000;
		*l = (struct lease_entry){ .first_seen_ms = now_ms,
			.last_seen_ms = now_ms,
			.ended_ms = now_ms + DAY * 1000LL,
			.dirty = true };
		l->lease = (struct lease){
			.uid = 1000 + i, .share = 1, .since_ms = now_ms, .until_ms = -1
		};
		snprintf(l->lease.id, sizeof(l->lease.id), "%lld",
			100000LL + slot / DAY * 12 + i);
		snprintf(l->lease.owner, sizeof(l->lease.owner), "user%d", i);
		snprintf(l->lease.job_name, sizeof(l->lease.job_name), "train-vit-large");
		snprintf(l->lease.account, sizeof(l->lease.account), "vision");
	}
}

static void remove_ended(struct world *w)
{
	size_t kept = 0;
	for (size_t i = 0; i < w->n; i++) {
		if (w->processes[i].ended_ms >= 0)
			continue;
		w->processes[kept] = w->processes[i];
		w->lives[kept++] = w->lives[i];
	}
	w->n = kept;
}

static int play_slot(
	struct world *w, int64_t slot, int64_t width_s, struct store *s, struct err *e)
{
	int64_t end_ms = (slot + width_s) * 1000;
	double expected = w->lab->lives_per_day * (double)width_s / DAY;
	int births = (int)expected + (chance(w) < expected - floor(expected));
	for (int i = 0; i < births; i++)
		add_life(w, (int)(chance(w) * w->lab->cards),
			slot * 1000 + (int64_t)(chance(w) * (double)width_s * 1000));
	w->n_usage = w->n_holding = w->n_holders = 0;
	for (int card = 0; card < w->lab->cards; card++) {
		play_card(w, slot, width_s * 1000, card);
		w->cards[card].last_seen_ms = end_ms;
	}
	for (size_t i = 0; i < w->n; i++) {
		w->processes[i].last_seen_ms = end_ms;
		if (w->lives[i].to_ms <= end_ms) {
			w->processes[i].ended_ms = w->lives[i].to_ms;
			w->processes[i].dirty = true;
		}
	}
	change_jobs(w, slot);
	size_t n_leases = w->lab->leased ? (size_t)w->lab->cards : 0;
	struct tick t = { .at_ms = end_ms,
		.leases = w->leases,
		.n_leases = n_leases,
		.leased = w->leased,
		.n_leased = n_leases,
		.cards = w->cards,
		.n_cards = (size_t)w->lab->cards,
		.processes = w->processes,
		.n_processes = w->n,
		.usage = w->usage,
		.n_usage = w->n_usage,
		.holding = w->holding,
		.n_holding = w->n_holding,
		.holders = w->holders,
		.n_holders = w->n_holders };
	w->lab->ticks++;
	int code = write_tick(s, &t, e);
	remove_ended(w);
	return code;
}

static int play(struct world *w, struct store *s, struct err *e)
{
	const struct retention keep = RETENTION_DEFAULT;
	int64_t end = w->lab->end_s, slot = end - w->lab->days * (int64_t)DAY;
	bool more = true;
	int code = 0;
	while (code == 0 && slot < end) {
		int64_t width = slot < end - keep.five_s     ? 3600
				: slot < end - keep.minute_s ? 300
							     : 60;
		code = play_slot(w, slot, width, s, e);
		slot += width;
		if (code == 0 && slot % 3600 == 0)
			code = compact_store(
				s, &(struct compaction){ slot * 1000, keep, 1440 }, &more, e);
	}
	while (code == 0 && more)
		code = compact_store(
			s, &(struct compaction){ end * 1000, keep, 1440 }, &more, e);
	return code;
}

int lab_year_write(struct lab_year *lab, struct store *s, struct err *e)
{
	int64_t start_ms = (lab->end_s - lab->days * (int64_t)DAY) * 1000;
	struct run_info info = { .hostname = "lab01",
		.environment = "bare",
		.driver = "550.54.15",
		.boot_id = "9f1b5c1e-6a0e-4f6e-9c55-0a1b2c3d4e5f",
		.source = "sim",
		.started_ms = start_ms,
		.interval_ms = 30000,
		.drain_ms = 5000,
		.rules = RULES_DEFAULT };
	struct world *w = calloc(1, sizeof(*w));
	if (!w)
		return err_memory(e);
	w->lab = lab;
	w->random = lab->seed * 2 + 1;
	lab->ticks = lab->lives = 0;
	add_cards(w, start_ms);
	int code = store_begin_run(s, &info, e);
	if (!code)
		code = play(w, s, e);
	free(w);
	return code;
}
