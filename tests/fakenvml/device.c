/* The fake library's readings of a card: utilisation, memory, power, MIG, modes. */
#include "fake.h"

#include <string.h>

#include "exports.h"

/* Physical readings are of whole cards. */
static bool is_instance(const struct scenario_card *card)
{
	return card->parent >= 0;
}

/* The driver has no utilisation where MIG is on. */
static bool without_use(const struct scenario_card *card)
{
	return card->parent >= 0 || card->has_mig;
}

static int newest_util(struct play *p, size_t unit)
{
	size_t n = play_ring_size(p, unit);
	return n ? play_ring_at(p, unit, n - 1)->util_pct : 0;
}

EXPORT int nvmlDeviceGetUtilizationRates(void *device, struct abi_utilization *rates)
{
	ENTER_DEVICE(device, "%s", "");
	if (without_use(card))
		return fake_leave(NOT_SUPPORTED);
	rates->gpu = (uint32_t)newest_util(f->play, unit);
	rates->memory = rates->gpu / 2;
	return fake_leave(SUCCESS);
}

/* The memory of an instance cannot be read any more: see `gpm breaks`. */
static bool gpm_broke(const struct fake *f, const struct scenario_card *card)
{
	return is_instance(card) && f->gpm_broke[card->parent];
}

EXPORT int nvmlDeviceGetMemoryInfo(void *device, struct abi_memory *memory)
{
	ENTER_DEVICE(device, "%s", "");
	if (gpm_broke(f, card))
		return fake_leave(IN_USE);
	int64_t used = play_memory_used(f->play, unit) + card->reserved_bytes;
	memory->total = (uint64_t)card->id.mem_total_bytes;
	memory->used = (uint64_t)used;
	memory->free = memory->total - memory->used;
	return fake_leave(SUCCESS);
}

EXPORT int nvmlDeviceGetMemoryInfo_v2(void *device, struct abi_memory_v2 *memory)
{
	ENTER_DEVICE(device, "version=%#x", memory->version);
	if (memory->version != 0x02000028)
		return fake_leave(FUNCTION_NOT_FOUND);
	if (gpm_broke(f, card))
		return fake_leave(IN_USE);
	memory->total = (uint64_t)card->id.mem_total_bytes;
	memory->reserved = (uint64_t)card->reserved_bytes;
	memory->used = (uint64_t)play_memory_used(f->play, unit);
	memory->free = memory->total - memory->reserved - memory->used;
	return fake_leave(SUCCESS);
}

EXPORT int nvmlDeviceGetPowerUsage(void *device, unsigned *mw)
{
	ENTER_DEVICE(device, "%s", "");
	if (is_instance(card))
		return fake_leave(NOT_SUPPORTED);
	*mw = (unsigned)(play_power_mw(f->play, unit) *
			 play_quirks(f->play, unit)->power_factor);
	return fake_leave(SUCCESS);
}

EXPORT int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *mj)
{
	ENTER_DEVICE(device, "%s", "");
	if (is_instance(card))
		return fake_leave(NOT_SUPPORTED);
	*mj = (unsigned long long)play_energy_mj(f->play, unit);
	return fake_leave(SUCCESS);
}

/* ---- MIG ---- */

EXPORT int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending)
{
	ENTER_DEVICE(device, "%s", "");
	if (!play_metric_can_mig(card))
		return fake_leave(NOT_SUPPORTED);
	*current = *pending = card->has_mig ? 1 : 0;
	return fake_leave(SUCCESS);
}

EXPORT int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *count)
{
	ENTER_DEVICE(device, "%s", "");
	*count = play_metric_can_mig(card) ? SCENARIO_MIG_MAX : 0;
	return fake_leave(SUCCESS);
}

EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **mig)
{
	ENTER_DEVICE(device, "index=%u", index);
	if (index >= SCENARIO_MIG_MAX || !mig)
		return fake_leave(INVALID_ARGUMENT);
	for (size_t i = f->scenario->n_physical; i < f->scenario->n_cards; i++) {
		const struct scenario_card *c = &f->scenario->cards[i];
		if (c->parent != (int)unit || c->id.mig_index != (int)index)
			continue;
		*mig = fake_handle(i);
		return fake_leave(SUCCESS);
	}
	return fake_leave(NOT_FOUND);
}

EXPORT int nvmlDeviceIsMigDeviceHandle(void *device, unsigned *is)
{
	ENTER_DEVICE(device, "%s", "");
	*is = is_instance(card);
	return fake_leave(SUCCESS);
}

EXPORT int nvmlDeviceGetGpuInstanceId(void *device, unsigned *id)
{
	ENTER_DEVICE(device, "%s", "");
	*id = (unsigned)card->id.gpu_instance;
	return fake_leave(is_instance(card) ? SUCCESS : INVALID_ARGUMENT);
}

EXPORT int nvmlDeviceGetComputeInstanceId(void *device, unsigned *id)
{
	ENTER_DEVICE(device, "%s", "");
	*id = (unsigned)card->id.compute_instance;
	return fake_leave(is_instance(card) ? SUCCESS : INVALID_ARGUMENT);
}

EXPORT int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *device, void **parent)
{
	ENTER_DEVICE(device, "%s", "");
	if (!is_instance(card))
		return fake_leave(INVALID_ARGUMENT);
	*parent = fake_handle((size_t)card->parent);
	return fake_leave(SUCCESS);
}

EXPORT int nvmlDeviceGetAttributes_v2(void *device, struct abi_attributes *attributes)
{
	ENTER_DEVICE(device, "%s", "");
	if (!is_instance(card))
		return fake_leave(NOT_SUPPORTED);
#define ENGINES(metric)                                                                        \
	(uint32_t) play_metric(f->play, f->scenario, unit, METRIC_INSTANCE_##metric)
	*attributes = (struct abi_attributes){ .sms = ENGINES(SMS),
		.ces = ENGINES(COPIERS),
		.decoders = ENGINES(DECODERS),
		.encoders = ENGINES(ENCODERS),
		.jpegs = ENGINES(JPEGS),
		.ofas = ENGINES(OFAS),
		.gi_slices = 1,
		.ci_slices = 1,
		.memory_mb = (uint64_t)card->id.mem_total_bytes >> 20 };
	return fake_leave(SUCCESS);
}
