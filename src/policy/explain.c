/* Explains what happens to a session, rule by rule, as text or JSON. */
#include "policy/explain.h"

#include "policy/judge.h"
#include "report/report_parts.h"
#include "render/json.h"
#include "store/policy/policy_notice.h"

struct explanation {
	struct explain_question *x;
	struct facts_now *now;
	size_t session;
	const struct session_facts *f;
	struct policy_state state; /* stored; STAGE_NONE without policy.db */
	struct verdict v;
	struct verdict
		seen; /* the verdict as if the present were known, to show what comes next */
	bool armed, stopped;	/* sessions may be ended; the breaker has stopped everything */
	struct str undelivered; /* why its last notice has not been delivered */
};

/* Largest number of evidence lines. */
enum { MOST_SPANS = 20 };
#define SECOND_MS INT64_C(1000)

static struct brief moment_of(const struct explanation *ex, int64_t ms)
{
	return ms < 0 ? str_brief("-") : moment_text(ms, ex->x->utc);
}

/* What has no process, and no use to compare. */
static bool is_lease(const struct explanation *ex)
{
	return ex->f->session->kind == SESSION_LEASE;
}

/* The most use in its idle time, in percent; -1: it has none. */
static int64_t most_pct(const struct explanation *ex)
{
	return ex->f->clock_ms > 0 ? idle_history_most(&ex->now->history, (uint32_t)ex->session,
					     ex->f->idle_since_ms, ex->now->now_ms)
				   : -1;
}

static const struct idle_mark *last_use(const struct explanation *ex)
{
	return facts_last_use(&ex->now->history, ex->f, ex->now->now_ms);
}

/* The use that last set the idle clock to 0, and the limit that it was compared with. */
static void add_last_use(struct str *out, const struct explanation *ex)
{
	const struct idle_mark *use = last_use(ex);
	if (!use)
		return;
	int64_t until_ms = clock_earlier(use->until_ms, ex->now->history.last_tick_ms);
	str_addf(out, "  last use, between %s and %s: ", moment_of(ex, use->slot_ms).text,
		moment_of(ex, until_ms).text);
	if (use->pct >= 0)
		str_addf(out, "%d %% of the multiprocessors; use counts from %lld %% on\n",
			(int)use->pct, (long long)ex->f->idle_below);
	else
		str_add(out, use->pct == IDLE_USE_ENGINE
				     ? "an encoder or decoder; any use of these counts\n"
				     : "an unknown amount; any use counts then\n");
}

/* Whether it holds a card, by the last reading; nothing is known after the recorder stopped. */
static bool holds_now(const struct explanation *ex)
{
	return facts_now_spans(ex->now, ex->session).n > 0;
}

/* The idle clock, and the use that was compared with the limit. */
static void add_clock(struct str *out, const struct explanation *ex)
{
	const struct session_facts *f = ex->f;
	if (!holds_now(ex)) {
		str_add(out, "  it holds no card, as far as is known\n");
		add_last_use(out, ex);
		return;
	}
	if (!f->idle) {
		str_addf(out,
			"  not idle: it used a card in the last minute, %lld %% of the "
			"multiprocessors or more, or an encoder or decoder\n",
			(long long)f->idle_below);
		add_last_use(out, ex);
		return;
	}
	int64_t blind_ms = ex->now->history.last_tick_ms - f->idle_since_ms - f->clock_ms;
	str_addf(out, "  idle clock %s, since its last use, or since it came, at %s\n",
		duration_text(f->clock_ms).text, moment_of(ex, f->idle_since_ms).text);
	if (blind_ms >= SECOND_MS)
		str_addf(out, "  what it did in %s of that time is not known\n",
			duration_text(blind_ms).text);
	if (f->clock_ms > 0)
		str_addf(out, "  most use %s %lld %% of the multiprocessors; ",
			blind_ms >= SECOND_MS ? "that was seen in this time" : "in this time",
			(long long)most_pct(ex));
	str_addf(out, "%sit is idle below %lld %%\n", f->clock_ms > 0 ? "" : "  ",
		(long long)f->idle_below);
	add_last_use(out, ex);
}

