/* Reads the cards for a tracker, through the driver's thread, and sums them up. */
#include "track/gpu.h"

#include "driver/ring.h"
#include "track/tracker_private.h"
#include "track/visible.h"

/* A sample waits this long for the driver's answer; a later answer goes to the next sample. */
#define PATIENCE_MS 2
/* The last sample waits this long, unless the driver has already been silent for that long. On
 * a busy host, or without persistence mode, the driver may need seconds. */
#define LAST_PATIENCE_MS 5000
#define SILENT "the driver stopped answering before the end"
/* The driver samples six times a second. */
#define DRAIN_EVERY_US 150000
/* Process lists are expensive: 4 ms per card. */
#define LOOK_EVERY_US 950000
/* A lost card is looked for again, at growing intervals. */
#define SCAN_FIRST_US 5000000
#define SCAN_MOST_US 60000000
/* A drain may be late by this much. */
#define DRAIN_MS 2000

/* Values of struct holder's `user`. Its `process` is twice the pid plus this value. */
enum { HOLDER_TREE, HOLDER_STRANGER };

static uint32_t pid_of(const struct holder *h)
{
	return h->process / 2;
}

static int64_t wall_ms(const struct gpu *g)
{
	return clock_wall_ms(g->o->source.clock);
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
		if (pid_of(&c->holders[i]) == pid)
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
	if (isnan(pct) || c->drained_ms < 0 || now_ms <= c->drained_ms)
		return;
	double seconds = (double)(now_ms - c->drained_ms) / 1e3;
	c->tree_pct_s += pct * seconds;
	c->tree_known_s += seconds;
	if (!(pct <= c->shown.max_tree_pct))
		c->shown.max_tree_pct = pct;
}

static struct account_scene account_scene(struct gpu *g, struct gpu_card *c)
{
	return (struct account_scene){ .holders = c->holders,
		.n = c->n_holders,
		.rules = &g->o->rules,
		.ledger = &g->ledger };
}

/* Takes the drain of a source whose samples have this period: see ring_hold_of(). */
static void gpu_card_drain(struct gpu *g, struct gpu_card *c, const struct card_reading *r,
	const struct tree *t, int64_t period_us)
{
	int64_t now_ms = wall_ms(g);
	struct account_scene on = account_scene(g, c);
	c->shown.status = r->status;
	if (r->status != CARD_STATUS_OK || !reading_util_is_known(r->util_kind)) {
		c->newest_pct = NAN;
		account_blind(&c->account, now_ms, &on);
	}
	if (r->status != CARD_STATUS_OK) {
		c->drained_ms = -1;
		c->energy_mj = NAN;
		return;
	}
	c->shown.observed = true;
	take_tree_use(c, r, t, now_ms);
	double grown_j = (r->energy_mj - c->energy_mj) / 1e3;
	if (!isnan(r->energy_mj) && isnan(c->shown.energy_j))
		c->shown.energy_j = c->shown.tree_energy_j = 0;
	if (!isnan(grown_j) && grown_j > 0) {
		c->shown.energy_j += grown_j;
		c->shown.tree_energy_j += grown_j * tree_share(c, r, t);
	}
	if (!isnan(r->energy_mj))
		c->energy_mj = r->energy_mj;
	c->drained_ms = now_ms;
	for (size_t i = 0; i < c->n_holders; i++) {
		c->sm_pct[i] = reading_process_pct(r, pid_of(&c->holders[i]));
		/* A process that used nothing since the last drain may have a bare context
		 * only. If its memory is unknown, nothing is learned. */
		if (!isnan(c->sm_pct[i]) && c->sm_pct[i] <= 0)
			context_learn_idle(
				&g->contexts, r->id.name, c->holders[i].mem_bytes, NULL);
	}
	if (!reading_util_is_known(r->util_kind))
		return;
	struct account_drain drain = {
		.samples = r->samples,
		.n_samples = r->n_samples,
		.hold = ring_hold_of(r->util_kind, period_us, DRAIN_MS),
		.polled = r->util_kind == UTIL_POLLED,
		.use_known = r->process_util_known,
		.sm_pct = c->sm_pct,
		.sm_active_pct = NAN,
	};
	account_drain(&c->account, &drain, &on);
}

