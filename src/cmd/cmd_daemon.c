/* gua daemon: runs the recorder, by default in the background. */
#include "cmd/cmd_daemon.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "cmd/share/choose_db.h"
#include "cmd/daemon_config.h"
#include "cmd/daemon_run.h"
#include "cmd/share/detach.h"
#include "cmd/share/leftover.h"
#include "cmd/rehearse.h"
#include "record/notify.h"
#include "record/recorder.h"
#include "driver/kind.h"
#include "driver/sim/scenario.h"
#include "store/lock.h"
#include "store/statusfile.h"

enum { LOCK_RETRY_S = 5 };

struct values {
	char source_name[SOURCE_NAME_CAP]; /* for `source` */
	const char *db, *source, *scenario, *nvml, *log_file, *pid_file, *clock, *root,
		*privacy, *host_name;
	int64_t interval_ms, drain_ms, glance_ms, ticks, timeout_ms, patience_ms, retry_ms,
		keep_minutes_ms, keep_five_ms, held_mem_bytes, spell_ms;
	double active_util;
	bool foreground, once, verbose, count_graphics, dry_run;
	bool default_db;   /* no --db was given */
	daemon_line *line; /* is given each tick's line, by a program that stays */
	struct configure_options conf;
};

#define AT(field) .offset = offsetof(struct values, field)

const struct option_row daemon_options[] = {
	{ OPTION_TEXT, 0, "db", "PATH", "the store (default: see FILES in man gua)", AT(db) },
	{ OPTION_DURATION, 'i', "interval", "D",
		"time between two ticks; each writes to the store (default 30s)",
		AT(interval_ms), .min = 100, .max = 86400e3 },
	{ OPTION_DURATION, 0, "drain", "D",
		"time between two readings of the driver's samples (default 5s, at most 8s)",
		AT(drain_ms), .min = 100, .max = 8000 },
	{ OPTION_DURATION, 0, "glance", "D",
		"time between two readings of used memory, which show that processes come or "
		"go (default 1s, at most 8s)",
		AT(glance_ms), .min = 100, .max = 8000 },
	{ OPTION_FLAG, 'f', "foreground",
		.help = "stay in the foreground, for service managers", AT(foreground) },
	{ OPTION_FLAG, 0, "dry-run", .help = "say what would be done; change nothing",
		AT(dry_run) },
	{ OPTION_FLAG, 0, "once",
		.help = "record what the driver's ring holds (about 10 s) and end", AT(once) },
	{ OPTION_COUNT, 0, "ticks", "N", "end after N ticks", AT(ticks), .min = 1 },
	{ OPTION_FLAG, 'v', "verbose", .help = "log one line per tick", AT(verbose) },
	{ OPTION_REAL, 0, "active-util", "PCT",
		"a sample of at least this utilisation is active (default 10)", AT(active_util),
		.min = 0.1, .max = 100 },
	{ OPTION_SIZE, 0, "held-mem", "SIZE",
		"a card is held by more memory than this (default 100MB)", AT(held_mem_bytes),
		.min = 0, .max = 1e12 },
	{ OPTION_FLAG, 0, "count-graphics", .help = "graphics-only processes are holders too",
		AT(count_graphics) },
	{ OPTION_DURATION, 0, "spell", "D",
		"a process that holds a card idle for this long has a spell (default 5m)",
		AT(spell_ms), .min = 1000, .max = 366 * 86400e3 },
	{ OPTION_CHOICE, 0, "privacy", "HOW",
		"strict: keep no command lines, paths or other texts of processes "
		"(default normal)",
		.choices = PRIVACY_WORDS, AT(privacy) },
	{ OPTION_TEXT, 0, "host-name", "NAME",
		"name of this host in the store (default: the system's; a container's changes "
		"at each start)",
		AT(host_name) },
	{ OPTION_DURATION, 0, "keep-minutes", "D",
		"keep one-minute slots this long (default 1d)", AT(keep_minutes_ms),
		.min = 3600e3 },
	{ OPTION_DURATION, 0, "keep-five", "D",
		"keep five-minute slots this long (default 14d)", AT(keep_five_ms),
		.min = 3600e3 },
	CONFIGURE_ROWS(struct values, conf),
	{ OPTION_TEXT, 0, "source", "NAME,...", SOURCE_HELP, AT(source),
		.words = source_words },
	{ OPTION_TEXT, 0, "scenario", "FILE", SCENARIO_HELP, AT(scenario) },
	{ OPTION_TEXT, 0, "nvml", "PATH", "the driver's library (default libnvidia-ml.so.1)",
		AT(nvml) },
	{ OPTION_DURATION, 0, "driver-timeout", "D", DRIVER_TIMEOUT_HELP, AT(timeout_ms),
		.min = 100, .max = 3600e3 },
	{ OPTION_DURATION, 0, "retry", "D",
		"longest wait before a lost card or driver is tried again (default 30s)",
		AT(retry_ms), .min = 100, .max = 86400e3 },
	{ OPTION_TEXT, 0, "log-file", "PATH",
		"log of the background recorder (default: the store's path with .log appended)",
		AT(log_file) },
	{ OPTION_TEXT, 0, "pid-file", "PATH",
		"also write the pid to PATH; gua itself does not read it", AT(pid_file) },
	{ OPTION_DURATION, 0, "driver-patience", "D",
		"give up a process whose driver does not answer for this long", AT(patience_ms),
		.min = 100, .max = 3600e3, .hidden = true },
	{ OPTION_TEXT, 0, "clock", "HOW", "real, virtual, or a clock file", AT(clock),
		.hidden = true },
	{ OPTION_TEXT, 0, "root", "DIR", "look for proc, sys and etc below DIR", AT(root),
		.hidden = true },
	{ 0 },
};

