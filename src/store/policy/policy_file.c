/* Opens policy.db, and reads and writes states, steps and arms. */
#include "store/policy/policy_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "policy.h"
#include "store/foreign.h"
#include "store/identify.h"
#include "store/policy/policy_private.h"
#include "store/sql.h"

enum { BUSY_MS = 3000, POLICY_FILE_VERSION = 3 };

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
static int policy_fail(struct policy_file *f, const char *doing, struct err *e)
{
	f->failed = true;
	return err_set(e, sqlite3_errcode(f->db) == SQLITE_BUSY ? ERR_BUSY : ERR_WORLD,
		"cannot %s %s: %s", doing, f->path, sql_why(f->db));
}

/* What root makes in the directory of a service must be the service's own. */
static void give_to_service(int fd, const char *path)
{
	struct stat dir;
	char parent[PATH_MAX];
	str_copy(parent, sizeof(parent), path);
	char *slash = strrchr(parent, '/');
	if (geteuid() != 0 || !slash)
		return;
	*slash = '\0';
	if (stat(parent, &dir) != 0 || dir.st_uid == 0 ||
		fchown(fd, dir.st_uid, dir.st_gid) == 0)
		return;
	log_warning("cannot give %s to the user of %s: %s", path, parent, strerror(errno));
}

static int make_file(const char *path, struct err *e)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (fd >= 0)
		give_to_service(fd, path);
	else if (errno == EEXIST)
		fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_set(e, ERR_WORLD, "cannot make %s: %s", path, strerror(errno));
	close(fd);
	return 0;
}

/* Every table, for the check that none is a view. */
static const char *const tables[] = { "session", "action", "notice", "keep", "arm", "pass",
	"simulation", "breaker", NULL };

/* Turns a file of each version into one of the next. */
static const char upgrade_1_sql[] =
	"ALTER TABLE session ADD COLUMN clock_at_ms INTEGER;"
	"ALTER TABLE action ADD COLUMN command TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE action ADD COLUMN gpus TEXT NOT NULL DEFAULT '';"
	"CREATE TABLE breaker (id INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL, "
	"why TEXT NOT NULL, released_ms INTEGER, user TEXT);";
static const char upgrade_2_sql[] = "ALTER TABLE session ADD COLUMN idle_below INTEGER;"
				    "PRAGMA user_version = 3;";
/* Views with which a reader sees an older version as the newest. */
static const char read_1_sql[] =
	"CREATE TEMP VIEW session AS SELECT *, NULL AS clock_at_ms, NULL AS idle_below "
	"FROM main.session;"
	"CREATE TEMP VIEW action AS SELECT *, '' AS command, '' AS gpus FROM main.action;"
	"CREATE TEMP VIEW breaker AS SELECT 0 AS id, 0 AS at_ms, '' AS why, 0 AS released_ms, "
	"'' AS user WHERE 0;";
static const char read_2_sql[] =
	"CREATE TEMP VIEW session AS SELECT *, NULL AS idle_below FROM main.session;";

static bool is_empty(const struct policy_file *f)
{
	return sql_value(f->db, "SELECT count(*) FROM sqlite_schema", 1, NULL) == 0;
}

static bool is_old(int64_t version)
{
	return version >= 1 && version < POLICY_FILE_VERSION;
}

/* Makes the tables of an empty file, or upgrades those of an older one. Another program may do
 * that at the same moment. */
static int make_tables(struct policy_file *f, struct err *e)
{
	if (sql_exec(f->db, "PRAGMA journal_mode = WAL") != SQLITE_OK ||
		sql_exec(f->db, "BEGIN IMMEDIATE") != SQLITE_OK)
		return policy_fail(f, "write", e);
	bool empty = is_empty(f);
	int64_t version = sql_value(f->db, "PRAGMA user_version", 0, NULL);
	const char *first = version == 1 ? upgrade_1_sql : "";
	const char *second = is_old(version) ? upgrade_2_sql : "";
	if (sql_exec(f->db, empty ? policy_sql : first) == SQLITE_OK &&
		sql_exec(f->db, empty ? "" : second) == SQLITE_OK &&
		sql_exec(f->db, "COMMIT") == SQLITE_OK)
		return 0;
	int rc = policy_fail(f, "write", e);
	sql_exec(f->db, "ROLLBACK");
	return rc;
}

