/* What the driver writes is decoded without trust: value types, order, stamps, layouts; and
 * what the kernel says of cards. */
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver/nvml/nvml_decode.h"
#include "driver/nvml/nvml_host.h"
#include "driver/nvml/nvml_ring.h"

static struct nvml_sample sample(uint64_t wall_us, const void *value, size_t size)
{
	struct nvml_sample s = { .wall_us = wall_us };
	memset(s.value, 0xEE, sizeof(s.value)); /* what a smaller type does not write */
	memcpy(s.value, value, size);
	return s;
}

#define SAMPLE(type, number) sample(1, &(type){ number }, sizeof(type))

static void test_memory_that_no_card_has_is_unknown(void **state)
{
	(void)state;
	assert_int_equal(nvml_decode_memory(0), 0);
	assert_int_equal(nvml_decode_memory(80ULL << 30), 80LL << 30);
	assert_int_equal(nvml_decode_memory(INT64_MAX), UNKNOWN_BYTES);
	assert_int_equal(nvml_decode_memory(NVML_UNKNOWN_MEMORY), UNKNOWN_BYTES);
}

static void test_values_are_read_by_their_type(void **state)
{
	(void)state;
	struct nvml_sample s = SAMPLE(double, 12.5);
	assert_true(nvml_decode_value(&s, NVML_VALUE_DOUBLE) == 12.5);
	s = SAMPLE(uint32_t, 42);
	assert_true(nvml_decode_value(&s, NVML_VALUE_U32) == 42);
	s = SAMPLE(unsigned long, 43);
	assert_true(nvml_decode_value(&s, NVML_VALUE_ULONG) == 43);
	s = SAMPLE(uint64_t, 44);
	assert_true(nvml_decode_value(&s, NVML_VALUE_U64) == 44);
	s = SAMPLE(int64_t, -45);
	assert_true(nvml_decode_value(&s, NVML_VALUE_S64) == -45);
	s = SAMPLE(int32_t, -46);
	assert_true(nvml_decode_value(&s, NVML_VALUE_S32) == -46);
	s = SAMPLE(uint16_t, 47);
	assert_true(nvml_decode_value(&s, NVML_VALUE_U16) == 47);
	assert_true(isnan(nvml_decode_value(&s, 99)));
}

static struct nvml_sample at(uint64_t wall_us, uint32_t pct)
{
	return sample(wall_us, &pct, sizeof(pct));
}

static void test_samples_are_sorted_and_filtered(void **state)
{
	(void)state;
	const int64_t seen = 1000, now = 2000;
	const struct nvml_sample from[] = {
		at(1500, 50), at(1200, 20), at(1000, 1), /* seen already */
		at(1300, 101),				 /* no percentage */
		at(2000 + NVML_AHEAD_US, 30),		 /* just ahead: the card's clock */
		at(2001 + NVML_AHEAD_US, 31),		 /* from the future */
		at(UINT64_MAX, 32),			 /* garbage */
		at(1400, 0xFFFFFFFF), at(1400, 100),	 /* both ends */
	};
	struct util_sample to[sizeof(from) / sizeof(from[0])];
	const struct nvml_samples raw = { from, sizeof(from) / sizeof(from[0]),
		NVML_VALUE_U32 };
	size_t n = nvml_decode_samples(&raw, seen, now, to);
	assert_int_equal(n, 4);
	const int64_t stamps[] = { 1200, 1400, 1500, 2000 + NVML_AHEAD_US };
	const double percents[] = { 20, 100, 50, 30 };
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(to[i].wall_us, stamps[i]);
		assert_true(to[i].util_pct == percents[i]);
	}
}

static size_t decode_one(const struct nvml_sample *s, int type, struct util_sample *to)
{
	return nvml_decode_samples(&(struct nvml_samples){ s, 1, type }, 0, 10, to);
}

static void test_negative_and_not_a_number_are_dropped(void **state)
{
	(void)state;
	struct util_sample to[1];
	struct nvml_sample s = SAMPLE(int32_t, -1);
	assert_int_equal(decode_one(&s, NVML_VALUE_S32, to), 0);
	s = at(0, 50); /* a place of the ring that was not filled yet */
	assert_int_equal(decode_one(&s, NVML_VALUE_U32, to), 0);
	s = SAMPLE(double, NAN);
	assert_int_equal(decode_one(&s, NVML_VALUE_DOUBLE, to), 0);
}

