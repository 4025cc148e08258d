/* The loop of gua enforce run: a pass every minute, and deliveries between passes. */
#include "cmd/enforce_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "cmd/enforce_end.h"
#include "cmd/enforce_send.h"
#include "cmd/enforce_users.h"
#include "policy/tell.h"
#include "policy/trust.h"

enum { LONGEST_WAIT_MS = 60000, STOPPING_MS = 5000, HOLD_MS = 10 };

struct service {
	struct enforce *x;
	struct enforcer enforcer;
	struct courier *courier;
	struct post_program post;
	struct enforce_end *end;
	struct enforce_users *users; /* NULL: users cannot ask */
	struct clock clock;
	int signal_fd, lock_fd;
	struct settings
		*old; /* earlier configurations: what is under way may name their texts */
	size_t n_old;
	char hash[TRUST_HASH_CAP], post_path[PATH_MAX];
	bool stop, reload;
	bool failing; /* the last pass failed */
};

/* What a pass takes for the present. */
static int64_t judged_ms(const struct service *s)
{
	return s->x->o->now ? s->x->now_ms : clock_wall_ms(&s->clock);
}

/* What sends notices, while policy.db is open. */
static struct sender sender_of(struct service *s)
{
	return (struct sender){ .config = &s->x->conf.values.notices,
		.courier = s->courier,
		.file = s->enforcer.file,
		.clock = &s->clock,
		.fixed_ms = s->x->o->now ? s->x->now_ms : -1 };
}

static int queue(
	void *context, struct policy_file *f, const struct enforcer_step *step, struct err *e)
{
	(void)context;
	return tell_step(f, step, e);
}

static int alarm_root(void *context, struct policy_file *f, const char *text, struct err *e)
{
	struct service *s = context;
	log_warning("%s", text);
	return tell_alarm(f, &s->x->conf.values.notices, text, clock_wall_ms(&s->clock), e);
}

static void after(void *context, const struct enforcer_step *step)
{
	enforce_end_after(((struct service *)context)->end, step);
}

/* Whether sessions may be ended now, and the file that steps are written to. */
static int prepare(struct service *s, int64_t now_ms, struct err *e)
{
	struct enforce *x = s->x;
	int64_t until_ms = -1;
	char by[64];
	int rc = 0;
	if (!s->enforcer.file)
		rc = policy_file_open(&s->enforcer.file, x->policy_db, true, e);
	if (rc == 0)
		rc = policy_file_armed(s->enforcer.file, now_ms, &until_ms, by, e);
	if (rc == 0)
		rc = enforce_end_left(s->end, now_ms, e);
	/* Nobody ends a session here who cannot do it safely, or whom its user cannot stop. */
	s->enforcer.policy.may_end = rc == 0 && s->enforcer.hooks.after && s->users &&
				     until_ms > now_ms &&
				     trust_settings(&x->conf.settings, NULL) == 0;
	return rc;
}

/* One pass. What fails is said once, and tried again in the next. */
static int pass(struct service *s, struct err *e)
{
	int64_t now_ms = judged_ms(s);
	int rc = prepare(s, now_ms, e);
	if (rc == 0)
		rc = enforcer_pass(&s->enforcer, now_ms, e);
	enforce_end_passed(s->end);
	if (rc && !s->failing)
		log_warning("%s; nothing is done until that is over", e->text);
	if (!rc && s->failing)
		log_notice("policy is judged again");
	if (rc) {
		policy_file_close(s->enforcer.file);
		s->enforcer.file = NULL;
	}
	s->failing = rc != 0;
	return rc;
}

static int64_t until_next(const struct service *s, int64_t next_us)
{
	int64_t wait_ms = (next_us - clock_now(&s->clock).boot_us) / 1000;
	int64_t courier_ms = courier_wait_ms(s->courier);
	if (courier_ms >= 0 && courier_ms < wait_ms)
		wait_ms = courier_ms;
	int64_t end_ms = enforce_end_wait_ms(s->end);
	if (end_ms >= 0 && end_ms < wait_ms)
		wait_ms = end_ms;
	int64_t users_ms = enforce_users_wait_ms(s->users);
	if (users_ms >= 0 && users_ms < wait_ms)
		wait_ms = users_ms;
	return wait_ms < 0 ? 0 : wait_ms > LONGEST_WAIT_MS ? LONGEST_WAIT_MS : wait_ms;
}

