/* Rounds that the process of a source makes itself: glances at a given pace, what makes it come
 * back early, a glance that is stuck, and answers that make no sense. */
#include "told_fixture.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/helper.h"
#include "driver/host/apart.h"
#include "driver/host/apart_site.h"
#include "driver/host/round.h"

#define SECOND 1000000LL
#define MB (1LL << 20)
enum { CARDS = 2, LONG_MS = 60000, SHORT_MS = 500 };

/* A source that lives in the helper. A test tells it what to do. */
struct toy {
	struct source base;
	struct card_reading cards[CARDS];
	struct card_process process;
	struct util_sample sample;
	const struct source_options *options;
	int64_t glances;
};

static char clock_path[64];

static int toy_scan(struct source *base, struct err *e)
{
	struct toy *t = (struct toy *)base;
	(void)e;
	for (int i = 0; i < CARDS; i++) {
		t->cards[i] = (struct card_reading){ .id = { .index = i, .mig_index = -1 },
			.source = "toy",
			.energy_mj = NAN,
			.processes_known = true,
			.mem_used_bytes = 100 * MB };
		snprintf(t->cards[i].id.uuid, sizeof(t->cards[i].id.uuid), "GPU-%d", i);
	}
	return 0;
}

static int toy_drain(struct source *base, const bool *which, struct err *e)
{
	struct toy *t = (struct toy *)base;
	(void)e;
	for (int i = 0; i < CARDS; i++) {
		if (which && !which[i])
			continue;
		t->sample = (struct util_sample){ t->glances, 50 };
		t->cards[i].samples = &t->sample;
		t->cards[i].n_samples = 1;
		t->cards[i].util_kind = UTIL_RING;
	}
	return 0;
}

static int toy_glance(struct source *base, unsigned what, struct err *e)
{
	struct toy *t = (struct toy *)base;
	struct clock *clock = t->options->clock;
	t->glances++;
	source_place_set(t->options->place, 1, "glance");
	while (is_told("hang"))
		usleep(1000);
	if (is_told("fail") && t->glances > 2)
		return err_set(e, ERR_WORLD, "the toy is broken");
	if (is_told("grow") && t->glances == 3)
		t->cards[1].mem_used_bytes += MB;
	if (is_told("lose") && t->glances == 3)
		source_lose_card(&t->cards[0], 15);
	if (is_told("step") && t->glances == 3)
		clock->virtual_time->wall_less_us += 3600 * SECOND;
	if (what & GLANCE_ENERGY)
		t->cards[0].energy_mj = (double)t->glances;
	return 0;
}

static int toy_look(struct source *base, const bool *which, struct err *e)
{
	struct toy *t = (struct toy *)base;
	(void)e;
	if (which && !which[1])
		return 0;
	t->process = (struct card_process){ .pid = 42, .kind = 1, .mem_bytes = MB };
	t->cards[1].processes = &t->process;
	t->cards[1].n_processes = 1;
	return 0;
}

static void toy_metrics(struct source *base, const struct metric_request *request,
	double *values, metric_texts texts)
{
	(void)base;
	(void)texts;
	values[METRIC_TEMPERATURE_GPU] = 40 + (double)request->card;
}

static void toy_close(struct source *base)
{
	free(base);
}

static const struct source_ops toy_ops = { .name = "toy",
	.scan = toy_scan,
	.drain = toy_drain,
	.glance = toy_glance,
	.look = toy_look,
	.metrics = toy_metrics,
	.close = toy_close };

static int toy_open(struct source **s, const struct source_options *o, struct err *e)
{
	struct toy *t = calloc(1, sizeof(*t));
	assert_non_null(t);
	t->base = (struct source){ .ops = &toy_ops, .cards = t->cards, .n_cards = CARDS };
	t->options = o;
	*s = &t->base;
	return toy_scan(&t->base, e);
}

static const struct source_kind toy_kind = {
	.name = "toy", .open = toy_open, .may_block = true
};

struct setting {
	struct clock clock;
	struct source_options options;
	struct apart *apart;
	struct source *source;
	struct round *round;
};

static void write_clock(void)
{
	const struct virtual_time start = { CLOCK_FILE_MAGIC, 1000 * SECOND, 0, 0, 0 };
	FILE *f = fopen(clock_path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(&start, sizeof(start), 1, f), 1);
	fclose(f);
}