const char daemon_details[] =
	"The recorder reads the driver and writes the store; it has no network code. It\ngoes "
	"to the background after the first look has been stored, or says why it\ncannot. A "
	"second recorder on the same store is refused. See also: gua status,\ngua stop.";

/* The context of the recorder's callbacks. */
struct front {
	struct detached
		*detached; /* the link to the process that waits in the foreground, or NULL */
	const char *notify_socket;
	const char *pid_file;
	const char *log_file; /* opened again at SIGHUP; NULL in the foreground */
	bool wrote_pid;
	int stop_fd; /* the signals */
	struct statusfile status;
	struct daemon_stuck stuck; /* processes that an earlier run has left behind */
	struct daemon_config *conf;
	struct clock *clock;
	bool ready;	    /* on_ready() was called */
	bool stopped, over; /* the end was requested; the run ends so that another can begin */
	struct leftover log, lock; /* to remove if the start fails; log: in the background */
};

static void on_ready(void *context)
{
	struct front *front = context;
	if (front->ready)
		return;
	front->ready = true;
	if (front->pid_file)
		front->wrote_pid = detach_write_pid(front->pid_file);
	notify_send(front->notify_socket, "READY=1");
	if (front->detached)
		detach_ready(front->detached);
}

static void on_alive(void *context)
{
	struct front *front = context;
	notify_send(front->notify_socket, "WATCHDOG=1");
}

/* SIGHUP: true; opens the log and reads the configuration again. Other signals end all runs. */
static bool on_signal(void *context)
{
	struct front *front = context;
	struct err e = { 0 };
	struct signalfd_siginfo info;
	front->stopped |= read(front->stop_fd, &info, sizeof(info)) != sizeof(info) ||
			  info.ssi_signo != SIGHUP;
	if (front->stopped)
		return false;
	if (front->log_file && detach_open_log(front->log_file, &e))
		log_warning("%s", e.text);
	log_notice("SIGHUP: the log is opened again; user names and the configuration are read "
		   "again");
	daemon_config_again(front->conf, clock_wall_ms(front->clock));
	return true;
}

