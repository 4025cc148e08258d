/* Opens policy.db, and reads and writes states, steps, arms, the breaker, keeps, passes and the
 * last simulation. */
#include "store/policy/policy_file.h"

#include "policy.h"
#include "store/foreign.h"
#include "store/identify.h"
#include "store/policy/policy_notice.h"
#include "store/policy/policy_private.h"

enum { BUSY_MS = 3000, POLICY_FILE_VERSION = 1 };

struct policy_file {
	sqlite3 *db;
	char path[PATH_MAX];
	bool failed; /* in the present transaction */
};

void policy_file_path(char *dst, size_t cap, const char *db)
{
	const char *slash = strrchr(db, '/');
	snprintf(dst, cap, "%.*spolicy.db", slash ? (int)(slash + 1 - db) : 0, db);
}

/* The error of the last call; the present transaction will not be kept. */
static int fail(struct policy_file *f, const char *doing, struct err *e)
{
	f->failed = true;
	return err_set(e, sqlite3_errcode(f->db) == SQLITE_BUSY ? ERR_BUSY : ERR_WORLD,
		"cannot %s %s: %s", doing, f->path, sql_why(f->db));
}

/* All tables, for the check that none is a view. */
static const char *const tables[] = { "session", "action", "notice", "keep", "arm", "pass",
	"simulation", "breaker", NULL };

static bool is_empty(const struct policy_file *f)
{
	return sql_value(f->db, "SELECT count(*) FROM sqlite_schema", 1, NULL) == 0;
}

/* Makes the tables of an empty file. Another program may do the same at the same moment. */
static int make_tables(struct policy_file *f, struct err *e)
{
	if (sql_exec(f->db, "PRAGMA journal_mode = WAL") != SQLITE_OK ||
		sql_exec(f->db, "BEGIN IMMEDIATE") != SQLITE_OK)
		return fail(f, "write", e);
	if (sql_exec(f->db, is_empty(f) ? policy_sql : "") == SQLITE_OK &&
		sql_exec(f->db, "COMMIT") == SQLITE_OK)
		return 0;
	int rc = fail(f, "write", e);
	sql_exec(f->db, "ROLLBACK");
	return rc;
}

static int read_kind(struct policy_file *f, int64_t *id, int64_t *version, struct err *e)
{
	int rc = SQLITE_OK;
	*id = sql_value(f->db, "PRAGMA application_id", 0, &rc);
	*version = rc == SQLITE_OK ? sql_value(f->db, "PRAGMA user_version", 0, &rc) : 0;
	return rc == SQLITE_OK ? 0 : fail(f, "read", e);
}

static int check(struct policy_file *f, bool write, struct err *e)
{
	int64_t id = 0, version = 0;
	int rc = read_kind(f, &id, &version, e);
	/* Checked only once, because another program may make the tables at any moment. */
	bool empty = rc == 0 && id == 0 && is_empty(f);
	if (rc == 0 && id == 0 && !empty)
		rc = read_kind(f, &id, &version, e);
	if (empty && !write) /* another program has made the file, but not its tables */
		return err_set(
			e, ERR_NOTHING, "%s is empty; gua enforce has not run here", f->path);
	if (rc == 0 && empty) {
		rc = make_tables(f, e);
		if (rc == 0)
			rc = read_kind(f, &id, &version, e);
	}
	if (rc)
		return rc;
	if (id == POLICY_OLD_APPLICATION_ID)
		return err_set(e, ERR_WORLD,
			"%s was written by gua enforce before 0.1.0: move it away, and "
			"gua enforce makes a new one",
			f->path);
	if (id != POLICY_APPLICATION_ID || version != POLICY_FILE_VERSION)
		return err_set(e, ERR_WORLD,
			"%s is not a policy database, or another version wrote it", f->path);
	return foreign_check_tables(f->db, tables, f->path, e);
}

