/* gua enforce explain: rule by rule, what happens to a session and why. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/timetext.h"
#include "cmd/enforce.h"
#include "policy/judge.h"
#include "policy/present.h"
#include "query/report_parts.h"
#include "render/json.h"
#include "store/policy_more.h"

struct explanation {
	const struct enforce *x;
	struct present *now;
	uint32_t pid;
	size_t session;
	const struct session_facts *f;
	struct policy_state state; /* stored; STAGE_NONE without policy.db */
	struct verdict v;
};

static void mib_text(char *dst, size_t cap, int64_t bytes)
{
	if (bytes < 0)
		snprintf(dst, cap, "an unknown amount");
	else if (bytes >= INT64_C(1) << 30)
		snprintf(dst, cap, "%.1f GiB", (double)bytes / (1 << 30));
	else
		snprintf(dst, cap, "%.0f MiB", (double)bytes / (1 << 20));
}

static void add_evidence(struct str *out, const struct explanation *ex)
{
	const struct idle_history *h = &ex->now->history;
	struct open_spans spans = present_spans(ex->now, ex->session);
	char held[48], since[48], seen[48], last[48], label[CARD_LABEL_CAP];
	enforce_moment(ex->x, last, sizeof(last), h->last_tick_ms);
	for (size_t i = 0; i < spans.n; i++) {
		const struct idle_span *s = &h->spans[spans.items[i]];
		card_label(label, sizeof(label), &h->cards[s->card]);
		mib_text(held, sizeof(held), s->mem_kib < 0 ? -1 : s->mem_kib * 1024);
		enforce_moment(ex->x, since, sizeof(since), s->begin_ms);
		duration_text(seen, sizeof(seen), s->end_ms - s->begin_ms - s->unobserved_ms);
		str_addf(out, "  process %u holds %s on GPU %s, idle since %s: %s of it seen",
			h->processes[s->process].pid, held, label, since, seen);
		duration_text(seen, sizeof(seen), s->unobserved_ms);
		str_addf(out, ", %s not observed\n", seen);
	}
	if (!spans.n)
		str_add(out, "  it is not idle on any card\n");
	if (ex->f->idle) {
		enforce_moment(ex->x, since, sizeof(since), ex->f->idle_since_ms);
		duration_text(seen, sizeof(seen), ex->f->clock_ms);
		str_addf(out, "  idle clock %s, since its last use at %s\n", seen, since);
	}
	str_addf(out, "  last reading %s%s\n", last,
		ex->f->observed ? "" : ": too old, so the clock stands still");
}

static void add_exemptions(struct str *out, const struct explanation *ex)
{
	const struct policy *p = &ex->x->policy;
	const struct config_exemption *all = p->config->exemptions.items;
	char why[WHY_CAP];
	str_addf(out, "  %s  built-in%s%s\n", ex->f->exemption ? "yes" : "no ",
		ex->f->exemption ? ": " : "", ex->f->exemption ? ex->f->exemption : "");
	for (size_t i = 0; i < p->config->exemptions.n; i++) {
		const char *fault = policy_exemption_fault(&all[i], ex->x->now_ms, p->utc);
		bool yes =
			!fault && policy_matches(p, &all[i].match, ex->f, ex->x->now_ms, why);
		str_addf(out, "  %s  [exempt %s]", yes ? "yes" : "no ", all[i].name);
		if (yes)
			str_addf(out, ": asked for by %s, until %04d-%02d-%02d\n", all[i].owner,
				all[i].until / 10000, all[i].until / 100 % 100,
				all[i].until % 100);
		else
			str_addf(out, ": %s\n", fault ? fault : why);
	}
	if (ex->f->kept_until_ms > ex->x->now_ms) {
		char until[48];
		enforce_moment(ex->x, until, sizeof(until), ex->f->kept_until_ms);
		str_addf(out, "  yes  its user keeps it until %s\n", until);
	} else {
		str_add(out, "  no   its user does not keep it\n");
	}
}

