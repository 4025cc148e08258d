/* Makes the store that a recorder would have after a year: 12 cards or as many as asked,
 * about 1.5 holders each, some sixty process lives a day of minutes to days and the idle spells
 * of notebooks, through the store's own interface and compacted as it would have been.
 *
 * usage: year STORE END_UNIX_SECONDS DAYS [CARDS] */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "classify/ledger.h"
#include "store/store.h"

enum {
	CARDS = 16,   /* at most */
	MAX_JOBS = 6, /* on a card */
	TICK_S = 30,
	FLUSH_S = 3600,
	SLACK_S = 7200, /* how far from an edge of retention data is left fine */
};

/* A process on a card. */
struct job {
	int64_t end_s;
	uint32_t process; /* place in lab.lives */
	int64_t mem_kib;
	bool busy;	   /* computes most of the time; else a notebook left open */
	struct spell idle; /* its idle stretch; begin_ms 0: none */
};

struct lab {
	int n_cards;
	uint64_t random;
	struct store *store;
	struct ledger ledger;
	struct card_entry cards[CARDS];
	struct job jobs[CARDS][MAX_JOBS];
	int n_jobs[CARDS];
	bool changed[CARDS]; /* somebody came or went, at a moment that is not known exactly */
	struct process_entry *lives; /* those that are alive; ended ones go after a flush */
	size_t n_lives, cap_lives, born;
	struct spell *spells; /* that ended since the last flush, and those that go on */
	size_t n_spells, cap_spells;
	int64_t end_s;
};

/* xorshift64*: the same year every time. */
static double chance(struct lab *lab)
{
	lab->random ^= lab->random >> 12;
	lab->random ^= lab->random << 25;
	lab->random ^= lab->random >> 27;
	return (double)((lab->random * 0x2545f4914f6cdd1dULL) >> 11) / 9007199254740992.0;
}

static void fail(const struct err *e)
{
	fprintf(stderr, "year: %s\n", e->text);
	exit(1);
}

static void add_spell(struct lab *lab, const struct job *job, enum spell_end how)
{
	if (lab->n_spells == lab->cap_spells) {
		lab->cap_spells = lab->cap_spells ? 2 * lab->cap_spells : 256;
		lab->spells = realloc(lab->spells, lab->cap_spells * sizeof(lab->spells[0]));
		if (!lab->spells)
			abort();
	}
	struct spell *s = &lab->spells[lab->n_spells++];
	*s = job->idle;
	s->process = job->process;
	s->how = how;
}

/* Ends the idle stretch of a job, which is a spell if it is long enough. */
static void end_idle(struct lab *lab, struct job *job, enum spell_end how)
{
	const struct rules rules = RULES_DEFAULT;
	if (job->idle.begin_ms && spell_idle_ms(&job->idle) >= rules.spell_ms)
		add_spell(lab, job, how);
	job->idle = (struct spell){ 0 };
}

/* A notebook that did nothing in this tick; `card_busy`: somebody else computed. */
static void stay_idle(
	struct lab *lab, uint32_t card, struct job *job, bool card_busy, int64_t now_s)
{
	struct spell *s = &job->idle;
	if (!s->begin_ms)
		*s = (struct spell){ .card = card,
			.begin_ms = now_s * 1000 + now_s % 997,
			.end_ms = now_s * 1000 + now_s % 997,
			.mem_peak_kib = job->mem_kib,
			.stored_end_ms = -1 };
	s->end_ms += TICK_S * 1000;
	*(card_busy ? &s->squatting_ms : &s->idle_held_ms) += TICK_S * 1000;
	s->energy_mj += card_busy ? 0 : TICK_S * 71000 / lab->n_jobs[card] + now_s % 89;
}

static uint32_t add_life(struct lab *lab, int64_t now_s)
{
	static const char *const users[] = { "ann", "bob", "chen", "dora", "emil", "fay", "gus",
		"hana", "ivan", "jo", "kim", "lea" };
	static const char *const commands[] = { "python3 train.py",
		"python3 ipykernel_launcher", "python3 serve.py", "julia fit.jl", "gmx mdrun" };
	if (lab->n_lives == lab->cap_lives) {
		lab->cap_lives = lab->cap_lives ? 2 * lab->cap_lives : 256;
		lab->lives = realloc(lab->lives, lab->cap_lives * sizeof(lab->lives[0]));
		if (!lab->lives)
			abort();
	}
	struct process_entry *p = &lab->lives[lab->n_lives];
	*p = (struct process_entry){ .first_seen_ms = now_s * 1000,
		.last_active_ms = -1,
		.ended_ms = -1,
		.dirty = true };
	p->id.pid = 1000 + (uint32_t)(chance(lab) * 4e6);
	p->id.start_ticks = (uint64_t)now_s;
	p->id.started_ms = now_s * 1000 - 5000;
	p->id.uid = 1000 + (int64_t)(chance(lab) * 12);
	str_copy(p->id.user, sizeof(p->id.user), users[p->id.uid - 1000]);
	str_copy(p->id.command, sizeof(p->id.command), commands[(int)(chance(lab) * 5)]);
	lab->born++;
	return (uint32_t)lab->n_lives++;
}

