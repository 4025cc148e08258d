/* Rounds of a world that fails: lost cards, stalls, clock steps, use that is not believed. */
#include "watch_fixture.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_a_card_that_hangs_on_to_its_last_reading(void **state)
{
	struct fixture *f = *state;
	put_process(f, true);
	drain(f, 0, 100);
	drain(f, 5000, 100);
	put_process(f, false);
	glance(f, 6000);
	drain(f, 10000, 100); /* it was there for a part of it */
	assert_int_equal(n_events(f, EVENT_SUSPECT), 1);
	drain(f, 15000, 100);
	drain(f, 20000, 100);
	assert_int_equal(n_events(f, EVENT_SUSPECT), 1);
	assert_true(f->watch.cards[0].suspect.on);
	drain(f, 25000, 0);
	assert_false(f->watch.cards[0].suspect.on);
	watch_flush(&f->watch, T0 + 25000);
	assert_int_equal(sum_ms(f, CARD_ACTIVE), 6000);
	assert_int_equal(sum_ms(f, CARD_UNOBSERVED), 14000);
	assert_int_equal(sum_ms(f, CARD_TRULY_IDLE), 5000);
}

/* Samples of `pct` up to a moment, which are drained later. */
static void add_samples(struct fixture *f, int64_t until_ms, double pct)
{
	for (; f->sampled_ms <= until_ms; f->sampled_ms += 200)
		f->samples[f->card.n_samples++] =
			(struct util_sample){ (T0 + f->sampled_ms) * 1000, pct };
}

static void drain_samples(struct fixture *f, int64_t after_ms)
{
	f->round->drain = f->round->look_all = true;
	make_round(f, after_ms);
	f->round->look_all = false;
	f->card.n_samples = 0;
}

/* The latch ends within a drain: what comes before its end is not active, what comes after it
 * is not unobserved. */
static void test_a_latch_that_ends_within_a_drain(void **state)
{
	struct fixture *f = *state;
	put_process(f, true);
	drain(f, 0, 100);
	drain(f, 5000, 100);
	put_process(f, false);
	glance(f, 6000);
	add_samples(f, 8000, 100);
	add_samples(f, 10000, 0);
	drain_samples(f, 10000);
	assert_int_equal(n_events(f, EVENT_SUSPECT), 1);
	drain(f, 15000, 0);
	assert_false(f->watch.cards[0].suspect.on);
	watch_flush(&f->watch, T0 + 15000);
	assert_int_equal(sum_ms(f, CARD_ACTIVE), 6000);
	assert_int_equal(sum_ms(f, CARD_UNOBSERVED), 2000);
	assert_int_equal(sum_ms(f, CARD_TRULY_IDLE), 7000);
}

/* A process that no list has seen: its use is believed, at the end of a drain and across two of
 * them. If the card stays so, it is latched from the next drain on. */
static void test_use_by_a_process_that_no_list_has_seen(void **state)
{
	struct fixture *f = *state;
	drain(f, 0, 0);
	f->card.n_samples = 0;
	add_samples(f, 4000, 0);
	add_samples(f, 5000, 100);
	drain_samples(f, 5000);
	add_samples(f, 6000, 100);
	add_samples(f, 9000, 0);
	add_samples(f, 10000, 100);
	drain_samples(f, 10000);
	assert_int_equal(n_events(f, EVENT_SUSPECT), 0);
	drain(f, 15000, 100);
	assert_int_equal(n_events(f, EVENT_SUSPECT), 1);
	watch_flush(&f->watch, T0 + 15000);
	assert_int_equal(sum_ms(f, CARD_ACTIVE), 3000);
	assert_int_equal(sum_ms(f, CARD_UNOBSERVED), 5000);
	assert_int_equal(sum_ms(f, CARD_TRULY_IDLE), 7000);
}

static void test_use_that_is_believed(void **state)
{
	struct fixture *f = *state;
	drain(f, 0, 94); /* not latched */
	drain(f, 5000, 94);
	f->card.mem_used_bytes = 500 * MB; /* of a process that is not listed */
	drain(f, 10000, 100);
	assert_int_equal(n_events(f, EVENT_SUSPECT), 0);
	f->card.mem_used_bytes = -1; /* nothing is known */
	drain(f, 15000, 100);
	assert_int_equal(n_events(f, EVENT_SUSPECT), 0);
	assert_int_equal(sum_ms(f, CARD_UNOBSERVED), 0);
}

