/* Signs of life of a session: what the driver's newest samples say about its cards, the CPU
 * time of its processes, and keys pressed at its terminals. */
#include "policy/signs.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/array.h"
#include "model/session.h"
#include "proc/cgroup.h"
#include "proc/proc.h"

/* The numbers of Unix98 ptys: eight majors of 256 each, kept for them by the kernel. */
enum { PTY_MAJOR = 136, PTY_MAJORS = 8 };
enum { CGROUP_CAP = 4096 };
/* Pids, and so POSIX sessions, are below this: PID_MAX_LIMIT of the kernel. */
enum { PIDS = 4194304 };

struct counted_process {
	uint32_t pid;
	pid_t ppid, session;
	int64_t ticks;
	bool counts;
};

struct counted {
	struct counted_process *items;
	size_t n, cap;
	unsigned char *pids,
		*sessions; /* a bit for each pid and each POSIX session that counts */
};

/* Number 0 is never in a set: POSIX session 0 belongs to kernel threads, or to another pid
 * namespace. */
static bool has(const unsigned char *set, int64_t number)
{
	return number > 0 && number < PIDS && (set[number / 8] >> number % 8 & 1);
}

static void add(unsigned char *set, int64_t number)
{
	if (number > 0 && number < PIDS)
		set[number / 8] |= (unsigned char)(1 << number % 8);
}

static bool read_list(struct counted *l, int proc)
{
	DIR *directory = proc_open_list(proc);
	struct proc_stat stat;
	bool ok = directory != NULL;
	for (uint32_t pid; ok && (pid = proc_next_listed(directory)) != 0;) {
		if (proc_read_stat(proc, pid, &stat) != 0)
			continue;
		ok = array_reserve(&l->items, &l->cap, l->n + 1);
		if (ok)
			l->items[l->n++] = (struct counted_process){ .pid = pid,
				.ppid = stat.ppid,
				.session = stat.session,
				.ticks = stat.user_ticks + stat.system_ticks +
					 stat.waited_user_ticks + stat.waited_system_ticks };
	}
	if (directory)
		closedir(directory);
	return ok;
}

static void count(struct counted *l, struct counted_process *e)
{
	e->counts = true;
	add(l->pids, e->pid);
	add(l->sessions, e->session);
}

static bool is_same(const char *own, const char *label)
{
	return *label && strcmp(own, label) == 0;
}

static void read_labels(int proc, uint32_t pid, struct cgroup_labels *labels)
{
	char cgroup[CGROUP_CAP];
	ssize_t n = proc_read_cgroup(proc, pid, cgroup, sizeof(cgroup));
	cgroup_parse(cgroup, n > 0 ? (size_t)n : 0, labels);
}

/* Whether the process belongs to the session, or its manager put it into the same job, pod
 * (by its uid) or container. */
static bool is_member(
	int proc, uint32_t pid, const struct signs_session *s, const char *pod_uid)
{
	struct cgroup_labels labels;
	for (size_t i = 0; i < s->n; i++)
		if (s->processes[i].pid == pid)
			return true;
	if (!*s->job && !*s->container && !*pod_uid)
		return false;
	read_labels(proc, pid, &labels);
	return is_same(labels.job, s->job) || is_same(labels.container, s->container) ||
	       is_same(labels.pod, pod_uid);
}

