/* The options of gua track, and what --tconfig gives instead of them. */
#include <jansson.h>

#include "cmd/cmd_track.h"
#include "cmd/share/cmd_live.h"

#define AT(field) .offset = offsetof(struct track_values, field)
#define SIZES                                                                                  \
	"auto, bytes, kilobytes, megabytes, gigabytes, terabytes, or kibibytes .. tebibytes"

const struct option_row track_options[] = {
	{ OPTION_TEXT, 'e', "execute", "COMMAND",
		"the command as one string: it is split into words as in a shell, but no shell "
		"runs it, so 'a | b' is no pipe",
		AT(execute) },
	{ OPTION_COUNT, 'p', "pid", "N", "follow a running process, until it ends or Ctrl-C",
		AT(pid), .min = 1, .max = 4194304 },
	{ OPTION_FLAG, 0, "until-exit",
		.help = "with --pid: ignore Ctrl-C, track until the process ends",
		AT(until_exit) },
	{ OPTION_TEXT, 'o', "output", "FILE",
		"write the report to FILE (default: standard error)", AT(output) },
	{ OPTION_CHOICE, 'f', "format", "FORMAT", "text (default), json or csv",
		.choices = TRACK_FORMATS, AT(format) },
	{ OPTION_FLAG, 'v', "verbose", .help = "text: all values, as gpu-tracker prints them",
		AT(verbose) },
	{ OPTION_TEXT, 0, "st", "TIME",
		"time between samples: seconds, or 100ms; at least 10ms (default 1s)",
		AT(interval) },
	{ OPTION_TEXT, 0, "ru", "UNIT", "unit of memory: " SIZES, AT(ram_unit),
		.words = track_sizes },
	{ OPTION_TEXT, 0, "gru", "UNIT", "unit of GPU memory; values as for --ru",
		AT(gpu_ram_unit), .words = track_sizes },
	{ OPTION_TEXT, 0, "tu", "UNIT", "unit of time: auto, seconds, minutes, hours, days",
		AT(time_unit), .words = track_times },
	{ OPTION_COUNT, 0, "nec", "N",
		"number of cores that the command was expected to use (default: all that it "
		"may use)",
		AT(o.expected_cores), .min = 1, .max = 1e6 },
	{ OPTION_CHOICE, 0, "gpus", "WHICH",
		"cards in the report: own (those that the command may use or used; default) "
		"or all",
		.choices = "own|all", AT(gpus) },
	{ OPTION_TEXT, 0, "guuids", "A,B",
		"cards that count in GPU utilisation (default: see --gpus)", AT(uuids) },
	{ OPTION_TEXT, 0, "tconfig", "FILE",
		"JSON file with gpu-tracker's settings; options override it", AT(config) },
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
	SOURCE_ROWS(struct track_values, o.source, SOURCE_NONE_HELP, source_words_none),
	{ 0 },
};

/* Keys of gpu-tracker's configuration, and the options that do the same; NULL: none does. */
static const struct config_key {
	const char *name, *option;
} config_keys[] = {
	{ "sleep_time", "st" },
	{ "ram_unit", "ru" },
	{ "gpu_ram_unit", "gru" },
	{ "time_unit", "tu" },
	{ "n_expected_cores", "nec" },
	{ "gpu_uuids", "guuids" },
	{ "disable_logs", "disable-logs" },
	{ "gpu_brand", "gb" },
	{ "tracking_file", "tf" },
	{ "overwrite", "overwrite" },
	{ "resource_usage_file", NULL },
	{ "n_join_attempts", NULL },
	{ "join_timeout", NULL },
};

/* The value as the text of an option, which lives in v->config_text; NULL: another type. */
static const char *text_of(const struct track_values *v, const char *key, const json_t *value)
{
	char name[64];
	struct str text = { 0 };
	bool fits = json_is_string(value) || json_is_number(value) ||
		    (json_is_array(value) && strcmp(key, "gpu_uuids") == 0);
	if (json_is_string(value))
		str_add(&text, json_string_value(value));
	else if (json_is_number(value))
		str_addf(&text, "%.9g", json_number_value(value));
	for (size_t i = 0; fits && i < json_array_size(value); i++) {
		const char *one = json_string_value(json_array_get(value, i));
		str_addf(&text, "%s%s", i ? "," : "", one ? one : "");
		fits = one;
	}
	snprintf(name, sizeof(name), "%s as text", key);
	json_object_set_new(v->config_text, name, json_string(str_text(&text)));
	str_finish(&text);
	return fits ? json_string_value(json_object_get(v->config_text, name)) : NULL;
}

/* Gives the value to its option, unless the command line did. False: it has the wrong type. */
static bool take_key(struct track_values *v, const struct config_key *key, const json_t *value,
	const bool *given)
{
	const struct option_row *row = track_options;
	while (key->option && strcmp(row->name, key->option) != 0)
		row++;
	void *at = (char *)v + row->offset;
	if (!key->option)
		return true;
	if (row->kind == OPTION_FLAG) {
		*(bool *)at |= json_is_true(value);
		return json_is_boolean(value);
	}
	if (json_is_null(value))
		return true;
	bool count = row->kind == OPTION_COUNT, given_already = given[row - track_options];
	int64_t number = json_integer_value(value);
	const char *text = count ? NULL : text_of(v, key->name, value);
	if (count && !given_already)
		*(int64_t *)at = number;
	else if (!given_already)
		*(const char **)at = text;
	return count ? number >= 1 : text != NULL;
}

