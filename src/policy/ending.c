/* Ends one session: confirms to the last moment that it is idle, takes the steps, and stores
 * each in policy.db. */
#include "policy/ending.h"

#include "model/lease.h"
#include "model/session.h"
#include "policy/tell.h"
#include "proc/proc.h"

enum { CGROUP_CAP = 4096 };

/* How long a process may take to end after SIGKILL; one that is stuck in the driver may
 * never end. */
#define KILL_MS 10000
/* How often /proc is checked for processes that should have ended. */
#define POLL_US (1 * INT64_C(1000000))
/* A power that is higher than the idle power by less than this is no sign of work. */
#define SLACK_W 5.0

/* The driver may need this many looks to notice that processes have ended. */
#define VERIFY_LOOKS 4
/* How long the store may list a lease after its manager's command, and how often that is
 * checked: a watcher asks the manager every 30 s, and the next tick stores the answer. */
#define LEASE_GRACE_MS 180000
#define LEASE_POLL_US (10 * INT64_C(1000000))
/* The wait for a new final notice doubles at most this often. */
enum { LONGEST = 6 };

int64_t ending_now_us(const struct endings *es)
{
	return clock_now(es->enforcer->clock).mono_us;
}

static const struct config_end *config_of(const struct endings *es)
{
	return &es->enforcer->policy.config->end;
}

void ending_clear(struct ending *a)
{
	helper_free(a->manager, 0);
	arena_finish(&a->texts);
	*a = (struct ending){ .stage = ENDING_NONE };
}

bool ending_begin(struct ending *a)
{
	size_t n = a->n_processes;
	struct proc_life *sorted = arena_take(&a->texts, (n + 1) * sizeof(*sorted));
	a->gone = arena_take(&a->texts, n + 1);
	if (!sorted || !a->gone)
		return false;
	a->stage = ENDING_CONFIRM;
	a->signal = END_ASK_TERM;
	a->seen_bytes = -1;
	memset(a->gone, false, n + 1);
	if (n) /* not a lease */
		memcpy(sorted, a->processes, n * sizeof(*sorted));
	signs_sort(sorted, n);
	a->group.processes = sorted;
	a->group.n = n;
	return true;
}

__attribute__((format(printf, 3, 4))) static void finish(
	struct ending *a, enum ending_how how, const char *format, ...)
{
	va_list list;
	a->stage = ENDING_OVER;
	a->how = how;
	a->freed_bytes = -1;
	va_start(list, format);
	vsnprintf(a->text, sizeof(a->text), format, list);
	va_end(list);
}

void ending_spare(struct ending *a, const char *why)
{
	const char *name = a->signal == END_ASK_KILL ? "SIGKILL" : "SIGTERM";
	if (a->next)
		finish(a, ENDING_SPARED,
			"%s was sent to the first %zu of %zu processes; the others are spared: "
			"%s",
			name, a->next, a->n_processes, why);
	else if (a->signalled)
		finish(a, ENDING_SPARED, "SIGTERM was sent, but not SIGKILL: %s", why);
	else
		finish(a, ENDING_SPARED, "%s", why);
}

int ending_hold(struct endings *es, const struct proc_life *p, struct err *e)
{
	struct end_reply reply;
	int rc = end_link_ask(es->link, END_ASK_HOLD, p, &reply, e);
	if (rc)
		return rc;
	if (reply.answer == END_DONE)
		return 0;
	bool ended = reply.answer == END_GONE || reply.answer == END_ANOTHER;
	bool never = reply.answer == END_EXEMPT || reply.answer == END_NOT_HIS;
	return err_set(e,
		ended			   ? ERR_NOTHING
		: never			   ? ERR_USAGE
		: reply.answer == END_FULL ? ERR_BUSY
					   : ERR_WORLD,
		"%s", reply.text);
}

/* Checks CPU use, power and terminals; `input_ms` is when a key was last pressed there.
 * ENDING_HOWS: there is no sign of life. */
