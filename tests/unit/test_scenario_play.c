/* Playing a scenario: samples, holders, energy, lives, faults and clocks at exact times. */
#include "test.h"

#include <math.h>

#include "driver/sim/play.h"

#define SECOND 1000000LL
#define HEAD                                                                                   \
	"card 0 uuid GPU-0 name A memory 80GiB reserved 1GiB idle-power 60W max-power 400W\n"  \
	"card 1 uuid GPU-1 name B memory 80GiB\n"                                              \
	"process a pid 10 user alice\nprocess b pid 20 user bob\n"

struct stage {
	struct scenario *s;
	struct play *p;
};

static struct stage open_stage(const char *text, bool virtual_time)
{
	struct stage g = { 0 };
	struct err e = { 0 };
	if (scenario_parse(&g.s, "x", text, strlen(text), &e) != 0 ||
		scenario_resolve(g.s, NULL, &e) != 0 ||
		play_open(&g.p, g.s, virtual_time, &e) != 0)
		fail_msg("%s", e.text);
	return g;
}

static void close_stage(struct stage *g)
{
	play_close(g->p);
	scenario_free(g->s);
}

static void test_samples_at_exact_times(void **state)
{
	(void)state;
	struct stage g = open_stage(HEAD "at 500ms load a card 0 sm 30\n"
					 "at 750ms load card 0 util 80\n",
		false);
	play_advance(g.p, -1, 0);
	assert_int_equal(play_ring_size(g.p, 0), 0);
	play_advance(g.p, 1 * SECOND, 5000 * SECOND);
	static const int64_t times[] = { 0, 166666, 333333, 500000, 666666, 833333, 1000000 };
	static const int utils[] = { 0, 0, 0, 0, 30, 65,
		100 }; /* means; capped at each moment */
	assert_int_equal(play_ring_size(g.p, 0), 7);
	for (size_t i = 0; i < 7; i++) {
		const struct play_sample *sample = play_ring_at(g.p, 0, i);
		assert_int_equal(sample->t_us, times[i]);
		assert_int_equal(sample->wall_us, 5000 * SECOND + times[i]);
		assert_int_equal(sample->util_pct, utils[i]);
	}
	/* A moment later there is no new one; time does not go back. */
	play_advance(g.p, 1166665, 0);
	assert_int_equal(play_ring_size(g.p, 0), 7);
	play_advance(g.p, 500, 0);
	assert_int_equal(play_time(g.p), 1166665);
	play_advance(g.p, 1166666, 0);
	assert_int_equal(play_ring_size(g.p, 0), 8);
	close_stage(&g);
}

static void test_the_ring_forgets(void **state)
{
	(void)state;
	struct stage g = open_stage(HEAD "at 20s lost card 0 until 1m\n", false);
	play_advance(g.p, 19 * SECOND, 0);
	assert_int_equal(play_ring_size(g.p, 0), 60);
	assert_int_equal(play_ring_at(g.p, 0, 0)->t_us, 9166666);
	assert_int_equal(play_ring_at(g.p, 0, 59)->t_us, 19 * SECOND);
	play_advance(g.p, 25 * SECOND, 0);
	assert_int_equal(play_ring_size(g.p, 0), 30); /* later than 15 s, until 20 s */
	assert_int_equal(play_ring_at(g.p, 0, 29)->t_us, 20 * SECOND);
	assert_int_equal(play_ring_size(g.p, 1), 60);
	play_advance(g.p, 59 * SECOND, 0);
	assert_int_equal(play_ring_size(g.p, 0), 0);
	play_advance(g.p, 60 * SECOND, 0);
	assert_int_equal(play_ring_size(g.p, 0), 0);
	play_advance(g.p, 60 * SECOND + 166666, 0);
	assert_int_equal(play_ring_size(g.p, 0), 1);
	close_stage(&g);
}

static struct play_since since(int64_t t_us)
{
	return (struct play_since){ .us = t_us };
}

