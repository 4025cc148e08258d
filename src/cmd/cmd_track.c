/* gua track: measures what a command or process, and all processes below it, use. */
#include "cmd/cmd_track.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/helper.h"
#include "base/log.h"
#include "base/duration.h"
#include "base/words.h"
#include "cmd/share/cmd_live.h"
#include "cmd/share/terminal.h"
#include "cmd/track_run.h"
#include "driver/host/apart.h"
#include "driver/source.h"
#include "proc/proc_parse.h"
#include "proc/proc.h"
#include "proc/reader.h"
#include "render/track.h"
#include "store/trackfile.h"
#include "track/tracker.h"
#include "track/tree.h"

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
		"number of cores that the command was expected to use (default: all that it "
		"may use)",
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
		str_escape(shown, sizeof(shown), name, strlen(name));
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
	bool ram = track_size_unit(v->ram_unit, 0) != NULL;
	if (!ram || !track_size_unit(v->gpu_ram_unit, 0))
		return err_set(e, ERR_USAGE, "--%s '%s' is not a unit; use " SIZES,
			ram ? "gru" : "ru", ram ? v->gpu_ram_unit : v->ram_unit);
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

/* Fills in --tconfig's values where the command line gave none, then the defaults, and checks
 * all of them: units, interval, format, brand, files. */
static int track_finish_options(struct track_values *v, struct err *e)
{
	int rc = v->config ? read_config(v, e) : 0;
	v->interval = v->interval ? v->interval : "1";
	/* An automatic unit is for people; programs always get the same unit. */
	bool for_programs = v->format && strcmp(v->format, "text") != 0;
	const char *size = v->default_size ? v->default_size : for_programs ? "bytes" : "auto";
	const char *time = v->default_time ? v->default_time
			   : for_programs  ? "seconds"
					   : "auto";
	v->ram_unit = v->ram_unit ? v->ram_unit : size;
	v->gpu_ram_unit = v->gpu_ram_unit ? v->gpu_ram_unit : size;
	v->time_unit = v->time_unit ? v->time_unit : time;
	v->source = v->source ? v->source : SOURCE_AUTO;
	if (rc)
		return rc;
	if (v->brand && strcmp(v->brand, "nvidia") != 0)
		return err_set(
			e, ERR_USAGE, "gua supports only NVIDIA cards, not '%s'", v->brand);
	if (read_interval(v, e) || check_units(v, e) || (v->uuids && split_uuids(v, e)) ||
		check_tracking_file(v, e) || source_check(v->source, v->scenario, true, e))
		return e->code;
	return v->until_exit && !v->pid ? err_set(e, ERR_USAGE, "--until-exit needs --pid") : 0;
}

/* Whether only the cards of the command are in the report: --gpus. */
static bool track_own_gpus(const struct track_values *v)
{
	return !v->gpus || strcmp(v->gpus, "own") == 0;
}

static void track_free_options(struct track_values *v)
{
	free(v->uuid_text);
	json_decref(v->config_text);
}

static ssize_t arguments(void *context, const struct process_id *id, char *dst, size_t cap)
{
	return reader_arguments(context, id, dst, cap);
}

static int rollup(void *context, const struct process_id *id, struct proc_rollup *found)
{
	return reader_rollup(context, id, found);
}

static int mappings(void *context, const struct process_id *id, struct mappings *found)
{
	return reader_mappings(context, id, found);
}

static int io(void *context, const struct process_id *id, struct proc_io *found)
{
	return reader_io(context, id, found);
}

static double cpu_s(void *context)
{
	return reader_cpu_s(context);
}

static bool owns(void *context, pid_t pid)
{
	return reader_owns(context, pid);
}

/* Variables of the environment that matter to a tracker. */
#define VISIBLE "CUDA_VISIBLE_DEVICES"
#define JOB "SLURM_JOB_ID"
enum { ENVIRONMENT_CAP = 256 * 1024, DEADLINE_MS = 1000 };

/* Appends "NAME=value" if the environment has it. */
static void find(const char *bytes, size_t len, const struct str *name, struct str *reply)
{
	struct proc_arguments all = { bytes, len, 0 };
	const char *one;
	size_t one_len;
	while (proc_next_argument(&all, &one, &one_len))
		if (one_len > name->len && memcmp(one, str_text(name), name->len) == 0 &&
			one[name->len] == '=') {
			str_add_bytes(reply, one, one_len);
			return;
		}
}

