/* A source in another process: what crosses, bytes that make no sense, a helper that hangs,
 * dies or cannot be ended, and cards that keep their places. */
#include "told_fixture.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/helper.h"
#include "driver/host/apart.h"
#include "driver/host/apart_site.h"
#include "driver/host/wire.h"
#include "driver/host/worker.h"
#include "driver/source.h"

/* A source that lives in the helper. What it does is told by where its calls are made: the
 * number of calls so far is in its memory alone. */
struct toy {
	struct source base;
	struct card_reading cards[3];
	struct util_sample samples[2];
	struct card_process processes[2];
	struct source_xid xid;
	struct source_place *place;
	const struct source_avoids *avoids;
	int scans;
};

static void maybe_hang(struct toy *t, const char *call, int card)
{
	char word[32];
	snprintf(word, sizeof(word), "%s %d", call, card);
	source_place_set(t->place, card, call);
	if (is_told("die"))
		abort();
	while (is_told(word))
		usleep(1000);
}

static int toy_scan(struct source *base, struct err *e)
{
	struct toy *t = (struct toy *)base;
	t->scans++;
	if (is_told("no driver"))
		return err_set(e, ERR_WORLD, "no driver here");
	for (int i = 0; i < 3; i++) {
		struct card_reading *r = &t->cards[i];
		bool avoided = source_is_avoided(t->avoids, i, "");
		*r = (struct card_reading){ .id = { .index = i, .mig_index = -1 },
			.source = "toy",
			.status = avoided ? CARD_STATUS_LOST : CARD_STATUS_OK,
			.code = avoided ? CARD_CODE_STUCK : 0,
			.energy_mj = NAN,
			.mem_used_bytes = t->scans };
		snprintf(r->id.uuid, sizeof(r->id.uuid), avoided ? "index-%d" : "GPU-%d", i);
	}
	return 0;
}

static int toy_drain(struct source *base, const bool *which, struct err *e)
{
	struct toy *t = (struct toy *)base;
	(void)e;
	for (int i = 0; i < 3; i++) {
		struct card_reading *r = &t->cards[i];
		if ((which && !which[i]) || r->status != CARD_STATUS_OK)
			continue;
		maybe_hang(t, "drain", i);
		t->samples[0] = (struct util_sample){ 1000, 10 };
		t->samples[1] =
			(struct util_sample){ 2000, base->drains & DRAIN_POWER ? 30 : 20 };
		r->samples = t->samples;
		r->n_samples = 2;
		r->util_kind = UTIL_RING;
		r->energy_mj = 5.5;
	}
	t->xid = (struct source_xid){ .card = 2, .number = 79 };
	base->xids = &t->xid;
	base->n_xids = 1;
	return 0;
}

static int toy_glance(struct source *base, unsigned what, struct err *e)
{
	struct toy *t = (struct toy *)base;
	(void)e;
	t->cards[1].mem_used_bytes = (int64_t)what;
	base->energy_cost_us = 7;
	return 0;
}

static int toy_look(struct source *base, const bool *which, struct err *e)
{
	struct toy *t = (struct toy *)base;
	(void)which;
	if (is_told("fail"))
		return err_set(e, ERR_WORLD, "the toy is broken");
	t->processes[0] = (struct card_process){ .pid = 42, .kind = 1, .mem_bytes = 9 };
	t->cards[0].processes = t->processes;
	t->cards[0].n_processes = 1;
	t->cards[0].processes_known = true;
	return 0;
}

static void toy_metrics(struct source *base, const struct metric_request *request,
	double *values, metric_texts texts)
{
	maybe_hang((struct toy *)base, "metrics", (int)request->card);
	values[0] = (double)request->card + (request->board ? 100 : 0) + request->wanted[1];
	str_copy(texts[1], METRIC_TEXT_CAP, "new\n");
}

static void toy_board(struct source *base, size_t card, struct card_id *id)
{
	(void)base;
	snprintf(id->uuid, sizeof(id->uuid), "board of %zu", card);
}

