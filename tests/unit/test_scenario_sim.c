/* The simulated source: readings, faults and who processes are, on a virtual clock. */
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "driver/source.h"

#define SECOND 1000000LL
#define START_MS (1793606400LL * 1000) /* Mon 2026-11-02 08:00:00 UTC */
#define HEAD                                                                                   \
	"host box\nstart 2026-11-02T08:00:00Z\ndriver 550.1\n"                                 \
	"card 0 uuid GPU-0 name A memory 80GiB reserved 1GiB idle-power 60W max-power 160W\n"  \
	"card 1 uuid GPU-1 name B memory 80GiB\n"                                              \
	"process a pid 10 user alice uid 1001 command \"python a.py\" started -2h\n"           \
	"process b pid 20 user bob kind both\n"

struct stage {
	struct clock clock;
	struct source *source;
	struct err e;
};

static int open_stage(struct stage *g, const char *text)
{
	*g = (struct stage){ 0 };
	char path[] = "/tmp/test_scenario_sim.XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
	clock_init_virtual(&g->clock, 0);
	struct source_options o = {
		.name = "sim", .scenario = path, .root = "", .clock = &g->clock
	};
	int failed = source_open(&g->source, &o, &g->e);
	unlink(path);
	return failed;
}

/* The stage of the running test; its clock is the one that the source has. */
static struct stage *stage(const char *text)
{
	static struct stage g;
	if (open_stage(&g, text) != 0)
		fail_msg("%s", g.e.text);
	return &g;
}

static void drain_at(struct stage *g, double seconds)
{
	int64_t at_us = 3600 * SECOND + llround(seconds * 1e6);
	clock_advance(&g->clock, at_us - clock_now(&g->clock).boot_us);
	assert_int_equal(source_drain(g->source, NULL, &g->e), 0);
	assert_int_equal(source_look(g->source, NULL, &g->e), 0);
}

static void test_what_is_known_at_once(void **state)
{
	(void)state;
	struct stage *g = stage(HEAD);
	assert_string_equal(g->source->hostname, "box");
	assert_string_equal(g->source->driver_version, "550.1");
	assert_int_equal(g->source->n_cards, 2);
	assert_string_equal(g->source->cards[1].id.uuid, "GPU-1");
	assert_int_equal(g->source->cards[0].status, CARD_STATUS_OK);
	assert_int_equal(clock_wall_ms(&g->clock), START_MS);
	struct facility rows[8];
	assert_true(g->source->ops->facilities(g->source, rows, 8) >= 4);
	source_close(g->source);
}

static void test_every_sample_once(void **state)
{
	(void)state;
	struct stage *g = stage(HEAD "at 0s hold a card 0 memory 8GiB\n"
				     "at 0s load a card 0 sm 50\nat 7s load a card 0 sm 0\n");
	const struct card_reading *card = &g->source->cards[0];
	drain_at(g, 5);
	assert_int_equal(card->util_kind, UTIL_RING);
	assert_int_equal(card->n_samples, 31); /* 0 and 30 sixths */
	assert_int_equal(card->samples[30].wall_us, START_MS * 1000 + 5 * SECOND);
	assert_true(card->process_util_known);
	assert_int_equal(card->n_process_utils, 1);
	assert_true(card->process_utils[0].sm_pct == 50);
	assert_true(card->power_mw == 110000 && card->energy_mj == 550000);
	assert_true(card->processes_known);
	assert_int_equal(card->n_processes, 1);
	assert_int_equal(card->processes[0].mem_bytes, 8LL << 30);
	assert_int_equal(card->mem_used_bytes, 8LL << 30);
	drain_at(g, 10);
	assert_int_equal(card->n_samples, 30);
	assert_true(card->process_utils[0].sm_pct == 50.0 * 2 / 5); /* 5 s .. 7 s */
	drain_at(g, 10);
	assert_int_equal(card->n_samples, 0);
	drain_at(g, 40); /* too late: the ring holds ten seconds */
	assert_int_equal(card->n_samples, 60);
	assert_int_equal(card->n_process_utils, 0);
	source_close(g->source);
}

