/* Opens SQLite files that other processes wrote, with limits. */
#include "store/foreign.h"

#include <malloc.h>
#include <stdatomic.h>

#include "store/lock.h"
#include "store/sql.h"

static bool started;
static atomic_llong heap_used, limit; /* bytes; a limit of 0: none */

/* Several threads may exceed the limit at the same moment, each by one allocation. */
static bool is_too_much(long long more)
{
	long long most = atomic_load(&limit);
	return most > 0 && atomic_load(&heap_used) + more > most;
}

static void *count(void *block)
{
	atomic_fetch_add(&heap_used, (long long)malloc_usable_size(block));
	return block;
}

static void *heap_malloc(int bytes)
{
	return is_too_much(bytes) ? NULL : count(malloc((size_t)bytes));
}

static void heap_free(void *block)
{
	atomic_fetch_sub(&heap_used, (long long)malloc_usable_size(block));
	free(block);
}

static void *heap_realloc(void *block, int bytes)
{
	long long before = (long long)malloc_usable_size(block);
	if (is_too_much(bytes - before))
		return NULL;
	void *moved = realloc(block, (size_t)bytes);
	if (!moved)
		return NULL;
	atomic_fetch_sub(&heap_used, before);
	return count(moved);
}

static int heap_size(void *block)
{
	return (int)malloc_usable_size(block);
}

static int heap_round_up(int bytes)
{
	return (bytes + 7) & ~7;
}

static int heap_init(void *context)
{
	(void)context;
	return SQLITE_OK;
}

static void heap_shut_down(void *context)
{
	(void)context;
}

void foreign_start_heap(void)
{
	static const sqlite3_mem_methods methods = { heap_malloc, heap_free, heap_realloc,
		heap_size, heap_round_up, heap_init, heap_shut_down, NULL };
	if (!started && sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) == SQLITE_OK)
		started = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0) == SQLITE_OK;
}

void foreign_set_heap_limit(int64_t bytes)
{
	if (started)
		atomic_store(&limit, bytes);
	else
		sqlite3_hard_heap_limit64(bytes);
}

bool foreign_has_heap_limit(void)
{
	return started ? atomic_load(&limit) > 0 : sqlite3_hard_heap_limit64(-1) > 0;
}

/* Limit of SQLite's memory, for the whole process. Importing a GiB needs less than 16 MiB. */
#define HEAP_BYTES (INT64_C(64) << 20)
/* The same for each of many files: an open store needs about 170 KiB. */
#define FILE_BYTES (INT64_C(512) << 10)

/* Limits of the work of one statement. A row has 8 bytes or more and takes some 30 steps of
 * SQLite's machine, including sorting; gua's own statements stay below 2 steps a byte. The time
 * is processor time, because a statement may wait for a slow disk or a pager. The longest one,
 * the sort of an import, needs about 9 s for a GiB and may take 200 s. */
enum { STEPS_BASE = 1000000, STEPS_PER_BYTE = 16, SECONDS_BASE = 10, MIB_PER_SECOND = 5 };
enum { STEPS_BETWEEN = 4000 }; /* between two checks */
/* How much of a file's size is believed: all of it up to HOLES_BYTES, and beyond that what the
 * file takes on the disk, up to 2 TiB. */
enum { BLOCK_BYTES = 512, HOLES_BYTES = 2 << 20 };
#define MOST_BLOCKS (INT64_C(1) << 32)

static const struct {
	int id, value;
} limits[] = {
	{ SQLITE_LIMIT_LENGTH, 1 << 20 },
	{ SQLITE_LIMIT_SQL_LENGTH, 1 << 16 },
	{ SQLITE_LIMIT_COLUMN, 100 },
	{ SQLITE_LIMIT_EXPR_DEPTH, 100 },
	{ SQLITE_LIMIT_COMPOUND_SELECT, 20 },
	{ SQLITE_LIMIT_VDBE_OP, 25000 },
	{ SQLITE_LIMIT_ATTACHED, 0 },
	{ SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100 },
	{ SQLITE_LIMIT_VARIABLE_NUMBER, 100 },
	{ SQLITE_LIMIT_TRIGGER_DEPTH, 1 },
	{ SQLITE_LIMIT_WORKER_THREADS, 0 },
};

/* How much work the current statement has done. */
struct guard {
	char path[PATH_MAX];
	struct foreign_stop *stop;
	bool read_once;		   /* steps count for all statements together */
	int64_t steps, most_steps; /* most_steps 0: not worked out for this statement yet */
	int64_t until_us;	   /* of the thread's processor time */
};

