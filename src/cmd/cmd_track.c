/* gua track: measures what a command or process, and all processes below it, use. */
#include "cmd/cmd_track.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/fault.h"
#include "base/helper.h"
#include "base/words.h"
#include "cmd/share/cmd_live.h"
#include "cmd/share/configure.h"
#include "cmd/share/terminal.h"
#include "driver/host/apart.h"
#include "proc/proc_parse.h"
#include "proc/proc.h"
#include "proc/reader.h"
#include "store/trackfile.h"
#include "track/tree.h"

/* Signals that are forwarded to the command if a process sent them to us. The terminal sends
 * signals to the whole process group, which includes the command: those are not forwarded. */
static const int passed_on[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH };
enum { PASSED_ON = sizeof(passed_on) / sizeof(passed_on[0]) };
/* timeout(1) and others send a signal both to the process and to its group; within this time
 * the two count as one. */
#define SAME_REQUEST_US 100000
/* How many times in a row the user must press Ctrl-C before gua leaves a stuck command. */
#define STUCK_REQUESTS 3
/* How long the tracking file waits for the driver's first answer. */
#define DRIVER_S 5

struct session {
	const struct command *self;
	struct track_values *v;
	char **argv; /* the command; NULL: the process of --pid is followed */
	struct tracker *tracker;
	struct clock clock;
	int exit_status; /* for gua: the command's, 128 + signal, 126 or 127 */
	/* The command. */
	pid_t child; /* the command, or the pid that is followed */
	bool ended;  /* it has ended */
	int status;  /* as of wait(2) */
	int signal_fd;
	int pidfd;	    /* for a pid that is not our child; or -1 */
	int end_requests;   /* SIGTERM, SIGINT ... sent to us alone */
	int64_t request_us; /* when the last one came */
	int stuck_requests; /* from the terminal, while no signal can reach the command */
	sigset_t before;    /* signal mask for the command */
	struct sigaction on_child; /* the command's own action for SIGCHLD */
	/* The output: files, and the line of current values. */
	FILE *output;		      /* where the report goes */
	struct trackfile *file;	      /* or NULL */
	bool file_begun;	      /* its head is written */
	struct track_sample *samples; /* not yet in the file */
	bool only_early;	      /* there is one, and it is early */
	size_t n_samples, samples_cap;
	char *visible; /* CUDA_VISIBLE_DEVICES of the command; NULL: not set */
	char *job;     /* its Slurm job, by its environment; NULL: not set */
	struct fault file_fault;
};

/* Variables of the environment that matter to a tracker. */
#define VISIBLE "CUDA_VISIBLE_DEVICES"
#define JOB "SLURM_JOB_ID"
enum { ENVIRONMENT_CAP = 256 * 1024, DEADLINE_MS = 1000 };

/* Finds "NAME=value" in the environment of the process. Runs in the helper, because reading an
 * environment may block; see proc/proc.h. */
static void serve(void *context, const struct str *request, struct str *reply)
{
	const struct track_values *v = context;
	struct err e = { 0 };
	int proc = -1;
	size_t name_len = request->len, one_len;
	const char *one;
	char *bytes = malloc(ENVIRONMENT_CAP);
	ssize_t n = -1;
	if (bytes && proc_open(&proc, v->o.source.root, &e) == 0)
		n = proc_read_environment(proc, (uint32_t)v->pid, bytes, ENVIRONMENT_CAP);
	struct proc_arguments all = { bytes, n > 0 ? (size_t)n : 0, 0 };
	while (n > 0 && !reply->len && proc_next_argument(&all, &one, &one_len))
		if (one_len > name_len && one[name_len] == '=' &&
			memcmp(one, str_text(request), name_len) == 0)
			str_add_bytes(reply, one, one_len);
	if (n > 0)
		explicit_bzero(bytes, (size_t)n);
	file_close(proc);
	free(bytes);
}

/* Returns the value in the environment of the command, which is gua's own; with --pid, of that
 * process when it was started. NULL: not set, not needed, or it cannot be read. The caller
 * frees it. */