/* The time of a lease without a process on its cards. */
static void add_untouched(struct str *out, const struct explanation *ex)
{
	const struct session_facts *f = ex->f;
	int64_t blind_ms = ex->now->history.last_tick_ms - f->idle_since_ms - f->clock_ms;
	if (!f->idle)
		str_add(out, "  a process of it was on a card in the last minute\n");
	else
		str_addf(out, "  no process of it on its cards for %s, since %s\n",
			duration_text(f->clock_ms).text, moment_of(ex, f->idle_since_ms).text);
	if (f->idle && blind_ms >= SECOND_MS)
		str_addf(out, "  %s of that time was not seen, and does not count\n",
			duration_text(blind_ms).text);
}

static void add_evidence(struct str *out, const struct explanation *ex)
{
	const struct idle_history *h = &ex->now->history;
	struct open_spans spans = facts_now_spans(ex->now, ex->session);
	for (size_t i = 0; i < spans.n && i < MOST_SPANS; i++) {
		const struct idle_span *s = &h->spans[spans.items[i]];
		if (is_lease(ex)) {
			str_addf(out, "  it has GPU %s, seen since %s\n",
				card_label(&h->cards[s->card]).text,
				moment_of(ex, s->begin_ms).text);
			continue;
		}
		double mib = (double)s->mem_kib / 1024;
		struct brief held = s->mem_kib < 0 ? str_brief("an unknown amount")
				    : mib < 1024   ? str_brief("%.0f MiB", mib)
						   : str_brief("%.1f GiB", mib / 1024);
		str_addf(out, "  process %u holds %s on GPU %s since %s\n",
			h->processes[s->process].pid, held.text,
			card_label(&h->cards[s->card]).text,
			moment_of(ex, s->held_since_ms).text);
	}
	if (spans.n > MOST_SPANS)
		str_addf(out, "  and %zu others\n", spans.n - MOST_SPANS);
	(is_lease(ex) ? add_untouched : add_clock)(out, ex);
	str_addf(out, "  last reading %s%s\n", moment_of(ex, h->last_tick_ms).text,
		ex->f->observed ? "" : ": too old, so the idle clock is stopped");
}

/* The exemptions that apply: built-in, configured, and a keep of its user. */
struct exemptions {
	const struct explanation *ex;
	struct str *out; /* text; NULL: JSON */
	struct json *json;
	bool builtin;
};

static void take_builtin(void *context, uint32_t pid, const char *why)
{
	struct exemptions *x = context;
	char text[WHY_CAP];
	snprintf(text, sizeof(text), "built-in: process %u: %s", pid, why);
	x->builtin = true;
	if (x->json)
		json_text(x->json, NULL, text);
	else
		str_addf(x->out, "  yes  %s\n", text);
}

static void add_configured(struct exemptions *x, const struct config_exemption *one)
{
	const struct explanation *ex = x->ex;
	const struct policy *p = &ex->x->policy;
	char why[WHY_CAP], text[2 * WHY_CAP];
	const char *fault = rules_exemption_fault(one, ex->now->now_ms, p->utc);
	bool yes = !fault && rules_match(p, &one->match, ex->f, ex->now->now_ms, why);
	if (yes)
		snprintf(text, sizeof(text),
			"[exempt %s]: asked for by %s, until %04d-%02d-%02d", one->name,
			one->owner, one->until / 10000, one->until / 100 % 100,
			one->until % 100);
	else
		snprintf(text, sizeof(text), "[exempt %s]: %s", one->name, fault ? fault : why);
	if (!x->json && (yes || !ex->x->uid))
		str_addf(x->out, "  %s  %s\n", yes ? "yes" : "no ", text);
	else if (x->json && yes)
		json_text(x->json, NULL, text);
}

static void add_exemptions(struct exemptions *x)
{
	const struct explanation *ex = x->ex;
	const struct config_blocks *all = &ex->x->policy.config->exemptions;
	facts_now_exemptions(ex->now, ex->session, take_builtin, x);
	if (!x->builtin && !x->json)
		str_add(x->out, "  no   built-in\n");
	for (size_t i = 0; i < all->n; i++)
		add_configured(x, &((const struct config_exemption *)all->items)[i]);
	bool kept = ex->f->kept_until_ms > ex->now->now_ms;
	struct brief until = moment_of(ex, ex->f->kept_until_ms);
	char text[96];
	snprintf(text, sizeof(text), "its user keeps it until %s", until.text);
	if (x->json && kept)
		json_text(x->json, NULL, text);
	else if (!x->json)
		str_addf(x->out, "  %s%s\n", kept ? "yes  " : "no   ",
			kept ? text : "its user does not keep it");
}