static size_t toy_facilities(struct source *base, struct facility *rows, size_t max)
{
	(void)base;
	rows[0] =
		(struct facility){ .job = "job", .how = "how", .works = true, .note = "note" };
	return max > 0;
}

static void toy_close(struct source *base)
{
	while (is_told("close"))
		usleep(1000);
	free(base);
}

static const struct source_ops toy_ops = { .name = "toy",
	.scan = toy_scan,
	.drain = toy_drain,
	.glance = toy_glance,
	.look = toy_look,
	.metrics = toy_metrics,
	.board = toy_board,
	.facilities = toy_facilities,
	.close = toy_close };

static int toy_open(struct source **s, const struct source_options *o, struct err *e)
{
	struct toy *t = calloc(1, sizeof(*t));
	assert_non_null(t);
	t->base = (struct source){ .ops = &toy_ops, .cards = t->cards, .n_cards = 3 };
	str_copy(t->base.driver_version, VERSION_CAP, "1.2.3");
	t->place = o->place;
	t->avoids = o->avoids;
	int rc = toy_scan(&t->base, e);
	if (rc)
		free(t);
	*s = rc ? NULL : &t->base;
	return rc;
}

static const struct source_kind toy_kind = {
	.name = "toy", .open = toy_open, .may_block = true
};

enum { LONG_MS = 60000, SHORT_MS = 500, TURN_MS = 20 };

struct setting {
	struct clock clock;
	struct source_options options;
	struct apart *apart;
	struct source *source;
};

static struct setting begin(int64_t patience_ms)
{
	static struct clock clock;
	struct setting t = { 0 };
	struct err e = { 0 };
	const struct apart_manner manner = { .patience_ms = patience_ms, .turn_ms = TURN_MS };
	tell("");
	clock_init_real(&clock);
	t.options = (struct source_options){ .root = "", .clock = &clock };
	assert_int_equal(apart_new(&t.apart, &t.options, &manner, &e), 0);
	t.options.host = apart_host(t.apart);
	return t;
}

static struct setting start(int64_t patience_ms)
{
	struct setting t = begin(patience_ms);
	struct err e = { 0 };
	assert_int_equal(source_kind_open(&toy_kind, &t.source, &t.options, &e), 0);
	return t;
}

static void finish(struct setting *t)
{
	source_close(t->source);
	apart_free(t->apart);
}

static void test_calls(void **state)
{
	(void)state;
	struct setting t = start(LONG_MS);
	struct source *s = t.source;
	struct err e = { 0 };
	assert_string_equal(s->ops->name, "toy");
	assert_string_equal(s->driver_version, "1.2.3");
	assert_int_equal(s->n_cards, 3);
	assert_string_equal(s->cards[2].id.uuid, "GPU-2");
	assert_true(isnan(s->cards[0].energy_mj));
	s->drains = DRAIN_POWER;
	assert_int_equal(source_drain(s, NULL, &e), 0);
	assert_int_equal(s->cards[1].n_samples, 2);
	assert_int_equal(s->cards[1].samples[1].wall_us, 2000);
	assert_true(s->cards[1].samples[1].util_pct == 30);
	assert_int_equal(s->n_xids, 1);
	assert_int_equal(s->xids[0].card, 2);
	assert_true(s->apart_wall_ms > 0);
	/* What a drain has read is still there after a glance and a look. */
	assert_int_equal(source_glance(s, GLANCE_ENERGY, &e), 0);
	assert_int_equal(source_look(s, NULL, &e), 0);
	assert_int_equal(s->cards[1].mem_used_bytes, GLANCE_ENERGY);
	assert_int_equal(s->energy_cost_us, 7);
	assert_int_equal(s->cards[0].n_processes, 1);
	assert_int_equal(s->cards[0].processes[0].pid, 42);
	assert_int_equal(s->cards[1].n_samples, 2);
	assert_int_equal(s->n_xids, 1);
	finish(&t);
}