static char *variable(const struct track_values *v, const char *name)
{
	struct track_values copy = *v;
	const struct helper_work work = {
		.name = TRACK_HELPER_NAME, .serve = serve, .context = &copy
	};
	struct helper *helper = NULL;
	struct err e = { 0 };
	const struct str *reply = NULL;
	const char *own = v->pid ? NULL : secure_getenv(name);
	char *value = own ? strdup(own) : NULL;
	if (!v->pid || helper_new(&helper, &work, &e))
		return value;
	if (helper_send(helper, name, strlen(name), &e) == 0 &&
		helper_receive(helper, DEADLINE_MS, &reply, &e) == 0 && reply->len)
		value = strdup(str_text(reply) + strlen(name) + 1);
	int left = helper_free(helper, DEADLINE_MS);
	file_close(left);
	return value;
}

/* The header of the tracking file names the units, so "auto" must be decided before the first
 * sample. */
static const char *fixed_unit(const char *name, const char *instead)
{
	return strcmp(name, "auto") == 0 ? instead : name;
}

/* Writes the head of the tracking file. */
static int begin_file(struct session *s, const struct track_result *r, struct err *e)
{
	const struct track_values *v = s->v;
	const char *ram = fixed_unit(v->ram_unit, "gigabytes");
	const char *gpu = fixed_unit(v->gpu_ram_unit, "gigabytes");
	const struct trackfile_head head = {
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
	s->file_begun = true;
	return trackfile_begin(s->file, &head, e);
}

/* Writes the samples of the tracking file. The head counts the cards, so they wait until the
 * driver has answered, at most DRIVER_S or, at the `last` call, no longer. */
static int write_samples(struct session *s, bool last, struct err *e)
{
	int rc = 0;
	if (!s->file_begun) {
		const struct track_result *r = tracker_result(s->tracker);
		if (r->gpu_awaited && r->elapsed_s < DRIVER_S && !last)
			return 0;
		rc = begin_file(s, r, e);
	}
	if (s->only_early && !last)
		return rc;
	for (size_t i = 0; rc == 0 && i < s->n_samples; i++)
		rc = trackfile_add(s->file, &s->samples[i], e);
	s->n_samples = 0;
	return rc;
}

/* Starts following, and writes the head of the tracking file if the driver is already known.
 * The command waits to be started, so a failure here still prevents the start. */
static int start_tracker(struct session *s, struct err *e)
{
	struct tracker_options o = s->v->o;
	o.pid = s->child;
	o.subreaper = s->argv != NULL;
	o.started_us = o.subreaper ? clock_now(&s->clock).boot_us : 0;
	int rc = tracker_open(&s->tracker, &o, e);
	return rc || !s->file ? rc : write_samples(s, false, e);
}

/* Runs in the child: waits until the tracker is ready, so that nothing is missed. */
static void become(const struct session *s, const int go[2], int failure)
{
	char word;
	close(go[1]); /* else the end of file would never be seen */
	sigaction(SIGCHLD, &s->on_child, NULL);
	sigprocmask(SIG_SETMASK, &s->before, NULL);
	while (read(go[0], &word, 1) < 0 && errno == EINTR)
		;
	execvp(s->argv[0], s->argv);
	int reason = errno;
	(void)!write(failure, &reason, sizeof(reason));
	_exit(127);
}

/* Forks, follows the child from its first instruction, and lets it become the command. */
static int start_command(struct session *s, struct err *e)
{
	int go[2], failure[2], reason = 0;
	if (pipe2(go, O_CLOEXEC) != 0 || pipe2(failure, O_CLOEXEC) != 0)
		return err_set(e, ERR_WORLD, "cannot make a pipe: %s", strerror(errno));
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	s->child = fork();
	if (s->child < 0)
		return err_set(e, ERR_WORLD, "cannot fork: %s", strerror(errno));
	if (s->child == 0)
		become(s, go, failure[1]);
	close(go[0]);
	close(failure[1]);
	int rc = start_tracker(s, e);
	if (rc)
		kill(s->child, SIGKILL);
	close(go[1]);
	ssize_t n = read(failure[0], &reason, sizeof(reason));
	close(failure[0]);
	if (rc || n == (ssize_t)sizeof(reason))
		waitpid(s->child, NULL, 0);
	if (rc || n != (ssize_t)sizeof(reason))
		return rc;
	s->exit_status = cmd_not_started(s->argv, reason, e);
	return e->code;
}

/* Takes every child that has ended; with a subreaper that includes orphans of the tree. */
static void reap(struct session *s)
{
	for (;;) {
		int status = 0;
		struct rusage usage;
		siginfo_t info = { 0 };
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || !info.si_pid)
			return;
		/* It may be a process that reads for the tracker, and not belong to the
		 * command. */
		bool own = reader_owns(s->v->o.files->reader, info.si_pid);
		bool counts = !own && !tracker_is_helper(s->tracker, info.si_pid);
		/* Read its last numbers before it is reaped. */
		if (counts)
			tracker_exiting(s->tracker, info.si_pid);
		pid_t pid = wait4(info.si_pid, &status, 0, &usage);
		if (pid <= 0)
			return;
		if (!counts)
			continue;
		tracker_reaped(s->tracker, pid, status, &usage);
		if (pid == s->child) {
			s->ended = true;
			s->status = status;
		}
	}
}

