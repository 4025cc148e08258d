/* Reads the database of the Python gpu-usage-audit: its tables, rows and times. */
#include "import/pyfile.h"

#include "store/foreign.h"
#include "store/sql.h"

/* More than a card can have; a larger value is not a reading. */
#define MAX_MEM_MB 1e9
/* No sample is older: CUDA, and the driver's way to ask for processes, came in 2007. */
#define EARLIEST_MS INT64_C(1167609600000)
#define DAY_MS INT64_C(86400000)
enum { MAX_PROCESSES = 8192, MAX_INTERVAL_S = 86400, TS_CAP = 64 };

/* The columns of the rows of both sample tables: first the key that joins them. */
enum {
	ROW_TS,
	ROW_UUID,
	ROW_RUN,  /* -1: NULL, which matches NULL */
	ROW_KIND, /* 0: of gpu_sample, which comes before the processes with its key */
	ROW_VALUES,
	ROW_UTIL = ROW_VALUES,
	ROW_INDEX,
	ROW_INTERVAL,
	ROW_PID = ROW_VALUES,
	ROW_MEM,
	ROW_USER,
	ROW_NAME,
	ROW_TYPE,
};

struct pyfile {
	sqlite3 *db;
	char *path;	      /* for messages */
	sqlite3_stmt *rows;   /* both tables, by key; NULL before the first sample */
	sqlite3_stmt *device; /* gpu_device by uuid, or NULL */
	bool end;	      /* no row is left */
	struct {
		char ts[TS_CAP], uuid[UUID_CAP]; /* raw text, as in the file */
		int64_t run;
	} key;			     /* of the last row of a card */
	char time_text[TS_CAP];	     /* the last text that was a time ... */
	int64_t time_ms;	     /* ... and what it meant */
	struct pyfile_process *list; /* of the last sample that was returned */
	size_t n_list, cap_list;
	struct pyfile_rows counts;
	int64_t latest_ms;	       /* a later sample is not plausible */
	struct foreign_stop stop, ask; /* what SQLite asks, and what that asks */
	bool stopped;		       /* ... and the answer was yes */
};

/* Whether the text begins as the pattern says: 0 is any digit, T also a blank. */
static bool is_like(const char *text, const char *pattern)
{
	for (; *pattern; pattern++, text++) {
		bool good = *pattern == '0'   ? *text >= '0' && *text <= '9'
			    : *pattern == 'T' ? *text == 'T' || *text == ' '
					      : *text == *pattern;
		if (!good)
			return false;
	}
	return true;
}

static int number(const char *digits, int n)
{
	int value = 0;
	while (n-- > 0)
		value = value * 10 + (*digits++ - '0');
	return value;
}

bool pyfile_parse_time(const char *text, int64_t *ms)
{
	static const char date[] = "0000-00-00T00:00:00";
	if (!is_like(text, date))
		return false;
	struct tm tm = { .tm_year = number(text, 4) - 1900,
		.tm_mon = number(text + 5, 2) - 1,
		.tm_mday = number(text + 8, 2),
		.tm_hour = number(text + 11, 2),
		.tm_min = number(text + 14, 2),
		.tm_sec = number(text + 17, 2) };
	int day = tm.tm_mday, month = tm.tm_mon, fraction_ms = 0, hours = 0, minutes = 0;
	bool good = tm.tm_hour < 24 && tm.tm_min < 60 && tm.tm_sec < 60;
	text += strlen(date);
	if (*text == '.') {
		size_t digits = strspn(++text, "0123456789");
		for (size_t i = 0; i < 3; i++)
			fraction_ms = fraction_ms * 10 + (i < digits ? text[i] - '0' : 0);
		good = good && digits > 0;
		text += digits;
	}
	int sign = *text == '-' ? -1 : 1;
	if (is_like(text, "+00:00") || is_like(text, "-00:00")) {
		hours = number(text + 1, 2);
		minutes = number(text + 4, 2);
		text += strlen("+00:00");
	} else if (*text == 'Z' || *text == 'z') {
		text++;
	}
	int64_t seconds = timegm(&tm); /* turns 31 February into a day of March */
	seconds -= sign * (hours * 3600 + minutes * 60);
	if (!good || *text || hours > 23 || minutes > 59 || tm.tm_mday != day ||
		tm.tm_mon != month || seconds < 0)
		return false;
	*ms = seconds * 1000 + fraction_ms;
	return true;
}

