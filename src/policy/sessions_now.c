/* Reads the sessions that hold a card now, and joins spans to sessions. */
#include "policy/sessions_now.h"

#include <stdlib.h>
#include <unistd.h>

#include "policy/builtin.h"
#include "proc/proc.h"

enum { READ_WAIT_MS = 5000 };

static bool index_spans(struct sessions_now *p)
{
	const struct idle_history *h = &p->history;
	p->first = calloc(h->n_sessions + 2, sizeof(*p->first));
	p->spans = calloc(h->n_spans + 1, sizeof(*p->spans));
	p->facts = calloc(h->n_sessions + 1, sizeof(*p->facts));
	if (!p->first || !p->spans || !p->facts)
		return false;
	for (size_t i = 0; i < h->n_spans; i++)
		p->first[h->spans[i].session + 2] += h->spans[i].open;
	for (size_t s = 2; s < h->n_sessions + 2; s++)
		p->first[s] += p->first[s - 1];
	for (size_t i = 0; i < h->n_spans; i++)
		if (h->spans[i].open)
			p->spans[p->first[h->spans[i].session + 1]++] = (uint32_t)i;
	return true;
}

struct open_spans sessions_now_spans(const struct sessions_now *p, size_t session)
{
	return (struct open_spans){ p->spans + p->first[session],
		p->first[session + 1] - p->first[session] };
}

/* The facts that may exempt one process: its uid from the store and, if readable, /proc. */
static struct builtin_facts facts_of(const struct sessions_now *p,
	const struct idle_process *process, int proc, int64_t uid_min)
{
	const struct builtin_facts stored = { .pid = process->pid,
		.uid = process->uid,
		.uid_min = uid_min,
		.graphics = p->history.sessions[process->session].draws };
	struct builtin_facts read;
	if (proc < 0 || p->history.simulated ||
		proc_start_ticks(proc, process->pid) != process->start_ticks ||
		builtin_read(&read, proc, process->pid, process->pid) != 0)
		return stored;
	read.graphics = stored.graphics;
	if (read.uid < 0 || (stored.uid >= 0 && stored.uid < read.uid))
		read.uid = stored.uid;
	return read;
}

static int open_proc(const struct sessions_now *p)
{
	int proc = -1;
	return p->root && proc_open(&proc, p->root, NULL) == 0 ? proc : -1;
}

static void find_exemptions(struct sessions_now *p)
{
	const struct idle_history *h = &p->history;
	int proc = open_proc(p);
	int64_t uid_min = builtin_uid_min();
	for (size_t i = 0; i < h->n_processes; i++) {
		struct session_facts *f = &p->facts[h->processes[i].session];
		struct builtin_facts facts;
		if (f->exemption)
			continue;
		facts = facts_of(p, &h->processes[i], proc, uid_min);
		f->exemption = builtin_exemption(&facts);
	}
	if (proc >= 0)
		close(proc);
}

void sessions_now_exemptions(const struct sessions_now *p, size_t session,
	sessions_now_exemption_taker take, void *context)
{
	const struct idle_history *h = &p->history;
	int proc = open_proc(p);
	int64_t uid_min = builtin_uid_min();
	for (size_t i = 0; i < h->n_processes; i++) {
		if (h->processes[i].session != session)
			continue;
		const struct builtin_facts f = facts_of(p, &h->processes[i], proc, uid_min);
		for (int k = 0; k < BUILTIN_REASONS; k++)
			if (builtin_reason(&f, k))
				take(context, h->processes[i].pid, builtin_reason(&f, k));
	}
	if (proc >= 0)
		close(proc);
}

int sessions_now_read(struct sessions_now *p, struct err *e)
{
	struct idle_history *h = &p->history;
	*h = (struct idle_history){ .path = p->db,
		.wait_ms = READ_WAIT_MS,
		.present = true,
		.brief = p->brief,
		.until_ms = p->now_ms };
	if (p->policy)
		rules_set_limits(p->policy, h);
	int rc = idle_history_read(h, e);
	if (rc == 0 && !index_spans(p))
		rc = err_memory(e);
	if (rc)
		return rc;
	sessions_now_judge_again(p);
	return 0;
}

void sessions_now_judge_again(struct sessions_now *p)
{
	const struct idle_history *h = &p->history;
	struct policy policy = p->policy ? *p->policy : (struct policy){ 0 };
	policy.history = h;
	for (size_t i = 0; i < h->n_sessions; i++) {
		p->facts[i] = (struct session_facts){ .kept_until_ms = -1, .delivered_ms = -1 };
		rules_facts_at(&policy, &p->facts[i], &h->sessions[i], sessions_now_spans(p, i),
			p->now_ms);
	}
	find_exemptions(p);
}

bool sessions_now_is_known(const struct sessions_now *p)
{
	const struct idle_history *h = &p->history;
	int64_t stale_ms = STALE_TICKS * h->interval_ms;
	return h->any_run && h->running && h->ticked &&
	       p->now_ms - h->last_tick_ms <=
		       (stale_ms > STALE_LEAST_MS ? stale_ms : STALE_LEAST_MS);
}

int64_t sessions_now_find(const struct sessions_now *p, uint32_t pid)
{
	for (size_t i = 0; i < p->history.n_processes; i++)
		if (p->history.processes[i].pid == pid)
			return p->history.processes[i].session;
	return -1;
}

void sessions_now_finish(struct sessions_now *p)
{
	idle_history_finish(&p->history);
	free(p->facts);
	free(p->spans);
	free(p->first);
	p->facts = NULL;
	p->spans = NULL;
	p->first = NULL;
}
