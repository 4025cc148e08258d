/* What a driver writes into buffers: samples, process lists and processes' use. The first byte
 * is the value type and the number of entries. */
#include "fuzz.h"

#include <math.h>

#include "driver/nvml/nvml_decode.h"

static void check_samples(int type, const uint8_t *data, size_t size)
{
	size_t n = size / sizeof(struct nvml_sample);
	struct nvml_sample *from = calloc(n + 1, sizeof(*from));
	struct util_sample *to = calloc(n + 1, sizeof(*to));
	CHECK(from && to);
	if (n)
		memcpy(from, data, n * sizeof(*from));
	const int64_t seen_us = 1000, now_us = INT64_C(1) << 51;
	const struct nvml_samples raw = { from, n, type };
	size_t kept = nvml_decode_samples(&raw, seen_us, now_us, to);
	CHECK(kept <= n);
	for (size_t i = 0; i < kept; i++) {
		CHECK(to[i].util_pct >= 0 && to[i].util_pct <= 100);
		CHECK(to[i].wall_us > seen_us && to[i].wall_us <= now_us + NVML_AHEAD_US);
		CHECK(i == 0 || to[i].wall_us >= to[i - 1].wall_us);
	}
	free(from);
	free(to);
}

static void check_processes(size_t n, const uint8_t *data, size_t size)
{
	static const size_t layouts[] = { 16, 24, 32 };
	size_t stride = nvml_decode_stride(data, size, n, layouts[n % 3]);
	CHECK(stride == 16 || stride == 24 || stride == 32);
	struct card_process *to = calloc(n + 1, sizeof(*to));
	CHECK(to);
	size_t used = 0;
	for (size_t i = 0; i < n && (i + 1) * stride <= size; i++) {
		uint32_t pid;
		uint64_t bytes;
		memcpy(&pid, data + i * stride, sizeof(pid));
		memcpy(&bytes, data + i * stride + 8, sizeof(bytes));
		size_t before = used;
		used = nvml_decode_merge_process(to, used, pid, PROCESS_COMPUTE, bytes);
		CHECK(used >= before && used <= before + 1);
	}
	for (size_t i = 0; i < used; i++)
		CHECK(to[i].pid != 0 && to[i].mem_bytes >= -1);
	free(to);
}

static void check_uses(const uint8_t *data, size_t size)
{
	size_t n = size / sizeof(struct nvml_process_sample);
	struct nvml_process_sample_v1 *records = calloc(n + 1, sizeof(*records));
	CHECK(records);
	if (n)
		memcpy(records, data, n * sizeof(struct nvml_process_sample));
	nvml_decode_widen_uses(records, n);
	for (size_t i = 0; i < n; i++) {
		struct process_util to;
		if (!nvml_decode_use(&records[i], 1000, INT64_C(1) << 51, &to))
			continue;
		CHECK(to.wall_us > 1000 && to.sm_pct >= 0 && to.sm_pct <= 100);
		for (int k = 0; k < ENGINE_COUNT; k++)
			CHECK(isnan(to.engine_pct[k]) ||
				(to.engine_pct[k] >= 0 && to.engine_pct[k] <= 100));
	}
	free(records);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	check_samples(data[0] % 9, data + 1, size - 1);
	check_processes(data[0], data + 1, size - 1);
	check_uses(data + 1, size - 1);
	return 0;
}
