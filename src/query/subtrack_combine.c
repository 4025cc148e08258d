/* Joins several sub-tracking files into one. */
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "query/subtrack_files.h"

enum { MAX_FILE = 1 << 30 };
static const char header[] = "process_id,code_block_name,position,timestamp";

static int check_kinds(const char *target, const char *const *paths, size_t n, struct err *e)
{
	const char *ending = strrchr(target, '.');
	bool known = ending && (!strcmp(ending, ".csv") || !strcmp(ending, ".sqlite"));
	if (!known)
		return err_set(e, ERR_USAGE, "%s must end in .csv or .sqlite", target);
	for (size_t i = 0; i < n; i++) {
		const char *own = strrchr(paths[i], '.');
		if (!own || strcmp(own, ending) != 0)
			return err_set(e, ERR_USAGE, "%s does not end in %s as %s does",
				paths[i], ending, target);
	}
	if (access(target, F_OK) == 0)
		return err_set(e, ERR_WORLD, "%s exists; nothing was combined", target);
	return 0;
}

/* Reads a file to check that it is a sub-tracking file, before anything is written. */
static int check_content(const char *path, struct err *e)
{
	struct marks m = { 0 };
	int rc = marks_read(&m, path, e);
	marks_finish(&m);
	return rc;
}

/* Copies the rows after the header unchanged. */
static int append_csv(FILE *to, const char *path, struct err *e)
{
	char *bytes = NULL;
	size_t len = 0;
	int rc = file_read_all(path, MAX_FILE, &bytes, &len, e);
	if (rc)
		return rc;
	size_t head = strcspn(bytes, "\n");
	head += head < len;
	bool ok = fwrite(bytes + head, 1, len - head, to) == len - head;
	if (len > head && bytes[len - 1] != '\n')
		ok = fputc('\n', to) != EOF && ok;
	free(bytes);
	return ok ? 0 : err_set(e, ERR_WORLD, "cannot write: %s", strerror(errno));
}

static int combine_csv(const char *target, const char *const *paths, size_t n, struct err *e)
{
	FILE *to = fopen(target, "wxe");
	if (!to)
		return err_set(e, ERR_WORLD, "cannot write %s: %s", target, strerror(errno));
	fprintf(to, "%s\n", header);
	int rc = 0;
	for (size_t i = 0; !rc && i < n; i++)
		rc = append_csv(to, paths[i], e);
	if (fclose(to) != 0 && !rc)
		rc = err_set(e, ERR_WORLD, "cannot write %s: %s", target, strerror(errno));
	return rc;
}

/* Copies the rows of `from` as they are; returns SQLite's code. */
static int copy_rows(sqlite3_stmt *from, sqlite3_stmt *to)
{
	int rc;
	while ((rc = sqlite3_step(from)) == SQLITE_ROW) {
		for (int i = 0; i < sqlite3_column_count(from); i++)
			sqlite3_bind_value(to, i + 1, sqlite3_column_value(from, i));
		sqlite3_step(to);
		rc = sqlite3_reset(to);
		if (rc != SQLITE_OK)
			return rc;
	}
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int append_sqlite(sqlite3 *target, const char *path, struct err *e)
{
	static const char read[] =
		"SELECT process_id, code_block_name, position, timestamp FROM data";
	sqlite3 *db = NULL;
	sqlite3_stmt *from = NULL, *to = NULL;
	int code = subtrack_open(&db, path, e);
	if (code)
		return code;
	int rc = sqlite3_prepare_v2(
		target, "INSERT INTO data VALUES (?, ?, ?, ?)", -1, &to, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(db, read, -1, &from, NULL);
	if (rc == SQLITE_OK)
		rc = copy_rows(from, to);
	if (rc != SQLITE_OK)
		code = err_set(e, ERR_WORLD, "cannot copy %s: %s", path, sqlite3_errstr(rc));
	sqlite3_finalize(from);
	sqlite3_finalize(to);
	sqlite3_close(db);
	return code;
}

static int combine_sqlite(const char *target, const char *const *paths, size_t n, struct err *e)
{
	sqlite3 *db = NULL;
	static const char table[] =
		"BEGIN; CREATE TABLE data (process_id INTEGER, code_block_name TEXT,"
		" position INTEGER, timestamp REAL)";
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, rc = 0;
	bool ok = sqlite3_open_v2(target, &db, flags, NULL) == SQLITE_OK &&
		  sqlite3_exec(db, table, NULL, NULL, NULL) == SQLITE_OK;
	for (size_t i = 0; ok && !rc && i < n; i++)
		rc = append_sqlite(db, paths[i], e);
	if (!rc && (!ok || sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK))
		rc = err_set(e, ERR_WORLD, "cannot write %s: %s", target, sqlite3_errmsg(db));
	sqlite3_close(db);
	return rc;
}

int subtrack_combine(const char *target, const char *const *paths, size_t n, struct err *e)
{
	int rc = check_kinds(target, paths, n, e);
	for (size_t i = 0; !rc && i < n; i++)
		rc = check_content(paths[i], e);
	if (rc)
		return rc;
	rc = subtrack_is_csv(target) ? combine_csv(target, paths, n, e)
				     : combine_sqlite(target, paths, n, e);
	if (rc)
		unlink(target);
	return rc;
}
