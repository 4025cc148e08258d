/* Steps through recorded history in passes, as the live run does. */
#include "policy/simulate.h"

#include "audit/idle_history.h"
#include "policy/builtin.h"

/* A session during the replay. */
struct track {
	struct policy_state state;
	uint32_t *spans; /* the ones that cover the moment */
	size_t n_spans, cap_spans;
	bool listed; /* it is in replay.live */
	bool idle;   /* it was idle at least as long as a spell */
	struct simulated result;
};

/* A session that was ended: when it would have used its cards again (or INT64_MAX), and the
 * card time that became free. */
struct gone {
	int64_t used_ms, given_back_ms;
};

struct replay {
	struct simulation *s;
	struct track *tracks; /* by session */
	uint32_t *live;	      /* sessions to judge */
	size_t n_live, cap_live;
	size_t next_span;
	/* Arrays for one pass, as long as `live`. */
	struct session_facts *facts;
	struct policy_state *states;
	struct verdict *verdicts;
	size_t cap_facts, cap_states, cap_verdicts;
	struct past_end *ends;
	struct gone *gone; /* of each end */
	size_t n_ends;
	uint32_t *end_of; /* by span: 1 + the end that closed it; 0: none */
	int64_t uid_min, now_ms;
	int64_t tripped_ms; /* when the breaker tripped, if it was not released since; -1: it
			       has not */
	struct err *e;
};

static bool open_span(struct replay *r, uint32_t i)
{
	uint32_t session = r->s->history->spans[i].session;
	struct track *t = &r->tracks[session];
	if (!array_reserve(&t->spans, &t->cap_spans, t->n_spans + 1) ||
		!array_reserve(&r->live, &r->cap_live, r->n_live + 1))
		return false;
	t->spans[t->n_spans++] = i;
	if (!t->listed)
		r->live[r->n_live++] = session;
	t->listed = true;
	return true;
}

/* Opens the spans that have begun, and closes those that have ended. */
static bool move_to(struct replay *r, int64_t now_ms)
{
	const struct idle_history *h = r->s->history;
	while (r->next_span < h->n_spans && h->spans[r->next_span].begin_ms < now_ms)
		if (!open_span(r, (uint32_t)r->next_span++))
			return false;
	for (size_t k = 0; k < r->n_live; k++) {
		struct track *t = &r->tracks[r->live[k]];
		size_t n = 0;
		for (size_t i = 0; i < t->n_spans; i++)
			if (facts_covers(h, &h->spans[t->spans[i]], now_ms))
				t->spans[n++] = t->spans[i];
		t->n_spans = n;
	}
	return true;
}

static int64_t count_sessions(void *context)
{
	struct replay *r = context;
	if (r->s->count_sessions)
		return r->s->count_sessions(r->s->context, r->now_ms);
	int64_t n = idle_history_count(r->s->history, r->now_ms, r->e);
	return n < 0 ? 0 : n;
}

static bool note_end(struct replay *r, struct track *t, const struct session_facts *f)
{
	int64_t used_ms = facts_next_use(r->s->history, f, r->now_ms);
	if (!array_one_more(&r->ends, r->n_ends) || !array_one_more(&r->gone, r->n_ends))
		return false;
	r->gone[r->n_ends] = (struct gone){ .used_ms = used_ms < 0 ? INT64_MAX : used_ms };
	t->result.nth = r->n_ends;
	r->ends[r->n_ends++] =
		(struct past_end){ r->now_ms, f->session->user, f->session->key, false };
	for (size_t i = 0; i < t->n_spans; i++)
		r->end_of[t->spans[i]] = (uint32_t)r->n_ends;
	t->result.used_again_ms = used_ms;
	t->result.wrong = used_ms >= 0 && used_ms - r->now_ms <= WRONG_MS;
	t->result.ended_ms = r->now_ms;
	t->result.idle_ms = f->clock_ms;
	t->result.idle_since_ms = f->idle_since_ms;
	t->result.mem_bytes = f->mem_bytes;
	t->result.cards = f->cards;
	return true;
}