static void test_fallbacks(void **state)
{
	(void)state;
	struct stage *g =
		stage(HEAD "at 0s load card 0 util 50\n"
			   "at 0s fail nvmlDeviceGetSamples card 0 code 3\n"
			   "at 0s fail nvmlDeviceGetTotalEnergyConsumption code 3\n"
			   "at 0s fail nvmlDeviceGetMemoryInfo_v2 code 13\n"
			   "at 0s fail nvmlDeviceGetProcessUtilization code 3\n"
			   "at 5s fail nvmlDeviceGetUtilizationRates code 3\n"
			   "at 5s fail nvmlDeviceGetPowerUsage code 3\n"
			   "at 5s fail nvmlDeviceGetMemoryInfo code 3\n"
			   "at 5s fail nvmlDeviceGetComputeRunningProcesses* code 999\n");
	const struct card_reading *card = &g->source->cards[0];
	drain_at(g, 1);
	drain_at(g, 4);
	assert_int_equal(card->util_kind, UTIL_POLLED);
	assert_int_equal(card->n_samples, 1);
	assert_true(card->samples[0].util_pct == 50);
	assert_int_equal(card->samples[0].wall_us, START_MS * 1000 + 4 * SECOND);
	assert_false(card->process_util_known);
	assert_true(card->energy_mj == 330000);		   /* three seconds of 110 W */
	assert_int_equal(card->mem_used_bytes, 1LL << 30); /* the driver's own included */
	assert_int_equal(g->source->cards[1].util_kind, UTIL_RING);
	drain_at(g, 5);
	assert_int_equal(card->util_kind, UTIL_NONE);
	assert_int_equal(card->n_samples, 0);
	assert_true(isnan(card->energy_mj) && isnan(card->power_mw));
	assert_int_equal(card->mem_used_bytes, UNKNOWN_BYTES);
	assert_false(card->processes_known);
	source_close(g->source);
}

static void test_cards_that_cannot_be_read(void **state)
{
	(void)state;
	struct stage *g =
		stage(HEAD "at 0s hold a card 0 memory 8GiB\n"
			   "at 0s fail nvmlDeviceGetHandleByIndex_v2 card 1 code 4\n"
			   "at 5s lost card 0 code 16 until 10s\nat 20s asleep card 0\n");
	const struct card_reading *card = &g->source->cards[0];
	assert_int_equal(g->source->cards[1].status, CARD_STATUS_DENIED);
	drain_at(g, 6);
	assert_int_equal(card->status, CARD_STATUS_LOST);
	assert_int_equal(card->code, 16);
	assert_int_equal(card->n_samples, 0);
	assert_true(isnan(card->energy_mj));
	assert_false(card->processes_known);
	drain_at(g, 11);
	assert_int_equal(card->status, CARD_STATUS_OK);
	assert_int_equal(
		card->n_samples, 23 + 7); /* 1 1/6 s .. 4 5/6 s are still in the ring */
	drain_at(g, 21);
	assert_int_equal(card->status, CARD_STATUS_ASLEEP);
	source_close(g->source);
}

static void test_no_driver(void **state)
{
	(void)state;
	struct stage *g = stage(HEAD "at 5s fail nvmlInit_v2 code 9 until 10s\n");
	drain_at(g, 4);
	clock_advance(&g->clock, 2 * SECOND);
	assert_int_equal(source_drain(g->source, NULL, &g->e), ERR_WORLD);
	assert_int_equal(source_scan(g->source, &g->e), ERR_WORLD);
	assert_non_null(strstr(g->e.text, "code 9"));
	drain_at(g, 10);
	source_close(g->source);
	struct stage none;
	assert_int_equal(open_stage(&none, HEAD "at 0s fail nvmlInit_v2 code 18\n"), ERR_WORLD);
	assert_null(none.source);
}