/* Reads what the file says that it is. */
static int read_kind(struct policy_file *f, int64_t *id, int64_t *version, struct err *e)
{
	int rc = SQLITE_OK;
	*id = sql_value(f->db, "PRAGMA application_id", 0, &rc);
	*version = rc == SQLITE_OK ? sql_value(f->db, "PRAGMA user_version", 0, &rc) : 0;
	return rc == SQLITE_OK ? 0 : policy_fail(f, "read", e);
}

/* Checks what the file is. */
static int check(struct policy_file *f, bool write, struct err *e)
{
	int64_t id = 0, version = 0;
	int rc = read_kind(f, &id, &version, e);
	/* Asked once: another program may make the tables at any moment, in one go. */
	bool empty = rc == 0 && write && id == 0 && is_empty(f);
	if (rc == 0 && write && id == 0 && !empty)
		rc = read_kind(f, &id, &version, e);
	bool old = id == POLICY_APPLICATION_ID && is_old(version);
	if (rc == 0 && write && (old || empty)) {
		rc = make_tables(f, e);
		if (rc == 0)
			rc = read_kind(f, &id, &version, e);
	}
	if (rc)
		return rc;
	old = id == POLICY_APPLICATION_ID && is_old(version);
	if (!old && (id != POLICY_APPLICATION_ID || version != POLICY_FILE_VERSION))
		return err_set(e, ERR_WORLD,
			"%s is not a policy database, or another version wrote it", f->path);
	rc = foreign_check_tables(f->db, tables, f->path, e);
	if (rc == 0 && old &&
		sql_exec(f->db, version == 1 ? read_1_sql : read_2_sql) != SQLITE_OK)
		rc = policy_fail(f, "read", e);
	return rc;
}

static int open_writer(struct policy_file *f, struct err *e)
{
	int rc = make_file(f->path, e);
	if (rc)
		return rc;
	if (sqlite3_open_v2(f->path, &f->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
		    NULL) != SQLITE_OK ||
		foreign_restrict(f->db) != SQLITE_OK ||
		sqlite3_busy_timeout(f->db, BUSY_MS) != SQLITE_OK)
		return policy_fail(f, "open", e);
	if (sqlite3_db_readonly(f->db, "main") == 1)
		return err_set(e, ERR_WORLD, "cannot write %s: permission denied", f->path);
	/* A step that is forgotten after a power loss would be taken twice. */
	if (sql_exec(f->db, "PRAGMA synchronous = FULL; PRAGMA cache_size = -512") != SQLITE_OK)
		return policy_fail(f, "open", e);
	return 0;
}

static int open_reader(struct policy_file *f, struct err *e)
{
	struct foreign_file file = { .path = f->path, .wait_ms = BUSY_MS };
	if (access(f->path, F_OK) != 0)
		return err_set(e, errno == ENOENT ? ERR_NOTHING : ERR_WORLD,
			"cannot read %s: %s; gua enforce has not run here", f->path,
			strerror(errno));
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
	return sql_exec(f->db, "BEGIN IMMEDIATE") == SQLITE_OK ? 0 : policy_fail(f, "write", e);
}

int policy_file_end(struct policy_file *f, bool keep, struct err *e)
{
	bool commit = keep && !f->failed;
	if (commit && sql_exec(f->db, "COMMIT") == SQLITE_OK)
		return 0;
	int rc = commit ? policy_fail(f, "write", e) : 0;
	sql_exec(f->db, "ROLLBACK");
	return keep && !commit ? err_set(e, ERR_WORLD, "cannot write %s", f->path) : rc;
}

sqlite3_stmt *policy_prepare(struct policy_file *f, const char *sql)
{
	sqlite3_stmt *q = NULL;
	sqlite3_prepare_v2(f->db, sql, -1, &q, NULL);
	return q;
}