static int open_writer(struct policy_file *f, struct err *e)
{
	int fd = file_open_or_make(f->path, O_NOFOLLOW, 0640);
	/* The package makes a link to the file of the service, which writes it for others. */
	if (fd < 0 && errno == ELOOP)
		return err_set(e, ERR_WORLD,
			"cannot write %s: it is a link; start the service that it belongs to: "
			"systemctl enable --now gua-enforce",
			f->path);
	if (fd < 0)
		return err_set(e, ERR_WORLD, "cannot write %s: %s%s", f->path, strerror(errno),
			errno == EACCES ? "; run this as root" : "");
	close(fd);
	if (sqlite3_open_v2(f->path, &f->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
		    NULL) != SQLITE_OK ||
		foreign_restrict(f->db) != SQLITE_OK ||
		sqlite3_busy_timeout(f->db, BUSY_MS) != SQLITE_OK)
		return fail(f, "open", e);
	if (sqlite3_db_readonly(f->db, "main") == 1)
		return err_set(e, ERR_WORLD, "cannot write %s: permission denied", f->path);
	/* A step that is lost in a power failure would be taken twice. */
	if (sql_exec(f->db, "PRAGMA synchronous = FULL; PRAGMA cache_size = -512") != SQLITE_OK)
		return fail(f, "open", e);
	return 0;
}

static int open_reader(struct policy_file *f, struct err *e)
{
	struct foreign_file file = { .path = f->path, .wait_ms = BUSY_MS };
	int missing = access(f->path, F_OK) == 0 ? 0 : errno;
	if (missing == EACCES)
		return identify_denied(f->path, e);
	if (missing)
		return err_set(e, missing == ENOENT ? ERR_NOTHING : ERR_WORLD,
			"cannot read %s: %s; gua enforce has not run here", f->path,
			strerror(missing));
	int rc = foreign_open(&f->db, &file, e);
	if (rc == 0 && access(f->path, W_OK) != 0 && !foreign_has_log(f->path)) {
		sqlite3_close(f->db);
		file.immutable = true;
		rc = foreign_open(&f->db, &file, e);
	}
	return rc;
}

int policy_file_open(struct policy_file **f, const char *path, bool write, struct err *e)
{
	*f = calloc(1, sizeof(**f));
	if (!*f)
		return err_memory(e);
	str_copy((*f)->path, sizeof((*f)->path), path);
	int rc = write ? open_writer(*f, e) : open_reader(*f, e);
	if (rc == 0)
		rc = check(*f, write, e);
	if (rc) {
		policy_file_close(*f);
		*f = NULL;
	}
	return rc;
}

void policy_file_close(struct policy_file *f)
{
	if (!f)
		return;
	sqlite3_close(f->db);
	free(f);
}

int policy_file_begin(struct policy_file *f, struct err *e)
{
	f->failed = false;
	return sql_exec(f->db, "BEGIN IMMEDIATE") == SQLITE_OK ? 0 : fail(f, "write", e);
}

int policy_file_end(struct policy_file *f, int rc, struct err *e)
{
	if (rc == 0 && !f->failed && sql_exec(f->db, "COMMIT") == SQLITE_OK)
		return 0;
	if (rc == 0)
		rc = f->failed ? err_set(e, ERR_WORLD, "cannot write %s", f->path)
			       : fail(f, "write", e);
	sql_exec(f->db, "ROLLBACK");
	return rc;
}

int policy_file_run_args(
	struct policy_file *f, struct err *e, const char *sql, const struct sql_arg *args)
{
	return sql_do_args(f->db, sql, NULL, args) ? 0 : fail(f, "write", e);
}

struct policy_query policy_file_select(struct policy_file *f, const char *sql)
{
	struct policy_query q = { .file = f };
	int rc = sqlite3_prepare_v2(f->db, sql, -1, &q.row, NULL);
	q.rc = rc == SQLITE_OK ? SQLITE_ROW : rc;
	return q;
}

bool policy_file_next(struct policy_query *q)
{
	if (q->rc == SQLITE_ROW)
		q->rc = sqlite3_step(q->row);
	return q->rc == SQLITE_ROW;
}

int policy_file_done(struct policy_query *q, int answer, struct err *e)
{
	sqlite3_finalize(q->row);
	if (answer)
		return answer;
	return q->rc == SQLITE_ROW || q->rc == SQLITE_DONE ? 0 : fail(q->file, "read", e);
}