/* A run has one configuration: another one begins a new run. */
static bool on_tick(void *context)
{
	struct front *front = context;
	front->over = front->conf->changed;
	return front->over;
}

/* The signals that the recorder handles, as a file descriptor. */
static int signals(void)
{
	sigset_t stop;
	sigemptyset(&stop);
	sigaddset(&stop, SIGTERM);
	sigaddset(&stop, SIGINT);
	sigaddset(&stop, SIGHUP);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* exceeding a file size limit is an error of write(2) and
				     must not end the recorder */
	return signalfd(-1, &stop, SFD_CLOEXEC);
}

/* In a terminal that is closed, SIGHUP means the end. */
static bool in_terminal(void)
{
	return isatty(STDIN_FILENO) || isatty(STDOUT_FILENO) || isatty(STDERR_FILENO);
}

/* Sets what the configuration decides. */
static void follow(struct recorder_options *o, const struct config *c)
{
	o->rules = config_rules(c);
	o->privacy = config_privacy(c);
	o->interval_ms = c->interval_ms;
	o->drain_ms = c->drain_ms;
	o->glance_ms = c->glance_ms;
	o->deadline_ms = c->driver_timeout_ms;
	o->retry_ms = c->retry_ms;
	o->keep = (struct retention){ c->keep_minutes_ms / 1000, c->keep_five_ms / 1000 };
}

static void log_tick(void *context, const char *line)
{
	(void)context;
	log_notice("%s", line);
}

static struct recorder_options make_options(const struct values *v, struct front *front)
{
	struct recorder_options o = {
		.db = v->db,
		.host_name = v->host_name && *v->host_name ? v->host_name : NULL,
		.source = { .name = v->source,
			.nvml_path = v->nvml,
			.scenario = v->scenario,
			.root = v->root,
			.clock = front->clock },
		.max_ticks = v->ticks,
		.once = v->once,
		.tick_line = v->line	  ? v->line
			     : v->verbose ? log_tick
					  : NULL,
		.wait_for_driver = v->foreground && !v->once,
		.stop_fd = -1,
		.status = &front->status,
		.own_fault = &front->conf->fault,
		.context = front,
		.ready = on_ready,
		.alive = on_alive,
		.reload = in_terminal() ? NULL : on_signal,
		.is_over = on_tick,
	};
	follow(&o, &front->conf->now.values);
	return o;
}

/* Notes which part of the lock's path exists, before anything is created there. */
static void note_lock(struct front *front, const char *db)
{
	char path[PATH_MAX + 8];
	snprintf(path, sizeof(path), "%s.lock", db);
	leftover_note(&front->lock, path);
}

/* Takes the lock. A service waits for room on a full disk: its manager must not treat that as a
 * failed start. */
static int take_lock(
	const struct recorder_options *o, struct front *front, int *fd, struct err *e)
{
	struct fault full = { 0 };
	for (;;) {
		int rc = lock_take(o->db, fd, e);
		if (rc != ERR_BUSY || !o->wait_for_driver)
			return rc;
		if (fault_raise(&full, 0, "%s; trying again", e->text))
			notify_send(front->notify_socket, "READY=1");
		notify_send(front->notify_socket, "WATCHDOG=1");
		sleep(LOCK_RETRY_S);
	}
}

/* Removes the files that were created, if recording could not start because there is no driver
 * or no card. A store stays, because other processes may have written to it or opened it. The
 * lock is removed last, while it is held: until then no other recorder uses the files. */
static void leave_nothing(const struct front *front)
{
	leftover_remove(&front->log);
	leftover_remove(&front->lock);
}

/* Records while holding the lock, until a stop is requested. A configuration that has changed
 * begins a new run, which waits for a driver that does not answer just then. */
