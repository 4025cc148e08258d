/* The loop of gua enforce run: a pass every minute, and deliveries between passes. */
#include "policy/service.h"

#include <signal.h>
#include <sys/file.h>
#include <sys/signalfd.h>

#include "base/notify.h"
#include "policy/endings.h"
#include "policy/tell.h"
#include "policy/users.h"
#include "proc/proc.h"

enum { LONGEST_WAIT_MS = 60000, STOPPING_MS = 5000, HOLD_MS = 10 };

struct service {
	struct service_options o;
	struct enforcer enforcer;
	struct courier *courier;
	struct sender sender;
	struct endings *endings;
	struct users *users; /* NULL: users cannot ask */
	struct clock clock, look_clock;
	int64_t next_us; /* boot time of the next pass */
	int signal_fd, lock_fd;
	char hash[RULES_HASH_CAP];
	bool stop, reload;
	bool failing; /* the last pass failed */
};

static int64_t judged_ms(const struct service *s)
{
	return s->o.fixed_ms >= 0 ? s->o.fixed_ms : clock_wall_ms(&s->clock);
}

/* One pass. A failure is logged once, and the next pass tries again. */
static int pass(struct service *s, struct err *e)
{
	int rc = enforcer_pass(&s->enforcer, judged_ms(s), e);
	if (rc && !s->failing)
		log_warning("%s; no session is judged until this is fixed", e->text);
	if (!rc && s->failing)
		log_notice("sessions are judged again");
	if (rc) {
		policy_file_close(s->enforcer.file);
		s->enforcer.file = NULL;
	}
	s->failing = rc != 0;
	return rc;
}

/* How long until something is due: the pass at `next_us`, or other work. */
static int64_t until_next(const struct service *s, int64_t next_us)
{
	const int64_t others[] = { courier_wait_ms(s->courier), endings_wait_ms(s->endings),
		users_wait_ms(s->users) };
	int64_t wait_ms = (next_us - clock_now(&s->clock).boot_us) / 1000;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (others[i] >= 0 && others[i] < wait_ms)
			wait_ms = others[i];
	return wait_ms < 0 ? 0 : wait_ms > LONGEST_WAIT_MS ? LONGEST_WAIT_MS : wait_ms;
}