/* The beginning or the end of time in which a card is held, in use or not observed, or in
 * which an ended session would have held it. */
struct hold_edge {
	int64_t at_ms;
	uint32_t card;
	uint32_t end; /* 1 + the end; 0: the card is not free */
	bool begins;
};

struct hold_edges {
	struct hold_edge *items;
	size_t n, cap;
	bool failed;
};

static void add_edges(struct hold_edges *e, struct idle_gap time, uint32_t end)
{
	if (time.to_ms <= time.from_ms || e->failed)
		return;
	e->failed = !array_reserve(&e->items, &e->cap, e->n + 2);
	if (e->failed)
		return;
	e->items[e->n++] = (struct hold_edge){ time.from_ms, time.card, end, true };
	e->items[e->n++] = (struct hold_edge){ time.to_ms, time.card, end, false };
}

/* A span that an end closed is held until the end, and again from its next use on. */
static void add_span(struct hold_edges *e, const struct replay *r, size_t i)
{
	const struct idle_history *h = r->s->history;
	const struct idle_span *span = &h->spans[i];
	/* A lease keeps its card from others, but its job gives it back with the card. */
	if (!r->end_of[i] && h->sessions[span->session].kind == SESSION_LEASE)
		return;
	struct idle_gap time = { span->card, span->begin_ms, span->end_ms };
	if (r->end_of[i]) {
		int64_t end_ms = r->ends[r->end_of[i] - 1].at_ms;
		int64_t used_ms = r->gone[r->end_of[i] - 1].used_ms;
		int64_t until_ms = used_ms < span->end_ms ? used_ms : span->end_ms;
		time.to_ms = end_ms;
		add_edges(e, (struct idle_gap){ span->card, end_ms, until_ms }, r->end_of[i]);
		add_edges(e, (struct idle_gap){ span->card, until_ms, span->end_ms }, 0);
	}
	add_edges(e, time, 0);
}

static int compare_edges(const void *a, const void *b)
{
	const struct hold_edge *x = a, *y = b;
	int by_card = array_compare(x->card, y->card);
	return by_card ? by_card : array_compare(x->at_ms, y->at_ms);
}

/* Counts the time between edges in which only ended sessions would have held the card.
 * `open` has for each end how many of its spans cover the moment. */
static void sweep(struct replay *r, const struct hold_edges *e, uint32_t *open)
{
	size_t n_taken = 0, latest = 0;
	for (size_t i = 0; i < e->n; i++) {
		const struct hold_edge *one = &e->items[i];
		if (latest && n_taken == 0)
			r->gone[latest - 1].given_back_ms += one->at_ms - one[-1].at_ms;
		if (one->end == 0) {
			n_taken = one->begins ? n_taken + 1 : n_taken - 1;
			continue;
		}
		open[one->end] = one->begins ? open[one->end] + 1 : open[one->end] - 1;
		if (one->begins && one->end > latest)
			latest = one->end;
		while (latest && open[latest] == 0)
			latest--;
	}
}

static bool find_given_back(struct replay *r)
{
	const struct idle_history *h = r->s->history;
	struct hold_edges e = { 0 };
	uint32_t *open = calloc(r->n_ends + 1, sizeof(*open));
	for (size_t i = 0; i < h->n_spans; i++)
		add_span(&e, r, i);
	for (size_t i = 0; i < h->n_gaps; i++)
		add_edges(&e, h->gaps[i], 0);
	for (size_t i = 0; i < h->n_busy; i++)
		add_edges(&e, h->busy[i], 0);
	array_sort(e.items, e.n, compare_edges);
	bool ok = open && !e.failed;
	if (ok)
		sweep(r, &e, open);
	free(e.items);
	free(open);
	return ok;
}

static void begin_result(struct track *t, const struct idle_session *session)
{
	t->result = (struct simulated){ .session = session,
		.first_warning_ms = -1,
		.ended_ms = -1,
		.idle_ms = -1,
		.idle_since_ms = -1,
		.mem_bytes = -1,
		.most_pct = -1,
		.idle_below = -1,
		.used_again_ms = -1 };
}

