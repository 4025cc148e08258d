/* The functions that answer with lists: process lists, rings of samples, records of use; and
 * GPM and events, which have objects of their own. */
#include <stdlib.h>
#include <string.h>

#include "driver/nvml/nvml_abi.h"
#include "driver/capture/capture_layout.h"
#include "driver/capture/capture_play_private.h"

enum { LOOPS_KEPT = 8 }; /* of the rounds, in a ring */
/* Stamps before this are counted from boot. */
#define LEAST_WALL_US UINT64_C(1000000000000000)

/* The layout of an entry of a process list: as many numbers as it has. */
static const char *layout_of(const char *row)
{
	static const char *const lists[] = { "uQuuQ", "uQuu" };
	for (size_t i = 0; i < 2; i++) {
		const char *end = row;
		if (nvml_layout_read(lists[i], &end, NULL))
			return lists[i];
	}
	return "uQ";
}

static int play_list(const void *handle, const char *symbol, unsigned *count, void *entries)
{
	const struct nvml_recorded *r = play_current()->recorded;
	const struct nvml_answer *a =
		play_answer(&(struct play_call){ .handle = handle, .symbol = symbol });
	if (!a || a->code != NVML_OK)
		return a ? a->code : NVML_NOT_SUPPORTED;
	unsigned room = *count;
	*count = (unsigned)a->n_rows;
	if (a->n_rows > room)
		return NVML_TOO_SMALL;
	unsigned char *to = entries;
	for (size_t i = 0; i < a->n_rows; i++) {
		const char *row = r->rows[a->first_row + i];
		const char *layout = layout_of(row);
		memset(to, 0, nvml_layout_size(layout));
		nvml_layout_read(layout, &row, to);
		to += nvml_layout_size(layout);
	}
	return NVML_OK;
}

static int play_pids(void *handle, unsigned *count, unsigned *pids)
{
	const struct nvml_recorded *r = play_current()->recorded;
	const struct nvml_answer *a = play_answer(&(struct play_call){
		.handle = handle, .symbol = "nvmlDeviceGetAccountingPids" });
	if (!a || a->code != NVML_OK)
		return a ? a->code : NVML_NOT_SUPPORTED;
	unsigned room = *count;
	*count = (unsigned)a->n_rows;
	for (size_t i = 0; i < a->n_rows && i < room; i++) {
		const char *row = r->rows[a->first_row + i];
		nvml_layout_read("u", &row, &pids[i]);
	}
	return a->n_rows > room ? NVML_TOO_SMALL : NVML_OK;
}

/* A ring or a list of records with stamps, as it is read. */
struct stamped {
	const struct play_call *call;
	const char *layout;
	bool pid_first; /* the stamp follows a pid */
	uint64_t since_us;
	unsigned char *to;
	size_t room, n;
};

/* How much later than the recorded stamp an entry is now. */
static int64_t shift_us(const struct nvml_play *play, uint64_t stamp_us, int64_t loop,
	const struct play_time *t)
{
	const struct nvml_round *first = &play->recorded->rounds[0];
	int64_t shift = stamp_us < LEAST_WALL_US ? play->opened.boot_us - first->boot_us
						 : play->opened.wall_us - first->wall_us;
	return shift + loop * t->loop_us;
}

/* Adds an entry, if it is new and not in the future. A stamp of 0 stays: real drivers have
 * such entries. */
static void add_stamped(
	struct stamped *s, const char *row, int64_t loop, const struct play_time *t)
{
	const struct nvml_play *play = play_current();
	const struct nvml_round *first = &play->recorded->rounds[0];
	unsigned char entry[NVML_LAYOUT_MAX] = { 0 };
	size_t at = s->pid_first ? 8 : 0;
	uint64_t stamp_us = 0;
	nvml_layout_read(s->layout, &row, entry);
	memcpy(&stamp_us, entry + at, sizeof(stamp_us));
	bool boot = stamp_us < LEAST_WALL_US;
	uint64_t begin_us = (uint64_t)(boot ? first->boot_us : first->wall_us);
	uint64_t now_us = (uint64_t)(boot ? t->now.boot_us : t->now.wall_us);
	if (loop > 0 && stamp_us <= begin_us)
		return; /* what was in the ring before the first round is played once */
	if (stamp_us && stamp_us <= INT64_MAX / 2) {
		stamp_us += (uint64_t)shift_us(play, stamp_us, loop, t);
		if (stamp_us <= s->since_us || stamp_us > now_us)
			return;
	}
	memcpy(entry + at, &stamp_us, sizeof(stamp_us));
	size_t size = nvml_layout_size(s->layout);
	if (s->n < s->room)
		memcpy(s->to + s->n * size, entry, size);
	s->n++;
}

