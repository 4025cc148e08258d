/* gua enforce: warns, then ends, sessions that hold cards idle for too long. */
#include "cmd/enforce.h"

#include "base/nearest.h"
#include "cmd/share/choose_db.h"
#include "cmd/share/hand_over.h"
#include "cmd/share/mine.h"
#include "cmd/share/terminal.h"
#include "model/session.h"
#include "policy/channel.h"
#include "policy/explain.h"
#include "policy/user_talk.h"
#include "proc/proc.h"
#include "render/documents.h"
#include "render/rows.h"
#include "report/report_parts.h"
#include "report/report_policy.h"
#include "store/policy/policy_file.h"
#include "store/policy/policy_notice.h"

struct brief enforce_moment(const struct enforce *x, int64_t ms)
{
	return ms < 0 ? str_brief("-") : moment_text(ms, x->o->utc);
}

int enforce_socket(
	char path[PATH_MAX], const struct config_policy *config, const char *db, struct err *e)
{
	struct chosen_db chosen = { .path = "" };
	user_talk_path(path, PATH_MAX, config->socket, db ? db : SYSTEM_DB);
	if (db || config->socket || access(path, F_OK) == 0)
		return 0;
	int rc = choose_db_to_read(&chosen, e);
	if (rc == 0)
		user_talk_path(path, PATH_MAX, NULL, chosen.path);
	return rc;
}

static int run_log(struct enforce *x, struct err *e)
{
	struct str out = { 0 };
	struct table t = report_policy_log();
	struct text_style style = terminal_style(false, x->o->utc);
	struct policy_file *file = NULL;
	struct policy_span span;
	int rc = report_policy_window(&span, &x->o->window, x->now_ms, x->o->utc, e) ||
		 policy_file_open(&file, x->policy_db, false, e) ||
		 report_policy_add_log(&t, file, span, e);
	policy_file_close(file);
	if (rc == 0 && x->o->json)
		documents_policy_log(&out, &t);
	else if (rc == 0 && t.n_rows)
		text_add_table(&out, &t, &style);
	else if (rc == 0)
		str_add(&out, "nothing was done in this time\n");
	table_finish(&t);
	return rc ? e->code : cmd_print(x->self, &out);
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
	{ "user", "user", STRING(user) },
	{ "stage", STRING(stage) },
	{ .title = "stage", CHARS(shown) },
	{ "would", NUMBER(BOOL, would) },
	{ "since", "since", KNOWN(MOMENT, stage_ms) },
	{ "delivered", "delivered", KNOWN(MOMENT, delivered_ms) },
	{ "idle_since", "idle since", KNOWN(MOMENT, idle_since_ms) },
	{ "rule", "rule", STRING(rule) },
	{ "session", STRING(session) },
	{ .title = "session", .flexible = true, CHARS(name) },
};
#undef OF

static void add_stage(struct table *t, const struct policy_session *of)
{
	const struct policy_state *s = &of->state;
	struct stage_line line = { .user = of->user,
		.stage = policy_stage_names[s->stage],
		.rule = s->rule,
		.session = of->key,
		.stage_ms = s->stage_ms,
		.idle_since_ms = s->idle_since_ms,
		.delivered_ms = s->delivered_ms,
		.would = s->level == LEVEL_OBSERVE };
	snprintf(line.shown, sizeof(line.shown), "%s%s", line.would > 0 ? "would: " : "",
		line.stage);
	session_shown(line.name, sizeof(line.name), of->key, false);
	table_add(t, &line);
}

/* What the status shows besides the sessions. */
struct status {
	const char *mode;
	struct err untrusted; /* why the configuration may not end sessions; code 0: it may */
	struct policy_orders orders;
	char missed[CHANNEL_REACH_CAP]; /* the users that notices do not reach; "": none */
	struct str untold;		/* a line for each notice that was not delivered */
	struct policy_pass pass;
	struct table stages;
};

/* Adds a line about a notice that was tried and not delivered. */
static int take_untold(void *context, const struct policy_notice *n)
{
	struct str *out = context;
	char name[SESSION_KEY_CAP];
	session_shown(name, sizeof(name), n->session, true);
	if (*n->result)
		str_addf(out, "%s has not been told by %s: %s\n", name, n->channel, n->result);
	return 0;
}

