/* The page Policy: the rules in words, the sessions that are watched, what was done, and the
 * result of the last simulation. */
#include <jansson.h>

#include "model/columns.h"
#include "model/policy.h"
#include "render/html.h"
#include "report/report_policy.h"
#include "serve/page.h"
#include "store/policy/policy_file.h"

/* How far back the log is shown. */
#define LOG_MS (INT64_C(30) * 86400 * 1000)

/* The state of writing a list of conditions: "(interactive; user b*, dave)". */
struct conditions {
	struct str *out;
	size_t n;
};

static void begin_condition(struct conditions *c)
{
	str_add(c->out, c->n++ ? "; " : " (");
}

static void add_patterns(
	struct conditions *c, const char *what, const struct config_patterns *p)
{
	for (size_t i = 0; i < p->n; i++) {
		if (i == 0) {
			begin_condition(c);
			str_addf(c->out, "%s ", what);
		} else
			str_add(c->out, ", ");
		html_text(c->out, p->items[i]);
	}
}

/* Writes the conditions of a rule, to follow the word "sessions". */
static void add_match(struct str *out, const struct config_match *m)
{
	struct conditions c = { .out = out };
	for (int use = 0; use < SESSION_USES; use++)
		if (m->kinds & 1U << use) {
			begin_condition(&c);
			str_add(out, session_use_names[use]);
		}
	add_patterns(&c, "user", &m->users);
	add_patterns(&c, "group", &m->groups);
	add_patterns(&c, "card", &m->cards);
	add_patterns(&c, "model", &m->models);
	add_patterns(&c, "notebook", &m->notebooks);
	add_patterns(&c, "container", &m->containers);
	add_patterns(&c, "job", &m->jobs);
	add_patterns(&c, "unit", &m->units);
	if (m->working_hours) {
		begin_condition(&c);
		str_add(out, strcmp(m->working_hours, "yes") == 0 ? "in working hours"
								  : "outside of working hours");
	}
	if (m->min_memory_bytes > 0) {
		begin_condition(&c);
		str_addf(out, "at least %s", size_text((double)m->min_memory_bytes).text);
	}
	str_add(out, c.n ? ")" : "");
}

static void add_time(struct str *out, const char *before, int64_t ms)
{
	str_addf(out, "%s%s", before, duration_text(ms).text);
}

static void add_rule(struct str *out, const struct config_rule *r)
{
	html_addf(out, "<dt>%s</dt><dd><strong>%s</strong> sessions that hold a GPU idle",
		r->name,
		strcmp(r->level, "end") == 0	? "warns and ends"
		: strcmp(r->level, "warn") == 0 ? "warns"
						: "observes");
	add_match(out, &r->match);
	add_time(out, ". A warning after ", r->warn_ms);
	if (r->again_ms != AT_NEVER)
		add_time(out, ", again after ", r->again_ms);
	if (r->end_ms == AT_NEVER)
		str_add(out, "; never the end");
	else if (r->end_ms == AT_USUAL)
		str_add(out, "; the end after 2 h for batch and 8 h for interactive sessions, "
			     "never for services");
	else
		add_time(out, "; the end after ", r->end_ms);
	if (r->end_ms != AT_NEVER) {
		add_time(out, "; a final notice ", r->final_ms);
		str_add(out, " before the end");
	}
	str_add(out, ".</dd>\n");
}

static void add_rules(struct str *out, const struct config *c)
{
	const struct config_rule *rules = c->policy_rules.items;
	const struct config_exemption *exemptions = c->exemptions.items;
	bool enforce = c->policy.mode && strcmp(c->policy.mode, "enforce") == 0;
	str_add(out, "<h2 id=\"rules\">Rules</h2>\n");
	if (!c->policy_rules.n) {
		str_add(out, "<p>No policy is configured: every session that holds a GPU idle "
			     "is observed, and nobody is warned or ended. Sections "
			     "<code>[policy]</code> and <code>[rule NAME]</code> of gua.conf "
			     "change that: <code>man gua-policy</code> explains how, and <code "
			     "class=\"copy\">gua enforce simulate</code> says what rules would "
			     "have done in the past.</p>\n");
		return;
	}
	str_addf(out,
		"<p>Mode <strong>%s</strong>: %s. The first rule that matches a session "
		"counts.</p>\n<dl>\n",
		enforce ? "enforce" : "observe",
		enforce ? "rules act" : "what rules would do is written down, and not done");
	for (size_t i = 0; i < c->policy_rules.n; i++)
		add_rule(out, &rules[i]);
	for (size_t i = 0; i < c->exemptions.n; i++) {
		const struct config_exemption *x = &exemptions[i];
		html_addf(out, "<dt>%s</dt><dd><strong>exempts</strong> sessions", x->name);
		add_match(out, &x->match);
		html_addf(out, ". Owner: %s",
			x->owner ? x->owner : "nobody, so that it does not count");
		if (x->until)
			str_addf(out, "; until %04d-%02d-%02d", x->until / 10000,
				x->until / 100 % 100, x->until % 100);
		if (x->reason) {
			html_addf(out, "; %s", x->reason);
		}
		str_add(out, ".</dd>\n");
	}
	str_add(out, "</dl>\n");
}