/* The entries of all rounds; returns the code of the round that is in force. */
static int play_stamped(struct stamped *s)
{
	const struct nvml_play *play = play_current();
	const struct nvml_recorded *r = play->recorded;
	const struct play_unit *unit = s->call->handle;
	struct play_time t = play_time_now(play);
	const struct nvml_answer *now = play_answer(s->call);
	if (!now || (now->code != NVML_OK && now->code != NVML_NOT_FOUND))
		return now ? now->code : NVML_NOT_SUPPORTED;
	struct nvml_key key = { s->call->symbol, unit->card, unit->instance, { 0 } };
	memcpy(key.args, s->call->args, sizeof(key.args));
	int64_t loop = t.loop > LOOPS_KEPT ? t.loop - LOOPS_KEPT : 0;
	for (; r->n_rounds && loop <= t.loop; loop++)
		for (int round = 0; (size_t)round < r->n_rounds; round++) {
			const struct nvml_answer *a = nvml_recorded_find(r, &key, round);
			for (size_t i = 0; a && a->round == round && i < a->n_rows; i++)
				add_stamped(s, r->rows[a->first_row + i], loop, &t);
		}
	return s->n ? NVML_OK : NVML_NOT_FOUND;
}

static int play_samples(void *handle, int ring, unsigned long long since_us, int *type,
	unsigned *count, void *samples)
{
	const struct play_call call = {
		.handle = handle, .symbol = "nvmlDeviceGetSamples", .args = { ring }
	};
	struct stamped s = { .call = &call,
		.layout = "QQ",
		.since_us = since_us,
		.to = samples,
		.room = samples ? *count : 0 };
	const struct nvml_answer *a = play_answer(&call);
	*type = NVML_VALUE_U32;
	if (a && a->code == NVML_OK) {
		const char *values = a->values;
		nvml_layout_read("i", &values, type);
	}
	int code = play_stamped(&s);
	*count = (unsigned)(s.n < s.room || !samples ? s.n : s.room);
	return code;
}

static int play_use(void *handle, void *records, unsigned *count, unsigned long long since_us)
{
	const struct play_call call = { .handle = handle,
		.symbol = "nvmlDeviceGetProcessUtilization" };
	struct stamped s = { .call = &call,
		.layout = "uQuuuu",
		.pid_first = true,
		.since_us = since_us,
		.to = records,
		.room = records ? *count : 0 };
	int code = play_stamped(&s);
	*count = (unsigned)s.n;
	return code == NVML_OK && s.n > s.room ? NVML_TOO_SMALL : code;
}

static int play_use_v1(void *handle, struct nvml_process_samples_v1 *all)
{
	const struct play_call call = { .handle = handle,
		.symbol = "nvmlDeviceGetProcessesUtilizationInfo" };
	struct stamped s = { .call = &call,
		.layout = "Quuuuuuu",
		.since_us = all->last_seen_us,
		.to = (unsigned char *)all->samples,
		.room = all->samples ? all->count : 0 };
	int code = play_stamped(&s);
	all->count = (uint32_t)s.n;
	return code == NVML_OK && s.n > s.room ? NVML_TOO_SMALL : code;
}

/* A GPM sample says of what it is. */
struct play_sample {
	const void *handle;
	int gpu_instance;
};

static int play_gpm_alloc(void **sample)
{
	*sample = calloc(1, sizeof(struct play_sample));
	return *sample ? NVML_OK : NVML_NO_MEMORY;
}

static int play_gpm_free(void *sample)
{
	free(sample);
	return NVML_OK;
}

static int take_sample(const struct play_call *call, int gpu_instance, void *sample)
{
	const struct nvml_answer *a = play_answer(call);
	*(struct play_sample *)sample = (struct play_sample){ call->handle, gpu_instance };
	return a ? a->code : NVML_NOT_SUPPORTED;
}