static void test_selected_cards(void **state)
{
	(void)state;
	struct setting t = start(LONG_MS);
	const bool which[] = { false, false, true };
	assert_int_equal(source_drain(t.source, which, NULL), 0);
	assert_int_equal(t.source->cards[0].n_samples, 0);
	assert_int_equal(t.source->cards[2].n_samples, 2);
	finish(&t);
}

static void test_answers(void **state)
{
	(void)state;
	struct setting t = start(LONG_MS);
	struct source *s = t.source;
	unsigned char wanted[METRIC_COUNT] = { 1, 1, [5] = 1 };
	double values[METRIC_COUNT];
	metric_texts texts;
	metric_clear(values, texts);
	values[5] = 55;
	str_copy(texts[0], METRIC_TEXT_CAP, "old");
	const struct metric_request requests[] = { { 2, true, wanted }, { 1, false, wanted } };
	s->ops->metrics(s, &requests[0], values, texts);
	assert_true(values[0] == 103 && values[5] == 55);
	assert_string_equal(texts[0], "old");
	assert_string_equal(texts[1], "new\\x0A");
	/* Both at once: the helper is not asked again. */
	struct err e = { 0 };
	assert_int_equal(s->ops->expect(s, requests, 2, true, &e), 0);
	assert_int_equal(s->cards[2].n_samples, 2);
	assert_int_equal(s->cards[0].n_processes, 1);
	tell("metrics 1");
	values[0] = 0;
	s->ops->metrics(s, &requests[0], values, texts);
	assert_true(values[0] == 103 && values[5] == 55);
	s->ops->metrics(s, &requests[1], values, texts);
	assert_true(values[0] == 2 && values[5] == 55);
	tell("fail");
	assert_int_equal(s->ops->expect(s, requests, 2, true, &e), ERR_WORLD);
	assert_string_equal(e.text, "the toy is broken");
	tell("");
	struct card_id id = s->cards[1].id;
	s->ops->board(s, 1, &id);
	assert_string_equal(id.uuid, "board of 1");
	struct facility rows[2];
	assert_int_equal(s->ops->facilities(s, rows, 2), 1);
	assert_string_equal(rows[0].job, "job");
	assert_string_equal(rows[0].how, "how");
	assert_string_equal(rows[0].note, "note");
	assert_true(rows[0].works && !rows[0].fallback);
	assert_int_equal(s->ops->facilities(s, rows, 0), 0);
	finish(&t);
}

static void test_a_fault_of_the_source(void **state)
{
	(void)state;
	struct setting t = begin(LONG_MS);
	struct err e = { 0 };
	tell("no driver");
	assert_int_equal(source_kind_open(&toy_kind, &t.source, &t.options, &e), ERR_WORLD);
	assert_string_equal(e.text, "no driver here");
	tell("");
	assert_int_equal(source_kind_open(&toy_kind, &t.source, &t.options, &e), 0);
	tell("fail");
	assert_int_equal(source_look(t.source, NULL, &e), ERR_WORLD);
	assert_string_equal(e.text, "the toy is broken");
	tell("");
	assert_int_equal(source_look(t.source, NULL, &e), 0);
	finish(&t);
}

static void test_it_dies(void **state)
{
	(void)state;
	struct setting t = start(LONG_MS);
	struct err e = { 0 };
	assert_int_equal(source_drain(t.source, NULL, &e), 0);
	tell("die");
	assert_int_equal(source_drain(t.source, NULL, &e), ERR_WORLD);
	assert_non_null(strstr(e.text, "gua-toy"));
	assert_int_equal(t.source->cards[0].n_samples, 0);
	tell("");
	assert_int_equal(source_drain(t.source, NULL, &e), ERR_WORLD);
	assert_int_equal(source_scan(t.source, &e), 0);
	assert_int_equal(source_drain(t.source, NULL, &e), 0);
	assert_int_equal(t.source->cards[2].n_samples, 2);
	finish(&t);
}