static void test_the_written_stride_is_measured(void **state)
{
	(void)state;
	unsigned char bytes[8 * NVML_ENTRY_LARGEST];
	for (size_t stride = 16; stride <= 32; stride += 8)
		for (size_t n = 1; n <= 8; n++) {
			memset(bytes, NVML_FILL, sizeof(bytes));
			memset(bytes, 0, n * stride);
			assert_int_equal(
				nvml_decode_stride(bytes, sizeof(bytes), n, 24), stride);
		}
	/* Something else was written: what the symbol promises is believed. */
	memset(bytes, NVML_FILL, sizeof(bytes));
	memset(bytes, 0, 20);
	assert_int_equal(nvml_decode_stride(bytes, sizeof(bytes), 1, 24), 24);
}

static void test_lists_are_merged(void **state)
{
	(void)state;
	struct card_process to[4];
	size_t n = 0;
	n = nvml_decode_merge_process(to, n, 7, PROCESS_COMPUTE, 100);
	n = nvml_decode_merge_process(to, n, 8, PROCESS_COMPUTE, NVML_UNKNOWN_MEMORY);
	n = nvml_decode_merge_process(to, n, 0, PROCESS_COMPUTE, 5); /* nobody */
	n = nvml_decode_merge_process(to, n, 7, PROCESS_GRAPHICS, 300);
	n = nvml_decode_merge_process(to, n, 7, PROCESS_MPS, 200);
	n = nvml_decode_merge_process(to, n, 8, PROCESS_GRAPHICS, 50);
	assert_int_equal(n, 2);
	assert_int_equal(to[0].kind, PROCESS_COMPUTE | PROCESS_GRAPHICS | PROCESS_MPS);
	assert_int_equal(to[0].mem_bytes, 300);
	assert_int_equal(to[1].mem_bytes, 50); /* known is better than unknown */
	n = nvml_decode_merge_process(to, n, 9, PROCESS_COMPUTE, NVML_UNKNOWN_MEMORY);
	assert_int_equal(to[2].mem_bytes, UNKNOWN_BYTES);
	n = nvml_decode_merge_process(to, n, 9, PROCESS_COMPUTE, INT64_MAX); /* garbage */
	assert_int_equal(to[2].mem_bytes, UNKNOWN_BYTES);
}

static bool is_use(uint64_t wall_us, uint32_t sm_pct)
{
	struct nvml_process_sample_v1 from = { .wall_us = wall_us, .pid = 1, .sm_pct = sm_pct };
	struct process_util to;
	return nvml_decode_use(&from, 100, 200, &to);
}

static void test_use_must_be_plausible(void **state)
{
	(void)state;
	assert_true(is_use(150, 100));
	assert_false(is_use(150, 101));
	assert_false(is_use(100, 5));
	assert_false(is_use(201 + NVML_AHEAD_US, 5));
	assert_false(is_use(UINT64_MAX, 5));
}

static void test_use_of_every_engine(void **state)
{
	(void)state;
	struct process_util to;
	const struct nvml_process_sample_v1 whole = { 150, 7, 60, 50, 40, 30, 20, 10 };
	assert_true(nvml_decode_use(&whole, 100, 200, &to));
	assert_int_equal(to.pid, 7);
	assert_int_equal(to.wall_us, 150);
	assert_true(to.sm_pct == 60);
	for (int i = 0; i < ENGINE_COUNT; i++)
		assert_true(to.engine_pct[i] == 50 - 10 * i);
	/* Garbage in one leaves the others. */
	const struct nvml_process_sample_v1 odd = { 150, 7, 60, 101, 40, UINT32_MAX, 20, 10 };
	assert_true(nvml_decode_use(&odd, 100, 200, &to));
	assert_true(isnan(to.engine_pct[ENGINE_MEMORY]) && to.engine_pct[ENGINE_ENCODER] == 40);
	assert_true(isnan(to.engine_pct[ENGINE_DECODER]) && to.engine_pct[ENGINE_JPEG] == 20);
}

static void test_older_records_are_widened_in_place(void **state)
{
	(void)state;
	enum { N = 5 };
	struct nvml_process_sample_v1 records[N];
	for (uint32_t i = 0; i < N; i++) {
		struct nvml_process_sample old = { i + 1, 150 + i, i, 10 + i, 20 + i, 30 + i };
		memcpy((char *)records + i * sizeof(old), &old, sizeof(old));
	}
	nvml_decode_widen_uses(records, N);
	for (uint32_t i = 0; i < N; i++) {
		struct process_util to;
		assert_true(nvml_decode_use(&records[i], 100, 200, &to));
		assert_int_equal(to.pid, i + 1);
		assert_true(to.wall_us == 150 + i && to.sm_pct == i);
		assert_true(to.engine_pct[ENGINE_MEMORY] == 10 + i);
		assert_true(to.engine_pct[ENGINE_ENCODER] == 20 + i);
		assert_true(to.engine_pct[ENGINE_DECODER] == 30 + i);
		assert_true(isnan(to.engine_pct[ENGINE_JPEG]));
		assert_true(isnan(to.engine_pct[ENGINE_FLOW]));
	}
}