int policy_run(struct policy_file *f, sqlite3_stmt *q, struct err *e)
{
	int rc = q && sql_run(q, NULL) ? 0 : policy_fail(f, "write", e);
	sqlite3_finalize(q);
	return rc;
}

struct policy_query policy_select(struct policy_file *f, const char *sql)
{
	struct policy_query q = { f, policy_prepare(f, sql), SQLITE_ERROR };
	q.rc = q.row ? SQLITE_ROW : SQLITE_ERROR;
	return q;
}

bool policy_next(struct policy_query *q)
{
	if (q->rc == SQLITE_ROW)
		q->rc = sqlite3_step(q->row);
	return q->rc == SQLITE_ROW;
}

int policy_end(struct policy_query *q, int answer, struct err *e)
{
	sqlite3_finalize(q->row);
	if (answer)
		return answer;
	return q->rc == SQLITE_ROW || q->rc == SQLITE_DONE ? 0
							   : policy_fail(q->file, "read", e);
}

int64_t policy_number(sqlite3_stmt *row, int i)
{
	return sqlite3_column_type(row, i) == SQLITE_NULL ? -1 : sqlite3_column_int64(row, i);
}

#define STATE_COLUMNS                                                                          \
	"rule, level, stage, idle_since_ms, stage_ms, delivered_ms, next_clock_ms, round, "    \
	"key, user, clock_ms, clock_at_ms, idle_below FROM session"

const char *policy_text(sqlite3_stmt *row, int i)
{
	const char *at = (const char *)sqlite3_column_text(row, i);
	return at ? at : "";
}

static struct policy_state state_of(sqlite3_stmt *row)
{
	struct policy_state s = POLICY_STATE_NONE;
	int64_t level = policy_number(row, 1), stage = policy_number(row, 2);
	if (level < 0 || level >= POLICY_LEVELS || stage <= STAGE_NONE ||
		stage >= POLICY_STAGES)
		return s;
	s.level = (enum policy_level)level;
	s.stage = (enum policy_stage)stage;
	s.idle_since_ms = policy_number(row, 3);
	s.stage_ms = policy_number(row, 4);
	s.delivered_ms = policy_number(row, 5);
	s.next_clock_ms = policy_number(row, 6);
	s.round = policy_number(row, 7);
	s.clock_ms = policy_number(row, 10);
	s.clock_at_ms = policy_number(row, 11);
	s.idle_below = policy_number(row, 12);
	str_copy(s.rule, sizeof(s.rule), policy_text(row, 0));
	return s;
}

int policy_file_state(
	struct policy_file *f, const char *key, struct policy_state *state, struct err *e)
{
	struct policy_query q = policy_select(f, "SELECT " STATE_COLUMNS " WHERE key = ?1");
	sql_bind_text(q.row, 1, key);
	bool found = policy_next(&q);
	*state = found ? state_of(q.row) : POLICY_STATE_NONE;
	return policy_end(&q, 0, e);
}

int policy_file_set_state(struct policy_file *f, const char *key, const char *user,
	const struct policy_state *state, struct err *e)
{
	bool none = state->stage == STAGE_NONE;
	sqlite3_stmt *q = policy_prepare(
		f, none ? "DELETE FROM session WHERE key = ?1"
			: "INSERT OR REPLACE INTO session (key, user, rule, level, stage, "
			  "idle_since_ms, stage_ms, delivered_ms, next_clock_ms, round, "
			  "clock_ms, clock_at_ms, idle_below) VALUES (?1, ?2, ?3, ?4, ?5, "
			  "?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)");
	sql_bind_text(q, 1, key);
	if (!none) {
		sql_bind_text(q, 2, user);
		sql_bind_text(q, 3, state->rule);
		sqlite3_bind_int(q, 4, (int)state->level);
		sqlite3_bind_int(q, 5, (int)state->stage);
		sqlite3_bind_int64(q, 6, state->idle_since_ms);
		sqlite3_bind_int64(q, 7, state->stage_ms);
		sql_bind_known(q, 8, state->delivered_ms, -1);
		sqlite3_bind_int64(q, 9, state->next_clock_ms);
		sqlite3_bind_int64(q, 10, state->round);
		sqlite3_bind_int64(q, 11, state->clock_ms);
		sql_bind_known(q, 12, state->clock_at_ms, -1);
		sql_bind_known(q, 13, state->idle_below, -1);
	}
	return policy_run(f, q, e);
}

