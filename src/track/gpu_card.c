/* Adds the readings of a card to the sums of the tree, with the accounting of the audit. */
#include "track/gpu_card.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "driver/ring.h"
#include "driver/use.h"

/* A drain may be late by this much. */
#define DRAIN_MS 2000

void gpu_card_init(
	struct gpu_card *c, const struct card_reading *r, uint32_t index, int64_t start_ms)
{
	*c = (struct gpu_card){
		.shown = { .id = r->id,
			.max_used_bytes = -1,
			.max_tree_bytes = -1,
			.max_util_pct = NAN,
			.mean_util_pct = NAN,
			.max_tree_pct = NAN,
			.mean_tree_pct = NAN,
			.energy_j = NAN,
			.tree_energy_j = NAN },
		.chosen = true,
		.used_bytes = -1,
		.tree_bytes = -1,
		.newest_pct = NAN,
		.tree_pct = NAN,
		.energy_mj = NAN,
		.drained_ms = -1,
	};
	account_start(&c->account, index, start_ms);
}

void gpu_card_finish(struct gpu_card *c)
{
	free(c->holders);
	free(c->pids);
	free(c->sm_pct);
}

/* Makes the process number of struct holder from a pid and HOLDER_TREE or HOLDER_STRANGER. */
static uint32_t process_number(uint32_t pid, uint32_t whose)
{
	return 2 * pid + whose;
}

uint32_t gpu_card_whose(uint32_t process)
{
	return process % 2;
}

static bool in_tree(const struct tree *t, uint32_t pid)
{
	return tree_find(t, (pid_t)pid) != NO_MEMBER;
}

/* Whether the record of a pid counts. It may be garbage if the pid is not in the tree and was
 * not on the card at the last look. */
static bool is_heard(const struct gpu_card *c, const struct tree *t, uint32_t pid)
{
	for (size_t i = 0; i < c->n_holders; i++)
		if (c->pids[i] == pid)
			return true;
	return in_tree(t, pid);
}

/* Returns the tree's part of what the card used since the last drain: by SM use, else by
 * memory, else in equal parts. */
static double tree_share(
	const struct gpu_card *c, const struct card_reading *r, const struct tree *t)
{
	double use[2] = { 0, 0 }, bytes[2] = { 0, 0 }, heads[2] = { 0, 0 };
	bool unknown = false;
	for (size_t i = 0; r->process_util_known && i < r->n_process_utils; i++) {
		const struct process_util *u = &r->process_utils[i];
		if (is_heard(c, t, u->pid))
			use[!in_tree(t, u->pid)] += u->sm_pct;
	}
	for (size_t i = 0; i < c->n_holders; i++) {
		const struct holder *h = &c->holders[i];
		unknown |= h->mem_bytes < 0;
		bytes[h->user] += h->mem_bytes < 0 ? 0 : (double)h->mem_bytes;
		heads[h->user]++;
	}
	const double *by = use[0] + use[1] > 0			 ? use
			   : !unknown && bytes[0] + bytes[1] > 0 ? bytes
								 : heads;
	return by[0] + by[1] > 0 ? by[0] / (by[0] + by[1]) : 0;
}

static void take_energy(struct gpu_card *c, const struct card_reading *r, const struct tree *t)
{
	double grown_j = (r->energy_mj - c->energy_mj) / 1e3;
	if (!isnan(r->energy_mj) && isnan(c->shown.energy_j))
		c->shown.energy_j = c->shown.tree_energy_j = 0;
	if (!isnan(grown_j) && grown_j > 0) {
		c->shown.energy_j += grown_j;
		c->shown.tree_energy_j += grown_j * tree_share(c, r, t);
	}
	if (!isnan(r->energy_mj))
		c->energy_mj = r->energy_mj;
}

static void take_tree_use(
	struct gpu_card *c, const struct card_reading *r, const struct tree *t, int64_t now_ms)
{
	double pct = r->process_util_known ? 0 : NAN;
	for (size_t i = 0; r->process_util_known && i < r->n_process_utils; i++)
		if (in_tree(t, r->process_utils[i].pid)) {
			pct += r->process_utils[i].sm_pct;
			c->touched = true;
		}
	pct = pct > 100 ? 100 : pct;
	c->tree_pct = pct;
	if (isnan(pct) || c->drained_ms < 0 || now_ms <= c->drained_ms)
		return;
	double seconds = (double)(now_ms - c->drained_ms) / 1e3;
	c->tree_pct_s += pct * seconds;
	c->tree_known_s += seconds;
	if (!(pct <= c->shown.max_tree_pct))
		c->shown.max_tree_pct = pct;
}

static struct account_scene account_scene(struct gpu_card *c, const struct gpu_scene *scene)
{
	return (struct account_scene){ c->holders, c->n_holders, scene->rules, scene->ledger,
		NULL };
}