static const struct html_link links[] = {
	{ "user", "/user/", { "user" } },
	{ 0 },
};

/* A session that has been warned. */
struct watched_row {
	const char *user, *session, *rule;
	const char *stage;
	int64_t idle_since_ms;
	double idle_ms;
	char next[64];
};

#define OF(member) offsetof(struct watched_row, member)
static const struct column watched_columns[] = {
	{ "user", "user", STRING(user) },
	{ .title = "session", STRING(session) },
	{ .title = "rule", STRING(rule) },
	{ .title = "idle since", KNOWN(MOMENT, idle_since_ms) },
	{ .title = "idle for", NUMBER(LENGTH, idle_ms) },
	{ .title = "stage", STRING(stage) },
	{ .title = "next stage", CHARS(next) },
};
#undef OF

static void add_session(struct table *t, const struct policy_session *s)
{
	const struct policy_state *state = &s->state;
	int64_t idle_ms = state->clock_ms;
	struct watched_row row = { .user = s->user,
		.session = s->key,
		.rule = state->rule,
		.stage = policy_stage_names[state->stage],
		.idle_since_ms = state->idle_since_ms,
		.idle_ms = (double)idle_ms };
	/* When the next stage comes: only after the notice of this one has been delivered. */
	int64_t left_ms = state->next_clock_ms - idle_ms;
	if (state->stage >= STAGE_ENDING)
		str_copy(row.next, sizeof(row.next), "none");
	else if (state->delivered_ms < 0)
		str_copy(row.next, sizeof(row.next), "after its notice is delivered");
	else
		snprintf(row.next, sizeof(row.next), left_ms > 0 ? "in %s" : "at the next pass",
			duration_text(left_ms > 0 ? left_ms : 0).text);
	table_add(t, &row);
}

/* The columns of the log, without those for programs. */
#define OF(member) offsetof(struct policy_log_line, member)
static const struct column log_columns[] = {
	{ .title = "time", KNOWN(MOMENT, action.at_ms) },
	{ .title = "step", CHARS(what) },
	{ "user", "user", STRING(action.user) },
	{ .title = "session", STRING(action.session) },
	{ .title = "rule", STRING(action.rule), .optional = true },
	{ .title = "held", KNOWN(KIB, held_kib) },
	{ .title = "idle", KNOWN(LENGTH, action.idle_ms) },
	{ .title = "evidence", STRING(action.evidence) },
	{ .title = "result", STRING(action.result), .optional = true },
};
#undef OF

/* Adds a section with a table, or with a sentence if it has no rows. */
static void add_section(struct str *out, const struct request *q, struct table *t,
	const char *heading, const char *const texts[2])
{
	str_add(out, heading);
	if (t->n_rows)
		html_table(out, t,
			&(struct html_table_style){
				.caption = texts[0], .utc = q->world->utc, .links = links });
	else
		str_addf(out, "<p>%s</p>\n", texts[1]);
	table_finish(t);
}

static int add_watched(
	struct str *out, const struct request *q, struct policy_file *f, struct err *e)
{
	static const char *const texts[] = { "Sessions that were warned, or would have been",
		"No session has reached a stage." };
	struct table t = TABLE_OF(watched_columns);
	struct arena arena = { 0 };
	struct policy_session *s = NULL;
	int rc = policy_file_sessions(f, &arena, &s, e);
	for (; s; s = s->next)
		add_session(&t, s);
	arena_finish(&arena);
	add_section(out, q, &t, "<h2 id=\"watched\">Watched now</h2>\n", texts);
	return rc;
}

static int add_log(
	struct str *out, const struct request *q, struct policy_file *f, struct err *e)
{
	static const char *const texts[] = { "Every step of the last 30 days",
		"Nothing was done in the last 30 days." };
	struct table t = TABLE_OF(log_columns);
	const struct policy_span span = { q->now_ms - LOG_MS, q->now_ms + 1 };
	int rc = report_policy_add_log(&t, f, span, e);
	add_section(out, q, &t, "<h2 id=\"log\">Log</h2>\n", texts);
	return rc;
}

