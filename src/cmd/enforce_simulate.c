/* gua enforce simulate: shows what the rules would have done in the past. */
#include "audit/idle_history.h"
#include "cmd/enforce.h"
#include "cmd/share/terminal.h"
#include "policy/simulate.h"
#include "report/report_parts.h"
#include "render/rows.h"
#include "store/policy/policy_file.h"

enum { READ_WAIT_MS = 5000, PEOPLE_ROWS = 40 };

/* The sums of a rule or of a user. */
struct group_line {
	const char *name;
	int64_t warned, notices, ended, wrong;
	double given_ms;
};

#define OF(member) offsetof(struct group_line, member)
#define GROUP_COLUMNS(word)                                                                    \
	COLUMN(COLUMN(word, word, STRING(name)),                                               \
		COLUMN("sessions_warned", "sessions\nwarned", KNOWN(COUNT, warned)),           \
		COLUMN("warnings", "notices\nsent", KNOWN(COUNT, notices)),                    \
		COLUMN("sessions_ended", "sessions\nended", KNOWN(COUNT, ended)),              \
		COLUMN("sessions_ended_wrongly", "ended\nwrongly", KNOWN(COUNT, wrong)),       \
		COLUMN("given_back_gpu_seconds", "GPU hours\ngiven back",                      \
			NUMBER(GPU_MS, given_ms)))
static const struct column rule_columns[] = GROUP_COLUMNS("rule");
static const struct column user_columns[] = GROUP_COLUMNS("user");
#undef OF

/* A session that would have been warned or ended. */
struct session_line {
	const char *key, *user, *rule, *kind, *use;
	char what[REPORT_WHAT_CAP], cards[96];
	int64_t warnings, first_warning_ms, ended_ms, used_again_ms, idle_since_ms, mem_kib;
	int64_t idle_below, most_pct;
	double idle_ms, given_ms, wrong;
};

#define OF(member) offsetof(struct session_line, member)
static const struct column session_columns[] = {
	{ "session", STRING(key) },
	{ "kind", STRING(kind) },
	{ "use", STRING(use) },
	{ "rule", "rule", .optional = true, STRING(rule) },
	{ "user", "user", STRING(user) },
	{ "warnings", "notices\nsent", KNOWN(COUNT, warnings) },
	{ "first_warning", KNOWN(MOMENT, first_warning_ms) },
	{ "ended", "ended", KNOWN(MOMENT, ended_ms) },
	{ "idle_since", KNOWN(MOMENT, idle_since_ms) },
	{ "idle_seconds", "idle", NUMBER(LENGTH, idle_ms) },
	{ "most_sm_pct", "most\nSM %", KNOWN(COUNT, most_pct) },
	{ "idle_below_pct", "idle\nbelow", KNOWN(COUNT, idle_below) },
	{ "held_bytes", "held", KNOWN(KIB, mem_kib) },
	{ "cards", "gpu", CHARS(cards) },
	{ "given_back_gpu_seconds", "h given\nback", NUMBER(GPU_MS, given_ms) },
	{ "used_again", "used again", KNOWN(MOMENT, used_again_ms) },
	{ "wrong", NUMBER(BOOL, wrong) },
	{ "what", "what", .flexible = true, CHARS(what) },
};
#undef OF

struct result {
	struct simulation s;
	struct arena texts; /* of the keeps */
	struct policy_keep *keeps;
	struct table rules, users, sessions;
};

static struct group_line *find_group(struct group_line **all, size_t *n, const char *name)
{
	for (size_t i = 0; i < *n; i++)
		if (strcmp((*all)[i].name, name) == 0)
			return &(*all)[i];
	if (!array_one_more(all, *n))
		return NULL;
	(*all)[*n] = (struct group_line){ .name = name };
	return &(*all)[(*n)++];
}

