/* Opens the stores of an audit, a few at a time, and runs passes over them. */
#include "audit/gather.h"

#include "base/crew.h"
#include "store/foreign.h"
#include "store/store.h"

/* Up to this many stores stay open from the first pass to the last, each in one transaction:
 * everything that is read from a store is from one moment. If there are more, or more than
 * this process may have open, they are opened in each pass, which may then see a tick that
 * the pass before did not. */
enum { KEPT_OPEN = 64 };
enum { DESCRIPTORS = 3 }; /* of an open store: the file, its log, and the index of the log */
enum { WAIT_MS = 5000 };  /* longest wait for another program's lock */

uint32_t gather_card(const struct gather_file *file, int64_t id)
{
	uint32_t place = idmap_get(&file->places, id);
	return place == IDMAP_NONE ? IDMAP_NONE : file->cards[place];
}

/* A store of the list, to find those that are given twice. */
struct given {
	struct file_id id;
	size_t at;
};

static int compare_given(const void *x, const void *y)
{
	const struct given *a = x, *b = y;
	int order = file_id_compare(&a->id, &b->id);
	return order ? order : array_compare((int64_t)a->at, (int64_t)b->at);
}

/* Refuses a file that is given twice, because it would be counted twice. Two threads must not
 * read the same file either: each would drop the locks of the other. */
static int check_not_twice(const struct gather *g, struct err *e)
{
	struct given *all = calloc(g->n_files + 1, sizeof(*all));
	size_t n = 0;
	int rc = all ? 0 : err_memory(e);
	for (size_t i = 0; i < g->n_files && rc == 0; i++) {
		struct stat st;
		if (stat(g->files[i].path, &st) == 0)
			all[n++] = (struct given){ { st.st_dev, st.st_ino }, i };
	}
	if (rc == 0)
		qsort(all, n, sizeof(*all), compare_given);
	for (size_t i = 1; i < n && rc == 0; i++)
		if (file_id_compare(&all[i].id, &all[i - 1].id) == 0)
			rc = err_set(e, ERR_USAGE, "%s and %s are the same store",
				g->files[all[i - 1].at].path, g->files[all[i].at].path);
	free(all);
	return rc;
}

void gather_free_faults(struct store_fault *faults, size_t n)
{
	for (size_t i = 0; faults && i < n; i++)
		free(faults[i].why);
	free(faults);
}

int gather_list(struct gather *g, struct err *e)
{
	int rc = 0;
	g->files = calloc(g->q->n_paths + 1, sizeof(*g->files));
	if (!g->files)
		return err_memory(e);
	g->n_files = g->q->n_paths;
	g->kept_open =
		g->n_files <= KEPT_OPEN && file_can_stay_open((int)g->n_files * DESCRIPTORS);
	for (size_t i = 0; i < g->n_files && rc == 0; i++) {
		struct gather_file *file = &g->files[i];
		file->path = g->q->paths[i];
		/* What an earlier audit found wrong with a store. */
		const struct store_fault *fault = g->q->faults ? &g->q->faults[i] : NULL;
		if (!fault || !fault->code)
			continue;
		file->code = fault->code;
		file->why = strdup(fault->why ? fault->why : "");
		rc = file->why ? 0 : err_memory(e);
	}
	foreign_expect(g->kept_open ? g->n_files : CREW_MAX);
	return rc ? rc : check_not_twice(g, e);
}

int gather_open(struct gather *g, struct gather_file *file, struct err *e)
{
	if (file->db)
		return 0;
	/* With many stores, wait less for each. */
	int wait_ms = g->n_files == 1 ? WAIT_MS : WAIT_MS / 5;
	if (store_open_read_until(&file->db, file->path, wait_ms, g->q->stop, e))
		return e->code;
	/* A small cache is enough for sequential reading. The file is not mapped, because a
	 * mapped file would count as memory. */
	if (sql_exec(file->db, "PRAGMA cache_size=-64; BEGIN") != SQLITE_OK)
		return err_set(e, ERR_WORLD, "cannot read %s: %s",
			sqlite3_db_filename(file->db, "main"), sql_why(file->db));
	return 0;
}