/* Lost for eight seconds: what the ring still holds is used, and its holder held all along. */
static void test_a_lost_card_keeps_its_holders(void **state)
{
	struct fixture *f = *state;
	put_process(f, true);
	drain(f, 0, 0);
	drain(f, 5000, 0);
	f->card.status = CARD_STATUS_LOST;
	glance(f, 6000);
	assert_int_equal(n_events(f, EVENT_CARD_LOST), 1);
	assert_true(f->watch.cards[0].fault.on);
	assert_int_equal(n_open(f), 1);
	f->card.status = CARD_STATUS_OK;
	drain(f, 14000, 0);
	assert_int_equal(n_events(f, EVENT_CARD_BACK), 1);
	assert_int_equal(n_open(f), 1);
	assert_int_equal(f->watch.cards[0].holders.n, 1);
	watch_flush(&f->watch, T0 + 14000);
	assert_int_equal(sum_ms(f, CARD_IDLE_HELD), 14000);
	assert_int_equal(presence_ms(f, "user100"), 14000);
}

/* Lost for longer than the ring holds: the time before is unobserved. */
static void test_a_card_that_is_lost_for_long(void **state)
{
	struct fixture *f = *state;
	put_process(f, true);
	drain(f, 0, 0);
	f->card.status = CARD_STATUS_LOST;
	for (int64_t at_ms = 5000; at_ms <= 30000; at_ms += 5000) {
		f->round->drain = true;
		f->card.n_samples = 0;
		make_round(f, at_ms);
	}
	f->card.status = CARD_STATUS_OK;
	f->sampled_ms = 24000;
	drain(f, 34000, 0);
	watch_flush(&f->watch, T0 + 34000);
	assert_int_equal(sum_ms(f, CARD_UNOBSERVED), 24000 - 200);
	assert_int_equal(sum_ms(f, CARD_IDLE_HELD), 10000 + 200);
}

static void test_an_instance_that_is_gone(void **state)
{
	struct fixture *f = *state;
	put_process(f, true);
	drain(f, 0, 0);
	drain(f, 5000, 0);
	f->card.status = CARD_STATUS_LOST;
	f->card.gone = true;
	glance(f, 6000);
	assert_int_equal(n_open(f), 0);
	assert_false(f->watch.cards[0].fault.on);
	int64_t held_ms = sum_ms(f, CARD_IDLE_HELD);
	for (int64_t at_ms = 10000; at_ms <= 60000; at_ms += 5000) {
		f->round->drain = true;
		make_round(f, at_ms);
	}
	watch_flush(&f->watch, T0 + 60000);
	watch_blind(&f->watch, T0 + 60000);
	assert_int_equal(sum_ms(f, CARD_UNOBSERVED) + sum_ms(f, CARD_IDLE_HELD), 6000);
	assert_int_equal(sum_ms(f, CARD_IDLE_HELD), held_ms);
	/* One of that name again begins anew. */
	f->card.status = CARD_STATUS_OK;
	f->card.gone = false;
	f->sampled_ms = 70000;
	drain(f, 70000, 0);
	assert_int_equal(n_open(f), 1);
	drain(f, 75000, 0);
	assert_int_equal(sum_ms(f, CARD_IDLE_HELD), held_ms + 5000);
}

/* A stall of twenty seconds, after which another process is there. */
static void test_stall(void **state)
{
	struct fixture *f = *state;
	put_process(f, true);
	drain(f, 0, 0);
	drain(f, 5000, 0);
	f->process.pid = 200;
	drain(f, 25000, 0);
	assert_string_equal(open_user(f), "user200");
	drain(f, 30000, 0);
	assert_int_equal(presence_ms(f, "user100"), 5000);
	assert_int_equal(presence_ms(f, "user200"), 5000);
	assert_int_equal(sum_ms(f, CARD_IDLE_HELD), 10000);
	assert_int_equal(sum_ms(f, CARD_UNOBSERVED), 20000);
}

static void test_stall_with_the_same_holder(void **state)
{
	struct fixture *f = *state;
	put_process(f, true);
	drain(f, 0, 0);
	drain(f, 5000, 0);
	drain(f, 25000, 0);
	drain(f, 30000, 0);
	assert_int_equal(presence_ms(f, "user100"), 30000);
	assert_int_equal(sum_ms(f, CARD_UNOBSERVED), 0);
}

/* Empty before and after: somebody may have come and gone, but use is use. */
static void test_stall_of_an_empty_card(void **state)
{
	struct fixture *f = *state;
	drain(f, 0, 0);
	drain(f, 5000, 0);
	f->card.n_samples = 0;
	add_samples(f, 15000, 0);
	add_samples(f, 19000, 50);
	add_samples(f, 25000, 0);
	drain_samples(f, 25000);
	drain(f, 30000, 0);
	assert_int_equal(sum_ms(f, CARD_TRULY_IDLE), 10000);
	assert_int_equal(sum_ms(f, CARD_ACTIVE), 4000);
	assert_int_equal(sum_ms(f, CARD_UNOBSERVED), 16000);
}

