/* Plays histories of leases to the recorder's watch, and writes its ticks to a store. Usage:
 * lease_play STORE <SCRIPT. Each line is a verb and its words; moments are unix milliseconds:
 *   process CARD PID USER JOB MEM_MB    is on the card from the next begin on; JOB "-": none
 *   alone                               no process is on a card any more
 *   lease KIND ID OWNER SINCE UNTIL UNKNOWN CARD,... SHARE SLUID    the scheduler says this, or
 * says it anew gone KIND ID begin T     a recorder starts drain T PCT PCT PCT    use of each
 * card since the drain before tick, stop, kill, compact T The cards are GPU-a, and MIG-0 and
 * MIG-1 of GPU-b. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "record/watch.h"
#include "record/watch_leases.h"
#include "store/store.h"

enum { CARDS = 3, PROCESSES = 4, LEASES = 32, SAMPLES = 64, PERIOD_MS = 200 };

struct played {
	uint32_t pid;
	char user[32], job[32];
};

struct play {
	struct source source;
	struct card_reading cards[CARDS];
	struct card_process processes[CARDS][PROCESSES];
	struct util_sample samples[CARDS][SAMPLES];
	struct played known[CARDS * PROCESSES];
	size_t n_known;
	struct lease leases[LEASES];
	struct lease_card lease_cards[LEASES][CARDS];
	size_t n_leases;
	uint64_t generation;
	struct clock clock;
	struct round *round;
	struct watch watch;
	struct store *store;
	int64_t drained_ms;
	bool running;
};

static void check(int rc, const struct err *e)
{
	if (rc == 0)
		return;
	fprintf(stderr, "lease_play: %s\n", e->text);
	exit(1);
}

static bool describe(struct source *s, uint32_t pid, struct process_id *id)
{
	const struct play *p = (const struct play *)s; /* its first member */
	for (size_t i = 0; i < p->n_known; i++)
		if (p->known[i].pid == pid) {
			id->start_ticks = pid;
			id->started_ms = 1000;
			snprintf(id->user, sizeof(id->user), "%s", p->known[i].user);
			snprintf(id->job, sizeof(id->job), "%s", p->known[i].job);
			return true;
		}
	return false;
}

static int nothing(struct source *s, struct err *e)
{
	(void)s;
	(void)e;
	return 0;
}

static int glance_nothing(struct source *s, unsigned what, struct err *e)
{
	(void)what;
	return nothing(s, e);
}

static int look_nothing(struct source *s, const bool *which, struct err *e)
{
	(void)which;
	return nothing(s, e);
}

static const struct source_ops ops = { .name = "sim",
	.describe = describe,
	.scan = nothing,
	.drain = look_nothing,
	.glance = glance_nothing,
	.look = look_nothing };

static void set_up(struct play *p)
{
	static const char *const uuids[CARDS] = { "GPU-a", "MIG-0", "MIG-1" };
	p->source = (struct source){ .ops = &ops,
		.cards = p->cards,
		.n_cards = CARDS,
		.sample_period_us = PERIOD_MS * 1000 };
	for (int i = 0; i < CARDS; i++) {
		struct card_reading *r = &p->cards[i];
		*r = (struct card_reading){ .id = { .index = i > 0,
						    .mig_index = i - 1,
						    .gpu_instance = -1,
						    .compute_instance = -1,
						    .mem_total_bytes = 24000000000 },
			.own_processes = true,
			.util_kind = UTIL_RING,
			.samples = p->samples[i],
			.processes = p->processes[i],
			.processes_known = true,
			.sm_active_pct = NAN,
			.energy_mj = NAN };
		snprintf(r->id.uuid, UUID_CAP, "%s", uuids[i]);
		snprintf(r->id.parent_uuid, UUID_CAP, "%s", i ? "GPU-b" : "");
	}
}

static struct card_past card_past(void *context, struct card_id *id)
{
	return store_card_past(context, id);
}

