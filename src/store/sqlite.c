/* SQLite with our errors. */
#include "store/sqlite.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"

enum { BOUND_TEXT_CAP = 1024 };

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
	{ SQLITE_NOMEM, ERR_WORLD, ERR_MEMORY_TEXT },
};

static int fail(struct err *e, int rc, int system_errno, const char *message, const char *doing,
	const char *path)
{
	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++)
		if (failures[i].rc == (rc & 0xff))
			return err_set(e, failures[i].code, "cannot %s the store %s: %s", doing,
				path, failures[i].why);
	/* I/O errors and failures to open have an errno. A full disk or quota may be reported
	 * as either. */
	if (system_errno == ENOSPC || system_errno == EDQUOT || system_errno == EFBIG)
		return fail(e, SQLITE_FULL, 0, "", doing, path);
	if (system_errno)
		return err_set(e, ERR_WORLD, "cannot %s the store %s: %s (%s)", doing, path,
			message, strerror(system_errno));
	return err_set(e, ERR_WORLD, "cannot %s the store %s: %s", doing, path, message);
}

/* The errno behind a failure of I/O, or 0. SQLite loses it on some error paths; then errno
 * itself is used, if it says that there is no space. */
static int why_system(sqlite3 *db, int rc)
{
	int left = errno;
	bool room = left == ENOSPC || left == EDQUOT || left == EFBIG;
	if ((rc & 0xff) != SQLITE_IOERR && (rc & 0xff) != SQLITE_CANTOPEN)
		return 0;
	int known = sqlite3_system_errno(db);
	return known || !room ? known : left;
}

int sql_fail(struct err *e, sqlite3 *db, const char *doing, const char *path)
{
	int rc = db ? sqlite3_errcode(db) : SQLITE_NOMEM;
	return fail(e, rc, why_system(db, rc), db ? sqlite3_errmsg(db) : ERR_MEMORY_TEXT, doing,
		path);
}

int sql_fail_code(struct err *e, int rc, const char *doing, const char *path)
{
	return fail(e, rc, 0, sqlite3_errstr(rc), doing, path);
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