#define STATE_COLUMNS                                                                          \
	"rule, level, stage, idle_since_ms, stage_ms, delivered_ms, next_clock_ms, round, "    \
	"key, user, clock_ms, clock_at_ms, idle_below FROM session"

static struct policy_state state_of(sqlite3_stmt *row)
{
	struct policy_state s = POLICY_STATE_NONE;
	int64_t level = sql_int(row, 1, -1), stage = sql_int(row, 2, -1);
	if (level < 0 || level >= POLICY_LEVELS || stage <= STAGE_NONE ||
		stage >= POLICY_STAGES)
		return s;
	s.level = (enum policy_level)level;
	s.stage = (enum policy_stage)stage;
	s.idle_since_ms = sql_int(row, 3, -1);
	s.stage_ms = sql_int(row, 4, -1);
	s.delivered_ms = sql_int(row, 5, -1);
	s.next_clock_ms = sql_int(row, 6, -1);
	s.round = sql_int(row, 7, -1);
	s.clock_ms = sql_int(row, 10, -1);
	s.clock_at_ms = sql_int(row, 11, -1);
	s.idle_below = sql_int(row, 12, -1);
	str_copy(s.rule, sizeof(s.rule), sql_raw(row, 0));
	return s;
}

int policy_file_state(
	struct policy_file *f, const char *key, struct policy_state *state, struct err *e)
{
	struct policy_query q =
		policy_file_select(f, "SELECT " STATE_COLUMNS " WHERE key = ?1");
	sql_bind(q.row, SQL_TEXT(key));
	bool found = policy_file_next(&q);
	*state = found ? state_of(q.row) : POLICY_STATE_NONE;
	return policy_file_done(&q, 0, e);
}

int policy_file_sessions(struct policy_file *f, struct arena *arena,
	struct policy_session **first, struct err *e)
{
	struct policy_query q = policy_file_select(f, "SELECT " STATE_COLUMNS " ORDER BY key");
	*first = NULL;
	while (!arena->failed && policy_file_next(&q)) {
		struct policy_session *s = arena_take(arena, sizeof(*s));
		if (!s)
			break;
		*s = (struct policy_session){ .key = arena_text(arena, sql_raw(q.row, 8)),
			.user = arena_text(arena, sql_raw(q.row, 9)),
			.state = state_of(q.row) };
		*first = s;
		first = &s->next;
	}
	return policy_file_done(&q, arena->failed ? err_memory(e) : 0, e);
}

#define ACTION_TEXTS(X)                                                                        \
	X(rule)                                                                                \
	X(session)                                                                             \
	X(kind)                                                                                \
	X(user) X(pids) X(cards) X(evidence) X(result) X(config) X(actor) X(command) X(gpus)

int policy_file_add_action(struct policy_file *f, const struct policy_action *a, struct err *e)
{
#define BIND(member) SQL_TEXT(a->member ? a->member : ""),
	const struct sql_arg args[] = { SQL_INT(a->at_ms), SQL_TEXT(policy_step_names[a->step]),
		SQL_TEXT(policy_stage_names[a->stage]),
		SQL_TEXT(a->would ? "observe" : "enforce"), SQL_KNOWN(a->uid, -1),
		SQL_KNOWN(a->held_bytes, -1), SQL_KNOWN(a->idle_since_ms, -1),
		SQL_KNOWN(a->idle_ms, -1), SQL_KNOWN(a->given_back_ms, -1),
		ACTION_TEXTS(BIND){ .type = ARG_END } };
#undef BIND
	return policy_file_run_args(f, e,
		"INSERT INTO action (at_ms, step, stage, mode, uid, held_bytes, idle_since_ms, "
		"idle_ms, given_back_ms, rule, session, kind, user, pids, cards, evidence, "
		"result, config, actor, command, gpus) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, "
		"?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)",
		args);
}

static int find_name(const char *const *names, int n, const char *name)
{
	int i = str_place(names, n, name);
	return i < n ? i : 0;
}