static void add_rules(struct str *out, const struct explanation *ex)
{
	const struct policy *p = &ex->x->policy;
	char why[WHY_CAP];
	bool found = false;
	for (size_t i = 0; i < rules_count(p); i++) {
		const struct config_rule *rule = rules_get(p, i);
		bool builtin = i + 1 == rules_count(p);
		const char *name = builtin ? "" : rule->name;
		bool yes = rules_applies(p, rule, ex->f, ex->now->now_ms, why);
		if (ex->x->uid && (found || !yes))
			continue;
		str_addf(out, "  %s  %s%s%s",
			found ? "-  "
			: yes ? "yes"
			      : "no ",
			builtin ? "the built-in rule 'default'" : "[rule ", name,
			builtin ? "" : "]");
		if (found)
			str_add(out, ": not checked, because an earlier rule matches\n");
		else if (yes) {
			struct rules_times times = rules_times(rule, ex->f->session);
			struct brief warn = duration_text(times.warn_ms);
			struct brief end = duration_text(times.end_ms);
			str_addf(out, ": warn after %s", warn.text);
			if (times.again_ms != AT_NEVER)
				str_addf(out, " and %s", duration_text(times.again_ms).text);
			if (times.end_ms == AT_NEVER)
				str_add(out, ", never end");
			else
				str_addf(out, ", end after %s", end.text);
			if (!rule->reserved_for_ms)
				str_addf(out, "; idle below %lld %%",
					(long long)rule->idle_below);
			str_addf(out, "; level %s\n", rule->level);
		} else {
			str_addf(out, ": %s\n", why);
		}
		found |= yes;
	}
}

static const char *const stage_texts[POLICY_STAGES] = {
	[STAGE_WARN] = "the first warning",
	[STAGE_AGAIN] = "the second warning",
	[STAGE_FINAL] = "the final notice",
	[STAGE_ENDING] = "the end",
};

/* Says why the rule has no further stage. */
static void add_last(struct str *out, const struct explanation *ex, const char *word)
{
	const struct policy *p = &ex->x->policy;
	const struct verdict *v = &ex->seen;
	str_addf(out, "  %s: nothing", word);
	if (v->times.end_ms == AT_NEVER)
		str_addf(out, ": the rule never ends a session of the kind '%s'\n",
			session_use_names[ex->f->session->use]);
	else if (rules_level(v->rule) == LEVEL_WARN)
		str_add(out, ": the rule has the level 'warn', and never ends\n");
	else if (!p->may_end && ex->armed)
		str_add(out, ": this configuration may not end sessions; 'gua enforce status' "
			     "says why\n");
	else
		str_add(out, ", until an administrator allows ending with 'gua enforce arm'\n");
}

/* Whether the time of the next stage is unknown: the idle clock is stopped, or the breaker has
 * stopped everything. */
static bool is_frozen(const struct explanation *ex)
{
	return ex->v.hold == HOLD_UNOBSERVED || ex->v.hold == HOLD_USE_UNKNOWN ||
	       ex->v.hold == HOLD_BREAKER;
}

/* The idle time of a stage that would come at `clock_ms`: not before now, and not within quiet
 * hours or holidays. An end that they delay may need a new final notice. */
static int64_t after_quiet(
	const struct explanation *ex, enum policy_stage stage, int64_t clock_ms)
{
	const struct policy *p = &ex->x->policy;
	int64_t now_ms = ex->now->now_ms, had_ms = ex->f->clock_ms;
	int64_t at_ms = now_ms + (clock_ms > had_ms ? clock_ms - had_ms : 0);
	int64_t free_ms = rules_after_quiet(p, at_ms);
	if (free_ms == at_ms)
		return clock_ms;
	if (stage == STAGE_ENDING)
		free_ms =
			clock_later(free_ms, judge_foresee(p, ex->f, &ex->seen, now_ms).end_ms);
	return had_ms + free_ms - now_ms;
}