static void test_duty_cycle_and_process_use(void **state)
{
	(void)state;
	struct stage g = open_stage(HEAD "at 0s load a card 0 sm 90 on 400ms off 600ms\n"
					 "at 0s load b card 0 sm 5\n",
		false);
	play_advance(g.p, 2 * SECOND, 0);
	struct play_use uses[4];
	assert_int_equal(play_uses(g.p, 0, since(0), uses, 4), 2);
	assert_int_equal(uses[0].process, 0);
	assert_true(uses[0].sm_pct == 36.0); /* 0.4 of the time */
	assert_int_equal(uses[0].wall_us, 1500000);
	assert_true(uses[1].sm_pct == 5.0);
	assert_int_equal(uses[1].wall_us, 2000000);
	/* Newer than 1.2 s: from 1.167 s on, of which until 1.4 s. */
	assert_int_equal(play_uses(g.p, 0, since(1200000), uses, 4), 2);
	assert_true(fabs(uses[0].sm_pct - 90 * 0.23333 / 0.83333) < 0.01);
	/* Only off. */
	assert_int_equal(play_uses(g.p, 0, since(1500000), uses, 4), 1);
	assert_int_equal(uses[0].process, 1);
	/* A buffer that is too small: the number is told all the same. */
	assert_int_equal(play_uses(g.p, 0, since(-1), uses, 1), 2);
	assert_int_equal(play_uses(g.p, 1, since(-1), uses, 4), 0);
	close_stage(&g);
}

/* A period that ends with a turn has nothing of the next one. */
static void test_turns_end_at_exact_times(void **state)
{
	(void)state;
	struct stage g =
		open_stage(HEAD "at 0s load a card 0 sm 90 on 500ms off 500ms\n", false);
	play_advance(g.p, 1 * SECOND, 0);
	static const int utils[] = { 90, 90, 90, 90, 0, 0, 0 };
	for (size_t i = 0; i < 7; i++)
		assert_int_equal(play_ring_at(g.p, 0, i)->util_pct, utils[i]);
	close_stage(&g);
}

static void test_holders_and_memory(void **state)
{
	(void)state;
	struct stage g = open_stage(HEAD "at 0s hold a card 0 memory 30GiB\n"
					 "at 1s hold b card 0 memory unknown\n"
					 "at 2s hold a card 0 memory 70GiB\n"
					 "at 3s orphan card 0 memory 20GiB\n"
					 "at 4s release a card 0\n"
					 "at 5s exit b\n",
		false);
	struct play_holder holders[4];
	play_advance(g.p, 1 * SECOND, 0);
	assert_int_equal(play_holders(g.p, 0, holders, 4), 2);
	assert_int_equal(holders[0].process, 0);
	assert_int_equal(holders[0].mem_bytes, 30LL << 30);
	assert_int_equal(holders[1].mem_bytes, -1);
	assert_int_equal(play_memory_used(g.p, 0), 31LL << 30);
	play_advance(g.p, 3 * SECOND, 0);
	assert_int_equal(play_memory_used(g.p, 0), 79LL << 30); /* all but the driver's own */
	play_advance(g.p, 4 * SECOND, 0);
	assert_int_equal(play_holders(g.p, 0, holders, 4), 1);
	assert_int_equal(holders[0].process, 1);
	play_advance(g.p, 5 * SECOND, 0);
	assert_int_equal(play_holders(g.p, 0, holders, 4), 0);
	assert_int_equal(play_memory_used(g.p, 0), 20LL << 30);
	int64_t started = 0;
	assert_int_equal(play_process(g.p, 10, &started), 0);
	assert_int_equal(play_process(g.p, 20, &started), -1);
	close_stage(&g);
}

static void test_energy_is_power_over_time(void **state)
{
	(void)state;
	/* Half of the span of power in 0.4 of the time: 60 W and 230 W in turns. */
	struct stage g = open_stage(HEAD "at 0s load a card 0 sm 50 on 400ms off 600ms\n"
					 "at 10m energy-reset card 0\n"
					 "at 700100ms energy-reset card 0\n",
		false);
	play_advance(g.p, 0, 0);
	assert_true(play_energy_mj(g.p, 0) == 0);
	assert_int_equal(play_power_mw(g.p, 0), 230000);
	play_advance(g.p, 100000, 0);
	assert_true(fabs(play_energy_mj(g.p, 0) - 23000) < 0.001);
	play_advance(g.p, 1 * SECOND, 0);
	assert_true(fabs(play_energy_mj(g.p, 0) - 128000) < 0.001);
	play_advance(g.p, 500 * SECOND, 0);
	assert_true(fabs(play_energy_mj(g.p, 0) - 500 * 128000.0) < 0.001);
	play_advance(g.p, 600 * SECOND, 0);
	assert_true(fabs(play_energy_mj(g.p, 0)) < 0.001);
	play_advance(g.p, 601 * SECOND, 0);
	assert_true(fabs(play_energy_mj(g.p, 0) - 128000) < 0.001);
	/* A reset between two samples. */
	play_advance(g.p, 700150000, 0);
	assert_true(fabs(play_energy_mj(g.p, 0) - 230 * 50) < 0.001);
	close_stage(&g);
}