static int64_t thread_us(void)
{
	struct timespec used = { 0 };
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return used.tv_sec * INT64_C(1000000) + used.tv_nsec / 1000;
}

static int64_t size_of(const char *path, const char *suffix)
{
	char name[PATH_MAX + 16];
	struct stat st;
	snprintf(name, sizeof(name), "%s%s", path, suffix);
	if (stat(name, &st) != 0)
		return 0;
	/* A file with holes takes no space, so its size does not limit the work it causes. Some
	 * file systems count the blocks of a new file late, so small sizes are believed. */
	int64_t blocks =
		(int64_t)st.st_blocks < MOST_BLOCKS ? (int64_t)st.st_blocks : MOST_BLOCKS;
	int64_t most = blocks * BLOCK_BYTES > HOLES_BYTES ? blocks * BLOCK_BYTES : HOLES_BYTES;
	return (int64_t)st.st_size < most ? (int64_t)st.st_size : most;
}

/* SQLite calls this when a statement starts. Most statements end before the first check, so
 * the limits, which take system calls, are worked out there. */
static int start_statement(unsigned event, void *guard, void *statement, void *text)
{
	struct guard *g = guard;
	(void)event;
	(void)statement;
	(void)text;
	if (!g->read_once)
		g->steps = 0;
	g->most_steps = 0;
	return 0;
}

/* Sets the limits of the statement. The file may have grown since the last one. */
static void set_limits(struct guard *g)
{
	int64_t bytes = size_of(g->path, "") + size_of(g->path, "-wal");
	g->most_steps = STEPS_BASE + bytes * STEPS_PER_BYTE;
	int64_t seconds = SECONDS_BASE + (bytes >> 20) / MIB_PER_SECOND;
	g->until_us = thread_us() + seconds * 1000000;
}

static int check_work(void *guard)
{
	struct guard *g = guard;
	if (!g->most_steps)
		set_limits(g);
	g->steps += STEPS_BETWEEN;
	if (g->steps > g->most_steps || thread_us() > g->until_us)
		return 1;
	return g->stop && g->stop->asked && g->stop->asked(g->stop->context);
}

static void no_function(sqlite3_context *context, int n, sqlite3_value **values)
{
	(void)n;
	(void)values;
	sqlite3_result_null(context);
}

/* The connection owns the guard. This SQL function exists only because SQLite frees a
 * function's data when the connection is closed. */
static int guard_work(sqlite3 *db, const struct foreign_file *file)
{
	struct guard *g = calloc(1, sizeof(*g));
	if (!g)
		return SQLITE_NOMEM;
	str_copy(g->path, sizeof(g->path), file->path);
	g->stop = file->stop;
	g->read_once = file->read_once;
	int rc = sqlite3_create_function_v2(db, "gua_guard", 0, SQLITE_UTF8 | SQLITE_DIRECTONLY,
		g, no_function, NULL, NULL, free);
	if (rc != SQLITE_OK) /* SQLite has freed g */
		return rc;
	sqlite3_progress_handler(db, STEPS_BETWEEN, check_work, g);
	return sqlite3_trace_v2(db, SQLITE_TRACE_STMT, start_statement, g);
}

int foreign_restrict(sqlite3 *db)
{
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		sqlite3_limit(db, limits[i].id, limits[i].value);
	sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
	return sql_exec(db, "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0");
}

bool foreign_has_log(const char *path)
{
	/* SQLite follows a link, and has its log beside the file. */
	char *file = realpath(path, NULL);
	bool has = file && (size_of(file, "-wal") > 0 || size_of(file, "-journal") > 0);
	free(file);
	return has;
}

/* "file:PATH?immutable=1" with the path's bytes encoded; false when it does not fit. */
static bool immutable_uri(char *uri, size_t cap, const char *path)
{
	static const char hex[] = "0123456789ABCDEF";
	static const char tail[] = "?immutable=1";
	size_t n = (size_t)snprintf(uri, cap, "file:");
	for (const unsigned char *c = (const unsigned char *)path; *c; c++) {
		if (n + 3 + sizeof(tail) > cap)
			return false;
		if (*c == '%' || *c == '?' || *c == '#' || *c < 0x21 || *c > 0x7e) {
			uri[n++] = '%';
			uri[n++] = hex[*c >> 4];
			uri[n++] = hex[*c & 15];
		} else {
			uri[n++] = (char)*c;
		}
	}
	memcpy(uri + n, tail, sizeof(tail));
	return true;
}