/* Puts the leases together as a reader of their directory does. */
static void take_leases(struct play *p, int64_t now_ms)
{
	struct lease_card cards[LEASES * CARDS];
	struct leases all = { .v = p->leases,
		.n = p->n_leases,
		.cards = cards,
		.has_source = true,
		.generation = p->generation };
	struct err e = { 0 };
	for (size_t i = 0; i < p->n_leases; i++) {
		p->leases[i].first_card = all.n_cards;
		for (size_t k = 0; k < p->leases[i].n_cards; k++)
			cards[all.n_cards++] = p->lease_cards[i][k];
	}
	check(watch_leases_take(&p->watch, &all, now_ms, &e), &e);
}

/* Accounts everything up to now: the newest sample does not wait. */
static void drain(struct play *p, int64_t now_ms)
{
	struct err e = { 0 };
	p->round->drain = p->round->look_all = true;
	check(round_run(&p->source, p->round, &e), &e);
	p->round->begun_ms = p->round->ended_ms = now_ms;
	check(watch_cards(&p->watch, &p->source, now_ms,
		      &(struct watch_past){ card_past, p->store }, &e),
		&e);
	take_leases(p, now_ms);
	check(watch_round(&p->watch, &p->source, p->round, &e), &e);
	for (size_t i = 0; i < CARDS; i++) {
		struct account *account = &p->watch.cards[i].account;
		struct account_scene on = watch_scene(&p->watch, i);
		if (account->holds)
			account_flush(account, account->held.at_ms, &on);
	}
	p->drained_ms = now_ms;
}

static void begin(struct play *p, int64_t now_ms)
{
	static const struct rules rules = RULES_DEFAULT;
	struct err e = { 0 };
	struct run_info info = { .hostname = "host",
		.machine_id = "m",
		.environment = "bare",
		.boot_id = "boot",
		.source = "nvml",
		.started_ms = now_ms,
		.interval_ms = 30000,
		.drain_ms = 5000,
		.rules = rules };
	const struct watch_options o = { .rules = &rules,
		.pace = { .drain_ms = 5000, .stall_ms = 60000 } };
	clock_init_virtual(&p->clock, now_ms);
	check(round_new(&p->round, &p->clock, &e), &e);
	check(watch_init(&p->watch, &o, &e), &e);
	check(store_begin_run(p->store, &info, &e), &e);
	for (size_t i = 0; i < CARDS; i++)
		p->cards[i].n_samples = 0;
	p->running = true;
	drain(p, now_ms);
}

static void tick(struct play *p)
{
	struct err e = { 0 };
	struct tick t;
	check(watch_tick(&p->watch, &t, p->drained_ms, &e), &e);
	check(write_tick(p->store, &t, &e), &e);
	watch_stored(&p->watch);
}

static void end(struct play *p, bool gracefully)
{
	struct err e = { 0 };
	if (!p->running)
		return;
	if (gracefully) {
		watch_leases_close(&p->watch);
		tick(p);
		check(store_end_run(p->store, p->drained_ms, "stopped", &e), &e);
	}
	watch_finish(&p->watch);
	round_free(p->round);
	clock_finish(&p->clock);
	p->running = false;
}

static void take_samples(struct play *p, int64_t now_ms, const double pct[CARDS])
{
	for (size_t i = 0; i < CARDS; i++) {
		size_t *n = &p->cards[i].n_samples;
		*n = 0;
		for (int64_t at = p->drained_ms + PERIOD_MS; at <= now_ms && *n < SAMPLES;
			at += PERIOD_MS)
			p->samples[i][(*n)++] = (struct util_sample){ at * 1000, pct[i] };
	}
	drain(p, now_ms);
}

static size_t find(const struct play *p, int kind, const char *id)
{
	size_t i = 0;
	while (i < p->n_leases &&
		((int)p->leases[i].kind != kind || strcmp(p->leases[i].id, id) != 0))
		i++;
	return i;
}

