/* The metrics and accounts of the simulated source, for live views. */
#include <math.h>
#include <stdlib.h>

#include "driver/sim/scenario_quirk.h"
#include "driver/sim/sim_private.h"

/* The calls that the metrics of live views stand for; a fault of one is a fault of those. */
static const struct metric_call {
	enum metric metric;
	const char *call;
} sim_calls[] = {
	{ METRIC_TEMPERATURE_GPU, "nvmlDeviceGetTemperature" },
	{ METRIC_FAN_SPEED, "nvmlDeviceGetFanSpeed" },
	{ METRIC_UTILIZATION_GPU, "nvmlDeviceGetUtilizationRates" },
	{ METRIC_UTILIZATION_MEMORY, "nvmlDeviceGetUtilizationRates" },
	{ METRIC_POWER_DRAW, "nvmlDeviceGetPowerUsage" },
	{ METRIC_POWER_ENFORCED, "nvmlDeviceGetEnforcedPowerLimit" },
	{ METRIC_PSTATE, "nvmlDeviceGetPerformanceState" },
};

static bool metric_works(struct sim *sim, enum metric m, size_t unit)
{
	for (size_t i = 0; i < sizeof(sim_calls) / sizeof(sim_calls[0]); i++)
		if (sim_calls[i].metric == m)
			return sim_call(sim, sim_calls[i].call, (int)unit) == 0;
	return true;
}

void sim_metrics(struct source *s, const struct metric_request *request, double *values,
	metric_texts texts)
{
	struct sim *sim = (struct sim *)s;
	size_t unit = sim->cards[request->card].unit;
	int parent = sim->scenario->cards[unit].parent;
	if (request->board && parent >= 0)
		unit = (size_t)parent;
	for (int m = 0; m < METRIC_COUNT; m++) {
		if (!request->wanted[m])
			continue;
		if (m < METRIC_DRIVER_TEXTS)
			play_metric_text(
				sim->scenario, unit, (enum metric)m, texts[m], METRIC_TEXT_CAP);
		else if (metric_works(sim, (enum metric)m, unit)) {
			double value =
				play_metric(sim->play, sim->scenario, unit, (enum metric)m);
			values[m] = isnan(value) ? values[m] : value;
		}
	}
}

size_t sim_accounts(struct source *s, size_t card, struct process_account *out, size_t max)
{
	struct sim *sim = (struct sim *)s;
	struct play_account *all = calloc(max, sizeof(*all));
	size_t n = all ? play_accounts(sim->play, sim->cards[card].unit, all, max) : 0;
	for (size_t i = 0; i < n; i++)
		out[i] = (struct process_account){ .pid = all[i].pid,
			.gpu_pct = floor(all[i].sm_pct + 0.5),
			.memory_pct = floor(all[i].sm_pct / 2),
			.mem_peak_bytes = all[i].peak_bytes,
			.time_ms = all[i].length_us / 1000 };
	free(all);
	return n;
}
