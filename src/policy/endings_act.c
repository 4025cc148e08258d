/* One session: whether it is idle to the last, and the steps that end it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/timetext.h"
#include "policy/endings_private.h"
#include "policy/signs.h"
#include "proc/proc.h"

enum { CGROUP_CAP = 4096 };

/* How long after SIGKILL a process may take; one in the driver may never end. */
#define KILL_MS 10000
/* Power below this does not show work, whatever the idle floor. */
#define SLACK_W 5.0

/* The mean power of the looks against the floor; true: the card works. */
static bool card_works(const struct endings *es, struct ending *a, char *why, size_t cap)
{
	for (size_t i = 0; i < a->plan.n_cards; i++) {
		double floor_w = a->plan.cards[i].idle_power_w;
		if (!a->n_power[i] || !isfinite(floor_w))
			continue;
		double mean_w = a->power_sum_w[i] / (double)a->n_power[i];
		double most_w = floor_w * (1 + es->o.config->power_pct / 100) + SLACK_W;
		if (mean_w > most_w) {
			snprintf(why, cap, "its card takes %.0f W; idle it takes %.0f W",
				mean_w, floor_w);
			return true;
		}
	}
	return false;
}

static struct signs_session session_of(const struct ending *a)
{
	return (struct signs_session){ a->plan.processes, a->plan.n_processes, a->plan.job,
		a->plan.container };
}

/* Adds up the CPU time from look to look, so that what ends in between counts at least until
 * the look before. NAN stays. */
static void note_cpu(const struct endings *es, struct ending *a)
{
	const struct signs_session session = session_of(a);
	double now_s = signs_cpu_s(es->proc, &session);
	if (a->looks > 0 && !(now_s < a->cpu_s))
		a->cpu_used_s += now_s - a->cpu_s;
	a->cpu_s = now_s;
}

/* CPU use since the first look, percent of one core; NAN: unknown. */
static double cpu_pct(const struct ending *a)
{
	double seconds = (double)(clock_monotonic_us() - a->first_look_us) / 1e6;
	return seconds > 0 ? 100 * a->cpu_used_s / seconds : (double)NAN;
}

/* The two other witnesses, and the terminals. True: there is a sign of life. */
static bool lives(const struct endings *es, struct ending *a, char *why, size_t cap)
{
	double cpu = cpu_pct(a);
	int64_t input_ms = signs_input_ms(es->proc, a->plan.processes, a->plan.n_processes);
	char seconds[32];
	if (!(cpu <= es->o.config->cpu_pct)) {
		snprintf(why, cap, "its processes use %.0f %% of a processor core", cpu);
		return true;
	}
	if (a->plan.notice_ms >= 0 && input_ms > a->plan.notice_ms) {
		snprintf(why, cap, "its terminal was used after the last notice");
		return true;
	}
	if (card_works(es, a, why, cap))
		return true;
	duration_text(
		seconds, sizeof(seconds), (clock_monotonic_us() - a->first_look_us) / 1000);
	snprintf(a->evidence, sizeof(a->evidence),
		"idle in %zu looks at the driver over %s, %.1f %% of a core", a->looks, seconds,
		cpu);
	return false;
}

static void add_power(struct ending *a, const struct fresh_look *look)
{
	for (size_t i = 0; i < a->plan.n_cards; i++) {
		double watt = fresh_power_w(
			look, a->plan.cards[i].uuid, a->plan.processes, a->plan.n_processes);
		if (!isfinite(watt))
			continue;
		a->power_sum_w[i] += watt;
		a->n_power[i]++;
	}
}

/* Notes another session in the same job or container, which its manager would end as well. */
static void note_companion(struct ending *a, const struct fresh_look *look)
{
	const struct signs_session session = session_of(a);
	const struct live_process *p = fresh_companion(look, &session);
	a->companion[0] = '\0';
	if (p)
		snprintf(a->companion, sizeof(a->companion), "process %u of %s",
			(unsigned)p->id.pid, p->id.user);
}

/* Whether nothing has been done to the session yet. */
static bool before_signals(const struct ending *a)
{
	return a->stage == ENDING_CONFIRM;
}

/* Asks gua-end about one process. False: the ending is over. */
static bool ask(struct endings *es, struct ending *a, size_t i, enum end_ask what)
{
	const struct end_process *p = &a->plan.processes[i];
	struct end_reply reply;
	struct err e = { 0 };
	enum ending_how how = before_signals(a) ? ENDING_SPARED : ENDING_FAILED;
	if (end_link_ask(es->link, what, p, &reply, &e) != 0) {
		ending_finish(a, how, "%s", e.text);
		return false;
	}
	if (reply.answer == END_GONE || reply.answer == END_ANOTHER)
		a->gone[i] = true;
	else if (reply.answer != END_DONE)
		ending_finish(a, how, "process %u: %s", (unsigned)p->pid, reply.text);
	return a->stage != ENDING_OVER;
}

/* Asks about all that have not ended, in their order. */
static bool ask_all(struct endings *es, struct ending *a, enum end_ask what)
{
	for (size_t i = 0; i < a->plan.n_processes; i++)
		if (!a->gone[i] && !ask(es, a, i, what))
			return false;
	return true;
}

static bool all_gone(const struct ending *a)
{
	for (size_t i = 0; i < a->plan.n_processes; i++)
		if (!a->gone[i])
			return false;
	return true;
}