/* A source whose cards were looked at once; a patience of its own, on a real clock or not. */
static struct setting *start(int64_t patience_ms, bool real)
{
	struct setting *t = calloc(1, sizeof(*t));
	const struct apart_manner manner = { .patience_ms = patience_ms, .turn_ms = 20 };
	struct err e = { 0 };
	assert_non_null(t);
	tell("");
	write_clock();
	assert_int_equal(clock_open(&t->clock, real ? "real" : clock_path, 0, &e), 0);
	t->options = (struct source_options){ .root = "", .clock = &t->clock };
	assert_int_equal(apart_new(&t->apart, &t->options, &manner, &e), 0);
	t->options.host = apart_host(t->apart);
	assert_int_equal(source_kind_open(&toy_kind, &t->source, &t->options, &e), 0);
	assert_int_equal(round_new(&t->round, &t->clock, &e), 0);
	t->round->look_all = true;
	assert_int_equal(round_run(t->source, t->round, &e), 0);
	assert_int_equal(round_next(t->source, t->round, &e), 1);
	assert_true(t->round->looks && t->round->glanced && !t->round->drained);
	assert_true(t->round->cards[1].looked && !t->round->cards[1].want);
	assert_int_equal(t->round->cards[1].mem_bytes, 100 * MB);
	assert_true(t->round->cards[1].temperature_c == 41);
	assert_true(isnan(t->round->cards[1].power_limit_w));
	assert_int_equal(t->source->cards[1].processes[0].pid, 42);
	assert_int_equal(round_next(t->source, t->round, &e), 0);
	return t;
}

static void finish(struct setting *t)
{
	source_close(t->source);
	apart_free(t->apart);
	round_free(t->round);
	clock_finish(&t->clock);
	free(t);
}

/* Asks for glances about `apart_us` apart, and for a drain at the end. */
static void ask(struct setting *t, int64_t apart_us, int64_t length_us)
{
	struct moment now = clock_now(&t->clock);
	struct patrol *p = &t->round->patrol;
	*p = (struct patrol){ .until_us = now.boot_us + length_us,
		.deadline_ms = LONG_MS,
		.begun_us = now.boot_us,
		.pace = { .least_us = apart_us, .most_us = apart_us } };
	round_pace_start(&p->pace, now.boot_us);
	p->pace.next_glance_us += apart_us;
	clock_watch_start(&p->clocks, &now);
	t->round->drain = true;
	t->round->look_all = false;
}

static void test_glances_and_then_a_drain(void **state)
{
	(void)state;
	struct setting *t = start(LONG_MS, false);
	struct err e = { 0 };
	ask(t, SECOND, 5 * SECOND);
	t->round->cards[1].shared = true;
	const struct patrol asked = t->round->patrol;
	struct pace pace = asked.pace;
	int glances = 0;
	assert_int_equal(round_run(t->source, t->round, &e), 0);
	for (;;) {
		assert_int_equal(round_next(t->source, t->round, &e), 1);
		struct round *r = t->round;
		assert_false(r->looks || r->scan || r->look_all);
		assert_true(r->glanced);
		assert_int_equal(r->begun_ms, r->begun_us / 1000);
		if (r->due)
			break;
		/* Each is where the pace of the owner would have had it. */
		glances++;
		assert_true(r->more && !r->drain);
		assert_int_equal(r->begun_us, pace.next_glance_us);
		assert_true(t->source->cards[0].energy_mj == glances + 1);
		assert_true(r->energy && r->energy_ms == r->begun_ms);
		assert_true(r->shared && r->cards[1].drained && !r->cards[0].drained);
		assert_int_equal(t->source->cards[1].samples[0].wall_us, glances);
		round_pace_done(&pace, r->ended_us, r, r->ended_us - r->begun_us);
	}
	assert_in_range(glances, 4, 6);
	assert_true(t->round->drain && t->round->drained && !t->round->more);
	assert_true(t->round->cards[0].drained && t->source->cards[0].n_samples == 1);
	assert_int_equal(t->round->begun_us, asked.until_us);
	assert_int_equal(round_next(t->source, t->round, &e), 0);
	finish(t);
}

/* Makes a patrol of an hour in which something happens, and returns the number of rounds. */
static int patrol(struct setting *t, const char *word, struct err *e)
{
	int rounds = 0, next;
	tell(word);
	ask(t, SECOND, 3600 * SECOND);
	assert_int_equal(round_run(t->source, t->round, e), 0);
	while ((next = round_next(t->source, t->round, e)) > 0) {
		assert_false(t->round->due);
		rounds++;
	}
	return next ? next : rounds;
}

static void test_what_changed_is_told_at_once(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct setting *t = start(LONG_MS, false);
	/* Each second one, and something happens at the second one. */
	assert_int_equal(patrol(t, "grow", &e), 2);
	assert_true(t->round->looks && t->round->cards[1].looked && !t->round->cards[0].looked);
	assert_int_equal(t->round->cards[1].mem_bytes, 101 * MB);
	finish(t);
	t = start(LONG_MS, false);
	assert_int_equal(patrol(t, "lose", &e), 2);
	assert_int_equal(t->source->cards[0].status, CARD_STATUS_LOST);
	finish(t);
	t = start(LONG_MS, false);
	assert_int_equal(patrol(t, "step", &e), 2);
	assert_int_equal(t->round->ended_ms, t->round->ended_us / 1000 + 3600 * 1000);
	finish(t);
	t = start(LONG_MS, false);
	assert_int_equal(patrol(t, "fail", &e), ERR_WORLD);
	assert_string_equal(e.text, "the toy is broken");
	assert_int_equal(round_next(t->source, t->round, &e), 0);
	finish(t);
}

