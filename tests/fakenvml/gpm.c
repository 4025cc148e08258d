/* The fake library's GPM: use of cards and MIG instances between two samples of counters. */
#include "fake.h"

#include <string.h>

#include "exports.h"

enum { SAMPLES_MAX = 4096, APART_US = 100000 };

struct gpm_sample {
	bool given;  /* to the program, which has not freed it */
	bool filled; /* with the following */
	size_t unit; /* card or instance */
	int gi;	     /* asked for by the GPU instance, else -1 */
	int64_t t_us;
	int64_t util_pct_us; /* play_util_sum() */
};

static struct gpm_sample samples[SAMPLES_MAX]; /* under the lock */

static void check_sample(const char *call, const struct gpm_sample *sample)
{
	if (!sample)
		fake_abort("%s was called with a NULL sample", call);
	bool ours = sample >= samples && sample < samples + SAMPLES_MAX;
	if (!ours || !sample->given)
		fake_abort(
			"%s was called with a sample that was never given or is freed", call);
}

void fake_finish_gpm(void)
{
	unsigned left = 0;
	for (size_t i = 0; i < SAMPLES_MAX; i++)
		left += samples[i].given;
	if (left)
		fake_abort("nvmlShutdown was called and %u GPM samples are not freed", left);
	memset(fake_state()->gpm_broke, 0, sizeof(fake_state()->gpm_broke));
}

EXPORT int nvmlGpmQueryDeviceSupport(void *device, struct abi_gpm_support *support)
{
	ENTER_DEVICE(device, "version=%u", support->version);
	(void)f;
	if (support->version != 1)
		return fake_leave(VERSION_MISMATCH);
	support->is_supported = card->gpm;
	return fake_leave(SUCCESS);
}

EXPORT int nvmlGpmSampleAlloc(struct gpm_sample **sample)
{
	int code = fake_enter(DOOR_SYSTEM, __func__, NULL, NULL, "%s", "");
	if (code)
		return code;
	if (!sample)
		return fake_leave(INVALID_ARGUMENT);
	for (size_t i = 0; i < SAMPLES_MAX; i++) {
		if (samples[i].given)
			continue;
		samples[i] = (struct gpm_sample){ .given = true };
		*sample = &samples[i];
		return fake_leave(SUCCESS);
	}
	fake_abort("more than %d GPM samples are not freed", SAMPLES_MAX);
}

EXPORT int nvmlGpmSampleFree(struct gpm_sample *sample)
{
	int code = fake_enter(DOOR_SYSTEM, __func__, NULL, NULL, "%s", "");
	if (code)
		return code;
	check_sample(__func__, sample);
	sample->given = false;
	return fake_leave(SUCCESS);
}

static void fill(struct fake *f, struct gpm_sample *sample, size_t unit, int gi, int64_t sum)
{
	const struct scenario_card *card = &f->scenario->cards[unit];
	size_t board = card->parent >= 0 ? (size_t)card->parent : unit;
	f->gpm_broke[board] = f->gpm_broke[board] || f->scenario->cards[board].gpm_breaks;
	*sample = (struct gpm_sample){ .given = true,
		.filled = true,
		.unit = unit,
		.gi = gi,
		.t_us = play_time(f->play),
		.util_pct_us = sum };
}

EXPORT int nvmlGpmSampleGet(void *device, struct gpm_sample *sample)
{
	ENTER_DEVICE(device, "%s", "");
	check_sample(__func__, sample);
	if (!card->gpm || card->has_mig)
		return fake_leave(NOT_SUPPORTED);
	fill(f, sample, unit, -1, play_util_sum(f->play, unit));
	return fake_leave(SUCCESS);
}

/* All compute instances of a GPU instance together. */
EXPORT int nvmlGpmMigSampleGet(void *device, unsigned gpu_instance, struct gpm_sample *sample)
{
	ENTER_DEVICE(device, "gi=%u", gpu_instance);
	check_sample(__func__, sample);
	if (!card->has_mig)
		return fake_leave(NOT_SUPPORTED);
	size_t found = 0;
	int64_t sum = 0;
	for (size_t i = f->scenario->n_cards; i-- > f->scenario->n_physical;) {
		const struct scenario_card *c = &f->scenario->cards[i];
		if (c->parent != (int)unit || c->id.gpu_instance != (int)gpu_instance)
			continue;
		found = i;
		sum += play_util_sum(f->play, i);
	}
	if (found == 0)
		return fake_leave(NOT_FOUND);
	if (!f->scenario->cards[found].gpm)
		return fake_leave(NOT_SUPPORTED);
	fill(f, sample, found, (int)gpu_instance, sum);
	return fake_leave(SUCCESS);
}

/* One metric between two samples of a card. */
static void give_metric(struct abi_gpm_metric *metric, const struct scenario_card *card,
	const struct gpm_sample *from, const struct gpm_sample *to)
{
	int64_t length_us = to->t_us - from->t_us;
	bool graphics = metric->id == 1;
	metric->code = SUCCESS;
	if (!graphics && metric->id != 2)
		metric->code = NOT_SUPPORTED;
	else if (length_us < APART_US)
		metric->code = NO_DATA;
	if (metric->code != SUCCESS)
		return;
	double mean = (double)(to->util_pct_us - from->util_pct_us) / (double)length_us;
	mean = mean < 100 ? mean : 100;
	metric->value = graphics ? mean : mean * (double)card->sm_active_pct / 100;
	metric->short_name = graphics ? "GRACT" : "SMACT";
	metric->long_name = graphics ? "Graphics Engine Activity" : "SM Activity";
	metric->unit = "%";
}

EXPORT int nvmlGpmMetricsGet(struct abi_gpm_metrics *get)
{
	int code = fake_enter(DOOR_SYSTEM, __func__, NULL, NULL, "count=%u", get->count);
	if (code)
		return code;
	if (get->version != 1)
		return fake_leave(VERSION_MISMATCH);
	const struct gpm_sample *from = get->samples[0], *to = get->samples[1];
	check_sample(__func__, from);
	check_sample(__func__, to);
	if (!from->filled || !to->filled || from->unit != to->unit || from->gi != to->gi)
		return fake_leave(INVALID_ARGUMENT);
	const struct scenario_card *card = &fake_state()->scenario->cards[from->unit];
	for (uint32_t i = 0; i < get->count; i++)
		give_metric(&get->metrics[i], card, from, to);
	return fake_leave(SUCCESS);
}