static void start_and_end(struct lab *lab, int card, int64_t now_s)
{
	struct job *jobs = lab->jobs[card];
	for (int i = 0; i < lab->n_jobs[card];) {
		if (jobs[i].end_s > now_s) {
			i++;
			continue;
		}
		end_idle(lab, &jobs[i], SPELL_EXITED);
		lab->lives[jobs[i].process].ended_ms = now_s * 1000;
		lab->lives[jobs[i].process].dirty = true;
		jobs[i] = jobs[--lab->n_jobs[card]];
		lab->changed[card] = true;
	}
	/* 1.5 holders on average, when a life takes 7.5 hours on average. */
	if (lab->n_jobs[card] == MAX_JOBS || chance(lab) > 1.5 * TICK_S / (7.5 * 3600))
		return;
	lab->changed[card] = true;
	double minutes = 5;
	for (double x = chance(lab) * 9.17; x > 0; x -= 1) /* 5 minutes to 2 days, by ratio */
		minutes *= x >= 1 ? 2 : 1 + x;
	jobs[lab->n_jobs[card]++] = (struct job){ .end_s = now_s + (int64_t)(minutes * 60),
		.process = add_life(lab, now_s),
		.mem_kib = 500000 + (int64_t)(chance(lab) * 7e7),
		.busy = chance(lab) < 0.5 };
}

/* The slot in which compaction has put, or will put, that moment. */
static int64_t slot_for(const struct lab *lab, int64_t now_s)
{
	const struct retention keep = RETENTION_DEFAULT;
	int64_t age = lab->end_s - now_s - SLACK_S;
	int64_t seconds = age > keep.five_s ? 900 : age > keep.minute_s ? 300 : SLOT_SECONDS;
	return now_s - now_s % seconds;
}

static void account_job(struct lab *lab, uint32_t card, const struct job *job, int64_t slot,
	int64_t ms, enum card_state state, int64_t now_s)
{
	struct process_entry *p = &lab->lives[job->process];
	enum holder_state own = state == CARD_ACTIVE && !job->busy ? HOLDER_SQUATTING
								   : (enum holder_state)state;
	struct holding_sum *sum = ledger_holding(&lab->ledger, slot, card, job->process);
	if (!sum)
		abort();
	sum->ms[own] += ms;
	sum->presence_ms[own] += ms;
	*(state == CARD_ACTIVE ? &sum->active_share_ms : &sum->idle_share_ms) +=
		ms / lab->n_jobs[card];
	sum->sm_pct_ms = (sum->sm_pct_ms < 0 ? 0 : sum->sm_pct_ms) + (job->busy ? 57 * ms : 0);
	if (sum->mem_peak_kib < job->mem_kib)
		sum->mem_peak_kib = job->mem_kib;
	if (own == HOLDER_ACTIVE) {
		p->last_active_ms = now_s * 1000;
		p->dirty = true;
	}
	p->last_seen_ms = now_s * 1000;
}

/* A tick of one card: each driver sample is classified by itself, so a tick has several states.
 */
static void account_card(struct lab *lab, uint32_t card, int64_t now_s)
{
	int64_t left = TICK_S * 1000, slot = slot_for(lab, now_s);
	bool busy = false;
	for (int i = 0; i < lab->n_jobs[card]; i++)
		busy = busy || lab->jobs[card][i].busy;
	int64_t active = 0; /* an empty card has nobody who could make it active */
	if (busy)
		active = (int64_t)((double)left * (0.6 + 0.4 * chance(lab)));
	else if (lab->n_jobs[card] && chance(lab) < 0.02)
		active = 166; /* somebody runs a cell of the notebook */
	for (int i = 0; i < lab->n_jobs[card]; i++) {
		struct job *job = &lab->jobs[card][i];
		if (!job->busy && active == 166 && i == 0)
			end_idle(lab, job, SPELL_ACTIVE);
		else if (!job->busy)
			stay_idle(lab, card, job, busy, now_s);
	}
	enum card_state rest = lab->n_jobs[card] ? CARD_IDLE_HELD : CARD_TRULY_IDLE;
	const struct {
		enum card_state state;
		int64_t ms;
	} parts[] = { { CARD_ACTIVE, active }, { rest, left - active } };
	for (int k = 0; k < 2; k++) {
		if (parts[k].ms == 0)
			continue;
		struct usage_sum *sum = ledger_usage(&lab->ledger, slot, card, parts[k].state);
		if (!sum)
			abort();
		sum->ms += parts[k].ms;
		sum->util_pct_ms += parts[k].ms * (parts[k].state == CARD_ACTIVE ? 83 : 1);
		sum->energy_mj += parts[k].ms * (parts[k].state == CARD_ACTIVE ? 412 : 71);
		sum->energy_ms += parts[k].ms;
		if (parts[k].state != CARD_ACTIVE && lab->changed[card])
			sum->unsure_ms += 250 + now_s / TICK_S % 250;
		for (int i = 0; i < lab->n_jobs[card]; i++)
			account_job(lab, card, &lab->jobs[card][i], slot, parts[k].ms,
				parts[k].state, now_s);
	}
	lab->changed[card] = false;
}