static int record_locked(
	const struct values *v, struct recorder_options *o, struct front *front, struct err *e)
{
	o->stop_fd = front->stop_fd = signals();
	daemon_stuck_read(&front->stuck, o->db);
	statusfile_create(&front->status, o->db, clock_wall_ms(front->clock));
	/* At once: a driver that does not answer may keep this run from its first tick. */
	daemon_stuck_publish(&front->stuck, &front->status);
	int rc = daemon_run(o, v->patience_ms, &front->stuck, e);
	while (!rc && front->over && !front->stopped) {
		front->over = false;
		daemon_config_next(front->conf);
		follow(o, &front->conf->now.values);
		o->wait_for_driver = true;
		rc = daemon_run(o, v->patience_ms, &front->stuck, e);
	}
	daemon_stuck_publish(&front->stuck, &front->status);
	statusfile_remove(&front->status);
	if (rc && !front->ready)
		leave_nothing(front);
	notify_send(front->notify_socket, "STOPPING=1");
	close(o->stop_fd);
	return rc;
}

static int record(const struct values *v, struct front *front, struct err *e)
{
	struct clock clock;
	int lock_fd = -1;
	int rc = clock_open(&clock, v->clock, 1793606400000 /* 2026-11-02T08:00:00Z */, e);
	if (rc)
		return rc;
	front->clock = &clock;
	struct recorder_options o = make_options(v, front);
	daemon_config_report(front->conf, clock_wall_ms(&clock));
	rc = take_lock(&o, front, &lock_fd, e);
	if (!rc) {
		rc = record_locked(v, &o, front, e);
		close(lock_fd);
	}
	front->clock = NULL;
	clock_finish(&clock);
	if (front->wrote_pid)
		unlink(front->pid_file);
	return rc;
}

static int run_foreground(
	const struct command *self, const struct values *v, struct daemon_config *conf)
{
	struct err e = { 0 };
	struct front front = { .notify_socket = secure_getenv("NOTIFY_SOCKET"),
		.pid_file = v->pid_file,
		.conf = conf };
	bool journal = getenv("JOURNAL_STREAM") != NULL;
	note_lock(&front, v->db);
	log_setup(LOG_LEVEL_NOTICE, journal ? LOG_STYLE_JOURNAL : LOG_STYLE_PLAIN);
	unsetenv("NOTIFY_SOCKET");
	return record(v, &front, &e) ? cmd_fail(self, &e) : 0;
}

static int say_started(const struct command *self, const struct values *v, pid_t pid)
{
	struct str out = { 0 };
	char db[PATH_MAX];
	text_escape(db, sizeof(db), v->db, strlen(v->db));
	str_addf(&out, "recording into %s (pid %d); stop with: gua stop", db, (int)pid);
	if (!v->default_db)
		str_addf(&out, " --db %s", db);
	str_add(&out, "\n");
	return cmd_print(self, &out);
}

static int run_background(
	const struct command *self, const struct values *v, struct daemon_config *conf)
{
	struct err e = { 0 };
	struct detached detached;
	struct front front = { .detached = &detached,
		.pid_file = v->pid_file,
		.log_file = v->log_file,
		.conf = conf };
	leftover_note(&front.log, v->log_file);
	note_lock(&front, v->db);
	int rc = detach(&detached, v->log_file, &e);
	if (rc < 0)
		return cmd_fail(self, &e);
	if (rc > 0) { /* in the foreground: wait until the recorder reports */
		if (detach_wait(&detached, &e))
			return cmd_fail(self, &e);
		return say_started(self, v, detached.pid);
	}
	log_setup(LOG_LEVEL_NOTICE, LOG_STYLE_STAMP);
	rc = record(v, &front, &e);
	if (rc)
		log_error("%s", e.text);
	detach_failed(&detached, &e);
	return err_exit_code(rc);
}

/* Checks the scenario before anything is written. */
static int check_scenario(const char *path, struct err *e)
{
	struct scenario *s = NULL;
	int rc = scenario_read(&s, path, e);
	scenario_free(s);
	return rc;
}

