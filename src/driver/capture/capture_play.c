/* The time of a play, the answers by call, and the functions for whole cards. */
#include "driver/capture/capture_play.h"

#include <stdlib.h>
#include <string.h>

#include "driver/nvml/nvml_abi.h"
#include "driver/capture/capture_layout.h"
#include "driver/capture/capture_play_private.h"

enum { ROUND_US = 1000000 };

/* See nvml_play.h for why there must be one. */
static struct nvml_play *current;

int nvml_play_open(struct nvml_play **result, struct nvml_recorded *recorded,
	struct clock *clock, struct err *e)
{
	struct nvml_play *play = current ? NULL : calloc(1, sizeof(*play));
	*result = NULL;
	if (!play) {
		nvml_recorded_free(recorded);
		return current ? err_set(e, ERR_USAGE,
					 "a capture is already being played: one at a time")
			       : err_memory(e);
	}
	play->recorded = recorded;
	play->clock = clock;
	play->opened = clock_now(clock);
	for (int i = 0; i < CAPTURE_CARDS; i++) {
		play->cards[i] = (struct play_unit){ i, -1 };
		for (int k = 0; k < CAPTURE_INSTANCES; k++)
			play->instances[i][k] = (struct play_unit){ i, k };
	}
	current = *result = play;
	return 0;
}

void nvml_play_close(struct nvml_play *play)
{
	if (!play)
		return;
	current = NULL;
	nvml_recorded_free(play->recorded);
	free(play);
}

const struct nvml_recorded *nvml_play_recorded(const struct nvml_play *play)
{
	return play->recorded;
}

struct moment nvml_play_opened(const struct nvml_play *play)
{
	return play->opened;
}

struct nvml_play *play_current(void)
{
	return current;
}

struct play_time play_time_now(const struct nvml_play *play)
{
	const struct nvml_recorded *r = play->recorded;
	struct play_time t = { .now = clock_now(play->clock), .round = -1 };
	if (r->n_rounds == 0)
		return t;
	int64_t first_us = r->rounds[0].boot_us;
	int64_t passed_us = t.now.boot_us - play->opened.boot_us;
	t.loop_us = r->rounds[r->n_rounds - 1].boot_us - first_us + ROUND_US;
	t.loop = passed_us > 0 ? passed_us / t.loop_us : 0;
	int64_t at_us = passed_us - t.loop * t.loop_us;
	for (t.round = 0; (size_t)t.round + 1 < r->n_rounds; t.round++)
		if (r->rounds[t.round + 1].boot_us - first_us > at_us)
			break;
	return t;
}

const struct nvml_answer *play_answer(const struct play_call *call)
{
	const struct play_unit *unit = call->handle;
	struct nvml_key key = { .symbol = call->symbol,
		.card = unit ? unit->card : -1,
		.instance = unit ? unit->instance : -1 };
	memcpy(key.args, call->args, sizeof(key.args));
	return nvml_recorded_find(current->recorded, &key, play_time_now(current).round);
}

/* What was not asked when the capture was made is not supported. */
static int code_of(const struct nvml_answer *a)
{
	return a ? a->code : NVML_NOT_SUPPORTED;
}

int play_out(const struct play_call *call, void *const *out)
{
	const struct nvml_answer *a = play_answer(call);
	struct nvml_form form;
	if (code_of(a) != NVML_OK || !nvml_form_find(call->symbol, &form))
		return code_of(a);
	const char *values = a->values;
	for (unsigned i = 0; form.layout[0] && i < nvml_form_parts(&form); i++)
		nvml_layout_read(form.layout, &values, out[i]);
	return NVML_OK;
}

int play_text(const struct play_call *call, char *text, unsigned length)
{
	char whole[NVML_LAYOUT_MAX] = "";
	const struct nvml_answer *a = play_answer(call);
	if (code_of(a) != NVML_OK)
		return code_of(a);
	const char *values = a->values;
	nvml_layout_read("t96", &values, whole);
	if (strlen(whole) >= length)
		return NVML_TOO_SMALL;
	strcpy(text, whole);
	return NVML_OK;
}

static int play_driver(const char *symbol, void *out)
{
	return play_out(&(struct play_call){ .symbol = symbol }, &out);
}

static int play_one(const void *handle, const char *symbol, void *out)
{
	return play_out(&(struct play_call){ .handle = handle, .symbol = symbol }, &out);
}

/* A name of the same function that the capture has. */
static const char *which(const char *newer, const char *older)
{
	return nvml_recorded_has(current->recorded, newer) ? newer : older;
}

