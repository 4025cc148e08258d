/* Works out the idle clock of a session from spans, marks and gaps; reads the sessions that
 * hold a card now, and what exempts them. */
#include "policy/facts.h"

#include "audit/idle_history.h"
#include "policy/builtin.h"
#include "policy/rules.h"

bool facts_has_card(const struct card_set *s, size_t card)
{
	return card < CARD_WORDS * 64 && (s->bits[card / 64] >> card % 64 & 1);
}

static int64_t stale_ms(const struct idle_history *h)
{
	return clock_later(STALE_TICKS * h->interval_ms, STALE_LEAST_MS);
}

static int64_t lag_ms(const struct idle_history *h)
{
	return clock_later(h->interval_ms / 2, LAG_LEAST_MS);
}

bool facts_covers(const struct idle_history *h, const struct idle_span *s, int64_t at_ms)
{
	return s->begin_ms < at_ms && (h->present ? s->open : at_ms <= s->until_ms);
}

/* The last mark that began before the moment; NULL: none. */
static const struct idle_mark *last_mark(
	const struct idle_history *h, const struct idle_part *part, int64_t at_ms)
{
	const struct idle_mark *marks = h->marks + part->first;
	size_t low = 0, high = part->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (marks[middle].from_ms < at_ms)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &marks[low - 1] : NULL;
}

static const struct idle_part *marks_of(
	const struct idle_history *h, const struct idle_session *session, int64_t idle_below)
{
	return &session->marks[idle_history_limit_of(h, idle_below)];
}

/* Whether the session can be judged at the moment: all of its cards are observed, and its
 * own use of them is known. */
static void find_blind(struct session_facts *f, const struct idle_history *h, int64_t at_ms)
{
	const struct idle_part *part = &f->session->blinds;
	for (size_t i = part->first + part->n; i-- > part->first;) {
		const struct idle_blind *b = &h->blinds[i];
		if (b->from_ms >= at_ms)
			continue;
		if (b->to_ms >= at_ms && at_ms - b->from_ms > lag_ms(h)) {
			f->observed = f->observed && !b->unobserved;
			f->use_unknown = !b->unobserved;
		}
		return;
	}
}

/* The idle clock: the time from the session's last use to the last reading, without
 * unobserved time. In h->present, spans end at the last tick; in the past they may go on after
 * the moment. */
static void fill_facts(struct session_facts *f, const struct idle_history *h,
	const struct idle_session *session, struct open_spans spans, int64_t at_ms)
{
	int64_t seen_ms = h->present ? clock_earlier(at_ms, h->last_tick_ms) : at_ms;
	int64_t since_ms = INT64_MAX, now_ms = seen_ms;
	f->session = session;
	f->holds = h->present ? session->holds : spans.n > 0;
	f->observed = true;
	f->use_unknown = false;
	f->idle_since_ms = f->mem_bytes = f->uid = -1;
	f->born_ms = spans.n ? INT64_MAX : -1;
	f->clock_ms = 0;
	f->cards = (struct card_set){ { 0 } };
	for (size_t i = 0; i < spans.n; i++) {
		const struct idle_span *s = &h->spans[spans.items[i]];
		const struct idle_process *p = &h->processes[s->process];
		since_ms = clock_earlier(since_ms, s->held_since_ms);
		if (s->card < CARD_WORDS * 64)
			f->cards.bits[s->card / 64] |= UINT64_C(1) << s->card % 64;
		if (s->mem_kib >= 0)
			f->mem_bytes = clock_later(f->mem_bytes, 0) + s->mem_kib * 1024;
		f->born_ms = clock_earlier(f->born_ms, p->started_ms);
		f->uid = f->uid < 0 || (p->uid >= 0 && p->uid < f->uid) ? p->uid : f->uid;
		seen_ms = clock_earlier(seen_ms, s->end_ms);
		f->observed = f->observed && now_ms - s->end_ms <= lag_ms(h);
	}
	if (spans.n) {
		const struct idle_mark *mark =
			last_mark(h, marks_of(h, session, f->idle_below), at_ms);
		since_ms = clock_later(since_ms, session->used_ms);
		f->idle_since_ms = mark ? clock_later(since_ms, mark->until_ms) : since_ms;
		find_blind(f, h, now_ms);
	}
	f->idle = spans.n > 0 && f->idle_since_ms <= at_ms;
	if (f->idle && seen_ms > f->idle_since_ms)
		f->clock_ms = seen_ms - f->idle_since_ms -
			      idle_history_blind(h, session, f->idle_since_ms, seen_ms);
	f->observed = f->observed && !session->unlisted &&
		      (!h->present || at_ms - h->last_tick_ms <= stale_ms(h));
}

/* The choice of the rule does not depend on the idle clock, so the facts are filled once to
 * find the rule, and again with its limit. */
void facts_at(const struct policy *p, struct session_facts *f,
	const struct idle_session *session, struct open_spans spans, int64_t at_ms)
{
	f->idle_below = IDLE_BELOW_USUAL;
	fill_facts(f, p->history, session, spans, at_ms);
	const struct config_rule *rule = f->holds ? rules_find(p, f, at_ms) : NULL;
	if (!rule || rule->idle_below == f->idle_below)
		return;
	f->idle_below = rule->idle_below;
	fill_facts(f, p->history, session, spans, at_ms);
}

