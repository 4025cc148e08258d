/* The table of exporters whose metrics can be audited. */
#include "fleet/exporter.h"

#include "base/options.h"

/* Names since DCGM 4.6 end in _RATIO; GPU_UTIL_RATIO is still in percent. The names in small
 * letters are of versions 1.x. GR_ENGINE_ACTIVE counts more finely than GPU_UTIL, and is the
 * only one that MIG instances have. */
static const struct exporter_metric dcgm[] = {
	{ "DCGM_FI_PROF_GR_ENGINE_ACTIVE|DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", EXPORTER_USE, 100,
		1 },
	{ "DCGM_FI_DEV_GPU_UTIL|DCGM_FI_DEV_GPU_UTIL_RATIO|dcgm_gpu_utilization", EXPORTER_USE,
		1, 0 },
	{ "DCGM_FI_DEV_FB_USED|dcgm_fb_used", EXPORTER_MEMORY, 1 << 20, 0 },
	{ "DCGM_FI_PROF_SM_ACTIVE|DCGM_FI_PROF_SM_UTIL_RATIO", EXPORTER_SM_ACTIVE, 100, 0 },
	{ "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION|dcgm_total_energy_consumption", EXPORTER_ENERGY,
		1, 0 },
	{ "DCGM_FI_DEV_POWER_USAGE|DCGM_FI_DEV_BOARD_POWER_WATTS|dcgm_power_usage",
		EXPORTER_POWER, 1, 0 },
	{ 0 },
};

static const struct exporter_metric nvidia_smi[] = {
	{ "nvidia_smi_utilization_gpu_ratio", EXPORTER_USE, 100, 0 },
	{ "nvidia_smi_memory_used_bytes", EXPORTER_MEMORY, 1, 0 },
	{ "nvidia_smi_energy_joules_total", EXPORTER_ENERGY, 1000, 0 },
	{ "nvidia_smi_power_draw_watts", EXPORTER_POWER, 1, 0 },
	{ "nvidia_smi_gpu_info", EXPORTER_INFO, 1, 0 },
	{ 0 },
};

/* The metrics of GPM are ratios in spite of their names. Versions before September 2025 have no
 * labels jobid and userid. */
static const struct exporter_metric jobstats[] = {
	{ "nvidia_gpu_graphics_util_percent", EXPORTER_USE, 100, 1 },
	{ "nvidia_gpu_duty_cycle", EXPORTER_USE, 1, 0 },
	{ "nvidia_gpu_memory_used_bytes", EXPORTER_MEMORY, 1, 0 },
	{ "nvidia_gpu_sm_util_percent", EXPORTER_SM_ACTIVE, 100, 0 },
	{ "nvidia_gpu_power_usage_milliwatts", EXPORTER_POWER, 0.001, 0 },
	{ "nvidia_gpu_jobId", EXPORTER_JOB_NUMBER, 1, 0 },
	{ "nvidia_gpu_jobUid", EXPORTER_USER_NUMBER, 1, 0 },
	{ 0 },
};

const struct exporter exporters[EXPORTERS] = {
	{ "dcgm", dcgm,
		{ [EXPORTER_CARD] = { "UUID", "uuid" },
			[EXPORTER_INSTANCE] = { "GPU_I_ID" },
			[EXPORTER_INDEX] = { "gpu" },
			[EXPORTER_MODEL] = { "modelName" },
			[EXPORTER_HOST] = { "Hostname", "hostname" },
			[EXPORTER_NAMESPACE] = { "exported_namespace", "namespace",
				"pod_namespace" },
			[EXPORTER_POD] = { "exported_pod", "pod", "pod_name" },
			[EXPORTER_CONTAINER] = { "exported_container", "container",
				"container_name" },
			[EXPORTER_JOB] = { "hpc_job" },
			[EXPORTER_DRIVER] = { "DCGM_FI_DRIVER_VERSION" } },
		.reads_ms = 30000 },
	{ "nvidia_gpu_exporter", nvidia_smi,
		{ [EXPORTER_CARD] = { "uuid" },
			[EXPORTER_INDEX] = { "index" },
			[EXPORTER_MODEL] = { "name" },
			[EXPORTER_DRIVER] = { "driver_version" } },
		.build = "nvidia_gpu_exporter_build_info", .has_reserved = true },
	{ "jobstats", jobstats,
		{ [EXPORTER_CARD] = { "uuid" },
			[EXPORTER_INSTANCE] = { "GPU_I_ID" },
			[EXPORTER_INDEX] = { "ordinal" },
			[EXPORTER_MODEL] = { "name" },
			[EXPORTER_JOB] = { "jobid" },
			[EXPORTER_USER] = { "userid" } },
		.has_reserved = true },
};

const struct exporter_metric *exporter_metric(const struct exporter *x, const char *name)
{
	const struct exporter_metric *m = x->metrics;
	while (m->names && options_choice(m->names, name) < 0)
		m++;
	return m->names ? m : NULL;
}

const struct exporter_metric *exporter_first(const struct exporter *x, enum exporter_role role)
{
	const struct exporter_metric *m = x->metrics;
	while (m->names && m->role != role)
		m++;
	return m->names ? m : NULL;
}

const char *exporter_match(
	const struct exporter *x, enum exporter_role role, struct arena *texts)
{
	const char *names = NULL;
	for (const struct exporter_metric *m = x->metrics; m->names; m++)
		if (m->role == role)
			names = names ? arena_textf(texts, "%s|%s", names, m->names) : m->names;
	return names ? arena_textf(texts, "__name__=~\"%s\"", names) : NULL;
}

const char *exporter_labels(const struct exporter *x, const char *more, struct arena *texts)
{
	for (size_t i = EXPORTER_LABELS; i-- > 0;)
		for (size_t k = EXPORTER_SPELLINGS; k-- > 0;)
			if (x->labels[i][k])
				more = arena_textf(texts, "%s,%s", x->labels[i][k], more);
	return more;
}

/* Unless it honours labels, a Prometheus adds the exporter's own pod to each series, and calls
 * the pod that has the card exported_pod. */
static bool is_of_exporter(const struct labels *l)
{
	return !*engine_answer_label(l, "exported_pod") &&
	       (strstr(engine_answer_label(l, "pod"), "exporter") ||
		       strstr(engine_answer_label(l, "container"), "exporter"));
}

const char *exporter_label(
	const struct exporter *x, const struct labels *l, enum exporter_label label)
{
	bool of_pod = label == EXPORTER_NAMESPACE || label == EXPORTER_POD ||
		      label == EXPORTER_CONTAINER;
	if (of_pod && is_of_exporter(l))
		return "";
	for (size_t i = 0; i < EXPORTER_SPELLINGS && x->labels[label][i]; i++) {
		const char *value = engine_answer_label(l, x->labels[label][i]);
		bool nobody = label == EXPORTER_JOB && strcmp(value, "0") == 0;
		if (*value && !nobody)
			return value;
	}
	return "";
}

const double exporter_most[EXPORTER_ROLES] = { [EXPORTER_USE] = 101,
	[EXPORTER_MEMORY] = 1e13,
	[EXPORTER_SM_ACTIVE] = 101,
	[EXPORTER_ENERGY] = 1e14,
	[EXPORTER_POWER] = 1e5,
	[EXPORTER_JOB_NUMBER] = 1e15,
	[EXPORTER_USER_NUMBER] = 1e10,
	[EXPORTER_INFO] = 1 };