/* Sets the defaults of options that were not given. */
static int set_defaults(struct values *v, char paths[9][PATH_MAX], struct err *e)
{
	bool named_clock =
		v->clock && (!strcmp(v->clock, "real") || !strcmp(v->clock, "virtual"));
	const char *none = NULL;
	v->conf.file = configure_named(v->conf.file);
	const char **all[] = { &v->db, &v->log_file, &v->pid_file, &v->scenario,
		named_clock ? &none : &v->clock, &v->root, &v->conf.file };
	int rc = 0;
	if (v->db && !*v->db)
		return err_set(e, ERR_USAGE, "--db needs a path");
	if (!v->db) {
		rc = choose_db_own(paths[7], PATH_MAX, e);
		v->db = paths[7];
		v->default_db = true;
		if (geteuid() == 0 && !v->pid_file && strcmp(v->db, SYSTEM_DB) == 0)
			v->pid_file = "/run/gua/gua.pid";
	}
	/* A background process runs in the root directory. */
	for (size_t i = 0; !rc && i < sizeof(all) / sizeof(all[0]); i++)
		rc = file_make_absolute(all[i], paths[i], e);
	if (!rc && v->nvml && strchr(v->nvml, '/'))
		rc = file_make_absolute(&v->nvml, paths[8], e);
	if (!rc)
		rc = source_make_absolute(&v->source, v->source_name, e);
	if (!rc)
		rc = source_check(v->source, v->scenario, false, e);
	if (!rc && v->once && v->ticks)
		rc = err_set(e, ERR_USAGE, "--once and --ticks do not go together");
	if (!rc && v->scenario)
		rc = check_scenario(v->scenario, e);
	return rc;
}

static int run_nothing(const struct command *self, const struct values *v)
{
	struct live_values live = { .source = v->source,
		.scenario = v->scenario,
		.nvml = v->nvml,
		.clock = v->clock,
		.root = v->root,
		.timeout_ms = v->timeout_ms };
	const struct rehearsal r = { v->db, v->interval_ms, v->foreground };
	return rehearse(self, &r, &live);
}

/* Names the log, and runs in the foreground or in the background. */
static int run(const struct command *self, struct values *v, struct daemon_config *conf)
{
	char note[640] = "", log_file[PATH_MAX + 8];
	if (v->default_db)
		choose_db_warn(v->db, note, sizeof(note));
	if (*note)
		log_notice("%s", note);
	if (!v->log_file) {
		snprintf(log_file, sizeof(log_file), "%s.log", v->db);
		v->log_file = log_file;
	}
	v->foreground |= v->line || detach_is_waited_for();
	if (v->dry_run)
		return run_nothing(self, v);
	bool here = v->foreground || v->once || v->ticks;
	return here ? run_foreground(self, v, conf) : run_background(self, v, conf);
}

int daemon_stay(const struct command *self, int argc, char **argv, daemon_line *line)
{
	int status = 0;
	struct err e = { 0 };
	char paths[9][PATH_MAX];
	struct values v = { .source = SOURCE_AUTO, .root = "", .line = line };
	struct daemon_config conf = {
		.from = &v.conf, .table = daemon_options, .options = &v, .now.recorder = true
	};
	struct command_line words = { .argc = argc, .argv = argv, .given = conf.now.given };
	if (cmd_line_only(self, &words, &v, &status))
		return status;
	v.nvml = cmd_nvml_path(v.nvml);
	int rc = set_defaults(&v, paths, &e);
	conf.now.root = v.root;
	if (!rc)
		rc = daemon_config_read(&conf, &e);
	status = rc ? cmd_fail(self, &e) : run(self, &v, &conf);
	daemon_config_finish(&conf);
	return status;
}

int daemon_main(const struct command *self, int argc, char **argv)
{
	return daemon_stay(self, argc, argv, NULL);
}

const struct command cmd_daemon = {
	.name = "daemon",
	.summary = "record what the cards do, in the background",
	.usage = "[--db PATH] [--interval D] [OPTIONS]",
	.details = daemon_details,
	.options = daemon_options,
	.run = daemon_main,
};