/* Sets the message for SQLite's last failure. */
static int fail(const struct pyfile *f, struct err *e)
{
	int rc = sqlite3_errcode(f->db) & 0xff;
	if (rc == SQLITE_INTERRUPT && f->stopped)
		return err_set(e, ERR_WORLD, "interrupted: nothing was imported");
	if (rc == SQLITE_NOTADB)
		return err_set(e, ERR_WORLD, "%s is not a SQLite database", f->path);
	return err_set(e, rc == SQLITE_BUSY || rc == SQLITE_LOCKED ? ERR_BUSY : ERR_WORLD,
		"cannot read %s: %s", f->path, sql_why(f->db));
}

static bool has_column(struct pyfile *f, const char *table, const char *column)
{
	return sqlite3_table_column_metadata(
		       f->db, NULL, table, column, NULL, NULL, NULL, NULL, NULL) == SQLITE_OK;
}

/* Adds ", TABLE.COLUMN", or ", NULL" where the layout has none. */
static void add_column(struct pyfile *f, struct str *sql, const char *table, const char *column)
{
	if (has_column(f, table, column))
		str_addf(sql, ", %s.%s", table, column);
	else
		str_add(sql, ", NULL");
}

/* Prepares and finishes `sql`. */
static int prepare(struct pyfile *f, sqlite3_stmt **statement, struct str *sql, struct err *e)
{
	int rc = sql->failed ? SQLITE_NOMEM
			     : sqlite3_prepare_v2(f->db, str_text(sql), -1, statement, NULL);
	str_finish(sql);
	return rc == SQLITE_OK ? 0 : fail(f, e);
}

/* Runs a query, and reads its first row if there is one; the caller finalizes *row. */
static int one_row(struct pyfile *f, sqlite3_stmt **row, struct str *sql, struct err *e)
{
	if (prepare(f, row, sql, e) != 0)
		return e->code;
	int rc = sqlite3_step(*row);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : fail(f, e);
}

/* Is this a time at which a sample can have been taken? */
static bool is_plausible(const struct pyfile *f, int64_t at_ms)
{
	return at_ms >= EARLIEST_MS && at_ms <= f->latest_ms;
}

static int check_layout(struct pyfile *f, struct err *e)
{
	static const char *const needed[][2] = { { "gpu_sample", "ts" },
		{ "gpu_sample", "gpu_uuid" }, { "gpu_sample", "util_pct" },
		{ "proc_sample", "ts" }, { "proc_sample", "gpu_uuid" },
		{ "proc_sample", "pid" }, { "proc_sample", "mem_used_mb" },
		{ "proc_sample", "loginuid_user" } };
	static const char *const tables[] = { "host", "daemon_run", "gpu_device", "gpu_sample",
		"proc_sample", NULL };
	if (sqlite3_exec(f->db, "SELECT count(*) FROM sqlite_master", NULL, NULL, NULL) !=
		SQLITE_OK)
		return fail(f, e);
	if (foreign_check_tables(f->db, tables, f->path, e) != 0)
		return e->code;
	if (has_column(f, "usage_1h", "gpu"))
		return err_set(e, ERR_WORLD, "%s is a store of gua already: use it with --db",
			f->path);
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!has_column(f, needed[i][0], needed[i][1]))
			return err_set(e, ERR_WORLD,
				"%s is not a database of the Python gpu-usage-audit: it has no "
				"%s.%s",
				f->path, needed[i][0], needed[i][1]);
	return 0;
}

/* pytime(TEXT) in SQL: unix milliseconds, NULL for a text that is not a plausible time. */
static void pytime_function(sqlite3_context *result, int n, sqlite3_value **values)
{
	int64_t ms;
	const char *text = n == 1 ? (const char *)sqlite3_value_text(values[0]) : NULL;
	if (text && pyfile_parse_time(text, &ms) && is_plausible(sqlite3_user_data(result), ms))
		sqlite3_result_int64(result, ms);
}

/* It is opened as immutable, so that SQLite makes no files beside it, unless a log has content
 * that the file lacks. A damaged or forged file can answer with more rows than it has, and in
 * no order, so it is checked. */
