/* Reads the samples of a Python gpu-usage-audit file: two tables, merged by (ts, card, run). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "import/pyfile_private.h"
#include "import/pytime.h"

static void add_key(struct pyfile *f, struct str *sql, const char *table)
{
	str_addf(sql, "SELECT CAST(%s.ts AS TEXT), CAST(%s.gpu_uuid AS TEXT)", table, table);
	if (pyfile_has(f, table, "run_id"))
		str_addf(sql, ", coalesce(CAST(%s.run_id AS INTEGER), -1)", table);
	else
		str_add(sql, ", -1");
}

static int open_cards(struct pyfile *f, struct err *e)
{
	struct str sql = { 0 };
	bool runs = pyfile_has(f, "gpu_sample", "run_id") &&
		    pyfile_has(f, "daemon_run", "id") &&
		    pyfile_has(f, "daemon_run", "interval_seconds");
	add_key(f, &sql, "gpu_sample");
	pyfile_add_column(f, &sql, "gpu_sample", "util_pct");
	pyfile_add_column(f, &sql, "gpu_sample", "gpu_index");
	str_add(&sql,
		runs ? ", daemon_run.interval_seconds FROM gpu_sample LEFT JOIN daemon_run "
		       "ON daemon_run.id = gpu_sample.run_id"
		     : ", NULL FROM gpu_sample");
	str_add(&sql, " ORDER BY 1, 2, 3");
	return pyfile_prepare(f, &f->cards, &sql, e);
}

static int open_processes(struct pyfile *f, struct err *e)
{
	struct str sql = { 0 };
	add_key(f, &sql, "proc_sample");
	pyfile_add_column(f, &sql, "proc_sample", "pid");
	pyfile_add_column(f, &sql, "proc_sample", "mem_used_mb");
	pyfile_add_column(f, &sql, "proc_sample", "loginuid_user");
	pyfile_add_column(f, &sql, "proc_sample", "process_name");
	pyfile_add_column(f, &sql, "proc_sample", "process_type");
	str_add(&sql, " FROM proc_sample ORDER BY 1, 2, 3");
	return pyfile_prepare(f, &f->processes, &sql, e);
}

static bool key_text(sqlite3_stmt *row, int column, char *dst, size_t cap)
{
	const char *text = (const char *)sqlite3_column_text(row, column);
	text_copy(dst, cap, text ? text : "");
	return text && *text && strlen(text) < cap &&
	       strlen(text) == (size_t)sqlite3_column_bytes(row, column);
}

static int step(struct pyfile *f, sqlite3_stmt *row, struct key *key, bool *end, struct err *e)
{
	int rc = sqlite3_step(row);
	*end = rc == SQLITE_DONE;
	if (rc == SQLITE_DONE)
		return 0;
	if (rc != SQLITE_ROW)
		return pyfile_failed(f, e);
	key->valid = key_text(row, 0, key->ts, sizeof(key->ts));
	key->valid = key_text(row, 1, key->uuid, sizeof(key->uuid)) && key->valid;
	key->run = sqlite3_column_int64(row, 2);
	f->rows_done++;
	return 0;
}

static int step_cards(struct pyfile *f, struct err *e)
{
	return step(f, f->cards, &f->card_key, &f->cards_end, e);
}

static int step_processes(struct pyfile *f, struct err *e)
{
	return step(f, f->processes, &f->process_key, &f->processes_end, e);
}

static int begin(struct pyfile *f, struct err *e)
{
	if (open_cards(f, e) != 0 || open_processes(f, e) != 0)
		return e->code;
	return step_cards(f, e) != 0 ? e->code : step_processes(f, e);
}

static int key_compare(const struct key *a, const struct key *b)
{
	int order = strcmp(a->ts, b->ts);
	if (order == 0)
		order = strcmp(a->uuid, b->uuid);
	if (order == 0)
		order = (a->run > b->run) - (a->run < b->run);
	return order;
}

static bool key_time(struct pyfile *f, const struct key *key, int64_t *ms)
{
	if (strcmp(key->ts, f->time_text) != 0) {
		if (!pytime_parse(key->ts, &f->time_ms))
			return false;
		text_copy(f->time_text, sizeof(f->time_text), key->ts);
	}
	*ms = f->time_ms;
	return true;
}

enum card_row { CARD_GOOD, CARD_BAD, CARD_MISDATED };

/* Fills what the card's row says. */
static enum card_row read_card(struct pyfile *f, struct pyfile_sample *sample)
{
	const struct key *key = &f->card_key;
	*sample = (struct pyfile_sample){ .index = -1 };
	sample->util_pct = pyfile_number(f->cards, 3, 100);
	double index = pyfile_number(f->cards, 4, 4096);
	if (index >= 0)
		sample->index = (int)index;
	sample->interval_ms = pyfile_interval_ms(f->cards, 5);
	if (!key->valid || sample->util_pct < 0 || !key_time(f, key, &sample->at_ms))
		return CARD_BAD;
	if (!pyfile_plausible(f, sample->at_ms))
		return CARD_MISDATED;
	text_escape(sample->uuid, sizeof(sample->uuid), key->uuid, strlen(key->uuid));
	/* A second reading of one tick is ignored. */
	return key_compare(key, &f->last) != 0 ? CARD_GOOD : CARD_BAD;
}