double signs_cpu_s(int proc, const struct signs_session *s)
{
	struct counted l = { 0 };
	int64_t ticks = 0;
	struct cgroup_labels own;
	/* The uid of the session's pod, which cgroups have, or "". */
	own.pod[0] = '\0';
	for (size_t i = 0; *s->pod && i < s->n && !*own.pod; i++)
		read_labels(proc, s->processes[i].pid, &own);
	l.pids = calloc(2, PIDS / 8);
	bool more = l.pids && read_list(&l, proc);
	double seconds = more ? 0 : (double)NAN;
	l.sessions = l.pids ? l.pids + PIDS / 8 : NULL;
	for (size_t i = 0; more && i < l.n; i++)
		if (is_member(proc, l.items[i].pid, s, own.pod))
			count(&l, &l.items[i]);
	while (more) {
		more = false;
		for (size_t i = 0; i < l.n; i++)
			if (!l.items[i].counts &&
				(has(l.pids, l.items[i].ppid) ||
					has(l.sessions, l.items[i].session))) {
				count(&l, &l.items[i]);
				more = true;
			}
	}
	for (size_t i = 0; i < l.n; i++)
		ticks += l.items[i].counts ? l.items[i].ticks : 0;
	free(l.items);
	free(l.pids);
	return seconds + (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

void signs_terminal(char *dst, size_t cap, int number)
{
	unsigned major_number = major((dev_t)(unsigned)number);
	unsigned minor_number = minor((dev_t)(unsigned)number);
	*dst = '\0';
	if (number > 0 && major_number >= PTY_MAJOR && major_number < PTY_MAJOR + PTY_MAJORS)
		snprintf(dst, cap, "/dev/pts/%u",
			(major_number - PTY_MAJOR) * 256 + minor_number);
}

int64_t signs_input_ms(int proc, const struct end_process *processes, size_t n)
{
	int64_t newest_ms = -1;
	for (size_t i = 0; i < n; i++) {
		char path[32];
		struct proc_stat stat;
		struct stat st;
		if (proc_read_stat(proc, processes[i].pid, &stat) != 0 ||
			stat.start_ticks != processes[i].start_ticks)
			continue;
		signs_terminal(path, sizeof(path), stat.tty);
		if (!*path || lstat(path, &st) != 0 || !S_ISCHR(st.st_mode))
			continue;
		int64_t at_ms =
			(int64_t)st.st_atim.tv_sec * 1000 + st.st_atim.tv_nsec / 1000000;
		newest_ms = at_ms > newest_ms ? at_ms : newest_ms;
	}
	return newest_ms;
}

/* Orders processes by pid and start time. A user may have thousands of processes on a card, so
 * they are looked up by binary search. */
static int compare(const void *a, const void *b)
{
	const struct end_process *x = a, *y = b;
	int by_pid = array_compare(x->pid, y->pid);
	return by_pid ? by_pid
		      : array_compare((int64_t)x->start_ticks, (int64_t)y->start_ticks);
}

void signs_sort(struct end_process *processes, size_t n)
{
	if (n)
		qsort(processes, n, sizeof(*processes), compare);
}

static bool is_one_of(
	const struct present_process *p, const struct end_process *processes, size_t n)
{
	const struct end_process key = { .pid = p->id.pid, .start_ticks = p->id.start_ticks };
	return n && bsearch(&key, processes, n, sizeof(*processes), compare);
}

/* The names of the session: two if the name of its user became known in between. */
struct session_names {
	char (*keys)[SESSION_KEY_CAP];
	size_t n;
};

static bool has_name(const struct session_names *names, const char *key)
{
	for (size_t i = 0; i < names->n; i++)
		if (strcmp(names->keys[i], key) == 0)
			return true;
	return false;
}

/* Collects the names of the sessions of the processes on a card. False: out of memory. */
static bool read_names(struct session_names *names, const struct signs_look *look,
	const struct end_process *processes, size_t n)
{
	char key[SESSION_KEY_CAP];
	for (size_t i = 0; i < look->n_processes; i++) {
		if (!is_one_of(&look->processes[i], processes, n))
			continue;
		session_key_of(key, &look->processes[i].id, "");
		if (has_name(names, key))
			continue;
		if (!array_one_more(&names->keys, names->n))
			return false;
		memcpy(names->keys[names->n++], key, sizeof(key));
	}
	return true;
}

static bool is_alone(const struct signs_look *look, size_t card,
	const struct end_process *processes, size_t n)
{
	for (size_t i = 0; i < look->n_processes; i++) {
		const struct present_process *p = &look->processes[i];
		if (p->card == card && p->holder && !is_one_of(p, processes, n))
			return false;
	}
	return true;
}

__attribute__((format(printf, 3, 4))) static void say(
	struct signs_result *r, enum signs_verdict verdict, const char *format, ...)
{
	va_list list;
	r->verdict = verdict;
	va_start(list, format);
	vsnprintf(r->why, sizeof(r->why), format, list);
	va_end(list);
}

/* Whether the card as a whole is as idle as a session must be. */
static bool is_unused(const struct present_card *card, double idle_below)
{
	return card->values[METRIC_UTILIZATION_GPU] < idle_below &&
	       !(card->values[METRIC_UTILIZATION_ENCODER] > 0) &&
	       !(card->values[METRIC_UTILIZATION_DECODER] > 0);
}

/* `used_pct` is the sum over the session's processes that were seen. */
static void judge_process(struct signs_result *r, const struct signs_look *look,
	const struct present_process *p, double *used_pct, bool alone)
{
	*used_pct += p->sm_pct > 0 ? p->sm_pct : 0;
	const struct present_card *card = &look->cards[p->card];
	struct brief label = card_label(&card->id);
	if (card->status != CARD_STATUS_OK)
		say(r, SIGNS_UNKNOWN, "card %s does not answer", label.text);
	else if (*used_pct >= look->idle_below)
		say(r, SIGNS_ACTIVE,
			"it used card %s: %.0f %% of the multiprocessors (the limit is %.0f "
			"%%)",
			label.text, *used_pct, look->idle_below);
	else if (reading_most_engine(p->engine_pct) > 0)
		say(r, SIGNS_ACTIVE, "it used another engine of card %s: %.0f %%", label.text,
			reading_most_engine(p->engine_pct));
	else if (isnan(p->sm_pct) && !look->first &&
		 !(alone && is_unused(card, look->idle_below)))
		say(r, SIGNS_UNKNOWN, "its use of card %s is not known", label.text);
}

/* A process of the session that is not in its list. One that has taken memory since the
 * decision is a sign of life by itself; one that only draws may have been there before. */
static void judge_newcomer(struct signs_result *r, const struct signs_look *look,
	const struct present_process *p, const struct session_names *names, double *used_pct)
{
	char key[SESSION_KEY_CAP];
	session_key_of(key, &p->id, "");
	if (!has_name(names, key))
		return;
	judge_process(r, look, p, used_pct, true);
	if (r->verdict == SIGNS_IDLE && p->holder)
		say(r, SIGNS_ACTIVE, "process %u of the session has appeared on a card",
			(unsigned)p->id.pid);
}

void signs_judge(struct signs_result *r, const struct signs_look *look,
	const struct end_process *processes, size_t n)
{
	bool found = false, known = true;
	struct session_names names = { 0 };
	*r = (struct signs_result){ .verdict = SIGNS_IDLE };
	double *used_pct = calloc(look->n_cards + 1, sizeof(*used_pct)); /* by card */
	if (!used_pct || !read_names(&names, look, processes, n))
		say(r, SIGNS_UNKNOWN, ERR_MEMORY_TEXT);
	for (size_t i = 0; i < look->n_processes && r->verdict == SIGNS_IDLE; i++) {
		const struct present_process *p = &look->processes[i];
		if (!is_one_of(p, processes, n)) {
			judge_newcomer(r, look, p, &names, &used_pct[p->card]);
			continue;
		}
		found = true;
		known = known && p->mem_bytes >= 0;
		r->held_bytes += p->mem_bytes > 0 ? p->mem_bytes : 0;
		judge_process(r, look, p, &used_pct[p->card],
			isnan(p->sm_pct) && is_alone(look, p->card, processes, n));
	}
	free(names.keys);
	free(used_pct);
	if (!known)
		r->held_bytes = -1;
	if (!found && r->verdict == SIGNS_IDLE)
		say(r, SIGNS_RELEASED, "it no longer holds a card");
}

double signs_power_w(const struct signs_look *look, const char *uuid,
	const struct end_process *processes, size_t n, double *limit_w)
{
	bool holds = false;
	size_t card = 0;
	*limit_w = (double)NAN;
	while (card < look->n_cards && strcmp(look->cards[card].id.uuid, uuid) != 0)
		card++;
	if (card == look->n_cards || !is_alone(look, card, processes, n))
		return NAN;
	for (size_t i = 0; i < look->n_processes; i++)
		holds |= look->processes[i].card == card &&
			 is_one_of(&look->processes[i], processes, n);
	/* The power of a MIG instance is that of its whole card. */
	if (!holds || look->cards[card].id.mig_index >= 0)
		return NAN;
	*limit_w = look->cards[card].values[METRIC_POWER_ENFORCED];
	return look->cards[card].values[METRIC_POWER_DRAW];
}

const struct present_process *signs_companion(
	const struct signs_look *look, const struct signs_session *session)
{
	for (size_t i = 0; i < look->n_processes; i++) {
		const struct present_process *p = &look->processes[i];
		if (!is_one_of(p, session->processes, session->n) &&
			(is_same(p->id.job, session->job) || is_same(p->id.pod, session->pod) ||
				is_same(p->id.container, session->container)))
			return p;
	}
	return NULL;
}