static int open_database(struct pyfile *f, struct err *e)
{
	const struct foreign_file file = { .path = f->path,
		.wait_ms = 5000,
		.immutable = !foreign_has_log(f->path),
		.read_once = true,
		.stop = &f->stop };
	sqlite3_stmt *row = NULL;
	struct str check = { 0 };
	if (foreign_open(&f->db, &file, e) != 0)
		return e->code;
	if (sqlite3_create_function(f->db, "pytime", 1,
		    SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY, f, pytime_function,
		    NULL, NULL) != SQLITE_OK)
		return fail(f, e);
	if (check_layout(f, e) != 0)
		return e->code;
	str_add(&check, "PRAGMA quick_check(1)");
	int rc = one_row(f, &row, &check, e);
	if (rc == 0 && strcmp(sql_raw(row, 0), "ok") != 0)
		rc = err_set(e, ERR_WORLD,
			"cannot read %s: it is damaged. Nothing was imported; `sqlite3 FILE "
			".recover` may save a part",
			f->path);
	sqlite3_finalize(row);
	return rc;
}

int pyfile_open(struct pyfile **out, const char *path, int64_t now_ms, struct err *e)
{
	struct pyfile *f = calloc(1, sizeof(*f));
	*out = NULL;
	if (f)
		f->path = strdup(path);
	if (!f || !f->path) {
		free(f);
		return err_memory(e);
	}
	f->latest_ms = now_ms + DAY_MS;
	int rc = open_database(f, e);
	if (rc != 0) {
		pyfile_close(f);
		return rc;
	}
	*out = f;
	return 0;
}

void pyfile_close(struct pyfile *f)
{
	if (!f)
		return;
	sqlite3_finalize(f->rows);
	sqlite3_finalize(f->device);
	sqlite3_close(f->db);
	free(f->list);
	free(f->path);
	free(f);
}

static int ask_to_stop(void *file)
{
	struct pyfile *f = file;
	f->stopped = f->ask.asked(f->ask.context) != 0;
	return f->stopped;
}

void pyfile_interrupt(struct pyfile *f, int (*stop)(void *), void *context)
{
	f->stop = (struct foreign_stop){ stop ? ask_to_stop : NULL, f };
	f->ask = (struct foreign_stop){ stop, context };
}

/* Reads a text column and escapes it; `otherwise` for NULL and "". */
static void read_text(
	sqlite3_stmt *row, int column, char *dst, size_t cap, const char *otherwise)
{
	const char *text = (const char *)sqlite3_column_text(row, column);
	int len = sqlite3_column_bytes(row, column);
	if (text && len > 0)
		str_escape(dst, cap, text, (size_t)len);
	else
		str_copy(dst, cap, otherwise);
}

/* Reads a number within 0..max; -1: NULL, a text, negative, too large, not finite. */
static double read_number(sqlite3_stmt *row, int column, double max)
{
	int type = sqlite3_column_type(row, column);
	double value = sqlite3_column_double(row, column);
	bool good = (type == SQLITE_INTEGER || type == SQLITE_FLOAT) && value >= 0;
	return good && value <= max ? value : -1;
}

/* Reads seconds and returns milliseconds, or -1. */
static int64_t read_interval_ms(sqlite3_stmt *row, int column)
{
	double seconds = read_number(row, column, MAX_INTERVAL_S);
	return seconds >= 0.001 ? llround(seconds * 1000) : -1;
}

static int read_host(struct pyfile *f, struct pyfile_facts *facts, struct err *e)
{
	struct str sql = { 0 };
	sqlite3_stmt *row = NULL;
	str_copy(facts->hostname, sizeof(facts->hostname), "unknown");
	if (!has_column(f, "host", "hostname"))
		return 0;
	str_add(&sql, "SELECT hostname");
	add_column(f, &sql, "host", "env_kind");
	add_column(f, &sql, "host", "driver_version");
	add_column(f, &sql, "host", "last_seen");
	str_add(&sql, " FROM host ORDER BY 4 DESC LIMIT 1");
	int rc = one_row(f, &row, &sql, e);
	if (rc == 0 && sqlite3_data_count(row)) {
		read_text(row, 0, facts->hostname, sizeof(facts->hostname), "unknown");
		read_text(row, 1, facts->environment, sizeof(facts->environment), "");
		read_text(row, 2, facts->driver, sizeof(facts->driver), "");
	}
	sqlite3_finalize(row);
	return rc;
}

