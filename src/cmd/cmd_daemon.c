/* gua daemon, gua start and gpu-usage-audit daemon: the recorder, in the background or in the
 * foreground; with --dry-run, what it would do. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "base/duration.h"
#include "cmd/cmd.h"
#include "cmd/share/choose_db.h"
#include "cmd/share/cmd_live.h"
#include "cmd/share/configure.h"
#include "cmd/share/detach.h"
#include "driver/host/apart.h"
#include "driver/source.h"
#include "driver/sim/scenario.h"
#include "driver/source_host.h"
#include "lease/lease_dir.h"
#include "record/notify.h"
#include "record/recorder.h"
#include "store/identify.h"
#include "store/lock.h"
#include "store/statusfile.h"

/* Set the first three members and `now.given`, and zero the rest. */
struct daemon_config {
	const struct configure_options *from;
	const struct option_row *table; /* the recorder's options */
	const void *options;		/* their values; `now.given` says which were given */
	struct configuration now;	/* the configuration in force */
	struct configuration next;	/* for the next run, if `changed` */
	bool changed;
	struct fault fault; /* for the status: the configuration has errors */
};

/* Called with the line of each tick. */
typedef void daemon_line(void *context, const char *line);

/* Processes that an earlier run has left behind. */
struct daemon_stuck {
	struct source_stuck list[SOURCE_STUCK_MAX];
	size_t n;
};

/* The options. */
struct values {
	char source_name[SOURCE_NAME_CAP]; /* for `source` */
	const char *db, *source, *scenario, *nvml, *log_file, *pid_file, *clock, *root,
		*privacy, *host_name, *leases;
	int64_t interval_ms, drain_ms, glance_ms, ticks, timeout_ms, patience_ms, retry_ms,
		keep_minutes_ms, keep_five_ms, held_mem_bytes, spell_ms;
	double active_util;
	bool foreground, once, verbose, count_graphics, dry_run;
	bool default_db;   /* no --db was given */
	daemon_line *line; /* called with the line of each tick, for a program that stays in the
			      foreground */
	struct configure_options conf;
};

struct leftover {
	char path[PATH_MAX];
	bool fresh;  /* the file did not exist */
	size_t kept; /* length of the part of the path that existed */
};

/* The recorder's configuration: read at the start and again at SIGHUP. Errors in files are
 * logged and shown in the status, and never end a recorder. */

/* Reads into `c`. If an option is wrong, returns ERR_USAGE and fills `e`. */
static int read_into(struct daemon_config *d, struct configuration *c, struct err *e)
{
	char text[2048];
	int rc = configure_read(c, d->from, e);
	if (rc)
		return rc;
	for (size_t i = 0; i < c->settings.n_errors; i++) {
		settings_error_text(&c->settings, i, text, sizeof(text));
		if (configure_is_option(c, i))
			return err_set(e, ERR_USAGE, "%s", text);
		log_warning("%s", text);
	}
	settings_override(&config_schema, &c->values, d->table, d->options, c->given);
	return 0;
}

/* Whether strict privacy may have been asked for by a file that cannot be used, or by a wrong
 * value. */
static bool may_be_strict(const struct settings *s)
{
	bool may = false;
	for (size_t i = 0; i < s->n_errors; i++)
		may |= s->errors[i].whole;
	for (size_t i = 0; i < s->n_items; i++) {
		const struct config_key *key = s->items[i].key;
		may |= s->items[i].wrong && key && key->value.name &&
		       strcmp(key->value.name, "privacy") == 0;
	}
	return may;
}

static bool is_given(const struct daemon_config *d, const char *option)
{
	size_t i = 0;
	while (d->table[i].name && strcmp(d->table[i].name, option) != 0)
		i++;
	return d->table[i].name && d->now.given[i];
}

/* Reads the configuration. Fails only for a wrong option. Data that was stored by mistake
 * cannot be taken back, so in case of doubt the recorder uses strict privacy. */
static int daemon_config_read(struct daemon_config *d, struct err *e)
{
	struct config *values = &d->now.values;
	int rc = read_into(d, &d->now, e);
	if (rc || is_given(d, "privacy") || !may_be_strict(&d->now.settings) ||
		config_privacy(values) == PRIVACY_STRICT)
		return rc;
	values->privacy = privacy_names[PRIVACY_STRICT];
	log_warning("privacy is strict until the configuration is right");
	return 0;
}

/* Raises the fault if the configuration has errors; call it when the log is open. `instead`
 * names the configuration in force. */
