/* Ends one session: confirms to the last moment that it is idle, and takes the steps. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "policy/endings_private.h"
#include "policy/signs.h"
#include "proc/proc.h"

enum { CGROUP_CAP = 4096 };

/* How long a process may take to end after SIGKILL; one that is stuck in the driver may
 * never end. */
#define KILL_MS 10000
/* How often /proc is checked for processes that should have ended. */
#define POLL_US (1 * INT64_C(1000000))
/* Power that exceeds the idle power by less than this does not show work. */
#define SLACK_W 5.0

/* The highest power of a card that still counts as idle: its idle power with the configured
 * margin, plus `idle_below` percent of the way from there to its power limit. */
static double idle_most_w(const struct endings *es, const struct ending *a, size_t card)
{
	double floor_w = a->cards[card].idle_power_w, limit_w = a->cards[card].power_limit_w;
	double use_w =
		limit_w > floor_w ? (limit_w - floor_w) * (double)a->idle_below / 100 : 0;
	return floor_w * (1 + endings_config(es)->power_pct / 100) + use_w + SLACK_W;
}

/* Compares the mean power of the looks with idle_most_w(); true: the card works. */
static bool card_works(const struct endings *es, struct ending *a, char *why, size_t cap)
{
	for (size_t i = 0; i < a->n_cards; i++) {
		double floor_w = a->cards[i].idle_power_w;
		if (!a->cards[i].n_power || !isfinite(floor_w))
			continue;
		double mean_w = a->cards[i].power_sum_w / (double)a->cards[i].n_power;
		double most_w = idle_most_w(es, a, i);
		if (mean_w > most_w) {
			snprintf(why, cap,
				"its card takes %.0f W; idle it takes %.0f W, and with less "
				"use than %lld %% at most %.0f W",
				mean_w, floor_w, (long long)a->idle_below, most_w);
			return true;
		}
	}
	return false;
}

static struct signs_session session_of(const struct ending *a)
{
	return (struct signs_session){ a->sorted, a->n_processes, a->job, a->container };
}

/* Adds up CPU time from look to look, so that a process that ends in between counts at least
 * until the look before. Once NAN, the sum stays NAN. */
static void note_cpu(const struct endings *es, struct ending *a)
{
	const struct signs_session session = session_of(a);
	double now_s = signs_cpu_s(es->proc, &session);
	if (a->looks > 0 && !(now_s < a->cpu_s))
		a->cpu_used_s += now_s - a->cpu_s;
	a->cpu_s = now_s;
}

/* CPU use since the first look, percent of one core; NAN: unknown. */
static double cpu_pct(const struct endings *es, const struct ending *a)
{
	double seconds = (double)(endings_now_us(es) - a->first_look_us) / 1e6;
	return seconds > 0 ? 100 * a->cpu_used_s / seconds : (double)NAN;
}

/* Checks CPU use, power and terminals. ENDING_HOWS: there is no sign of life. */
static enum ending_how lives(const struct endings *es, struct ending *a, char *why, size_t cap)
{
	double cpu = cpu_pct(es, a);
	int64_t input_ms = signs_input_ms(es->proc, a->processes, a->n_processes);
	char seconds[32];
	if (isnan(cpu)) {
		snprintf(why, cap, "how much its processes use the CPU cannot be read");
		return ENDING_SPARED;
	}
	if (cpu > endings_config(es)->cpu_pct) {
		snprintf(why, cap,
			"it computes on the CPU, with %.0f %% of a processor core, and is "
			"spared "
			"while it does; if it holds the card idle after that, notices begin "
			"again",
			cpu);
		return ENDING_COMPUTES;
	}
	if (a->notice_ms >= 0 && input_ms > a->notice_ms) {
		snprintf(why, cap, "its terminal was used after the last notice");
		return ENDING_SPARED;
	}
	if (card_works(es, a, why, cap))
		return ENDING_SPARED;
	duration_text(seconds, sizeof(seconds), (endings_now_us(es) - a->first_look_us) / 1000);
	snprintf(a->evidence, sizeof(a->evidence),
		"idle in %zu looks at the driver over %s, %.1f %% of a core", a->looks, seconds,
		cpu);
	return ENDING_HOWS;
}