static void test_slow_and_hanging_calls_move_a_virtual_clock(void **state)
{
	(void)state;
	struct stage *g = stage(HEAD "at 5s slow nvmlDeviceGetPowerUsage 200ms until 6s\n"
				     "at 10s hang nvmlDeviceGetSamples card 1 until 25s\n");
	drain_at(g, 5); /* one call for each card */
	assert_int_equal(clock_now(&g->clock).boot_us, 3605 * SECOND + 400000);
	drain_at(g, 11);
	assert_int_equal(clock_now(&g->clock).boot_us, 3625 * SECOND);
	source_close(g->source);
}

static void test_who_processes_are(void **state)
{
	(void)state;
	struct stage *g =
		stage(HEAD "process z pid 30 dead\n"
			   "at 0s hold a card 0 memory 1GiB\nat 0s hold z card 0 memory 1GiB\n"
			   "at 10s exit a\nat 20s hold a card 0 memory 1GiB\n");
	struct process_id first, second;
	drain_at(g, 1);
	assert_true(g->source->ops->describe(g->source, 10, &first));
	assert_string_equal(first.user, "alice");
	assert_string_equal(first.command, "python a.py");
	assert_int_equal(first.uid, 1001);
	assert_int_equal(first.started_ms, START_MS - 7200 * 1000);
	assert_false(g->source->ops->describe(g->source, 30, &second));
	assert_false(g->source->ops->describe(g->source, 20, &second)); /* not yet */
	drain_at(g, 11);
	assert_false(g->source->ops->describe(g->source, 10, &second));
	drain_at(g, 21);
	assert_true(g->source->ops->describe(g->source, 10, &second));
	assert_true(second.start_ticks > first.start_ticks);
	assert_int_equal(second.started_ms, START_MS + 20 * 1000);
	source_close(g->source);
}

static void test_mig_instances_are_cards(void **state)
{
	(void)state;
	struct stage *g = stage(HEAD "mig 0 index 3 gi 4 ci 1 uuid MIG-3 name M memory 10GiB\n"
				     "at 0s hold a mig 0/3 memory 1GiB\n");
	assert_int_equal(g->source->n_cards, 2); /* card 1 and the instance */
	const struct card_reading *card = &g->source->cards[1];
	drain_at(g, 1);
	assert_string_equal(card->id.uuid, "MIG-3");
	assert_string_equal(card->id.parent_uuid, "GPU-0");
	assert_int_equal(card->id.gpu_instance, 4);
	assert_int_equal(card->util_kind, UTIL_UNKNOWN);
	assert_int_equal(card->n_samples, 1);
	assert_true(isnan(card->samples[0].util_pct));
	assert_int_equal(card->samples[0].wall_us, (START_MS + 1000) * 1000);
	/* A glance is a reading too; the drain behind it hands it out. */
	assert_int_equal(source_glance(g->source, GLANCE_MEMORY, NULL), 0);
	drain_at(g, 2);
	assert_int_equal(card->n_samples, 2);
	assert_int_equal(card->samples[0].wall_us, (START_MS + 1000) * 1000);
	assert_int_equal(card->samples[1].wall_us, (START_MS + 2000) * 1000);
	assert_true(isnan(card->energy_mj));
	assert_int_equal(card->n_processes, 1);
	assert_int_equal(card->mem_used_bytes, 1LL << 30);
	source_close(g->source);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_known_at_once),
		cmocka_unit_test(test_every_sample_once),
		cmocka_unit_test(test_fallbacks),
		cmocka_unit_test(test_cards_that_cannot_be_read),
		cmocka_unit_test(test_no_driver),
		cmocka_unit_test(test_slow_and_hanging_calls_move_a_virtual_clock),
		cmocka_unit_test(test_who_processes_are),
		cmocka_unit_test(test_mig_instances_are_cards),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
