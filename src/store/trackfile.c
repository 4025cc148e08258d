/* Writes a tracking file: one row per sample, as CSV or SQLite. */
#include "store/trackfile.h"

#include "model/tracking.h"
#include "store/sql.h"

struct trackfile {
	char *path;
	struct trackfile_head head;
	FILE *csv; /* or: */
	sqlite3 *db;
	sqlite3_stmt *insert;
};

static double scaled(int64_t bytes, double factor)
{
	return bytes < 0 ? NAN : (double)bytes * factor;
}

static double mean_of(double sum, int64_t parts)
{
	return parts > 0 ? sum / (double)parts : NAN;
}

static void values_of(double *v, const struct trackfile_head *h, const struct track_sample *s)
{
	size_t n = 0;
	for (size_t g = 0; g < TRACK_GROUPS; g++)
		v[n++] = scaled(s->ram_bytes[g], h->ram_factor);
	v[n++] = scaled(s->system_ram_bytes, h->ram_factor);
	for (size_t g = 0; g < TRACK_GROUPS; g++)
		v[n++] = scaled(s->gpu_ram_bytes[g], h->gpu_ram_factor);
	v[n++] = scaled(s->system_gpu_ram_bytes, h->gpu_ram_factor);
	v[n++] = s->gpu_sum_pct;
	v[n++] = mean_of(s->gpu_sum_pct, h->expected_gpus);
	for (size_t g = 0; g < TRACK_GROUPS; g++)
		v[n++] = (double)s->threads[g];
	v[n++] = s->system_cpu_pct;
	v[n++] = mean_of(s->system_cpu_pct, h->core_count);
	for (size_t g = 0; g < TRACK_GROUPS; g++) {
		v[n++] = s->cpu_pct[g];
		v[n++] = mean_of(s->cpu_pct[g], h->expected_cores);
	}
	v[n++] = (double)s->wall_us / 1e6;
}

static int failed(const struct trackfile *f, struct err *e)
{
	return err_set(e, ERR_WORLD, "cannot write %s: %s", f->path,
		f->db ? sqlite3_errmsg(f->db) : strerror(errno));
}

static int open_file(struct trackfile *f, bool overwrite, struct err *e)
{
	if (overwrite && unlink(f->path) != 0 && errno != ENOENT)
		return failed(f, e);
	if (str_ends_with(f->path, ".csv")) {
		f->csv = fopen(f->path, "wxe");
		return f->csv ? 0 : failed(f, e);
	}
	if (!str_ends_with(f->path, ".sqlite"))
		return err_set(e, ERR_USAGE, "%s must end in .csv or .sqlite", f->path);
	if (access(f->path, F_OK) == 0)
		return err_set(e, ERR_WORLD, "%s exists", f->path);
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
	if (sqlite3_open_v2(f->path, &f->db, flags, NULL) != SQLITE_OK)
		return failed(f, e);
	/* No fsync: a crash of the host may lose the samples of one run, but tracking must not
	 * wait for the disk. */
	bool ok = sql_exec(f->db, "PRAGMA synchronous = OFF; PRAGMA user_version = 0") ==
		  SQLITE_OK;
	return ok ? 0 : failed(f, e);
}

int trackfile_open(struct trackfile **f, const char *path, bool overwrite, struct err *e)
{
	*f = calloc(1, sizeof(**f));
	if (*f)
		(*f)->path = strdup(path);
	if (!*f || !(*f)->path) {
		free(*f);
		*f = NULL;
		return err_memory(e);
	}
	int rc = open_file(*f, overwrite, e);
	if (rc) {
		trackfile_close(*f, NULL);
		*f = NULL;
	}
	return rc;
}

/* The values of tracking_statics, as CSV; the units need no quotes. */
static void add_head(struct str *out, const struct trackfile_head *h, const char *quote)
{
	str_addf(out, "%s%s%s,%s%s%s,%s%s%s,", quote, h->ram_unit, quote, quote,
		h->gpu_ram_unit, quote, quote, h->time_unit, quote);
	double ram = scaled(h->ram_capacity_bytes, h->ram_factor);
	double gpu = scaled(h->gpu_capacity_bytes, h->gpu_ram_factor);
	str_addf(out, "%.9g,", ram);
	if (isnan(gpu))
		str_add(out, *quote ? "NULL," : ",");
	else
		str_addf(out, "%.9g,", gpu);
	str_addf(out, "%lld,%lld,%lld,%lld", (long long)h->core_count,
		(long long)h->expected_cores, (long long)h->gpu_count,
		(long long)h->expected_gpus);
}