static void add_power(struct ending *a, const struct signs_look *look)
{
	for (size_t i = 0; i < a->n_cards; i++) {
		double watt = signs_power_w(look, a->cards[i].uuid, a->sorted, a->n_processes,
			&a->cards[i].power_limit_w);
		if (!isfinite(watt))
			continue;
		a->cards[i].power_sum_w += watt;
		a->cards[i].n_power++;
	}
}

/* Notes another session in the same job or container, which its manager would end as well. */
static void note_companion(struct ending *a, const struct signs_look *look)
{
	const struct signs_session session = session_of(a);
	const struct present_process *p = signs_companion(look, &session);
	a->companion[0] = '\0';
	if (p)
		snprintf(a->companion, sizeof(a->companion), "process %u of %s",
			(unsigned)p->id.pid, p->id.user);
}

/* A step failed: the session is spared, or left as it is. */
static void fail(struct ending *a, const char *why)
{
	if (a->signalled)
		ending_finish(a, ENDING_FAILED, "%s", why);
	else
		ending_spare(a, why);
}

/* Asks gua-end about one process. False: the ending is over. */
static bool ask(struct endings *es, struct ending *a, size_t i, enum end_ask what)
{
	const struct end_process *p = &a->processes[i];
	struct end_reply reply;
	struct err e = { 0 };
	char why[ENDING_TEXT_CAP];
	if (end_link_ask(es->link, what, p, &reply, &e) != 0) {
		/* Without a reply, it is not known whether the signal was sent. */
		a->signalled |= what != END_ASK_CHECK;
		fail(a, e.text);
		return false;
	}
	if (reply.answer == END_GONE || reply.answer == END_ANOTHER)
		a->gone[i] = true;
	if (reply.answer == END_DONE || a->gone[i])
		return true;
	snprintf(why, sizeof(why), "process %u: %s", (unsigned)p->pid, reply.text);
	if (reply.answer == END_EXEMPT || reply.answer == END_NOT_HIS)
		ending_spare(a, why);
	else
		fail(a, why);
	return false;
}

/* Before anything is done to a session, gua-end checks each of its processes: one exempt
 * process spares them all. */
static bool check_all(struct endings *es, struct ending *a)
{
	for (size_t i = 0; i < a->n_processes; i++)
		if (!a->gone[i] && !ask(es, a, i, END_ASK_CHECK))
			return false;
	return true;
}

static bool all_gone(const struct ending *a)
{
	for (size_t i = 0; i < a->n_processes; i++)
		if (!a->gone[i])
			return false;
	return true;
}

/* Nothing may be done that is not recorded first. */
static bool record(struct endings *es, struct ending *a, const char *what)
{
	struct err e = { 0 };
	char why[ENDING_TEXT_CAP];
	if (ending_record(es, a, what, &e) == 0)
		return true;
	snprintf(why, sizeof(why), "%.80s was not done, because it cannot be recorded: %.120s",
		what, e.text);
	fail(a, why);
	return false;
}

/* A stop order takes effect at once: it is checked before each signal. False: the ending is
 * over. */
static bool is_allowed(struct endings *es, struct ending *a, bool brief)
{
	struct err e = { 0 };
	if (ending_allowed(es, a, brief, &e) == 0)
		return true;
	ending_spare(a, e.text);
	return false;
}

static void run_manager(
	struct endings *es, struct ending *a, const struct manager_command *command)
{
	struct err e = { 0 };
	if (!record(es, a, command->shown))
		return;
	a->signalled = true;
	a->stage = ENDING_MANAGER;
	if (end_manager_start(
		    &a->manager, command, endings_config(es)->manager_timeout_ms, &e) != 0)
		ending_finish(a, ENDING_FAILED, "%s", e.text);
}

