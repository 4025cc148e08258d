/* SQLite with our errors: short functions that bind, run and read. */
#include "store/sql.h"

enum { BOUND_TEXT_CAP = 1024 };

/* Only files from outside have a limit of work: see foreign.h. */
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
		"the file is damaged; stop what writes it, then move it away or restore a "
		"copy" },
	{ SQLITE_NOTADB, ERR_WORLD,
		"the file is damaged or not a database; move it away or restore a copy" },
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

/* Returns the errno behind an I/O failure, or 0. SQLite loses it on some error paths; then
 * errno itself is used, if it means that there is no space. */
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
	if (is_no_space(why_system(db, rc)))
		rc = SQLITE_FULL;
	if (rc == SQLITE_NOTADB)
		return "it is not a database";
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

/* Binds text, escaped so that it is safe to show. */
static void bind_text(sqlite3_stmt *s, int place, const char *text)
{
	char safe[BOUND_TEXT_CAP];
	size_t len = str_escape(safe, sizeof(safe), text, strlen(text));
	sqlite3_bind_text(s, place, safe, (int)len, SQLITE_TRANSIENT);
}

void sql_bind_from(sqlite3_stmt *s, int place, const struct sql_arg *args)
{
	for (; s && args->type != ARG_END; args++, place++) {
		bool null = (args->type == ARG_KNOWN && args->number == args->unknown) ||
			    (args->type == ARG_REAL && isnan(args->real)) ||
			    (args->type == ARG_OPTIONAL && !*args->text);
		if (null)
			sqlite3_bind_null(s, place);
		else if (args->type == ARG_INT || args->type == ARG_KNOWN)
			sqlite3_bind_int64(s, place, args->number);
		else if (args->type == ARG_REAL)
			sqlite3_bind_double(s, place, args->real);
		else if (args->type == ARG_RAW)
			sqlite3_bind_text(s, place, args->text, -1, SQLITE_STATIC);
		else
			bind_text(s, place, args->text);
	}
}

bool sql_run(sqlite3_stmt *s, int64_t *first)
{
	int rc = s ? sqlite3_step(s) : SQLITE_ERROR;
	if (rc == SQLITE_ROW && first)
		*first = sqlite3_column_int64(s, 0);
	int reset = sqlite3_reset(s);
	return rc == SQLITE_DONE || (rc == SQLITE_ROW && reset == SQLITE_OK);
}

bool sql_put_args(sqlite3_stmt *s, int64_t *first, const struct sql_arg *args)
{
	sql_bind_from(s, 1, args);
	return sql_run(s, first);
}

bool sql_do_args(sqlite3 *db, const char *sql, int64_t *first, const struct sql_arg *args)
{
	sqlite3_stmt *s = NULL;
	sqlite3_prepare_v2(db, sql, -1, &s, NULL);
	bool good = sql_put_args(s, first, args);
	sqlite3_finalize(s);
	return good;
}

sqlite3_stmt *sql_kept(sqlite3 *db, sqlite3_stmt **kept, const char *sql)
{
	if (!*kept)
		sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, kept, NULL);
	return *kept;
}

const struct slot_table slot_tables[SLOT_TABLES] = {
	{ "usage_1h", "holding_1h", "reserved_1h", 3600 },
	{ "usage_5m", "holding_5m", "reserved_5m", 300 },
	{ "usage_1m", "holding_1m", "reserved_1m", 60 },
};

static int sql_failed(sqlite3 *db, struct err *e)
{
	const char *path = sqlite3_db_filename(db, "main");
	int code = sqlite3_errcode(db) == SQLITE_BUSY ? ERR_BUSY : ERR_WORLD;
	return err_set(e, code, "cannot read %s: %s", path ? path : "the store", sql_why(db));
}

static int prepare(
	sqlite3 *db, sqlite3_stmt **stmt, struct err *e, const char *format, va_list args)
{
	char *sql = sqlite3_vmprintf(format, args);
	*stmt = NULL;
	if (!sql)
		return err_memory(e);
	int rc = sqlite3_prepare_v2(db, sql, -1, stmt, NULL);
	sqlite3_free(sql);
	return rc == SQLITE_OK ? 0 : sql_failed(db, e);
}

int sql_prepare(sqlite3 *db, sqlite3_stmt **stmt, struct err *e, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int rc = prepare(db, stmt, e, format, args);
	va_end(args);
	return rc;
}

int sql_step(sqlite3_stmt *stmt, struct err *e)
{
	int rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW)
		return 1;
	return rc == SQLITE_DONE ? 0 : sql_failed(sqlite3_db_handle(stmt), e);
}