static void test_the_sum_of_utilisation_is_exact(void **state)
{
	(void)state;
	struct stage g = open_stage(HEAD "at 0s load a card 0 sm 37\n"
					 "at 1s load a card 0 sm 90 on 500ms off 500ms\n",
		false);
	for (int64_t t = 0; t < SECOND; t += 77777) {
		play_advance(g.p, t, 0);
		assert_int_equal(play_util_sum(g.p, 0), 37 * t);
	}
	play_advance(g.p, 5 * SECOND, 0);
	assert_int_equal(play_util_sum(g.p, 0), 37 * SECOND + 4 * 45 * SECOND);
	close_stage(&g);
}

/* One long jump sees what many short steps see. */
static void test_jumping_and_walking_agree(void **state)
{
	(void)state;
	static const char text[] = "repeat 7m\n" HEAD "at 0s hold a card 0 memory 1GiB\n"
				   "at 3s load a card 0 sm 40\n"
				   "at 100s load b card 0 sm 33 on 700ms off 1100ms\n"
				   "at 130s load b card 0 sm 0\n"
				   "at 200s lost card 0 until 230s\n"
				   "at 300s exit a\n";
	struct stage walk = open_stage(text, false), jump = open_stage(text, false);
	for (int64_t t = 0; t <= 3000 * SECOND; t += 777777)
		play_advance(walk.p, t, 0);
	play_advance(walk.p, 3000 * SECOND, 0);
	play_advance(jump.p, 3000 * SECOND, 0);
	assert_true(play_energy_mj(walk.p, 0) > 1e5);
	assert_true(play_energy_mj(walk.p, 0) == play_energy_mj(jump.p, 0));
	assert_int_equal(play_util_sum(walk.p, 0), play_util_sum(jump.p, 0));
	assert_int_equal(play_ring_size(walk.p, 0), 60);
	assert_int_equal(play_ring_size(jump.p, 0), 60);
	for (size_t i = 0; i < 60; i++)
		assert_memory_equal(play_ring_at(walk.p, 0, i), play_ring_at(jump.p, 0, i),
			sizeof(struct play_sample));
	close_stage(&walk);
	close_stage(&jump);
}

static void test_lives(void **state)
{
	(void)state;
	struct stage g =
		open_stage("repeat 1m\ncard 0 uuid G name A memory 8GiB\n"
			   "process a pid 10 started -2h\nprocess z pid 30 dead\n"
			   "at 5s hold a card 0 memory 1GiB\nat 5s hold z card 0 memory 1GiB\n"
			   "at 20s exit a\nat 40s start a\nat 50s exit a\n",
			false);
	int64_t started = 0;
	play_advance(g.p, 4 * SECOND, 0);
	assert_int_equal(play_process(g.p, 10, &started), -1);
	play_advance(g.p, 5 * SECOND, 0);
	assert_int_equal(play_process(g.p, 10, &started), 0);
	assert_int_equal(started, -7200 * SECOND);
	assert_int_equal(play_process(g.p, 30, &started), -1); /* listed, and unknown */
	struct play_holder holders[2];
	assert_int_equal(play_holders(g.p, 0, holders, 2), 2);
	play_advance(g.p, 41 * SECOND, 0);
	assert_int_equal(play_process(g.p, 10, &started), 0);
	assert_int_equal(started, 40 * SECOND);
	play_advance(g.p, 66 * SECOND, 0); /* the next round */
	assert_int_equal(play_process(g.p, 10, &started), 0);
	assert_int_equal(started, 65 * SECOND);
	close_stage(&g);
}