int policy_file_sessions(
	struct policy_file *f, policy_session_taker take, void *context, struct err *e)
{
	struct policy_query q = policy_select(f, "SELECT " STATE_COLUMNS " ORDER BY key");
	int answer = 0;
	while (answer == 0 && policy_next(&q)) {
		struct policy_state state = state_of(q.row);
		answer = take(context, policy_text(q.row, 8), policy_text(q.row, 9), &state);
	}
	return policy_end(&q, answer, e);
}

#define ACTION_TEXTS(X)                                                                        \
	X(rule)                                                                                \
	X(session)                                                                             \
	X(kind)                                                                                \
	X(user) X(pids) X(cards) X(evidence) X(result) X(config) X(actor) X(command) X(gpus)

int policy_file_add_action(struct policy_file *f, const struct policy_action *a, struct err *e)
{
	int at = 10;
	sqlite3_stmt *q = policy_prepare(f,
		"INSERT INTO action (at_ms, step, stage, mode, uid, held_bytes, idle_since_ms, "
		"idle_ms, given_back_ms, rule, session, kind, user, pids, cards, evidence, "
		"result, config, actor, command, gpus) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, "
		"?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)");
	sqlite3_bind_int64(q, 1, a->at_ms);
	sql_bind_text(q, 2, policy_step_names[a->step]);
	sql_bind_text(q, 3, policy_stage_names[a->stage]);
	sql_bind_text(q, 4, a->would ? "observe" : "enforce");
	sql_bind_known(q, 5, a->uid, -1);
	sql_bind_known(q, 6, a->held_bytes, -1);
	sql_bind_known(q, 7, a->idle_since_ms, -1);
	sql_bind_known(q, 8, a->idle_ms, -1);
	sql_bind_known(q, 9, a->given_back_ms, -1);
#define BIND(member) sql_bind_text(q, at++, a->member ? a->member : "");
	ACTION_TEXTS(BIND)
#undef BIND
	return policy_run(f, q, e);
}

static int find_name(const char *const *names, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return 0;
}

static struct policy_action action_of(sqlite3_stmt *row)
{
	int at = 10;
	struct policy_action a = { .at_ms = policy_number(row, 0),
		.step_name = policy_text(row, 1),
		.stage_name = policy_text(row, 2),
		.would = strcmp(policy_text(row, 3), "observe") == 0,
		.uid = policy_number(row, 4),
		.held_bytes = policy_number(row, 5),
		.idle_since_ms = policy_number(row, 6),
		.idle_ms = policy_number(row, 7),
		.given_back_ms = policy_number(row, 8),
		.id = policy_number(row, 9) };
	a.step = (enum policy_step)find_name(policy_step_names, POLICY_STEPS, a.step_name);
	a.stage = (enum policy_stage)find_name(policy_stage_names, POLICY_STAGES, a.stage_name);
#define READ(member) a.member = policy_text(row, at++);
	ACTION_TEXTS(READ)
#undef READ
	return a;
}

int policy_file_actions(struct policy_file *f, struct policy_span span,
	policy_action_taker take, void *context, struct err *e)
{
	struct policy_query q = policy_select(f,
		"SELECT at_ms, step, stage, mode, uid, held_bytes, idle_since_ms, idle_ms, "
		"given_back_ms, id, rule, session, kind, user, pids, cards, evidence, result, "
		"config, actor, command, gpus FROM action WHERE at_ms >= ?1 AND at_ms < ?2 "
		"ORDER BY id");
	sqlite3_bind_int64(q.row, 1, span.since_ms);
	sqlite3_bind_int64(q.row, 2, span.until_ms);
	int answer = 0;
	while (answer == 0 && policy_next(&q)) {
		struct policy_action a = action_of(q.row);
		answer = take(context, &a);
	}
	return policy_end(&q, answer, e);
}