/* The stages that the session still has ahead, with the times that follow from the rule. */
static void add_stages(struct str *out, const struct explanation *ex)
{
	const struct verdict *v = &ex->seen;
	const char *word = "next";
	int64_t at_ms = v->next_clock_ms;
	enum policy_stage before = v->next;
	for (int s = v->next; s != STAGE_NONE && s <= STAGE_ENDING; s++) {
		enum policy_stage stage = (enum policy_stage)s;
		int64_t stage_ms = judge_stage_at(&v->times, stage);
		if (stage_ms == AT_NEVER || (stage >= STAGE_FINAL && !v->ends))
			continue;
		at_ms += stage_ms - judge_stage_at(&v->times, before);
		if (!is_frozen(ex) && ex->f->idle)
			at_ms = after_quiet(ex, stage, at_ms);
		/* Adds a stage that is still to come, and its time. */
		int64_t left_ms = clock_later(at_ms - ex->f->clock_ms, 0);
		str_addf(out, "  %s: %s at %s of idle time", word, stage_texts[stage],
			duration_text(at_ms).text);
		if (!is_frozen(ex) && ex->f->idle)
			str_addf(out, ": %s, in %s, if it stays idle",
				moment_of(ex, ex->now->now_ms + left_ms).text,
				duration_text(left_ms).text);
		str_add(out, "\n");
		before = stage;
		word = "then";
	}
	if (!v->ends)
		add_last(out, ex, word);
}

static void add_next(struct str *out, const struct explanation *ex)
{
	const struct verdict *v = &ex->seen;
	switch (v->hold) {
	case HOLD_NO_RULE:
	case HOLD_ENDING:
		break;
	case HOLD_NOT_IDLE:
		str_addf(out, "  next: its idle time begins when it %s\n",
			holds_now(ex) ? "stops using its cards" : "holds a card");
		break;
	case HOLD_EXEMPT:
		str_add(out, "  next: nothing, as long as it is exempt\n");
		break;
	case HOLD_KEPT:
		str_addf(out,
			"  next: from %s on it is judged again, from the first warning on\n",
			moment_of(ex, ex->f->kept_until_ms).text);
		break;
	case HOLD_COMPUTING:
		str_add(out, "  next: the first warning, once its processes stop computing, if "
			     "it is idle then\n");
		break;
	case HOLD_UNDELIVERED: /* the next stage is counted from the delivery, whenever it is */
		if (v->next == STAGE_NONE)
			add_last(out, ex, "next");
		else
			str_addf(out, "  next: %s, %s after that notice is delivered\n",
				stage_texts[v->next],
				duration_text(judge_stage_at(&v->times, v->next) -
					      judge_stage_at(&v->times, v->state.stage))
					.text);
		if (ex->undelivered.len)
			str_addf(out, "  not delivered: %s\n", str_text(&ex->undelivered));
		break;
	default:
		if (v->step == STEP_NONE)
			add_stages(out, ex);
		else if (ex->v.step == STEP_NONE)
			str_addf(out,
				"  next: %s, as soon as this is over: it is already due\n",
				stage_texts[v->step == STEP_END ? STAGE_ENDING
								: v->state.stage]);
	}
}

static void add_verdict(struct str *out, const struct explanation *ex)
{
	const struct verdict *v = &ex->v;
	if (ex->state.stage != STAGE_NONE) {
		bool paper = ex->state.level == LEVEL_OBSERVE;
		bool told = judge_was_warned(ex->state.stage) && !paper;
		int64_t delivered_ms = ex->state.delivered_ms >= 0 ? ex->state.delivered_ms
								   : ex->f->delivered_ms;
		str_addf(out, "  stage: %s, since %s%s%s%s\n",
			policy_stage_names[ex->state.stage],
			moment_of(ex, ex->state.stage_ms).text, paper ? " (recorded only)" : "",
			!told		    ? ""
			: delivered_ms >= 0 ? "; delivered "
					    : "; not delivered yet",
			told && delivered_ms >= 0 ? moment_of(ex, delivered_ms).text : "");
	} else {
		str_add(out, "  stage: none yet\n");
	}
	if (v->step == STEP_NONE)
		str_addf(out, "  nothing happens now: %s\n", policy_hold_texts[v->hold]);
	else
		str_addf(out, "  the next pass %s: %s\n",
			v->would ? "would take a step" : "takes a step",
			v->step == STEP_WARN  ? stage_texts[v->state.stage]
			: v->step == STEP_END ? stage_texts[STAGE_ENDING]
					      : policy_step_names[v->step]);
	if (v->step == STEP_END)
		str_add(out, "  unless it is used, kept or delayed by a limit before then\n");
	add_next(out, ex);
}

