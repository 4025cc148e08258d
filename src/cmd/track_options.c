/* Options of gua track, and its configuration file. */
#include "cmd/track_options.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/timetext.h"
#include "render/track.h"
#include "driver/kind.h"

#define AT(field) .offset = offsetof(struct track_values, field)
#define SIZES                                                                                  \
	"auto, bytes, kilobytes, megabytes, gigabytes, terabytes, or kibibytes .. tebibytes"

const struct option_row track_options[] = {
	{ OPTION_TEXT, 'e', "execute", "COMMAND",
		"the command as one string: it is split into words as in a shell, but no shell "
		"runs it",
		AT(execute) },
	{ OPTION_COUNT, 'p', "pid", "N", "follow a running process, until it ends or Ctrl-C",
		AT(pid), .min = 1, .max = 4194304 },
	{ OPTION_FLAG, 0, "until-exit",
		.help = "with --pid: ignore Ctrl-C, track until the process ends",
		AT(until_exit) },
	{ OPTION_TEXT, 'o', "output", "FILE",
		"write the report to FILE (default: standard error)", AT(output) },
	{ OPTION_CHOICE, 'f', "format", "FORMAT", "text (default), json or csv",
		.choices = "text|json|csv", AT(format) },
	{ OPTION_FLAG, 'v', "verbose", .help = "text: all values, as gpu-tracker prints them",
		AT(verbose) },
	{ OPTION_TEXT, 0, "st", "TIME",
		"time between samples: seconds, or 100ms; at least 10ms "
		"(default 1s)",
		AT(interval) },
	{ OPTION_TEXT, 0, "ru", "UNIT", "unit of memory: " SIZES, AT(ram_unit),
		.words = track_sizes },
	{ OPTION_TEXT, 0, "gru", "UNIT", "unit of GPU memory; values as for --ru",
		AT(gpu_ram_unit), .words = track_sizes },
	{ OPTION_TEXT, 0, "tu", "UNIT", "unit of time: auto, seconds, minutes, hours, days",
		AT(time_unit), .words = track_times },
	{ OPTION_COUNT, 0, "nec", "N",
		"number of cores that the command was expected to use (default: all)",
		AT(cores), .min = 1, .max = 1e6 },
	{ OPTION_CHOICE, 0, "gpus", "WHICH",
		"cards in the report: own (those that the command may use or used; default) "
		"or all",
		.choices = "own|all", AT(gpus) },
	{ OPTION_TEXT, 0, "guuids", "A,B",
		"cards that count in GPU utilisation (default: see --gpus)", AT(uuids) },
	{ OPTION_TEXT, 0, "tconfig", "FILE",
		"JSON file with gpu-tracker's settings; options override "
		"it",
		AT(config) },
	{ OPTION_TEXT, 0, "tf", "FILE", "write every sample to FILE.csv or FILE.sqlite",
		AT(tracking_file) },
	{ OPTION_FLAG, 0, "overwrite", .help = "replace the --tf file if it exists",
		AT(overwrite) },
	{ OPTION_FLAG, 0, "processes", .help = "also print a table of the processes",
		AT(processes) },
	{ OPTION_FLAG, 0, "progress", .help = "show a line of current values, on a terminal",
		AT(progress) },
	{ OPTION_FLAG, 0, "disable-logs", .help = "print no warnings", AT(quiet) },
	{ OPTION_FLAG, 0, "legacy-spelling",
		.help = "write 'descendents', as gpu-tracker before version 4",
		AT(legacy_spelling) },
	{ OPTION_CHOICE, 0, "gb", "BRAND", "brand of the GPUs: nvidia", .choices = "nvidia",
		AT(brand) },
	{ OPTION_TEXT, 0, "source", "NAME,...", SOURCE_NONE_HELP, AT(source),
		.words = source_words_none },
	{ OPTION_TEXT, 0, "scenario", "FILE", SCENARIO_HELP, AT(scenario) },
	{ OPTION_TEXT, 0, "nvml", "PATH", "the driver's library (default libnvidia-ml.so.1)",
		AT(nvml) },
	{ OPTION_TEXT, 0, "root", "DIR", "look for proc and sys below DIR", AT(root),
		.hidden = true },
	{ 0 },
};

