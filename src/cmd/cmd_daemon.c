/* gua daemon, gua start and gpu-usage-audit daemon: the recorder, in the background or in the
 * foreground; with --dry-run, what it would do. */
#include <malloc.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "base/fault.h"
#include "cmd/share/cmd_live.h"
#include "cmd/share/configure.h"
#include "driver/host/apart.h"
#include "driver/sim/scenario.h"
#include "driver/source_host.h"
#include "lease/lease_dir.h"
#include "base/notify.h"
#include "record/recorder.h"
#include "store/identify.h"
#include "store/lock.h"
#include "store/statusfile.h"

enum { LOCK_RETRY_S = 5 };

/* The options. */
struct values {
	struct recorder_options o;	   /* what options say of it */
	char source_name[SOURCE_NAME_CAP]; /* for the name of its source */
	const char *log_file, *pid_file, *clock;
	int64_t patience_ms;
	bool foreground, verbose, dry_run;
	bool default_db; /* no --db was given */
	struct configure_options conf;
};

/* A file that is made before the start has succeeded. */
struct leftover {
	char path[PATH_MAX];
	bool fresh;  /* the file did not exist */
	size_t kept; /* length of the part of the path that existed */
};

/* The recorder as a service: it is the context of the recorder's callbacks. Set `self`,
 * `wait_fd` and the defaults of the options, and zero the rest. */
struct daemon {
	const struct command *self;
	struct values v;
	struct configuration now;  /* in force */
	struct configuration next; /* for the next run, if `changed` */
	bool changed;
	struct fault fault; /* for the status: the configuration has errors */
	struct clock clock;
	bool background;
	int wait_fd; /* of the pipe to the process that waits in the foreground; or -1 */
	const char *notify_socket;
	bool wrote_pid;
	int stop_fd; /* the signals */
	struct statusfile status;
	/* Processes that an earlier run has left behind, stuck in the driver. */
	struct source_stuck stuck[SOURCE_STUCK_MAX];
	size_t n_stuck;
	bool ready;	    /* on_ready() was called */
	bool stopped, over; /* the end was requested; the run ends so that another can begin */
	struct leftover log, lock; /* to remove if the start fails; log: in the background */
};

#define AT(field) .offset = offsetof(struct values, field)

static const struct option_row daemon_options[] = {
	{ OPTION_TEXT, 0, "db", "PATH", "the store (default: see FILES in man gua)", AT(o.db) },
	KEY_ROW('i', "interval", "record.interval"),
	KEY_ROW(0, "drain", "record.drain"),
	KEY_ROW(0, "glance", "record.glance"),
	{ OPTION_FLAG, 'f', "foreground",
		.help = "stay in the foreground, for service managers", AT(foreground) },
	{ OPTION_FLAG, 0, "dry-run", .help = "say what would be done; change nothing",
		AT(dry_run) },
	{ OPTION_FLAG, 0, "once",
		.help = "record what the driver's ring holds (about 10 s) and end",
		AT(o.once) },
	{ OPTION_COUNT, 0, "ticks", "N", "end after N ticks", AT(o.max_ticks), .min = 1 },
	{ OPTION_FLAG, 'v', "verbose", .help = "log one line per tick", AT(verbose) },
	KEY_ROW(0, "active-util", "thresholds.active_util_pct"),
	KEY_ROW(0, "held-mem", "thresholds.held_mem"),
	KEY_ROW(0, "count-graphics", "record.count_graphics"),
	KEY_ROW(0, "spell", "thresholds.spell"),
	KEY_ROW(0, "privacy", "record.privacy"),
	{ OPTION_TEXT, 0, "host-name", "NAME",
		"name of this host in the store (default: the system's; a container's changes "
		"at each start)",
		AT(o.host_name) },
	{ OPTION_TEXT, 0, "leases", "DIR",
		"where schedulers say what they give away (default " LEASE_DIR_PATH ")",
		AT(o.leases) },
	KEY_ROW(0, "keep-minutes", "retention.keep_minutes"),
	KEY_ROW(0, "keep-five", "retention.keep_five"),
	CONFIGURE_ROWS(struct values, conf),
	SOURCE_ROWS(struct values, o.source, SOURCE_HELP, source_words),
	KEY_ROW(0, "driver-timeout", "record.driver_timeout"),
	KEY_ROW(0, "retry", "record.retry"),
	{ OPTION_TEXT, 0, "log-file", "PATH",
		"log of the background recorder (default: the store's path with .log appended)",
		AT(log_file) },
	{ OPTION_TEXT, 0, "pid-file", "PATH",
		"also write the pid to PATH; gua itself does not read it", AT(pid_file) },
	{ OPTION_DURATION, 0, "driver-patience", "D",
		"give up a process whose driver does not answer for this long", AT(patience_ms),
		.min = 100, .max = 3600e3, .hidden = true },
	CLOCK_ROW(struct values, clock),
	{ 0 },
};