/* The next batch is the processes [a->next, end) that have not ended. */
static size_t batch_end(const struct ending *a)
{
	size_t end = a->next, n = 0;
	while (end < a->n_processes && n < ENDING_BATCH)
		n += !a->gone[end++];
	return end;
}

static bool record_batch(struct endings *es, struct ending *a, size_t end)
{
	const char *name = a->signal == END_ASK_KILL ? "SIGKILL" : "SIGTERM";
	char what[96];
	if (a->next == 0 && end == a->n_processes)
		return record(es, a, name);
	snprintf(what, sizeof(what), "%s, processes %zu to %zu of %zu", name, a->next + 1, end,
		a->n_processes);
	return record(es, a, what);
}

/* Signals the next batch. Each further batch needs a fresh look first. */
static void signal_batch(struct endings *es, struct ending *a)
{
	bool kill = a->signal == END_ASK_KILL;
	size_t end = batch_end(a);
	if (!record_batch(es, a, end))
		return;
	for (bool first = true; a->next < end; a->next++) {
		if (a->gone[a->next])
			continue;
		if (!first && !is_allowed(es, a, true))
			return;
		first = false;
		if (!ask(es, a, a->next, a->signal))
			return;
		a->signalled = true;
	}
	if (end < a->n_processes)
		return;
	a->next = 0;
	a->stage = kill ? ENDING_KILLED : ENDING_GRACE;
	a->until_us =
		endings_now_us(es) + (kill ? KILL_MS : endings_config(es)->grace_ms) * 1000;
}

/* Whether a user chose the names that the session's manager would be given. */
static bool is_users_own(const struct endings *es, const struct ending *a)
{
	for (size_t i = 0; i < a->n_processes; i++) {
		char cgroup[CGROUP_CAP];
		ssize_t n = a->gone[i] ? 0
				       : proc_read_cgroup(es->proc, a->processes[i].pid, cgroup,
						 sizeof(cgroup));
		if (n < 0 || end_manager_is_users(cgroup, (size_t)n))
			return true;
	}
	return false;
}

/* The first step: runs the manager's command, or sends SIGTERM. */
static void begin(struct endings *es, struct ending *a)
{
	struct manager_command command;
	struct err e = { 0 };
	char why[ENDING_TEXT_CAP];
	int rc = is_users_own(es, a) ? 1
				     : end_manager_find(&command, endings_config(es), a->job,
					       a->container, &e);
	if (rc == 0 && *a->companion) {
		snprintf(why, sizeof(why), "%s is in the same %s and would be ended as well",
			a->companion, *a->job ? "job" : "container");
		ending_spare(a, why);
	} else if (rc == 0) {
		run_manager(es, a, &command);
	} else if (rc == 1) {
		signal_batch(es, a);
	} else {
		ending_spare(a, e.text);
	}
}

/* All looks saw the session idle: goes on to the next signal. */
static void act(struct endings *es, struct ending *a)
{
	if (!a->signalled && !check_all(es, a))
		return;
	if (!a->signalled && all_gone(a))
		ending_spare(a, "its processes have ended by themselves");
	else if (is_allowed(es, a, false) && a->signalled)
		signal_batch(es, a);
	else if (a->stage != ENDING_OVER)
		begin(es, a);
}

/* Checks which processes have ended: gua-end reports only those that it holds. */
static void poll_gone(struct endings *es, struct ending *a)
{
	struct proc_stat stat;
	for (size_t i = 0; i < a->n_processes; i++) {
		const struct end_process *p = &a->processes[i];
		if (a->gone[i])
			continue;
		errno = 0;
		int rc = proc_read_stat(es->proc, p->pid, &stat);
		a->gone[i] = rc != 0 ? errno == ENOENT || errno == ESRCH
				     : stat.start_ticks != p->start_ticks ||
					       stat.state == 'Z' || stat.state == 'X';
	}
	a->polled_us = endings_now_us(es);
}