static void test_faults(void **state)
{
	(void)state;
	struct stage g = open_stage("repeat 1m\n" HEAD "at 1s fail nvmlX* code 3\n"
				    "at 2s fail nvmlXY card 1 code 999 until 4s\n"
				    "at 2s slow nvmlZ 200ms until 3s\n"
				    "at 2s hang nvmlZ until 1m\n",
		false);
	play_advance(g.p, SECOND - 1, 0);
	assert_null(play_fault(g.p, FAULT_FAIL, "nvmlXY", 1));
	play_advance(g.p, 2 * SECOND, 0);
	assert_int_equal(play_fault(g.p, FAULT_FAIL, "nvmlXY", 1)->code, 999);
	assert_int_equal(play_fault(g.p, FAULT_FAIL, "nvmlXY", 0)->code, 3);
	assert_int_equal(play_fault(g.p, FAULT_FAIL, "nvmlXY", -1)->code, 3);
	assert_null(play_fault(g.p, FAULT_FAIL, "nvmlY", 1));
	assert_int_equal(play_fault(g.p, FAULT_SLOW, "nvmlZ", 1)->slow_us, 200000);
	const struct scenario_fault *hang = play_fault(g.p, FAULT_HANG, "nvmlZ", 1);
	assert_int_equal(play_fault_end(g.p, hang), 60 * SECOND);
	play_advance(g.p, 4 * SECOND, 0);
	assert_int_equal(play_fault(g.p, FAULT_FAIL, "nvmlXY", 1)->code, 3);
	assert_null(play_fault(g.p, FAULT_SLOW, "nvmlZ", 1));
	play_advance(g.p, 60 * SECOND, 0);
	assert_null(play_fault(g.p, FAULT_HANG, "nvmlZ", 1));
	play_advance(g.p, 62 * SECOND, 0);
	assert_int_equal(
		play_fault_end(g.p, play_fault(g.p, FAULT_HANG, "nvmlZ", 1)), 120 * SECOND);
	close_stage(&g);
}

static void test_status_and_xid(void **state)
{
	(void)state;
	struct stage g = open_stage(HEAD
		"mig 1 index 4 gi 5 ci 0 uuid M name M memory 10GiB\n"
		"at 1s lost card 1 code 16 until 2s\nat 3s asleep card 0\n"
		"at 4s vanish card 1 until 5s\nat 1s xid 79 card 1\nat 1s xid 13 card 0\n",
		false);
	int code = -1;
	play_advance(g.p, 1 * SECOND, 0);
	assert_int_equal(play_status(g.p, 1, &code), CARD_STATUS_LOST);
	assert_int_equal(code, 16);
	assert_int_equal(play_status(g.p, 2, &code), CARD_STATUS_LOST); /* its instance */
	uint64_t seen = 0;
	uint32_t card = 9;
	int64_t xid = 0;
	assert_true(play_xid(g.p, &seen, &card, &xid));
	assert_int_equal(card, 1);
	assert_int_equal(xid, 79);
	assert_true(play_xid(g.p, &seen, &card, &xid));
	assert_int_equal(xid, 13);
	assert_false(play_xid(g.p, &seen, &card, &xid));
	play_advance(g.p, 2 * SECOND, 0);
	assert_int_equal(play_status(g.p, 1, &code), CARD_STATUS_OK);
	play_advance(g.p, 4 * SECOND, 0);
	assert_int_equal(play_status(g.p, 0, &code), CARD_STATUS_ASLEEP);
	assert_int_equal(play_status(g.p, 1, &code), CARD_STATUS_LOST);
	assert_true(play_quirks(g.p, 1)->vanished);
	close_stage(&g);
}

