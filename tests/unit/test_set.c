/* Several sources as one: places and flags of cards, cards that come later, members that fail.
 * And lists of names. */
#include "test.h"

#include <stdbool.h>
#include <stdio.h>

#include "base/clock.h"
#include "driver/source.h"

enum { CARDS = 4 };

/* A source that notes what it is asked. */
struct fake {
	struct source source;
	struct card_reading cards[CARDS];
	struct source_xid xid;
	size_t n_cards;
	int opens, closes, scans, drains, glances, looks;
	bool all;	    /* the last drain or look was of all cards */
	bool which[CARDS];  /* ... or of these */
	size_t measured;    /* card whose metrics were read last */
	int fails;	    /* every call, with this err_code */
	uint32_t described; /* the pid that it knows */
	int lates;	    /* how often it was asked for what was late ... */
	int late;	    /* ... and its answer, an err_code */
};

static struct fake a, b;
static struct clock test_clock;

static int answer(struct fake *f, struct err *e)
{
	f->source.code = f->fails ? 15 : 0;
	return f->fails ? err_set(e, f->fails, "no %s", f->source.cards[0].source) : 0;
}

static void note(struct fake *f, const bool *which)
{
	f->all = which == NULL;
	for (size_t i = 0; i < f->source.n_cards; i++)
		f->which[i] = which && which[i];
}

static int fake_scan(struct source *s, struct err *e)
{
	struct fake *f = (struct fake *)s;
	f->scans++;
	s->n_cards = f->n_cards;
	return answer(f, e);
}

static int fake_drain(struct source *s, const bool *which, struct err *e)
{
	struct fake *f = (struct fake *)s;
	f->drains++;
	note(f, which);
	return answer(f, e);
}

static int fake_glance(struct source *s, unsigned what, struct err *e)
{
	struct fake *f = (struct fake *)s;
	(void)what;
	f->glances++;
	return answer(f, e);
}

static int fake_look(struct source *s, const bool *which, struct err *e)
{
	struct fake *f = (struct fake *)s;
	f->looks++;
	note(f, which);
	s->n_cards = f->n_cards;
	return answer(f, e);
}

static bool fake_describe(struct source *s, uint32_t pid, struct process_id *id)
{
	struct fake *f = (struct fake *)s;
	id->pid = pid;
	return f->described == pid;
}

static void fake_metrics(struct source *s, const struct metric_request *request, double *values,
	metric_texts texts)
{
	(void)values;
	(void)texts;
	((struct fake *)s)->measured = request->card;
	s->cards[request->card].status = CARD_STATUS_ASLEEP;
}

static void fake_board(struct source *s, size_t card, struct card_id *id)
{
	id->index = s->cards[card].id.index + 100;
}

static size_t fake_facilities(struct source *s, struct facility *rows, size_t max)
{
	if (max)
		rows[0] = (struct facility){ .job = s->cards[0].source };
	return max ? 1 : 0;
}

static int fake_late(struct source *s, struct err *e)
{
	struct fake *f = (struct fake *)s;
	f->lates++;
	f->fails = f->late;
	return answer(f, e);
}

static void fake_close(struct source *s)
{
	((struct fake *)s)->closes++;
}

static const struct source_ops full_ops = { .name = "a",
	.scan = fake_scan,
	.drain = fake_drain,
	.glance = fake_glance,
	.look = fake_look,
	.describe = fake_describe,
	.metrics = fake_metrics,
	.board = fake_board,
	.late = fake_late,
	.facilities = fake_facilities,
	.close = fake_close };
static const struct source_ops plain_ops = { .name = "b",
	.scan = fake_scan,
	.drain = fake_drain,
	.glance = fake_glance,
	.look = fake_look,
	.facilities = fake_facilities,
	.close = fake_close };

static int open_fake(struct fake *f, struct source **s, struct err *e)
{
	f->opens++;
	*s = &f->source;
	return fake_scan(&f->source, e);
}

static int open_a(struct source **s, const struct source_options *options, struct err *e)
{
	assert_string_equal(options->name, "a");
	return open_fake(&a, s, e);
}

static int open_b(struct source **s, const struct source_options *options, struct err *e)
{
	assert_string_equal(options->name, "b");
	return open_fake(&b, s, e);
}