static int connect(sqlite3 **db, const struct foreign_file *file)
{
	char uri[3 * PATH_MAX + 32];
	int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX;
	if (!file->immutable)
		return sqlite3_open_v2(file->path, db, flags, NULL);
	if (!immutable_uri(uri, sizeof(uri), file->path))
		return SQLITE_CANTOPEN;
	return sqlite3_open_v2(uri, db, flags | SQLITE_OPEN_URI, NULL);
}

int foreign_open(sqlite3 **db, const struct foreign_file *file, struct err *e)
{
	*db = NULL;
	int code = file_check_regular(file->path, e);
	if (!code && !file->immutable)
		code = lock_check_logs(file->path, e);
	if (code)
		return code;
	if (!foreign_has_heap_limit())
		foreign_set_heap_limit(HEAP_BYTES);
	int rc = connect(db, file);
	if (rc == SQLITE_OK)
		rc = guard_work(*db, file);
	if (rc == SQLITE_OK)
		rc = foreign_restrict(*db);
	/* Views of the file itself; gua's own temporary ones work. */
	if (rc == SQLITE_OK)
		rc = sqlite3_db_config(*db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_busy_timeout(*db, file->wait_ms);
	if (rc == SQLITE_OK)
		return 0;
	code = err_set(e, ERR_WORLD, "cannot open %s: %s", file->path,
		*db ? sql_why(*db) : sqlite3_errstr(rc));
	sqlite3_close(*db);
	*db = NULL;
	return code;
}

static int refuse(const char *path, sqlite3_stmt *row, const char *why, struct err *e)
{
	return err_set(e, ERR_WORLD,
		"%s is refused: its %s %s. No version of the tool makes such a file", path,
		(const char *)sqlite3_column_text(row, 0), why);
}

/* Whether a CREATE TABLE may define computed columns: they need the word AS, and "(" or a
 * comment after it. Each table of each store is examined, and strcasestr() is slow. */
static bool may_compute(const char *sql)
{
	for (const char *at = sql; *at; at++)
		if ((*at == 'a' || *at == 'A') && (at[1] == 's' || at[1] == 'S') &&
			strchr("(/-", at[2 + strspn(at + 2, " \t\r\n\f\v")]))
			return true;
	return false;
}

static bool has_computed(sqlite3 *db, const char *table)
{
	int64_t n = 1; /* if the query fails, the file is refused */
	sql_do(db, "SELECT count(*) FROM pragma_table_xinfo(?) WHERE hidden <> 0", &n,
		SQL_RAW(table));
	return n > 0;
}

/* Checks an object of the schema that is one of our tables, or belongs to one. */
static int check_row(sqlite3 *db, sqlite3_stmt *row, const char *path, struct err *e)
{
	const char *name = (const char *)sqlite3_column_text(row, 0);
	const char *type = (const char *)sqlite3_column_text(row, 1);
	const char *sql = (const char *)sqlite3_column_text(row, 3);
	if (type && strcmp(type, "trigger") == 0)
		return refuse(path, row, "has a trigger", e);
	if (!type || !sql || strcmp(type, "table") != 0)
		return refuse(path, row, "is not a table", e);
	if (sqlite3_column_int64(row, 2) <= 0)
		return refuse(path, row, "is a virtual table", e);
	return may_compute(sql) && has_computed(db, name)
		       ? refuse(path, row, "has computed columns", e)
		       : 0;
}

static bool is_one_of(const char *const *tables, const char *name)
{
	for (size_t i = 0; name && tables[i]; i++)
		if (strcasecmp(tables[i], name) == 0)
			return true;
	return false;
}

void foreign_expect(size_t n)
{
	foreign_set_heap_limit(HEAP_BYTES + (int64_t)n * FILE_BYTES);
}

int foreign_check_tables(
	sqlite3 *db, const char *const *tables, const char *path, struct err *e)
{
	/* For a trigger, tbl_name is the table it belongs to. */
	static const char sql[] =
		"SELECT iif(type = 'trigger', tbl_name, name), type, rootpage, sql "
		"FROM main.sqlite_schema";
	sqlite3_stmt *row = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &row, NULL);
	int code = 0;
	while (rc == SQLITE_OK && code == 0 && sqlite3_step(row) == SQLITE_ROW)
		if (is_one_of(tables, (const char *)sqlite3_column_text(row, 0)))
			code = check_row(db, row, path, e);
	rc = sqlite3_finalize(row) == SQLITE_OK ? rc : sqlite3_errcode(db);
	if (rc != SQLITE_OK && code == 0)
		code = err_set(e, sqlite3_errcode(db) == SQLITE_BUSY ? ERR_BUSY : ERR_WORLD,
			"cannot read %s: %s", path, sql_why(db));
	return code;
}