static void report(
	struct daemon_config *d, const struct settings *s, int64_t now_ms, const char *instead)
{
	char first[2048];
	if (!s->n_errors) {
		fault_clear(&d->fault, now_ms);
		return;
	}
	settings_error_text(s, 0, first, sizeof(first));
	fault_raise(&d->fault, now_ms,
		"the configuration has %zu error%s; %s in force. See gua config --check. "
		"First: %.100s",
		s->n_errors, s->n_errors == 1 ? "" : "s", instead, first);
}

/* Logs the recorder's keys that have changed; returns how many. */
static size_t log_changes(const struct daemon_config *d)
{
	size_t n = 0;
	char new[64];
	for (const struct config_key *key = config_schema.keys; key->section; key++) {
		if (!key->commands || !strstr(key->commands, "daemon") ||
			!settings_differ(key, &d->now.values, &d->next.values))
			continue;
		settings_value_text(key, &d->next.values, new, sizeof(new));
		log_notice("configuration: %s is %s after the next tick", key->value.name, new);
		n++;
	}
	return n;
}

/* Reads the files again, and logs what has changed. A configuration with errors is not used. */
static void daemon_config_again(struct daemon_config *d, int64_t now_ms)
{
	struct err e = { 0 };
	configure_finish(&d->next);
	d->next = (struct configuration){ .root = d->now.root, .recorder = d->now.recorder };
	memcpy(d->next.given, d->now.given, sizeof(d->next.given));
	d->changed = false;
	if (read_into(d, &d->next, &e)) {
		log_warning("the configuration cannot be read again: %s", e.text);
		return;
	}
	report(d, &d->next.settings, now_ms, "the one read before is still");
	if (!d->next.settings.n_errors)
		d->changed = log_changes(d) > 0;
}

/* One run of the recorder, with the driver in a process of its own. A process that is stuck in
 * the driver outlives the run; the next run must know of it, even in another process. */

/* Publishes the stuck processes for the next recorder, after the last run. */
static void daemon_stuck_publish(const struct daemon_stuck *stuck, struct statusfile *status)
{
	statusfile_set_stuck(status, stuck->list, stuck->n);
	if (stuck->n)
		statusfile_publish(status, -1, NULL, 0);
}

/* Records until the run is over. Gives up a driver that does not answer for `patience_ms` (0:
 * the default). Puts the processes that it has left behind into `stuck`. */
static int daemon_run(struct recorder_options *o, int64_t patience_ms,
	struct daemon_stuck *stuck, struct err *e)
{
	struct apart *apart = NULL;
	struct apart_manner manner = apart_manner_of(o->deadline_ms);
	if (patience_ms)
		manner.patience_ms = patience_ms;
	int rc = apart_new(&apart, &o->source, &manner, e);
	if (rc)
		return rc;
	struct source_host *host = apart_host(apart);
	o->source.host = host;
	for (size_t i = 0; i < stuck->n; i++)
		apart_remember(apart, &stuck->list[i]);
	rc = recorder_run(o, e);
	o->source.host = NULL;
	apart_stop(apart);
	stuck->n = host->stuck(host, stuck->list, SOURCE_STUCK_MAX);
	apart_free(apart);
	return rc;
}

static int check_unused(const char *db, struct err *e)
{
	struct published now;
	int rc = statusfile_read(&now, db, e);
	if (rc || !now.pid)
		return rc;
	if (now.pid == RECORDER_ELSEWHERE)
		return err_set(
			e, ERR_WORLD, "a recorder outside of this container uses %s", db);
	return err_set(
		e, ERR_WORLD, "a recorder is already running on %s (pid %d)", db, (int)now.pid);
}

static int check_writable(const char *db, bool exists, struct err *e)
{
	char dir[PATH_MAX];
	file_nearest_directory(dir, sizeof(dir), db);
	const char *denied = dir;
	if (exists && faccessat(AT_FDCWD, db, W_OK, AT_EACCESS) != 0)
		denied = db;
	else if (faccessat(AT_FDCWD, dir, W_OK, AT_EACCESS) == 0)
		return 0;
	return err_set(e, ERR_WORLD,
		"%s may not be written: %s; choose another place with --db PATH", denied,
		strerror(errno));
}

static int count_cards(struct live_values *v, size_t *n, struct err *e)
{
	static struct live_session s; /* a stuck thread may still use its clock */
	v->no_store = v->once = v->cards_only = true;
	int rc = cmd_live_open(&s, v, NULL, e);
	if (rc)
		return rc;
	rc = cmd_live_refresh(&s, e);
	*n = live_present(s.live)->n_cards;
	cmd_live_close(&s);
	return rc;
}