int pyfile_facts(struct pyfile *f, struct pyfile_facts *facts, struct err *e)
{
	sqlite3_stmt *row = NULL;
	struct str sql = { 0 };
	*facts = (struct pyfile_facts){ .first_ms = -1, .last_ms = -1, .interval_ms = -1 };
	if (read_host(f, facts, e) != 0)
		return e->code;
	str_addf(&sql,
		"SELECT min(pytime(ts)), max(pytime(ts)), count(*), "
		"(SELECT count(*) FROM proc_sample), %s FROM gpu_sample",
		has_column(f, "daemon_run", "interval_seconds")
			? "(SELECT interval_seconds FROM daemon_run ORDER BY id DESC)"
			: "NULL");
	if (one_row(f, &row, &sql, e) == 0) {
		facts->first_ms = sql_int(row, 0, -1);
		facts->last_ms = sql_int(row, 1, -1);
		facts->samples = sqlite3_column_int64(row, 2);
		facts->rows = facts->samples + sqlite3_column_int64(row, 3);
		facts->interval_ms = read_interval_ms(row, 4);
	}
	sqlite3_finalize(row);
	return e->code;
}

void pyfile_device(struct pyfile *f, const char *uuid, struct card_id *id)
{
	struct str sql = { 0 };
	if (!f->device && has_column(f, "gpu_device", "gpu_uuid")) {
		str_add(&sql, "SELECT 1");
		add_column(f, &sql, "gpu_device", "name");
		add_column(f, &sql, "gpu_device", "memory_total_mb");
		str_add(&sql, " FROM gpu_device WHERE gpu_uuid = ?");
		prepare(f, &f->device, &sql, NULL);
	}
	if (!f->device)
		return;
	sql_bind(f->device, SQL_RAW(uuid));
	if (sqlite3_step(f->device) == SQLITE_ROW) {
		read_text(f->device, 1, id->name, sizeof(id->name), id->name);
		double mb = read_number(f->device, 2, MAX_MEM_MB);
		if (mb >= 0)
			id->mem_total_bytes = llround(mb * 1e6);
	}
	sqlite3_reset(f->device);
}

const struct pyfile_rows *pyfile_rows(const struct pyfile *f)
{
	return &f->counts;
}

/* Begins a query of a sample table, with its key and kind. */
static void add_key(struct pyfile *f, struct str *sql, const char *table, int kind)
{
	str_addf(sql, "SELECT CAST(%s.ts AS TEXT), CAST(%s.gpu_uuid AS TEXT)", table, table);
	if (has_column(f, table, "run_id"))
		str_addf(sql, ", coalesce(CAST(%s.run_id AS INTEGER), -1)", table);
	else
		str_add(sql, ", -1");
	str_addf(sql, ", %d", kind);
}

/* Reads the next row. */
static int step(struct pyfile *f, struct err *e)
{
	int rc = sqlite3_step(f->rows);
	f->end = rc == SQLITE_DONE;
	f->counts.done += rc == SQLITE_ROW;
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : fail(f, e);
}

/* Opens both sample tables in the order of their keys, and reads the first row. */
static int begin(struct pyfile *f, struct err *e)
{
	static const char *const columns[] = { "pid", "mem_used_mb", "loginuid_user",
		"process_name", "process_type" };
	struct str sql = { 0 };
	bool runs = has_column(f, "gpu_sample", "run_id") &&
		    has_column(f, "daemon_run", "id") &&
		    has_column(f, "daemon_run", "interval_seconds");
	add_key(f, &sql, "gpu_sample", 0);
	add_column(f, &sql, "gpu_sample", "util_pct");
	add_column(f, &sql, "gpu_sample", "gpu_index");
	str_add(&sql, runs ? ", daemon_run.interval_seconds, NULL, NULL FROM gpu_sample "
			     "LEFT JOIN daemon_run ON daemon_run.id = gpu_sample.run_id"
			   : ", NULL, NULL, NULL FROM gpu_sample");
	str_add(&sql, " UNION ALL ");
	add_key(f, &sql, "proc_sample", 1);
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		add_column(f, &sql, "proc_sample", columns[i]);
	str_add(&sql, " FROM proc_sample ORDER BY 1, 2, 3, 4");
	return prepare(f, &f->rows, &sql, e) != 0 ? e->code : step(f, e);
}

/* Copies a text of the key; false: it cannot be one (empty, too long, with a NUL). */
static bool key_text(sqlite3_stmt *row, int column, char *dst, size_t cap)
{
	const char *text = sql_raw(row, column);
	return str_copy(dst, cap, text) && *text &&
	       strlen(text) == (size_t)sqlite3_column_bytes(row, column);
}

/* Whether the row has the key of the last card. */
static bool has_key(const struct pyfile *f)
{
	return strcmp(sql_raw(f->rows, ROW_TS), f->key.ts) == 0 &&
	       strcmp(sql_raw(f->rows, ROW_UUID), f->key.uuid) == 0 &&
	       sqlite3_column_int64(f->rows, ROW_RUN) == f->key.run;
}