/* Keeps the result of a session, if it has a warning or an end. */
static bool keep_result(struct simulation *s, const struct simulated *result)
{
	if (result->warnings == 0 && result->ended_ms < 0)
		return true;
	if (!array_one_more(&s->items, s->n))
		return false;
	s->items[s->n++] = *result;
	s->n_warned += result->warnings > 0;
	s->n_notices += result->warnings;
	s->n_ended += result->ended_ms >= 0;
	s->n_wrong += result->wrong;
	return true;
}

static bool take_verdict(struct replay *r, size_t k)
{
	struct track *t = &r->tracks[r->live[k]];
	const struct verdict *v = &r->verdicts[k];
	t->state = v->state;
	if (v->reborn) {
		if (!keep_result(r->s, &t->result))
			return false;
		begin_result(t, r->facts[k].session);
	}
	if (v->step == STEP_NONE)
		return true;
	if (r->s->tell)
		r->s->tell(r->s->context, &(struct simulate_step){ r->now_ms, v->step,
						  v->state.stage, r->facts[k].session });
	/* In a real run the session would have ended. */
	if (t->result.ended_ms >= 0)
		return true;
	t->result.session = r->facts[k].session;
	if (*v->state.rule)
		str_copy(t->result.rule, RULE_NAME_CAP, v->state.rule);
	if (v->step == STEP_WARN || v->step == STEP_END) {
		const struct session_facts *f = &r->facts[k];
		t->result.idle_below = f->idle_below;
		t->result.most_pct = idle_history_most(
			r->s->history, r->live[k], f->idle_since_ms, r->now_ms);
	}
	if (v->step == STEP_WARN && t->result.warnings++ == 0)
		t->result.first_warning_ms = r->now_ms;
	return v->step != STEP_END || note_end(r, t, &r->facts[k]);
}

/* Whether the breaker has tripped and was not released since. */
static bool is_stopped(struct replay *r)
{
	for (size_t i = 0; r->tripped_ms >= 0 && i < r->s->n_releases; i++)
		if (r->s->releases[i] > r->tripped_ms && r->s->releases[i] <= r->now_ms)
			r->tripped_ms = -1;
	return r->tripped_ms >= 0;
}

static bool run_pass(struct replay *r)
{
	if (!array_reserve(&r->facts, &r->cap_facts, r->n_live) ||
		!array_reserve(&r->states, &r->cap_states, r->n_live) ||
		!array_reserve(&r->verdicts, &r->cap_verdicts, r->n_live))
		return false;
	for (size_t k = 0; k < r->n_live; k++) {
		const struct idle_history *h = r->s->history;
		struct track *t = &r->tracks[r->live[k]];
		struct session_facts *f = &r->facts[k];
		const struct idle_session *session = &h->sessions[r->live[k]];
		*f = (struct session_facts){ .kept_until_ms = -1, .delivered_ms = -1 };
		facts_at(r->s->policy, f, session, (struct open_spans){ t->spans, t->n_spans },
			r->now_ms);
		t->idle |= f->idle && f->clock_ms >= h->spell_ms;
		f->exemption = builtin_exemption(&(struct builtin_facts){ .uid = f->uid,
			.uid_min = r->uid_min,
			.pod = session->texts[PROCESS_POD] });
		if (r->s->kept_until)
			f->kept_until_ms =
				r->s->kept_until(r->s->context, session->key, r->now_ms);
		r->states[k] = r->tracks[r->live[k]].state;
	}
	struct pass pass = { .policy = r->s->policy,
		.now_ms = r->now_ms,
		.facts = r->facts,
		.states = r->states,
		.verdicts = r->verdicts,
		.n = r->n_live,
		.past = r->ends,
		.n_past = r->n_ends,
		.stopped = is_stopped(r),
		.count_sessions = count_sessions,
		.context = r };
	bool ok = judge_pass(&pass);
	if (pass.tripped)
		r->tripped_ms = r->now_ms;
	if ((pass.stopped || pass.tripped) && r->s->n_stopped++ == 0)
		r->s->stopped_ms = r->now_ms;
	for (size_t k = 0; k < r->n_live && ok; k++)
		ok = take_verdict(r, k);
	return ok;
}