static void add_text(struct str *out, const struct explanation *ex)
{
	const struct idle_session *s = ex->f->session;
	char what[REPORT_WHAT_CAP], name[SESSION_KEY_CAP];
	report_show_what(what, s->texts);
	if (*ex->x->what.lease)
		str_addf(out, "Lease: %s%s%s\n", process_label(s->texts),
			s->texts[PROCESS_JOB_NAME] ? " " : "",
			s->texts[PROCESS_JOB_NAME] ? s->texts[PROCESS_JOB_NAME] : "");
	else
		str_addf(out, "Process %u: %s\n", ex->x->what.pid, what);
	session_shown(name, sizeof(name), s->key, true);
	str_addf(out, "Session: %s (%s, %s)\n", name, session_kind_names[s->kind],
		session_use_names[s->use]);
	str_add(out, "Evidence\n");
	add_evidence(out, ex);
	str_add(out, "Exemptions\n");
	add_exemptions(&(struct exemptions){ .ex = ex, .out = out });
	str_add(out, "Rules, the first that matches counts\n");
	add_rules(out, ex);
	str_add(out, "What happens\n");
	add_verdict(out, ex);
	if (!ex->x->policy.enforce)
		str_add(out,
			"  the mode is observe: steps are recorded, and nothing is done\n");
}

/* The use in its idle time, the limit that it is compared with, and its last use. */
static void add_use_json(struct json *j, const struct explanation *ex)
{
	const struct session_facts *f = ex->f;
	json_number(j, "most_sm_pct",
		f->clock_ms > 0 && !is_lease(ex) ? (double)most_pct(ex) : NAN, 0);
	json_number(j, "idle_below_pct", (double)f->idle_below, 0);
	const struct idle_mark *use = last_use(ex);
	json_moment(j, "last_use", use ? use->slot_ms : -1);
	json_number(j, "last_use_sm_pct", use && use->pct >= 0 ? (double)use->pct : NAN, 0);
	json_bool(j, "last_use_engine", use && use->pct == IDLE_USE_ENGINE);
	json_bool(j, "use_known", !f->use_unknown);
}