/* Begins the looks before SIGTERM or before SIGKILL. */
static void begin_looks(struct ending *a, int64_t now_us)
{
	a->looks = 1;
	a->first_look_us = now_us;
	a->cpu_used_s = 0;
}

void ending_confirm(struct endings *es, struct ending *a, const struct signs_look *look)
{
	struct signs_result r;
	char why[ENDING_TEXT_CAP];
	int64_t now_us = endings_now_us(es);
	signs_judge(&r, look, a->sorted, a->n_processes);
	if (r.verdict == SIGNS_RELEASED && a->signalled)
		poll_gone(es, a);
	if (a->signalled && all_gone(a))
		return;
	if (r.verdict != SIGNS_IDLE) {
		ending_spare(a, r.why);
		return;
	}
	if (!a->signalled)
		a->seen_bytes = r.held_bytes;
	add_power(a, look);
	note_cpu(es, a);
	note_companion(a, look);
	if (a->looks == 0) {
		begin_looks(a, now_us);
		return;
	}
	a->looks++;
	if (now_us - a->first_look_us < endings_config(es)->confirm_ms * 1000 ||
		now_us < a->until_us)
		return;
	/* From the second batch on, CPU use is not a sign of life: processes that got the
	 * signal use the CPU while they end. */
	enum ending_how how = a->next == 0 ? lives(es, a, why, sizeof(why)) : ENDING_HOWS;
	if (how == ENDING_COMPUTES && !a->signalled)
		ending_finish(a, how, "%s", why);
	else if (how != ENDING_HOWS)
		ending_spare(a, why);
	else
		act(es, a);
}

static void attend_manager(const struct endings *es, struct ending *a)
{
	struct err e = { 0 };
	if (!end_manager_is_over(a->manager, &e))
		return;
	helper_free(a->manager, 0);
	a->manager = NULL;
	if (e.code) {
		ending_finish(a, ENDING_FAILED, "%s", e.text);
		return;
	}
	/* The manager has its own grace period; the processes end now or soon. */
	a->stage = ENDING_GRACE;
	a->kill = false;
	a->until_us = endings_now_us(es) + endings_config(es)->grace_ms * 1000;
}

/* Times the looks so that SIGKILL comes when the grace period is over, and not before the
 * session was seen idle for as long as before SIGTERM. */
static void look_again(struct ending *a)
{
	a->stage = ENDING_CONFIRM;
	a->signal = END_ASK_KILL;
	a->looks = 0;
	for (size_t i = 0; i < a->n_cards; i++) {
		a->cards[i].power_sum_w = 0;
		a->cards[i].n_power = 0;
	}
}

void ending_attend(struct endings *es, struct ending *a)
{
	int64_t now_us = endings_now_us(es);
	if (a->stage == ENDING_MANAGER) {
		attend_manager(es, a);
		return;
	}
	bool waits = a->stage == ENDING_GRACE || a->stage == ENDING_KILLED;
	if (!waits && !(a->stage == ENDING_CONFIRM && a->signalled))
		return;
	bool late = waits && now_us >= a->until_us;
	if (late || now_us - a->polled_us >= POLL_US)
		poll_gone(es, a);
	if (all_gone(a)) {
		a->stage = ENDING_VERIFY;
		es->next_look_us = 0;
	} else if (a->stage == ENDING_GRACE && a->kill) {
		if (now_us >= a->until_us - endings_config(es)->confirm_ms * 1000)
			look_again(a);
	} else if (late) {
		ending_finish(a, ENDING_FAILED, "its processes have not ended after %s",
			a->stage == ENDING_KILLED ? "SIGKILL" : "SIGTERM");
	}
}