/* Keys of gpu-tracker's configuration file, and the members that they set. */
static const struct config_key {
	const char *name;
	enum { KEY_TEXT, KEY_NUMBER_TEXT, KEY_COUNT, KEY_FLAG, KEY_UUIDS, KEY_IGNORED } kind;
	size_t offset;
} config_keys[] = {
	{ "sleep_time", KEY_NUMBER_TEXT, offsetof(struct track_values, interval) },
	{ "ram_unit", KEY_TEXT, offsetof(struct track_values, ram_unit) },
	{ "gpu_ram_unit", KEY_TEXT, offsetof(struct track_values, gpu_ram_unit) },
	{ "time_unit", KEY_TEXT, offsetof(struct track_values, time_unit) },
	{ "n_expected_cores", KEY_COUNT, offsetof(struct track_values, cores) },
	{ "gpu_uuids", KEY_UUIDS, offsetof(struct track_values, uuids) },
	{ "disable_logs", KEY_FLAG, offsetof(struct track_values, quiet) },
	{ "gpu_brand", KEY_TEXT, offsetof(struct track_values, brand) },
	{ "tracking_file", KEY_TEXT, offsetof(struct track_values, tracking_file) },
	{ "overwrite", KEY_FLAG, offsetof(struct track_values, overwrite) },
	{ "resource_usage_file", KEY_IGNORED, 0 },
	{ "n_join_attempts", KEY_IGNORED, 0 },
	{ "join_timeout", KEY_IGNORED, 0 },
};

static int wrong_type(const char *path, const char *key, struct err *e)
{
	return err_set(e, ERR_USAGE, "%s: the value of \"%s\" has the wrong type", path, key);
}

/* The configuration file. Texts of options live in `json`, which track_free_options() frees. */
struct config_file {
	const char *path;
	json_t *json;
};

/* A text option takes the configuration's value unless the command line gave one. */
static int take_text(const char **to, const struct config_file *config, const char *key,
	const json_t *value, struct err *e)
{
	if (json_is_null(value))
		return 0;
	if (json_is_string(value)) {
		*to = *to ? *to : json_string_value(value);
		return 0;
	}
	if (!json_is_number(value))
		return wrong_type(config->path, key, e);
	char number[64], name[64];
	snprintf(number, sizeof(number), "%.9g", json_number_value(value));
	snprintf(name, sizeof(name), "%s as text", key);
	json_object_set_new(config->json, name, json_string(number));
	*to = *to ? *to : json_string_value(json_object_get(config->json, name));
	return 0;
}

static int take_uuids(
	const char **to, const struct config_file *config, const json_t *value, struct err *e)
{
	if (!json_is_array(value))
		return take_text(to, config, "gpu_uuids", value, e);
	struct str all = { 0 };
	for (size_t i = 0; i < json_array_size(value); i++) {
		const char *one = json_string_value(json_array_get(value, i));
		if (!one) {
			str_finish(&all);
			return wrong_type(config->path, "gpu_uuids", e);
		}
		str_addf(&all, "%s%s", i ? "," : "", one);
	}
	json_object_set_new(config->json, "uuids as text", json_string(str_text(&all)));
	str_finish(&all);
	*to = *to ? *to : json_string_value(json_object_get(config->json, "uuids as text"));
	return 0;
}

static int take_key(struct track_values *v, const struct config_key *key,
	const struct config_file *config, const json_t *value, struct err *e)
{
	void *at = (char *)v + key->offset;
	switch (key->kind) {
	case KEY_TEXT:
	case KEY_NUMBER_TEXT:
		return take_text(at, config, key->name, value, e);
	case KEY_UUIDS:
		return take_uuids(at, config, value, e);
	case KEY_COUNT:
		if (json_is_null(value))
			return 0;
		if (!json_is_integer(value) || json_integer_value(value) < 1)
			return wrong_type(config->path, key->name, e);
		if (*(int64_t *)at == 0)
			*(int64_t *)at = json_integer_value(value);
		return 0;
	case KEY_FLAG:
		if (!json_is_boolean(value))
			return wrong_type(config->path, key->name, e);
		*(bool *)at |= json_is_true(value);
		return 0;
	case KEY_IGNORED:
		return 0;
	}
	return 0;
}

static bool is_config_key(const char *name)
{
	for (size_t i = 0; i < sizeof(config_keys) / sizeof(config_keys[0]); i++)
		if (strcmp(config_keys[i].name, name) == 0)
			return true;
	return false;
}

/* Refuses unknown keys: a misspelt one would silently leave the default. */
static int check_config_keys(const char *path, json_t *config, struct err *e)
{
	char shown[64];
	const char *name;
	json_t *value;
	json_object_foreach(config, name, value)
	{
		if (is_config_key(name))
			continue;
		text_escape(shown, sizeof(shown), name, strlen(name));
		return err_set(
			e, ERR_USAGE, "--tconfig %s: unknown setting \"%s\"", path, shown);
	}
	return 0;
}

static int read_config(struct track_values *v, struct err *e)
{
	json_error_t problem;
	json_t *config = json_load_file(v->config, JSON_REJECT_DUPLICATES, &problem);
	v->config_text = config;
	if (!json_is_object(config))
		return err_set(e,
			!config && json_error_code(&problem) == json_error_cannot_open_file
				? ERR_WORLD
				: ERR_USAGE,
			"--tconfig %s: %s", v->config,
			config ? "not a JSON object" : problem.text);
	const struct config_file file = { v->config, config };
	int rc = check_config_keys(v->config, config, e);
	for (size_t i = 0; !rc && i < sizeof(config_keys) / sizeof(config_keys[0]); i++) {
		const json_t *value = json_object_get(config, config_keys[i].name);
		rc = value ? take_key(v, &config_keys[i], &file, value, e) : 0;
	}
	return rc;
}