static int read_status(struct enforce *x, struct status *s, struct err *e)
{
	struct policy_file *file = NULL;
	struct arena texts = { 0 };
	struct policy_session *session = NULL;
	bool tells = false; /* a rule warns users */
	s->mode = x->conf->values.policy.mode;
	s->orders.armed_until_ms = s->orders.stopped_ms = s->pass.at_ms = -1;
	rules_check_trust(&x->conf->settings, &s->untrusted);
	for (size_t i = 0; x->policy.enforce && i < rules_count(&x->policy); i++)
		tells |= rules_level(rules_get(&x->policy, i)) != LEVEL_OBSERVE;
	if (!tells || !channel_misses(&x->conf->values.notices, s->missed))
		s->missed[0] = '\0';
	int rc = policy_file_open(&file, x->policy_db, false, e);
	if (rc == ERR_NOTHING)
		return 0;
	if (rc || policy_notice_waiting(file, "", take_untold, &s->untold, e) ||
		policy_file_orders(file, x->now_ms, &s->orders, e) ||
		policy_file_pass(file, &s->pass, e) ||
		policy_file_sessions(file, &texts, &session, e))
		rc = e->code;
	for (; rc == 0 && session; session = session->next)
		add_stage(&s->stages, session);
	arena_finish(&texts);
	policy_file_close(file);
	return rc;
}