/* The others go on, and the card keeps its place and its name. */
static void test_a_card_hangs(void **state)
{
	(void)state;
	struct setting t = start(SHORT_MS);
	struct source *s = t.source;
	struct err e = { 0 };
	tell("drain 1");
	assert_int_equal(source_drain(s, NULL, &e), ERR_WORLD);
	assert_non_null(strstr(e.text, "stuck in drain on card 1"));
	assert_int_equal(source_scan(s, &e), 0);
	assert_int_equal(source_drain(s, NULL, &e), 0);
	assert_int_equal(s->n_cards, 3);
	assert_int_equal(s->cards[1].status, CARD_STATUS_LOST);
	assert_int_equal(s->cards[1].code, CARD_CODE_STUCK);
	assert_string_equal(s->cards[1].id.uuid, "GPU-1");
	assert_int_equal(s->cards[0].n_samples, 2);
	assert_int_equal(s->cards[2].n_samples, 2);
	assert_int_equal(s->xids[0].card, 2);
	finish(&t);
}

static int wait_late(struct source *s, struct err *e)
{
	int rc;
	while ((rc = source_late(s, e)) == ERR_BUSY)
		usleep(1000);
	return rc;
}

/* Opens it as one of several sources; on a slow machine that takes longer than a turn. */
static void open_shared(struct setting *t)
{
	struct err e = { 0 };
	t->options.shared = true;
	int rc = source_kind_open(&toy_kind, &t->source, &t->options, &e);
	assert_int_equal(rc == ERR_BUSY ? wait_late(t->source, &e) : rc, 0);
}

/* A call that takes long goes on without its caller, who takes the answer later. */
static void test_others_wait_for_a_turn_only(void **state)
{
	(void)state;
	struct setting t = begin(LONG_MS);
	struct err e = { 0 };
	open_shared(&t);
	tell("drain 1");
	assert_int_equal(source_drain(t.source, NULL, &e), ERR_BUSY);
	assert_string_equal(e.text, "the driver does not answer (stuck in drain on card 1)");
	assert_int_equal(source_late(t.source, &e), ERR_BUSY);
	assert_int_equal(t.source->cards[0].n_samples, 0);
	tell("");
	assert_int_equal(wait_late(t.source, &e), 0);
	assert_int_equal(t.source->cards[2].n_samples, 2);
	/* A call with an answer of its own, which comes too late. */
	struct metric_request request = { .card = 1,
		.wanted = (unsigned char[METRIC_COUNT]){ 1 } };
	double values[METRIC_COUNT] = { 0 };
	metric_texts texts = { 0 };
	tell("metrics 1");
	t.source->ops->metrics(t.source, &request, values, texts);
	assert_int_equal(source_unsaid(t.source, &e), ERR_BUSY);
	tell("");
	assert_int_equal(wait_late(t.source, &e), 0);
	assert_true(values[0] == 0);
	int rc = source_look(t.source, NULL, &e);
	assert_int_equal(rc == ERR_BUSY ? wait_late(t.source, &e) : rc, 0);
	assert_int_equal(source_late(t.source, &e), ERR_WORLD); /* nothing is late */
	finish(&t);
}

/* One that takes too long is given up, whoever waits. */
static void test_patience_ends_for_a_late_call(void **state)
{
	(void)state;
	struct setting t = begin(SHORT_MS);
	struct err e = { 0 };
	open_shared(&t);
	tell("drain 1");
	assert_int_equal(source_drain(t.source, NULL, &e), ERR_BUSY);
	assert_int_equal(wait_late(t.source, &e), ERR_WORLD);
	assert_non_null(strstr(e.text, "stuck in drain on card 1"));
	int rc = source_scan(t.source, &e);
	assert_int_equal(rc == ERR_BUSY ? wait_late(t.source, &e) : rc, 0);
	assert_int_equal(t.source->cards[1].code, CARD_CODE_STUCK);
	finish(&t);
}

