/* The lines for a person, and the options for Slurm. */
#include "test.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>

#include "render/track.h"

#define GIB (1LL << 30)
#define MIB (1LL << 20)

/* A run on one of two cards. */
static struct track_card card = {
	.id = { .name = "Card", .mig_index = -1, .mem_total_bytes = 80 * GIB },
	.max_tree_bytes = 10 * GIB,
	.active_s = 700.5,
	.idle_held_s = 12
};

static struct track_result a_run(void)
{
	struct track_result r = { .elapsed_s = 725.25,
		.exited = true,
		.ram_capacity_bytes = 64 * GIB,
		.ram_limit_bytes = -1,
		.core_limit = -1,
		.core_count = 8,
		.expected_cores = 8,
		.gpu_known = true,
		.gpu_count = 2,
		.gpu_active_s = 700.5,
		.gpu_idle_held_s = 12,
		.cards = &card,
		.n_cards = 1 };
	r.ram[TRACK_COMBINED].total_bytes = r.ram_charged_bytes = 3 * GIB;
	r.cpu[TRACK_COMBINED] = (struct track_cpu){ 198, 101 };
	r.user_s[TRACK_COMBINED] = 59.5;
	r.gpu_ram[TRACK_COMBINED] = 10 * GIB;
	return r;
}

static const struct track_style style = {
	.ram_unit = "auto", .gpu_ram_unit = "auto", .time_unit = "auto", .advice = true
};

static void check_text(
	const struct track_result *r, const struct track_style *as, const char *expected)
{
	struct str out = { 0 };
	track_render(&out, r, as);
	assert_string_equal(str_text(&out), expected);
	str_finish(&out);
}

static void test_a_run_with_a_card(void **state)
{
	struct track_result r = a_run();
	(void)state;
	check_text(&r, &style,
		"Time        12 min 5 s; exit status 0\n"
		"CPU         59.50 s; 1.01 cores on average, 1.98 at most, of 8\n"
		"RAM         3.0 GiB at most, of 64.0 GiB\n"
		"GPU memory  10.0 GiB at most, of 80.0 GiB on 1 card\n"
		"GPU time    active 11 min 40 s, idle-held 12.00 s\n"
		"Slurm       --mem=3700M --cpus-per-task=2 --gres=gpu:1 --time=00:15:00 (from "
		"1 run)\n");
}

/* The line of memory says why the advice is more than the total. */
static void test_shared_files(void **state)
{
	struct track_result r = a_run();
	struct str out = { 0 };
	(void)state;
	r.ram_charged_bytes = 5 * GIB;
	track_render(&out, &r, &style);
	assert_non_null(strstr(str_text(&out), "RAM         3.0 GiB at most, of 64.0 GiB; 5.0 "
					       "GiB with shared files whole\n"));
	assert_non_null(strstr(str_text(&out), "Slurm       --mem=6200M "));
	str_finish(&out);
}

static void test_units_that_were_asked_for(void **state)
{
	struct track_result r = a_run();
	const struct track_style as = {
		.ram_unit = "megabytes", .gpu_ram_unit = "gibibytes", .time_unit = "hours"
	};
	(void)state;
	check_text(&r, &as,
		"Time        0.201 hours; exit status 0\n"
		"CPU         0.017 hours; 1.01 cores on average, 1.98 at most, of 8\n"
		"RAM         3221.225 megabytes at most, of 68719.477 megabytes\n"
		"GPU memory  10.000 gibibytes at most, of 80.000 gibibytes on 1 card\n"
		"GPU time    active 0.195 hours, idle-held 0.003 hours\n");
}

/* The two lines about cards. */
static void check_gpu(const struct track_result *r, const char *memory, const char *time)
{
	char expected[400];
	struct str out = { 0 };
	snprintf(expected, sizeof(expected), "GPU memory  %s\nGPU time    %s\nSlurm ", memory,
		time);
	track_render(&out, r, &style);
	assert_non_null(strstr(str_text(&out), expected));
	str_finish(&out);
}