/* ---- the ring ---- */

static void test_the_clock_of_stamps(void **state)
{
	(void)state;
	const int64_t s = 1000000;
	const struct moment now = {
		.wall_us = 1700000000 * s, .boot_us = 9000 * s, .mono_us = 2000 * s
	};
	assert_int_equal(
		nvml_ring_stamps_learn(NVML_STAMPS_UNKNOWN, 0, &now), NVML_STAMPS_UNKNOWN);
	enum nvml_stamps stamps =
		nvml_ring_stamps_learn(NVML_STAMPS_UNKNOWN, now.wall_us, &now);
	assert_int_equal(stamps, NVML_STAMPS_WALL);
	assert_int_equal(nvml_ring_stamps_to_wall(stamps, &now), 0);
	stamps = nvml_ring_stamps_learn(NVML_STAMPS_UNKNOWN, 1999 * s, &now);
	assert_int_equal(stamps, NVML_STAMPS_MONOTONIC);
	assert_int_equal(1999 * s + nvml_ring_stamps_to_wall(stamps, &now), now.wall_us - s);
	stamps = nvml_ring_stamps_learn(NVML_STAMPS_UNKNOWN, 8999 * s, &now);
	assert_int_equal(stamps, NVML_STAMPS_BOOT);
	assert_int_equal(8999 * s + nvml_ring_stamps_to_wall(stamps, &now), now.wall_us - s);
	/* An old stamp fits both clocks: what is known stays. */
	assert_int_equal(nvml_ring_stamps_learn(stamps, 1500 * s, &now), NVML_STAMPS_BOOT);
}

static void test_a_ring_is_learned_from_what_it_gives(void **state)
{
	(void)state;
	enum { N = 100 };
	struct util_sample all[N];
	for (int i = 0; i < N; i++) /* one sample is missing */
		all[i] = (struct util_sample){ .wall_us = 200000LL * (i + (i > 50)) };
	struct nvml_ring ring = { 0 };
	assert_true(nvml_ring_wants_whole(&ring, 1));
	nvml_ring_learn(&ring, all, 60, 1);
	assert_int_equal(ring.period_us, 200000);
	assert_int_equal(nvml_ring_span_us(&ring), 0); /* it may grow */
	assert_false(nvml_ring_wants_whole(&ring, 500000));
	assert_true(nvml_ring_wants_whole(&ring, 2000000));
	ring.new_since = 10;
	nvml_ring_learn(&ring, all, 70, 2000000);
	assert_int_equal(nvml_ring_span_us(&ring), 0); /* and did */
	assert_false(nvml_ring_wants_whole(&ring, 20000000));
	ring.new_since = 30;
	nvml_ring_learn(&ring, all, 72, 40000000);
	assert_int_equal(nvml_ring_span_us(&ring), 72 * 200000);
	ring.seen_us = 1000000;
	assert_int_equal(nvml_ring_lost(&ring, 72, 1200000), 0);
	assert_int_equal(nvml_ring_lost(&ring, 72, 2000000), 4);
	assert_int_equal(nvml_ring_lost(&ring, 71, 2000000), 0); /* not all of them are new */
	/* One that spans enough is not asked about any more. */
	struct nvml_ring large = { 0 };
	nvml_ring_learn(&large, all, 100, 1);
	assert_int_equal(nvml_ring_span_us(&large), 20000000);
	assert_false(nvml_ring_wants_whole(&large, 100000000));
}

/* Some boards take no samples while they are idle: pauses are not periods. */
static void test_the_period_of_a_ring_that_runs_dry(void **state)
{
	(void)state;
	struct util_sample dry[] = { { .wall_us = 0 }, { .wall_us = 4300000 },
		{ .wall_us = 8600000 }, { .wall_us = 8800000 }, { .wall_us = 9000000 } };
	struct nvml_ring ring = { 0 };
	nvml_ring_learn(&ring, dry, 3, 1);
	assert_int_equal(ring.period_us, 0);
	nvml_ring_learn(&ring, dry, 5, 2000000);
	assert_int_equal(ring.period_us, 200000);
	/* Once a second, a little late. */
	struct util_sample slow[] = { { .wall_us = 0 }, { .wall_us = 1002000 },
		{ .wall_us = 2004000 }, { .wall_us = 3006000 } };
	nvml_ring_learn(&ring, slow, 4, 4000000);
	assert_int_equal(ring.period_us, 1000000);
}