static void add_names(struct str *out, const char *type)
{
	for (size_t i = 0; i < TRACKING_COLUMNS; i++)
		str_addf(out, "%s%s%s", i ? "," : "", tracking_columns[i], type);
}

static int begin_csv(struct trackfile *f, struct err *e)
{
	struct str out = { 0 };
	for (size_t i = 0; i < TRACKING_STATICS; i++)
		str_addf(&out, "%s%s", tracking_statics[i],
			i + 1 < TRACKING_STATICS ? "," : "\n");
	add_head(&out, &f->head, "");
	str_add(&out, "\n");
	add_names(&out, "");
	str_add(&out, "\n");
	bool ok = !out.failed && fputs(str_text(&out), f->csv) >= 0 && fflush(f->csv) == 0;
	str_finish(&out);
	return ok ? 0 : failed(f, e);
}

static int begin_sqlite(struct trackfile *f, struct err *e)
{
	struct str sql = { 0 }, insert = { 0 };
	str_add(&sql,
		"CREATE TABLE static_data (ram_unit TEXT, gpu_ram_unit TEXT, time_unit TEXT,"
		" ram_system_capacity REAL, gpu_ram_system_capacity REAL,"
		" system_core_count INTEGER, n_expected_cores INTEGER,"
		" system_gpu_count INTEGER, n_expected_gpus INTEGER);"
		"INSERT INTO static_data VALUES (");
	add_head(&sql, &f->head, "'");
	str_add(&sql, "); CREATE TABLE data (");
	add_names(&sql, " REAL");
	str_add(&sql, ")");
	str_add(&insert, "INSERT INTO data VALUES (?");
	str_add_repeat(&insert, ",?", TRACKING_COLUMNS - 1);
	str_add(&insert, ")");
	bool ok =
		!sql.failed && !insert.failed &&
		sqlite3_exec(f->db, str_text(&sql), NULL, NULL, NULL) == SQLITE_OK &&
		sqlite3_prepare_v2(f->db, str_text(&insert), -1, &f->insert, NULL) == SQLITE_OK;
	str_finish(&sql);
	str_finish(&insert);
	return ok ? 0 : failed(f, e);
}

int trackfile_begin(struct trackfile *f, const struct trackfile_head *head, struct err *e)
{
	f->head = *head;
	return f->csv ? begin_csv(f, e) : begin_sqlite(f, e);
}

static bool add_csv(struct trackfile *f, const double *values)
{
	for (size_t i = 0; i < TRACKING_COLUMNS; i++) {
		if (i)
			fputc(',', f->csv);
		if (!isnan(values[i]))
			fprintf(f->csv, i + 1 == TRACKING_COLUMNS ? "%.6f" : "%.9g", values[i]);
	}
	fputc('\n', f->csv);
	return fflush(f->csv) == 0 && !ferror(f->csv);
}

static bool add_sqlite(struct trackfile *f, const double *values)
{
	for (int i = 0; i < TRACKING_COLUMNS; i++)
		sql_bind_from(f->insert, i + 1, SQL_ARGS(SQL_REAL(values[i])));
	return sql_run(f->insert, NULL);
}

int trackfile_add(struct trackfile *f, const struct track_sample *s, struct err *e)
{
	double values[TRACKING_COLUMNS];
	values_of(values, &f->head, s);
	bool ok = f->csv ? add_csv(f, values) : add_sqlite(f, values);
	return ok ? 0 : failed(f, e);
}

int trackfile_close(struct trackfile *f, struct err *e)
{
	int rc = 0;
	if (!f)
		return 0;
	if (f->csv && fclose(f->csv) != 0)
		rc = failed(f, e);
	sqlite3_finalize(f->insert);
	sqlite3_close(f->db);
	free(f->path);
	free(f);
	return rc;
}