static void test_why_there_is_nothing_about_cards(void **state)
{
	struct track_result r = a_run();
	(void)state;
	r.n_cards = 0;
	r.gpu_ram[TRACK_COMBINED] = 0;
	r.gpu_active_s = r.gpu_idle_held_s = 0;
	check_gpu(&r,
		"none: no card was used; this host has 2, which CUDA_VISIBLE_DEVICES or "
		"permissions hide",
		"none");
	r.gpu_ram[TRACK_COMBINED] = -1;
	r.gpu_active_s = r.gpu_idle_held_s = NAN;
	check_gpu(&r, "unknown: the driver does not report it",
		"active unknown, idle-held unknown");
	r.gpu_known = false;
	check_gpu(&r, "not read", "not read");
	snprintf(r.gpu_note, sizeof(r.gpu_note), "no driver is loaded (no file); load it");
	check_gpu(&r, "unknown: no driver is loaded", "unknown");
}

static void check_begin(const struct track_result *r, const char *expected)
{
	struct str out = { 0 };
	track_render(&out, r, &style);
	assert_memory_equal(str_text(&out), expected, strlen(expected));
	str_finish(&out);
}

static void test_how_it_ended(void **state)
{
	struct track_result r = a_run();
	(void)state;
	r.elapsed_s = 1.5;
	r.exit_status = SIGKILL; /* as from wait(2) */
	check_begin(&r, "Time        1.50 s; killed by signal 9 (Killed)\n");
	r.exit_status = 3 << 8;
	check_begin(&r, "Time        1.50 s; exit status 3\n");
	r.exit_status = -1;
	check_begin(&r, "Time        1.50 s\n");
	r.exited = false;
	check_begin(&r, "Time        1.50 s; still running\n");
}

static void test_advice_is_rounded_up(void **state)
{
	static const struct {
		int64_t bytes;
		double seconds;
		const char *mem, *time;
	} cases[] = {
		{ 0, 0, "100M", "00:05:00" },
		{ 1 * MIB, 1, "100M", "00:05:00" },
		{ 84 * MIB, 251, "200M", "00:10:00" },
		{ 5 * GIB, 3000, "6200M", "01:00:00" },
		{ 10 * GIB, 3001, "12G", "01:15:00" },
		{ 100 * GIB, 100 * 3600, "120G", "120:00:00" },
		{ -1, 60, "", "00:05:00" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct track_advice advice;
		struct track_result r = a_run();
		r.ram_charged_bytes = cases[i].bytes;
		r.elapsed_s = cases[i].seconds;
		track_advise(&advice, &r, &style);
		assert_string_equal(advice.mem, cases[i].mem);
		assert_string_equal(advice.time, cases[i].time);
	}
}

static void test_advice_names_its_basis(void **state)
{
	struct track_advice advice;
	struct track_result r = a_run();
	struct track_style followed = style;
	(void)state;
	followed.followed = true;
	track_advise(&advice, &r, &style);
	assert_string_equal(advice.basis, "from 1 run");
	track_advise(&advice, &r, &followed);
	assert_string_equal(advice.basis, "from a part of 1 run");
	r.exit_status = 1 << 8;
	track_advise(&advice, &r, &style);
	assert_string_equal(advice.basis, "from 1 run, which failed");
}

/* A tick of CPU time in a run of some milliseconds is not several cores. */
static void test_advice_does_not_believe_single_ticks(void **state)
{
	struct track_advice advice;
	struct track_result r = a_run();
	(void)state;
	r.elapsed_s = 0.004;
	r.cpu[TRACK_COMBINED].max_sum_pct = 250;
	track_advise(&advice, &r, &style);
	assert_int_equal(advice.cpus, 1);
	r.elapsed_s = 0.5;
	track_advise(&advice, &r, &style);
	assert_int_equal(advice.cpus, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_run_with_a_card),
		cmocka_unit_test(test_shared_files),
		cmocka_unit_test(test_units_that_were_asked_for),
		cmocka_unit_test(test_why_there_is_nothing_about_cards),
		cmocka_unit_test(test_how_it_ended),
		cmocka_unit_test(test_advice_is_rounded_up),
		cmocka_unit_test(test_advice_names_its_basis),
		cmocka_unit_test(test_advice_does_not_believe_single_ticks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