/* A plain number is seconds, as in gpu-tracker; gua also accepts durations like "500ms". */
static int read_interval(struct track_values *v, struct err *e)
{
	char text[32];
	bool plain = v->interval[strspn(v->interval, "0123456789.")] == '\0';
	if (snprintf(text, sizeof(text), "%s%s", v->interval, plain ? "s" : "") >=
		(int)sizeof(text))
		return err_set(e, ERR_USAGE, "--st '%s' is too long", v->interval);
	int rc = duration_parse(text, &v->interval_ms, e);
	if (rc)
		return err_prefix(e, "--st");
	if (v->interval_ms < 10 || v->interval_ms > 3600000)
		return err_set(
			e, ERR_USAGE, "--st %s is out of range: 10 ms to 1 h", v->interval);
	return 0;
}

static int split_uuids(struct track_values *v, struct err *e)
{
	v->uuid_text = strdup(v->uuids);
	if (!v->uuid_text)
		return err_memory(e);
	char *rest = NULL;
	for (char *one = strtok_r(v->uuid_text, ", ", &rest); one;
		one = strtok_r(NULL, ", ", &rest)) {
		if (v->n_uuids == TRACK_MAX_UUIDS)
			return err_set(e, ERR_USAGE, "--guuids names more than %d cards",
				TRACK_MAX_UUIDS);
		v->uuid_list[v->n_uuids++] = one;
	}
	return v->n_uuids ? 0 : err_set(e, ERR_USAGE, "--guuids names no card");
}

static int check_units(const struct track_values *v, struct err *e)
{
	if (!track_size_unit(v->ram_unit, 0))
		return err_set(
			e, ERR_USAGE, "--ru '%s' is not a unit; use " SIZES, v->ram_unit);
	if (!track_size_unit(v->gpu_ram_unit, 0))
		return err_set(
			e, ERR_USAGE, "--gru '%s' is not a unit; use " SIZES, v->gpu_ram_unit);
	if (!track_time_unit(v->time_unit, 0))
		return err_set(e, ERR_USAGE,
			"--tu '%s' is not a unit; use auto, seconds, minutes, hours, days",
			v->time_unit);
	return 0;
}

static bool ends_with(const char *text, const char *end)
{
	size_t a = strlen(text), b = strlen(end);
	return a > b && strcmp(text + a - b, end) == 0;
}

static int check_tracking_file(const struct track_values *v, struct err *e)
{
	if (!v->tracking_file)
		return 0;
	if (!ends_with(v->tracking_file, ".csv") && !ends_with(v->tracking_file, ".sqlite"))
		return err_set(
			e, ERR_USAGE, "--tf %s must end in .csv or .sqlite", v->tracking_file);
	if (!v->overwrite && access(v->tracking_file, F_OK) == 0)
		return err_set(e, ERR_USAGE, "--tf %s exists; give --overwrite to replace it",
			v->tracking_file);
	return 0;
}

int track_finish_options(struct track_values *v, struct err *e)
{
	int rc = v->config ? read_config(v, e) : 0;
	v->interval = v->interval ? v->interval : "1";
	const char *size = v->default_size ? v->default_size : "auto";
	v->ram_unit = v->ram_unit ? v->ram_unit : size;
	v->gpu_ram_unit = v->gpu_ram_unit ? v->gpu_ram_unit : size;
	v->time_unit = v->time_unit ? v->time_unit : v->default_time ? v->default_time : "auto";
	v->source = v->source ? v->source : SOURCE_AUTO;
	if (!rc && v->brand && strcmp(v->brand, "nvidia") != 0)
		rc = err_set(
			e, ERR_USAGE, "gua supports only NVIDIA cards, not '%s'", v->brand);
	if (!rc)
		rc = read_interval(v, e);
	if (!rc)
		rc = check_units(v, e);
	if (!rc && v->uuids)
		rc = split_uuids(v, e);
	if (!rc)
		rc = check_tracking_file(v, e);
	if (!rc)
		rc = source_check(v->source, v->scenario, true, e);
	if (!rc && v->until_exit && !v->pid)
		rc = err_set(e, ERR_USAGE, "--until-exit needs --pid");
	return rc;
}

bool track_own_gpus(const struct track_values *v)
{
	return !v->gpus || strcmp(v->gpus, "own") == 0;
}

void track_free_options(struct track_values *v)
{
	free(v->uuid_text);
	json_decref(v->config_text);
}
