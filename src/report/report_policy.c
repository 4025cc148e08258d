/* What gua enforce did, read from the policy.db beside each store: the log of its steps, and
 * the section of a report, by user. */
#include "report/report_policy.h"

#include "base/names.h"
#include "model/session.h"
#include "report/report_parts.h"
#include "store/sql.h"
#include "store/store.h"

#define OF(member) offsetof(struct policy_log_line, member)
static const struct column log_columns[] = {
	{ "at", "time", KNOWN(MOMENT, action.at_ms) },
	{ "step", STRING(action.step_name) },
	{ .title = "step", CHARS(what) },
	{ "stage", STRING(action.stage_name) },
	{ "mode", STRING(mode) },
	{ "rule", STRING(action.rule) },
	{ "user", "user", STRING(action.user) },
	{ "uid", KNOWN(COUNT, action.uid) },
	{ "session", STRING(action.session) },
	{ .title = "session", CHARS(shown), .width = -24 },
	{ .title = "gpu", STRING(action.gpus) },
	{ "kind", STRING(action.kind) },
	{ "pids", STRING(action.pids) },
	{ "cards", STRING(action.cards) },
	{ "held_bytes", KNOWN(KIB, held_kib) },
	{ "idle_since", KNOWN(MOMENT, action.idle_since_ms) },
	{ "idle_seconds", KNOWN(LENGTH, action.idle_ms) },
	{ "given_back_gpu_seconds", KNOWN(GPU_MS, action.given_back_ms) },
	{ "evidence", STRING(action.evidence) },
	{ "result", STRING(action.result) },
	{ "config", STRING(action.config) },
	{ "actor", STRING(action.actor) },
	{ "command", STRING(action.command) },
	{ "gpus", STRING(action.gpus) },
	{ .title = "what", CHARS(said), .flexible = true, .wraps = true },
};
#undef OF

static int add_action(void *context, const struct policy_action *a)
{
	struct policy_log_line line = { .action = *a,
		.mode = a->would ? "observe" : "enforce",
		.held_kib = a->held_bytes < 0 ? -1 : a->held_bytes / 1024 };
	bool step = a->step == STEP_WARN || a->step == STEP_END;
	snprintf(line.what, sizeof(line.what), "%s%s", a->would && step ? "would " : "",
		a->step == STEP_WARN ? a->stage_name : a->step_name);
	session_shown(line.shown, sizeof(line.shown), a->session, false);
	/* Describes a step for people, after the command of the session. */
	struct str out = { 0 };
	struct brief held = size_text((double)a->held_bytes);
	if (*a->command)
		str_addf(&out, "%s: ", a->command);
	if (step && a->idle_ms >= 0)
		str_addf(&out, "%s%sidle for %s", a->held_bytes < 0 ? "" : held.text,
			a->held_bytes < 0 ? "" : " held, ", duration_text(a->idle_ms).text);
	else if (*a->result)
		str_addf(&out, "%s%s%s%s", a->result, *a->evidence ? " (" : "", a->evidence,
			*a->evidence ? ")" : "");
	else
		str_add(&out, a->evidence);
	if (step && *a->rule)
		str_addf(&out, "; rule %s", a->rule);
	if (*a->actor && strcmp(a->actor, "gua-enforce") != 0)
		str_addf(&out, "; by %s", a->actor);
	str_copy(line.said, sizeof(line.said), str_text(&out));
	str_finish(&out);
	table_add(context, &line);
	return 0;
}

int report_policy_window(struct policy_span *span, const struct window_words *words,
	int64_t now_ms, bool utc, struct err *e)
{
	struct window window = { .until_ms = now_ms + 1 };
	struct window_words asked = *words;
	if (!asked.since && !asked.last)
		asked.last = "30d";
	int rc = period_parse_window(&window, &asked, now_ms, utc, e);
	*span = (struct policy_span){ window.since_ms, window.until_ms };
	return rc;
}

struct table report_policy_log(void)
{
	return (struct table)TABLE_OF(log_columns);
}

int report_policy_add_log(
	struct table *t, struct policy_file *f, struct policy_span span, struct err *e)
{
	return policy_file_actions(f, span, add_action, t, e);
}

/* Whether the file exists and was not seen before. A file whose status cannot be read counts
 * as new: opening it will give the reason. */
