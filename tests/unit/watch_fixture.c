/* Rounds of a source that answers what the test has set. */
#include "watch_fixture.h"

#include <math.h>
#include <stdio.h>

static bool describe(struct source *s, uint32_t pid, struct process_id *id)
{
	(void)s;
	id->start_ticks = pid;
	id->started_ms = T0 - 3600000;
	snprintf(id->user, sizeof(id->user), "user%u", pid);
	return true;
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

static const struct source_ops ops = { .name = "fake",
	.describe = describe,
	.scan = nothing,
	.drain = look_nothing,
	.glance = glance_nothing,
	.look = look_nothing };

int watch_setup(void **state)
{
	static const struct rules rules = RULES_DEFAULT;
	static const struct watch_pace pace = { .drain_ms = 5000, .stall_ms = 6000 };
	struct fixture *f = calloc(1, sizeof(*f));
	struct err e = { 0 };
	f->source = (struct source){
		.ops = &ops, .cards = &f->card, .n_cards = 1, .sample_period_us = 200000
	};
	f->card = (struct card_reading){
		.id = { .uuid = "GPU-a", .name = "card", .mem_total_bytes = 24000 * MB },
		.own_processes = true,
		.util_kind = UTIL_RING,
		.samples = f->samples,
		.process_utils = &f->util,
		.processes = &f->process,
		.ended = &f->ended,
		.processes_known = true,
		.sm_active_pct = NAN,
		.energy_mj = NAN
	};
	f->sampled_ms = 200;
	f->process = (struct card_process){ 100, PROCESS_COMPUTE, 4000 * MB };
	clock_init_virtual(&f->clock, T0);
	assert_int_equal(round_new(&f->round, &f->clock, &e), 0);
	assert_int_equal(watch_init(&f->watch,
				 &(struct watch_options){ .rules = &rules, .pace = pace }, &e),
		0);
	*state = f;
	return 0;
}

int watch_teardown(void **state)
{
	struct fixture *f = *state;
	watch_finish(&f->watch);
	reader_close(f->reader);
	round_free(f->round);
	clock_finish(&f->clock);
	free(f);
	return 0;
}

static struct card_past never_seen(void *context, struct card_id *id)
{
	(void)context;
	(void)id;
	return (struct card_past){ .seen_ms = -1, .idle_held_since_ms = -1 };
}

void make_round(struct fixture *f, int64_t after_ms)
{
	struct err e = { 0 };
	assert_int_equal(round_run(&f->source, f->round, &e), 0);
	f->round->begun_ms = f->round->ended_ms = T0 + after_ms;
	assert_int_equal(watch_cards(&f->watch, &f->source, T0 + after_ms,
				 &(struct watch_past){ never_seen, NULL }, &e),
		0);
	assert_int_equal(watch_round(&f->watch, &f->source, f->round, &e), 0);
}

void glance(struct fixture *f, int64_t after_ms)
{
	f->round->drain = false;
	f->card.n_samples = 0;
	make_round(f, after_ms);
}

void drain(struct fixture *f, int64_t after_ms, double pct)
{
	f->round->drain = f->round->look_all = true;
	f->card.n_samples = 0;
	for (; f->sampled_ms <= after_ms; f->sampled_ms += 200) {
		assert_true(f->card.n_samples < MAX_SAMPLES);
		f->samples[f->card.n_samples++] =
			(struct util_sample){ (T0 + f->sampled_ms) * 1000, pct };
	}
	make_round(f, after_ms);
	f->round->look_all = false;
	/* The newest sample waits for the next; the sums of the tests have it. */
	struct account *account = &f->watch.cards[0].account;
	struct account_scene on = watch_scene(&f->watch, 0);
	if (account->holds)
		account_flush(account, account->held.at_ms, &on);
}

void put_process(struct fixture *f, bool there)
{
	f->card.n_processes = there;
	f->card.mem_used_bytes = there ? f->process.mem_bytes : 0;
}

int64_t sum_ms(const struct fixture *f, enum card_state state)
{
	size_t n = 0;
	int64_t ms = 0;
	const struct usage_sum *rows = ledger_usage_rows(&f->watch.ledger, &n);
	for (size_t i = 0; i < n; i++)
		ms += rows[i].state == state ? rows[i].ms : 0;
	return ms;
}

int64_t presence_ms(const struct fixture *f, const char *user)
{
	size_t n = 0;
	int64_t ms = 0;
	const struct holding_sum *rows = ledger_holding_rows(&f->watch.ledger, &n);
	for (size_t i = 0; i < n; i++) {
		if (strcmp(f->watch.lives.entries[rows[i].process].id.user, user) != 0)
			continue;
		for (int state = 0; state < HOLDER_STATES; state++)
			ms += rows[i].presence_ms[state];
	}
	return ms;
}

size_t n_events(const struct fixture *f, enum event_kind kind)
{
	size_t n = 0;
	for (size_t i = 0; i < f->watch.n_events; i++)
		n += f->watch.events[i].kind == kind;
	return n;
}

size_t n_open(const struct fixture *f)
{
	size_t n = 0;
	for (size_t i = 0; i < f->watch.cards[0].holders.n; i++)
		n += holders_is_open(&f->watch.cards[0].holders.items[i]);
	return n;
}

const struct holder *open_holder(const struct fixture *f)
{
	const struct holders *h = &f->watch.cards[0].holders;
	assert_int_equal(n_open(f), 1);
	for (size_t i = 0; i < h->n; i++)
		if (holders_is_open(&h->items[i]))
			return &h->items[i];
	return NULL;
}

const char *open_user(const struct fixture *f)
{
	return f->watch.lives.entries[open_holder(f)->process].id.user;
}