static void add_status(struct str *out, const struct enforce *x, const struct status *s)
{
	struct text_style style = terminal_style(false, x->o->utc);
	bool enforce = strcmp(s->mode, "enforce") == 0;
	if (s->orders.stopped_ms >= 0)
		str_addf(out, "STOPPED    since %s: %s\n",
			enforce_moment(x, s->orders.stopped_ms).text, s->orders.stopped_why);
	str_addf(out, "mode       %s%s\n", s->mode,
		enforce ? "" : ": steps are written down, and nothing else happens");
	if (s->orders.armed_until_ms >= 0)
		str_addf(out, "armed      until %s, by %s\n",
			enforce_moment(x, s->orders.armed_until_ms).text, s->orders.armed_by);
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
		str_addf(out, "last pass  %s: %lld session%s, %lld of them idle%s%s\n",
			enforce_moment(x, s->pass.at_ms).text, (long long)s->pass.sessions,
			s->pass.sessions == 1 ? "" : "s", (long long)s->pass.idle,
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
	json_label(&j, "unreachable", s->missed);
	json_moment(&j, "armed_until", s->orders.armed_until_ms);
	json_text(&j, "armed_by", s->orders.armed_until_ms < 0 ? NULL : s->orders.armed_by);
	json_moment(&j, "stopped_since", s->orders.stopped_ms);
	json_text(&j, "stopped_why", s->orders.stopped_ms < 0 ? NULL : s->orders.stopped_why);
	json_moment(&j, "last_pass", s->pass.at_ms);
	json_number(
		&j, "sessions_holding", s->pass.at_ms < 0 ? NAN : (double)s->pass.sessions, 0);
	json_number(&j, "sessions_idle", s->pass.at_ms < 0 ? NAN : (double)s->pass.idle, 0);
	json_label(&j, "note", s->pass.note);
	rows_json_table(&j, "sessions", &s->stages);
	json_close(&j, '}');
}

static int run_status(struct enforce *x, struct err *e)
{
	struct str out = { 0 };
	struct status s = { .stages = TABLE_OF(stage_columns) };
	int rc = read_status(x, &s, e);
	if (rc == 0 && x->o->json)
		add_status_json(&out, &s);
	else if (rc == 0)
		add_status(&out, x, &s);
	table_finish(&s.stages);
	str_finish(&s.untold);
	return rc ? e->code : cmd_print(x->self, &out);
}

#define MOST_MS (INT64_C(366) * 86400000)

/* Reads --until: a duration counts from now; a day counts to its end. */
static int read_until(const struct enforce *x, int64_t *until_ms, struct err *e)
{
	const char *text = x->o->window.until;
	int64_t ms = 0;
	if (!text)
		return err_set(e, ERR_USAGE,
			"arm needs --until and a day, as in --until 2026-12-31, or a time, as "
			"in --until 7d");
	if (duration_parse(text, &ms, NULL) == 0) {
		*until_ms = x->now_ms + ms;
	} else {
		int rc = moment_parse(text, x->now_ms, x->o->utc, until_ms, e);
		if (rc)
			return err_prefix(e, "--until");
		struct tm day = moment_fields(*until_ms, x->o->utc);
		if (!strpbrk(text, ":@")) {
			day.tm_mday++;
			*until_ms = moment_day_start(day, x->o->utc);
		}
	}
	if (*until_ms <= x->now_ms)
		return err_set(e, ERR_USAGE, "--until %s is in the past", text);
	if (*until_ms > x->now_ms + MOST_MS)
		return err_set(e, ERR_USAGE, "--until must be within a year");
	return 0;
}

/* Stores what an administrator decided, and a row of the log about it. Writes who that is.
 * `until_ms` is for STEP_ARMED. */
static int write_decision(struct enforce *x, enum policy_step step, int64_t until_ms,
	char actor[USER_CAP], struct err *e)
{
	struct policy_file *file = NULL;
	char hash[RULES_HASH_CAP], text[160] = "ending is forbidden";
	if (mine_actor(actor, e) || policy_file_open(&file, x->policy_db, true, e))
		return e->code;
	rules_hash(hash, &x->conf->settings);
	if (step == STEP_ARMED)
		snprintf(text, sizeof(text), "ending is allowed until %s",
			moment_iso(until_ms).text);
	else if (step == STEP_RESUMED)
		str_copy(text, sizeof(text), "the breaker was released");
	const struct policy_action a = { .at_ms = x->now_ms,
		.step = step,
		POLICY_ACTION_UNKNOWN,
		.evidence = text,
		.config = hash,
		.actor = actor };
	int rc = policy_file_begin(file, e);
	if (rc == 0)
		rc = step == STEP_RESUMED
			     ? policy_file_release(file, x->now_ms, actor, e)
			     : policy_file_arm(file, x->now_ms, until_ms, actor, e);
	if (rc == 0)
		rc = policy_file_add_action(file, &a, e);
	rc = policy_file_end(file, rc, e);
	policy_file_close(file);
	return rc;
}

/* Lists what else is missing before a session can be ended, and likely mistakes. */
static void add_missing(struct str *out, struct enforce *x)
{
	struct err why = { 0 };
	bool any = false;
	for (size_t i = 0; i < rules_count(&x->policy); i++) {
		const struct config_rule *rule = rules_get(&x->policy, i);
		char hasty[WHY_CAP];
		any |= rules_level(rule) == LEVEL_END;
		if (rules_is_hasty(rule, hasty))
			str_addf(out, "But %s.\n", hasty);
	}
	if (!x->policy.enforce)
		str_add(out, "But [policy] mode is observe: nothing is ended before it is "
			     "'enforce'.\n");
	if (!any)
		str_add(out, "But no rule has the level 'end'.\n");
	char missed[CHANNEL_REACH_CAP];
	if (any && channel_misses(&x->conf->values.notices, missed))
		str_addf(out, "But %s.\n", missed);
	if (rules_check_trust(&x->conf->settings, &why))
		str_addf(out, "But the configuration may not end sessions: %s.\n", why.text);
}

static int run_arm(struct enforce *x, struct err *e)
{
	struct str out = { 0 };
	char actor[USER_CAP] = "";
	int64_t until_ms = 0;
	if (read_until(x, &until_ms, e) || write_decision(x, STEP_ARMED, until_ms, actor, e))
		return e->code;
	str_addf(&out, "Sessions may be ended until %s (armed by %s).\n",
		enforce_moment(x, until_ms).text, actor);
	add_missing(&out, x);
	return cmd_print(x->self, &out);
}

static int run_disarm(struct enforce *x, struct err *e)
{
	struct str out = { 0 };
	char actor[USER_CAP] = "";
	if (write_decision(x, STEP_DISARMED, 0, actor, e))
		return e->code;
	str_add(&out, "No session is ended from now on.\n");
	return cmd_print(x->self, &out);
}

static int run_release(struct enforce *x, struct err *e)
{
	struct str out = { 0 };
	char actor[USER_CAP] = "";
	struct policy_orders before;
	struct policy_file *file = NULL;
	int rc = policy_file_open(&file, x->policy_db, false, e);
	if (rc == 0)
		rc = policy_file_orders(file, x->now_ms, &before, e);
	policy_file_close(file);
	if (rc == 0 && before.stopped_ms < 0) {
		str_add(&out, "Nothing to release: the breaker has not stopped anything.\n");
		return cmd_print(x->self, &out);
	}
	if (rc || write_decision(x, STEP_RESUMED, 0, actor, e))
		return e->code;
	str_addf(&out,
		"Released: sessions are warned and ended again. Stopped since %s:\n%s.\n",
		enforce_moment(x, before.stopped_ms).text, before.stopped_why);
	return cmd_print(x->self, &out);
}

int enforce_parse_asked(const char *text, struct facts_asked *what, struct err *e)
{
	char *end = NULL;
	unsigned long long number = strtoull(text, &end, 10);
	bool lease = strncmp(text, "slurm:", 6) == 0 || strncmp(text, "pod:", 4) == 0;
	if (lease)
		str_escape(what->lease, sizeof(what->lease), text, strlen(text));
	else if (!number || *end || number > INT32_MAX || *text == '-')
		return err_set(
			e, ERR_USAGE, "'%s' is not a pid, nor a lease such as slurm:4", text);
	what->pid = lease ? 0 : (uint32_t)number;
	return 0;
}

/* For users who may not read the store: the service explains their own sessions. */
static int ask_service(const struct enforce *x, const struct facts_asked *what, struct err *e)
{
	const struct user_request r = {
		.ask = USER_ASK_EXPLAIN, .what = *what, .json = x->o->json, .utc = x->o->utc
	};
	char path[PATH_MAX];
	struct str out = { 0 };
	struct user_answer answer = { 0 };
	int rc = enforce_socket(path, &x->conf->values.policy, x->o->db, e) ||
		 user_talk_ask(path, &r, &answer, e);
	if (rc == 0)
		str_add(&out, str_text(&answer.text));
	user_talk_finish_answer(&answer);
	return rc ? e->code : cmd_print(x->self, &out);
}

static int run_explain(struct enforce *x, struct err *e)
{
	struct str out = { 0 };
	struct facts_now now = {
		.db = x->db, .proc = -1, .now_ms = x->now_ms, .policy = &x->policy
	};
	struct explain_question q = { .now = &now,
		.policy = x->policy,
		.settings = &x->conf->settings,
		.json = x->o->json,
		.utc = x->o->utc };
	int rc = x->operand ? enforce_parse_asked(x->operand, &q.what, e)
			    : err_set(e, ERR_USAGE, "explain needs a pid or a lease");
	if (rc)
		return e->code;
	if (access(x->db, R_OK) != 0 && errno == EACCES)
		return ask_service(x, &q.what, e);
	proc_open(&now.proc, x->o->root ? x->o->root : "", NULL);
	rc = facts_now_read(&now, e);
	policy_file_open(&q.file, x->policy_db, false, NULL);
	if (rc == 0)
		rc = explain(&q, &out, e);
	policy_file_close(q.file);
	facts_now_finish(&now);
	file_close(now.proc);
	return rc ? e->code : cmd_print(x->self, &out);
}

#define AT(field) .offset = offsetof(struct enforce_options, field)
static const struct option_row rows[] = {
	{ OPTION_TEXT, 0, "db", "FILE", "store to read", AT(db) },
	{ OPTION_TEXT, 0, "policy-db", "FILE",
		"policy's own file (default: policy.db beside the store)", AT(policy_db) },
	WINDOW_OPTIONS(struct enforce_options, window, "30d ago", "now"),
	{ OPTION_FLAG, 0, "json", .help = "print JSON", AT(json) },
	{ OPTION_FLAG, 0, "utc", .help = "times in UTC instead of local time", AT(utc) },
	{ OPTION_FLAG, 0, "once", .help = "run: one pass, then exit", AT(once) },
	CONFIGURE_ROWS(struct enforce_options, conf),
	NOW_OPTION(struct enforce_options, now),
	{ OPTION_TEXT, 0, "clock", "HOW", "real, virtual, or a clock file", AT(clock),
		.hidden = true },
	{ OPTION_TEXT, 0, "root", "DIR", "look for etc below DIR", AT(root), .hidden = true },
	{ 0 },
};

static const struct subcommand {
	const char *name;
	int (*run)(struct enforce *x, struct err *e); /* NULL: in struct enforce_parts */
	bool operand;				      /* takes an operand */
} subcommands[] = {
	{ "run", NULL, false },
	{ "test-notice", NULL, true },
	{ "simulate", enforce_simulate, false },
	{ "explain", run_explain, true },
	{ "status", run_status, false },
	{ "log", run_log, false },
	{ "arm", run_arm, false },
	{ "disarm", run_disarm, false },
	{ "release", run_release, false },
};
enum { N_SUBCOMMANDS = sizeof(subcommands) / sizeof(subcommands[0]) };
#define SUBCOMMANDS "run|test-notice|simulate|explain|status|log|arm|disarm|release"

/* Where gua-enforce.service keeps its file. Beside the store there may be a link to it, which
 * only readers follow. */
#define SERVICE_DIRECTORY "/var/lib/gua-enforce"

static int choose_files(struct enforce *x, struct err *e)
{
	struct chosen_db chosen = { .path = "" };
	if (!x->o->db && choose_db_to_read(&chosen, e))
		return e->code;
	str_copy(x->db, sizeof(x->db), x->o->db ? x->o->db : chosen.path);
	if (x->o->policy_db)
		str_copy(x->policy_db, sizeof(x->policy_db), x->o->policy_db);
	else if (strcmp(x->db, SYSTEM_DB) == 0 && access(SERVICE_DIRECTORY, F_OK) == 0)
		str_copy(x->policy_db, sizeof(x->policy_db), SERVICE_DIRECTORY "/policy.db");
	else
		policy_file_path(x->policy_db, sizeof(x->policy_db), x->db);
	return 0;
}

/* Reads the subcommand and its operand. */
static int read_operands(
	struct enforce *x, char **words, const struct subcommand **sub, struct err *e)
{
	const char *name = words[0];
	if (!name)
		return err_set(e, ERR_USAGE, "say what to do: " SUBCOMMANDS);
	struct nearest like = nearest_to(name, strlen(name));
	for (size_t i = 0; i < N_SUBCOMMANDS; i++) {
		if (strcmp(subcommands[i].name, name) == 0)
			*sub = &subcommands[i];
		nearest_try(&like, subcommands[i].name);
	}
	if (!*sub && like.name && 2 * like.distance <= like.len)
		return err_set(e, ERR_USAGE, "there is no 'gua enforce %s'; did you mean '%s'?",
			name, like.name);
	if (!*sub)
		return err_set(e, ERR_USAGE,
			"there is no 'gua enforce %s'; write one of: " SUBCOMMANDS, name);
	x->operand = words[1];
	const char *more = x->operand && (*sub)->operand ? words[2] : words[1];
	return more ? err_set(e, ERR_USAGE, "unexpected argument '%s'", more) : 0;
}

static int run(const struct call *call, struct err *e)
{
	const struct command *self = call->self;
	const struct enforce_parts *parts = self->parts;
	const struct enforce_options *o = call->values;
	struct enforce x = { .self = self, .o = o, .conf = call->conf };
	const struct subcommand *sub = NULL;
	int status = 0;
	if (read_operands(&x, call->operands, &sub, e) || cmd_now(o->now, &x.now_ms, e) ||
		choose_files(&x, e))
		return e->code;
	int (*act)(struct enforce *, struct err *) = sub->run;
	if (!act && parts)
		act = strcmp(sub->name, "run") == 0 ? parts->run : parts->test_notice;
	if (!act)
		return hand_over(self->name, call->argv, e);
	x.conf->root = o->root;
	if (configure(self, x.conf, &o->conf, &status))
		return status;
	x.policy = (struct policy){ .config = &x.conf->values, .utc = o->utc };
	x.policy.enforce = strcmp(x.conf->values.policy.mode, "enforce") == 0;
	return act(&x, e);
}

const struct command cmd_enforce = {
	.name = "enforce",
	.summary = "warn, then end, sessions that hold cards idle for too long",
	.usage = "run | simulate | explain PID|LEASE | status | log |\n"
		 "       arm --until DATE | disarm | release | test-notice USER [OPTIONS]",
	.details =
		"run         the service: judges every minute, warns and ends\n"
		"simulate    what the rules would have done in the past\n"
		"explain     rule by rule, what happens to the session of a process, or to a\n"
		"            lease (slurm:4), and why;\n"
		"            of one's own processes without the right to read the store\n"
		"status      the mode, and the sessions that were warned\n"
		"log         every step that was taken, or would have been (the last 30 days)\n"
		"arm         allow ending until a day or for a time (--until 2026-12-31, 7d)\n"
		"disarm      forbid ending again\n"
		"release     go on after the breaker has stopped everything\n"
		"test-notice send a notice to a user through each channel",
	.options = rows,
	.operands = SUBCOMMANDS,
	.values_size = sizeof(struct enforce_options),
	.run = run,
};