/* Runs in the helper, because reading an environment may block; see proc/proc.h. */
static void serve(void *context, const struct str *request, struct str *reply)
{
	const struct track_values *v = context;
	struct err e = { 0 };
	int proc = -1;
	char *bytes = malloc(ENVIRONMENT_CAP);
	if (bytes && proc_open(&proc, v->root ? v->root : "", &e) == 0) {
		ssize_t n =
			proc_read_environment(proc, (uint32_t)v->pid, bytes, ENVIRONMENT_CAP);
		if (n > 0) {
			find(bytes, (size_t)n, request, reply);
			explicit_bzero(bytes, (size_t)n);
		}
	}
	if (proc >= 0)
		close(proc);
	free(bytes);
}

static char *of_process(const struct track_values *v, const char *name)
{
	struct track_values copy = *v;
	const struct helper_work work = {
		.name = TRACK_HELPER_NAME, .serve = serve, .context = &copy
	};
	struct helper *helper = NULL;
	struct err e = { 0 };
	struct str request = { 0 };
	const struct str *reply = NULL;
	char *value = NULL;
	if (helper_new(&helper, &work, &e))
		return NULL;
	str_add(&request, name);
	if (helper_send(helper, &request, &e) == 0 &&
		helper_receive(helper, DEADLINE_MS, &reply, &e) == 0 && reply->len)
		value = strdup(str_text(reply) + request.len + 1);
	int left = helper_free(helper, DEADLINE_MS);
	if (left >= 0)
		close(left);
	str_finish(&request);
	return value;
}

/* Returns the value in the environment of the command, which is gua's own; with --pid, of that
 * process when it was started. NULL: not set, not needed, or it cannot be read. The caller
 * frees it. */
static char *variable(const struct track_values *v, const char *name)
{
	if (v->pid)
		return of_process(v, name);
	const char *value = secure_getenv(name);
	return value ? strdup(value) : NULL;
}

/* Outputs of a run: the files and the line of current values. */
struct session {
	const struct command *self;
	struct track_values *v;
	int output;		/* where the report goes */
	struct trackfile *file; /* or NULL */
	struct reader *reader;	/* for what may block */
	char *visible;		/* CUDA_VISIBLE_DEVICES of the command; NULL: not set */
	char *job;		/* its Slurm job, by its environment; NULL: not set */
	struct fault file_fault;
	bool progress; /* the line of current values is shown */
};

static void on_sample(void *context, const struct track_sample *sample)
{
	struct session *s = context;
	struct err e = { 0 };
	if (s->file && trackfile_add(s->file, sample, &e))
		fault_raise(&s->file_fault, sample->wall_us / 1000, "%s", e.text);
	if (!s->progress)
		return;
	struct str line = { 0 };
	int columns = (int)terminal_size_of(STDERR_FILENO).columns;
	track_progress(&line, sample, (columns ? columns : 80) - 1);
	fprintf(stderr, "\r\033[K%s", str_text(&line));
	str_finish(&line);
}

/* The header of the tracking file names the units, so "auto" must be decided before the first
 * sample. */
static const char *fixed_unit(const char *name, const char *instead)
{
	return strcmp(name, "auto") == 0 ? instead : name;
}

/* Opens the tracking file. The tracker is open and the command waits to be started, so a
 * failure here still prevents the start. */
static int on_start(void *context, struct tracker *tracker, struct err *e)
{
	const struct session *s = context;
	const struct track_values *v = s->v;
	const struct track_result *r = tracker_result(tracker);
	if (!s->file)
		return 0;
	const char *ram = fixed_unit(v->ram_unit, "gigabytes");
	const char *gpu = fixed_unit(v->gpu_ram_unit, "gigabytes");
	struct trackfile_head head = {
		.ram_unit = ram,
		.gpu_ram_unit = gpu,
		.time_unit = fixed_unit(v->time_unit, "hours"),
		.ram_factor = track_size_unit(ram, 0)->factor,
		.gpu_ram_factor = track_size_unit(gpu, 0)->factor,
		.ram_capacity_bytes = r->ram_capacity_bytes,
		.gpu_capacity_bytes = r->gpu_capacity_bytes,
		.core_count = r->core_count,
		.expected_cores = r->expected_cores,
		.gpu_count = r->gpu_count,
		.expected_gpus = r->expected_gpus,
	};
	return trackfile_begin(s->file, &head, e);
}