static int compare_results(const void *a, const void *b)
{
	const struct simulated *x = a, *y = b;
	if (x->first_warning_ms != y->first_warning_ms)
		return x->first_warning_ms < y->first_warning_ms ? -1 : 1;
	return strcmp(x->session->key, y->session->key);
}

static bool collect(struct replay *r)
{
	struct simulation *s = r->s;
	for (size_t i = 0; i < s->history->n_sessions; i++) {
		s->n_sessions += r->tracks[i].idle;
		if (!keep_result(s, &r->tracks[i].result))
			return false;
	}
	if (r->n_ends && !find_given_back(r))
		return false;
	for (size_t i = 0; i < s->n; i++)
		if (s->items[i].ended_ms >= 0) {
			s->items[i].given_back_ms = r->gone[s->items[i].nth].given_back_ms;
			s->given_back_ms += s->items[i].given_back_ms;
		}
	array_sort(s->items, s->n, compare_results);
	return true;
}

static void replay_finish(struct replay *r)
{
	for (size_t i = 0; r->tracks && i < r->s->history->n_sessions; i++)
		free(r->tracks[i].spans);
	free(r->tracks);
	free(r->live);
	free(r->facts);
	free(r->states);
	free(r->verdicts);
	free(r->ends);
	free(r->gone);
	free(r->end_of);
}

/* The next pass: the next one on the grid, or, when none is idle, the first in which one is. */
static int64_t next_pass(const struct replay *r, int64_t at_ms)
{
	const struct idle_history *h = r->s->history;
	int64_t step = r->s->interval_ms, next = at_ms + step;
	if (r->n_live)
		return next;
	if (r->next_span >= h->n_spans)
		return INT64_MAX;
	int64_t begin_ms = h->spans[r->next_span].begin_ms;
	int64_t skip = begin_ms >= next ? ((begin_ms - next) / step + 1) * step : 0;
	return next + skip;
}

int simulate(struct simulation *s, struct err *e)
{
	struct replay r = { .s = s, .uid_min = builtin_uid_min(), .tripped_ms = -1, .e = e };
	const struct idle_history *h = s->history;
	bool ok = true;
	r.tracks = calloc(h->n_sessions + 1, sizeof(*r.tracks));
	r.end_of = calloc(h->n_spans + 1, sizeof(*r.end_of));
	if (!r.tracks || !r.end_of) {
		replay_finish(&r);
		return err_memory(e);
	}
	for (size_t i = 0; i < h->n_sessions; i++) {
		r.tracks[i].state = POLICY_STATE_NONE;
		begin_result(&r.tracks[i], &h->sessions[i]);
	}
	s->stopped_ms = -1;
	s->since_ms = h->since_ms > h->first_ms ? h->since_ms : h->first_ms;
	s->until_ms = h->last_tick_ms < h->until_ms ? h->last_tick_ms : h->until_ms;
	/* Passes are at whole multiples of the interval. */
	int64_t at_ms = (s->since_ms + s->interval_ms - 1) / s->interval_ms * s->interval_ms;
	for (; ok && at_ms <= s->until_ms; at_ms = next_pass(&r, at_ms)) {
		r.now_ms = at_ms;
		ok = move_to(&r, at_ms);
		ok = ok && (r.n_live == 0 || run_pass(&r));
		/* Sessions that hold nothing and have no stage are no longer judged. */
		size_t n = 0;
		for (size_t k = 0; k < r.n_live; k++) {
			struct track *t = &r.tracks[r.live[k]];
			t->listed = t->n_spans > 0 || t->state.stage != STAGE_NONE;
			if (t->listed)
				r.live[n++] = r.live[k];
		}
		r.n_live = n;
	}
	ok = ok && collect(&r);
	replay_finish(&r);
	return ok ? 0 : err_memory(e);
}

void simulate_finish(struct simulation *s)
{
	free(s->items);
	s->items = NULL;
	s->n = 0;
}