static struct policy_action action_of(sqlite3_stmt *row)
{
	int at = 10;
	struct policy_action a = { .at_ms = sql_int(row, 0, -1),
		.step_name = sql_raw(row, 1),
		.stage_name = sql_raw(row, 2),
		.would = strcmp(sql_raw(row, 3), "observe") == 0,
		.uid = sql_int(row, 4, -1),
		.held_bytes = sql_int(row, 5, -1),
		.idle_since_ms = sql_int(row, 6, -1),
		.idle_ms = sql_int(row, 7, -1),
		.given_back_ms = sql_int(row, 8, -1),
		.id = sql_int(row, 9, -1) };
	a.step = (enum policy_step)find_name(policy_step_names, POLICY_STEPS, a.step_name);
	a.stage = (enum policy_stage)find_name(policy_stage_names, POLICY_STAGES, a.stage_name);
#define READ(member) a.member = sql_raw(row, at++);
	ACTION_TEXTS(READ)
#undef READ
	return a;
}

int policy_file_actions(struct policy_file *f, struct policy_span span,
	policy_action_taker take, void *context, struct err *e)
{
	struct policy_query q = policy_file_select(f,
		"SELECT at_ms, step, stage, mode, uid, held_bytes, idle_since_ms, idle_ms, "
		"given_back_ms, id, rule, session, kind, user, pids, cards, evidence, result, "
		"config, actor, command, gpus FROM action WHERE at_ms >= ?1 AND at_ms < ?2 "
		"ORDER BY id");
	sql_bind(q.row, SQL_INT(span.since_ms), SQL_INT(span.until_ms));
	int answer = 0;
	while (answer == 0 && policy_file_next(&q)) {
		struct policy_action a = action_of(q.row);
		answer = take(context, &a);
	}
	return policy_file_done(&q, answer, e);
}

int policy_file_arm(struct policy_file *f, int64_t now_ms, int64_t until_ms, const char *user,
	struct err *e)
{
	int rc = policy_file_run(f, e,
		"UPDATE arm SET disarmed_ms = ?1 WHERE disarmed_ms IS NULL AND until_ms > ?1",
		SQL_INT(now_ms));
	if (rc || until_ms <= 0)
		return rc;
	return policy_file_run(f, e,
		"INSERT INTO arm (at_ms, until_ms, user) VALUES (?1, ?2, ?3)", SQL_INT(now_ms),
		SQL_INT(until_ms), SQL_TEXT(user));
}

int policy_file_release(struct policy_file *f, int64_t now_ms, const char *user, struct err *e)
{
	return policy_file_run(f, e,
		"UPDATE breaker SET released_ms = ?1, user = ?2 WHERE released_ms IS NULL",
		SQL_INT(now_ms), SQL_TEXT(user));
}

int policy_file_orders(
	struct policy_file *f, int64_t now_ms, struct policy_orders *o, struct err *e)
{
	*o = (struct policy_orders){ .armed_until_ms = -1, .stopped_ms = -1 };
	struct policy_query q = policy_file_select(f,
		"SELECT until_ms, user FROM arm WHERE disarmed_ms IS NULL AND at_ms <= ?1 AND "
		"until_ms > ?1 ORDER BY id DESC LIMIT 1");
	sql_bind(q.row, SQL_INT(now_ms));
	if (policy_file_next(&q)) {
		o->armed_until_ms = sql_int(q.row, 0, -1);
		str_copy(o->armed_by, sizeof(o->armed_by), sql_raw(q.row, 1));
	}
	int rc = policy_file_done(&q, 0, e);
	if (rc)
		return rc;
	q = policy_file_select(f,
		"SELECT at_ms, why FROM breaker WHERE released_ms IS NULL ORDER BY id LIMIT 1");
	if (policy_file_next(&q)) {
		o->stopped_ms = sql_int(q.row, 0, -1);
		str_copy(o->stopped_why, sizeof(o->stopped_why), sql_raw(q.row, 1));
	}
	return policy_file_done(&q, 0, e);
}

