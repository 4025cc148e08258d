/* Prints a tracker's result: gpu-tracker's outline, the values that gua adds, and tables. */
#include "render/track.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "render/outline.h"
#include "render/track_parts.h"
#include "render/track_short.h"

static const struct track_unit sizes[] = {
	{ "bytes", 1 },
	{ "kilobytes", 1e-3 },
	{ "megabytes", 1e-6 },
	{ "gigabytes", 1e-9 },
	{ "terabytes", 1e-12 },
	{ "kibibytes", 1.0 / 1024 },
	{ "mebibytes", 1.0 / (1 << 20) },
	{ "gibibytes", 1.0 / (1 << 30) },
	{ "tebibytes", 1.0 / (1LL << 40) },
};
enum { DECIMAL_SIZES = 5, SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static const struct track_unit times[] = {
	{ "seconds", 1 },
	{ "minutes", 1.0 / 60 },
	{ "hours", 1.0 / 3600 },
	{ "days", 1.0 / 86400 },
};
enum { TIMES = sizeof(times) / sizeof(times[0]) };

/* Finds a unit by name. For "auto": the largest of the first `choices` units in which `value`
 * is at least 1. */
static const struct track_unit *find_unit(const struct track_unit *units, size_t n,
	size_t choices, const char *name, double value)
{
	size_t best = 0;
	if (strcmp(name, "auto") == 0) {
		for (size_t i = 0; i < choices; i++)
			if (value * units[i].factor >= 1)
				best = i;
		return &units[best];
	}
	for (size_t i = 0; i < n; i++)
		if (strcmp(units[i].name, name) == 0)
			return &units[i];
	return NULL;
}

const struct track_unit *track_size_unit(const char *name, double value)
{
	return find_unit(sizes, SIZES, DECIMAL_SIZES, name, value);
}

static void add_units(struct str *out, const struct track_unit *units, size_t n)
{
	str_add(out, "auto ");
	for (size_t i = 0; i < n; i++)
		str_addf(out, "%s ", units[i].name);
}

void track_sizes(struct str *out)
{
	add_units(out, sizes, SIZES);
}

void track_times(struct str *out)
{
	add_units(out, times, TIMES);
}

const struct track_unit *track_time_unit(const char *name, double value)
{
	return find_unit(times, TIMES, TIMES, name, value);
}

/* Converts bytes to a unit; unknown stays unknown. */
static double in_unit(int64_t bytes, const struct track_unit *unit)
{
	return bytes < 0 ? NAN : (double)bytes * unit->factor;
}

static const struct group_name {
	const char *key, *label, *threads_key, *threads_label;
} groups[TRACK_GROUPS] = {
	[TRACK_MAIN] = { "main", "Main", "main_n_threads", "Main number of threads" },
	[TRACK_DESCENDANTS] = { "descendants", "Descendants", "descendants_n_threads",
		"Descendants number of threads" },
	[TRACK_COMBINED] = { "combined", "Combined", "combined_n_threads",
		"Combined number of threads" },
};

static void add_ram(
	struct outline *o, const struct track_result *r, const struct track_style *style)
{
	int64_t most = r->ram[TRACK_COMBINED].total_bytes;
	const struct track_unit *unit = track_size_unit(style->ram_unit, (double)most);
	outline_open(o, "max_ram", "Max RAM");
	outline_text(o, "unit", "Unit", unit->name);
	outline_real(
		o, "system_capacity", "System capacity", in_unit(r->ram_capacity_bytes, unit));
	outline_real(o, "system", "System", in_unit(r->ram_system_max_bytes, unit));
	for (size_t g = 0; g < TRACK_GROUPS; g++) {
		const struct track_ram *ram = &r->ram[g];
		outline_open(o, groups[g].key, groups[g].label);
		outline_real(o, "total_rss", "Total RSS", in_unit(ram->total_bytes, unit));
		outline_real(
			o, "private_rss", "Private RSS", in_unit(ram->private_bytes, unit));
		outline_real(o, "shared_rss", "Shared RSS", in_unit(ram->shared_bytes, unit));
		outline_close(o);
	}
	outline_close(o);
}

static void add_gpu_ram(
	struct outline *o, const struct track_result *r, const struct track_style *style)
{
	int64_t most = r->gpu_ram[TRACK_COMBINED] > 0 ? r->gpu_ram[TRACK_COMBINED]
						      : r->gpu_system_max_bytes;
	const struct track_unit *unit = track_size_unit(style->gpu_ram_unit, (double)most);
	outline_open(o, "max_gpu_ram", "Max GPU RAM");
	outline_text(o, "unit", "Unit", unit->name);
	outline_real(
		o, "system_capacity", "System capacity", in_unit(r->gpu_capacity_bytes, unit));
	outline_real(o, "system", "System", in_unit(r->gpu_system_max_bytes, unit));
	for (size_t g = 0; g < TRACK_GROUPS; g++)
		outline_real(o, groups[g].key, groups[g].label, in_unit(r->gpu_ram[g], unit));
	outline_close(o);
}

/* Adds the four percentages; hardware percent is divided by `parts` cores or cards. */
static void add_percentages(struct outline *o, const char *key, const char *label,
	const struct track_cpu *use, int64_t parts)
{
	double n = parts > 0 ? (double)parts : NAN;
	outline_open(o, key, label);
	outline_real(o, "max_sum_percent", "Max sum percent", use->max_sum_pct);
	outline_real(o, "max_hardware_percent", "Max hardware percent", use->max_sum_pct / n);
	outline_real(o, "mean_sum_percent", "Mean sum percent", use->mean_sum_pct);
	outline_real(
		o, "mean_hardware_percent", "Mean hardware percent", use->mean_sum_pct / n);
	outline_close(o);
}

static void add_cpu(struct outline *o, const struct track_result *r)
{
	outline_open(o, "cpu_utilization", "CPU utilization");
	outline_count(o, "system_core_count", "System core count", r->core_count);
	outline_count(o, "n_expected_cores", "Number of expected cores", r->expected_cores);
	add_percentages(o, "system", "System", &r->cpu_system, r->core_count);
	for (size_t g = 0; g < TRACK_GROUPS; g++)
		add_percentages(
			o, groups[g].key, groups[g].label, &r->cpu[g], r->expected_cores);
	for (size_t g = 0; g < TRACK_GROUPS; g++)
		outline_count(
			o, groups[g].threads_key, groups[g].threads_label, r->max_threads[g]);
	outline_close(o);
}

static void add_gpu(struct outline *o, const struct track_result *r)
{
	outline_open(o, "gpu_utilization", "GPU utilization");
	outline_count(o, "system_gpu_count", "System GPU count", r->gpu_count);
	outline_count(o, "n_expected_gpus", "Number of expected GPUs", r->expected_gpus);
	add_percentages(
		o, "gpu_percentages", "GPU percentages", &r->gpu_util, r->expected_gpus);
	outline_close(o);
}

static void add_time(
	struct outline *o, const struct track_result *r, const struct track_style *style)
{
	const struct track_unit *unit = track_time_unit(style->time_unit, r->elapsed_s);
	outline_open(o, "compute_time", "Compute time");
	outline_text(o, "unit", "Unit", unit->name);
	outline_real(o, "time", "Time", r->elapsed_s * unit->factor);
	outline_close(o);
}

static void make_outline(struct outline *o, const struct track_result *r,
	const struct track_style *style, struct track_advice *advice)
{
	if (style->legacy_spelling) {
		o->replace[0] = "descendants";
		o->replace[1] = "descendents";
	}
	add_ram(o, r, style);
	add_gpu_ram(o, r, style);
	add_cpu(o, r);
	add_gpu(o, r);
	add_time(o, r, style);
	track_add_more(o, r, style);
	if (style->advice)
		track_add_advice(o, r, style, advice);
}

static void print_json(struct str *out, const struct outline *o, const struct track_result *r,
	const struct track_style *style)
{
	struct json j = { .out = out, .lines = 4 };
	json_open(&j, NULL, '{');
	outline_print_json(&j, o); /* first, in gpu-tracker's order */
	json_text(&j, "schema", "gua-track-1");
	track_cards_json(&j, r);
	if (style->processes)
		track_processes_json(&j, r, style->users);
	json_close(&j, '}');
	str_add(out, "\n");
}

void track_render(
	struct str *out, const struct track_result *r, const struct track_style *style)
{
	struct outline o = { 0 };
	struct track_advice advice = { 0 };
	make_outline(&o, r, style, &advice);
	if (style->format == TRACK_JSON) {
		print_json(out, &o, r, style);
	} else if (style->format == TRACK_CSV) {
		outline_print_csv(out, &o);
	} else {
		if (style->verbose) {
			outline_print_text(out, &o);
			track_cards_text(out, r);
		} else {
			track_short_text(out, r, style);
		}
		if (style->processes)
			track_processes_text(out, r, style->users);
	}
	outline_finish(&o);
}

static void add_size(struct str *out, const char *label, int64_t bytes)
{
	char size[SIZE_TEXT_CAP];
	size_text(size, (double)bytes);
	if (bytes >= 0)
		str_addf(out, "  %s %s", label, size);
}

void track_progress(struct str *out, const struct track_sample *s, int columns)
{
	struct str line = { 0 };
	str_addf(&line, "%.0f s  CPU %.0f%%", s->elapsed_s, s->cpu_pct[TRACK_COMBINED]);
	add_size(&line, "RAM", s->ram_bytes[TRACK_COMBINED]);
	add_size(&line, "GPU memory", s->gpu_ram_bytes[TRACK_COMBINED]);
	if (!isnan(s->gpu_sum_pct))
		str_addf(&line, "  GPU %.0f%%", s->gpu_sum_pct);
	str_addf(&line, "  %lld process%s", (long long)s->processes,
		s->processes == 1 ? "" : "es");
	size_t len = columns > 0 && line.len > (size_t)columns ? (size_t)columns : line.len;
	str_add_bytes(out, str_text(&line), len);
	str_finish(&line);
}
