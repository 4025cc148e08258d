/* gua enforce log and status: what was done, and how far sessions have gone. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/timetext.h"
#include "cmd/enforce.h"
#include "cmd/terminal.h"
#include "policy/trust.h"
#include "query/report_parts.h"
#include "render/rows.h"
#include "render/text.h"
#include "store/policy_more.h"

enum { UNCUT_COLUMNS = 2000 };

/* One step. */
struct log_line {
	const char *step, *stage, *mode, *rule, *session, *kind, *user, *pids, *cards,
		*evidence, *result, *config, *actor;
	int64_t at_ms, uid, held_kib, idle_since_ms;
	double idle_ms, given_ms;
	char what[32];
};

#define OF(member) offsetof(struct log_line, member)
static const struct column log_columns[] = {
	{ .key = "at", .title = "time", VALUE(MOMENT, get_known, OF(at_ms)) },
	{ .key = "step", TEXT(get_string, OF(step)) },
	{ .title = "step", TEXT(get_chars, OF(what)) },
	{ .key = "stage", TEXT(get_string, OF(stage)) },
	{ .key = "mode", TEXT(get_string, OF(mode)) },
	{ .key = "rule", .title = "rule", .optional = true, TEXT(get_string, OF(rule)) },
	{ .key = "user", .title = "user", TEXT(get_string, OF(user)) },
	{ .key = "uid", VALUE(COUNT, get_known, OF(uid)) },
	{ .key = "session", .title = "session", .width = -36, TEXT(get_string, OF(session)) },
	{ .key = "kind", TEXT(get_string, OF(kind)) },
	{ .key = "pids", TEXT(get_string, OF(pids)) },
	{ .key = "cards", TEXT(get_string, OF(cards)) },
	{ .key = "held_bytes", .title = "held", VALUE(KIB, get_known, OF(held_kib)) },
	{ .key = "idle_since", VALUE(MOMENT, get_known, OF(idle_since_ms)) },
	{ .key = "idle_seconds", .title = "idle", VALUE(LENGTH, get_double, OF(idle_ms)) },
	{ .key = "given_back_gpu_seconds", VALUE(GPU_MS, get_double, OF(given_ms)) },
	{ .key = "evidence",
		.title = "evidence",
		.flexible = true,
		.wraps = true,
		TEXT(get_string, OF(evidence)) },
	{ .key = "result", TEXT(get_string, OF(result)) },
	{ .key = "config", TEXT(get_string, OF(config)) },
	{ .key = "actor", TEXT(get_string, OF(actor)) },
};
#undef OF

static double known(int64_t ms)
{
	return ms < 0 ? NAN : (double)ms;
}

static int add_action(void *context, const struct policy_action *a)
{
	struct log_line line = { .step = a->step_name,
		.stage = a->stage_name,
		.mode = a->would ? "observe" : "enforce",
		.rule = a->rule,
		.session = a->session,
		.kind = a->kind,
		.user = a->user,
		.pids = a->pids,
		.cards = a->cards,
		.evidence = a->evidence,
		.result = a->result,
		.config = a->config,
		.actor = a->actor,
		.at_ms = a->at_ms,
		.uid = a->uid,
		.held_kib = a->held_bytes < 0 ? -1 : a->held_bytes / 1024,
		.idle_since_ms = a->idle_since_ms,
		.idle_ms = known(a->idle_ms),
		.given_ms = known(a->given_back_ms) };
	bool step = a->step == STEP_WARN || a->step == STEP_END;
	snprintf(line.what, sizeof(line.what), "%s%s", a->would && step ? "would " : "",
		a->step == STEP_WARN ? a->stage_name : a->step_name);
	table_add(context, &line);
	return 0;
}

static struct text_style style_of(const struct enforce *x)
{
	size_t columns = terminal_size().columns;
	return (struct text_style){ .columns = columns		       ? columns
					       : isatty(STDOUT_FILENO) ? 80
								       : UNCUT_COLUMNS,
		.ascii = !terminal_is_utf8(),
		.color = terminal_has_color(),
		.utc = x->o->utc };
}

static int read_log(struct enforce *x, struct table *t, struct err *e)
{
	struct policy_file *file = NULL;
	struct window window = { .until_ms = x->now_ms + 1 };
	struct window_words words = x->o->window;
	if (!words.since && !words.last)
		words.last = "30d";
	int rc = window_parse(&window, &words, x->now_ms, x->o->utc, e);
	if (rc == 0)
		rc = policy_file_open(&file, x->policy_db, false, e);
	if (rc == 0)
		rc = policy_file_actions(file,
			(struct policy_span){ window.since_ms, window.until_ms }, add_action, t,
			e);
	policy_file_close(file);
	return rc;
}

int enforce_log(struct enforce *x)
{
	struct err e = { 0 };
	struct str out = { 0 };
	struct table t = TABLE_OF(log_columns);
	struct text_style style = style_of(x);
	int rc = read_log(x, &t, &e);
	if (rc == 0 && x->o->json) {
		struct json j = { .out = &out, .lines = 2 };
		json_open(&j, NULL, '{');
		json_text(&j, "schema", "gua-enforce-log-1");
		json_table(&j, "actions", &t);
		json_close(&j, '}');
	} else if (rc == 0 && t.n_rows) {
		text_add_table(&out, &t, &style);
	} else if (rc == 0) {
		str_add(&out, "nothing was done in this time\n");
	}
	table_finish(&t);
	return rc ? cmd_fail(x->self, &e) : cmd_print(x->self, &out);
}