static const char daemon_details[] =
	"The recorder reads the driver and writes the store; it has no network code. It\ngoes "
	"to the background after the first look has been stored, or says why it\ncannot. A "
	"second recorder on the same store is refused. See also: gua status,\ngua stop.";

/* The recorder's configuration: read at the start and again at SIGHUP. Errors in files are
 * logged and shown in the status, and never end a recorder. */

/* Reads into `c`. If an option is wrong, returns ERR_USAGE and fills `e`. */
static int read_into(const struct daemon *d, struct configuration *c, struct err *e)
{
	int rc = configure_leniently(c, &d->v.conf, log_warning, e);
	if (!rc)
		configure_override(d->self, c);
	return rc;
}

/* Reads the configuration. Fails only for a wrong option. Data that was stored by mistake
 * cannot be taken back, so in case of doubt (a file that cannot be used, or a wrong value) the
 * recorder uses strict privacy. */
static int read_first(struct daemon *d, struct err *e)
{
	const struct settings *s = &d->now.settings;
	struct config *values = &d->now.values;
	bool may_be_strict = false;
	int rc = read_into(d, &d->now, e);
	for (size_t i = 0; i < s->n_errors; i++)
		may_be_strict |= s->errors[i].whole;
	for (size_t i = 0; i < s->n_items; i++) {
		const struct config_key *key = s->items[i].key;
		may_be_strict |= s->items[i].wrong && key && key->value.name &&
				 strcmp(key->value.name, "privacy") == 0;
	}
	if (rc || d->now.options.privacy || !may_be_strict ||
		config_privacy(values) == PRIVACY_STRICT)
		return rc;
	values->privacy = privacy_names[PRIVACY_STRICT];
	log_warning("privacy is strict until the configuration is right");
	return 0;
}

/* Raises the fault if the configuration has errors; call it when the log is open. `instead`
 * names the configuration in force. */
static void report(struct daemon *d, const struct settings *s, const char *instead)
{
	char first[2048];
	int64_t now_ms = clock_wall_ms(&d->clock);
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

/* Reads the files again, and logs what has changed. A configuration with errors is not used. */
static void read_again(struct daemon *d)
{
	struct err e = { 0 };
	struct option_row rows[OPTIONS_MAX];
	char old[64], new[64];
	configure_finish(&d->next);
	d->next = configure_like(&d->now);
	d->changed = false;
	if (read_into(d, &d->next, &e)) {
		log_warning("the configuration cannot be read again: %s", e.text);
		return;
	}
	report(d, &d->next.settings, "the one read before is still");
	if (d->next.settings.n_errors)
		return;
	configure_rows(d->self, rows);
	for (const struct option_row *row = rows; row->name; row++) {
		if (!row->key)
			continue;
		settings_value_text(row, &d->now.values, old, sizeof(old));
		settings_value_text(row, &d->next.values, new, sizeof(new));
		if (strcmp(old, new) == 0)
			continue;
		log_notice("configuration: %s is %s after the next tick",
			strchr(row->key, '.') + 1, new);
		d->changed = true;
	}
}

/* Opens a file for writing, and creates it with `mode`. Another user may have put something
 * there first, so links are not followed and the call does not wait. */
static int open_plain(const char *path, int flags, mode_t mode)
{
	struct stat st;
	int fd = open(
		path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, mode);
	if (fd < 0)
		return -1;
	bool plain = fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISCHR(st.st_mode));
	bool own = plain && (geteuid() == 0 || st.st_uid == geteuid() || st.st_uid == 0);
	if (own)
		return fd;
	close(fd);
	errno = plain ? EPERM : EINVAL;
	return -1;
}