/* No record, no action. */
static bool record(struct endings *es, struct ending *a, const char *what)
{
	struct err e = { 0 };
	const struct ending_step step = { a->plan.ticket, what, a->evidence };
	if (es->o.record(es->o.context, &step, &e) == 0)
		return true;
	ending_finish(a, before_signals(a) ? ENDING_SPARED : ENDING_FAILED,
		"%s was not done, because it cannot be recorded: %s", what, e.text);
	return false;
}

static void run_manager(
	struct endings *es, struct ending *a, const struct manager_command *command)
{
	struct err e = { 0 };
	if (!record(es, a, command->shown))
		return;
	a->stage = ENDING_MANAGER;
	if (manager_start(&a->manager, command, es->o.config->manager_timeout_ms, &e) != 0)
		ending_finish(a, ENDING_FAILED, "%s", e.text);
}

static void send_signal(struct endings *es, struct ending *a, enum end_ask what)
{
	bool kill = what == END_ASK_KILL;
	if (!record(es, a, kill ? "SIGKILL" : "SIGTERM"))
		return;
	/* From the first signal on, something was done, even if the next one fails. */
	a->stage = kill ? ENDING_KILLED : ENDING_GRACE;
	a->until_us = clock_monotonic_us() + (kill ? KILL_MS : a->plan.grace_ms) * 1000;
	ask_all(es, a, what);
}

/* Whether a user chose the names that the session's manager would be given. */
static bool is_users_own(const struct endings *es, const struct ending *a)
{
	for (size_t i = 0; i < a->plan.n_processes; i++) {
		char cgroup[CGROUP_CAP];
		ssize_t n = a->gone[i] ? 0
				       : proc_read_cgroup(es->proc, a->plan.processes[i].pid,
						 cgroup, sizeof(cgroup));
		if (n < 0 || manager_is_users(cgroup, (size_t)n))
			return true;
	}
	return false;
}

/* Records the step and takes it. */
static void act(struct endings *es, struct ending *a)
{
	struct manager_command command;
	struct err e = { 0 };
	if (!ask_all(es, a, END_ASK_CHECK))
		return;
	if (all_gone(a)) {
		ending_finish(a, ENDING_SPARED, "its processes have ended by themselves");
		return;
	}
	if (es->o.allowed && es->o.allowed(es->o.context, a->plan.ticket, &e) != 0) {
		ending_finish(a, ENDING_SPARED, "%s", e.text);
		return;
	}
	int rc = is_users_own(es, a) ? 1
				     : manager_find(&command, es->o.config, a->plan.job,
					       a->plan.container, &e);
	if (rc == 0 && *a->companion)
		ending_finish(a, ENDING_SPARED,
			"%s is in the same %s and would be ended as well", a->companion,
			*a->plan.job ? "job" : "container");
	else if (rc == 0)
		run_manager(es, a, &command);
	else if (rc == 1)
		send_signal(es, a, END_ASK_TERM);
	else
		ending_finish(a, ENDING_SPARED, "%s", e.text);
}

void ending_confirm(struct endings *es, struct ending *a, const struct fresh_look *look)
{
	struct fresh_result r;
	char why[ENDING_TEXT_CAP];
	int64_t now_us = clock_monotonic_us();
	fresh_judge(&r, look, a->plan.processes, a->plan.n_processes);
	if (r.verdict != FRESH_IDLE) {
		ending_finish(a, ENDING_SPARED, "%s", r.why);
		return;
	}
	a->held_bytes = r.held_bytes;
	add_power(a, look);
	note_cpu(es, a);
	note_companion(a, look);
	if (a->looks++ == 0) {
		a->first_look_us = now_us;
		return;
	}
	if (now_us - a->first_look_us < es->o.config->confirm_ms * 1000)
		return;
	if (lives(es, a, why, sizeof(why)))
		ending_finish(a, ENDING_SPARED, "%s", why);
	else
		act(es, a);
}

static void attend_manager(struct ending *a)
{
	struct err e = { 0 };
	if (!manager_is_over(a->manager, &e))
		return;
	helper_free(a->manager, 0);
	a->manager = NULL;
	if (e.code) {
		ending_finish(a, ENDING_FAILED, "%s", e.text);
		return;
	}
	/* The manager waits by itself; its processes end now or soon. */
	a->stage = ENDING_GRACE;
	a->plan.kill = false;
	a->until_us = clock_monotonic_us() + a->plan.grace_ms * 1000;
}

void ending_attend(struct endings *es, struct ending *a)
{
	if (a->stage == ENDING_MANAGER) {
		attend_manager(a);
		return;
	}
	if (a->stage != ENDING_GRACE && a->stage != ENDING_KILLED)
		return;
	bool late = clock_monotonic_us() >= a->until_us;
	/* gua-end says by itself that a process has ended; this is for one that was restarted.
	 */
	if (late && !all_gone(a) && !ask_all(es, a, END_ASK_CHECK))
		return;
	if (all_gone(a)) {
		a->stage = ENDING_VERIFY;
		es->next_look_us = 0;
	} else if (late && a->stage == ENDING_GRACE && a->plan.kill) {
		send_signal(es, a, END_ASK_KILL);
	} else if (late) {
		ending_finish(a, ENDING_FAILED, "its processes have not ended after %s",
			a->stage == ENDING_KILLED ? "SIGKILL" : "SIGTERM");
	}
}