/* Fills what the card's row says. False: it is left out, and counted. */
static bool read_card(struct pyfile *f, struct pyfile_sample *sample)
{
	*sample = (struct pyfile_sample){ .index = -1 };
	sample->util_pct = read_number(f->rows, ROW_UTIL, 100);
	double index = read_number(f->rows, ROW_INDEX, 4096);
	if (index >= 0)
		sample->index = (int)index;
	sample->interval_ms = read_interval_ms(f->rows, ROW_INTERVAL);
	bool named = key_text(f->rows, ROW_TS, f->key.ts, sizeof(f->key.ts));
	named &= key_text(f->rows, ROW_UUID, f->key.uuid, sizeof(f->key.uuid));
	f->key.run = sqlite3_column_int64(f->rows, ROW_RUN);
	bool known = named && strcmp(f->key.ts, f->time_text) == 0;
	if (!named || sample->util_pct < 0 ||
		(!known && !pyfile_parse_time(f->key.ts, &f->time_ms))) {
		f->counts.bad++;
		return false;
	}
	str_copy(f->time_text, sizeof(f->time_text), f->key.ts);
	sample->at_ms = f->time_ms;
	f->counts.misdated += !is_plausible(f, sample->at_ms);
	str_escape(sample->uuid, sizeof(sample->uuid), f->key.uuid, strlen(f->key.uuid));
	return is_plausible(f, sample->at_ms);
}

/* Adds the process of the current row; one that is malformed is counted. */
static int add_process(struct pyfile *f, struct err *e)
{
	sqlite3_stmt *row = f->rows;
	const char *type = sql_raw(row, ROW_TYPE);
	if (strcasecmp(type, "graphics") == 0 || strcasecmp(type, "g") == 0)
		return 0;
	if (!array_reserve(&f->list, &f->cap_list, f->n_list + 1))
		return err_memory(e);
	bool unknown = sqlite3_column_type(row, ROW_MEM) == SQLITE_NULL;
	double pid = read_number(row, ROW_PID, UINT32_MAX);
	double mem = read_number(row, ROW_MEM, MAX_MEM_MB);
	if (f->n_list >= MAX_PROCESSES || pid < 0 || (mem < 0 && !unknown)) {
		f->counts.bad++;
		return 0;
	}
	struct pyfile_process *p = &f->list[f->n_list++];
	p->pid = (uint32_t)pid;
	p->mem_bytes = unknown ? UNKNOWN_BYTES : llround(mem * 1e6);
	read_text(row, ROW_USER, p->user, sizeof(p->user), "unknown");
	read_text(row, ROW_NAME, p->command, sizeof(p->command), "");
	return 0;
}

static int process_order(const void *a, const void *b)
{
	const struct pyfile_process *x = a, *y = b;
	int order = strcmp(x->user, y->user);
	if (order == 0)
		order = array_compare(x->pid, y->pid);
	return order ? order : strcmp(x->command, y->command);
}

/* Sorts the processes by user, and adds up the rows of each process. */
static void add_up(struct pyfile *f)
{
	size_t n = 0;
	array_sort(f->list, f->n_list, process_order);
	for (size_t i = 0; i < f->n_list; i++) {
		struct pyfile_process *p = n ? &f->list[n - 1] : NULL, *q = &f->list[i];
		if (!p || process_order(p, q) != 0)
			f->list[n++] = *q;
		else if (p->mem_bytes < 0 || q->mem_bytes < 0)
			p->mem_bytes = UNKNOWN_BYTES;
		else
			p->mem_bytes += q->mem_bytes;
	}
	f->n_list = n;
}

int pyfile_next(struct pyfile *f, struct pyfile_sample *sample, struct err *e)
{
	bool found = false;
	if (!f->rows && begin(f, e) != 0)
		return e->code;
	f->n_list = 0;
	while (!f->end) {
		bool is_card = sqlite3_column_int(f->rows, ROW_KIND) == 0;
		bool same = found && has_key(f);
		if (found && is_card && !same)
			break;
		/* A second reading of one tick is ignored, and a process without its card. */
		if (is_card && !same)
			found = read_card(f, sample);
		else if (is_card || !same)
			f->counts.bad++;
		else if (add_process(f, e) != 0)
			return e->code;
		if (step(f, e) != 0)
			return e->code;
	}
	add_up(f);
	sample->processes = f->list;
	sample->n_processes = f->n_list;
	return found;
}