static void wait_for(struct service *s, int64_t next_us)
{
	struct pollfd fds[1 + COURIER_MOST + ENDINGS_FDS + USERS_FDS] = { { .fd = s->signal_fd,
		.events = POLLIN } };
	size_t n = 1 + courier_fds(s->courier, fds + 1);
	n += endings_fds(s->endings, fds + n);
	n += users_fds(s->users, fds + n);
	int64_t until_us = clock_now(&s->clock).boot_us + until_next(s, next_us) * 1000;
	/* Virtual time stands still while other processes work for this one. */
	bool holds = clock_is_virtual(&s->clock) &&
		     (courier_wait_ms(s->courier) >= 0 || endings_is_asking(s->endings));
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

/* Waits a moment for running deliveries, so that nobody is notified twice. */
static void drain(struct service *s)
{
	struct pollfd fds[COURIER_MOST];
	int64_t until_us = clock_monotonic_us() + STOPPING_MS * 1000;
	while (s->enforcer.file && courier_wait_ms(s->courier) >= 0) {
		int64_t left_ms = (until_us - clock_monotonic_us()) / 1000;
		if (left_ms <= 0)
			return;
		poll(fds, courier_fds(s->courier, fds), (int)left_ms);
		tell_take_results(&s->sender);
	}
}

void service_configure(
	struct service *s, const struct policy *policy, const struct settings *settings)
{
	struct err e = { 0 };
	rules_hash(s->hash, settings);
	s->enforcer.policy = *policy;
	s->enforcer.settings = settings;
	if (policy->enforce && rules_check_trust(settings, &e) != 0)
		log_notice("no session is ended with this configuration: %s", e.text);
	for (size_t i = 0; i < rules_count(policy); i++) {
		char why[WHY_CAP];
		if (rules_is_hasty(rules_get(policy, i), why))
			log_warning("%s", why);
	}
	/* The configured path of the socket may have changed. */
	users_close(s->users);
	s->users = NULL;
	s->enforcer.users_can_ask = users_open(&s->users, &s->enforcer, &e) == 0;
	if (!s->users)
		log_warning("%s; no session is ended, because users cannot ask to keep one",
			e.text);
	s->next_us = clock_now(&s->clock).boot_us;
}

/* Does what is due between passes. Requests to keep a session come before anything is done
 * to it. */
static void attend(struct service *s)
{
	users_step(s->users, judged_ms(s));
	endings_step(s->endings);
	endings_store(s->endings);
	if (!s->enforcer.file)
		return;
	tell_take_results(&s->sender);
	tell_send(&s->sender);
}

static void pass_if_due(struct service *s)
{
	struct err e = { 0 };
	int64_t interval_us = s->enforcer.policy.config->policy.interval_ms * 1000;
	if (clock_now(&s->clock).boot_us < s->next_us)
		return;
	pass(s, &e);
	/* After the first pass policy.db is there, so that the service can be armed. */
	notify_send(s->o.notify_socket, "READY=1");
	s->o.notify_socket = NULL;
	int64_t now_us = clock_now(&s->clock).boot_us;
	s->next_us += interval_us;
	if (s->next_us < now_us) /* the host was suspended */
		s->next_us = now_us + interval_us;
}

/* One pass, and the deliveries that follow from it. */
static int run_once(struct service *s, struct err *e)
{
	if (pass(s, e))
		return e->code;
	const struct policy_pass *last = &s->enforcer.last;
	if (*last->note)
		log_warning("%s", last->note);
	else
		log_notice("sessions that hold a card: %lld, idle: %lld; gua enforce log has "
			   "the steps",
			(long long)last->sessions, (long long)last->idle);
	tell_send(&s->sender);
	while ((courier_wait_ms(s->courier) >= 0 || endings_wait_ms(s->endings) >= 0) &&
		!s->stop) {
		wait_for(s, INT64_MAX);
		attend(s);
	}
	return 0;
}

int service_run(struct service *s, struct err *e)
{
	if (s->o.once)
		return run_once(s, e);
	s->reload = false;
	while (!s->stop && !s->reload) {
		pass_if_due(s);
		attend(s);
		wait_for(s, s->next_us);
	}
	if (s->reload)
		return SERVICE_RELOAD;
	drain(s);
	return 0;
}

/* Two services at once would notify everybody twice. */
static int take_lock(struct service *s, struct err *e)
{
	char path[PATH_MAX + 8];
	snprintf(path, sizeof(path), "%s.lock", s->o.policy_db);
	s->lock_fd = file_open_or_make(path, O_CREAT | O_NOFOLLOW, 0640);
	if (s->lock_fd < 0)
		return err_set(e, ERR_WORLD, "cannot make %s: %s", path, strerror(errno));
	if (flock(s->lock_fd, LOCK_EX | LOCK_NB) != 0)
		return err_set(
			e, ERR_WORLD, "another 'gua enforce run' is using %s", s->o.policy_db);
	return 0;
}

static int start(struct service *s, const struct policy *policy,
	const struct settings *settings, struct err *e)
{
	const struct config_notices *notices = &policy->config->notices;
	const struct endings_options ending = { .enforcer = &s->enforcer,
		.program = s->o.end_program,
		.socket = s->o.end_socket,
		.nvml = s->o.nvml,
		.look_clock = &s->look_clock };
	sigset_t signals;
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	/* When the terminal is closed, SIGHUP means that the service ends. */
	if (!isatty(STDIN_FILENO))
		sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	s->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
	if (s->signal_fd < 0)
		return err_set(e, ERR_WORLD, "cannot wait for signals: %s", strerror(errno));
	if (clock_open(&s->clock, s->o.clock, s->o.fixed_ms, e) ||
		clock_open(&s->look_clock, s->o.clock, s->o.fixed_ms, e))
		return e->code;
	clock_follow(&s->clock);
	s->enforcer = (struct enforcer){ .policy = *policy,
		.db = s->o.db,
		.policy_db = s->o.policy_db,
		.proc = -1,
		.clock = &s->clock,
		.config_hash = s->hash };
	proc_open(&s->enforcer.proc, s->o.root, NULL); /* judged without it, if need be */
	if (channel_check(notices, e) || take_lock(s, e) ||
		courier_new(&s->courier, notices, &s->o.post, e) ||
		endings_new(&s->endings, &ending, e))
		return e->code;
	s->enforcer.endings = s->endings;
	s->sender = (struct sender){
		.enforcer = &s->enforcer, .courier = s->courier, .fixed_ms = s->o.fixed_ms
	};
	service_configure(s, policy, settings);
	return 0;
}

int service_open(struct service **out, const struct service_options *o,
	const struct policy *policy, const struct settings *settings, struct err *e)
{
	struct service *s = calloc(1, sizeof(*s));
	if (!s)
		return err_memory(e);
	s->o = *o;
	s->signal_fd = s->lock_fd = s->enforcer.proc = -1;
	int rc = start(s, policy, settings, e);
	if (rc)
		service_close(s);
	else
		*out = s;
	return rc;
}

void service_close(struct service *s)
{
	if (!s)
		return;
	if (s->courier)
		courier_free(s->courier);
	endings_free(s->endings);
	users_close(s->users);
	enforcer_finish(&s->enforcer);
	clock_finish(&s->clock);
	clock_finish(&s->look_clock);
	file_close(s->lock_fd);
	file_close(s->signal_fd);
	free(s);
}