int policy_file_releases(struct policy_file *f, int64_t **at_ms, size_t *n, struct err *e)
{
	struct policy_query q = policy_file_select(f,
		"SELECT released_ms FROM breaker WHERE released_ms IS NOT NULL ORDER BY "
		"released_ms");
	int rc = 0;
	while (rc == 0 && policy_file_next(&q))
		if (array_one_more(at_ms, *n))
			(*at_ms)[(*n)++] = sql_int(q.row, 0, -1);
		else
			rc = err_memory(e);
	return policy_file_done(&q, rc, e);
}

int policy_file_set_pass(struct policy_file *f, const struct policy_pass *p, struct err *e)
{
	return policy_file_run(f, e,
		"INSERT OR REPLACE INTO pass (id, at_ms, sessions, idle, note) "
		"VALUES (1, ?1, ?2, ?3, ?4)",
		SQL_INT(p->at_ms), SQL_INT(p->sessions), SQL_INT(p->idle), SQL_TEXT(p->note));
}

int policy_file_pass(struct policy_file *f, struct policy_pass *p, struct err *e)
{
	struct policy_query q =
		policy_file_select(f, "SELECT at_ms, sessions, idle, note FROM pass");
	bool found = policy_file_next(&q);
	*p = (struct policy_pass){ .at_ms = -1 };
	if (found) {
		p->at_ms = sql_int(q.row, 0, -1);
		p->sessions = sql_int(q.row, 1, -1);
		p->idle = sql_int(q.row, 2, -1);
		str_copy(p->note, sizeof(p->note), sql_raw(q.row, 3));
	}
	return policy_file_done(&q, 0, e);
}

int policy_file_counts(
	struct policy_file *f, policy_count_taker take, void *context, struct err *e)
{
	struct policy_query q = policy_file_select(
		f, "SELECT step, mode, count(*) FROM action GROUP BY step, mode ORDER BY 1, 2");
	int answer = 0;
	while (answer == 0 && policy_file_next(&q)) {
		struct policy_count c = { sql_raw(q.row, 0), sql_raw(q.row, 1),
			sql_int(q.row, 2, -1) };
		answer = take(context, &c);
	}
	return policy_file_done(&q, answer, e);
}

int policy_file_add_keep(struct policy_file *f, const struct policy_keep *k, struct err *e)
{
	return policy_file_run(f, e,
		"INSERT INTO keep (session, user, uid, pid, from_ms, until_ms, reason) "
		"VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
		SQL_TEXT(k->session), SQL_TEXT(k->user), SQL_INT(k->uid), SQL_INT(k->pid),
		SQL_INT(k->from_ms), SQL_INT(k->until_ms), SQL_TEXT(k->reason));
}

int policy_file_drop_keep(
	struct policy_file *f, const char *session, int64_t now_ms, struct err *e)
{
	return policy_file_run(f, e,
		"UPDATE keep SET dropped_ms = ?2, until_ms = ?2 WHERE session = ?1 AND "
		"dropped_ms IS NULL AND until_ms > ?2",
		SQL_TEXT(session), SQL_INT(now_ms));
}

int policy_file_move_keep(
	struct policy_file *f, const struct policy_keep *k, const char *session, struct err *e)
{
	return policy_file_run(f, e,
		"UPDATE keep SET session = ?1 WHERE session = ?2 AND uid = ?3 AND pid = ?4 AND "
		"from_ms = ?5",
		SQL_TEXT(session), SQL_TEXT(k->session), SQL_INT(k->uid), SQL_INT(k->pid),
		SQL_INT(k->from_ms));
}

int policy_file_kept_until(struct policy_file *f, const char *session, int64_t now_ms,
	int64_t *until_ms, struct err *e)
{
	struct policy_query q = policy_file_select(f,
		"SELECT max(until_ms) FROM keep WHERE session = ?1 AND until_ms > ?2 AND "
		"from_ms <= ?2");
	sql_bind(q.row, SQL_TEXT(session), SQL_INT(now_ms));
	*until_ms = policy_file_next(&q) ? sql_int(q.row, 0, -1) : -1;
	return policy_file_done(&q, 0, e);
}