static void add_times(struct str *out, const struct policy_times *t, const char *level)
{
	char warn[48], again[48], end[48];
	duration_text(warn, sizeof(warn), t->warn_ms);
	duration_text(again, sizeof(again), t->again_ms);
	duration_text(end, sizeof(end), t->end_ms);
	str_addf(out, ": warn after %s", warn);
	if (t->again_ms != AT_NEVER)
		str_addf(out, " and %s", again);
	if (t->end_ms == AT_NEVER)
		str_add(out, ", never end");
	else
		str_addf(out, ", end after %s", end);
	str_addf(out, "; level %s\n", level);
}

static void add_rules(struct str *out, const struct explanation *ex)
{
	const struct policy *p = &ex->x->policy;
	char why[WHY_CAP];
	bool found = false;
	for (size_t i = 0; i < policy_rules_count(p); i++) {
		const struct config_rule *rule = policy_rule(p, i);
		bool builtin = i + 1 == policy_rules_count(p);
		const char *name = builtin ? "" : rule->name;
		bool yes = policy_matches(p, &rule->match, ex->f, ex->x->now_ms, why);
		str_addf(out, "  %s  %s%s%s",
			found ? "-  "
			: yes ? "yes"
			      : "no ",
			builtin ? "the built-in rule 'default'" : "[rule ", name,
			builtin ? "" : "]");
		if (found)
			str_add(out, ": not asked, because another rule matches\n");
		else if (yes) {
			struct policy_times times = policy_times(rule, ex->f->session->use);
			add_times(out, &times, rule->level);
		} else {
			str_addf(out, ": %s\n", why);
		}
		found |= yes;
	}
}

static void add_verdict(struct str *out, const struct explanation *ex)
{
	static const char *const nexts[POLICY_STAGES] = {
		[STAGE_WARN] = "the first warning",
		[STAGE_AGAIN] = "the second warning",
		[STAGE_FINAL] = "the final notice",
		[STAGE_ENDING] = "the end",
	};
	char at[48], in[48];
	const struct verdict *v = &ex->v;
	if (ex->state.stage != STAGE_NONE) {
		enforce_moment(ex->x, at, sizeof(at), ex->state.stage_ms);
		str_addf(out, "  stage: %s, since %s%s\n", policy_stage_names[ex->state.stage],
			at, ex->state.level == LEVEL_OBSERVE ? " (written down only)" : "");
	} else {
		str_add(out, "  stage: none yet\n");
	}
	if (v->step == STEP_NONE || v->hold != HOLD_NOTHING)
		str_addf(out, "  nothing happens now: %s\n", policy_hold_texts[v->hold]);
	else
		str_addf(out, "  the next pass takes a step: %s%s\n",
			v->would ? "it would " : "", policy_step_names[v->step]);
	if (v->hold == HOLD_EARLY && nexts[v->next]) {
		duration_text(in, sizeof(in), v->next_clock_ms - ex->f->clock_ms);
		duration_text(at, sizeof(at), v->next_clock_ms);
		str_addf(out, "  %s comes at %s of idle time: in %s, if it stays idle\n",
			nexts[v->next], at, in);
	}
}

static void add_text(struct str *out, const struct explanation *ex)
{
	const struct idle_session *s = ex->f->session;
	char what[REPORT_WHAT_CAP];
	report_show_what(what, s->texts);
	str_addf(out, "Process %u: %s\n", ex->pid, what);
	str_addf(out, "Session: %s (%s, %s)\n", s->key, session_kind_names[s->kind],
		session_use_names[s->use]);
	str_add(out, "Evidence\n");
	add_evidence(out, ex);
	str_add(out, "Exemptions\n");
	add_exemptions(out, ex);
	str_add(out, "Rules, the first that matches counts\n");
	add_rules(out, ex);
	str_add(out, "What happens\n");
	add_verdict(out, ex);
	if (!ex->x->policy.enforce)
		str_add(out,
			"  the mode is observe: steps are written down, and nothing else\n");
}