bool sql_next(sqlite3_stmt **stmt, int *rc, struct err *e)
{
	int found = *rc ? 0 : sql_step(*stmt, e);
	if (found == 1)
		return true;
	if (found < 0)
		*rc = found;
	sqlite3_finalize(*stmt);
	*stmt = NULL;
	return false;
}

int sql_number(sqlite3 *db, int64_t *number, struct err *e, const char *format, ...)
{
	sqlite3_stmt *stmt;
	va_list args;
	va_start(args, format);
	int rc = prepare(db, &stmt, e, format, args);
	va_end(args);
	if (rc)
		return rc;
	rc = sql_step(stmt, e);
	if (rc == 1)
		*number = sql_int(stmt, 0, *number);
	sqlite3_finalize(stmt);
	return rc < 0 ? rc : 0;
}

void sql_text(sqlite3_stmt *stmt, int column, char *dst, size_t cap)
{
	const char *text = (const char *)sqlite3_column_text(stmt, column);
	size_t len = (size_t)sqlite3_column_bytes(stmt, column);
	str_escape(dst, cap, text ? text : "", text ? len : 0);
}

const char *sql_raw(sqlite3_stmt *stmt, int column)
{
	const char *text = (const char *)sqlite3_column_text(stmt, column);
	return text ? text : "";
}

const char *sql_text_copy(sqlite3_stmt *stmt, int column, struct arena *texts)
{
	char text[1024];
	if (sqlite3_column_type(stmt, column) == SQLITE_NULL)
		return NULL;
	sql_text(stmt, column, text, sizeof(text));
	return arena_text(texts, text);
}

static int64_t within(int64_t number, int64_t min, int64_t max)
{
	return number < min ? min : number > max ? max : number;
}

int64_t sql_int(sqlite3_stmt *stmt, int column, int64_t fallback)
{
	int64_t number = sqlite3_column_int64(stmt, column);
	if (number == 0 && sqlite3_column_type(stmt, column) == SQLITE_NULL)
		return fallback;
	return within(number, -NUMBER_MAX, NUMBER_MAX);
}

/* An index; -1: it is not known, or no index. */
static int card_index(sqlite3_stmt *stmt, int column)
{
	int64_t value = sql_int(stmt, column, -1);
	return value < -1 || value > INT32_MAX ? -1 : (int)value;
}

struct card_id sql_card(sqlite3_stmt *stmt, int column)
{
	struct card_id card = { .index = card_index(stmt, column + 4),
		.mig_index = card_index(stmt, column + 5),
		.gpu_instance = card_index(stmt, column + 6),
		.compute_instance = card_index(stmt, column + 7),
		.mem_total_bytes = sql_int(stmt, column + 8, -1) };
	sql_text(stmt, column, card.uuid, sizeof(card.uuid));
	sql_text(stmt, column + 1, card.name, sizeof(card.name));
	sql_text(stmt, column + 2, card.parent_uuid, sizeof(card.parent_uuid));
	sql_text(stmt, column + 3, card.pci, sizeof(card.pci));
	return card;
}

int64_t sql_value_known(sqlite3_value *value)
{
	int64_t number = sqlite3_value_int64(value);
	if (number == 0 && sqlite3_value_type(value) == SQLITE_NULL)
		return -1;
	return within(number, -NUMBER_MAX, NUMBER_MAX);
}

int64_t sql_value_sum(sqlite3_value *value)
{
	return within(sqlite3_value_int64(value), 0, ROW_MAX);
}

int64_t sql_value_signed(sqlite3_value *value)
{
	return within(sqlite3_value_int64(value), -ROW_MAX, ROW_MAX);
}

static void fold_step(sqlite3_context *context, int n, sqlite3_value **values)
{
	(void)n;
	struct fold *f = sqlite3_user_data(context);
	if (!f->row(f, values))
		sqlite3_result_error(context, "stopped", -1);
}

static void fold_end(sqlite3_context *context)
{
	sqlite3_result_null(context);
}

int sql_fold(sqlite3 *db, struct fold *f, struct err *e, const char *format, ...)
{
	sqlite3_stmt *stmt;
	va_list args;
	f->e = e;
	if (sqlite3_create_function(db, "fold", -1, SQLITE_UTF8 | SQLITE_DIRECTONLY, f, NULL,
		    fold_step, fold_end) != SQLITE_OK)
		return sql_failed(db, e);
	va_start(args, format);
	int rc = prepare(db, &stmt, e, format, args);
	va_end(args);
	struct err stepped = { 0 };
	if (rc == 0 && sql_step(stmt, &stepped) < 0) {
		rc = stepped.code;
		if (e && !e->code) /* else `row` stopped, and has filled in the error */
			*e = stepped;
	}
	sqlite3_finalize(stmt);
	return rc;
}