/* The terminal sends its signals to the command, too, which may handle them and go on. Only a
 * command that signals cannot reach is left, so that the user gets the terminal back: one that
 * waits in the kernel for a driver or a file system (state D) and does not notice Ctrl-C. */
static void count_stuck(struct session *s)
{
	int proc = -1;
	struct proc_stat stat = { 0 };
	bool stuck = false;
	if (!s->ended && proc_open(&proc, "", NULL) == 0) {
		stuck = proc_read_stat(proc, (uint32_t)s->child, &stat) == 0 &&
			stat.state == 'D';
		close(proc);
	}
	s->stuck_requests = stuck ? s->stuck_requests + 1 : 0;
	if (s->stuck_requests == STUCK_REQUESTS)
		s->end_requests = 2;
	else if (s->stuck_requests)
		log_error("the command waits in the kernel and does not notice the signal; "
			  "%d more and gua leaves it",
			STUCK_REQUESTS - s->stuck_requests);
}

/* Forwards a signal to the command, if a process sent it to us. */
static void pass_on(struct session *s, const struct signalfd_siginfo *info)
{
	bool sent = info->ssi_code <= 0; /* by a process, not by the terminal */
	bool asks_to_end = info->ssi_signo != SIGWINCH && info->ssi_signo != SIGUSR1 &&
			   info->ssi_signo != SIGUSR2;
	if (s->argv) {
		int64_t now_us = clock_now(&s->clock).boot_us;
		if (sent && asks_to_end) {
			if (!s->end_requests || now_us - s->request_us >= SAME_REQUEST_US)
				s->end_requests++;
			s->request_us = now_us;
		} else if (asks_to_end)
			count_stuck(s);
		if (sent && !s->ended)
			kill(s->child, (int)info->ssi_signo);
	} else if (asks_to_end && (!s->v->until_exit || info->ssi_signo == SIGTERM)) {
		s->end_requests = 2; /* with --pid: do not signal the process, just stop */
	}
}

static void take_sample(struct session *s)
{
	struct track_sample sample;
	struct err e = { 0 };
	tracker_sample(s->tracker, &sample);
	/* An early one is no row, so that the first second does not count more than others; a
	 * command that ends sooner has one row. */
	if (s->file && array_reserve(&s->samples, &s->samples_cap, s->n_samples + 1)) {
		if (s->only_early)
			s->n_samples = 0;
		s->samples[s->n_samples++] = sample;
		s->only_early = sample.early;
	}
	if (s->file && write_samples(s, false, &e))
		fault_raise(&s->file_fault, sample.wall_us / 1000, "%s", e.text);
	if (!s->v->progress)
		return;
	struct str line = { 0 };
	int columns = (int)terminal_size(STDERR_FILENO).columns;
	track_progress(&line, &sample, (columns ? columns : 80) - 1);
	fprintf(stderr, "\r\033[K%s", str_text(&line));
	str_finish(&line);
}