/* Brings the account up to date. */
static void gpu_card_flush(struct gpu *g, struct gpu_card *c)
{
	struct account_scene on = account_scene(g, c);
	account_flush(&c->account, wall_ms(g), &on);
}

/* Moves the holder of `pid` to place `to`, or adds it there. The holder at that place moves
 * back, and is found there later. */
static void place_holder(struct gpu_card *c, size_t to, uint32_t pid, int64_t from_ms)
{
	struct holder found = { .sm_pct = NAN,
		.since_ms = from_ms,
		.from = edge_exactly(from_ms),
		.to = EDGE_NEVER,
		.last_active_ms = -1 };
	size_t i = to;
	while (i < c->n_holders && pid_of(&c->holders[i]) != pid)
		i++;
	if (i < c->n_holders)
		found = c->holders[i];
	else
		c->n_holders++;
	c->holders[i] = c->holders[to];
	c->holders[to] = found;
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

/* Call after a look; new holders count from `from_ms`. False: out of memory. */
static bool gpu_card_look(struct gpu *g, struct gpu_card *c, const struct card_reading *r,
	struct tree *t, int64_t from_ms)
{
	gpu_card_flush(g, c);
	c->shown.status = r->status;
	bool known = r->status == CARD_STATUS_OK && r->processes_known;
	size_t n = 0;
	c->looked = true;
	c->listed |= known;
	c->used_bytes = r->status == CARD_STATUS_OK ? r->mem_used_bytes : -1;
	tree_raise(&c->shown.max_used_bytes, c->used_bytes);
	c->tree_bytes = known ? 0 : -1;
	c->tree_processes = 0;
	size_t need = c->n_holders + r->n_processes + 1, cap = array_next_cap(c->cap, need);
	if (known && need > c->cap) {
		if (!array_resize(&c->holders, cap) || !array_resize(&c->sm_pct, cap))
			return false;
		c->cap = cap;
	}
	for (size_t i = 0; known && i < r->n_processes; i++) {
		const struct card_process *p = &r->processes[i];
		if (!classify_is_holder(p->kind, &g->o->rules))
			continue;
		uint32_t member = tree_find(t, (pid_t)p->pid);
		place_holder(c, n, p->pid, from_ms);
		struct holder *h = &c->holders[n++];
		h->kind = p->kind;
		h->mem_bytes = p->mem_bytes;
		h->user = member != NO_MEMBER ? HOLDER_TREE : HOLDER_STRANGER;
		h->process = 2 * p->pid + h->user;
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

/* Returns how much of the tree's memory on the card is bare context, if one context takes
 * `floor_bytes`. */
static int64_t gpu_card_context(const struct gpu_card *c, int64_t floor_bytes)
{
	int64_t sum = 0;
	for (size_t i = 0; i < c->n_holders; i++) {
		const struct holder *h = &c->holders[i];
		if (h->user == HOLDER_TREE && h->mem_bytes >= 0)
			sum += h->mem_bytes < floor_bytes ? h->mem_bytes : floor_bytes;
	}
	return sum;
}

static int64_t boot_us(const struct gpu *g)
{
	return clock_now(g->o->source.clock).boot_us;
}

static void begin(struct gpu *g, enum worker_job job)
{
	g->job = job;
	g->waiting = worker_begin(g->worker, job);
	g->begun_us = boot_us(g);
	if (job == JOB_DRAIN)
		g->drained_us = g->begun_us;
	if (job == JOB_LOOK)
		g->looked_us = g->begun_us;
}

int gpu_open(struct gpu **out, const struct tracker_options *o, struct err *e)
{
	struct gpu *g = calloc(1, sizeof(*g));
	if (!g)
		return err_memory(e);
	g->o = o;
	g->drained_us = g->looked_us = -1;
	g->max_sum_pct = NAN;
	g->used_bytes = g->max_used_bytes = g->context_bytes = -1;
	for (int i = 0; i < TRACK_GROUPS; i++)
		g->ram[i] = g->max_ram[i] = -1;
	struct moment now = clock_now(o->source.clock);
	g->start_ms = now.wall_us / 1000;
	clock_watch_start(&g->clock_watch, &now);
	int rc = ledger_init(&g->ledger, e);
	if (!rc)
		rc = worker_new(&g->worker, &o->source, WORKER_CLOSING_MS, e);
	if (rc) {
		gpu_close(g);
		return rc;
	}
	g->ledger.slot_seconds = INT64_MAX / 4000;
	begin(g, JOB_OPEN);
	*out = g;
	return 0;
}

void gpu_close(struct gpu *g)
{
	if (!g)
		return;
	worker_free(g->worker);
	for (size_t i = 0; i < g->n_cards; i++) {
		struct gpu_card *c = &g->cards[i];
		free(c->holders);
		free(c->sm_pct);
	}
	free(g->cards);
	ledger_finish(&g->ledger);
	context_finish(&g->contexts);
	free(g);
}

/* Whether the card counts in utilisation. */
static bool gpu_counts(const struct gpu *g, const struct gpu_card *c)
{
	return c->chosen || (c->touched && !g->o->gpu_uuids);
}

/* Whether the card is in the result. */
static bool gpu_shows(const struct gpu *g, const struct gpu_card *c)
{
	return !g->o->own_gpus || c->chosen || c->touched;
}

/* Cards keep their order; new cards are added at the end. */
static bool take_cards(struct gpu *g, const struct source *s)
{
	if (s->n_cards <= g->n_cards)
		return true;
	if (!array_resize(&g->cards, s->n_cards))
		return false;
	const struct tracker_options *o = g->o;
	const struct visible visible = { s->cards, s->n_cards, o->visible_gpus };
	for (size_t i = g->n_cards; i < s->n_cards; i++) {
		struct gpu_card *c = &g->cards[i];
		*c = (struct gpu_card){
			.shown = { .id = s->cards[i].id,
				.max_used_bytes = -1,
				.max_tree_bytes = -1,
				.max_util_pct = NAN,
				.mean_util_pct = NAN,
				.max_tree_pct = NAN,
				.mean_tree_pct = NAN,
				.energy_j = NAN,
				.tree_energy_j = NAN },
			.used_bytes = -1,
			.tree_bytes = -1,
			.newest_pct = NAN,
			.energy_mj = NAN,
			.drained_ms = -1,
		};
		account_start(&c->account, (uint32_t)i, g->start_ms);
		c->chosen = !o->gpu_uuids && (!o->own_gpus || visible_has(&visible, i));
		for (size_t k = 0; k < o->n_gpu_uuids; k++)
			c->chosen |= strcmp(o->gpu_uuids[k], c->shown.id.uuid) == 0;
	}
	g->n_cards = s->n_cards;
	return true;
}

/* After the wall clock was set, samples from before cannot be placed in time. */
static void check_clock(struct gpu *g)
{
	struct moment now = clock_now(g->o->source.clock);
	int64_t step_ms = clock_watch_step_us(&g->clock_watch, &now) / 1000;
	if (!step_ms)
		return;
	g->start_ms += step_ms;
	for (size_t i = 0; i < g->n_cards; i++) {
		account_start(&g->cards[i].account, (uint32_t)i, now.wall_us / 1000);
		g->cards[i].drained_ms = -1;
		for (size_t k = 0; k < g->cards[i].n_holders; k++)
			g->cards[i].holders[k].from =
				edge_exactly(g->cards[i].holders[k].from.at + step_ms);
	}
}

static void add_known(double *sum, double value)
{
	if (!isnan(value))
		*sum = (isnan(*sum) ? 0 : *sum) + value;
}

static double sum_newest(const struct gpu *g)
{
	double sum = NAN;
	for (size_t i = 0; i < g->n_cards; i++)
		if (gpu_counts(g, &g->cards[i]))
			add_known(&sum, g->cards[i].newest_pct);
	return sum;
}

/* Returns the card with the earliest next sample, or n_cards. */
static size_t earliest(const struct gpu *g, const struct source *s, const size_t *at)
{
	size_t first = g->n_cards;
	for (size_t i = 0; i < g->n_cards; i++) {
		const struct card_reading *r = &s->cards[i];
		if (r->status != CARD_STATUS_OK || at[i] >= r->n_samples)
			continue;
		if (first == g->n_cards ||
			r->samples[at[i]].wall_us < s->cards[first].samples[at[first]].wall_us)
			first = i;
	}
	return first;
}

/* Goes through the samples of all cards in time order, to find their highest sum. */
static void play_samples(struct gpu *g, const struct source *s)
{
	enum { MOST_CARDS = 256 };
	size_t at[MOST_CARDS] = { 0 };
	if (g->n_cards > MOST_CARDS)
		return;
	for (size_t i = earliest(g, s, at); i < g->n_cards; i = earliest(g, s, at)) {
		struct gpu_card *c = &g->cards[i];
		const struct card_reading *r = &s->cards[i];
		const struct util_sample *sample = &r->samples[at[i]++];
		c->newest_pct = sample->util_pct;
		/* A sample is of the period before it. */
		if (sample->wall_us / 1000 <= g->start_ms)
			continue;
		if (!(sample->util_pct <= c->shown.max_util_pct))
			c->shown.max_util_pct = sample->util_pct;
		double sum = sum_newest(g);
		if (gpu_counts(g, c) && !(sum <= g->max_sum_pct))
			g->max_sum_pct = sum;
	}
}

/* Sums the memory of each group from its members. */
static void sum_ram(struct gpu *g, struct tree *t)
{
	int64_t ram[TRACK_GROUPS] = { 0 };
	for (size_t i = 0; i < t->n; i++) {
		struct member *m = &t->members[i];
		int group = i == 0 ? TRACK_MAIN : TRACK_DESCENDANTS;
		g->ram_unknown[group] |= m->gpu_bytes < 0;
		g->ram_unknown[TRACK_COMBINED] |= m->gpu_bytes < 0;
		ram[group] += m->gpu_bytes < 0 ? 0 : m->gpu_bytes;
		tree_raise(&m->shown.max_gpu_bytes, m->gpu_bytes);
	}
	ram[TRACK_COMBINED] = ram[TRACK_MAIN] + ram[TRACK_DESCENDANTS];
	if (ram[TRACK_COMBINED] > g->max_ram[TRACK_COMBINED]) {
		g->context_bytes = 0;
		for (size_t i = 0; i < g->n_cards; i++) {
			const struct gpu_card *c = &g->cards[i];
			int64_t floor = context_floor(&g->contexts, c->shown.id.name);
			g->context_bytes +=
				gpu_card_context(c, floor < 0 ? CONTEXT_USUAL_BYTES : floor);
		}
	}
	for (int i = 0; i < TRACK_GROUPS; i++) {
		g->ram[i] = ram[i];
		tree_raise(&g->max_ram[i], ram[i]);
	}
}

/* Adds bytes to a sum that is -1 until something is known. */
static void add_bytes(int64_t *sum, int64_t bytes)
{
	if (bytes >= 0)
		*sum = (*sum < 0 ? 0 : *sum) + bytes;
}

static void take_look(
	struct gpu *g, struct tree *t, const struct source *s, struct track_result *r)
{
	check_clock(g);
	bool any = false;
	for (size_t i = 0; i < t->n; i++)
		t->members[i].gpu_bytes = 0;
	for (size_t i = 0; i < g->n_cards; i++) {
		struct gpu_card *c = &g->cards[i];
		/* Processes of the first list were on the card when tracking began. */
		bool before = !c->looked && g->o->started_us == 0;
		c->shown.id = s->cards[i].id;
		if (!gpu_card_look(g, c, &s->cards[i], t, before ? g->start_ms : wall_ms(g)))
			tracker_warn(r, ERR_MEMORY_TEXT ": GPU processes are not counted");
		any |= c->tree_bytes >= 0;
		if (c->tree_unknown)
			tracker_warn(r,
				"the driver does not report how much GPU memory a process has");
	}
	if (any)
		sum_ram(g, t);
	g->used_bytes = -1;
	for (size_t i = 0; i < g->n_cards; i++)
		if (g->cards[i].shown.id.mig_index < 0)
			add_bytes(&g->used_bytes, g->cards[i].used_bytes);
	tree_raise(&g->max_used_bytes, g->used_bytes);
}

/* Has the driver looked for lost cards again, unless that is due already. */
static void schedule_scan(struct gpu *g)
{
	if (g->scan_us)
		return;
	g->scan_every_us = g->scan_every_us ? 2 * g->scan_every_us : SCAN_FIRST_US;
	g->scan_every_us = clock_earlier(g->scan_every_us, SCAN_MOST_US);
	g->scan_us = boot_us(g) + g->scan_every_us;
}

/* Warns once about a card's failure, and schedules another search for the card. */
static void check_cards(struct gpu *g, struct track_result *r)
{
	bool wrong = false;
	for (size_t i = 0; i < g->n_cards; i++) {
		const struct track_card *c = &g->cards[i].shown;
		if (c->status == CARD_STATUS_OK || !gpu_shows(g, &g->cards[i]))
			continue;
		wrong |= c->status == CARD_STATUS_LOST;
		tracker_warn(r, "card %d (%s) is %s: its readings end here", c->id.index,
			c->id.uuid, card_status_names[c->status]);
	}
	if (wrong)
		schedule_scan(g);
	else
		g->scan_us = g->scan_every_us = 0;
}

/* The driver as a whole failed after it had been open. */
static void driver_failed(struct gpu *g, const struct err *e, struct track_result *r)
{
	tracker_warn(r, "%.180s", e->text);
	for (size_t i = 0; i < g->n_cards; i++) {
		struct gpu_card *c = &g->cards[i];
		struct account_scene on = account_scene(g, c);
		c->shown.status = CARD_STATUS_LOST;
		c->newest_pct = NAN;
		account_blind(&c->account, wall_ms(g), &on);
	}
	schedule_scan(g);
}

/* Takes the answer to the current job; false: there is none yet. */
static bool take_answer(struct gpu *g, struct tree *t, struct track_result *r, int64_t wait_ms)
{
	struct err e = { 0 };
	if (!g->waiting)
		return true;
	int rc = worker_result(g->worker, wait_ms, &e);
	/* An answer that arrives just now goes to the next sample. */
	if (rc == ERR_BUSY) {
		if (boot_us(g) - g->begun_us > 10 * 1000000 && g->state == GPU_OPEN)
			tracker_warn(r, "%.180s", e.text);
		return false;
	}
	g->waiting = false;
	struct source *s = worker_source(g->worker);
	if (g->job == JOB_OPEN) {
		g->state = rc == 0 && s ? GPU_OPEN : GPU_ABSENT;
		str_copy(g->note, sizeof(g->note), e.text);
	}
	if (rc && g->state == GPU_OPEN) {
		driver_failed(g, &e, r);
		return true;
	}
	if (!s || rc)
		return true;
	if (!take_cards(g, s))
		tracker_warn(r, ERR_MEMORY_TEXT ": not every card is counted");
	if (g->job == JOB_DRAIN) {
		check_clock(g);
		for (size_t i = 0; i < g->n_cards; i++) {
			const struct card_reading *card = &s->cards[i];
			gpu_card_drain(g, &g->cards[i], card, t, s->sample_period_us);
			if (card->status == CARD_STATUS_OK &&
				!reading_util_is_known(card->util_kind) &&
				gpu_shows(g, &g->cards[i]))
				tracker_warn(r,
					"the driver does not report how much a card is used");
		}
		play_samples(g, s);
	}
	if (g->job == JOB_LOOK)
		take_look(g, t, s, r);
	if (g->job == JOB_DRAIN || g->job == JOB_LOOK)
		check_cards(g, r);
	return true;
}

/* Whether the whole driver failed, so that it is not asked before the next scan. */
static bool is_down(const struct gpu *g)
{
	for (size_t i = 0; i < g->n_cards; i++)
		if (g->cards[i].shown.status != CARD_STATUS_LOST)
			return false;
	return g->n_cards > 0;
}

void gpu_look(struct gpu *g, struct tree *t, struct track_result *r)
{
	if (g->state == GPU_ABSENT || !take_answer(g, t, r, 0) || g->state != GPU_OPEN)
		return;
	int64_t now_us = boot_us(g);
	if (g->scan_us && now_us >= g->scan_us) {
		g->scan_us = 0;
		begin(g, JOB_SCAN);
		if (!take_answer(g, t, r, PATIENCE_MS))
			return;
	} else if (is_down(g)) {
		return;
	}
	if (g->drained_us < 0 || now_us - g->drained_us >= DRAIN_EVERY_US) {
		begin(g, JOB_DRAIN);
		if (!take_answer(g, t, r, PATIENCE_MS))
			return;
	}
	if (g->looked_us < 0 || now_us - g->looked_us >= LOOK_EVERY_US) {
		begin(g, JOB_LOOK);
		take_answer(g, t, r, PATIENCE_MS);
	}
}

/* The driver answered at first and not in the end. What the tree has used is then at least what
 * was seen, and if nothing was seen it is unknown, not none. */
static void fell_silent(struct gpu *g, struct track_result *r)
{
	bool touched = false;
	if (g->state != GPU_OPEN)
		return;
	for (size_t i = 0; i < g->n_cards; i++)
		touched |= g->cards[i].touched;
	if (touched) {
		tracker_warn(r, SILENT "; what was used on cards after that is not counted");
		return;
	}
	g->state = GPU_ABSENT;
	str_copy(g->note, sizeof(g->note), SILENT);
}

void gpu_stop(struct gpu *g, struct tree *t, struct track_result *r)
{
	bool silent = g->waiting && boot_us(g) - g->begun_us > LAST_PATIENCE_MS * 1000;
	if (g->state == GPU_ABSENT)
		return;
	bool answered = take_answer(g, t, r, silent ? 0 : LAST_PATIENCE_MS);
	if (answered && (g->state != GPU_OPEN || is_down(g)))
		return;
	if (answered) {
		begin(g, JOB_DRAIN);
		answered = take_answer(g, t, r, LAST_PATIENCE_MS);
	}
	if (!answered) {
		fell_silent(g, r);
		return;
	}
	/* A command that ended before the driver was open has used no card. */
	if (g->looked_us < 0) {
		begin(g, JOB_LOOK);
		take_answer(g, t, r, LAST_PATIENCE_MS);
	}
	for (size_t i = 0; i < g->n_cards; i++)
		gpu_card_flush(g, &g->cards[i]);
}

void gpu_sample(const struct gpu *g, struct track_sample *out)
{
	for (int i = 0; i < TRACK_GROUPS; i++)
		out->gpu_ram_bytes[i] = g->ram_unknown[i] ? -1 : g->ram[i];
	out->system_gpu_ram_bytes = g->used_bytes;
	out->gpu_sum_pct = sum_newest(g);
}

/* Time by state, from the ledger's only slot. */
struct times {
	double observed_ms, util_pct_ms;
	double active_ms, idle_held_ms; /* of the tree: presence */
};

static struct times times_of(const struct gpu *g, size_t card)
{
	struct times sum = { 0 };
	size_t n;
	const struct usage_sum *usage = ledger_usage_rows(&g->ledger, &n);
	for (size_t i = 0; i < n; i++) {
		if (usage[i].card != card || usage[i].state == CARD_UNOBSERVED)
			continue;
		sum.observed_ms += (double)usage[i].ms;
		sum.util_pct_ms += (double)usage[i].util_pct_ms;
	}
	const struct holding_sum *holding = ledger_holding_rows(&g->ledger, &n);
	for (size_t i = 0; i < n; i++) {
		const struct holding_sum *h = &holding[i];
		if (h->card != card || h->process % 2 != HOLDER_TREE)
			continue;
		sum.active_ms += (double)h->presence_ms[HOLDER_ACTIVE];
		/* A squatter holds memory and does nothing, even if others use the card. */
		sum.idle_held_ms += (double)(h->presence_ms[HOLDER_IDLE_HELD] +
					     h->presence_ms[HOLDER_SQUATTING]);
	}
	return sum;
}

static void fill_card(const struct gpu *g, size_t i, struct track_card *out)
{
	const struct gpu_card *c = &g->cards[i];
	struct times times = times_of(g, i);
	*out = c->shown;
	out->max_tree_bytes = c->listed && !c->tree_unknown ? c->shown.max_tree_bytes : -1;
	if (times.observed_ms > 0)
		out->mean_util_pct = times.util_pct_ms / times.observed_ms;
	out->max_util_pct = times.observed_ms > 0
				    ? tracker_max(c->shown.max_util_pct, out->mean_util_pct)
				    : NAN;
	if (c->tree_known_s > 0)
		out->mean_tree_pct = c->tree_pct_s / c->tree_known_s;
	/* If the tree held memory while the use was unknown, both times are unknown. */
	bool unseen = times.observed_ms <= 0 && out->max_tree_bytes != 0;
	out->active_s = unseen ? NAN : times.active_ms / 1e3;
	out->idle_held_s = unseen ? NAN : times.idle_held_ms / 1e3;
}

void gpu_fill_none(struct track_result *r)
{
	r->gpu_known = false;
	r->gpu_count = r->expected_gpus = 0;
	r->gpu_capacity_bytes = r->gpu_system_max_bytes = r->gpu_context_bytes = -1;
	for (int k = 0; k < TRACK_GROUPS; k++)
		r->gpu_ram[k] = -1;
	r->gpu_util = (struct track_cpu){ NAN, NAN };
	r->gpu_active_s = r->gpu_idle_held_s = NAN;
	r->energy_j = r->tree_energy_j = NAN;
	r->n_cards = 0;
}

void gpu_fill(struct gpu *g, struct track_result *r)
{
	gpu_fill_none(r);
	r->gpu_awaited = g->state == GPU_OPENING;
	str_copy(r->gpu_note, sizeof(r->gpu_note),
		r->gpu_awaited ? "the driver had not answered before the end" : g->note);
	if (g->state != GPU_OPEN || !array_resize(&r->cards, g->n_cards + 1))
		return;
	r->gpu_known = true;
	r->gpu_active_s = r->gpu_idle_held_s = 0;
	r->gpu_count = (int64_t)g->n_cards;
	for (size_t i = 0; i < g->n_cards; i++) {
		const struct gpu_card *c = &g->cards[i];
		/* The host's capacity includes cards that are not in the result. */
		if (c->shown.id.mig_index < 0)
			add_bytes(&r->gpu_capacity_bytes, c->shown.id.mem_total_bytes);
		if (!gpu_shows(g, c))
			continue;
		struct track_card *card = &r->cards[r->n_cards++];
		fill_card(g, i, card);
		r->expected_gpus += gpu_counts(g, c);
		/* The sum is unknown if one card is unknown. A card counts if it had a process
		 * list or is OK at the end. */
		if (c->listed || card->status == CARD_STATUS_OK) {
			r->gpu_active_s += card->active_s;
			r->gpu_idle_held_s += card->idle_held_s;
		}
		add_known(&r->energy_j, card->energy_j);
		add_known(&r->tree_energy_j, card->tree_energy_j);
		if (gpu_counts(g, c))
			add_known(&r->gpu_util.mean_sum_pct, card->mean_util_pct);
	}
	if (!isnan(r->gpu_util.mean_sum_pct))
		r->gpu_util.max_sum_pct = tracker_max(g->max_sum_pct, r->gpu_util.mean_sum_pct);
	/* The groups' peaks are unknown when a card or a process did not report its memory. */
	bool silent = false;
	for (size_t i = 0; i < g->n_cards; i++)
		silent |= g->cards[i].looked && !g->cards[i].listed &&
			  g->cards[i].shown.status == CARD_STATUS_OK &&
			  gpu_shows(g, &g->cards[i]);
	for (int k = 0; k < TRACK_GROUPS; k++)
		r->gpu_ram[k] = silent || g->ram_unknown[k] ? -1 : g->max_ram[k];
	r->gpu_context_bytes = r->gpu_ram[TRACK_COMBINED] < 0 ? -1 : g->context_bytes;
	r->gpu_system_max_bytes = g->max_used_bytes;
}