static enum ending_how check_signs_of_life(
	const struct endings *es, struct ending *a, int64_t input_ms, char *why, size_t cap)
{
	int64_t looked_us = ending_now_us(es) - a->first_look_us;
	/* Since the first look, in percent of one core. */
	double cpu = looked_us > 0 ? 100e6 * a->cpu_used_s / (double)looked_us : (double)NAN;
	if (isnan(cpu)) {
		snprintf(why, cap, "the CPU time of its processes cannot be read");
		return ENDING_SPARED;
	}
	if (cpu > config_of(es)->cpu_pct) {
		snprintf(why, cap,
			"it computes on the CPU, with %.0f %% of a processor core, and is "
			"spared while it does; if it holds the card idle after that, notices "
			"begin again",
			cpu);
		return ENDING_COMPUTES;
	}
	if (a->notice_ms >= 0 && input_ms > a->notice_ms) {
		snprintf(why, cap, "its terminal was used after the last notice");
		return ENDING_SPARED;
	}
	/* Compares the mean power of the looks with the highest power that still counts as
	 * idle: the card's idle power with the configured margin, plus `idle_below` percent of
	 * the way from there to its power limit. True: the card works. */
	for (size_t i = 0; i < a->n_cards; i++) {
		const struct ending_card *card = &a->cards[i];
		double floor_w = card->idle_power_w, range_w = card->power_limit_w - floor_w;
		if (!card->n_power || !isfinite(floor_w))
			continue;
		double mean_w = card->power_sum_w / (double)card->n_power;
		double use_w = range_w > 0 ? range_w * (double)a->idle_below / 100 : 0;
		double most_w =
			floor_w * (1 + config_of(es)->power_pct / 100) + use_w + SLACK_W;
		if (mean_w > most_w) {
			snprintf(why, cap,
				"its card draws %.0f W, more than the %.0f W that less than "
				"%lld %% use explains (idle: %.0f W)",
				mean_w, most_w, (long long)a->idle_below, floor_w);
			return ENDING_SPARED;
		}
	}
	snprintf(a->evidence, sizeof(a->evidence),
		"idle in %zu looks at the driver over %s, %.1f %% of a core", a->looks,
		duration_text(looked_us / 1000).text, cpu);
	return ENDING_HOWS;
}

/* Notes another session in the same job or container, which its manager would end as well. */
static void note_companion(struct ending *a, const struct signs_look *look)
{
	const struct present_process *p = signs_companion(look, &a->group);
	a->companion[0] = '\0';
	if (p)
		snprintf(a->companion, sizeof(a->companion), "process %u of %s",
			(unsigned)p->id.pid, p->id.user);
}

/* A step failed: spares the session or, after a signal, records that it could not be ended. */
static void fail(struct ending *a, const char *why)
{
	if (a->signalled)
		finish(a, ENDING_FAILED, "%s", why);
	else
		ending_spare(a, why);
}