/* Drops the lives that ended and were written; jobs follow their places. */
static void forget_ended(struct lab *lab)
{
	size_t n = 0;
	for (size_t i = 0; i < lab->n_lives; i++) {
		if (lab->lives[i].ended_ms >= 0)
			continue;
		for (int c = 0; c < lab->n_cards; c++)
			for (int k = 0; k < lab->n_jobs[c]; k++)
				if (lab->jobs[c][k].process == i)
					lab->jobs[c][k].process = (uint32_t)n;
		lab->lives[n++] = lab->lives[i];
	}
	lab->n_lives = n;
}

static void flush(struct lab *lab, int64_t now_s)
{
	struct err e = { 0 };
	struct holder_now holders[CARDS * MAX_JOBS];
	struct tick tick = { .at_ms = now_s * 1000,
		.cards = lab->cards,
		.n_cards = (size_t)lab->n_cards,
		.processes = lab->lives,
		.n_processes = lab->n_lives,
		.holders = holders };
	for (uint32_t c = 0; c < (uint32_t)lab->n_cards; c++) {
		lab->cards[c].last_seen_ms = now_s * 1000;
		lab->cards[c].listed = true;
		for (int i = 0; i < lab->n_jobs[c]; i++)
			if (lab->jobs[c][i].idle.begin_ms)
				add_spell(lab, &lab->jobs[c][i], SPELL_OPEN);
		for (int i = 0; i < lab->n_jobs[c]; i++)
			holders[tick.n_holders++] = (struct holder_now){ c,
				lab->jobs[c][i].process, PROCESS_COMPUTE,
				lab->jobs[c][i].mem_kib * 1024, now_s * 1000, -1 };
	}
	tick.usage = ledger_usage_rows(&lab->ledger, &tick.n_usage);
	tick.holding = ledger_holding_rows(&lab->ledger, &tick.n_holding);
	tick.spells = lab->spells;
	tick.n_spells = lab->n_spells;
	if (write_tick(lab->store, &tick, &e) != 0)
		fail(&e);
	ledger_clear(&lab->ledger);
	lab->n_spells = 0;
	forget_ended(lab);
}

static void compact(struct lab *lab, int64_t now_s)
{
	struct err e = { 0 };
	const struct compaction c = { now_s * 1000, RETENTION_DEFAULT, 1000 };
	for (bool more = true; more;)
		if (compact_store(lab->store, &c, &more, &e) != 0)
			fail(&e);
}

static void begin(struct lab *lab, const char *path, int64_t start_s)
{
	struct err e = { 0 };
	struct run_info info = { .hostname = "lab",
		.environment = "bare",
		.driver = "550.54.14",
		.boot_id = "4f1c2d3e-0000-4000-8000-000000000001",
		.source = "nvml",
		.started_ms = start_s * 1000,
		.interval_ms = TICK_S * 1000,
		.drain_ms = 5000,
		.rules = RULES_DEFAULT };
	if (ledger_init(&lab->ledger, &e) != 0 || store_open(&lab->store, path, &e) != 0 ||
		store_begin_run(lab->store, &info, &e) != 0)
		fail(&e);
	for (int c = 0; c < lab->n_cards; c++) {
		struct card_entry *card = &lab->cards[c];
		*card = (struct card_entry){ .first_seen_ms = start_s * 1000, .dirty = true };
		card->id = (struct card_id){ .name = "NVIDIA H100 80GB HBM3",
			.index = c,
			.mig_index = -1,
			.gpu_instance = -1,
			.compute_instance = -1,
			.mem_total_bytes = 85520809984 };
		snprintf(card->id.uuid, sizeof(card->id.uuid), "GPU-%08x-1111-2222-3333-%012x",
			c, c);
	}
}

int main(int argc, char **argv)
{
	static struct lab lab = { .random = 88172645463325252ULL };
	lab.n_cards = argc == 5 ? atoi(argv[4]) : 12;
	if (argc < 4 || argc > 5 || lab.n_cards < 1 || lab.n_cards > CARDS)
		return 2;
	lab.end_s = atoll(argv[2]) / 60 * 60;
	int64_t start_s = lab.end_s - atoll(argv[3]) * 86400;
	begin(&lab, argv[1], start_s);
	for (int64_t now_s = start_s; now_s < lab.end_s; now_s += TICK_S) {
		for (int c = 0; c < lab.n_cards; c++) {
			start_and_end(&lab, c, now_s);
			account_card(&lab, (uint32_t)c, now_s);
		}
		if ((now_s + TICK_S) % FLUSH_S == 0 || now_s + TICK_S >= lab.end_s)
			flush(&lab, now_s + TICK_S);
		if ((now_s + TICK_S) % 86400 == 0)
			compact(&lab, now_s);
	}
	compact(&lab, lab.end_s);
	printf("%zu\n", lab.born);
	store_close(lab.store);
	ledger_finish(&lab.ledger);
	free(lab.lives);
	free(lab.spells);
	return 0;
}