/* ---- the kernel's files ---- */

static char root[64];

static void put(const char *path, const char *text)
{
	char whole[256];
	snprintf(whole, sizeof(whole), "%s%s", root, path);
	for (char *slash = whole + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(whole, 0755);
		*slash = '/';
	}
	FILE *file = fopen(whole, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int make_root(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/gua-nvml-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	(void)state;
	char command[128];
	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

static void test_the_module_and_its_version(void **state)
{
	(void)state;
	char version[VERSION_CAP] = "";
	assert_false(nvml_host_has_module(root));
	assert_false(nvml_host_module_version(root, version, sizeof(version)));
	put("/sys/module/nvidia/version", "470.256.02\n");
	assert_true(nvml_host_has_module(root));
	assert_true(nvml_host_module_version(root, version, sizeof(version)));
	assert_string_equal(version, "470.256.02");
	put("/proc/driver/nvidia/version",
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.261.03  Thu Jul 10 "
		"06:05:38 UTC "
		"2025\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n");
	assert_true(nvml_host_module_version(root, version, sizeof(version)));
	assert_string_equal(version, "535.261.03");
	put("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for "
					   "x86_64  590.48.01  Release Build\n");
	assert_true(nvml_host_module_version(root, version, sizeof(version)));
	assert_string_equal(version, "590.48.01");
}

static void test_the_module_s_list_of_cards(void **state)
{
	(void)state;
	struct proc_card gpus[PROC_CARDS_MAX];
	assert_int_equal(nvml_host_cards(root, gpus), 0);
	put("/proc/driver/nvidia/gpus/0000:65:00.0/information",
		"Model: \t\t NVIDIA \x1b[1mX\nGPU UUID: \t GPU-1234\n");
	put("/proc/driver/nvidia/gpus/0000:17:00.0/information",
		"Model: \t\t NVIDIA A40\nGPU UUID: \t GPU-????\n");
	assert_int_equal(nvml_host_cards(root, gpus), 2);
	assert_string_equal(gpus[0].pci, "0000:17:00.0");
	assert_string_equal(gpus[0].name, "NVIDIA A40");
	assert_string_equal(gpus[0].uuid, "");
	assert_string_equal(gpus[1].uuid, "GPU-1234");
	assert_string_equal(gpus[1].name, "NVIDIA \\x1B[1mX");
}

static void test_sleep(void **state)
{
	(void)state;
	struct nvml_host_power p = { 0 };
	const char *pci = "0000:17:00.0";
	assert_false(nvml_host_asleep(&p, root, ""));
	nvml_host_power_close(&p);
	assert_false(nvml_host_asleep(&p, root, pci));
	nvml_host_power_close(&p);
	put("/sys/bus/pci/devices/0000:17:00.0/power/runtime_status", "active\n");
	assert_false(nvml_host_asleep(&p, root, pci));
	put("/sys/bus/pci/devices/0000:17:00.0/power/runtime_status", "suspended\n");
	assert_true(nvml_host_asleep(&p, root, pci));
	put("/sys/bus/pci/devices/0000:17:00.0/power/runtime_status", "active\n");
	assert_false(nvml_host_asleep(&p, root, pci));
	nvml_host_power_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_that_no_card_has_is_unknown),
		cmocka_unit_test(test_values_are_read_by_their_type),
		cmocka_unit_test(test_samples_are_sorted_and_filtered),
		cmocka_unit_test(test_negative_and_not_a_number_are_dropped),
		cmocka_unit_test(test_the_written_stride_is_measured),
		cmocka_unit_test(test_lists_are_merged),
		cmocka_unit_test(test_use_must_be_plausible),
		cmocka_unit_test(test_use_of_every_engine),
		cmocka_unit_test(test_older_records_are_widened_in_place),
		cmocka_unit_test(test_the_clock_of_stamps),
		cmocka_unit_test(test_a_ring_is_learned_from_what_it_gives),
		cmocka_unit_test(test_the_period_of_a_ring_that_runs_dry),
		cmocka_unit_test_setup_teardown(
			test_the_module_and_its_version, make_root, remove_root),
		cmocka_unit_test_setup_teardown(
			test_the_module_s_list_of_cards, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_sleep, make_root, remove_root),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