int policy_file_keeps(struct policy_file *f, struct policy_span span, struct arena *arena,
	struct policy_keep **first, struct err *e)
{
	struct policy_query q = policy_file_select(f,
		"SELECT session, user, uid, pid, from_ms, until_ms, reason FROM keep "
		"WHERE until_ms > ?1 AND from_ms < ?2 ORDER BY id");
	sql_bind(q.row, SQL_INT(span.since_ms), SQL_INT(span.until_ms));
	*first = NULL;
	while (!arena->failed && policy_file_next(&q)) {
		struct policy_keep *k = arena_take(arena, sizeof(*k));
		if (!k)
			break;
		*k = (struct policy_keep){ .session = arena_text(arena, sql_raw(q.row, 0)),
			.user = arena_text(arena, sql_raw(q.row, 1)),
			.uid = sql_int(q.row, 2, -1),
			.pid = sql_int(q.row, 3, -1),
			.from_ms = sql_int(q.row, 4, -1),
			.until_ms = sql_int(q.row, 5, -1),
			.reason = arena_text(arena, sql_raw(q.row, 6)) };
		*first = k;
		first = &k->next;
	}
	return policy_file_done(&q, arena->failed ? err_memory(e) : 0, e);
}

int policy_file_set_simulation(
	struct policy_file *f, int64_t now_ms, const char *json, struct err *e)
{
	return policy_file_run(f, e,
		"INSERT OR REPLACE INTO simulation (id, at_ms, json) VALUES (1, ?1, ?2)",
		SQL_INT(now_ms), SQL_RAW(json));
}

int policy_file_simulation(
	struct policy_file *f, int64_t *at_ms, struct str *json, struct err *e)
{
	struct policy_query q = policy_file_select(f, "SELECT at_ms, json FROM simulation");
	bool found = policy_file_next(&q);
	*at_ms = -1;
	if (found) {
		*at_ms = sql_int(q.row, 0, -1);
		str_add(json, sql_raw(q.row, 1));
	}
	return policy_file_done(&q, 0, e);
}

static int set_state(struct policy_file *f, const char *key, const char *user,
	const struct policy_state *state, struct err *e)
{
	if (state->stage == STAGE_NONE)
		return policy_file_run(
			f, e, "DELETE FROM session WHERE key = ?1", SQL_TEXT(key));
	return policy_file_run(f, e,
		"INSERT OR REPLACE INTO session (key, user, rule, level, stage, idle_since_ms, "
		"stage_ms, delivered_ms, next_clock_ms, round, clock_ms, clock_at_ms, "
		"idle_below) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
		SQL_TEXT(key), SQL_TEXT(user), SQL_TEXT(state->rule), SQL_INT(state->level),
		SQL_INT(state->stage), SQL_INT(state->idle_since_ms), SQL_INT(state->stage_ms),
		SQL_KNOWN(state->delivered_ms, -1), SQL_INT(state->next_clock_ms),
		SQL_INT(state->round), SQL_INT(state->clock_ms),
		SQL_KNOWN(state->clock_at_ms, -1), SQL_KNOWN(state->idle_below, -1));
}

static int write_record(struct policy_file *f, const struct policy_record *r, struct err *e)
{
	const struct policy_action *a = r->action;
	int rc = r->state ? set_state(f, r->key, r->user, r->state, e) : 0;
	if (rc == 0 && a)
		rc = policy_file_add_action(f, a, e);
	if (rc == 0 && a && a->step == STEP_BREAKER)
		rc = policy_file_run(f, e, "INSERT INTO breaker (at_ms, why) VALUES (?1, ?2)",
			SQL_INT(a->at_ms), SQL_TEXT(a->evidence));
	if (rc == 0 && r->cancels)
		rc = policy_notice_cancel(f, r->key, a->at_ms, e);
	for (size_t i = 0; i < r->n_notices && rc == 0; i++)
		rc = policy_notice_add(f, &r->notices[i], e);
	return rc;
}

int policy_file_write(struct policy_file *f, const struct policy_record *records, size_t n,
	const struct policy_pass *pass, struct err *e)
{
	int rc = policy_file_begin(f, e);
	if (rc)
		return rc;
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = write_record(f, &records[i], e);
	if (rc == 0 && pass)
		rc = policy_file_set_pass(f, pass, e);
	return policy_file_end(f, rc, e);
}