static bool is_graphics(sqlite3_stmt *row)
{
	const char *type = (const char *)sqlite3_column_text(row, 7);
	return type && (strcasecmp(type, "graphics") == 0 || strcasecmp(type, "g") == 0);
}

/* Reads the process' row; false: it is malformed. */
static bool read_process(sqlite3_stmt *row, struct pyfile_process *p)
{
	bool unknown = sqlite3_column_type(row, 4) == SQLITE_NULL;
	double pid = pyfile_number(row, 3, UINT32_MAX), mem = pyfile_number(row, 4, MAX_MEM_MB);
	if (pid < 0 || (mem < 0 && !unknown))
		return false;
	p->pid = (uint32_t)pid;
	p->mem_bytes = unknown ? UNKNOWN_BYTES : llround(mem * 1e6);
	pyfile_text(row, 5, p->user, sizeof(p->user), "unknown");
	pyfile_text(row, 6, p->command, sizeof(p->command), "");
	return true;
}

static int add_process(struct pyfile *f, struct err *e)
{
	if (is_graphics(f->processes))
		return 0;
	if (!array_reserve(&f->list, &f->cap_list, f->n_list + 1))
		return err_memory(e);
	if (f->n_list < MAX_PROCESSES && read_process(f->processes, &f->list[f->n_list]))
		f->n_list++;
	else
		f->rows_bad++;
	return 0;
}

static int process_order(const void *a, const void *b)
{
	const struct pyfile_process *x = a, *y = b;
	int order = strcmp(x->user, y->user);
	if (order == 0)
		order = (x->pid > y->pid) - (x->pid < y->pid);
	return order ? order : strcmp(x->command, y->command);
}

/* Sorts the processes by user and adds up the rows of each process. */
static void tidy_processes(struct pyfile *f)
{
	size_t n = 0;
	if (f->n_list > 1)
		qsort(f->list, f->n_list, sizeof(f->list[0]), process_order);
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

/* Reads the process rows up to and including those of `key`; earlier rows have no card sample.
 */
static int collect_processes(struct pyfile *f, const struct key *key, struct err *e)
{
	f->n_list = 0;
	while (!f->processes_end) {
		int order = key_compare(&f->process_key, key);
		if (order > 0)
			break;
		if (order < 0)
			f->rows_bad++;
		else if (add_process(f, e) != 0)
			return e->code;
		if (step_processes(f, e) != 0)
			return e->code;
	}
	tidy_processes(f);
	return 0;
}

/* Skips the process rows after the last card's. */
static int skip_processes(struct pyfile *f, struct err *e)
{
	while (!f->processes_end) {
		f->rows_bad++;
		if (step_processes(f, e) != 0)
			return e->code;
	}
	return 0;
}

int pyfile_next(struct pyfile *f, struct pyfile_sample *sample, struct err *e)
{
	if (!f->cards && begin(f, e) != 0)
		return e->code;
	enum card_row row;
	while (!f->cards_end && (row = read_card(f, sample)) != CARD_GOOD) {
		f->rows_misdated += row == CARD_MISDATED;
		f->rows_bad += row == CARD_BAD;
		if (step_cards(f, e) != 0)
			return e->code;
	}
	if (f->cards_end)
		return skip_processes(f, e);
	f->last = f->card_key;
	if (collect_processes(f, &f->last, e) != 0 || step_cards(f, e) != 0)
		return e->code;
	sample->processes = f->list;
	sample->n_processes = f->n_list;
	return 1;
}