static void put_lease(struct play *p, const char *words)
{
	char kind[16], cards[64];
	struct lease l = { .uid = -1 };
	long long since, until, unknown;
	if (sscanf(words, "%15s %63s %63s %lld %lld %lld %63s %u %63s", kind, l.id, l.owner,
		    &since, &until, &unknown, cards, &l.share, l.sluid) != 9)
		exit(2);
	if (strcmp(l.sluid, "-") == 0)
		l.sluid[0] = '\0';
	l.kind = (enum lease_kind)str_place(lease_kind_names, LEASE_KINDS, kind);
	l.since_ms = since;
	l.until_ms = until;
	l.unknown_since_ms = unknown;
	size_t at = find(p, (int)l.kind, l.id);
	if (at == p->n_leases && p->n_leases++ == LEASES)
		exit(2);
	for (char *save, *card = strtok_r(cards, ",", &save); card && l.n_cards < CARDS;
		card = strtok_r(NULL, ",", &save))
		snprintf(p->lease_cards[at][l.n_cards++].uuid, UUID_CAP, "%s", card);
	p->leases[at] = l;
	p->generation++;
}

static void drop_lease(struct play *p, const char *words)
{
	char kind[16], id[64];
	if (sscanf(words, "%15s %63s", kind, id) != 2)
		exit(2);
	size_t at = find(p, str_place(lease_kind_names, LEASE_KINDS, kind), id);
	if (at == p->n_leases)
		exit(2);
	p->n_leases--;
	memmove(&p->leases[at], &p->leases[at + 1], (p->n_leases - at) * sizeof(*p->leases));
	memmove(&p->lease_cards[at], &p->lease_cards[at + 1],
		(p->n_leases - at) * sizeof(*p->lease_cards));
	p->generation++;
}

static void put_process(struct play *p, const char *words)
{
	int card, mem_mb;
	struct played *k = &p->known[p->n_known++];
	if (p->n_known > CARDS * PROCESSES || sscanf(words, "%d %u %31s %31s %d", &card,
						      &k->pid, k->user, k->job, &mem_mb) != 5)
		exit(2);
	if (strcmp(k->job, "-") == 0)
		k->job[0] = '\0';
	struct card_reading *r = &p->cards[card];
	p->processes[card][r->n_processes++] =
		(struct card_process){ k->pid, PROCESS_COMPUTE, mem_mb * 1000000LL };
	r->mem_used_bytes += mem_mb * 1000000LL;
}

static void compact(struct play *p, int64_t now_ms)
{
	struct compaction c = { now_ms, RETENTION_DEFAULT, 1000000 };
	struct err e = { 0 };
	bool more = true;
	while (more)
		check(compact_store(p->store, &c, &more, &e), &e);
}

static void run(struct play *p, const char *verb, const char *words)
{
	double pct[CARDS];
	long long at = 0;
	int n = sscanf(words, "%lld %lf %lf %lf", &at, &pct[0], &pct[1], &pct[2]);
	if (strcmp(verb, "drain") == 0 && n == 4)
		take_samples(p, at, pct);
	else if (strcmp(verb, "lease") == 0)
		put_lease(p, words);
	else if (strcmp(verb, "gone") == 0)
		drop_lease(p, words);
	else if (strcmp(verb, "process") == 0)
		put_process(p, words);
	else if (strcmp(verb, "begin") == 0)
		begin(p, at);
	else if (strcmp(verb, "tick") == 0)
		tick(p);
	else if (strcmp(verb, "compact") == 0)
		compact(p, at);
	else if (strcmp(verb, "alone") == 0) {
		p->n_known = 0;
		for (size_t i = 0; i < CARDS; i++)
			p->cards[i].n_processes = 0, p->cards[i].mem_used_bytes = 0;
	} else
		end(p, strcmp(verb, "stop") == 0);
}

int main(int argc, char **argv)
{
	struct play *p = calloc(1, sizeof(*p));
	struct err e = { 0 };
	char line[512], verb[16];
	int at = 0;
	if (!p || argc != 2)
		return 2;
	set_up(p);
	check(store_open(&p->store, argv[1], &e), &e);
	while (fgets(line, sizeof(line), stdin) && sscanf(line, "%15s %n", verb, &at) == 1)
		run(p, verb, line + at);
	end(p, true);
	store_close(p->store);
	free(p);
	return 0;
}