/* With --dry-run: prints what would be done, or why it could not; returns the exit status. */
static int rehearse(const struct command *self, const struct values *v)
{
	struct live_values live = { .source = v->source,
		.scenario = v->scenario,
		.nvml = v->nvml,
		.clock = v->clock,
		.root = v->root,
		.timeout_ms = v->timeout_ms };
	struct err e = { 0 };
	struct str out = { 0 };
	char db[PATH_MAX];
	size_t n = 0;
	int kind = STORE_MISSING;
	if (check_unused(v->db, &e) || (kind = identify_store(v->db, &e)) < 0 ||
		check_writable(v->db, kind == STORE_OURS, &e) || count_cards(&live, &n, &e))
		return cmd_fail(self, &e);
	str_escape(db, sizeof(db), v->db, strlen(v->db));
	struct brief every = duration_text(v->interval_ms);
	str_addf(&out, "would record %zu card%s into %s (%s) every %s, in the %s\n", n,
		n == 1 ? "" : "s", db, kind == STORE_OURS ? "exists" : "new", every.text,
		v->foreground ? "foreground" : "background");
	str_add(&out, "dry run: nothing was started or written\n");
	return cmd_print(self, &out);
}

/* Notes what exists of this absolute path, before the file is created. */
static void leftover_note(struct leftover *l, const char *path)
{
	struct stat st;
	char above[PATH_MAX];
	*l = (struct leftover){ 0 };
	l->fresh = str_copy(l->path, sizeof(l->path), path) && lstat(path, &st) != 0;
	str_copy(above, sizeof(above), path);
	for (char *slash = strrchr(above, '/'); slash && slash != above && !l->kept;
		slash = strrchr(above, '/')) {
		*slash = '\0';
		if (stat(above, &st) == 0)
			l->kept = strlen(above);
	}
}

/* Removes the file and the directories above it that did not exist before. A directory that is
 * not empty stays. */
static void leftover_remove(const struct leftover *l)
{
	char above[PATH_MAX];
	if (!l->fresh || unlink(l->path) != 0)
		return;
	str_copy(above, sizeof(above), l->path);
	for (char *slash = strrchr(above, '/'); slash && (size_t)(slash - above) > l->kept;
		slash = strrchr(above, '/')) {
		*slash = '\0';
		if (rmdir(above) != 0)
			return;
	}
}

enum { LOCK_RETRY_S = 5 };

#define AT(field) .offset = offsetof(struct values, field)

static const struct option_row daemon_options[] = {
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
	{ OPTION_TEXT, 0, "leases", "DIR",
		"where schedulers say what they give away (default " LEASE_DIR_PATH ")",
		AT(leases) },
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

static const char daemon_details[] =
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
	const struct front *front = context;
	notify_send(front->notify_socket, "WATCHDOG=1");
}

/* For SIGHUP: opens the log and reads the configuration again, and returns true. Other signals
 * end all runs. */
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

/* A run has only one configuration; another configuration begins a new run. */
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