static void wait_for(struct service *s, int64_t next_us)
{
	struct pollfd fds[1 + COURIER_MOST + ENFORCE_END_FDS + ENFORCE_USERS_FDS] = {
		{ .fd = s->signal_fd, .events = POLLIN }
	};
	size_t n = 1 + courier_fds(s->courier, fds + 1);
	n += enforce_end_fds(s->end, fds + n);
	n += enforce_users_fds(s->users, fds + n);
	int64_t until_us = clock_now(&s->clock).boot_us + until_next(s, next_us) * 1000;
	/* Virtual time stands still while other processes work for this one. */
	bool holds = clock_is_virtual(&s->clock) &&
		     (courier_wait_ms(s->courier) >= 0 || enforce_end_is_asking(s->end));
	if (holds)
		poll(fds, n, HOLD_MS);
	else
		clock_wait(&s->clock, until_us, fds, (unsigned)n);
	struct signalfd_siginfo info;
	if (!(fds[0].revents & POLLIN))
		return;
	bool is_whole = read(s->signal_fd, &info, sizeof(info)) == sizeof(info);
	s->reload = is_whole && info.ssi_signo == SIGHUP;
	s->stop = !s->reload;
}

/* What is under way is waited for a moment, so that nobody is told twice. */
static void drain(struct service *s)
{
	struct pollfd fds[COURIER_MOST];
	int64_t until_us = clock_monotonic_us() + STOPPING_MS * 1000;
	struct sender sender = sender_of(s);
	while (sender.file && courier_wait_ms(s->courier) >= 0) {
		int64_t left_ms = (until_us - clock_monotonic_us()) / 1000;
		if (left_ms <= 0)
			return;
		poll(fds, courier_fds(s->courier, fds), (int)left_ms);
		sender_take_results(&sender);
	}
}

/* What follows from a configuration that was read. */
static void follow(struct service *s)
{
	struct enforce *x = s->x;
	struct err e = { 0 };
	trust_hash(s->hash, &x->conf.settings);
	x->policy.enforce = strcmp(x->conf.values.policy.mode, "enforce") == 0;
	s->enforcer.policy = x->policy;
	if (x->policy.enforce && trust_settings(&x->conf.settings, &e) != 0)
		log_notice("no session is ended with this configuration: %s", e.text);
	for (size_t i = 0; i < policy_rules_count(&x->policy); i++) {
		char why[WHY_CAP];
		if (policy_rule_is_hasty(policy_rule(&x->policy, i), why))
			log_warning("%s", why);
	}
}

/* Opens the socket on which users ask; its place may be another one by now. */
static void open_users(struct service *s)
{
	struct err e = { 0 };
	enforce_users_close(s->users);
	s->users = NULL;
	if (enforce_users_open(&s->users, s->x, &s->enforcer, &e) != 0)
		log_warning("%s; no session is ended, because nobody could keep one", e.text);
}

/* SIGHUP: the configuration is read again; one with a fault is left alone. What is under way is
 * asked about again before it signals anybody. */
static void reload(struct service *s)
{
	struct enforce *x = s->x;
	struct configuration before = x->conf;
	struct err e = { 0 };
	s->reload = false;
	int rc = array_one_more(&s->old, s->n_old) ? 0 : err_memory(&e);
	if (rc == 0)
		rc = configure_again(x->self, &x->conf, &x->o->conf, x->o);
	if (rc == 0 && channel_check(&x->conf.values.notices, &e) != 0) {
		log_warning("%s", e.text);
		configuration_finish(&x->conf);
		x->conf = before;
		rc = ERR_USAGE;
	}
	if (rc) {
		log_warning("the configuration that was read before stays in force; see gua "
			    "config --check");
		return;
	}
	s->old[s->n_old++] = before.settings;
	follow(s);
	open_users(s);
	log_notice("the configuration was read again");
}

static void loop(struct service *s)
{
	int64_t next_us = clock_now(&s->clock).boot_us;
	struct err e = { 0 };
	while (!s->stop) {
		if (clock_now(&s->clock).boot_us >= next_us) {
			pass(s, &e);
			int64_t now_us = clock_now(&s->clock).boot_us;
			int64_t interval_us = s->x->conf.values.policy.interval_ms * 1000;
			next_us += interval_us;
			if (next_us < now_us) /* the host slept */
				next_us = now_us + interval_us;
		}
		/* Who asks to keep a session comes before what is done to it. */
		enforce_users_step(s->users, judged_ms(s));
		enforce_end_step(s->end);
		struct sender sender = sender_of(s);
		if (sender.file) {
			sender_take_results(&sender);
			sender_send(&sender);
		}
		wait_for(s, next_us);
		if (s->reload) {
			reload(s);
			next_us = clock_now(&s->clock).boot_us;
		}
	}
	drain(s);
}

