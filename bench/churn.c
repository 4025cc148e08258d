/* Drives a store as a recorder does beside a loop that starts processes: PER_SECOND of them,
 * each on one of eight cards for LIFE_S seconds, beside one long holder of another user. Ticks
 * and compaction are those of the recorder. Prints one line a day: day, bytes of the file, rows
 * of `process`, CPU seconds so far.
 *
 * usage: churn STORE DAYS PER_SECOND LIFE_S */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <sqlite3.h>

#include "base/array.h"
#include "base/str.h"
#include "classify/ledger.h"
#include "store/store.h"

enum { CARDS = 8, TICK_S = 30, DAY_S = 86400 };
#define START_S INT64_C(1793491200)

struct churn {
	struct store *store;
	struct ledger ledger;
	struct card_entry cards[CARDS];
	struct process_entry *lives; /* the first is the long holder */
	struct holder_now *holders;
	size_t n, cap, cap_holders;
	int64_t born;
	int64_t per_second, life_s;
};

static void check(int code, const struct err *e)
{
	if (code == 0)
		return;
	fprintf(stderr, "churn: %s\n", e->text);
	exit(1);
}

static void add_life(struct churn *c, const char *user, int64_t at_s)
{
	if (!array_reserve(&c->lives, &c->cap, c->n + 1))
		abort();
	struct process_entry *p = &c->lives[c->n++];
	*p = (struct process_entry){ .first_seen_ms = at_s * 1000,
		.last_seen_ms = at_s * 1000,
		.last_active_ms = at_s * 1000,
		.ended_ms = -1,
		.dirty = true };
	p->id.pid = 1000 + (uint32_t)(c->born++ % 4000000);
	p->id.start_ticks = (uint64_t)(at_s - START_S + 1) * 100;
	p->id.started_ms = at_s * 1000;
	p->id.uid = p->id.owner_uid = 1000;
	str_copy(p->id.user, sizeof(p->id.user), user);
	str_copy(p->id.command, sizeof(p->id.command), "python3 step.py");
}

/* A second of all lives; each has its own card for as long as it lives. */
static void account(struct churn *c, int64_t at_s)
{
	for (size_t i = 0; i < c->n; i++) {
		struct process_entry *p = &c->lives[i];
		if (p->ended_ms >= 0)
			continue;
		struct holding_sum *h = ledger_holding(&c->ledger,
			ledger_slot(&c->ledger, at_s * 1000), p->id.pid % CARDS, (uint32_t)i);
		if (!h)
			abort();
		h->ms[HOLDER_ACTIVE] += 1000;
		h->presence_ms[HOLDER_ACTIVE] += 1000 / c->per_second;
		h->mem_peak_kib = 500000;
		if (i > 0 && at_s + 1 >= p->first_seen_ms / 1000 + c->life_s) {
			p->ended_ms = p->last_seen_ms = p->last_active_ms = (at_s + 1) * 1000;
			p->dirty = true;
		}
	}
	for (uint32_t card = 0; card < CARDS; card++)
		ledger_usage(
			&c->ledger, ledger_slot(&c->ledger, at_s * 1000), card, CARD_ACTIVE)
			->ms += 1000;
}

static size_t list_holders(struct churn *c)
{
	size_t n = 0;
	if (!array_reserve(&c->holders, &c->cap_holders, c->n))
		abort();
	for (size_t i = 0; i < c->n; i++)
		if (c->lives[i].ended_ms < 0)
			c->holders[n++] = (struct holder_now){ c->lives[i].id.pid % CARDS,
				(uint32_t)i, PROCESS_COMPUTE, 500000 * 1024LL,
				c->lives[i].first_seen_ms, -1 };
	return n;
}

static void tick(struct churn *c, int64_t now_s)
{
	struct err e = { 0 };
	bool more;
	struct tick t = { .at_ms = now_s * 1000,
		.cards = c->cards,
		.n_cards = CARDS,
		.processes = c->lives,
		.n_processes = c->n };
	t.n_holders = list_holders(c);
	t.holders = c->holders;
	t.usage = ledger_usage_rows(&c->ledger, &t.n_usage);
	t.holding = ledger_holding_rows(&c->ledger, &t.n_holding);
	check(write_tick(c->store, &t, &e), &e);
	ledger_clear(&c->ledger);
	size_t n = 0;
	for (size_t i = 0; i < c->n; i++)
		if (c->lives[i].ended_ms < 0)
			c->lives[n++] = c->lives[i];
	c->n = n;
	const struct compaction now = { now_s * 1000, RETENTION_DEFAULT, 10 };
	check(compact_store(c->store, &now, &more, &e), &e);
}

static void begin(struct churn *c, const char *path)
{
	struct err e = { 0 };
	struct run_info info = { .hostname = "lab",
		.environment = "bare",
		.boot_id = "4f1c2d3e-0000-4000-8000-000000000001",
		.source = "nvml",
		.started_ms = START_S * 1000,
		.interval_ms = TICK_S * 1000,
		.drain_ms = 5000,
		.rules = RULES_DEFAULT };
	check(ledger_init(&c->ledger, &e), &e);
	check(store_open(&c->store, path, &e), &e);
	check(store_begin_run(c->store, &info, &e), &e);
	for (int i = 0; i < CARDS; i++) {
		struct card_entry *card = &c->cards[i];
		*card = (struct card_entry){ .first_seen_ms = START_S * 1000, .dirty = true };
		card->id = (struct card_id){ .name = "NVIDIA H100 80GB HBM3",
			.index = i,
			.mig_index = -1,
			.gpu_instance = -1,
			.compute_instance = -1,
			.mem_total_bytes = UNKNOWN_BYTES };
		snprintf(card->id.uuid, sizeof(card->id.uuid), "GPU-%d", i);
	}
	add_life(c, "ann", START_S);
}

static void say_day(struct churn *c, const char *path, int64_t day)
{
	struct stat st = { 0 };
	sqlite3_stmt *q = NULL;
	sqlite3_prepare_v2(
		store_handle(c->store), "SELECT count(*) FROM process", -1, &q, NULL);
	int64_t rows = sqlite3_step(q) == SQLITE_ROW ? sqlite3_column_int64(q, 0) : -1;
	sqlite3_finalize(q);
	stat(path, &st);
	printf("%lld %lld %lld %.0f\n", (long long)day, (long long)st.st_size, (long long)rows,
		(double)clock() / CLOCKS_PER_SEC);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static struct churn c;
	if (argc != 5)
		return 2;
	int64_t days = atoll(argv[2]);
	c.per_second = atoll(argv[3]);
	c.life_s = atoll(argv[4]);
	if (c.per_second < 1 || c.life_s < 1)
		return 2;
	begin(&c, argv[1]);
	for (int64_t now_s = START_S; now_s < START_S + days * DAY_S; now_s++) {
		for (int64_t i = 0; i < c.per_second; i++)
			add_life(&c, "bob", now_s);
		account(&c, now_s);
		if ((now_s + 1) % TICK_S == 0)
			tick(&c, now_s + 1);
		if ((now_s + 1) % DAY_S == 0)
			say_day(&c, argv[1], (now_s + 1 - START_S) / DAY_S);
	}
	store_close(c.store);
	ledger_finish(&c.ledger);
	free(c.lives);
	free(c.holders);
	return 0;
}