/* Puts a real process on the card, for its end to be seen. */
static pid_t put_child(struct fixture *f)
{
	struct err e = { 0 };
	struct rules rules = f->watch.rules;
	struct watch_pace pace = f->watch.pace;
	watch_finish(&f->watch);
	assert_int_equal(reader_open(&f->reader, "", 0, &e), 0);
	assert_int_equal(watch_init(&f->watch,
				 &(struct watch_options){ .rules = &rules,
					 .pace = pace,
					 .reader = f->reader,
					 .pidfds = true },
				 &e),
		0);
	f->card.own_processes = false;
	pid_t child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	f->process.pid = (uint32_t)child;
	put_process(f, true);
	return child;
}

static void end_child(struct fixture *f, pid_t child)
{
	struct pollfd exits = { .fd = f->watch.lives.exits_fd, .events = POLLIN };
	kill(child, SIGKILL);
	assert_int_equal(poll(&exits, 1, 60000), 1);
	waitpid(child, NULL, 0);
	put_process(f, false);
}

static void test_an_exit_that_was_waited_for(void **state)
{
	struct fixture *f = *state;
	pid_t child = put_child(f);
	drain(f, 0, 50);
	glance(f, 1000);
	assert_false(watch_exits(&f->watch, f->round, T0 + 1000, T0 + 1000));
	end_child(f, child);
	assert_true(watch_exits(&f->watch, f->round, T0 + 1700, T0 + 1700));
	assert_true(f->round->cards[0].want);
	assert_int_equal(f->watch.cards[0].holders.items[0].to.lo, T0 + 1700);
	assert_int_equal(f->watch.cards[0].holders.items[0].to.hi, T0 + 1700);
	assert_false(watch_exits(&f->watch, f->round, T0 + 1800, T0 + 1800));
}

/* It ended at some time of a stall: what is not sure is not its time. */
static void test_an_exit_during_a_stall(void **state)
{
	struct fixture *f = *state;
	char user[USER_CAP];
	pid_t child = put_child(f);
	drain(f, 0, 50);
	snprintf(user, sizeof(user), "%s", f->watch.lives.entries[0].id.user);
	drain(f, 5000, 50);
	end_child(f, child);
	assert_true(watch_exits(&f->watch, f->round, T0 + 5000, T0 + 25000));
	drain(f, 25000, 50);
	drain(f, 30000, 50);
	assert_int_equal(presence_ms(f, user), 5000);
	assert_int_equal(sum_ms(f, CARD_ACTIVE), 30000);
}

static void test_clock_step(void **state)
{
	struct fixture *f = *state;
	put_process(f, true);
	drain(f, 0, 0);
	drain(f, 5000, 0);
	watch_clock_step(&f->watch, f->round, T0 + 6000, T0 + 3606000);
	assert_int_equal(n_open(f), 1);
	f->sampled_ms = 3606000;
	drain(f, 3610000, 0);
	watch_flush(&f->watch, T0 + 3610000);
	assert_int_equal(sum_ms(f, CARD_IDLE_HELD), 5000 + 4000);
	assert_int_equal(sum_ms(f, CARD_UNOBSERVED), 1000);
	assert_int_equal(f->watch.cards[0].holders.n, 1);
}

/* The round that noticed the step saw a process come, and was dropped. */
static void test_a_newcomer_at_a_clock_step(void **state)
{
	struct fixture *f = *state;
	struct err e = { 0 };
	drain(f, 0, 0);
	f->round->drain = false;
	put_process(f, true);
	assert_int_equal(round_run(&f->source, f->round, &e), 0);
	assert_true(f->round->cards[0].looked);
	watch_clock_step(&f->watch, f->round, T0 + 1000, T0 + 3601000);
	glance(f, 3602000);
	assert_int_equal(n_open(f), 1);
}

static void test_xids(void **state)
{
	struct fixture *f = *state;
	drain(f, 0, 0);
	f->xid = (struct source_xid){ 0, 79 };
	f->source.xids = &f->xid;
	f->source.n_xids = 1;
	drain(f, 5000, 0);
	assert_int_equal(n_events(f, EVENT_XID), 1);
	assert_int_equal(f->watch.events[f->watch.n_events - 1].value, 79);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_card_that_hangs_on_to_its_last_reading),
		TEST(test_a_latch_that_ends_within_a_drain),
		TEST(test_use_by_a_process_that_no_list_has_seen),
		TEST(test_use_that_is_believed),
		TEST(test_a_lost_card_keeps_its_holders),
		TEST(test_a_card_that_is_lost_for_long),
		TEST(test_an_instance_that_is_gone),
		TEST(test_stall),
		TEST(test_stall_with_the_same_holder),
		TEST(test_stall_of_an_empty_card),
		TEST(test_an_exit_that_was_waited_for),
		TEST(test_an_exit_during_a_stall),
		TEST(test_clock_step),
		TEST(test_a_newcomer_at_a_clock_step),
		TEST(test_xids),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