static int add_simulation(
	struct str *out, const struct request *q, struct policy_file *f, struct err *e)
{
	struct str json = { 0 };
	int64_t at_ms = -1;
	int rc = policy_file_simulation(f, &at_ms, &json, e);
	str_add(out, "<h2 id=\"simulation\">Last simulation</h2>\n");
	if (rc == 0 && at_ms >= 0) {
		json_t *root = json_loads(str_text(&json), 0, NULL);
		double hours =
			json_number_value(json_object_get(root, "given_back_gpu_seconds")) /
			3600;
#define COUNT(key) (long long)json_integer_value(json_object_get(root, key))
		str_addf(out,
			"<p>%s: of %lld sessions that were idle, %lld would have been warned "
			"and %lld ended, %lld of them although they were used again soon "
			"after. That would have given back %.1f GPU-hours.</p>\n",
			moment_text(at_ms, q->world->utc).text, COUNT("sessions_idle"),
			COUNT("sessions_warned"), COUNT("sessions_ended"),
			COUNT("sessions_ended_wrongly"), hours);
#undef COUNT
		json_decref(root);
	} else if (rc == 0)
		str_add(out, "<p>None yet. What would the rules have done in the last month? "
			     "<code class=\"copy\">gua enforce simulate</code></p>\n");
	out->failed |= json.failed;
	str_finish(&json);
	return rc;
}

/* Whether rules act, until when they may end sessions, and when they were last applied. */
static int add_mode(
	struct str *out, const struct request *q, struct policy_file *f, struct err *e)
{
	struct policy_pass pass;
	struct policy_orders orders;
	if (policy_file_orders(f, q->now_ms, &orders, e) || policy_file_pass(f, &pass, e))
		return e->code;
	str_add(out, "<p>");
	if (orders.armed_until_ms >= 0)
		html_addf(out, "Sessions may be ended until %s: armed by %s. ",
			moment_text(orders.armed_until_ms, q->world->utc).text,
			orders.armed_by);
	else
		str_add(out, "It is not armed: no session is ended. ");
	if (pass.at_ms < 0)
		str_add(out, "The rules have not been applied yet.");
	else
		str_addf(out, "Last applied %s: %lld sessions held a GPU, %lld of them idle. ",
			moment_text(pass.at_ms, q->world->utc).text, (long long)pass.sessions,
			(long long)pass.idle);
	html_addf(out, "%s</p>\n", pass.at_ms < 0 ? "" : pass.note);
	return 0;
}

static int add_file(struct str *out, const struct request *q, const char *db, struct err *e)
{
	char path[4096 + 32];
	struct policy_file *f = NULL;
	policy_file_path(path, sizeof(path), db);
	int rc = policy_file_open(&f, path, false, e);
	if (rc == ERR_NOTHING) {
		str_add(out, "<h2 id=\"watched\">Watched now</h2>\n<p>gua enforce has not run "
			     "beside this store. <code class=\"copy\">gua enforce "
			     "simulate</code> says what the rules would have done; <code "
			     "class=\"copy\">gua enforce run</code> applies them.</p>\n");
		return 0;
	}
	bool failed = rc || add_mode(out, q, f, e) || add_watched(out, q, f, e) ||
		      add_log(out, q, f, e) || add_simulation(out, q, f, e);
	policy_file_close(f);
	return failed ? e->code : 0;
}

/* Whether gua enforce has run beside one of the stores. */
static bool has_log(const struct store_list *stores)
{
	char path[4096 + 32];
	for (size_t i = 0; i < stores->n; i++) {
		policy_file_path(path, sizeof(path), stores->paths[i]);
		if (access(path, F_OK) == 0)
			return true;
	}
	return false;
}

void page_policy(const struct request *q, struct answer *a)
{
	const struct store_list *stores = q->world->stores;
	struct err e = { 0 };
	int rc = 0;
	struct page_frame frame = { .place = PLACE_POLICY,
		.title = "Policy",
		.paper = page_param(q, "print") != NULL };
	struct page_link *format = frame.formats;
	if (has_log(q->world->stores)) {
		*format++ = (struct page_link){ "as JSON", "/api/v1/policy" };
		*format++ = (struct page_link){ "as CSV", "/api/v1/policy.csv" };
	}
	*format = (struct page_link){ "print", "/policy?print=1" };
	page_begin(&a->body, &frame);
	add_rules(&a->body, q->world->config);
	for (size_t i = 0; i < stores->n && rc == 0; i++) {
		if (stores->n > 1) {
			html_addf(&a->body, "<p class=\"host\">%s</p>\n", stores->paths[i]);
		}
		rc = add_file(&a->body, q, stores->paths[i], &e);
	}
	page_end(&a->body);
	if (rc)
		answer_err(a, q, &e);
}