/* A card that is wanted is looked at by the first glance. */
static void test_a_wish_is_sent_along(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct setting *t = start(LONG_MS, false);
	round_want(t->round, 0);
	assert_int_equal(patrol(t, "", &e), 1);
	assert_true(t->round->cards[0].looked && !t->round->cards[0].want);
	assert_false(t->round->cards[1].looked);
	finish(t);
}

static void *run(void *context)
{
	struct setting *t = context;
	struct err e = { 0 };
	assert_int_equal(round_run(t->source, t->round, &e), 0);
	return NULL;
}

static void test_it_comes_back_when_it_is_called(void **state)
{
	(void)state;
	struct setting *t = start(LONG_MS, true);
	struct source_host *host = t->options.host;
	struct err e = { 0 };
	pthread_t thread;
	ask(t, 3600 * SECOND, 3600 * SECOND);
	int64_t begun_us = clock_monotonic_us();
	assert_int_equal(pthread_create(&thread, NULL, run, t), 0);
	/* It says when its next glance is due. */
	while (host->due_us(host) < begun_us + 3000 * SECOND)
		usleep(1000);
	host->recall(host, true);
	pthread_join(thread, NULL);
	assert_int_equal(round_next(t->source, t->round, &e), 0);
	/* Still called: it does not even begin. */
	run(t);
	assert_int_equal(round_next(t->source, t->round, &e), 0);
	host->recall(host, false);
	ask(t, 1000, 10000);
	run(t);
	assert_int_equal(round_next(t->source, t->round, &e), 1);
	finish(t);
}

/* Patience is for a glance, not for the whole patrol. */
static void test_a_glance_that_is_stuck(void **state)
{
	(void)state;
	struct setting *t = start(SHORT_MS, true);
	struct err e = { 0 };
	int rounds = 0;
	ask(t, 20000, 3 * SHORT_MS * 1000);
	run(t);
	while (round_next(t->source, t->round, &e) > 0)
		rounds++;
	assert_true(rounds > 1 && t->round->due);
	tell("hang");
	ask(t, 1000, 3600 * SECOND);
	assert_int_equal(round_run(t->source, t->round, &e), ERR_WORLD);
	assert_non_null(strstr(e.text, "stuck in glance on card 1"));
	assert_int_equal(round_next(t->source, t->round, &e), 0);
	finish(t);
}

/* A process that is stopped makes no glances either. */
static void test_a_process_that_does_not_run(void **state)
{
	(void)state;
	struct setting *t = start(SHORT_MS, true);
	struct err e = { 0 };
	struct apart_source *s = (struct apart_source *)t->source;
	kill(helper_pid(s->site->helper), SIGSTOP);
	ask(t, 1000, 3600 * SECOND);
	assert_int_equal(round_run(t->source, t->round, &e), ERR_WORLD);
	assert_string_equal(e.text, "the driver has not answered for 500 ms");
	finish(t);
}

/* Whatever bytes come: no round, and the process is replaced. */
static void test_answers_that_end_early(void **state)
{
	(void)state;
	struct err e = { 0 };
	size_t whole = SIZE_MAX;
	for (size_t cut = 1; cut < whole; cut += 1 + whole / 16) {
		struct setting *t = start(LONG_MS, false);
		struct apart_source *s = (struct apart_source *)t->source;
		t->round->drain = true;
		t->round->patrol.until_us = 0;
		assert_int_equal(round_run(t->source, t->round, &e), 0);
		if (whole == SIZE_MAX)
			whole = s->rounds.left;
		s->rounds.left = cut;
		assert_int_equal(round_next(t->source, t->round, &e), ERR_WORLD);
		assert_null(s->site->helper);
		assert_int_equal(round_next(t->source, t->round, &e), 0);
		t->round->scan = true;
		assert_int_equal(round_run(t->source, t->round, &e), 0);
		assert_int_equal(round_next(t->source, t->round, &e), 1);
		finish(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_glances_and_then_a_drain),
		cmocka_unit_test(test_what_changed_is_told_at_once),
		cmocka_unit_test(test_a_wish_is_sent_along),
		cmocka_unit_test(test_it_comes_back_when_it_is_called),
		cmocka_unit_test(test_a_glance_that_is_stuck),
		cmocka_unit_test(test_a_process_that_does_not_run),
		cmocka_unit_test(test_answers_that_end_early),
	};
	told_start();
	snprintf(clock_path, sizeof(clock_path), "/tmp/gua-patrol-clock-%d", (int)getpid());
	int rc = cmocka_run_group_tests(tests, NULL, NULL);
	told_finish();
	unlink(clock_path);
	return rc;
}
