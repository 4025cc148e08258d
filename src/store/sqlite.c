/* SQLite with our errors. */
#include "store/sqlite.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"

enum { BOUND_TEXT_CAP = 1024 };

/* Only a file from outside has a limit of work: see foreign.h. */
#define TOO_MUCH_WORK                                                                          \
	"reading it takes more work than a file of this size can need; it is damaged, or was " \
	"made to block programs"
#define TOO_MUCH_MEMORY                                                                        \
	ERR_MEMORY_TEXT ", or the file needs more than the memory that reading it may take"

static const struct {
	int rc; /* primary result code */
	int code;
	const char *why;
} failures[] = {
	{ SQLITE_FULL, ERR_BUSY, "the disk is full; what is stored is safe" },
	{ SQLITE_READONLY, ERR_WORLD, "the file or its directory is read-only" },
	{ SQLITE_PERM, ERR_WORLD, "permission denied" },
	{ SQLITE_AUTH, ERR_WORLD, "permission denied" },
	{ SQLITE_BUSY, ERR_BUSY, "it is locked by another program" },
	{ SQLITE_LOCKED, ERR_BUSY, "it is locked by another program" },
	{ SQLITE_PROTOCOL, ERR_BUSY, "it is locked by another program" },
	{ SQLITE_CORRUPT, ERR_WORLD,
		"the file is damaged; run `gua doctor`, then move it away or restore a copy" },
	{ SQLITE_NOTADB, ERR_WORLD,
		"the file is damaged or not a database; run `gua doctor`, then move it away or "
		"restore a copy" },
	{ SQLITE_NOMEM, ERR_WORLD, TOO_MUCH_MEMORY },
	{ SQLITE_INTERRUPT, ERR_WORLD, TOO_MUCH_WORK },
};

/* A failure of SQLite, and what was being done. */
struct failure {
	int rc, system_errno; /* 0: none */
	const char *message;  /* SQLite's */
	const char *doing, *path;
};

static bool is_no_space(int system_errno)
{
	return system_errno == ENOSPC || system_errno == EDQUOT || system_errno == EFBIG;
}

static int fail(struct err *e, const struct failure *f)
{
	/* I/O errors and failures to open have an errno. A full disk or quota may be reported
	 * as either. */
	int rc = is_no_space(f->system_errno) ? SQLITE_FULL : f->rc & 0xff;
	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++)
		if (failures[i].rc == rc)
			return err_set(e, failures[i].code, "cannot %s the store %s: %s",
				f->doing, f->path, failures[i].why);
	if (f->system_errno)
		return err_set(e, ERR_WORLD, "cannot %s the store %s: %s (%s)", f->doing,
			f->path, f->message, strerror(f->system_errno));
	return err_set(
		e, ERR_WORLD, "cannot %s the store %s: %s", f->doing, f->path, f->message);
}

/* The errno behind a failure of I/O, or 0. SQLite loses it on some error paths; then errno
 * itself is used, if it says that there is no space. */
static int why_system(sqlite3 *db, int rc)
{
	int left = errno;
	if ((rc & 0xff) != SQLITE_IOERR && (rc & 0xff) != SQLITE_CANTOPEN)
		return 0;
	int known = sqlite3_system_errno(db);
	return known || !is_no_space(left) ? known : left;
}

int sql_fail(struct err *e, sqlite3 *db, const char *doing, const char *path)
{
	int rc = db ? sqlite3_errcode(db) : SQLITE_NOMEM;
	const struct failure failure = { rc, why_system(db, rc),
		db ? sqlite3_errmsg(db) : ERR_MEMORY_TEXT, doing, path };
	return fail(e, &failure);
}

int sql_fail_code(struct err *e, int rc, const char *doing, const char *path)
{
	const struct failure failure = { rc, 0, sqlite3_errstr(rc), doing, path };
	return fail(e, &failure);
}

const char *sql_why(sqlite3 *db)
{
	int rc = sqlite3_errcode(db) & 0xff;
	if (rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB) /* gua doctor examines stores only */
		return rc == SQLITE_CORRUPT ? "the file is damaged" : "it is not a database";
	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++)
		if (failures[i].rc == rc)
			return failures[i].why;
	return sqlite3_errmsg(db);
}

int sql_exec(sqlite3 *db, const char *sql)
{
	return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

int64_t sql_value(sqlite3 *db, const char *sql, int64_t fallback, int *rc)
{
	sqlite3_stmt *s = NULL;
	int64_t value = fallback;
	int result = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
	if (result == SQLITE_OK) {
		result = sqlite3_step(s);
		if (result == SQLITE_ROW && sqlite3_column_type(s, 0) != SQLITE_NULL)
			value = sqlite3_column_int64(s, 0);
		if (result == SQLITE_ROW || result == SQLITE_DONE)
			result = SQLITE_OK;
	}
	sqlite3_finalize(s);
	if (rc)
		*rc = result;
	return value;
}

void sql_bind_known(sqlite3_stmt *s, int place, int64_t value, int64_t unknown)
{
	if (value == unknown)
		sqlite3_bind_null(s, place);
	else
		sqlite3_bind_int64(s, place, value);
}

void sql_bind_text(sqlite3_stmt *s, int place, const char *text)
{
	char safe[BOUND_TEXT_CAP];
	size_t len = text_escape(safe, sizeof(safe), text, strlen(text));
	sqlite3_bind_text(s, place, safe, (int)len, SQLITE_TRANSIENT);
}

void sql_bind_text_or_null(sqlite3_stmt *s, int place, const char *text)
{
	if (*text)
		sql_bind_text(s, place, text);
	else
		sqlite3_bind_null(s, place);
}

int sql_once(sqlite3_stmt *s, int64_t *first)
{
	int rc = sqlite3_step(s);
	if (rc == SQLITE_ROW && first)
		*first = sqlite3_column_int64(s, 0);
	int reset = sqlite3_reset(s);
	return rc == SQLITE_ROW && reset != SQLITE_OK ? reset : rc;
}

bool sql_run(sqlite3_stmt *s, int64_t *first)
{
	int rc = s ? sql_once(s, first) : SQLITE_ERROR;
	return rc == SQLITE_DONE || rc == SQLITE_ROW;
}

sqlite3_stmt *sql_kept(sqlite3 *db, sqlite3_stmt **kept, const char *sql)
{
	if (!*kept)
		sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, kept, NULL);
	return *kept;
}