/* Asks gua-end about one process. False: the ending is over. */
static bool ask(struct endings *es, struct ending *a, size_t i, enum end_ask what)
{
	const struct proc_life *p = &a->processes[i];
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

/* Checks which processes have ended: gua-end reports only those that it holds. */
static void poll_gone(struct endings *es, struct ending *a)
{
	for (size_t i = 0; i < a->n_processes; i++)
		a->gone[i] = a->gone[i] || activity_has_ended(es->proc, &a->processes[i]);
	a->polled_us = ending_now_us(es);
}

/* Before anything is done to a session, gua-end checks each of its processes: one exempt
 * process spares them all. A pod is not signalled, and may be root's. */
static bool check_all(struct endings *es, struct ending *a)
{
	if (a->kind == SESSION_POD) {
		poll_gone(es, a);
		return true;
	}
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

/* A row about a step of the ending; the caller adds evidence and result. */
static struct policy_action row_of(
	const struct endings *es, const struct ending *a, enum policy_step step)
{
	struct policy_action row = a->row;
	row.at_ms = clock_wall_ms(es->enforcer->clock);
	row.step = step;
	row.stage = STAGE_ENDING;
	row.config = es->enforcer->config_hash;
	row.evidence = NULL;
	return row;
}

/* Records a step before it is taken: after true it is on disk, otherwise nothing may be done.
 * `what` is "SIGTERM", "SIGKILL", "podman stop 3f2a91c4d5e6"; for one of several batches
 * "SIGTERM, processes 65 to 128 of 1500". */
static bool record(struct endings *es, struct ending *a, const char *what)
{
	struct policy_file *f = es->enforcer->file;
	struct policy_action row = row_of(es, a, STEP_SIGNAL);
	const struct policy_record one = { .action = &row };
	struct err e = { 0 };
	char why[ENDING_TEXT_CAP];
	row.evidence = a->evidence;
	row.result = what;
	int rc = f ? policy_file_write(f, &one, 1, NULL, &e)
		   : err_set(&e, ERR_WORLD, "policy.db is not open");
	if (rc == 0)
		return true;
	snprintf(why, sizeof(why), "%.80s was not done, because it cannot be recorded: %.120s",
		what, e.text);
	fail(a, why);
	return false;
}

static const struct proc_life *find_pid(const struct ending *a, uint32_t pid)
{
	for (size_t i = 0; i < a->n_processes; i++)
		if (a->processes[i].pid == pid)
			return &a->processes[i];
	return NULL;
}

/* Fails if the session is kept, by its name or by one of its processes: the name may have
 * changed since. */
static int check_keeps(
	struct policy_file *f, const struct ending *a, int64_t now_ms, struct err *e)
{
	const struct policy_span now = { now_ms, now_ms + 1 };
	struct arena texts = { 0 };
	struct policy_keep *k = NULL;
	bool kept = false;
	int rc = policy_file_keeps(f, now, &texts, &k, e);
	for (; k; k = k->next)
		kept |= strcmp(k->session, a->row.session) == 0 ||
			((k->uid == 0 || k->uid == a->row.uid) &&
				find_pid(a, (uint32_t)k->pid));
	arena_finish(&texts);
	return rc || !kept ? rc : err_set(e, ERR_NOTHING, "its user keeps it");
}

/* The session of an ending as the store has it now; NULL: it is not there. */
static const struct session_facts *find_facts(
	const struct facts_now *now, const struct ending *a)
{
	const struct idle_history *h = &now->history;
	for (size_t i = 0; a->kind == SESSION_LEASE && i < h->n_sessions; i++)
		if (strcmp(h->sessions[i].key, a->row.session) == 0)
			return &now->facts[i];
	for (size_t i = 0; i < h->n_processes; i++) {
		const struct idle_process *p = &h->processes[i];
		const struct proc_life *own = find_pid(a, p->pid);
		if (own && own->start_ticks == p->start_ticks)
			return &now->facts[p->session];
	}
	return NULL;
}

/* Whether an exemption protects the session now: the configuration may have been reloaded
 * since the pass that decided to end it. */
static int check_exemptions(
	const struct enforcer *x, const struct ending *a, int64_t now_ms, struct err *e)
{
	struct facts_now now = enforcer_facts(x, now_ms, true);
	struct policy policy = x->policy;
	int rc = facts_now_read(&now, e);
	const struct session_facts *f = rc == 0 ? find_facts(&now, a) : NULL;
	policy.history = &now.history;
	const struct config_exemption *exempt =
		f ? rules_find_exemption(&policy, f, now_ms) : NULL;
	if (rc == 0 && !f)
		rc = err_set(e, ERR_NOTHING, "the store no longer lists it");
	else if (f && f->exemption)
		rc = err_set(e, ERR_NOTHING, "it is exempt: %s", f->exemption);
	else if (exempt)
		rc = err_set(e, ERR_NOTHING, "it is exempt: [exempt %s]", exempt->name);
	facts_now_finish(&now);
	return rc;
}

/* Checks whether the session may still be ended; `e` says why not. `brief`: everything was
 * checked just before, for another process of the same batch. */
static int check_allowed(
	const struct endings *es, const struct ending *a, bool brief, struct err *e)
{
	const struct enforcer *x = es->enforcer;
	int64_t now_ms = clock_wall_ms(x->clock);
	struct policy_orders orders;
	if (!x->file || !x->db)
		return err_set(
			e, ERR_WORLD, "%s is not open", x->db ? "policy.db" : "the store");
	if (policy_file_orders(x->file, now_ms, &orders, e))
		return e->code;
	/* The configuration may have been reloaded. */
	if (orders.armed_until_ms <= now_ms || !x->policy.enforce || !x->policy.may_end)
		return err_set(e, ERR_NOTHING, "ending is no longer allowed");
	if (orders.stopped_ms >= 0)
		return err_set(e, ERR_NOTHING, "the breaker has stopped everything");
	int rc = check_keeps(x->file, a, now_ms, e);
	return rc || brief ? rc : check_exemptions(x, a, now_ms, e);
}

/* A stop order takes effect at once: it is checked before each signal. False: it is over. */
static bool is_allowed(struct endings *es, struct ending *a, bool brief)
{
	struct err e = { 0 };
	if (check_allowed(es, a, brief, &e) == 0)
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
	a->signalled = a->managed = true;
	a->stage = ENDING_MANAGER;
	if (end_manager_start(&a->manager, command, config_of(es)->manager_timeout_ms, &e) != 0)
		finish(a, ENDING_FAILED, "%s", e.text);
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
	/* The next batch is the processes [a->next, end) that have not ended. */
	size_t end = a->next, n = 0;
	while (end < a->n_processes && n < ENDING_BATCH)
		n += !a->gone[end++];
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
	a->until_us = ending_now_us(es) + (kill ? KILL_MS : config_of(es)->grace_ms) * 1000;
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
	struct brief idle = duration_text(a->row.idle_ms);
	snprintf(why, sizeof(why), "it held %s and was idle for %s: rule %s of gua",
		a->row.held_bytes < 0 ? "a card" : size_text((double)a->row.held_bytes).text,
		idle.text, a->row.rule);
	const struct managed what = { a->group.job, a->group.container, a->group.pod, why };
	int rc = !is_users_own(es, a) ? end_manager_find(&command, config_of(es), &what, &e)
		 : *a->group.pod      ? err_set(&e, ERR_NOTHING, "its cgroup cannot be read")
				      : 1;
	if (rc == 0 && *a->companion) {
		snprintf(why, sizeof(why), "%s is in the same %s and would be ended as well",
			a->companion,
			*a->group.job	? "job"
			: *a->group.pod ? "pod"
					: "container");
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

/* Whether the process is on a card of the lease and uses it, or is of its job elsewhere. */
static bool uses_lease(const struct ending *a, const struct present_process *p,
	const struct present_card *card)
{
	struct lease lease = { .kind = *a->group.job ? LEASE_SLURM : LEASE_POD };
	const char *colon = strchr(a->group.job, ':');
	str_copy(lease.id, sizeof(lease.id), colon ? colon + 1 : a->group.pod);
	str_copy(lease.owner, sizeof(lease.owner), a->row.user);
	for (size_t i = 0; i < a->n_cards; i++)
		if (strcmp(a->cards[i].uuid, card->id.uuid) == 0)
			return lease_is_used_by(&lease, &p->id);
	return *a->group.job ? strcmp(p->id.job, a->group.job) == 0
			     : strcmp(p->id.pod, a->group.pod) == 0;
}

/* Whether the driver reports the processes of all cards of a lease. If it lists none on a card
 * that is used or held, it does not know them all. */
static bool driver_reports_cards(const struct ending *a, const struct signs_look *look)
{
	size_t n = 0;
	for (size_t i = 0; i < look->now->n_cards; i++)
		for (size_t k = 0; k < a->n_cards; k++)
			n += look->now->cards[i].status == CARD_STATUS_OK &&
			     look->now->cards[i].processes_known &&
			     (look->now->cards[i].n_processes ||
				     (look->now->cards[i].state != CARD_ACTIVE &&
					     look->now->cards[i].state != CARD_IDLE_HELD)) &&
			     strcmp(a->cards[k].uuid, look->now->cards[i].id.uuid) == 0;
	return n >= a->n_cards;
}

/* CPU use is no sign of life: work that needs no card needs no lease of one. */
void ending_confirm_lease(struct endings *es, struct ending *a, const struct signs_look *look)
{
	char why[ENDING_TEXT_CAP];
	struct manager_command command;
	struct managed what = { a->group.job, "", a->group.pod, why };
	struct err e = { 0 };
	int64_t now_us = ending_now_us(es);
	if (!driver_reports_cards(a, look)) {
		ending_spare(a, "the driver does not say who uses one of its cards");
		return;
	}
	for (size_t i = 0; i < look->now->n_processes; i++) {
		const struct present_process *p = &look->now->processes[i];
		if (!uses_lease(a, p, &look->now->cards[p->card]))
			continue;
		snprintf(why, sizeof(why), "its process %u is on a card", (unsigned)p->id.pid);
		ending_spare(a, why);
		return;
	}
	if (a->looks++ == 0)
		a->first_look_us = now_us;
	if (now_us - a->first_look_us < config_of(es)->confirm_ms * 1000 ||
		!is_allowed(es, a, false))
		return;
	snprintf(a->evidence, sizeof(a->evidence),
		"not on its cards in %zu looks at the driver over %s", a->looks,
		duration_text((now_us - a->first_look_us) / 1000).text);
	snprintf(why, sizeof(why), "it has cards and did not touch them for %s: rule %s of gua",
		duration_text(a->row.idle_ms).text, a->row.rule);
	int rc = end_manager_find(&command, config_of(es), &what, &e);
	if (rc == 0)
		run_manager(es, a, &command);
	else
		ending_spare(a, rc == 1 ? "[end] has no command for its manager" : e.text);
}

void ending_confirm(struct endings *es, struct ending *a, const struct signs_look *look)
{
	struct signs_result r;
	char why[ENDING_TEXT_CAP];
	int64_t now_us = ending_now_us(es);
	signs_judge(&r, look, a->group.processes, a->group.n);
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
	for (size_t i = 0; i < a->n_cards; i++) {
		double watt = signs_power_w(look, a->cards[i].uuid, a->group.processes,
			a->group.n, &a->cards[i].power_limit_w);
		if (!isfinite(watt))
			continue;
		a->cards[i].power_sum_w += watt;
		a->cards[i].n_power++;
	}
	note_companion(a, look);
	/* CPU time is added up from look to look, so that a process that ends in between counts
	 * at least until the look before. Once NAN, the sum stays NAN. */
	double now_s = activity_cpu_s(es->proc, &a->group);
	int64_t input_ms = activity_input_ms(es->proc, a->processes, a->n_processes);
	if (a->looks > 0 && !(now_s < a->cpu_s))
		a->cpu_used_s += now_s - a->cpu_s;
	a->cpu_s = now_s;
	if (a->looks++ == 0) { /* the first before SIGTERM or before SIGKILL */
		a->first_look_us = now_us;
		a->cpu_used_s = 0;
		return;
	}
	if (now_us - a->first_look_us < config_of(es)->confirm_ms * 1000 ||
		now_us < a->until_us)
		return;
	/* From the second batch on, CPU use is not a sign of life: processes that got the
	 * signal use the CPU while they end. */
	enum ending_how how = a->next == 0
				      ? check_signs_of_life(es, a, input_ms, why, sizeof(why))
				      : ENDING_HOWS;
	if (how == ENDING_COMPUTES && !a->signalled)
		finish(a, how, "%s", why);
	else if (how != ENDING_HOWS)
		ending_spare(a, why);
	else
		act(es, a);
}

/* Waits until a lease whose manager was asked to end the store no longer lists it. */
static void attend_lease(struct endings *es, struct ending *a)
{
	int64_t now_us = ending_now_us(es);
	const struct enforcer *x = es->enforcer;
	struct facts_now now = enforcer_facts(x, clock_wall_ms(x->clock), true);
	struct err e = { 0 };
	if (now_us - a->polled_us < LEASE_POLL_US)
		return;
	a->polled_us = now_us;
	int rc = facts_now_read(&now, &e);
	if (rc == 0 && !find_facts(&now, a))
		finish(a, ENDING_ENDED, "its manager has ended it (%s)", a->evidence);
	else if (now_us >= a->until_us)
		finish(a, ENDING_FAILED, "its manager was asked to end it, and %s",
			rc ? e.text : "it has not ended");
	facts_now_finish(&now);
}

static void attend_manager(const struct endings *es, struct ending *a)
{
	struct err e = { 0 };
	if (!end_manager_is_over(a->manager, &e))
		return;
	helper_free(a->manager, 0);
	a->manager = NULL;
	if (e.code) {
		finish(a, ENDING_FAILED, "%s", e.text);
		return;
	}
	/* The manager has its own grace period; the processes end now or soon. */
	a->stage = ENDING_GRACE;
	a->kill = false;
	a->until_us =
		ending_now_us(es) +
		1000 * (a->kind == SESSION_LEASE ? LEASE_GRACE_MS : config_of(es)->grace_ms);
}

void ending_attend(struct endings *es, struct ending *a)
{
	int64_t now_us = ending_now_us(es);
	if (a->stage == ENDING_MANAGER) {
		attend_manager(es, a);
		return;
	}
	if (a->kind == SESSION_LEASE) {
		if (a->stage == ENDING_GRACE)
			attend_lease(es, a);
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
		if (now_us >= a->until_us - config_of(es)->confirm_ms * 1000) {
			/* The looks begin so early that SIGKILL comes when the grace period is
			 * over. Before it, the session is watched for as long as before
			 * SIGTERM. */
			a->stage = ENDING_CONFIRM;
			a->signal = END_ASK_KILL;
			a->looks = 0;
			for (size_t i = 0; i < a->n_cards; i++) {
				a->cards[i].power_sum_w = 0;
				a->cards[i].n_power = 0;
			}
		}
	} else if (late) {
		finish(a, ENDING_FAILED, "its processes have not ended after %s",
			a->managed		    ? "the command of its manager"
			: a->stage == ENDING_KILLED ? "SIGKILL"
						    : "SIGTERM");
	}
}

/* Bytes in use on the session's cards that no process explains. */
static int64_t unexplained(const struct ending *a, const struct signs_look *look)
{
	int64_t bytes = 0;
	for (size_t i = 0; i < a->n_cards; i++)
		for (size_t k = 0; k < look->now->n_cards; k++)
			if (strcmp(a->cards[i].uuid, look->now->cards[k].id.uuid) == 0)
				bytes += look->now->cards[k].unexplained_bytes;
	return bytes;
}

void ending_verify(struct ending *a, const struct signs_look *look)
{
	struct signs_result r;
	signs_judge(&r, look, a->group.processes, a->group.n);
	int64_t left = r.verdict == SIGNS_RELEASED ? unexplained(a, look) : r.held_bytes;
	bool held = r.verdict != SIGNS_RELEASED || left >= ORPHAN_LEAST_BYTES;
	if (held && ++a->verified < VERIFY_LOOKS)
		return;
	struct brief size = size_text((double)(held ? left : a->seen_bytes));
	if (held) {
		finish(a, ENDING_STILL_HELD,
			"its processes have ended, and %s are still in use; no signal can free "
			"them, an administrator must look",
			size.text);
		return;
	}
	finish(a, ENDING_ENDED, "its processes have ended; %s given back (%s)", size.text,
		a->evidence);
	a->freed_bytes = a->seen_bytes;
}

void ending_miss_look(struct ending *a, const char *why)
{
	char text[ENDING_TEXT_CAP];
	snprintf(text, sizeof(text), "it cannot be confirmed that it is idle: %.180s", why);
	if (a->stage == ENDING_CONFIRM)
		ending_spare(a, text);
	else if (a->stage == ENDING_VERIFY)
		finish(a, ENDING_ENDED,
			"its processes have ended; whether the memory is free is not known: %s",
			why);
}

/* The step, the stage and the notice that follow from an outcome. */
static const struct {
	enum policy_step step;
	enum policy_stage stage;
	enum notice_kind notice;
} meanings[ENDING_HOWS] = {
	[ENDING_SPARED] = { STEP_SPARED, STAGE_AGAIN, NOTICE_NOT_ENDED },
	[ENDING_ENDED] = { STEP_ENDED, STAGE_ENDED, NOTICE_ENDED },
	[ENDING_STILL_HELD] = { STEP_FAILED, STAGE_FAILED, NOTICE_NOT_ENDED },
	[ENDING_FAILED] = { STEP_FAILED, STAGE_FAILED, NOTICE_NOT_ENDED },
	[ENDING_COMPUTES] = { STEP_SPARED, STAGE_COMPUTING, NOTICE_NOT_ENDED },
};

/* A session that was spared gets a new final notice after the time between final notice and
 * end. This wait doubles each further time, so that nobody gets the same notice all day. */
static struct policy_state state_after(
	const struct ending *a, enum ending_how how, int64_t now_ms)
{
	struct policy_state s = a->state;
	s.stage = meanings[how].stage;
	s.stage_ms = now_ms;
	if (how != ENDING_SPARED)
		return s;
	s.delivered_ms = now_ms;
	s.next_clock_ms =
		a->row.idle_ms + (a->final_ms << (s.round < LONGEST ? s.round : LONGEST));
	s.round++;
	return s;
}

int ending_store(struct endings *es, struct ending *a, struct err *e)
{
	struct policy_file *f = es->enforcer->file;
	struct policy_action row = row_of(es, a, meanings[a->how].step);
	struct policy_state state = state_after(a, a->how, row.at_ms);
	struct policy_record r = {
		.key = a->row.session, .user = a->row.user, .state = &state, .action = &row
	};
	struct arena texts = { 0 };
	row.stage = state.stage;
	row.result = a->text;
	a->notice.kind = meanings[a->how].notice;
	a->notice.made_ms = row.at_ms;
	a->notice.freed_bytes = a->freed_bytes;
	str_copy(a->notice.result, sizeof(a->notice.result), a->text);
	const struct tell_queue queue = { &es->enforcer->policy.config->notices, a->row.session,
		notice_kind_names[a->notice.kind], &a->state, row.at_ms };
	int rc = f ? tell_make(&texts, &queue, &a->notice, &r, e)
		   : err_set(e, ERR_WORLD, "policy.db is not open");
	if (rc == 0)
		rc = policy_file_write(f, &r, 1, NULL, e);
	arena_finish(&texts);
	return rc;
}

int ending_store_left(struct endings *es, struct ending *a, struct err *e)
{
	struct policy_action row = row_of(es, a, STEP_SPARED);
	const struct policy_record r = {
		.key = a->row.session, .user = a->row.user, .state = &a->state, .action = &row
	};
	a->state = state_after(a, ENDING_SPARED, es->enforcer->now_ms);
	row.stage = STAGE_AGAIN;
	row.result = "gua enforce was stopped while the session was being ended, or could not "
		     "record the result";
	return policy_file_write(es->enforcer->file, &r, 1, NULL, e);
}