static int read_config(struct track_values *v, const bool *given, struct err *e)
{
	enum { N_KEYS = sizeof(config_keys) / sizeof(config_keys[0]) };
	char shown[64];
	const char *name;
	json_t *value;
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
	/* Unknown keys are refused: a misspelt one would silently leave the default. */
	json_object_foreach(config, name, value)
	{
		size_t i = 0;
		while (i < N_KEYS && strcmp(config_keys[i].name, name) != 0)
			i++;
		if (i < N_KEYS)
			continue;
		str_escape(shown, sizeof(shown), name, strlen(name));
		return err_set(
			e, ERR_USAGE, "--tconfig %s: unknown setting \"%s\"", v->config, shown);
	}
	for (size_t i = 0; i < N_KEYS; i++) {
		value = json_object_get(config, config_keys[i].name);
		if (value && !take_key(v, &config_keys[i], value, given))
			return err_set(e, ERR_USAGE,
				"%s: the value of \"%s\" has the wrong type", v->config,
				config_keys[i].name);
	}
	return 0;
}

/* A plain number is seconds, as in gpu-tracker; gua also accepts durations like "500ms". */
static int read_interval(struct track_values *v, struct err *e)
{
	char text[32];
	bool plain = v->interval[strspn(v->interval, "0123456789.")] == '\0';
	if (snprintf(text, sizeof(text), "%s%s", v->interval, plain ? "s" : "") >=
		(int)sizeof(text))
		return err_set(e, ERR_USAGE, "--st '%s' is too long", v->interval);
	int rc = duration_parse(text, &v->o.interval_ms, e);
	if (rc)
		return err_prefix(e, "--st");
	if (v->o.interval_ms < 10 || v->o.interval_ms > 3600000)
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
	v->o.gpu_uuids = v->uuid_list;
	for (char *one = strtok_r(v->uuid_text, ", ", &rest); one;
		one = strtok_r(NULL, ", ", &rest)) {
		if (v->o.n_gpu_uuids == TRACK_MAX_UUIDS)
			return err_set(e, ERR_USAGE, "--guuids names more than %d cards",
				TRACK_MAX_UUIDS);
		v->uuid_list[v->o.n_gpu_uuids++] = one;
	}
	return v->o.n_gpu_uuids ? 0 : err_set(e, ERR_USAGE, "--guuids names no card");
}

int track_options_check(struct track_values *v, const bool *given, struct err *e)
{
	if (v->config && read_config(v, given, e))
		return e->code;
	const char *file = v->tracking_file;
	v->style = v->format ? (enum track_format)options_choice(TRACK_FORMATS, v->format)
			     : TRACK_TEXT;
	/* An automatic unit is for people; programs always get the same unit. */
	bool for_programs = v->style != TRACK_TEXT;
	const char *size = v->default_size ? v->default_size : for_programs ? "bytes" : "auto";
	const char *time = v->default_time ? v->default_time
			   : for_programs  ? "seconds"
					   : "auto";
	v->interval = v->interval ? v->interval : "1";
	v->ram_unit = v->ram_unit ? v->ram_unit : size;
	v->gpu_ram_unit = v->gpu_ram_unit ? v->gpu_ram_unit : size;
	v->time_unit = v->time_unit ? v->time_unit : time;
	if (v->brand && strcmp(v->brand, "nvidia") != 0)
		return err_set(
			e, ERR_USAGE, "gua supports only NVIDIA cards, not '%s'", v->brand);
	if (read_interval(v, e))
		return e->code;
	bool of_ram = !track_size_unit(v->ram_unit, 0);
	if (of_ram || !track_size_unit(v->gpu_ram_unit, 0))
		return err_set(e, ERR_USAGE, "--%s '%s' is not a unit; use " SIZES,
			of_ram ? "ru" : "gru", of_ram ? v->ram_unit : v->gpu_ram_unit);
	if (!track_time_unit(v->time_unit, 0))
		return err_set(e, ERR_USAGE,
			"--tu '%s' is not a unit; use auto, seconds, minutes, hours, days",
			v->time_unit);
	if (v->uuids && split_uuids(v, e))
		return e->code;
	if (file && !str_ends_with(file, ".csv") && !str_ends_with(file, ".sqlite"))
		return err_set(e, ERR_USAGE, "--tf %s must end in .csv or .sqlite", file);
	if (file && !v->overwrite && access(file, F_OK) == 0)
		return err_set(
			e, ERR_USAGE, "--tf %s exists; give --overwrite to replace it", file);
	if (source_check(v->o.source.name, v->o.source.scenario, true, e))
		return e->code;
	return v->until_exit && !v->pid ? err_set(e, ERR_USAGE, "--until-exit needs --pid") : 0;
}

void track_options_free(struct track_values *v)
{
	free(v->uuid_text);
	json_decref(v->config_text);
}