static int play_gpm_sample(void *handle, void *sample)
{
	const struct play_call call = { .handle = handle, .symbol = "nvmlGpmSampleGet" };
	return take_sample(&call, -1, sample);
}

static int play_gpm_mig_sample(void *handle, unsigned gpu_instance, void *sample)
{
	const struct play_call call = {
		.handle = handle, .symbol = "nvmlGpmMigSampleGet", .args = { (int)gpu_instance }
	};
	return take_sample(&call, (int)gpu_instance, sample);
}

static int play_gpm_metrics(struct nvml_gpm_metrics *get)
{
	const struct play_sample *sample = get->samples[1];
	const struct play_call call = { .handle = sample->handle,
		.symbol = "nvmlGpmMetricsGet",
		.args = { sample->gpu_instance, (int)get->metric.id } };
	struct {
		uint32_t code;
		double value;
	} got = { 0 };
	void *out = &got;
	int code = sample->handle ? play_out(&call, &out) : NVML_BAD_ARGUMENT;
	get->metric.code = got.code;
	get->metric.value = got.value;
	return code;
}

/* An event set that never has an event. */
static int play_event_set_new(void **set)
{
	*set = play_current();
	return NVML_OK;
}

static int play_event_set_free(void *set)
{
	(void)set;
	return NVML_OK;
}

static int play_event_register(void *handle, unsigned long long kinds, void *set)
{
	const struct play_call call = { .handle = handle,
		.symbol = "nvmlDeviceRegisterEvents" };
	(void)kinds;
	(void)set;
	return play_out(&call, NULL);
}

static int play_event_wait(void *set, struct nvml_event *event, unsigned timeout_ms)
{
	(void)set;
	(void)event;
	(void)timeout_ms;
	return NVML_TIMEOUT;
}

#define LISTS(X)                                                                               \
	X(nvmlDeviceGetComputeRunningProcesses_v2)                                             \
	X(nvmlDeviceGetComputeRunningProcesses_v3)                                             \
	X(nvmlDeviceGetComputeRunningProcesses)                                                \
	X(nvmlDeviceGetGraphicsRunningProcesses_v2)                                            \
	X(nvmlDeviceGetGraphicsRunningProcesses_v3)                                            \
	X(nvmlDeviceGetGraphicsRunningProcesses)                                               \
	X(nvmlDeviceGetMPSComputeRunningProcesses_v2)                                          \
	X(nvmlDeviceGetMPSComputeRunningProcesses_v3)                                          \
	X(nvmlDeviceGetMPSComputeRunningProcesses)

#define LIST_FUNCTION(symbol)                                                                  \
	static int play_##symbol(void *handle, unsigned *count, void *entries)                 \
	{                                                                                      \
		return play_list(handle, #symbol, count, entries);                             \
	}
LISTS(LIST_FUNCTION)

#define LIST_ROW(symbol) { #symbol, play_##symbol },
static const struct play_function functions[] = {
	LISTS(LIST_ROW){ "nvmlDeviceGetAccountingPids", play_pids },
	{ "nvmlDeviceGetSamples", play_samples },
	{ "nvmlDeviceGetProcessUtilization", play_use },
	{ "nvmlDeviceGetProcessesUtilizationInfo", play_use_v1 },
	{ "nvmlGpmSampleGet", play_gpm_sample },
	{ "nvmlGpmMigSampleGet", play_gpm_mig_sample },
	{ "nvmlGpmMetricsGet", play_gpm_metrics },
	{ "nvmlDeviceRegisterEvents", play_event_register },
};
/* Of objects that only exist here. */
static const struct play_function objects[] = {
	{ "nvmlGpmSampleAlloc", play_gpm_alloc },
	{ "nvmlGpmSampleFree", play_gpm_free },
	{ "nvmlEventSetCreate", play_event_set_new },
	{ "nvmlEventSetFree", play_event_set_free },
	{ "nvmlEventSetWait_v2", play_event_wait },
};

void *play_find_list(const char *symbol)
{
	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++)
		if (strcmp(objects[i].symbol, symbol) == 0)
			return objects[i].function;
	bool there = nvml_recorded_has(play_current()->recorded, symbol);
	for (size_t i = 0; there && i < sizeof(functions) / sizeof(functions[0]); i++)
		if (strcmp(functions[i].symbol, symbol) == 0)
			return functions[i].function;
	return NULL;
}