static void test_steps_and_suspends_move_a_virtual_clock(void **state)
{
	(void)state;
	struct stage g = open_stage("start 2026-11-02T08:00:00Z\n" HEAD "at 10s step -1h\n"
				    "at 20s suspend 2h\n",
		true);
	struct clock clock;
	clock_init_virtual(&clock, 0);
	int64_t origin = 3600 * SECOND, start = 1793606400 * SECOND;
	play_follow(g.p, &clock, origin);
	assert_int_equal(clock_now(&clock).wall_us, start);
	clock_advance(&clock, 11 * SECOND);
	play_follow(g.p, &clock, origin);
	assert_int_equal(clock_now(&clock).wall_us, start + 11 * SECOND - 3600 * SECOND);
	/* Stamps keep the wall clock of their time: 10 s before the step, 10.167 s after it. */
	assert_int_equal(play_ring_at(g.p, 0, 60 - 7)->wall_us, start + 10 * SECOND);
	assert_int_equal(
		play_ring_at(g.p, 0, 61 - 7)->wall_us, start + 10166666 - 3600 * SECOND);
	clock_advance(&clock, 14 * SECOND); /* to 25 s: five seconds after it fell asleep */
	assert_int_equal(play_follow(g.p, &clock, origin), (25 + 7200) * SECOND);
	struct moment now = clock_now(&clock);
	assert_int_equal(now.boot_us, origin + (25 + 7200) * SECOND);
	assert_int_equal(now.boot_us - now.mono_us, 7200 * SECOND);
	assert_int_equal(play_ring_at(g.p, 0, 0)->t_us, (20 + 7200) * SECOND + 166666);
	/* Somebody else who follows the same clock changes nothing. */
	struct play *other = NULL;
	assert_int_equal(play_open(&other, g.s, true, NULL), 0);
	play_follow(other, &clock, origin);
	assert_int_equal(clock_now(&clock).boot_us, now.boot_us);
	assert_int_equal(clock_now(&clock).wall_us, now.wall_us);
	play_close(other);
	close_stage(&g);
}

static void test_a_real_clock_is_left_alone(void **state)
{
	(void)state;
	struct stage g = open_stage("start 2026-11-02T08:00:00Z\n" HEAD "at 0s step -1h\n"
				    "at 0s suspend 2h\n",
		false);
	struct clock clock;
	clock_init_real(&clock);
	struct moment now = clock_now(&clock);
	play_follow(g.p, &clock, now.boot_us - 30 * SECOND);
	assert_int_equal(play_ring_size(g.p, 0), 60);
	int64_t off = play_wall(g.p, 30 * SECOND) - now.wall_us;
	assert_true(off > -10 * SECOND && off < 10 * SECOND);
	close_stage(&g);
}

static void test_mig_adds_up_in_its_card(void **state)
{
	(void)state;
	struct stage g = open_stage(HEAD
		"mig 0 index 1 gi 5 ci 0 uuid M1 name M memory 10GiB\n"
		"mig 0 index 4 gi 6 ci 0 uuid M4 name M memory 10GiB\n"
		"at 0s hold a mig 0/4 memory 3GiB\nat 0s hold b mig 0/1 memory 2GiB\n"
		"at 0s load a mig 0/4 sm 20\nat 0s load b mig 0/1 sm 30\nat 2s exit b\n",
		false);
	play_advance(g.p, 1 * SECOND, 0);
	struct play_holder holders[4];
	assert_int_equal(play_holders(g.p, 3, holders, 4), 1);
	assert_int_equal(play_holders(g.p, 0, holders, 4), 2);
	assert_int_equal(holders[0].card, 2);
	assert_int_equal(play_memory_used(g.p, 0), 5LL << 30);
	assert_int_equal(play_power_mw(g.p, 0), 60000 + 340000 / 2);
	play_advance(g.p, 2 * SECOND, 0);
	assert_int_equal(play_power_mw(g.p, 0), 60000 + 340000 / 5);
	close_stage(&g);
}

static void test_the_ring_of_power(void **state)
{
	(void)state;
	/* Half of the span of power from 4 s on; off from 5.1 s to 5.5 s; a ring of use that is
	 * shorter than the one of power. */
	struct stage g = open_stage("ring 1s\n" HEAD "at 4s load a card 0 sm 50\n"
				    "at 5100ms asleep card 0 until 5500ms\n",
		false);
	struct play_power powers[POWER_RING_MAX];
	play_advance(g.p, 50000, 0);
	assert_int_equal(play_power_ring(g.p, 0, powers), 3);
	play_advance(g.p, 4 * SECOND + 30000, 1000 * SECOND);
	assert_int_equal(play_power_ring(g.p, 0, powers), POWER_RING_MAX);
	assert_int_equal(powers[0].t_us, 4020000 - 118 * 20000);
	assert_int_equal(powers[0].mw, 60000);
	assert_int_equal(powers[116].mw, 60000);
	assert_int_equal(powers[117].t_us, 4 * SECOND);
	assert_int_equal(powers[117].mw, 230000);
	assert_int_equal(powers[118].wall_us, 1004020000);
	assert_int_equal(play_ring_size(g.p, 0), 6);
	/* Nothing while it is asleep. */
	play_advance(g.p, 6 * SECOND, 0);
	size_t n = play_power_ring(g.p, 0, powers), before = n - 1;
	assert_int_equal(n, POWER_RING_MAX - 20);
	while (powers[before].t_us >= 5500000)
		before--;
	assert_int_equal(powers[before].t_us, 5080000);
	close_stage(&g);
}