static int is_new(struct names *seen, const char *path, bool *new, struct err *e)
{
	char key[PATH_MAX];
	struct stat st;
	*new = false;
	str_copy(key, sizeof(key), path);
	if (stat(path, &st) == 0)
		snprintf(key, sizeof(key), "%llx %llx", (unsigned long long)st.st_dev,
			(unsigned long long)st.st_ino);
	else if (errno == ENOENT)
		return 0;
	*new = !names_has(seen, 0, key);
	return names_find(seen, 0, key, e) == IDMAP_NONE ? ERR_WORLD : 0;
}

int report_policy_each(
	const struct policy_logs *l, const char *const *paths, size_t n, struct err *e)
{
	struct names seen = { 0 };
	int rc = 0;
	for (size_t i = 0; i < n && rc == 0; i++) {
		char path[PATH_MAX];
		bool new = false;
		policy_file_path(path, sizeof(path), paths[i]);
		rc = is_new(&seen, path, &new, e);
		if (rc == 0 && new)
			rc = l->take(l->context, paths[i], path, e);
	}
	if (rc == 0 && seen.n == 0)
		rc = err_set(e, ERR_NOTHING,
			"gua enforce has not run here: there is no policy.db beside the store");
	names_finish(&seen);
	return rc;
}

/* With fewer past spells than this, the rest of a spell is not estimated. */
enum { LEAST_SPELLS = 5, NAME_CAP = 128 };

/* The steps of one user, taken or only observed. */
struct policy_row {
	char user[NAME_CAP];
	bool would;
	int64_t warnings, ended, spared, failed, recovered, released, kept;
	double given_ms; /* NAN: not known */
	const char *mode;
};

struct policy_sums {
	struct policy_row *items;
	size_t n;
	const struct report *r;
	sqlite3 *db; /* the store beside policy.db; NULL: cannot be read */
	bool failed;
};

#define OF(member) offsetof(struct policy_row, member)
static const struct column columns[] = {
	{ "user", "user", CHARS(user) },
	{ "mode", "mode", STRING(mode) },
	{ "warnings", "notices\nsent", KNOWN(COUNT, warnings) },
	{ "ended", "ended", KNOWN(COUNT, ended) },
	{ "spared", "spared", KNOWN(COUNT, spared) },
	{ "failed", "failed", KNOWN(COUNT, failed) },
	{ "used_again", "used\nagain", KNOWN(COUNT, recovered) },
	{ "released", "released", KNOWN(COUNT, released) },
	{ "kept", "kept", KNOWN(COUNT, kept) },
	{ "given_back_gpu_seconds", "GPU-h\ngiven back", NUMBER(GPU_MS, given_ms) },
};
#undef OF

/* Whether the report includes this user. Steps are known only by user, so a report
 * restricted to groups, notebooks, cards or hosts includes none. */
static bool is_wanted(const struct report *r, const char *user)
{
	const struct restriction *only = r->only;
	if (!only)
		return true;
	if (only->lists[ONLY_GROUP].n || only->lists[ONLY_NOTEBOOK].n ||
		only->lists[ONLY_JOB].n || only->lists[ONLY_CARD].n ||
		only->lists[ONLY_MODEL].n || only->lists[ONLY_HOST].n)
		return false;
	return options_list_takes(&only->lists[ONLY_USER], NULL, user);
}

static struct policy_row *find_row(struct policy_sums *s, const char *user, bool would)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->items[i].would == would && strcmp(s->items[i].user, user) == 0)
			return &s->items[i];
	if (!array_one_more(&s->items, s->n))
		return NULL;
	struct policy_row *row = &s->items[s->n++];
	*row = (struct policy_row){ .would = would, .mode = would ? "observe" : "enforce" };
	str_copy(row->user, sizeof(row->user), user);
	return row;
}

/* How much longer a session would have stayed idle: the median rest of past spells that were
 * at least as long. NAN: there are too few. */
static double rest_of(sqlite3 *db, int64_t idle_ms)
{
	int64_t n = 0, rest = -1;
	if (!db || idle_ms < 0)
		return NAN;
	sql_number(db, &n, NULL,
		"SELECT count(*) FROM spell WHERE idle_held_ms + squatting_ms >= %lld",
		(long long)idle_ms);
	if (n < LEAST_SPELLS)
		return NAN;
	sql_number(db, &rest, NULL,
		"SELECT idle_held_ms + squatting_ms - %lld AS rest FROM spell WHERE rest >= 0 "
		"ORDER BY rest LIMIT 1 OFFSET %lld",
		(long long)idle_ms, (long long)n / 2);
	return rest < 0 ? NAN : (double)rest;
}