static int open_log(const char *path, struct err *e)
{
	if (file_make_parent(path, 0750, e))
		return e->code;
	int fd = open_plain(path, O_APPEND, 0640);
	if (fd < 0)
		return err_set(e, ERR_WORLD, "cannot open the log file %s: %s", path,
			errno == EINVAL || errno == ENXIO ? "it is not a regular file"
			: errno == EPERM		  ? "it belongs to another user"
							  : strerror(errno));
	return fd;
}

/* Starts the background process: two forks and a new session. Returns 0 in that process, which
 * writes stderr to the log and whose wait_fd is the write end of a pipe; 1 in the foreground
 * process, which has the read end; negative on error. */
static int detach(struct daemon *d, struct err *e)
{
	int ends[2];
	int log = open_log(d->v.log_file, e);
	if (log < 0)
		return log;
	if (pipe2(ends, O_CLOEXEC) != 0) {
		close(log);
		return err_set(e, ERR_WORLD, "cannot make a pipe: %s", strerror(errno));
	}
	pid_t first = fork();
	if (first < 0)
		return err_set(e, ERR_WORLD, "cannot fork: %s", strerror(errno));
	d->wait_fd = ends[first == 0];
	if (first > 0) {
		close(log);
		close(ends[1]);
		waitpid(first, NULL, 0);
		return 1;
	}
	setsid();
	/* A second fork: the process is not a session leader, so it cannot get a terminal. */
	if (fork() != 0)
		_exit(0);
	close(ends[0]);
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	dup2(nothing, STDIN_FILENO);
	dup2(nothing, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
	close(nothing);
	close(log);
	umask(027);
	return chdir("/") == 0 ? 0
			       : err_set(e, ERR_WORLD, "cannot enter /: %s", strerror(errno));
}

/* In the foreground: waits for the report of the background process ("PID\n", or "!CODE text"),
 * and prints that it has started. Returns the exit status. */
static int wait_for_start(const struct daemon *d, struct err *e)
{
	struct str out = { 0 };
	char db[PATH_MAX], word[sizeof(e->text) + 16];
	size_t len = 0;
	int code = 0, at = 0, pid = 0;
	for (;;) {
		ssize_t n = read(d->wait_fd, word + len, sizeof(word) - 1 - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	close(d->wait_fd);
	word[len] = '\0';
	if (sscanf(word, "!%d %n", &code, &at) == 1)
		return err_set(e, code, "%s", word + at);
	if (sscanf(word, "%d", &pid) != 1)
		return err_set(e, ERR_WORLD,
			"the recorder ended before it had started; see its log file");
	str_escape(db, sizeof(db), d->v.o.db, strlen(d->v.o.db));
	str_addf(&out, "recording into %s (pid %d); stop with: gua stop%s%s\n", db, pid,
		d->v.default_db ? "" : " --db ", d->v.default_db ? "" : db);
	return cmd_print(d->self, &out);
}

/* Notes what exists of this absolute path, before the file is created. */
static void leftover_note(struct leftover *l, const char *path)
{
	struct stat st;
	char above[PATH_MAX];
	file_nearest_directory(above, sizeof(above), path);
	l->kept = strlen(above);
	l->fresh = str_copy(l->path, sizeof(l->path), path) && lstat(path, &st) != 0;
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

static void on_ready(void *context)
{
	struct daemon *d = context;
	const char *path = d->v.pid_file;
	struct err e = { 0 };
	struct stat st;
	if (d->ready)
		return;
	d->ready = true;
	if (path) {
		int fd = file_make_parent(path, 0755, &e) == 0 ? open_plain(path, O_TRUNC, 0644)
							       : -1;
		if (fd < 0 || dprintf(fd, "%d\n", (int)getpid()) < 0)
			log_warning("cannot write the pid file %s: %s", path, strerror(errno));
		/* A device such as /dev/null is not removed later. */
		d->wrote_pid = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
		file_close(fd);
	}
	notify_send(d->notify_socket, "READY=1");
	if (d->wait_fd >= 0) {
		dprintf(d->wait_fd, "%d\n", (int)getpid());
		close(d->wait_fd);
		d->wait_fd = -1;
	}
}

static void on_alive(void *context)
{
	const struct daemon *d = context;
	notify_send(d->notify_socket, "WATCHDOG=1");
}

/* For SIGHUP: opens the log and reads the configuration again, and returns true. Other signals
 * end all runs. */
static bool on_signal(void *context)
{
	struct daemon *d = context;
	struct err e = { 0 };
	struct signalfd_siginfo info;
	d->stopped |= read(d->stop_fd, &info, sizeof(info)) != sizeof(info) ||
		      info.ssi_signo != SIGHUP;
	if (d->stopped)
		return false;
	/* It may be another file than before. */
	int log = d->background ? open_log(d->v.log_file, &e) : -1;
	if (log >= 0) {
		dup2(log, STDERR_FILENO);
		close(log);
	} else if (e.code) {
		log_warning("%s", e.text);
	}
	log_notice("SIGHUP: the log is opened again; user names and the configuration are read "
		   "again");
	read_again(d);
	return true;
}

/* A run has only one configuration; another configuration begins a new run. */
static bool on_tick(void *context)
{
	struct daemon *d = context;
	d->over = d->changed;
	return d->over;
}

static void log_tick(void *context, const char *line)
{
	(void)context;
	log_notice("%s", line);
}

/* Prints the line, if that does not block: the recorder does not wait for a reader. On a
 * terminal the lines appear only while this program is in the foreground. */
static void print_tick(void *context, const char *line)
{
	(void)context;
	struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };
	bool wanted = !isatty(STDOUT_FILENO) || tcgetpgrp(STDOUT_FILENO) == getpgrp();
	if (wanted && poll(&out, 1, 0) == 1 && (out.revents & POLLOUT))
		dprintf(STDOUT_FILENO, "%s\n", line);
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

static struct recorder_options make_options(struct daemon *d)
{
	const struct values *v = &d->v;
	struct recorder_options o = v->o;
	/* If the terminal is closed, SIGHUP means the end. */
	bool terminal = isatty(STDIN_FILENO) || isatty(STDOUT_FILENO) || isatty(STDERR_FILENO);
	o.host_name = o.host_name && *o.host_name ? o.host_name : NULL;
	o.source.clock = &d->clock;
	o.tick_line = d->self->called ? print_tick : v->verbose ? log_tick : NULL;
	o.wait_for_driver = v->foreground && !o.once;
	o.status = &d->status;
	o.own_fault = &d->fault;
	o.context = d;
	o.ready = on_ready;
	o.alive = on_alive;
	o.reload = terminal ? NULL : on_signal;
	o.is_over = on_tick;
	return o;
}

/* One run of the recorder, with the configuration in force and with the driver in a process of
 * its own. A process that is stuck in the driver outlives the run; the next run must know of
 * it, even in another process. */
static int run_once(struct daemon *d, struct recorder_options *o, struct err *e)
{
	const struct config *c = &d->now.values;
	struct apart *apart = NULL;
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
	/* The driver's thread and this one seldom run at the same time: one heap is enough. */
	mallopt(M_ARENA_MAX, 1);
	struct apart_manner manner = apart_manner_of(o->deadline_ms);
	if (d->v.patience_ms)
		manner.patience_ms = d->v.patience_ms;
	if (apart_new(&apart, &o->source, &manner, e))
		return e->code;
	struct source_host *host = apart_host(apart);
	o->source.host = host;
	for (size_t i = 0; i < d->n_stuck; i++)
		apart_remember(apart, &d->stuck[i]);
	int rc = recorder_run(o, e);
	o->source.host = NULL;
	apart_stop(apart);
	d->n_stuck = host->stuck(host, d->stuck, SOURCE_STUCK_MAX);
	apart_free(apart);
	return rc;
}

/* Publishes the stuck processes, for the next recorder too. */
static void publish_stuck(struct daemon *d)
{
	statusfile_set_stuck(&d->status, d->stuck, d->n_stuck);
	if (d->n_stuck)
		statusfile_publish(&d->status, -1, NULL, 0);
}

/* Records while holding the lock, until a stop is requested. A configuration that has changed
 * begins a new run. That run waits if the driver does not answer at that moment. */
static int record_locked(struct daemon *d, struct recorder_options *o, struct err *e)
{
	int rc;
	o->stop_fd = d->stop_fd = signals();
	/* Read before the file is made anew: an earlier recorder has published them in it. */
	d->n_stuck = statusfile_read_stuck(o->db, d->stuck, SOURCE_STUCK_MAX);
	statusfile_create(&d->status, o->db, clock_wall_ms(&d->clock));
	/* Publish at once: if the driver does not answer, this run may never have a tick. */
	publish_stuck(d);
	do {
		d->over = false;
		if (d->changed) {
			configure_finish(&d->now);
			d->now = d->next;
			d->next = (struct configuration){ 0 };
			d->changed = false;
		}
		rc = run_once(d, o, e);
		o->wait_for_driver = true;
	} while (!rc && d->over && !d->stopped);
	publish_stuck(d);
	statusfile_remove(&d->status);
	/* There is no driver or no card: remove the files that were created. A store stays,
	 * because other processes may have written to it or opened it. The lock is removed
	 * last, while it is held: until then no other recorder uses the files. */
	if (rc && !d->ready) {
		leftover_remove(&d->log);
		leftover_remove(&d->lock);
	}
	notify_send(d->notify_socket, "STOPPING=1");
	close(o->stop_fd);
	return rc;
}

static int record(struct daemon *d, struct err *e)
{
	int lock_fd = -1;
	int rc = clock_open(&d->clock, d->v.clock, 1793606400000 /* 2026-11-02T08:00:00Z */, e);
	if (rc)
		return rc;
	struct recorder_options o = make_options(d);
	report(d, &d->now.settings, "the rest of it is");
	/* A service waits for room on a full disk: to its manager that is no failed start. */
	struct fault full = { 0 };
	while ((rc = lock_take(o.db, &lock_fd, e)) == ERR_BUSY && o.wait_for_driver) {
		if (fault_raise(&full, 0, "%s; trying again", e->text))
			notify_send(d->notify_socket, "READY=1");
		notify_send(d->notify_socket, "WATCHDOG=1");
		sleep(LOCK_RETRY_S);
	}
	if (!rc) {
		rc = record_locked(d, &o, e);
		close(lock_fd);
	}
	clock_finish(&d->clock);
	if (d->wrote_pid)
		unlink(d->v.pid_file);
	return rc;
}

static int run_background(struct daemon *d, struct err *e)
{
	leftover_note(&d->log, d->v.log_file);
	int rc = detach(d, e);
	if (rc < 0)
		return rc;
	if (rc > 0)
		return wait_for_start(d, e);
	d->background = true;
	log_setup(LOG_LEVEL_NOTICE, LOG_STYLE_STAMP);
	rc = record(d, e);
	if (rc)
		log_error("%s", e->text);
	if (d->wait_fd >= 0)
		dprintf(d->wait_fd, "!%d %s", e->code, e->text);
	return err_exit_code(rc);
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

/* With --dry-run: prints what would be done, or why it could not; returns the exit status. */
static int rehearse(const struct daemon *d, struct err *e)
{
	const struct values *v = &d->v;
	static struct live_session s; /* a stuck thread may still use its clock */
	const struct live_values live = { .o = { .source = v->o.source,
						  .deadline_ms =
							  d->now.values.driver_timeout_ms,
						  .once = true,
						  .cards_only = true },
		.clock = v->clock,
		.no_store = true };
	struct published now;
	struct str out = { 0 };
	char db[PATH_MAX];
	int kind = STORE_MISSING;
	int rc = statusfile_read(&now, v->o.db, e);
	if (rc == 0 && now.pid == RECORDER_ELSEWHERE)
		rc = err_set(
			e, ERR_WORLD, "a recorder outside of this container uses %s", v->o.db);
	else if (rc == 0 && now.pid)
		rc = err_set(e, ERR_WORLD, "a recorder is already running on %s (pid %d)",
			v->o.db, (int)now.pid);
	if (rc || (kind = identify_store(v->o.db, e)) < 0 ||
		check_writable(v->o.db, kind == STORE_OURS, e) ||
		cmd_live_open(&s, &live, NULL, e))
		return e->code;
	rc = cmd_live_refresh(&s, e);
	size_t n = live_present(s.live)->n_cards;
	cmd_live_close(&s);
	if (rc)
		return rc;
	str_escape(db, sizeof(db), v->o.db, strlen(v->o.db));
	str_addf(&out, "would record %zu card%s into %s (%s) every %s, in the %s\n", n,
		n == 1 ? "" : "s", db, kind == STORE_OURS ? "exists" : "new",
		duration_text(d->now.values.interval_ms).text,
		v->foreground ? "foreground" : "background");
	str_add(&out, "dry run: nothing was started or written\n");
	return cmd_print(d->self, &out);
}

/* Sets the defaults of options that were not given. Paths are kept in `texts`: on the stack
 * they would be in memory for as long as the recorder runs. */
static int set_defaults(struct values *v, struct arena *texts, struct err *e)
{
	char path[PATH_MAX];
	bool named_clock = !strcmp(v->clock, "real") || !strcmp(v->clock, "virtual");
	const char *none = NULL;
	v->conf.file = configure_named(v->conf.file);
	v->o.source.nvml_path = cmd_nvml_path(v->o.source.nvml_path);
	bool by_path = v->o.source.nvml_path && strchr(v->o.source.nvml_path, '/');
	const char **all[] = { &v->o.db, &v->log_file, &v->pid_file, &v->o.source.scenario,
		named_clock ? &none : &v->clock, &v->o.source.root, &v->conf.file,
		by_path ? &v->o.source.nvml_path : &none };
	int rc = 0;
	if (v->o.db && !*v->o.db)
		return err_set(e, ERR_USAGE, "--db needs a path");
	if (!v->o.db) {
		rc = choose_db_own(path, PATH_MAX, e);
		v->o.db = arena_text(texts, path);
		v->default_db = true;
		if (geteuid() == 0 && !v->pid_file && strcmp(v->o.db, SYSTEM_DB) == 0)
			v->pid_file = "/run/gua/gua.pid";
	}
	/* A background process runs in the root directory. */
	for (size_t i = 0; !rc && i < sizeof(all) / sizeof(all[0]); i++) {
		rc = file_make_absolute(all[i], path, e);
		if (*all[i] == path)
			*all[i] = arena_text(texts, path);
	}
	if (!rc && texts->failed)
		rc = err_memory(e);
	if (rc || source_make_absolute(&v->o.source.name, v->source_name, e) ||
		source_check(v->o.source.name, v->o.source.scenario, false, e))
		return e->code;
	if (v->o.once && v->o.max_ticks)
		return err_set(e, ERR_USAGE, "--once and --ticks do not go together");
	/* The scenario is checked before anything is written. */
	struct scenario *scenario = NULL;
	if (v->o.source.scenario)
		rc = scenario_read(&scenario, v->o.source.scenario, e);
	scenario_free(scenario);
	return rc;
}

/* Names the log, and runs in the foreground or in the background. Under another name, that of
 * the Python tool, the recorder always stays in the foreground. */
static int run(struct daemon *d, struct err *e)
{
	struct values *v = &d->v;
	char note[640] = "", path[PATH_MAX + 8];
	if (v->default_db)
		choose_db_warn(v->o.db, note, sizeof(note));
	if (*note)
		log_notice("%s", note);
	/* If a service manager or a container waits for this process itself, it must not go to
	 * the background: a background process would be ended together with it. */
	const char *pid = secure_getenv("SYSTEMD_EXEC_PID");
	bool waited_for = getpid() == 1 || (pid && strtol(pid, NULL, 10) == getpid());
	v->foreground |= d->self->called || waited_for;
	if (v->dry_run)
		return rehearse(d, e);
	/* Before anything is created beside the store. */
	snprintf(path, sizeof(path), "%s.lock", v->o.db);
	leftover_note(&d->lock, path);
	snprintf(path, sizeof(path), "%s.log", v->o.db);
	v->log_file = v->log_file ? v->log_file : path;
	if (!v->foreground && !v->o.once && !v->o.max_ticks)
		return run_background(d, e);
	bool journal = getenv("JOURNAL_STREAM") != NULL;
	log_setup(LOG_LEVEL_NOTICE, journal ? LOG_STYLE_JOURNAL : LOG_STYLE_PLAIN);
	d->notify_socket = secure_getenv("NOTIFY_SOCKET");
	unsetenv("NOTIFY_SOCKET");
	return record(d, e);
}

static int run_daemon(const struct call *call, struct err *e)
{
	struct arena texts = { 0 };
	struct daemon d = { .self = call->self,
		.v = *(const struct values *)call->values,
		.now = configure_like(call->conf),
		.wait_fd = -1 };
	d.now.recorder = true;
	int rc = set_defaults(&d.v, &texts, e);
	d.now.root = d.v.o.source.root;
	rc = rc || read_first(&d, e) ? e->code : run(&d, e);
	configure_finish(&d.now);
	configure_finish(&d.next);
	arena_finish(&texts);
	return rc;
}

const struct command cmd_daemon = {
	.name = "daemon",
	.summary = "record what the cards do, in the background",
	.usage = "[--db PATH] [--interval D] [OPTIONS]",
	.details = daemon_details,
	.options = daemon_options,
	.values_size = sizeof(struct values),
	.run = run_daemon,
};

const struct command cmd_start = {
	.name = "start",
	.summary = "start the recorder in the background (the same as daemon)",
	.usage = "[--db PATH] [--interval D] [OPTIONS]",
	.details = daemon_details,
	.options = daemon_options,
	.values_size = sizeof(struct values),
	.run = run_daemon,
};

/* gpu-usage-audit daemon: gua daemon, as units and scripts that were written for the Python
 * tool of that name expect it. It stays in the foreground and prints a line for each tick. */
const struct command cmd_audit_daemon = {
	.name = "daemon",
	.called = "gpu-usage-audit daemon",
	.summary = "record what the cards do, in the foreground, with a line for each tick",
	.usage = "[--db PATH] [--interval D] [OPTIONS]",
	.details = "Under this name the recorder stays in the foreground, as the Python tool\n"
		   "gpu-usage-audit does; 'gua daemon' goes to the background.",
	.options = daemon_options,
	.values_size = sizeof(struct values),
	.run = run_daemon,
};