static void add_json(struct str *out, const struct explanation *ex)
{
	struct json j = { .out = out, .lines = 2 };
	const struct session_facts *f = ex->f;
	char why[WHY_CAP];
	json_open(&j, NULL, '{');
	json_text(&j, "schema", "gua-explain-1");
	json_number(&j, "pid", ex->x->what.pid ? (double)ex->x->what.pid : (double)NAN, 0);
	json_label(&j, "lease", ex->x->what.lease);
	json_text(&j, "session", f->session->key);
	json_text(&j, "kind", session_kind_names[f->session->kind]);
	json_text(&j, "use", session_use_names[f->session->use]);
	json_text(&j, "user", f->session->user);
	json_bool(&j, "observed", f->observed);
	json_bool(&j, "idle", f->idle);
	json_moment(&j, "idle_since", f->idle ? f->idle_since_ms : -1);
	json_number(&j, "idle_seconds", f->idle ? (double)f->clock_ms / 1000 : NAN, 3);
	add_use_json(&j, ex);
	json_known(&j, "held_bytes", f->mem_bytes);
	json_text(&j, "exempt", f->exemption);
	json_open(&j, "exemptions", '[');
	add_exemptions(&(struct exemptions){ .ex = ex, .json = &j });
	json_close(&j, ']');
	json_moment(&j, "kept_until", f->kept_until_ms);
	json_open(&j, "rules", '[');
	for (size_t i = 0; i < rules_count(&ex->x->policy); i++) {
		const struct config_rule *rule = rules_get(&ex->x->policy, i);
		bool yes = rules_applies(&ex->x->policy, rule, f, ex->now->now_ms, why);
		if (ex->x->uid && !yes)
			continue;
		json_open(&j, NULL, '{');
		json_text(&j, "rule", rule->name);
		json_bool(&j, "matches", yes);
		json_label(&j, "why_not", why);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_text(&j, "rule", ex->v.rule ? ex->v.rule->name : NULL);
	json_text(&j, "stage", policy_stage_names[ex->state.stage]);
	json_text(&j, "step", policy_step_names[ex->v.step]);
	json_bool(&j, "would", ex->v.would);
	json_text(&j, "why_nothing", ex->v.step ? NULL : policy_hold_texts[ex->v.hold]);
	json_number(&j, "next_idle_seconds",
		ex->v.next_clock_ms < 0 ? NAN : (double)ex->v.next_clock_ms / 1000, 3);
	json_text(&j, "next_stage",
		ex->seen.next == STAGE_NONE ? NULL : policy_stage_names[ex->seen.next]);
	json_text(&j, "undelivered", ex->undelivered.len ? str_text(&ex->undelivered) : NULL);
	json_close(&j, '}');
}

static int take_undelivered(void *context, const struct policy_notice *n)
{
	struct explanation *ex = context;
	char safe[256];
	const char *why =
		n->admitted ? n->result : "the daily limit of notices to this user is reached";
	str_escape(safe, sizeof(safe), why, strlen(why));
	str_addf(&ex->undelivered, "%s%s: %s", ex->undelivered.len ? "; " : "", n->channel,
		*safe ? safe : "not tried yet");
	return 0;
}

/* Reads what gua enforce run has stored about the session, if it has run and policy.db is
 * readable. */
static void read_state(struct explanation *ex)
{
	struct explain_question *x = ex->x;
	struct policy_file *file = x->file;
	int64_t now_ms = ex->now->now_ms;
	const char *key = ex->f->session->key;
	struct session_facts *f = &ex->now->facts[ex->session];
	struct policy_orders orders = { .armed_until_ms = -1, .stopped_ms = -1 };
	ex->state = POLICY_STATE_NONE;
	if (file) {
		policy_file_state(file, key, &ex->state, NULL);
		policy_file_kept_until(file, key, now_ms, &f->kept_until_ms, NULL);
		policy_file_orders(file, now_ms, &orders, NULL);
		if (judge_was_warned(ex->state.stage) && ex->state.delivered_ms < 0) {
			policy_notice_delivered(file, key, &ex->state, &f->delivered_ms, NULL);
			policy_notice_waiting(file, key, take_undelivered, ex, NULL);
		}
	}
	ex->armed = orders.armed_until_ms > now_ms;
	ex->stopped = orders.stopped_ms >= 0;
	x->policy.may_end = ex->armed && rules_check_trust(x->settings, NULL) == 0;
	f->computes = ex->state.stage == STAGE_COMPUTING;
}

/* A process of the session that is asked about; NULL: there is none, and `e` says so. */
static const struct idle_process *find_session(const struct explain_question *x, struct err *e)
{
	const struct idle_process *p = NULL;
	for (size_t i = 0; (p = facts_now_find(x->now, &x->what, &i)) != NULL; i++)
		if (x->uid == 0 || p->uid == x->uid)
			return p;
	if (*x->what.lease)
		err_set(e, ERR_NOTHING, "%s: " EXPLAIN_NO_LEASE, x->what.lease);
	else if (x->uid)
		err_set(e, ERR_NOTHING,
			"no process %u of yours holds a card at the recorder's last tick",
			x->what.pid);
	else
		err_set(e, ERR_NOTHING,
			"process %u holds no card at the last tick; 'gua who' lists those that "
			"do",
			x->what.pid);
	return NULL;
}

int explain(struct explain_question *x, struct str *out, struct err *e)
{
	struct facts_now *now = x->now;
	if (!now->history.any_run || (!now->history.running && now->history.n_sessions == 0))
		return err_set(e, ERR_WORLD,
			"no recorder is running on %s, so the present is not known; start one "
			"with 'gua start'",
			now->db);
	const struct idle_process *process = find_session(x, e);
	if (!process)
		return e->code;
	struct session_facts *f = &now->facts[process->session];
	struct explanation ex = { .x = x, .now = now, .session = process->session, .f = f };
	f->kept_until_ms = f->delivered_ms = -1; /* may be from an earlier question */
	x->policy.history = &now->history;
	read_state(&ex);
	/* The session is judged twice: as it is now, and as if the present were known. */
	struct session_facts seen = *f;
	seen.observed = true;
	seen.use_unknown = false;
	ex.v = judge(&x->policy, f, &ex.state, now->now_ms);
	ex.seen = judge(&x->policy, &seen, &ex.state, now->now_ms);
	bool steps = ex.v.step == STEP_WARN || ex.v.step == STEP_END;
	bool waits =
		ex.v.step == STEP_NONE && (ex.v.hold == HOLD_EARLY || ex.v.hold == HOLD_QUIET);
	if (ex.stopped && (steps || waits)) {
		ex.v.step = STEP_NONE;
		ex.v.hold = HOLD_BREAKER;
	}
	if (x->json)
		add_json(out, &ex);
	else
		add_text(out, &ex);
	str_finish(&ex.undelivered);
	return 0;
}