/* Runs until the command has ended, or until the second request to terminate. */
static void follow(struct session *s)
{
	struct signalfd_siginfo info;
	while (!s->ended && s->end_requests < 2) {
		struct pollfd fds[] = { { .fd = s->signal_fd, .events = POLLIN },
			{ .fd = s->pidfd, .events = POLLIN } };
		int ready = clock_wait(&s->clock, tracker_next_us(s->tracker), fds, 2);
		if (ready == 0)
			take_sample(s);
		if (ready <= 0)
			continue;
		while (fds[0].revents &&
			read(s->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
			if (info.ssi_signo == SIGCHLD)
				reap(s);
			else
				pass_on(s, &info);
		}
		s->ended |= fds[1].revents != 0;
	}
}

/* Runs the command to its end. On error nothing was started, or the command could not be
 * executed: then the exit status is 126 or 127. */
static int run_command(struct session *s, struct err *e)
{
	const struct sigaction usual = { .sa_handler = SIG_DFL };
	sigset_t set;
	/* The process that started us may ignore SIGCHLD: then no child could be waited for. */
	sigaction(SIGCHLD, &usual, &s->on_child);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (size_t i = 0; i < PASSED_ON; i++)
		sigaddset(&set, passed_on[i]);
	sigprocmask(SIG_BLOCK, &set, &s->before);
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	int rc = s->signal_fd >= 0 ? 0 : err_set(e, ERR_WORLD, "signalfd: %s", strerror(errno));
	if (!rc && s->argv) {
		rc = start_command(s, e);
	} else if (!rc) {
		s->child = (pid_t)s->v->pid;
		s->pidfd = (int)syscall(SYS_pidfd_open, s->child, 0);
		rc = s->pidfd >= 0 ? start_tracker(s, e)
				   : err_set(e, ERR_WORLD, "cannot follow process %d: %s",
					     (int)s->child, strerror(errno));
	}
	if (rc) {
		tracker_close(s->tracker);
	} else {
		follow(s);
		tracker_stop(s->tracker);
		reap(s);
		s->exit_status = !s->argv		  ? 0
				 : !s->ended		  ? 128 + SIGTERM
				 : WIFSIGNALED(s->status) ? 128 + WTERMSIG(s->status)
							  : WEXITSTATUS(s->status);
	}
	file_close(s->pidfd);
	file_close(s->signal_fd);
	sigaction(SIGCHLD, &s->on_child, NULL);
	sigprocmask(SIG_SETMASK, &s->before, NULL);
	return rc;
}

static int write_report(struct session *s, struct err *e)
{
	const struct track_values *v = s->v;
	struct str out = { 0 };
	struct track_style style = {
		.format = v->style,
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
	track_render(&out, tracker_result(s->tracker), &style);
	user_names_free(style.users);
	int rc = cmd_write(s->output, &out, e);
	str_finish(&out);
	return rc;
}

/* Runs the command and writes the report in every case. */
static int track(struct session *s)
{
	const struct track_values *v = s->v;
	struct err e = { 0 }, unclosed = { 0 };
	if (run_command(s, &e)) {
		/* Nothing was tracked: a file with only a header would make the next run fail,
		 * because it exists. */
		if (s->file) {
			trackfile_close(s->file, &unclosed);
			unlink(v->tracking_file);
		}
		int failed = cmd_fail(s->self, &e);
		return s->exit_status > 1 ? s->exit_status : failed;
	}
	if (v->progress)
		fputs("\r\033[K", stderr);
	const struct track_result *r = tracker_result(s->tracker);
	if (!v->quiet)
		log_setup(LOG_LEVEL_WARNING, LOG_STYLE_PLAIN);
	for (size_t i = 0; i < r->n_warnings && !v->quiet; i++)
		log_warning("%s", r->warnings[i]);
	int status = s->exit_status;
	if (v->announce) {
		/* gpu-tracker's last line; not to stdout if that has the JSON or CSV. */
		bool to_file = v->output && strcmp(v->output, "-") != 0;
		fprintf(v->style == TRACK_TEXT || to_file ? stdout : stderr,
			"Resource tracking complete. Process completed with status code: %d\n",
			status > 128 ? 128 - status : status);
		fflush(stdout);
	}
	if (write_report(s, &e))
		status = cmd_fail(s->self, &e);
	if (s->file && write_samples(s, true, &e))
		status = cmd_fail(s->self, &e);
	if (s->file && trackfile_close(s->file, &e))
		status = cmd_fail(s->self, &e);
	free(s->samples);
	tracker_close(s->tracker);
	return status;
}

/* Opens the output files before anything is started. */
static int open_output(struct session *s, struct err *e)
{
	struct track_values *v = s->v;
	bool to_stdout = v->output && strcmp(v->output, "-") == 0;
	s->output = to_stdout ? stdout : v->output ? fopen(v->output, "we") : stderr;
	if (!s->output)
		return err_set(e, ERR_WORLD, "cannot write %s: %s", v->output, strerror(errno));
	v->progress &= isatty(STDERR_FILENO) != 0;
	return v->tracking_file ? trackfile_open(&s->file, v->tracking_file, v->overwrite, e)
				: 0;
}

/* Checks with the driver that the cards of --guuids exist; without that option the driver is
 * not asked. */
static int check_uuids(const struct track_values *v, struct err *e)
{
	const struct source_options *o = &v->o.source;
	struct source *source = NULL;
	if (!v->o.n_gpu_uuids || !o->name)
		return 0;
	int rc = source_open(&source, o, e);
	if (rc)
		return err_prefix(e, "--guuids");
	for (size_t i = 0; !rc && i < v->o.n_gpu_uuids; i++) {
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
static int find_command(struct session *s, char **operands, char ***words, struct err *e)
{
	const struct track_values *v = s->v;
	size_t n = 0;
	s->argv = *operands ? operands : NULL;
	if ((*operands != NULL) + (v->execute != NULL) + (v->pid != 0) > 1)
		return err_set(e, ERR_USAGE, "give exactly one of a command, -e and --pid");
	if (v->execute && words_split(v->execute, words, &n, e))
		return e->code;
	if (n) {
		s->argv = *words;
		warn_of_shell(v, **words);
	}
	return s->argv || v->pid ? 0 : err_set(e, ERR_USAGE, "the command is empty");
}

/* Fills in the options of the tracker, after the command is known. */
static void make_options(struct session *s)
{
	struct track_values *v = s->v;
	struct tracker_options *o = &v->o;
	bool cards = strcmp(o->source.name, SOURCE_NONE) != 0;
	o->own_gpus = !v->gpus || strcmp(v->gpus, "own") == 0;
	o->visible_gpus = s->visible = cards && o->own_gpus ? variable(v, VISIBLE) : NULL;
	o->slurm_job = s->job = variable(v, JOB);
	o->rules = (struct rules)RULES_DEFAULT;
	o->root = o->source.root;
	o->source.clock = &s->clock;
	o->source.nvml_path = cmd_nvml_path(o->source.nvml_path);
	if (!cards)
		o->source.name = NULL;
}

int cmd_track_run(const struct call *call, struct err *e)
{
	struct track_values *v = call->values;
	struct session s = {
		.self = call->self, .v = v, .exit_status = 1, .signal_fd = -1, .pidfd = -1
	};
	char **words = NULL;
	struct apart *apart = NULL;
	struct reader *reader = NULL;
	struct apart_manner manner = apart_manner_of(DRIVER_TIMEOUT_MS);
	manner.name = TRACK_HELPER_NAME;
	clock_init_real(&s.clock);
	/* Log lines about the driver are also in the result's warnings: print them once. */
	log_setup(v->quiet ? LOG_LEVEL_NONE : LOG_LEVEL_ERROR, LOG_STYLE_PLAIN);
	bool ready = !track_options_check(v, call->conf->given, e) &&
		     !find_command(&s, call->operands, &words, e);
	if (ready)
		make_options(&s);
	if (ready && apart_new(&apart, &v->o.source, &manner, e) == 0)
		v->o.source.host = apart_host(apart);
	/* Open files last, so that a wrong option does not truncate one. */
	ready = apart && !check_uuids(v, e) && !reader_open(&reader, v->o.root, 0, e) &&
		!open_output(&s, e);
	v->o.files = &(struct track_files){ reader_arguments, reader_rollup, reader_mappings,
		reader_io, reader_cpu_s, reader_owns, reader };
	if (ready && !v->quiet && v->o.source.name)
		cmd_live_note_captured(v->o.source.name);
	int status = ready ? track(&s) : e->code;
	reader_close(reader);
	apart_free(apart);
	if (s.output && s.output != stdout && s.output != stderr)
		fclose(s.output);
	free(s.visible);
	free(s.job);
	free(words);
	track_options_free(v);
	return status;
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
	.values_size = sizeof(struct track_values),
	.stop_at_operand = true,
	.run = cmd_track_run,
};