/* A thread that waits is interrupted, so the program can end. */
static void test_the_end_does_not_wait(void **state)
{
	(void)state;
	struct setting t = begin(LONG_MS);
	struct worker *w = NULL;
	struct err e = { 0 };
	t.options.name = "toy";
	assert_int_equal(source_kind_open(&toy_kind, &t.source, &t.options, &e), 0);
	tell("close");
	finish(&t); /* ends after a moment, although it is not closed */
	t = begin(LONG_MS);
	t.options.name = "sim";
	assert_int_equal(worker_new(&w, &t.options, LONG_MS, &e), 0);
	assert_true(worker_end(w, 0));
	apart_free(t.apart);
}

/* Bookkeeping of processes that cannot be ended. */
static struct left_process live_one(pid_t *pid)
{
	*pid = fork();
	if (*pid == 0)
		for (;;)
			pause();
	return (struct left_process){ *pid, (int)syscall(SYS_pidfd_open, *pid, 0) };
}

static void end_one(pid_t pid)
{
	siginfo_t info;
	kill(pid, SIGKILL);
	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
}

static void test_left_behind(void **state)
{
	(void)state;
	struct left l = { 0 };
	struct source_avoids avoids;
	const struct source_avoid card = { .index = 3 };
	pid_t on_card, on_none;
	assert_int_equal(apart_left_check(&l, 0), 0);
	apart_left_add(&l, live_one(&on_card), &card, 0);
	apart_left_add(&l, live_one(&on_none), NULL, 0);
	assert_int_equal(apart_left_check(&l, LEFT_FIRST_US * 10), 2);
	apart_left_avoids(&l, LEFT_FIRST_US * 10, &avoids);
	assert_int_equal(avoids.n, 1);
	assert_int_equal(avoids.cards[0].index, 3);
	struct source_stuck stuck[SOURCE_STUCK_MAX];
	assert_int_equal(apart_left_list(&l, stuck, SOURCE_STUCK_MAX), 2);
	assert_int_equal(stuck[0].pid, on_card);
	assert_int_equal(stuck[0].card.index, 3);
	assert_int_equal(stuck[1].pid, on_none);
	assert_int_equal(stuck[1].card.index, -1);
	assert_int_equal(apart_left_list(&l, stuck, 1), 1);
	end_one(on_none);
	assert_int_equal(apart_left_check(&l, LEFT_FIRST_US * 10), 1);
	end_one(on_card);
	assert_int_equal(apart_left_check(&l, LEFT_FIRST_US * 10), 0);
	apart_left_avoids(&l, LEFT_FIRST_US * 10, &avoids);
	assert_int_equal(avoids.n, 0);
	apart_left_finish(&l);
}

/* One that could be ended: the card is tried again, less and less often. */
static void test_left_alone(void **state)
{
	(void)state;
	struct left l = { 0 };
	struct source_avoids avoids;
	const struct source_avoid card = { .index = 3 };
	int64_t now_us = 0;
	for (int times = 0; times < 3; times++) {
		apart_left_add(&l, (struct left_process){ .pidfd = -1 }, &card, now_us);
		now_us += (LEFT_FIRST_US << times) - 1;
		assert_int_equal(apart_left_check(&l, now_us), 0);
		apart_left_avoids(&l, now_us, &avoids);
		assert_int_equal(avoids.n, 1);
		now_us++;
		assert_int_equal(apart_left_check(&l, now_us), 0);
		apart_left_avoids(&l, now_us, &avoids);
		assert_int_equal(avoids.n, 0);
	}
	assert_int_equal(apart_left_check(&l, now_us + LEFT_LONGEST_US), 0);
	assert_int_equal(l.n_cards, 0);
	apart_left_finish(&l);
}

static void make_bytes(struct str *out)
{
	struct toy t = { .base = { .ops = &toy_ops, .cards = t.cards, .n_cards = 3 } };
	struct wire_sent sent = { 0 };
	struct err e = { 0 };
	tell("");
	toy_scan(&t.base, &e);
	toy_drain(&t.base, NULL, &e);
	toy_look(&t.base, NULL, &e);
	wire_write_source(
		out, &t.base, &sent, &(struct wire_fresh){ .drained = true, .looked = true });
	wire_sent_finish(&sent);
}

