/* The table of metrics, their names, and how a value is written. */
#include "model/metric.h"

#include "base/nearest.h"

/* clang-format off */
const struct metric_info metrics[METRIC_COUNT] = {
#define METRIC(id, form_, detail_, unit_, scale_, name_, synonyms_, help_)                     \
	[METRIC_##id] = { .name = (name_), .synonyms = (synonyms_), .unit = (unit_),           \
		.scale = (scale_), .help = (help_), .form = METRIC_FORM_##form_,               \
		.detail = (detail_) },
#include "model/metrics.def"
#undef METRIC
};
/* clang-format on */

/* Steps through the names of a metric: its own, then the synonyms. NULL at the end. */
static const char *next_name(const struct metric_info *m, const char *before, size_t *len)
{
	const char *name = m->name;
	if (before) {
		bool own = before == m->name;
		name = own ? m->synonyms : before + strcspn(before, " ");
		name += strspn(name, " ");
	}
	*len = strcspn(name, " ");
	return *len ? name : NULL;
}

int metric_find(const char *name, size_t len)
{
	for (int i = 0; i < METRIC_COUNT; i++) {
		size_t own_len = 0;
		const char *own = NULL;
		while ((own = next_name(&metrics[i], own, &own_len)) != NULL)
			if (own_len == len && strncasecmp(own, name, len) == 0)
				return i;
	}
	return -1;
}

size_t metric_nearest(const char *name, size_t len, int *found, size_t max)
{
	size_t distances[METRIC_COUNT];
	for (int i = 0; i < METRIC_COUNT; i++) {
		size_t best = NEAREST_NEVER, own_len = 0;
		const char *own = NULL;
		while ((own = next_name(&metrics[i], own, &own_len)) != NULL) {
			size_t d = nearest_distance(own, own_len, name, len);
			best = d < best ? d : best;
		}
		distances[i] = best;
	}
	return nearest_few(distances, METRIC_COUNT, len, found, max);
}

void metric_clear(double *values, metric_texts texts)
{
	for (int i = 0; i < METRIC_COUNT; i++)
		values[i] = NAN;
	for (int i = 0; i < METRIC_DRIVER_TEXTS; i++)
		texts[i][0] = '\0';
}

/* IEEE 754: the low bits of a quiet NAN are free, and copies keep them. */
#define QUIET_NAN UINT64_C(0x7ff8000000000000)
#define CODE_BITS UINT64_C(0x7fff)

double metric_failed(int code)
{
	uint64_t bits = QUIET_NAN | ((uint64_t)code & CODE_BITS);
	double value;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

void metric_take_codes(const double *values, metric_codes codes)
{
	for (int i = 0; i < METRIC_COUNT; i++) {
		uint64_t bits;
		memcpy(&bits, &values[i], sizeof(bits));
		codes[i] = (short)(isnan(values[i]) ? bits & CODE_BITS : 0);
	}
}

void metric_complete(unsigned char *wanted)
{
	for (int i = 0; i < METRIC_COUNT; i++)
		if (wanted[i] && metrics[i].form == METRIC_FORM_REASON_BIT)
			wanted[METRIC_REASONS] = 1;
}

void metric_derive(double *values)
{
	double reasons = values[METRIC_REASONS];
	for (int i = 0; i < METRIC_COUNT; i++)
		if (metrics[i].form == METRIC_FORM_REASON_BIT)
			values[i] =
				isnan(reasons)
					? reasons
					: (double)((long long)reasons >> metrics[i].detail & 1);
}

/* The words of the forms that have some, by value. */
static const struct form_words {
	const char *words[17];
	size_t n;
} form_words[METRIC_FORM_MOMENT + 1] = {
	[METRIC_FORM_ON_OFF] = { { "Disabled", "Enabled" }, 2 },
	[METRIC_FORM_YES_NO] = { { "No", "Yes" }, 2 },
	[METRIC_FORM_REASON_BIT] = { { "Not Active", "Active" }, 2 },
	[METRIC_FORM_COMPUTE_MODE] = { { "Default", "Exclusive_Thread", "Prohibited",
					       "Exclusive_Process" },
		4 },
	[METRIC_FORM_GOM] = { { "All On", "Compute", "Low Double Precision" }, 3 },
	[METRIC_FORM_ADDRESSING] = { { "None", "HMM", "ATS" }, 3 },
	[METRIC_FORM_VALIDITY] = { { "invalid", "valid" }, 2 },
	[METRIC_FORM_RECOVERY] = { { "None", "Reset", "Reboot", "Drain P2P",
					   "Drain and Reset" },
		5 },
	[METRIC_FORM_PEER] = { { "Direct Connected" }, 1 },
	[METRIC_FORM_FABRIC] = { { "", "Not Started", "In Progress", "Completed" }, 4 },
	[METRIC_FORM_HEALTH] = { { "", "Healthy", "Unhealthy", "Limited Capacity" }, 4 },
	[METRIC_FORM_BANDWIDTH] = { { "", "Degraded", "Full" }, 3 },
	[METRIC_FORM_TRUE_FALSE] = { { "", "True", "False" }, 3 },
	[METRIC_FORM_BRAND] = { { "Unknown", "Quadro", "Tesla", "NVS", "GRID", "GeForce",
					"Titan", "NVIDIA Virtual Applications",
					"NVIDIA Virtual PC", "NVIDIA RTX Virtual Workstation",
					"NVIDIA Cloud Gaming", "NVIDIA Cloud Gaming",
					"Quadro RTX", "NVIDIA RTX", "NVIDIA", "GeForce RTX",
					"Titan RTX" },
		17 },
	[METRIC_FORM_ARCHITECTURE] = { { "", "", "Kepler", "Maxwell", "Pascal", "Volta",
					       "Turing", "Ampere", "Ada Lovelace", "Hopper",
					       "Blackwell", "", "", "Rubin" },
		14 },
	[METRIC_FORM_VIRTUALIZATION] = { { "None", "Pass-Through", "VGPU", "Host VGPU",
						 "Host VSGA" },
		5 },
};

/* The word that stands for a value, "" when there is none; NULL: it is a number. */
static const char *word_of(enum metric_form form, double value)
{
	const struct form_words *f = &form_words[form];
	if (form == METRIC_FORM_DRIVER_TEXT || form == METRIC_FORM_CARD_TEXT)
		return "";
	if (f->n == 0)
		return NULL;
	return value >= 0 && value < (double)f->n ? f->words[(size_t)value] : "";
}

void metric_show(char *dst, size_t cap, enum metric m, double value)
{
	const struct metric_info *info = &metrics[m];
	const char *word = isnan(value) ? "" : word_of(info->form, value);
	if (word)
		str_copy(dst, cap, word);
	else if (info->form == METRIC_FORM_HEX)
		snprintf(dst, cap, "0x%0*llX", info->detail, (unsigned long long)value);
	else if (info->form == METRIC_FORM_PSTATE && value > 15)
		str_copy(dst, cap, ""); /* the driver reports 32 when it does not know */
	else if (info->form == METRIC_FORM_PSTATE)
		snprintf(dst, cap, "P%d", (int)value);
	else if (info->form == METRIC_FORM_CUDA)
		snprintf(dst, cap, "%d.%d", (int)value / 1000, (int)value % 1000 / 10);
	else if (info->form == METRIC_FORM_MOMENT)
		str_copy(dst, cap, moment_iso((int64_t)value).text);
	else if (info->detail == 0)
		snprintf(dst, cap, "%.0f", floor(value / info->scale));
	else
		snprintf(dst, cap, "%.*f", info->detail, value / info->scale);
}
