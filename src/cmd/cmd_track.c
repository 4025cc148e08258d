/* gua track: measures what a command or process, and all processes below it, use. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/log.h"
#include "base/words.h"
#include "cmd/cmd.h"
#include "cmd/share/cmd_live.h"
#include "cmd/share/terminal.h"
#include "cmd/cmd_track.h"
#include "cmd/track_options.h"
#include "cmd/track_reader.h"
#include "cmd/track_run.h"
#include "cmd/track_visible.h"
#include "render/track.h"
#include "driver/host/apart.h"
#include "driver/kind.h"
#include "store/trackfile.h"

/* Outputs of a run: the files and the line of current values. */
struct session {
	const struct command *self;
	struct track_values *v;
	int output;		/* where the report goes */
	struct trackfile *file; /* or NULL */
	struct reader *reader;	/* for what may block */
	char *visible;		/* CUDA_VISIBLE_DEVICES of the command; NULL: not set */
	struct fault file_fault;
	bool progress; /* the line of current values is shown */
};

static void show_progress(const struct track_sample *sample)
{
	struct str line = { 0 };
	int columns = (int)terminal_size_of(STDERR_FILENO).columns;
	track_progress(&line, sample, (columns ? columns : 80) - 1);
	fprintf(stderr, "\r\033[K%s", str_text(&line));
	str_finish(&line);
}

static void on_sample(void *context, const struct track_sample *sample)
{
	struct session *s = context;
	struct err e = { 0 };
	if (s->file && trackfile_add(s->file, sample, &e))
		fault_raise(&s->file_fault, sample->wall_us / 1000, "%s", e.text);
	if (s->progress)
		show_progress(sample);
}

/* The header of the tracking file names the units, so "auto" must be decided before the first
 * sample. */
static const char *fixed_unit(const char *name, const char *instead)
{
	return strcmp(name, "auto") == 0 ? instead : name;
}

static int begin_file(struct session *s, const struct track_result *r, struct err *e)
{
	const struct track_values *v = s->v;
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

/* Opens the tracking file. The tracker is open and the command waits to be started, so a
 * failure here still prevents the start. */
static int on_start(void *context, struct tracker *tracker, struct err *e)
{
	struct session *s = context;
	return s->file ? begin_file(s, tracker_result(tracker), e) : 0;
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

/* Removes the tracking file if nothing was tracked: a file with only a header would make the
 * next run fail, because it exists. */
static void discard_file(struct session *s)
{
	struct err e = { 0 };
	if (!s->file)
		return;
	trackfile_close(s->file, &e);
	unlink(s->v->tracking_file);
}

/* Runs the job and writes the report in every case. */
static int track(struct session *s, const struct track_job *job)
{
	struct track_outcome outcome;
	struct err e = { 0 };
	if (track_run(job, &outcome, &e)) {
		discard_file(s);
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

static bool has_card(const struct source *source, const char *uuid)
{
	for (size_t i = 0; i < source->n_cards; i++)
		if (strcmp(source->cards[i].id.uuid, uuid) == 0)
			return true;
	return false;
}

/* Checks with the driver that the cards of --guuids exist; without that option it is not
 * asked. */
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
		if (has_card(source, v->uuid_list[i]))
			continue;
		struct str all = { 0 };
		for (size_t k = 0; k < source->n_cards; k++)
			str_addf(&all, " %s", source->cards[k].id.uuid);
		rc = err_set(e, ERR_USAGE, "--guuids: card %s does not exist; the cards are:%s",
			v->uuid_list[i], str_text(&all));
		str_finish(&all);
	}
	source_close(source);
	return rc;
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
	}
	if (!*argv && !v->pid)
		return err_set(e, ERR_USAGE, "the command is empty");
	return 0;
}

int track_with_options(const struct command *self, struct track_values *v, char **operands)
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
		s.visible = track_visible(v);
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
		const struct track_files files = track_reader_files(s.reader);
		job.options.files = &files;
		if (ready && !v->quiet)
			cmd_note_captured(v->source);
		status = ready ? track(&s, &job) : cmd_fail(self, &e);
		reader_close(s.reader);
	}
	apart_free(apart);
	if (s.output > STDERR_FILENO)
		close(s.output);
	free(s.visible);
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
	return track_with_options(self, &v, argv + first);
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