static void test_bytes_that_end_early(void **state)
{
	(void)state;
	struct str whole = { 0 };
	make_bytes(&whole);
	for (size_t len = 0; len <= whole.len; len++) {
		struct mirror m = { 0 };
		char *copy = malloc(len + 1); /* of its own size, for the sanitizer */
		assert_non_null(copy);
		memcpy(copy, whole.data, len);
		struct wire in = { .bytes = copy, .left = len };
		assert_int_equal(wire_mirror_read(&m, &in), len == whole.len);
		wire_mirror_finish(&m);
		free(copy);
	}
	str_finish(&whole);
}

/* Each byte changed in turn: whatever is taken can be used. */
static void test_bytes_that_are_wrong(void **state)
{
	(void)state;
	struct str whole = { 0 };
	make_bytes(&whole);
	for (size_t at = 0; at < whole.len; at++) {
		struct mirror m = { 0 };
		char was = whole.data[at];
		whole.data[at] = (char)~was;
		struct wire in = { .bytes = whole.data, .left = whole.len };
		wire_mirror_read(&m, &in);
		for (size_t i = 0; i < m.source.n_cards; i++) {
			const struct card_reading *r = &m.source.cards[i];
			assert_true(r->status < CARD_STATUS_COUNT);
			assert_true(r->n_engines <= ENGINE_COUNT);
			assert_true(strlen(r->id.uuid) < UUID_CAP);
			double sum = 0;
			for (size_t k = 0; k < r->n_samples; k++)
				sum += r->samples[k].util_pct;
			assert_true(isnan(sum) || sum == sum);
		}
		for (size_t i = 0; i < m.source.n_xids; i++)
			assert_true(m.source.xids[i].card < m.source.n_cards);
		wire_mirror_finish(&m);
		whole.data[at] = was;
	}
	str_finish(&whole);
}

/* A glance that found nothing new is one byte a card, and three numbers. */
static void test_only_changes_are_sent(void **state)
{
	(void)state;
	struct toy t = { .base = { .ops = &toy_ops, .cards = t.cards, .n_cards = 3 } };
	struct wire_sent sent = { 0 };
	struct wire_fresh nothing = { 0 };
	struct str first = { 0 }, second = { 0 }, third = { 0 };
	tell("");
	toy_scan(&t.base, NULL);
	wire_write_source(&first, &t.base, &sent, &nothing);
	wire_write_source(&second, &t.base, &sent, &nothing);
	t.cards[1].status = CARD_STATUS_ASLEEP;
	wire_write_source(&third, &t.base, &sent, &nothing);
	assert_int_equal(second.len, 1 + 8 + 3 + 8);
	assert_true(second.len < third.len);
	struct mirror m = { 0 };
	struct wire in = { .bytes = str_text(&first), .left = first.len };
	assert_true(wire_mirror_read(&m, &in));
	in = (struct wire){ .bytes = str_text(&third), .left = third.len };
	assert_true(wire_mirror_read(&m, &in));
	assert_int_equal(m.source.cards[1].status, CARD_STATUS_ASLEEP);
	assert_string_equal(m.source.cards[1].id.uuid, "GPU-1");
	wire_mirror_finish(&m);
	wire_sent_finish(&sent);
	str_finish(&first);
	str_finish(&second);
	str_finish(&third);
}

int main(void)
{
	told_start();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_selected_cards),
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_a_fault_of_the_source),
		cmocka_unit_test(test_it_dies),
		cmocka_unit_test(test_a_card_hangs),
		cmocka_unit_test(test_others_wait_for_a_turn_only),
		cmocka_unit_test(test_patience_ends_for_a_late_call),
		cmocka_unit_test(test_the_end_does_not_wait),
		cmocka_unit_test(test_left_behind),
		cmocka_unit_test(test_left_alone),
		cmocka_unit_test(test_bytes_that_end_early),
		cmocka_unit_test(test_bytes_that_are_wrong),
		cmocka_unit_test(test_only_changes_are_sent),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	told_finish();
	return failed;
}