static void test_odd_answers(void **state)
{
	(void)state;
	struct stage g = open_stage(HEAD
		"at 1s zero-use card 0 until 2s\n"
		"at 3s zero-use card 0 call nvmlDeviceGetProcessUtilization\n"
		"at 4s zero-use card 0 call nvmlDeviceGetProcessesUtilizationInfo until 5s\n"
		"at 1s power-factor card 0 10 until 2s\nat 1s garbage card 0 until 2s\n",
		false);
	static const unsigned zero[] = { 0, 3, 0, 1, 2, 0 };
	for (int t = 0; t < 6; t++) {
		play_advance(g.p, t * SECOND, 0);
		assert_int_equal(play_quirks(g.p, 0)->zero_use, zero[t]);
		assert_int_equal(play_quirks(g.p, 0)->power_factor, t == 1 ? 10 : 1);
		assert_int_equal(play_quirks(g.p, 0)->garbage, t == 1);
		assert_int_equal(play_power_mw(g.p, 0), 60000);
	}
	close_stage(&g);
}

static uint32_t pid_in_file; /* 0: there is no file */

static uint32_t read_pid(const char *file)
{
	assert_string_equal(file, "key");
	return pid_in_file;
}

static const char *directory(const char *name)
{
	(void)name;
	return "/a/directory";
}

static void test_pids_from_files(void **state)
{
	(void)state;
	struct stage g = { 0 };
	static const char text[] = HEAD "process f pid file key\nat 1s start f\n"
					"at 2s hold f card 0 memory 3GiB\nat 4s exit f\n"
					"at 6s hold f card 0 memory 1GiB\n";
	assert_int_equal(scenario_parse(&g.s, "x", text, sizeof(text) - 1, NULL), 0);
	assert_int_equal(scenario_resolve(g.s, directory, NULL), 0);
	assert_int_equal(play_open(&g.p, g.s, true, NULL), 0);
	struct play_holder holders[2];
	play_advance(g.p, 1 * SECOND, 0);
	pid_in_file = 50;
	play_read_pids(g.p, read_pid); /* it is on no card yet */
	assert_int_equal(play_pid(g.p, 2), 0);
	play_advance(g.p, 2 * SECOND, 0);
	assert_int_equal(play_holders(g.p, 0, holders, 2), 0);
	assert_int_equal(play_memory_used(g.p, 0), 0);
	play_read_pids(g.p, read_pid);
	pid_in_file = 60;
	play_read_pids(g.p, read_pid); /* once a life */
	assert_int_equal(play_pid(g.p, 2), 50);
	assert_int_equal(play_holders(g.p, 0, holders, 2), 1);
	assert_int_equal(play_memory_used(g.p, 0), 3LL << 30);
	play_advance(g.p, 6 * SECOND, 0);
	assert_int_equal(play_holders(g.p, 0, holders, 2), 0);
	play_read_pids(g.p, read_pid);
	assert_int_equal(play_pid(g.p, 2), 60);
	assert_int_equal(play_pid(g.p, 0), 10);
	close_stage(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_samples_at_exact_times),
		cmocka_unit_test(test_the_ring_forgets),
		cmocka_unit_test(test_duty_cycle_and_process_use),
		cmocka_unit_test(test_turns_end_at_exact_times),
		cmocka_unit_test(test_holders_and_memory),
		cmocka_unit_test(test_energy_is_power_over_time),
		cmocka_unit_test(test_the_sum_of_utilisation_is_exact),
		cmocka_unit_test(test_jumping_and_walking_agree),
		cmocka_unit_test(test_lives),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_status_and_xid),
		cmocka_unit_test(test_steps_and_suspends_move_a_virtual_clock),
		cmocka_unit_test(test_a_real_clock_is_left_alone),
		cmocka_unit_test(test_mig_adds_up_in_its_card),
		cmocka_unit_test(test_the_ring_of_power),
		cmocka_unit_test(test_odd_answers),
		cmocka_unit_test(test_pids_from_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
