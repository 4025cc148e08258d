/* Random lives on a card, seen at glances only, against what was true: the error is no more
 * than what is said to be unsure. */
#include "watch_fixture.h"

#include <math.h>
#include <stdio.h>

enum { LIVES = 60, LENGTH_MS = 600000 };

/* A process: it loads, and has all of its memory a while later. */
struct truth_life {
	int64_t from_ms, loaded_ms, to_ms;
	int64_t first_bytes, mem_bytes;
};

struct truth {
	uint64_t seed;
	struct truth_life lives[LIVES];
	struct card_process list[LIVES];
	int64_t usage_ms[CARD_STATES];
	int64_t life_ms[LIVES];
	int64_t edges; /* how many there were to be unsure about */
};

static int64_t between(struct truth *t, int64_t lo, int64_t hi)
{
	t->seed = t->seed * 6364136223846793005u + 1442695040888963407u;
	return lo + (int64_t)((t->seed >> 33) % (uint64_t)(hi - lo + 1));
}

static int64_t bytes_of(const struct truth_life *l, int64_t at_ms)
{
	if (at_ms < l->from_ms || at_ms >= l->to_ms)
		return 0;
	return at_ms < l->loaded_ms ? l->first_bytes : l->mem_bytes;
}

/* Longer than two glances, so that each is seen. */
static void make_lives(struct truth *t)
{
	for (int i = 0; i < LIVES; i++) {
		struct truth_life *l = &t->lives[i];
		l->from_ms = between(t, 1500, LENGTH_MS - 30000);
		l->to_ms = l->from_ms + between(t, 3000, 25000);
		l->loaded_ms = l->from_ms + between(t, 0, 4000);
		l->first_bytes = between(t, 20, 400) * MB;
		l->mem_bytes = between(t, 0, 3) ? between(t, 50, 300) * MB : l->first_bytes;
		t->edges += 2;
	}
}

static double use_at(int64_t at_ms)
{
	return at_ms / 7000 % 3 == 0 ? 90 : 0;
}

/* What the driver would say now. */
static void read_card(struct truth *t, struct fixture *f, int64_t at_ms)
{
	f->card.processes = t->list;
	f->card.n_processes = 0;
	f->card.mem_used_bytes = 3 * MB;
	for (uint32_t i = 0; i < LIVES; i++) {
		int64_t bytes = bytes_of(&t->lives[i], at_ms);
		if (!bytes)
			continue;
		f->card.mem_used_bytes += bytes;
		t->list[f->card.n_processes++] =
			(struct card_process){ 100 + i, PROCESS_COMPUTE, bytes };
	}
}

/* As a pidfd reports: which processes have ended since the last glance, and when. */
static void notice_exits(struct truth *t, struct fixture *f, int64_t from_ms, int64_t to_ms)
{
	for (uint32_t i = 0; i < LIVES; i++) {
		int64_t end_ms = T0 + t->lives[i].to_ms;
		struct look_window ends = { .lo_ms = end_ms, .hi_ms = end_ms };
		if (end_ms <= T0 + from_ms || end_ms > T0 + to_ms)
			continue;
		struct holders *h = &f->watch.cards[0].holders;
		for (size_t k = 0; k < h->n; k++)
			if (f->watch.lives.entries[h->items[k].process].id.pid == 100 + i)
				holders_exit(h, h->items[k].process, &ends);
		round_want(f->round, 0);
	}
}

/* Glances about a second apart, a drain every five, a look at all every thirty. */
static void play(struct truth *t, struct fixture *f)
{
	int64_t drained_ms = -5000, ticked_ms = -30000, before_ms = 0, next_ms = 0;
	for (int64_t now_ms = 0; now_ms < LENGTH_MS; now_ms = next_ms) {
		f->round->drain = now_ms - drained_ms >= 5000;
		f->round->look_all = now_ms - ticked_ms >= 30000;
		f->card.n_samples = 0;
		for (; f->round->drain && f->sampled_ms <= now_ms; f->sampled_ms += 200)
			f->samples[f->card.n_samples++] =
				(struct util_sample){ (T0 + f->sampled_ms) * 1000,
					use_at(f->sampled_ms - 200) };
		notice_exits(t, f, before_ms, now_ms);
		before_ms = now_ms;
		read_card(t, f, now_ms);
		make_round(f, now_ms);
		drained_ms = f->round->drain ? now_ms : drained_ms;
		ticked_ms = f->round->look_all ? now_ms : ticked_ms;
		next_ms = now_ms + between(t, 800, 1200);
	}
	watch_flush(&f->watch, T0 + f->sampled_ms - 200);
}

static void find_truth(struct truth *t, int64_t end_ms)
{
	static const struct rules rules = RULES_DEFAULT;
	for (int64_t at_ms = 0; at_ms < end_ms; at_ms++) {
		struct held held = { 0 };
		for (int i = 0; i < LIVES; i++) {
			int64_t bytes = bytes_of(&t->lives[i], at_ms);
			held.bytes += bytes;
			held.n += bytes > 0;
			t->life_ms[i] += bytes > 0;
		}
		t->usage_ms[classify_card(use_at(at_ms - at_ms % 200), held, &rules)]++;
	}
}

static int64_t sum_unsure(const struct fixture *f)
{
	size_t n = 0;
	int64_t ms = 0, ms2 = 0;
	const struct usage_sum *rows = ledger_usage_rows(&f->watch.ledger, &n);
	for (size_t i = 0; i < n; i++) {
		ms += rows[i].unsure_ms;
		ms2 += rows[i].unsure_ms2;
	}
	return ms + llround(sqrt((double)ms2));
}

static void compare(const struct truth *t, const struct fixture *f)
{
	int64_t unsure_ms = sum_unsure(f);
	assert_int_equal(sum_ms(f, CARD_UNOBSERVED), 0);
	assert_int_equal(sum_ms(f, CARD_ACTIVE), t->usage_ms[CARD_ACTIVE]);
	int64_t held_off = llabs(sum_ms(f, CARD_IDLE_HELD) - t->usage_ms[CARD_IDLE_HELD]);
	assert_in_range(held_off, 0, unsure_ms);
	/* Half a glance for each edge is the most that can be unsure. */
	assert_in_range(unsure_ms, 1, t->edges * 600);
	for (int i = 0; i < LIVES; i++) {
		char user[32];
		snprintf(user, sizeof(user), "user%d", 100 + i);
		assert_in_range(llabs(presence_ms(f, user) - t->life_ms[i]), 0, 600);
	}
}

static void test_lives_seen_at_glances(void **state)
{
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct truth *t = calloc(1, sizeof(*t));
		watch_setup(state);
		t->seed = seed;
		make_lives(t);
		play(t, *state);
		find_truth(t, ((struct fixture *)*state)->sampled_ms - 200);
		compare(t, *state);
		watch_teardown(state);
		free(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_lives_seen_at_glances) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
