/* gua enforce log and status: what was done, and how far sessions have gone. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/enforce.h"
#include "cmd/share/terminal.h"
#include "model/session.h"
#include "policy/channel.h"
#include "policy/rules.h"
#include "report/report_policy.h"
#include "report/report_parts.h"
#include "render/documents.h"
#include "render/rows.h"
#include "render/text.h"
#include "store/policy/policy_file.h"
#include "store/policy/policy_notice.h"

enum { UNCUT_COLUMNS = 2000 };

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
	struct policy_span span;
	int rc = report_policy_window(&span, &x->o->window, x->now_ms, x->o->utc, e);
	if (rc == 0)
		rc = policy_file_open(&file, x->policy_db, false, e);
	if (rc == 0)
		rc = report_policy_add_log(t, file, span, e);
	policy_file_close(file);
	return rc;
}

int enforce_log(struct enforce *x)
{
	struct err e = { 0 };
	struct str out = { 0 };
	struct table t = report_policy_log();
	struct text_style style = style_of(x);
	int rc = read_log(x, &t, &e);
	if (rc == 0 && x->o->json)
		documents_policy_log(&out, &t);
	else if (rc == 0 && t.n_rows)
		text_add_table(&out, &t, &style);
	else if (rc == 0)
		str_add(&out, "nothing was done in this time\n");
	table_finish(&t);
	return rc ? cmd_fail(x->self, &e) : cmd_print(x->self, &out);
}

/* A session that has a stage. */
struct stage_line {
	const char *user, *stage, *rule, *session;
	char shown[48], name[SESSION_KEY_CAP];
	int64_t stage_ms, idle_since_ms, delivered_ms;
	double would;
};

#define OF(member) offsetof(struct stage_line, member)
static const struct column stage_columns[] = {
	{ .key = "user", .title = "user", TEXT(table_get_string, OF(user)) },
	{ .key = "stage", TEXT(table_get_string, OF(stage)) },
	{ .title = "stage", TEXT(table_get_chars, OF(shown)) },
	{ .key = "would", VALUE(BOOL, table_get_double, OF(would)) },
	{ .key = "since", .title = "since", VALUE(MOMENT, table_get_known, OF(stage_ms)) },
	{ .key = "delivered",
		.title = "delivered",
		VALUE(MOMENT, table_get_known, OF(delivered_ms)) },
	{ .key = "idle_since",
		.title = "idle since",
		VALUE(MOMENT, table_get_known, OF(idle_since_ms)) },
	{ .key = "rule", .title = "rule", TEXT(table_get_string, OF(rule)) },
	{ .key = "session", TEXT(table_get_string, OF(session)) },
	{ .title = "session", .flexible = true, TEXT(table_get_chars, OF(name)) },
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
	session_shown(line.name, sizeof(line.name), key, false);
	table_add(context, &line);
	return 0;
}

/* What is known beside the sessions. */
struct status {
	const char *mode;
	struct err untrusted; /* code 0: the configuration may end sessions */
	int64_t armed_until_ms;
	char armed_by[64];
	int64_t stopped_ms; /* by the breaker; -1: not */
	char stopped_why[256];
	char missed[CHANNEL_REACH_CAP]; /* whom notices do not reach; "": they reach all */
	struct str untold;		/* who has not got a notice, and why, in lines */
	struct policy_pass pass;
	struct table stages;
};

/* A notice that was tried and has not arrived. */
static int take_untold(void *context, const struct policy_notice *n)
{
	struct str *out = context;
	char name[SESSION_KEY_CAP];
	session_shown(name, sizeof(name), n->session, true);
	if (*n->result)
		str_addf(out, "%s has not been told by %s: %s\n", name, n->channel, n->result);
	return 0;
}

/* Whether a rule tells people anything. */
static bool tells(const struct enforce *x)
{
	for (size_t i = 0; x->policy.enforce && i < rules_count(&x->policy); i++)
		if (rules_level(rules_get(&x->policy, i)) != LEVEL_OBSERVE)
			return true;
	return false;
}

static int read_status(struct enforce *x, struct status *s, struct err *e)
{
	struct policy_file *file = NULL;
	s->mode = x->conf.values.policy.mode;
	s->armed_until_ms = s->pass.at_ms = s->stopped_ms = -1;
	rules_check_trust(&x->conf.settings, &s->untrusted);
	if (!tells(x) || !channel_misses(&x->conf.values.notices, s->missed))
		s->missed[0] = '\0';
	int rc = policy_file_open(&file, x->policy_db, false, e);
	if (rc == ERR_NOTHING)
		return 0;
	if (rc == 0)
		rc = policy_notice_waiting(file, "", take_untold, &s->untold, e);
	if (rc == 0)
		rc = policy_file_armed(file, x->now_ms, &s->armed_until_ms, s->armed_by, e);
	if (rc == 0)
		rc = policy_file_tripped(file, &s->stopped_ms, s->stopped_why, e);
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
	if (s->stopped_ms >= 0) {
		char since[48];
		enforce_moment(x, since, sizeof(since), s->stopped_ms);
		str_addf(out, "STOPPED    since %s: %s\n", since, s->stopped_why);
	}
	str_addf(out, "mode       %s%s\n", s->mode,
		enforce ? "" : ": steps are written down, and nothing else happens");
	if (s->armed_until_ms >= 0)
		str_addf(out, "armed      until %s, by %s\n", until, s->armed_by);
	else
		str_add(out, "armed      no: nothing is ended\n");
	if (s->untrusted.code)
		str_addf(out, "config     may not end sessions: %s\n", s->untrusted.text);
	if (*s->missed)
		str_addf(out, "notices    %s\n", s->missed);
	for (const char *at = str_text(&s->untold); *at;) {
		size_t len = strcspn(at, "\n");
		str_addf(out, "untold     %.*s\n", (int)len, at);
		at += len + (at[len] == '\n');
	}
	if (s->pass.at_ms < 0)
		str_add(out, "last pass  none: 'gua enforce run' has not run here\n");
	else
		str_addf(out, "last pass  %s: %lld session%s, %lld of them idle%s%s\n", pass,
			(long long)s->pass.sessions, s->pass.sessions == 1 ? "" : "s",
			(long long)s->pass.idle, *s->pass.note ? "; " : "", s->pass.note);
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
	json_text(&j, "unreachable", *s->missed ? s->missed : NULL);
	json_moment(&j, "armed_until", s->armed_until_ms);
	json_text(&j, "armed_by", s->armed_until_ms < 0 ? NULL : s->armed_by);
	json_moment(&j, "stopped_since", s->stopped_ms);
	json_text(&j, "stopped_why", s->stopped_ms < 0 ? NULL : s->stopped_why);
	json_moment(&j, "last_pass", s->pass.at_ms);
	json_number(
		&j, "sessions_holding", s->pass.at_ms < 0 ? NAN : (double)s->pass.sessions, 0);
	json_number(&j, "sessions_idle", s->pass.at_ms < 0 ? NAN : (double)s->pass.idle, 0);
	json_text(&j, "note", *s->pass.note ? s->pass.note : NULL);
	rows_json_table(&j, "sessions", &s->stages);
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
	str_finish(&s.untold);
	return rc ? cmd_fail(x->self, &e) : cmd_print(x->self, &out);
}