/* Sets what the configuration decides. */
static void follow(struct recorder_options *o, const struct config *c)
{
	o->rules = config_rules(c);
	o->privacy = config_privacy(c);
	o->numbering = c->leases.numbering;
	o->keep_uids = strcmp(c->pod_user, "uid") == 0;
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
	/* If the terminal is closed, SIGHUP means the end. */
	bool terminal = isatty(STDIN_FILENO) || isatty(STDOUT_FILENO) || isatty(STDERR_FILENO);
	struct recorder_options o = {
		.db = v->db,
		.leases = v->leases,
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
		.reload = terminal ? NULL : on_signal,
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

/* Records while holding the lock, until a stop is requested. A configuration that has changed
 * begins a new run. That run waits if the driver does not answer at that moment. */
static int record_locked(
	const struct values *v, struct recorder_options *o, struct front *front, struct err *e)
{
	o->stop_fd = front->stop_fd = signals();
	/* Read before the file is made anew: an earlier recorder has published them in it. */
	front->stuck.n = statusfile_read_stuck(o->db, front->stuck.list, SOURCE_STUCK_MAX);
	statusfile_create(&front->status, o->db, clock_wall_ms(front->clock));
	/* Publish at once: if the driver does not answer, this run may never reach its first
	 * tick. */
	daemon_stuck_publish(&front->stuck, &front->status);
	int rc = daemon_run(o, v->patience_ms, &front->stuck, e);
	while (!rc && front->over && !front->stopped) {
		struct daemon_config *conf = front->conf;
		front->over = false;
		/* Use the configuration that was read again, if it has changed. */
		if (conf->changed) {
			configure_finish(&conf->now);
			conf->now = conf->next;
			conf->next = (struct configuration){ 0 };
			conf->changed = false;
		}
		follow(o, &front->conf->now.values);
		o->wait_for_driver = true;
		rc = daemon_run(o, v->patience_ms, &front->stuck, e);
	}
	daemon_stuck_publish(&front->stuck, &front->status);
	statusfile_remove(&front->status);
	/* There is no driver or no card: remove the files that were created. A store stays,
	 * because other processes may have written to it or opened it. The lock is removed
	 * last, while it is held: until then no other recorder uses the files. */
	if (rc && !front->ready) {
		leftover_remove(&front->log);
		leftover_remove(&front->lock);
	}
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
	report(front->conf, &front->conf->now.settings, clock_wall_ms(&clock),
		"the rest of it is");
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

/* In the foreground: waits for the report of the recorder, and prints that it has started. */
static int say_started(
	const struct command *self, const struct values *v, struct detached *detached)
{
	struct err e = { 0 };
	struct str out = { 0 };
	char db[PATH_MAX];
	if (detach_wait(detached, &e))
		return cmd_fail(self, &e);
	str_escape(db, sizeof(db), v->db, strlen(v->db));
	str_addf(&out, "recording into %s (pid %d); stop with: gua stop%s%s\n", db,
		(int)detached->pid, v->default_db ? "" : " --db ", v->default_db ? "" : db);
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
	if (rc > 0)
		return say_started(self, v, &detached);
	log_setup(LOG_LEVEL_NOTICE, LOG_STYLE_STAMP);
	rc = record(v, &front, &e);
	if (rc)
		log_error("%s", e.text);
	detach_failed(&detached, &e);
	return err_exit_code(rc);
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
	if (rc || source_make_absolute(&v->source, v->source_name, e) ||
		source_check(v->source, v->scenario, false, e))
		return e->code;
	if (v->once && v->ticks)
		return err_set(e, ERR_USAGE, "--once and --ticks do not go together");
	/* The scenario is checked before anything is written. */
	struct scenario *scenario = NULL;
	if (v->scenario)
		rc = scenario_read(&scenario, v->scenario, e);
	scenario_free(scenario);
	return rc;
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
		return rehearse(self, v);
	bool here = v->foreground || v->once || v->ticks;
	return here ? run_foreground(self, v, conf) : run_background(self, v, conf);
}

static int daemon_stay(const struct command *self, int argc, char **argv, daemon_line *line)
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
	configure_finish(&conf.now);
	configure_finish(&conf.next);
	return status;
}

static int daemon_main(const struct command *self, int argc, char **argv)
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

const struct command cmd_start = {
	.name = "start",
	.summary = "start the recorder in the background (the same as daemon)",
	.usage = "[--db PATH] [--interval D] [OPTIONS]",
	.details = daemon_details,
	.options = daemon_options,
	.run = daemon_main,
};

/* gpu-usage-audit daemon: gua daemon, as units and scripts that were written for the Python
 * tool of that name expect it. It stays in the foreground and prints a line for each tick. */

/* Prints the line, if that does not block: the recorder does not wait for a reader. On a
 * terminal the lines appear only while this program is in the foreground. */
static void print_line(void *context, const char *line)
{
	(void)context;
	struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };
	bool wanted = !isatty(STDOUT_FILENO) || tcgetpgrp(STDOUT_FILENO) == getpgrp();
	if (wanted && poll(&out, 1, 0) == 1 && (out.revents & POLLOUT))
		dprintf(STDOUT_FILENO, "%s\n", line);
}

static int run_audit_daemon(const struct command *self, int argc, char **argv)
{
	return daemon_stay(self, argc, argv, print_line);
}

const struct command cmd_audit_daemon = {
	.name = "daemon",
	.called = "gpu-usage-audit daemon",
	.summary = "record what the cards do, in the foreground, with a line for each tick",
	.usage = "[--db PATH] [--interval D] [OPTIONS]",
	.details = "Under this name the recorder stays in the foreground, as the Python tool\n"
		   "gpu-usage-audit does; 'gua daemon' goes to the background.",
	.options = daemon_options,
	.run = run_audit_daemon,
};