static int compare_groups(const void *a, const void *b)
{
	const struct group_line *x = a, *y = b;
	if (x->given_ms != y->given_ms)
		return x->given_ms > y->given_ms ? -1 : 1;
	if (x->warned != y->warned)
		return x->warned > y->warned ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Sums by rule or by user. */
static void add_groups(struct table *t, const struct simulation *s, bool by_user)
{
	struct group_line *all = NULL;
	size_t n = 0;
	for (size_t i = 0; i < s->n; i++) {
		const struct simulated *one = &s->items[i];
		struct group_line *group =
			find_group(&all, &n, by_user ? one->session->user : one->rule);
		if (!group) {
			t->failed = true;
			break;
		}
		group->warned += one->warnings > 0;
		group->notices += (int64_t)one->warnings;
		group->ended += one->ended_ms >= 0;
		group->wrong += one->wrong;
		group->given_ms += (double)one->given_back_ms;
	}
	array_sort(all, n, compare_groups);
	for (size_t i = 0; i < n; i++)
		table_add(t, &all[i]);
	free(all);
}

static void add_session(
	struct table *t, const struct simulated *one, const struct idle_history *h)
{
	const struct idle_session *s = one->session;
	struct str cards = { 0 };
	bool ended = one->ended_ms >= 0;
	struct session_line line = { .key = s->key,
		.user = s->user,
		.rule = one->rule,
		.kind = session_kind_names[s->kind],
		.use = session_use_names[s->use],
		.warnings = (int64_t)one->warnings,
		.first_warning_ms = one->first_warning_ms,
		.ended_ms = one->ended_ms,
		.used_again_ms = one->used_again_ms,
		.idle_since_ms = one->idle_since_ms,
		.mem_kib = one->mem_bytes < 0 ? -1 : one->mem_bytes / 1024,
		.idle_below = one->idle_below,
		.most_pct = one->most_pct,
		.idle_ms = ended ? (double)one->idle_ms : NAN,
		.given_ms = ended ? (double)one->given_back_ms : NAN,
		.wrong = one->wrong };
	report_show_what(line.what, s->texts);
	for (size_t i = 0; i < h->n_cards; i++)
		if (facts_has_card(&one->cards, i))
			str_addf(&cards, "%s%s", cards.len ? "," : "",
				card_label(&h->cards[i]).text);
	str_copy(line.cards, sizeof(line.cards), str_text(&cards));
	str_finish(&cards);
	table_add(t, &line);
}

static void make_tables(struct result *r)
{
	r->rules = (struct table)TABLE_OF(rule_columns);
	r->users = (struct table)TABLE_OF(user_columns);
	r->sessions = (struct table)TABLE_OF(session_columns);
	add_groups(&r->rules, &r->s, false);
	add_groups(&r->users, &r->s, true);
	/* Sessions that would have been ended come first: the wrongly ended ones, then by time.
	 */
	for (int part = 0; part < 3; part++)
		for (size_t i = 0; i < r->s.n; i++) {
			const struct simulated *one = &r->s.items[i];
			int own = one->wrong ? 0 : one->ended_ms >= 0 ? 1 : 2;
			if (own == part)
				add_session(&r->sessions, one, r->s.history);
		}
}

/* What the live run checks, but the store does not record. */
static const struct {
	const char *name, *text;
	bool of_imports; /* only imported data lacks it */
} unknowns[] = {
	{ "own_use", "which process on a card used it: all share what the card did", true },
	{ "sessions", "jobs, containers, notebooks and logins: each process is a session",
		true },
	{ "between_samples", "what happened between two samples of the other tool", true },
	{ "cpu_use", "the CPU use of sessions, and keys pressed at their terminals", false },
	{ "power", "the power of cards while a session held them alone", false },
	{ "programs", "which programs are of the display, the driver or a system service",
		false },
	{ "graphics", "which processes only draw", false },
	{ "memory_now", "how much was held at each moment: the most since its work counts",
		false },
	{ "fine_use", "the minute of a use: after a day 5 min are known, then 1 h", false },
};

static void add_json(struct str *out, const struct result *r)
{
	const struct simulation *s = &r->s;
	struct json j = { .out = out, .lines = 2 };
	json_open(&j, NULL, '{');
	json_text(&j, "schema", "gua-simulate-1");
	json_bool(&j, "simulated_data", s->history->simulated);
	json_text(&j, "host", s->history->hostname);
	json_moment(&j, "since", s->since_ms);
	json_moment(&j, "until", s->until_ms);
	json_number(&j, "sessions_idle", (double)s->n_sessions, 0);
	json_number(&j, "sessions_warned", (double)s->n_warned, 0);
	json_number(&j, "warnings", (double)s->n_notices, 0);
	json_number(&j, "sessions_ended", (double)s->n_ended, 0);
	json_number(&j, "sessions_ended_wrongly", (double)s->n_wrong, 0);
	json_number(&j, "given_back_gpu_seconds", (double)s->given_back_ms / 1000, 3);
	json_number(&j, "breaker_passes", (double)s->n_stopped, 0);
	json_moment(&j, "breaker_since", s->stopped_ms);
	json_open(&j, "not_known", '[');
	for (size_t i = 0; i < sizeof(unknowns) / sizeof(unknowns[0]); i++)
		if (!unknowns[i].of_imports || s->history->imported)
			json_text(&j, NULL, unknowns[i].name);
	json_close(&j, ']');
	rows_json_table(&j, "rules", &r->rules);
	rows_json_table(&j, "users", &r->users);
	rows_json_table(&j, "sessions", &r->sessions);
	json_close(&j, '}');
}

static void add_headline(struct str *out, const struct enforce *x, const struct simulation *s)
{
	str_addf(out, "%s, %s to %s\n", s->history->hostname,
		enforce_moment(x, s->since_ms).text, enforce_moment(x, s->until_ms).text);
	str_addf(out,
		"%zu session%s held a card idle. The rules would have warned %zu, with %zu "
		"notice%s, and ended %zu:\n",
		s->n_sessions, report_plural(s->n_sessions), s->n_warned, s->n_notices,
		report_plural(s->n_notices), s->n_ended);
	str_addf(out, "%s GPU hours would have been given back.\n",
		report_hours(NULL, s->given_back_ms).text);
	if (s->n_ended && s->n_wrong)
		str_addf(out,
			"%zu of the %zu %s used again within 30 min of the end: ended "
			"wrongly.\n",
			s->n_wrong, s->n_ended, s->n_wrong == 1 ? "was" : "were");
	else if (s->n_ended)
		str_add(out, "None of them was used again within 30 min of the end.\n");
	if (s->n_stopped)
		str_addf(out,
			"The breaker stopped everything in %zu pass%s, the first at %s: the "
			"idle time\nof several sessions grew faster than time goes by.\n",
			s->n_stopped, s->n_stopped == 1 ? "" : "es",
			enforce_moment(x, s->stopped_ms).text);
}

static void add_text(struct str *out, const struct enforce *x, const struct result *r)
{
	const struct text_style style = terminal_style(false, x->o->utc);
	if (r->s.history->simulated)
		str_addf(out, "%s\n", SIMULATED_WARNING);
	if (r->s.history->imported)
		str_add(out, "This data was imported from another tool.\n");
	add_headline(out, x, &r->s);
	if (!r->s.n)
		return;
	str_add(out, "\nBy rule\n");
	text_add_table(out, &r->rules, &style);
	str_add(out, "\nBy user\n");
	text_add_table(out, &r->users, &style);
	struct table part = table_part(&r->sessions, 0, PEOPLE_ROWS);
	str_add(out, "\nSessions, those that would have been ended wrongly first\n");
	text_add_table(out, &part, &style);
	if (part.n_rows < r->sessions.n_rows)
		str_addf(out, "  and %zu more; --json has all\n",
			r->sessions.n_rows - part.n_rows);
	str_add(out,
		"\nGiven back: card time that becomes free, from the end of a session until it "
		"used or\nreleased the card, without time in which others held or used the "
		"card or it was not observed.\nNotices count as delivered at once.\n");
	str_add(out,
		"\nThe live run may differ, and mostly spare more. The store does not have:\n");
	for (size_t i = 0; i < sizeof(unknowns) / sizeof(unknowns[0]); i++)
		if (!unknowns[i].of_imports || r->s.history->imported)
			str_addf(out, "  - %s\n", unknowns[i].text);
}

static int64_t kept_until(void *context, const char *key, int64_t at_ms)
{
	const struct result *r = context;
	for (const struct policy_keep *k = r->keeps; k; k = k->next)
		if (k->from_ms <= at_ms && at_ms < k->until_ms && strcmp(k->session, key) == 0)
			return k->until_ms;
	return -1;
}

static int replay(struct enforce *x, struct result *r, struct idle_history *h, struct err *e)
{
	struct policy_file *file = NULL;
	rules_set_limits(&x->policy, h);
	if (idle_history_read(h, e))
		return e->code;
	if (!h->any_run)
		return err_set(
			e, ERR_WORLD, "%s has no data yet: there is nothing to replay", x->db);
	x->policy.history = h;
	x->policy.enforce = false;
	r->s = (struct simulation){ .policy = &x->policy,
		.history = h,
		.interval_ms = x->conf->values.policy.interval_ms,
		.kept_until = kept_until,
		.context = r };
	/* If policy.db can be read, it says which sessions users kept in that time, and when
	 * the breaker was released. */
	if (policy_file_open(&file, x->policy_db, false, NULL) == 0) {
		policy_file_keeps(file, (struct policy_span){ h->since_ms, h->until_ms },
			&r->texts, &r->keeps, NULL);
		policy_file_releases(file, &r->s.releases, &r->s.n_releases, NULL);
	}
	policy_file_close(file);
	return simulate(&r->s, e);
}

int enforce_simulate(struct enforce *x, struct err *e)
{
	struct window window = { .until_ms = x->now_ms };
	struct window_words words = x->o->window;
	struct result r = { 0 };
	struct str out = { 0 };
	if (!words.since && !words.last)
		words.last = "30d";
	const bool by_length = words.last && !words.until;
	int rc = period_parse_window(&window, &words, x->now_ms, x->o->utc, e);
	struct idle_history h = { .path = x->db,
		.wait_ms = READ_WAIT_MS,
		.since_ms = window.since_ms,
		.until_ms = window.until_ms,
		.imports = true,
		.by_length = by_length };
	if (rc == 0)
		rc = replay(x, &r, &h, e);
	if (rc == 0) {
		struct str json = { 0 };
		struct policy_file *file = NULL;
		make_tables(&r);
		add_json(&json, &r);
		/* For web pages, if that file exists and can be written. */
		if (access(x->policy_db, W_OK) == 0 &&
			policy_file_open(&file, x->policy_db, true, NULL) == 0)
			policy_file_set_simulation(file, x->now_ms, str_text(&json), NULL);
		policy_file_close(file);
		if (x->o->json)
			str_add(&out, str_text(&json));
		else
			add_text(&out, x, &r);
		str_finish(&json);
	}
	table_finish(&r.rules);
	table_finish(&r.users);
	table_finish(&r.sessions);
	simulate_finish(&r.s);
	arena_finish(&r.texts);
	free(r.s.releases);
	idle_history_finish(&h);
	return rc ? e->code : cmd_print(x->self, &out);
}