static const struct source_kind kind_a = { .name = "a", .open = open_a };
static const struct source_kind kind_b = { .name = "b", .open = open_b };

static void make(struct fake *f, const struct source_ops *ops, size_t n_cards)
{
	*f = (struct fake){ .n_cards = n_cards, .measured = CARDS };
	f->source.ops = ops;
	f->source.cards = f->cards;
	for (int i = 0; i < CARDS; i++) {
		f->cards[i] = (struct card_reading){ .id.index = i, .mem_used_bytes = 1000 };
		snprintf(f->cards[i].id.uuid, UUID_CAP, "%s%d", ops->name, i);
		snprintf(f->cards[i].source, SOURCE_CAP, "%s", ops->name);
	}
}

/* a0 a1 b0 */
static int setup(void **state)
{
	(void)state;
	clock_init_virtual(&test_clock, 1000);
	make(&a, &full_ops, 2);
	make(&b, &plain_ops, 1);
	return 0;
}

static struct source *open_set(void)
{
	const struct source_list list = { { &kind_a, &kind_b }, 2 };
	const struct source_options options = { .clock = &test_clock };
	struct source *s = NULL;
	struct err e = { 0 };
	assert_int_equal(source_set_open(&s, &list, &options, &e), 0);
	return s;
}

static void assert_cards(const struct source *s, const char *const *uuids, size_t n)
{
	assert_int_equal(s->n_cards, n);
	for (size_t i = 0; i < n; i++)
		assert_string_equal(s->cards[i].id.uuid, uuids[i]);
}
#define ASSERT_CARDS(s, ...)                                                                   \
	assert_cards(s, (const char *const[]){ __VA_ARGS__ },                                  \
		sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

static void test_cards_follow_each_other_and_keep_their_places(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct source *s = open_set();
	assert_string_equal(s->ops->name, "a,b");
	ASSERT_CARDS(s, "a0", "a1", "b0");
	assert_string_equal(s->cards[1].source, "a");
	assert_string_equal(s->cards[2].source, "b");
	a.n_cards = 3;
	assert_int_equal(source_look(s, NULL, &e), 0);
	ASSERT_CARDS(s, "a0", "a1", "b0", "a2");
	b.n_cards = 2;
	assert_int_equal(source_scan(s, &e), 0);
	ASSERT_CARDS(s, "a0", "a1", "b0", "a2", "b1");
	source_close(s);
	assert_int_equal(a.closes + b.closes, 2);
}

static void test_a_card_of_two_members_is_there_once(void **state)
{
	(void)state;
	struct err e = { 0 };
	b.n_cards = 2;
	snprintf(b.cards[0].id.uuid, UUID_CAP, "a1");
	struct source *s = open_set();
	ASSERT_CARDS(s, "a0", "a1", "b1");
	assert_string_equal(s->cards[1].source, "a");
	const bool which[] = { false, true, false };
	assert_int_equal(source_look(s, which, &e), 0);
	assert_int_equal(a.looks, 1);
	assert_int_equal(b.looks, 0);
	source_close(s);
}

static void test_flags_go_to_the_right_member(void **state)
{
	(void)state;
	struct err e = { 0 };
	a.n_cards = 1;
	struct source *s = open_set();
	a.n_cards = 3;
	assert_int_equal(source_scan(s, &e), 0);
	ASSERT_CARDS(s, "a0", "b0", "a1", "a2");
	const bool which[] = { false, true, false, true };
	assert_int_equal(source_drain(s, which, &e), 0);
	assert_false(a.all || a.which[0] || a.which[1]);
	assert_true(a.which[2]);
	assert_true(b.which[0]);
	const bool of_b[] = { false, true, false, false };
	assert_int_equal(source_look(s, of_b, &e), 0);
	assert_int_equal(a.looks, 0);
	assert_int_equal(b.looks, 1);
	assert_int_equal(source_look(s, NULL, &e), 0);
	assert_true(a.all && b.all);
	source_close(s);
}

static void test_a_failing_member_loses_its_cards_alone(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct source *s = open_set();
	a.fails = ERR_WORLD;
	assert_int_equal(source_drain(s, NULL, &e), 0);
	assert_true(s->incomplete);
	assert_int_equal(s->cards[0].status, CARD_STATUS_LOST);
	assert_int_equal(s->cards[0].code, 15);
	assert_int_equal(s->cards[0].mem_used_bytes, -1);
	assert_string_equal(s->cards[0].id.uuid, "a0");
	assert_string_equal(s->cards[0].source, "a");
	assert_int_equal(s->cards[2].status, CARD_STATUS_OK);
	/* It is left alone until the next scan. */
	a.fails = 0;
	assert_int_equal(source_glance(s, GLANCE_MEMORY, &e), 0);
	assert_int_equal(a.glances, 0);
	assert_int_equal(b.glances, 1);
	assert_int_equal(s->cards[1].status, CARD_STATUS_LOST);
	assert_int_equal(source_scan(s, &e), 0);
	assert_false(s->incomplete);
	assert_int_equal(s->cards[0].status, CARD_STATUS_OK);
	source_close(s);
}

/* A member whose call goes on is not asked again before that has come back. */
static void test_a_late_member_does_not_hold_up_the_others(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct source *s = open_set();
	a.fails = a.late = ERR_BUSY;
	assert_int_equal(source_look(s, NULL, &e), 0);
	assert_true(s->incomplete);
	assert_int_equal(s->cards[0].status, CARD_STATUS_LOST);
	assert_int_equal(s->cards[0].code, CARD_CODE_STUCK);
	assert_int_equal(s->cards[2].status, CARD_STATUS_OK);
	assert_int_equal(source_glance(s, GLANCE_MEMORY, &e), 0);
	assert_int_equal(source_scan(s, &e), 0);
	assert_int_equal(a.glances, 0);
	assert_int_equal(a.scans, 1);
	assert_int_equal(a.lates, 2);
	assert_int_equal(b.glances, 1);
	a.late = 0;
	assert_int_equal(source_glance(s, GLANCE_MEMORY, &e), 0);
	assert_int_equal(a.glances, 0); /* the look may have found cards: a scan takes it */
	assert_true(s->incomplete);
	assert_int_equal(source_scan(s, &e), 0);
	assert_int_equal(a.scans, 2);
	assert_false(s->incomplete);
	assert_int_equal(s->cards[0].status, CARD_STATUS_OK);
	/* It fails in the end: as any other failure. */
	a.fails = ERR_BUSY;
	a.late = ERR_WORLD;
	assert_int_equal(source_drain(s, NULL, &e), 0);
	assert_int_equal(source_drain(s, NULL, &e), 0);
	assert_int_equal(a.drains, 1);
	assert_int_equal(s->cards[0].code, 15);
	a.fails = 0;
	assert_int_equal(source_scan(s, &e), 0);
	assert_int_equal(s->cards[0].status, CARD_STATUS_OK);
	source_close(s);
}

/* Its samples are taken by the next drain, and by nothing before that. */
static void test_a_late_drain_is_not_lost(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct source *s = open_set();
	a.fails = ERR_BUSY;
	assert_int_equal(source_drain(s, NULL, &e), 0);
	a.fails = a.late = 0;
	a.cards[0].n_samples = 3;
	assert_int_equal(source_glance(s, GLANCE_MEMORY, &e), 0);
	assert_int_equal(source_scan(s, &e), 0);
	assert_int_equal(a.glances, 0);
	assert_int_equal(s->cards[0].status, CARD_STATUS_LOST);
	assert_int_equal(source_drain(s, NULL, &e), 0);
	assert_int_equal(a.drains, 1);
	assert_int_equal(s->cards[0].status, CARD_STATUS_OK);
	assert_int_equal(s->cards[0].n_samples, 3);
	assert_int_equal(source_drain(s, NULL, &e), 0);
	assert_int_equal(a.drains, 2);
	source_close(s);
}

/* Only a scan or a look adds cards. */
static void test_a_member_opens_late(void **state)
{
	(void)state;
	struct err e = { 0 };
	a.fails = a.late = ERR_BUSY;
	struct source *s = open_set();
	ASSERT_CARDS(s, "b0");
	assert_int_equal(source_drain(s, NULL, &e), 0);
	a.late = 0;
	assert_int_equal(source_drain(s, NULL, &e), 0);
	ASSERT_CARDS(s, "b0");
	assert_int_equal(source_scan(s, &e), 0);
	ASSERT_CARDS(s, "b0", "a0", "a1");
	assert_int_equal(a.opens, 1);
	assert_int_equal(a.scans, 1);
	source_close(s);
}

/* ERR_BUSY would mean that the call of the set goes on. */
static void test_all_members_are_late_or_fail(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct source *s = open_set();
	a.fails = ERR_BUSY;
	b.fails = ERR_WORLD;
	assert_int_equal(source_drain(s, NULL, &e), ERR_WORLD);
	assert_string_equal(e.text, "no a");
	source_close(s);
}

static void test_the_call_fails_when_all_members_do(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct source *s = open_set();
	a.fails = b.fails = ERR_WORLD;
	assert_int_equal(source_drain(s, NULL, &e), ERR_WORLD);
	assert_string_equal(e.text, "no a");
	assert_int_equal(s->code, 15);
	assert_int_equal(source_glance(s, GLANCE_MEMORY, &e), ERR_WORLD);
	assert_int_equal(a.glances + b.glances, 0);
	b.fails = 0;
	assert_int_equal(source_scan(s, &e), 0);
	assert_int_equal(s->cards[2].status, CARD_STATUS_OK);
	source_close(s);
}

static void test_a_member_may_open_later(void **state)
{
	(void)state;
	struct err e = { 0 };
	a.fails = ERR_WORLD;
	struct source *s = open_set();
	ASSERT_CARDS(s, "b0");
	assert_true(s->incomplete);
	a.fails = 0;
	assert_int_equal(source_look(s, NULL, &e), 0);
	assert_int_equal(a.opens, 1);
	assert_int_equal(source_scan(s, &e), 0);
	assert_int_equal(a.opens, 2);
	ASSERT_CARDS(s, "b0", "a0", "a1");
	source_close(s);
}

static void test_opening_fails_when_all_do_or_by_the_users_fault(void **state)
{
	(void)state;
	const struct source_list list = { { &kind_a, &kind_b }, 2 };
	const struct source_options options = { .clock = &test_clock };
	struct source *s = NULL;
	struct err e = { 0 };
	b.fails = ERR_USAGE;
	assert_int_equal(source_set_open(&s, &list, &options, &e), ERR_USAGE);
	assert_string_equal(e.text, "no b");
	assert_int_equal(a.closes, 1);
	a.fails = b.fails = ERR_WORLD;
	assert_int_equal(source_set_open(&s, &list, &options, &e), ERR_WORLD);
	assert_string_equal(e.text, "no a");
	assert_null(s);
}

static void test_facts_are_joined(void **state)
{
	(void)state;
	struct err e = { 0 };
	a.source.ring_us = 10000;
	b.source.ring_us = 8000;
	a.source.sample_period_us = 200000;
	b.source.sample_period_us = 2000000;
	a.source.memory_cost_us = 30;
	b.source.memory_cost_us = 12;
	b.source.energy_cost_us = 5;
	b.xid = (struct source_xid){ 0, 79 };
	b.source.xids = &b.xid;
	b.source.n_xids = 1;
	snprintf(b.source.driver_version, VERSION_CAP, "550");
	snprintf(b.source.hostname, sizeof(b.source.hostname), "lab");
	struct source *s = open_set();
	s->drains = DRAIN_POWER;
	assert_int_equal(source_drain(s, NULL, &e), 0);
	assert_true(a.source.drains == DRAIN_POWER && b.source.drains == DRAIN_POWER);
	assert_int_equal(s->ring_us, 8000);
	assert_int_equal(s->sample_period_us, 2000000);
	assert_int_equal(s->memory_cost_us, 42);
	assert_int_equal(s->energy_cost_us, 5);
	assert_int_equal(s->n_xids, 1);
	assert_int_equal(s->xids[0].card, 2);
	assert_int_equal(s->xids[0].number, 79);
	assert_string_equal(s->driver_version, "550");
	assert_string_equal(s->hostname, "lab");
	source_close(s);
}

static void test_questions_go_to_the_right_member(void **state)
{
	(void)state;
	struct process_id id = { 0 };
	struct card_id board = { .index = 7 };
	struct facility rows[4];
	double values[METRIC_COUNT] = { 0 };
	static metric_texts texts;
	a.described = 10;
	struct source *s = open_set();
	assert_true(s->ops->describe(s, 10, &id));
	assert_false(s->ops->describe(s, 11, &id));
	s->ops->metrics(s, &(struct metric_request){ .card = 1 }, values, texts);
	assert_int_equal(a.measured, 1);
	assert_int_equal(s->cards[1].status, CARD_STATUS_ASLEEP);
	/* b has none */
	s->ops->metrics(s, &(struct metric_request){ .card = 2 }, values, texts);
	s->ops->board(s, 2, &board);
	assert_int_equal(board.index, 7);
	s->ops->board(s, 1, &board);
	assert_int_equal(board.index, 101);
	assert_int_equal(s->ops->facilities(s, rows, 4), 2);
	assert_string_equal(rows[1].job, "b");
	assert_int_equal(s->ops->facilities(s, rows, 1), 1);
	source_close(s);
}

static void assert_list(const char *names, const char *expected)
{
	struct source_list list;
	struct err e = { 0 };
	char text[SOURCE_LIST_CAP];
	assert_int_equal(source_list_read(&list, names, true, &e), 0);
	source_list_text(&list, text, sizeof(text));
	assert_string_equal(text, expected);
}

static void test_lists_of_names(void **state)
{
	(void)state;
	struct source_list list;
	struct err e = { 0 };
	assert_list("auto", "nvml");
	assert_list("sim,nvml", "sim,nvml");
	assert_list("nvml,auto,sim,sim", "nvml,sim");
	assert_list("none", "");
	assert_int_equal(source_list_read(&list, "none", false, &e), ERR_USAGE);
	assert_int_equal(source_list_read(&list, "nvml,none", true, &e), ERR_USAGE);
	assert_int_equal(source_list_read(&list, "", true, &e), ERR_USAGE);
	assert_int_equal(source_list_read(&list, "nvml,", true, &e), ERR_USAGE);
	assert_int_equal(source_list_read(&list, "simulator", true, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "unknown source 'simulator'; there are auto ("));
	assert_non_null(strstr(e.text, ", none ("));
	assert_int_equal(source_check("nvml", "x.scenario", false, &e), ERR_USAGE);
	assert_int_equal(source_check("nvml,sim", "/dev/null", false, &e), 0);
}

static void test_what_is_invented(void **state)
{
	(void)state;
	assert_true(source_is_invented("sim") && source_is_invented("nvml,sim"));
	assert_false(source_is_invented("nvml") || source_is_invented("import"));
	assert_false(source_is_invented("auto") || source_is_invented("simple"));
	assert_true(source_is_measured("auto") && source_is_measured("sim,nvml"));
	assert_false(source_is_measured("sim") || source_is_measured("none"));
}

/* The help of --source names every word of the table. */
static void test_help_has_every_name(void **state)
{
	(void)state;
	struct str words = { 0 };
	source_words_none(&words);
	char *rest = NULL;
	for (char *word = strtok_r(words.data, " ", &rest); word;
		word = strtok_r(NULL, " ", &rest)) {
		assert_non_null(strstr(SOURCE_NONE_HELP, word));
		if (strcmp(word, SOURCE_NONE) != 0)
			assert_non_null(strstr(SOURCE_HELP, word));
	}
	str_finish(&words);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
			test_cards_follow_each_other_and_keep_their_places, setup),
		cmocka_unit_test_setup(test_a_card_of_two_members_is_there_once, setup),
		cmocka_unit_test_setup(test_flags_go_to_the_right_member, setup),
		cmocka_unit_test_setup(test_a_failing_member_loses_its_cards_alone, setup),
		cmocka_unit_test_setup(test_a_late_member_does_not_hold_up_the_others, setup),
		cmocka_unit_test_setup(test_a_late_drain_is_not_lost, setup),
		cmocka_unit_test_setup(test_a_member_opens_late, setup),
		cmocka_unit_test_setup(test_all_members_are_late_or_fail, setup),
		cmocka_unit_test_setup(test_the_call_fails_when_all_members_do, setup),
		cmocka_unit_test_setup(test_a_member_may_open_later, setup),
		cmocka_unit_test_setup(
			test_opening_fails_when_all_do_or_by_the_users_fault, setup),
		cmocka_unit_test_setup(test_facts_are_joined, setup),
		cmocka_unit_test_setup(test_questions_go_to_the_right_member, setup),
		cmocka_unit_test(test_lists_of_names),
		cmocka_unit_test(test_what_is_invented),
		cmocka_unit_test(test_help_has_every_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
