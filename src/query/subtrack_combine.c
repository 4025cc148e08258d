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

static bool attach_and_copy(sqlite3 *db, const char *path)
{
	sqlite3_stmt *attach = NULL;
	bool ok = sqlite3_prepare_v2(db, "ATTACH ? AS one", -1, &attach, NULL) == SQLITE_OK;
	if (ok) {
		sqlite3_bind_text(attach, 1, path, -1, SQLITE_TRANSIENT);
		ok = sqlite3_step(attach) == SQLITE_DONE;
	}
	sqlite3_finalize(attach);
	static const char copy[] =
		"INSERT INTO main.data SELECT process_id, code_block_name, position,"
		" timestamp FROM one.data; DETACH one";
	return ok && sqlite3_exec(db, copy, NULL, NULL, NULL) == SQLITE_OK;
}

static int combine_sqlite(const char *target, const char *const *paths, size_t n, struct err *e)
{
	sqlite3 *db = NULL;
	static const char table[] =
		"CREATE TABLE data (process_id INTEGER, code_block_name TEXT,"
		" position INTEGER, timestamp REAL)";
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
	bool ok = sqlite3_open_v2(target, &db, flags, NULL) == SQLITE_OK &&
		  sqlite3_exec(db, table, NULL, NULL, NULL) == SQLITE_OK;
	for (size_t i = 0; ok && i < n; i++)
		ok = attach_and_copy(db, paths[i]);
	int rc = ok ? 0
		    : err_set(e, ERR_WORLD, "cannot write %s: %s", target, sqlite3_errmsg(db));
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