/* A session that has a stage. */
struct stage_line {
	const char *user, *stage, *rule, *session;
	char shown[48];
	int64_t stage_ms, idle_since_ms, delivered_ms;
	double would;
};

#define OF(member) offsetof(struct stage_line, member)
static const struct column stage_columns[] = {
	{ .key = "user", .title = "user", TEXT(get_string, OF(user)) },
	{ .key = "stage", TEXT(get_string, OF(stage)) },
	{ .title = "stage", TEXT(get_chars, OF(shown)) },
	{ .key = "would", VALUE(BOOL, get_double, OF(would)) },
	{ .key = "since", .title = "since", VALUE(MOMENT, get_known, OF(stage_ms)) },
	{ .key = "delivered",
		.title = "delivered",
		VALUE(MOMENT, get_known, OF(delivered_ms)) },
	{ .key = "idle_since",
		.title = "idle since",
		VALUE(MOMENT, get_known, OF(idle_since_ms)) },
	{ .key = "rule", .title = "rule", TEXT(get_string, OF(rule)) },
	{ .key = "session",
		.title = "session",
		.flexible = true,
		TEXT(get_string, OF(session)) },
};
#undef OF

static int add_stage(
	void *context, const char *key, const char *user, const struct policy_state *s)
{
	struct stage_line line = { .user = user,
		.stage = policy_stage_names[s->stage],
		.rule = s->rule,
		.session = key,
		.stage_ms = s->stage_ms,
		.idle_since_ms = s->idle_since_ms,
		.delivered_ms = s->delivered_ms,
		.would = s->level == LEVEL_OBSERVE };
	snprintf(line.shown, sizeof(line.shown), "%s%s", line.would > 0 ? "would: " : "",
		line.stage);
	table_add(context, &line);
	return 0;
}

/* What is known beside the sessions. */
struct status {
	const char *mode;
	struct err untrusted; /* code 0: the configuration may end sessions */
	int64_t armed_until_ms;
	char armed_by[64];
	struct policy_pass pass;
	struct table stages;
};

static int read_status(struct enforce *x, struct status *s, struct err *e)
{
	struct policy_file *file = NULL;
	s->mode = x->conf.values.policy.mode;
	s->armed_until_ms = s->pass.at_ms = -1;
	trust_settings(&x->conf.settings, &s->untrusted);
	int rc = policy_file_open(&file, x->policy_db, false, e);
	if (rc == ERR_NOTHING)
		return 0;
	if (rc == 0)
		rc = policy_file_armed(file, x->now_ms, &s->armed_until_ms, s->armed_by, e);
	if (rc == 0)
		rc = policy_file_pass(file, &s->pass, e);
	if (rc == 0)
		rc = policy_file_sessions(file, add_stage, &s->stages, e);
	policy_file_close(file);
	return rc;
}

static void add_status(struct str *out, const struct enforce *x, const struct status *s)
{
	char until[48], pass[48];
	struct text_style style = style_of(x);
	bool enforce = strcmp(s->mode, "enforce") == 0;
	enforce_moment(x, until, sizeof(until), s->armed_until_ms);
	enforce_moment(x, pass, sizeof(pass), s->pass.at_ms);
	str_addf(out, "mode       %s%s\n", s->mode,
		enforce ? "" : ": steps are written down, and nothing else happens");
	if (s->armed_until_ms >= 0)
		str_addf(out, "armed      until %s, by %s\n", until, s->armed_by);
	else
		str_add(out, "armed      no: nothing is ended\n");
	if (s->untrusted.code)
		str_addf(out, "config     may not end sessions: %s\n", s->untrusted.text);
	if (s->pass.at_ms < 0)
		str_add(out, "last pass  none: 'gua enforce run' has not run here\n");
	else
		str_addf(out, "last pass  %s: %lld sessions, %lld of them idle%s%s\n", pass,
			(long long)s->pass.sessions, (long long)s->pass.idle,
			*s->pass.note ? "; " : "", s->pass.note);
	if (s->stages.n_rows) {
		str_add(out, "\n");
		text_add_table(out, &s->stages, &style);
	} else {
		str_add(out, "sessions   none was warned\n");
	}
}

static void add_status_json(struct str *out, const struct status *s)
{
	struct json j = { .out = out, .lines = 2 };
	json_open(&j, NULL, '{');
	json_text(&j, "schema", "gua-enforce-status-1");
	json_text(&j, "mode", s->mode);
	json_text(&j, "config_untrusted", s->untrusted.code ? s->untrusted.text : NULL);
	json_moment(&j, "armed_until", s->armed_until_ms);
	json_text(&j, "armed_by", s->armed_until_ms < 0 ? NULL : s->armed_by);
	json_moment(&j, "last_pass", s->pass.at_ms);
	json_number(
		&j, "sessions_holding", s->pass.at_ms < 0 ? NAN : (double)s->pass.sessions, 0);
	json_number(&j, "sessions_idle", s->pass.at_ms < 0 ? NAN : (double)s->pass.idle, 0);
	json_text(&j, "note", *s->pass.note ? s->pass.note : NULL);
	json_table(&j, "sessions", &s->stages);
	json_close(&j, '}');
}

int enforce_status(struct enforce *x)
{
	struct err e = { 0 };
	struct str out = { 0 };
	struct status s = { .stages = TABLE_OF(stage_columns) };
	int rc = read_status(x, &s, &e);
	if (rc == 0 && x->o->json)
		add_status_json(&out, &s);
	else if (rc == 0)
		add_status(&out, x, &s);
	table_finish(&s.stages);
	return rc ? cmd_fail(x->self, &e) : cmd_print(x->self, &out);
}