bool facts_is_idle(const struct session_facts *f)
{
	return f->idle && f->clock_ms > 0 && f->observed && !f->use_unknown;
}

const struct idle_mark *facts_last_use(
	const struct idle_history *h, const struct session_facts *f, int64_t at_ms)
{
	return last_mark(h, marks_of(h, f->session, f->idle_below), at_ms);
}

int64_t facts_next_use(
	const struct idle_history *h, const struct session_facts *f, int64_t after_ms)
{
	const struct idle_part *part = marks_of(h, f->session, f->idle_below);
	for (size_t i = part->first; i < part->first + part->n; i++)
		if (h->marks[i].until_ms > after_ms)
			return clock_later(h->marks[i].from_ms, after_ms);
	return -1;
}

enum { READ_WAIT_MS = 5000 };

static bool index_spans(struct facts_now *p)
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

struct open_spans facts_now_spans(const struct facts_now *p, size_t session)
{
	return (struct open_spans){ p->spans + p->first[session],
		p->first[session + 1] - p->first[session] };
}

/* The facts that may exempt one process: its uid from the store and, if readable, /proc. */
static struct builtin_facts facts_of(
	const struct facts_now *p, const struct idle_process *process, int64_t uid_min)
{
	const struct builtin_facts stored = { .pid = process->pid,
		.uid = process->uid,
		.uid_min = uid_min,
		.pod = p->history.sessions[process->session].texts[PROCESS_POD],
		.graphics = p->history.sessions[process->session].draws };
	struct builtin_facts read = stored;
	if (p->proc < 0 || p->history.simulated ||
		builtin_read(&read, p->proc, process->pid) != 0 ||
		read.start_ticks != process->start_ticks)
		return stored;
	if (read.uid < 0 || (stored.uid >= 0 && stored.uid < read.uid))
		read.uid = stored.uid;
	return read;
}

void facts_now_exemptions(const struct facts_now *p, size_t session,
	facts_now_exemption_taker take, void *context)
{
	const struct idle_history *h = &p->history;
	int64_t uid_min = builtin_uid_min();
	for (size_t i = 0; i < h->n_processes; i++) {
		if (h->processes[i].session != session)
			continue;
		const struct builtin_facts f = facts_of(p, &h->processes[i], uid_min);
		for (int k = 0; k < BUILTIN_REASONS; k++)
			if (builtin_reason(&f, k))
				take(context, h->processes[i].pid, builtin_reason(&f, k));
	}
}

int facts_now_read(struct facts_now *p, struct err *e)
{
	struct idle_history *h = &p->history;
	*h = (struct idle_history){ .path = p->db,
		.wait_ms = READ_WAIT_MS,
		.present = true,
		.brief = p->brief,
		.until_ms = p->now_ms };
	rules_set_limits(p->policy, h);
	int rc = idle_history_read(h, e);
	if (rc || !index_spans(p))
		return rc ? rc : err_memory(e);
	facts_now_judge_again(p);
	return 0;
}

void facts_now_judge_again(struct facts_now *p)
{
	const struct idle_history *h = &p->history;
	struct policy policy = *p->policy;
	policy.history = h;
	for (size_t i = 0; i < h->n_sessions; i++) {
		p->facts[i] = (struct session_facts){ .kept_until_ms = -1, .delivered_ms = -1 };
		facts_at(&policy, &p->facts[i], &h->sessions[i], facts_now_spans(p, i),
			p->now_ms);
	}
	int64_t uid_min = builtin_uid_min();
	for (size_t i = 0; i < h->n_processes; i++) {
		struct session_facts *f = &p->facts[h->processes[i].session];
		if (f->exemption)
			continue;
		const struct builtin_facts facts = facts_of(p, &h->processes[i], uid_min);
		f->exemption = builtin_exemption(&facts);
	}
}

bool facts_now_is_known(const struct facts_now *p)
{
	const struct idle_history *h = &p->history;
	return h->any_run && h->running && h->ticked &&
	       p->now_ms - h->last_tick_ms <= stale_ms(h);
}

static bool is_asked(const struct facts_asked *asked, const struct idle_process *p,
	const struct idle_session *s)
{
	const char *job = s->texts[PROCESS_JOB], *task = s->texts[PROCESS_JOB_TASK];
	const char *pod = s->texts[PROCESS_POD];
	if (!*asked->lease || s->kind != SESSION_LEASE)
		return !*asked->lease && p->pid == asked->pid;
	return (job && strcmp(asked->lease, job) == 0) ||
	       (task && strcmp(asked->lease, task) == 0) ||
	       (pod && strncmp(asked->lease, "pod:", 4) == 0 &&
		       strcmp(asked->lease + 4, pod) == 0);
}

const struct idle_process *facts_now_find(
	const struct facts_now *p, const struct facts_asked *asked, size_t *at)
{
	const struct idle_history *h = &p->history;
	for (; *at < h->n_processes; ++*at)
		if (is_asked(
			    asked, &h->processes[*at], &h->sessions[h->processes[*at].session]))
			return &h->processes[*at];
	return NULL;
}

void facts_now_finish(struct facts_now *p)
{
	idle_history_finish(&p->history);
	free(p->facts);
	free(p->spans);
	free(p->first);
	p->facts = NULL;
	p->spans = NULL;
	p->first = NULL;
}