static int play_init(void)
{
	return play_driver(which("nvmlInit_v2", "nvmlInit"), NULL);
}

static int play_shutdown(void)
{
	return NVML_OK;
}

static int play_library_version(char *text, unsigned cap)
{
	return play_text(
		&(struct play_call){ .symbol = "nvmlSystemGetNVMLVersion" }, text, cap);
}

static int play_driver_version(char *text, unsigned cap)
{
	return play_text(
		&(struct play_call){ .symbol = "nvmlSystemGetDriverVersion" }, text, cap);
}

static const char *play_error(int code)
{
	static char text[NVML_LAYOUT_MAX];
	const struct play_call call = { .symbol = "nvmlErrorString", .args = { code } };
	return play_text(&call, text, sizeof(text)) == NVML_OK ? text : "Unknown Error";
}

static int play_count(unsigned *count)
{
	return play_driver(which("nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"), count);
}

/* A card on which a call was stuck is not asked, as live. */
static int play_by_index(unsigned index, void **handle)
{
	if (index >= CAPTURE_CARDS)
		return NVML_BAD_ARGUMENT;
	*handle = &current->cards[index];
	if (current->recorded->stuck[index])
		return NVML_STUCK;
	return play_one(*handle,
		which("nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"), NULL);
}

static int play_mig_by_index(void *handle, unsigned index, void **instance)
{
	const struct play_unit *unit = handle;
	const struct play_call call = { .handle = handle,
		.symbol = "nvmlDeviceGetMigDeviceHandleByIndex",
		.args = { (int)index } };
	if (index >= CAPTURE_INSTANCES)
		return NVML_NOT_FOUND;
	const struct nvml_answer *a = play_answer(&call);
	*instance = &current->instances[unit->card][index];
	return a ? a->code : NVML_NOT_FOUND;
}

static int play_uuid(void *handle, char *text, unsigned cap)
{
	return play_text(&(struct play_call){ .handle = handle, .symbol = "nvmlDeviceGetUUID" },
		text, cap);
}

static int play_name(void *handle, char *text, unsigned cap)
{
	return play_text(&(struct play_call){ .handle = handle, .symbol = "nvmlDeviceGetName" },
		text, cap);
}

static int play_pci(void *handle, void *pci)
{
	return play_one(handle,
		which("nvmlDeviceGetPciInfo_v3",
			which("nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo")),
		pci);
}

/* Calls that only fill in one struct. */
#define PLAY_ONE(name, symbol)                                                                 \
	static int play_##name(void *handle, void *out)                                        \
	{                                                                                      \
		return play_one(handle, symbol, out);                                          \
	}
PLAY_ONE(persistence, "nvmlDeviceGetPersistenceMode")
PLAY_ONE(memory_v2, "nvmlDeviceGetMemoryInfo_v2")
PLAY_ONE(memory, "nvmlDeviceGetMemoryInfo")
PLAY_ONE(rates, "nvmlDeviceGetUtilizationRates")
PLAY_ONE(power, "nvmlDeviceGetPowerUsage")
PLAY_ONE(power_limit, "nvmlDeviceGetEnforcedPowerLimit")
PLAY_ONE(accounting_mode, "nvmlDeviceGetAccountingMode")
PLAY_ONE(gpm_support, "nvmlGpmQueryDeviceSupport")
PLAY_ONE(mig_max, "nvmlDeviceGetMaxMigDeviceCount")
PLAY_ONE(gpu_instance, "nvmlDeviceGetGpuInstanceId")
PLAY_ONE(compute_instance, "nvmlDeviceGetComputeInstanceId")
PLAY_ONE(event_kinds, "nvmlDeviceGetSupportedEventTypes")

static int play_mig_mode(void *handle, unsigned *now, unsigned *pending)
{
	void *out[] = { now, pending };
	return play_out(
		&(struct play_call){ .handle = handle, .symbol = "nvmlDeviceGetMigMode" }, out);
}

static int play_stats(void *handle, unsigned pid, void *stats)
{
	const struct play_call call = {
		.handle = handle, .symbol = "nvmlDeviceGetAccountingStats", .args = { (int)pid }
	};
	return play_answer(&call) ? play_out(&call, &stats) : NVML_NOT_FOUND;
}

/* What the counter grew by in a loop of the rounds, the last of which lasts as long as the
 * others did. */