static int write_all(int fd, const char *bytes, size_t len)
{
	while (len) {
		ssize_t n = write(fd, bytes, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		bytes += n;
		len -= (size_t)n;
	}
	return 0;
}

static int write_report(struct session *s, const struct track_outcome *outcome, struct err *e)
{
	const struct track_values *v = s->v;
	struct str out = { 0 };
	struct track_style style = {
		.format = !v->format || strcmp(v->format, "text") == 0 ? TRACK_TEXT
			  : strcmp(v->format, "json") == 0	       ? TRACK_JSON
								       : TRACK_CSV,
		.ram_unit = v->ram_unit,
		.gpu_ram_unit = v->gpu_ram_unit,
		.time_unit = v->time_unit,
		.legacy_spelling = v->legacy_spelling,
		.processes = v->processes,
		.advice = true,
		.verbose = v->verbose,
		.followed = v->pid != 0,
	};
	/* A table without names is better than no report. */
	if (v->processes &&
		user_names_new(&style.users, user_find_system, NULL, USER_DEADLINE_MS, e))
		style.users = NULL;
	track_render(&out, tracker_result(outcome->tracker), &style);
	user_names_free(style.users);
	int rc = 0;
	if (out.failed || write_all(s->output, str_text(&out), out.len) != 0)
		rc = err_set(e, ERR_WORLD, "cannot write the report: %s",
			out.failed ? ERR_MEMORY_TEXT : strerror(errno));
	str_finish(&out);
	return rc;
}

static void say_warnings(const struct session *s, const struct track_result *r)
{
	if (s->v->quiet)
		return;
	log_setup(LOG_LEVEL_WARNING, LOG_STYLE_PLAIN);
	for (size_t i = 0; i < r->n_warnings; i++)
		log_warning("%s", r->warnings[i]);
}

/* Prints gpu-tracker's last line; not to standard output if that has the JSON or CSV. */
static void announce_end(const struct track_values *v, int status)
{
	bool text = !v->format || strcmp(v->format, "text") == 0;
	bool to_file = v->output && strcmp(v->output, "-") != 0;
	fprintf(text || to_file ? stdout : stderr,
		"Resource tracking complete. Process completed with status code: %d\n",
		status > 128 ? 128 - status : status);
	fflush(stdout);
}

/* Runs the job and writes the report in every case. */
static int track(struct session *s, const struct track_job *job)
{
	struct track_outcome outcome;
	struct err e = { 0 }, unclosed = { 0 };
	if (track_run(job, &outcome, &e)) {
		/* Nothing was tracked: a file with only a header would make the next run fail,
		 * because it exists. */
		if (s->file) {
			trackfile_close(s->file, &unclosed);
			unlink(s->v->tracking_file);
		}
		int status = cmd_fail(s->self, &e);
		return outcome.exit_status > 1 ? outcome.exit_status : status;
	}
	if (s->progress)
		fputs("\r\033[K", stderr);
	say_warnings(s, tracker_result(outcome.tracker));
	int status = outcome.exit_status;
	if (s->v->announce)
		announce_end(s->v, status);
	if (write_report(s, &outcome, &e))
		status = cmd_fail(s->self, &e);
	if (s->file && trackfile_close(s->file, &e))
		status = cmd_fail(s->self, &e);
	tracker_close(outcome.tracker);
	return status;
}

/* Opens the output files before anything is started. */
static int open_session(struct session *s, struct err *e)
{
	const struct track_values *v = s->v;
	s->output = STDERR_FILENO;
	if (v->output && strcmp(v->output, "-") == 0)
		s->output = STDOUT_FILENO;
	else if (v->output)
		s->output = open(v->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (s->output < 0)
		return err_set(e, ERR_WORLD, "cannot write %s: %s", v->output, strerror(errno));
	s->progress = v->progress && isatty(STDERR_FILENO);
	return v->tracking_file ? trackfile_open(&s->file, v->tracking_file, v->overwrite, e)
				: 0;
}

static struct track_job make_job(struct session *s, char **argv, struct clock *clock)
{
	const struct track_values *v = s->v;
	return (struct track_job){
		.argv = argv,
		.pid = (pid_t)v->pid,
		.until_exit = v->until_exit,
		.options = { .interval_ms = v->interval_ms,
			.expected_cores = v->cores,
			.gpu_uuids = v->n_uuids ? v->uuid_list : NULL,
			.n_gpu_uuids = v->n_uuids,
			.own_gpus = track_own_gpus(v),
			.visible_gpus = s->visible,
			.slurm_job = s->job,
			.source = { .name = strcmp(v->source, SOURCE_NONE) == 0 ? NULL
										: v->source,
				.nvml_path = cmd_nvml_path(v->nvml),
				.scenario = v->scenario,
				.root = v->root ? v->root : "",
				.clock = clock },
			.rules = RULES_DEFAULT,
			.root = v->root ? v->root : "" },
		.on_start = on_start,
		.on_sample = on_sample,
		.context = s,
	};
}

/* Checks with the driver that the cards of --guuids exist; without that option the driver is
 * not asked. */
static int check_uuids(
	const struct track_values *v, const struct source_options *o, struct err *e)
{
	struct source *source = NULL;
	if (!v->n_uuids || !o->name)
		return 0;
	int rc = source_open(&source, o, e);
	if (rc)
		return err_prefix(e, "--guuids");
	for (size_t i = 0; !rc && i < v->n_uuids; i++) {
		struct str all = { 0 };
		bool exists = false;
		for (size_t k = 0; k < source->n_cards; k++) {
			str_addf(&all, " %s", source->cards[k].id.uuid);
			exists |= strcmp(source->cards[k].id.uuid, v->uuid_list[i]) == 0;
		}
		if (!exists)
			rc = err_set(e, ERR_USAGE,
				"--guuids: card %s does not exist; the cards are:%s",
				v->uuid_list[i], str_text(&all));
		str_finish(&all);
	}
	source_close(source);
	return rc;
}

/* Without a shell, the pipe in -e 'ls | wc -l' is an argument of ls. */
static void warn_of_shell(const struct track_values *v, const char *program)
{
	const char *found = words_for_shell(v->execute);
	struct str line = { 0 };
	if (!found || v->quiet)
		return;
	words_quote(&line, v->execute);
	log_setup(LOG_LEVEL_WARNING, LOG_STYLE_PLAIN);
	log_warning("-e runs no shell: %s gets the '%c' as it is; for a shell use gua track "
		    "-- sh -c %s",
		program, *found, str_text(&line));
	log_setup(LOG_LEVEL_ERROR, LOG_STYLE_PLAIN);
	str_finish(&line);
}

/* The command: operands, or -e split into words (*words, to be freed), or none with --pid. */
static int find_command(const struct track_values *v, char **operands, char ***words,
	char ***argv, struct err *e)
{
	size_t n = 0;
	*argv = *operands ? operands : NULL;
	if ((*operands != NULL) + (v->execute != NULL) + (v->pid != 0) > 1)
		return err_set(e, ERR_USAGE, "give exactly one of a command, -e and --pid");
	if (v->execute) {
		int rc = words_split(v->execute, words, &n, e);
		if (rc)
			return rc;
		*argv = n ? *words : NULL;
		if (n)
			warn_of_shell(v, **words);
	}
	if (!*argv && !v->pid)
		return err_set(e, ERR_USAGE, "the command is empty");
	return 0;
}

int cmd_track_with_options(const struct command *self, struct track_values *v, char **operands)
{
	struct err e = { 0 };
	struct clock clock;
	struct session s = { .self = self, .v = v, .output = -1 };
	char **words = NULL, **argv = NULL;
	struct apart *apart = NULL;
	int status;
	clock_init_real(&clock);
	/* Log lines about the driver are also in the result's warnings: print them once. */
	log_setup(v->quiet ? LOG_LEVEL_NONE : LOG_LEVEL_ERROR, LOG_STYLE_PLAIN);
	if (track_finish_options(v, &e) || find_command(v, operands, &words, &argv, &e)) {
		status = cmd_fail(self, &e);
	} else {
		bool cards = track_own_gpus(v) && strcmp(v->source, SOURCE_NONE) != 0;
		s.visible = cards ? variable(v, VISIBLE) : NULL;
		s.job = variable(v, JOB);
		struct track_job job = make_job(&s, argv, &clock);
		struct apart_manner manner = apart_manner_of(DRIVER_TIMEOUT_MS);
		manner.name = TRACK_HELPER_NAME;
		struct source_options *source = &job.options.source;
		/* Open files last, so that a wrong option does not truncate one. */
		bool ready = apart_new(&apart, source, &manner, &e) == 0;
		source->host = ready ? apart_host(apart) : NULL;
		ready = ready && check_uuids(v, source, &e) == 0 &&
			reader_open(&s.reader, job.options.root, &e) == 0 &&
			open_session(&s, &e) == 0;
		const struct track_files files = { arguments, rollup, mappings, io, cpu_s, owns,
			s.reader };
		job.options.files = &files;
		if (ready && !v->quiet)
			cmd_live_note_captured(v->source);
		status = ready ? track(&s, &job) : cmd_fail(self, &e);
		reader_close(s.reader);
	}
	apart_free(apart);
	if (s.output > STDERR_FILENO)
		close(s.output);
	free(s.visible);
	free(s.job);
	free(words);
	track_free_options(v);
	return status;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct track_values v = { 0 };
	int status = 0;
	int first = cmd_options(self, argc, argv, &v, &status);
	if (!first)
		return status;
	return cmd_track_with_options(self, &v, argv + first);
}

const struct command cmd_track = {
	.name = "track",
	.summary = "run a command and report what it used: time, CPU, memory, GPU",
	.usage = "[OPTIONS] -- COMMAND [ARGUMENTS] | -e 'COMMAND' | --pid N",
	.details = "gua does not touch the command's standard input, output and error. The "
		   "report\ngoes to standard error, or to -o FILE. The exit status is that of "
		   "the command:\n128 + N if signal N killed it, 127 if it was not found, 126 "
		   "if it could not be\nstarted.",
	.options = track_options,
	.stop_at_operand = true,
	.run = run,
};