/* One pass, and the deliveries that follow from it. */
static int once(struct service *s, struct err *e)
{
	int rc = pass(s, e);
	if (rc)
		return rc;
	const struct policy_pass *last = &s->enforcer.last;
	if (*last->note)
		log_warning("%s", last->note);
	else
		log_notice("sessions that hold a card: %lld, idle: %lld; gua enforce log has "
			   "the steps",
			(long long)last->sessions, (long long)last->idle);
	struct sender sender = sender_of(s);
	sender_send(&sender);
	while ((courier_wait_ms(s->courier) >= 0 || enforce_end_is_busy(s->end)) && !s->stop) {
		wait_for(s, INT64_MAX);
		enforce_users_step(s->users, judged_ms(s));
		enforce_end_step(s->end);
		sender_take_results(&sender);
		sender_send(&sender);
	}
	return 0;
}

/* Two at once would tell everybody twice. */
static int take_lock(struct service *s, struct err *e)
{
	char path[PATH_MAX + 8];
	snprintf(path, sizeof(path), "%s.lock", s->x->policy_db);
	s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (s->lock_fd < 0)
		return err_set(e, ERR_WORLD, "cannot make %s: %s", path, strerror(errno));
	if (flock(s->lock_fd, LOCK_EX | LOCK_NB) != 0)
		return err_set(e, ERR_WORLD, "another 'gua enforce run' works with %s",
			s->x->policy_db);
	return 0;
}

static int start(struct service *s, struct err *e)
{
	struct enforce *x = s->x;
	sigset_t signals;
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	/* In a terminal that is closed, it means the end. */
	if (!isatty(STDIN_FILENO))
		sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	s->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
	if (s->signal_fd < 0)
		return err_set(e, ERR_WORLD, "cannot wait for signals: %s", strerror(errno));
	int rc = clock_open(&s->clock, x->o->clock, x->now_ms, e);
	if (rc)
		return rc;
	clock_follow(&s->clock);
	s->post = enforce_post(s->post_path);
	s->enforcer = (struct enforcer){ .db = x->db,
		.root = x->o->root ? x->o->root : "",
		.config_hash = s->hash,
		.clock = &s->clock };
	follow(s);
	rc = channel_check(&x->conf.values.notices, e);
	if (rc == 0)
		rc = take_lock(s, e);
	if (rc == 0)
		rc = courier_new(&s->courier, &x->conf.values.notices, &s->post, e);
	if (rc == 0)
		rc = enforce_end_open(&s->end, x, &s->enforcer, e);
	s->enforcer.hooks = (struct enforcer_hooks){
		.context = s, .queue = queue, .alarm = alarm_root, .after = after
	};
	if (rc == 0)
		open_users(s);
	return rc;
}

void enforce_log_setup(void)
{
	log_setup(LOG_LEVEL_NOTICE,
		getenv("JOURNAL_STREAM") ? LOG_STYLE_JOURNAL : LOG_STYLE_PLAIN);
}

int enforce_run(struct enforce *x)
{
	struct err e = { 0 };
	struct service s = { .x = x, .signal_fd = -1, .lock_fd = -1 };
	enforce_log_setup();
	int rc = start(&s, &e);
	if (rc == 0 && x->o->once)
		rc = once(&s, &e);
	else if (rc == 0)
		loop(&s);
	if (s.courier)
		courier_free(s.courier);
	enforce_end_close(s.end);
	enforce_users_close(s.users);
	policy_file_close(s.enforcer.file);
	enforcer_finish(&s.enforcer);
	clock_finish(&s.clock);
	if (s.lock_fd >= 0)
		close(s.lock_fd);
	if (s.signal_fd >= 0)
		close(s.signal_fd);
	for (size_t i = 0; i < s.n_old; i++)
		settings_finish(&s.old[i]);
	free(s.old);
	return rc ? cmd_fail(x->self, &e) : 0;
}
