/* Decodes the driver's buffers. */
#include "driver/nvml/nvml_decode.h"

/* Reads a value of one type from the eight bytes. */
#define VALUE(type)                                                                            \
	({                                                                                     \
		type value_;                                                                   \
		memcpy(&value_, sample->value, sizeof(value_));                                \
		(double)value_;                                                                \
	})

double nvml_decode_value(const struct nvml_sample *sample, int type)
{
	switch (type) {
	case NVML_VALUE_DOUBLE:
		return VALUE(double);
	case NVML_VALUE_U32:
		return VALUE(uint32_t);
	case NVML_VALUE_ULONG:
		return VALUE(unsigned long);
	case NVML_VALUE_U64:
		return VALUE(uint64_t);
	case NVML_VALUE_S64:
		return VALUE(int64_t);
	case NVML_VALUE_S32:
		return VALUE(int32_t);
	case NVML_VALUE_U16:
		return VALUE(uint16_t);
	default:
		return NAN;
	}
}

static int is_between(uint64_t wall_us, int64_t seen_us, int64_t now_us)
{
	return wall_us <= (uint64_t)INT64_MAX && (int64_t)wall_us > seen_us &&
	       (int64_t)wall_us <= now_us + NVML_AHEAD_US;
}

size_t nvml_decode_samples(const struct nvml_samples *from, int64_t seen_us, int64_t now_us,
	struct util_sample *to)
{
	size_t kept = 0;
	for (size_t i = 0; i < from->n; i++) {
		uint64_t wall_us = from->rows[i].wall_us;
		double pct = nvml_decode_value(&from->rows[i], from->type);
		if (!(pct >= 0 && pct <= 100) || !is_between(wall_us, seen_us, now_us))
			continue;
		struct util_sample sample = { (int64_t)wall_us, pct };
		size_t place = kept++;
		for (; place > 0 && to[place - 1].wall_us > sample.wall_us; place--)
			to[place] = to[place - 1];
		to[place] = sample;
	}
	return kept;
}

static bool is_untouched(const unsigned char *bytes, size_t size)
{
	return size == 0 || (bytes[0] == NVML_FILL && memcmp(bytes, bytes + 1, size - 1) == 0);
}

size_t nvml_decode_stride(const unsigned char *bytes, size_t size, size_t n, size_t expected)
{
	for (size_t stride = NVML_ENTRY_SMALLEST; stride <= NVML_ENTRY_LARGEST; stride += 8) {
		size_t end = n * stride;
		if (end && end <= size && bytes[end - 1] != NVML_FILL &&
			is_untouched(bytes + end, size - end))
			return stride;
	}
	return expected;
}

/* No card has more. */
#define MEMORY_MOST_BYTES (1ULL << 50)

int64_t nvml_decode_memory(uint64_t bytes)
{
	return bytes > MEMORY_MOST_BYTES ? UNKNOWN_BYTES : (int64_t)bytes;
}

size_t nvml_decode_merge_process(
	struct card_process *to, size_t n, uint32_t pid, unsigned kind, uint64_t mem_bytes)
{
	int64_t mem = nvml_decode_memory(mem_bytes);
	if (pid == 0)
		return n;
	for (size_t i = 0; i < n; i++) {
		if (to[i].pid != pid)
			continue;
		to[i].kind |= kind;
		if (mem > to[i].mem_bytes)
			to[i].mem_bytes = mem;
		return n;
	}
	to[n] = (struct card_process){ .pid = pid, .kind = kind, .mem_bytes = mem };
	return n + 1;
}

/* From the last to the first, so that no record is overwritten before it is read. */
void nvml_decode_widen_uses(void *records, size_t n)
{
	const struct nvml_process_sample *from = records;
	struct nvml_process_sample_v1 *to = records;
	for (size_t i = n; i-- > 0;) {
		struct nvml_process_sample old = from[i];
		to[i] = (struct nvml_process_sample_v1){ .wall_us = old.wall_us,
			.pid = old.pid,
			.sm_pct = old.sm_pct,
			.memory_pct = old.memory_pct,
			.encoder_pct = old.encoder_pct,
			.decoder_pct = old.decoder_pct,
			.jpeg_pct = UINT32_MAX,
			.flow_pct = UINT32_MAX };
	}
}

bool nvml_decode_use(const struct nvml_process_sample_v1 *from, int64_t seen_us, int64_t now_us,
	struct process_util *to)
{
	const uint32_t engines[ENGINE_COUNT] = {
		[ENGINE_MEMORY] = from->memory_pct,
		[ENGINE_ENCODER] = from->encoder_pct,
		[ENGINE_DECODER] = from->decoder_pct,
		[ENGINE_JPEG] = from->jpeg_pct,
		[ENGINE_FLOW] = from->flow_pct,
	};
	if (from->sm_pct > 100 || !is_between(from->wall_us, seen_us, now_us))
		return false;
	*to = (struct process_util){
		.pid = from->pid, .wall_us = (int64_t)from->wall_us, .sm_pct = from->sm_pct
	};
	for (int i = 0; i < ENGINE_COUNT; i++)
		to->engine_pct[i] = engines[i] <= 100 ? (double)engines[i] : NAN;
	return true;
}