void gather_leave(struct gather *g, struct gather_file *file)
{
	if (g->kept_open && !file->code)
		return;
	sqlite3_close(file->db);
	file->db = NULL;
}

int gather_rows(struct gather *g, struct gather_file *file, const char *sql,
	int (*take)(struct gather *, struct gather_file *, sqlite3_stmt *, struct err *),
	struct err *e)
{
	sqlite3_stmt *row;
	int rc = sql_prepare(file->db, &row, e, "%s", sql);
	if (rc == 0 && sqlite3_bind_parameter_count(row))
		sql_bind(row, SQL_RAW(g->q->present_of));
	while (sql_next(&row, &rc, e))
		rc = take(g, file, row, e);
	return rc;
}

int gather_start_part(const struct gather *g, struct gather_file *file, struct err *e)
{
	const struct audit_days *days = &g->a->days;
	struct file_part *part = file->part = calloc(1, sizeof(*part));
	if (!part)
		return err_memory(e);
	audit_init(&part->a);
	part->a.days.items = calloc(days->n + 1, sizeof(*days->items));
	if (!part->a.days.items)
		return err_memory(e);
	part->a.days.n = days->n;
	part->a.days.first = days->first;
	return 0;
}

void gather_add_hours(struct gather *g, const struct gather_file *file)
{
	const struct audit *part = &file->part->a;
	for (size_t dow = 0; dow < 7; dow++)
		for (size_t hour = 0; hour < 24; hour++)
			for (int state = 0; state < CARD_STATES; state++)
				g->a->heat[dow][hour].ms[state] +=
					part->heat[dow][hour].ms[state];
	for (size_t i = 0; i < part->days.n; i++)
		for (int state = 0; state < CARD_STATES; state++)
			g->a->days.items[i].ms[state] += part->days.items[i].ms[state];
}

static void drop_part(struct gather_file *file)
{
	if (!file->part)
		return;
	audit_finish(&file->part->a);
	holdings_free_pairs(file->part->pairs);
	free(file->part->records);
	free(file->part->runs);
	free(file->part);
	file->part = NULL;
}

/* Copies a sentence without the directory of fetched stores; NULL: out of memory. */
static char *without_directory(const char *text, const char *directory)
{
	char *copy = strdup(text);
	size_t len = directory ? strlen(directory) : 0;
	for (char *at = copy; at && len && (at = strstr(at, directory));)
		if (at[len] == '/')
			memmove(at, at + len + 1, strlen(at + len + 1) + 1);
		else
			at += len;
	return copy;
}

static void note_failure(
	const struct gather *g, struct gather_file *file, int code, const struct err *why)
{
	file->failed = true;
	file->code = code;
	file->why = without_directory(why->text, g->q->fetched_to);
}

/* A pass while it runs. */
struct walk {
	struct gather *g;
	const struct gather_pass *pass;
	struct err *e;
	int rc; /* the code that ends the audit */
};

static void read_file(void *context, size_t item)
{
	struct walk *w = context;
	struct gather_file *file = &w->g->files[item];
	struct err why = { 0 };
	if (file->code)
		return;
	int rc = gather_open(w->g, file, &why);
	if (rc == 0 && w->pass->read)
		rc = w->pass->read(w->g, file, &why);
	if (rc)
		note_failure(w->g, file, rc, &why);
}

/* Decides what the failure of a file means: it ends the audit if it is the only store, or if
 * the store is not the cause. */
static int judge_failure(struct gather *g, struct gather_file *file, struct err *e)
{
	struct foreign_stop *stop = g->q->stop;
	bool of_store = (file->code == ERR_WORLD || file->code == ERR_BUSY) && file->why &&
			strcmp(file->why, ERR_MEMORY_TEXT) != 0 &&
			!(stop && stop->asked && stop->asked(stop->context));
	file->failed = false;
	if (of_store && g->n_files > 1 && !g->strict)
		return 0;
	e->code = file->code;
	str_copy(e->text, sizeof(e->text), file->why ? file->why : ERR_MEMORY_TEXT);
	return file->code;
}