static void add_json(struct str *out, const struct explanation *ex)
{
	struct json j = { .out = out, .lines = 2 };
	const struct session_facts *f = ex->f;
	char why[WHY_CAP];
	json_open(&j, NULL, '{');
	json_text(&j, "schema", "gua-explain-1");
	json_number(&j, "pid", ex->pid, 0);
	json_text(&j, "session", f->session->key);
	json_text(&j, "kind", session_kind_names[f->session->kind]);
	json_text(&j, "use", session_use_names[f->session->use]);
	json_text(&j, "user", f->session->user);
	json_bool(&j, "observed", f->observed);
	json_bool(&j, "idle", f->idle);
	json_moment(&j, "idle_since", f->idle ? f->idle_since_ms : -1);
	json_number(&j, "idle_seconds", f->idle ? (double)f->clock_ms / 1000 : NAN, 3);
	json_number(&j, "held_bytes", f->mem_bytes < 0 ? NAN : (double)f->mem_bytes, 0);
	json_text(&j, "exempt", f->exemption);
	json_moment(&j, "kept_until", f->kept_until_ms);
	json_open(&j, "rules", '[');
	for (size_t i = 0; i < policy_rules_count(&ex->x->policy); i++) {
		const struct config_rule *rule = policy_rule(&ex->x->policy, i);
		json_open(&j, NULL, '{');
		json_text(&j, "rule", rule->name);
		json_bool(&j, "matches",
			policy_matches(&ex->x->policy, &rule->match, f, ex->x->now_ms, why));
		json_text(&j, "why_not", *why ? why : NULL);
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
	json_close(&j, '}');
}

static int parse_pid(const char *text, uint32_t *pid, struct err *e)
{
	char *end = NULL;
	unsigned long long number = text ? strtoull(text, &end, 10) : 0;
	if (!text)
		return err_set(e, ERR_USAGE, "explain needs a pid");
	if (!number || *end || number > INT32_MAX || *text == '-')
		return err_set(e, ERR_USAGE, "'%s' is not a pid", text);
	*pid = (uint32_t)number;
	return 0;
}

static int look(struct enforce *x, struct explanation *ex, struct present *now, struct err *e)
{
	int rc = present_read(now, e);
	if (rc)
		return rc;
	if (!now->history.any_run || (!now->history.running && now->history.n_sessions == 0))
		return err_set(e, ERR_WORLD,
			"no recorder is running on %s, so the present is not known; start one "
			"with 'gua start'",
			x->db);
	int64_t session = present_find(now, ex->pid);
	if (session < 0)
		return err_set(e, ERR_NOTHING,
			"process %u holds no card at the last tick; 'gua who' lists those that "
			"do",
			ex->pid);
	x->policy.history = &now->history;
	ex->session = (size_t)session;
	ex->f = &now->facts[session];
	return 0;
}

static int take_keep(void *context, const struct policy_keep *k)
{
	struct explanation *ex = context;
	struct session_facts *f = &ex->now->facts[ex->session];
	if (strcmp(k->session, f->session->key) == 0 && k->until_ms > f->kept_until_ms)
		f->kept_until_ms = k->until_ms;
	return 0;
}

/* What gua enforce run has stored of the session, if it has run and may be read. */
static void read_state(const struct enforce *x, struct explanation *ex)
{
	struct policy_file *file = NULL;
	ex->state = POLICY_STATE_NONE;
	if (policy_file_open(&file, x->policy_db, false, NULL) == 0) {
		struct policy_span now = { x->now_ms, x->now_ms + 1 };
		policy_file_state(file, ex->f->session->key, &ex->state, NULL);
		policy_file_keeps(file, now, take_keep, ex, NULL);
	}
	policy_file_close(file);
}

int enforce_explain(struct enforce *x)
{
	struct err e = { 0 };
	struct str out = { 0 };
	struct present now = {
		.db = x->db, .root = x->o->root ? x->o->root : "", .now_ms = x->now_ms
	};
	struct explanation ex = { .x = x, .now = &now };
	int rc = parse_pid(x->operand, &ex.pid, &e);
	if (rc)
		return cmd_fail(x->self, &e);
	rc = look(x, &ex, &now, &e);
	if (rc == 0) {
		read_state(x, &ex);
		ex.v = judge(&x->policy, ex.f, &ex.state, x->now_ms);
		if (x->o->json)
			add_json(&out, &ex);
		else
			add_text(&out, &ex);
	}
	present_finish(&now);
	return rc ? cmd_fail(x->self, &e) : cmd_print(x->self, &out);
}