static int take_action(void *context, const struct policy_action *a)
{
	struct policy_sums *s = context;
	if (!*a->user || !is_wanted(s->r, a->user))
		return 0;
	struct policy_row *row = find_row(s, a->user, a->would);
	if (!row) {
		s->failed = true;
		return ERR_WORLD;
	}
	row->warnings += a->step == STEP_WARN;
	row->spared += a->step == STEP_SPARED;
	row->failed += a->step == STEP_FAILED;
	row->recovered += a->step == STEP_RECOVERED;
	row->released += a->step == STEP_RELEASED;
	row->kept += a->step == STEP_KEPT && strcmp(a->actor, "gua-enforce") != 0;
	/* In observe mode, the decision counts as the end. */
	if (a->step != (a->would ? STEP_END : STEP_ENDED))
		return 0;
	int64_t n_cards = *a->cards != '\0'; /* separated by blanks */
	for (const char *at = a->cards; *at; at++)
		n_cards += *at == ' ';
	row->ended++;
	row->given_ms += a->given_back_ms >= 0 ? (double)a->given_back_ms
					       : rest_of(s->db, a->idle_ms) * (double)n_cards;
	return 0;
}

static int compare_rows(const void *a, const void *b)
{
	const struct policy_row *x = a, *y = b;
	if (x->would != y->would)
		return x->would ? 1 : -1;
	if (x->ended != y->ended)
		return x->ended > y->ended ? -1 : 1;
	if (x->warnings != y->warnings)
		return x->warnings > y->warnings ? -1 : 1;
	return strcmp(x->user, y->user);
}

/* One sentence for what was done, and one for what would have been done. */
static void say(struct report *r, const struct policy_sums *s, bool would)
{
	struct policy_row sum = { 0 };
	for (size_t i = 0; i < s->n; i++) {
		const struct policy_row *row = &s->items[i];
		if (row->would != would)
			continue;
		sum.warnings += row->warnings;
		sum.ended += row->ended;
		sum.kept += row->kept;
		sum.given_ms += row->given_ms;
	}
	if (sum.warnings + sum.ended + sum.kept == 0)
		return;
	report_say(r, SENTENCE_POLICY, "policy",
		"gua enforce %s %lld notice%s and ended %lld session%s; users kept %lld.",
		would ? "would have sent" : "sent", (long long)sum.warnings,
		report_plural((size_t)sum.warnings), (long long)sum.ended,
		report_plural((size_t)sum.ended), (long long)sum.kept);
	if (sum.ended == 0 || !isfinite(sum.given_ms))
		return;
	report_say(r, SENTENCE_POLICY, "",
		"About %s %s given back: an estimate, how much longer past spells lasted that "
		"were as long (the median), for each card.",
		report_hours(r, llround(sum.given_ms)).text, report_unit(r));
}

/* A policy.db that cannot be read is skipped: the report is about the stores. */
static int read_file(void *context, const char *db, const char *policy_db, struct err *e)
{
	struct policy_sums *s = context;
	struct policy_file *f = NULL;
	(void)e;
	if (policy_file_open(&f, policy_db, false, NULL) != 0)
		return 0;
	if (store_open_read(&s->db, db, NULL) != 0)
		s->db = NULL;
	policy_file_actions(f, (struct policy_span){ s->r->a->since_ms, s->r->a->until_ms },
		take_action, s, NULL);
	sqlite3_close(s->db);
	s->db = NULL;
	policy_file_close(f);
	return 0;
}

void report_policy_add(struct report *r, const char *const *paths, size_t n)
{
	struct policy_sums s = { .r = r };
	const struct policy_logs logs = { read_file, &s };
	report_policy_each(&logs, paths, n, NULL);
	if (s.n) {
		r->policy = (struct table)TABLE_OF(columns);
		qsort(s.items, s.n, sizeof(*s.items), compare_rows);
		for (size_t i = 0; i < s.n; i++)
			table_add(&r->policy, &s.items[i]);
		say(r, &s, false);
		say(r, &s, true);
	}
	r->failed |= s.failed;
	free(s.items);
}