int gather_failed(struct gather *g, struct gather_file *file, struct err *e)
{
	note_failure(g, file, e->code, e);
	g->again = true;
	return judge_failure(g, file, e);
}

static bool add_file(void *context, size_t item)
{
	struct walk *w = context;
	struct gather_file *file = &w->g->files[item];
	struct err why = { 0 };
	bool added = false;
	if (!file->code && w->rc == 0) {
		int rc = w->pass->add(w->g, file, &why);
		added = rc != 0;
		if (rc)
			note_failure(w->g, file, rc, &why);
	}
	drop_part(file);
	gather_leave(w->g, file);
	if (file->failed && w->rc == 0) {
		w->g->again |= added || !w->pass->first;
		w->rc = judge_failure(w->g, file, w->e);
	}
	return w->rc == 0;
}

int gather_each(struct gather *g, const struct gather_pass *pass, struct err *e)
{
	struct walk w = { .g = g, .pass = pass, .e = e };
	const struct crew crew = { g->n_files, read_file, add_file, &w };
	/* All threads share the columns of cards that are in several stores. */
	bool alone = !pass->read || g->q->want_columns;
	crew_run(&crew, alone ? 1 : crew_size());
	return w.rc;
}

void gather_forget(struct gather *g)
{
	for (size_t i = 0; i < g->n_files; i++) {
		struct gather_file *file = &g->files[i];
		drop_part(file);
		idmap_finish(&file->hosts);
		idmap_finish(&file->places);
		idmap_finish(&file->shared);
		idmap_finish(&file->person);
		idmap_finish(&file->wanted);
		names_finish(&file->users);
		free(file->cards);
		free(file->unknown_ms);
		*file = (struct gather_file){
			.path = file->path, .db = file->db, .code = file->code, .why = file->why
		};
	}
	names_finish(&g->uuids);
	free(g->records);
	free(g->sights);
	free(g->last_sight);
	names_finish(&g->hostnames);
	names_finish(&g->run_keys);
	names_finish(&g->card_keys);
	names_finish(&g->parents);
	names_finish(&g->users);
	idmap_finish(&g->marks);
	free(g->n_named);
	free(g->runs);
	*g = (struct gather){ .a = g->a,
		.q = g->q,
		.files = g->files,
		.n_files = g->n_files,
		.kept_open = g->kept_open,
		.strict = g->strict };
}

void gather_close(struct gather *g)
{
	gather_forget(g);
	for (size_t i = 0; i < g->n_files; i++) {
		struct gather_file *file = &g->files[i];
		sqlite3_close(file->db);
		/* What was found wrong is kept for the next audit. */
		if (g->q->faults && file->code && !g->q->faults[i].code) {
			g->q->faults[i] = (struct store_fault){ file->code, file->why };
			file->why = NULL;
		}
		free(file->why);
	}
	free(g->files);
	g->files = NULL;
	g->n_files = 0;
}

static int survey_read(struct gather *g, struct gather_file *file, struct err *e)
{
	int rc = hosts_read(g, file, e);
	return rc ? rc : window_read_bounds(g, file, e);
}

static int survey_add(struct gather *g, struct gather_file *file, struct err *e)
{
	window_add_bounds(g, file);
	return hosts_add(g, file, e);
}

int gather_survey(struct gather *g, struct err *e)
{
	static const struct gather_pass pass = {
		.read = survey_read, .add = survey_add, .first = true
	};
	g->from_ms = INT64_MAX;
	g->to_ms = 0;
	if (gather_each(g, &pass, e) || hosts_join(g, e))
		return e->code;
	for (size_t i = 0; i < g->n_files; i++)
		if (!g->files[i].code)
			return 0;
	return err_set(e, ERR_WORLD, "none of the %zu stores can be read; the first: %s",
		g->n_files, g->n_files ? g->files[0].why : "");
}