void gpu_card_drain(struct gpu_card *c, const struct card_reading *r, const struct tree *t,
	const struct gpu_scene *scene)
{
	int64_t now_ms = scene->now_ms;
	struct account_scene on = account_scene(c, scene);
	c->shown.status = r->status;
	if (r->status != CARD_STATUS_OK || !reading_util_is_known(r->util_kind)) {
		c->newest_pct = c->tree_pct = NAN;
		account_blind(&c->account, now_ms, &on);
	}
	if (r->status != CARD_STATUS_OK) {
		c->drained_ms = -1;
		c->energy_mj = NAN;
		return;
	}
	c->shown.observed = true;
	take_tree_use(c, r, t, now_ms);
	take_energy(c, r, t);
	c->drained_ms = now_ms;
	for (size_t i = 0; i < c->n_holders; i++) {
		c->sm_pct[i] = use_of(r, c->pids[i]);
		/* A process that used nothing since the last drain may have a bare context
		 * only. If its memory is unknown, nothing is learned. */
		if (!isnan(c->sm_pct[i]) && c->sm_pct[i] <= 0)
			context_learn_idle(
				scene->contexts, r->id.name, c->holders[i].mem_bytes, NULL);
	}
	if (!reading_util_is_known(r->util_kind))
		return;
	struct ring_hold hold = ring_hold_of(r->util_kind, scene->period_us, DRAIN_MS);
	struct account_drain drain = {
		.samples = r->samples,
		.n_samples = r->n_samples,
		.hold_ms = hold.hold_ms,
		.period_ms = hold.period_ms,
		.dry_ms = hold.dry_ms,
		.polled = r->util_kind == UTIL_POLLED,
		.reading_ms = hold.reading_ms,
		.whole = hold.whole,
		.use_known = r->process_util_known,
		.sm_pct = c->sm_pct,
		.sm_active_pct = NAN,
	};
	account_drain(&c->account, &drain, &on);
}

static bool reserve(struct gpu_card *c, size_t n)
{
	if (n <= c->cap)
		return true;
	size_t cap = array_next_cap(c->cap, n);
	if (!array_resize(&c->holders, cap) || !array_resize(&c->pids, cap) ||
		!array_resize(&c->sm_pct, cap))
		return false;
	c->cap = cap;
	return true;
}

/* Moves the holder of `pid` to place `to`, or adds it there. */
static void place_holder(struct gpu_card *c, size_t to, uint32_t pid, int64_t from_ms)
{
	for (size_t i = to; i < c->n_holders; i++) {
		if (c->pids[i] != pid)
			continue;
		struct holder h = c->holders[i];
		c->holders[i] = c->holders[to];
		c->pids[i] = c->pids[to];
		c->holders[to] = h;
		c->pids[to] = pid;
		return;
	}
	/* The holder at that place moves to the end; it is found there later. */
	if (to < c->n_holders) {
		c->holders[c->n_holders] = c->holders[to];
		c->pids[c->n_holders] = c->pids[to];
	}
	c->n_holders++;
	c->pids[to] = pid;
	c->holders[to] = (struct holder){ .sm_pct = NAN,
		.since_ms = from_ms,
		.from = edge_exactly(from_ms),
		.to = EDGE_NEVER,
		.last_active_ms = -1 };
}

/* A process of the tree: its memory goes to its member too. */
static void hold_for_tree(struct gpu_card *c, struct member *m, int64_t bytes)
{
	c->touched = true;
	c->tree_processes++;
	if (bytes < 0) {
		c->tree_unknown = true;
		m->gpu_bytes = -1;
		return;
	}
	c->tree_bytes += bytes;
	if (m->gpu_bytes >= 0)
		m->gpu_bytes += bytes;
}

bool gpu_card_look(struct gpu_card *c, const struct card_reading *r, struct tree *t,
	const struct gpu_scene *scene, int64_t from_ms)
{
	gpu_card_flush(c, scene);
	c->shown.status = r->status;
	bool known = r->status == CARD_STATUS_OK && r->processes_known;
	size_t n = 0;
	c->looked = true;
	c->listed |= known;
	c->used_bytes = r->status == CARD_STATUS_OK ? r->mem_used_bytes : -1;
	if (c->used_bytes > c->shown.max_used_bytes)
		c->shown.max_used_bytes = c->used_bytes;
	c->tree_bytes = known ? 0 : -1;
	c->tree_processes = 0;
	if (known && !reserve(c, c->n_holders + r->n_processes + 1))
		return false;
	for (size_t i = 0; known && i < r->n_processes; i++) {
		const struct card_process *p = &r->processes[i];
		if (!classify_is_holder(p->kind, scene->rules))
			continue;
		uint32_t member = tree_find(t, (pid_t)p->pid);
		place_holder(c, n, p->pid, from_ms);
		struct holder *h = &c->holders[n++];
		h->kind = p->kind;
		h->mem_bytes = p->mem_bytes;
		h->user = member != NO_MEMBER ? HOLDER_TREE : HOLDER_STRANGER;
		h->process = process_number(p->pid, h->user);
		if (member != NO_MEMBER)
			hold_for_tree(c, &t->members[member], p->mem_bytes);
	}
	c->n_holders = n;
	if (c->tree_bytes > c->shown.max_tree_bytes) {
		c->shown.max_tree_bytes = c->tree_bytes;
		c->shown.peak_tree_processes = (size_t)c->tree_processes;
	}
	return true;
}

void gpu_card_flush(struct gpu_card *c, const struct gpu_scene *scene)
{
	struct account_scene on = account_scene(c, scene);
	account_flush(&c->account, scene->now_ms, &on);
}

int64_t gpu_card_context(const struct gpu_card *c, int64_t floor_bytes)
{
	int64_t sum = 0;
	for (size_t i = 0; i < c->n_holders; i++) {
		const struct holder *h = &c->holders[i];
		if (h->user == HOLDER_TREE && h->mem_bytes >= 0)
			sum += h->mem_bytes < floor_bytes ? h->mem_bytes : floor_bytes;
	}
	return sum;
}