static uint64_t energy_of_loop(const struct nvml_key *key, const struct play_time *t)
{
	const struct nvml_recorded *r = current->recorded;
	const struct nvml_answer *ends[] = { nvml_recorded_find(r, key, 0),
		nvml_recorded_find(r, key, (int)r->n_rounds) };
	uint64_t mj[2] = { 0, 0 };
	for (size_t i = 0; i < 2; i++) {
		if (!ends[i] || ends[i]->code != NVML_OK)
			return 0;
		const char *values = ends[i]->values;
		nvml_layout_read("Q", &values, &mj[i]);
	}
	int64_t known_us = t->loop_us - ROUND_US;
	if (mj[1] <= mj[0] || known_us <= 0)
		return 0;
	double grown_mj = (double)(mj[1] - mj[0]) * (double)t->loop_us / (double)known_us;
	return grown_mj < 1e15 ? (uint64_t)grown_mj : 0; /* more is no energy */
}

/* The energy goes on where the last round ended. */
static int play_energy(void *handle, void *mj)
{
	const struct play_unit *unit = handle;
	const struct nvml_key key = { "nvmlDeviceGetTotalEnergyConsumption", unit->card,
		unit->instance, { 0 } };
	struct play_time t = play_time_now(current);
	uint64_t now = 0;
	int code = play_one(handle, key.symbol, mj);
	if (code != NVML_OK || t.loop == 0)
		return code;
	memcpy(&now, mj, sizeof(now));
	now += (uint64_t)t.loop * energy_of_loop(&key, &t);
	memcpy(mj, &now, sizeof(now));
	return code;
}

static const struct play_function functions[] = {
	{ "nvmlInit_v2", play_init },
	{ "nvmlInit", play_init },
	{ "nvmlShutdown", play_shutdown },
	{ "nvmlSystemGetNVMLVersion", play_library_version },
	{ "nvmlSystemGetDriverVersion", play_driver_version },
	{ "nvmlErrorString", play_error },
	{ "nvmlDeviceGetCount_v2", play_count },
	{ "nvmlDeviceGetCount", play_count },
	{ "nvmlDeviceGetHandleByIndex_v2", play_by_index },
	{ "nvmlDeviceGetHandleByIndex", play_by_index },
	{ "nvmlDeviceGetMigDeviceHandleByIndex", play_mig_by_index },
	{ "nvmlDeviceGetUUID", play_uuid },
	{ "nvmlDeviceGetName", play_name },
	{ "nvmlDeviceGetPciInfo_v3", play_pci },
	{ "nvmlDeviceGetPciInfo_v2", play_pci },
	{ "nvmlDeviceGetPciInfo", play_pci },
	{ "nvmlDeviceGetPersistenceMode", play_persistence },
	{ "nvmlDeviceGetMemoryInfo_v2", play_memory_v2 },
	{ "nvmlDeviceGetMemoryInfo", play_memory },
	{ "nvmlDeviceGetUtilizationRates", play_rates },
	{ "nvmlDeviceGetTotalEnergyConsumption", play_energy },
	{ "nvmlDeviceGetPowerUsage", play_power },
	{ "nvmlDeviceGetEnforcedPowerLimit", play_power_limit },
	{ "nvmlDeviceGetAccountingMode", play_accounting_mode },
	{ "nvmlDeviceGetAccountingStats", play_stats },
	{ "nvmlGpmQueryDeviceSupport", play_gpm_support },
	{ "nvmlDeviceGetMigMode", play_mig_mode },
	{ "nvmlDeviceGetMaxMigDeviceCount", play_mig_max },
	{ "nvmlDeviceGetGpuInstanceId", play_gpu_instance },
	{ "nvmlDeviceGetComputeInstanceId", play_compute_instance },
	{ "nvmlDeviceGetSupportedEventTypes", play_event_kinds },
};

void *nvml_play_find(const struct nvml_play *play, const char *symbol)
{
	/* What every library must have was not asked if the driver was stuck before. */
	static const char *const required[] = { "nvmlShutdown", "nvmlInit_v2",
		"nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetUUID" };
	bool there = nvml_recorded_has(play->recorded, symbol);
	for (size_t i = 0; i < sizeof(required) / sizeof(required[0]); i++)
		there |= strcmp(symbol, required[i]) == 0;
	for (size_t i = 0; there && i < sizeof(functions) / sizeof(functions[0]); i++)
		if (strcmp(functions[i].symbol, symbol) == 0)
			return functions[i].function;
	void *found = play_find_list(symbol);
	if (!found && there)
		found = play_find_metric(symbol);
	return found;
}
