/* Makes one store from many: first its hosts, then the rows of one store after the other, in a
 * file that gets its name when it is complete. */
#include "store/merge.h"

#include "store/foreign.h"
#include "store/identify.h"
#include "store/sql.h"
#include "store/store.h"
#include "store/store_private.h"

/* Ids are numbers of rows: no store has an id beyond this. */
#define MERGE_ID_MAX (INT64_C(1) << 48)

/* Maps an id of a store to the id in the new one; those of a store are sorted. */
struct new_id {
	int64_t from, to;
};

struct new_ids {
	struct new_id *items;
	size_t n;
};

/* A store to be merged. */
struct source {
	struct merge *merge;
	const char *path;
	size_t at; /* its index among the paths that were given */
	sqlite3 *db;
	int64_t newest_ms; /* its last tick */
	struct new_ids hosts, cards;
	struct sums_span unsummed;		 /* hours whose slots are not in its sums */
	int64_t runs, processes, leases, others; /* what is added to its ids */
};

/* A machine in the new store. */
struct machine {
	const struct merge_host *newest;
	int64_t host;
};

struct merge {
	const struct merge_wish *wish;
	sqlite3 *to;
	char path[PATH_MAX]; /* of the unfinished store */
	struct source *sources;
	struct machine *machines;
	size_t n_machines;
};

/* From here on: copies the rows of one store into another. Ids of hosts and cards are looked
 * up; ids of runs, processes and events are shifted. */

enum { HOUR_S = 3600 };

#define ADD_USAGE "ON CONFLICT (slot, gpu, state) DO UPDATE SET " USAGE_ADD
#define ADD_HEAT "ON CONFLICT (slot) DO UPDATE SET " HEAT_ADD

/* The tables after host, and what happens to a row whose key already exists. That happens only
 * when a host is in several stores, or when a row is for all cards. */
static const struct merge_table {
	const char *table, *conflict;
} tables[] = {
	{ "gpu", NULL }, /* see copy_card() */
	{ "run", "" },
	{ "process", "" },
	{ "open_life", "" },
	{ "holder", "" },
	{ "spell", "" },
	{ "open_spell", "" },
	{ "usage_1m", ADD_USAGE },
	{ "usage_5m", ADD_USAGE },
	{ "usage_1h", ADD_USAGE },
	{ "usage_hour", ADD_USAGE },
	{ "usage_1d", ADD_USAGE },
	{ "heat_1h", ADD_HEAT },
	{ "sm_active", "ON CONFLICT (slot, gpu) DO UPDATE SET " SM_ACTIVE_ADD },
	{ "holding_1m", "" },
	{ "holding_5m", "" },
	{ "holding_1h", "" },
	{ "holding_hour", "" },
	{ "holding_1d", "" },
	{ "lease", "" },
	{ "reserved_1m", "" },
	{ "reserved_5m", "" },
	{ "reserved_1h", "" },
	{ "leased_1d", "" },
	{ "total_gpu", "ON CONFLICT (gpu, state) DO UPDATE SET " TOTAL_GPU_ADD },
	{ "total_user",
		"ON CONFLICT (host, user, state) DO UPDATE SET " ADD("presence_ms") ", " ADD(
			"share_ms") ", moved_ms = max(moved_ms, excluded.moved_ms)" },
	{ "identity", "ON CONFLICT (host, user) DO UPDATE SET "
		      "first_ms = min(first_ms, excluded.first_ms), "
		      "named_ms = max(named_ms, excluded.named_ms)" },
	{ "reading", NULL }, /* replaced; the newest store comes last */
	{ "event", "" },
	{ "import", "ON CONFLICT (host, first_ms, last_ms, samples) DO NOTHING" },
};

static int compare_ids(const void *x, const void *y)
{
	const struct new_id *a = x, *b = y;
	return array_compare(a->from, b->from);
}

/* False: the store has no row with this id. */
static bool find_id(const struct new_ids *ids, int64_t from, int64_t *to)
{
	const struct new_id key = { .from = from };
	const struct new_id *found =
		ids->n ? bsearch(&key, ids->items, ids->n, sizeof(key), compare_ids) : NULL;
	if (found)
		*to = found->to;
	return found != NULL;
}

static int add_id(struct new_ids *ids, int64_t from, int64_t to, struct err *e)
{
	if (!array_one_more(&ids->items, ids->n))
		return err_memory(e);
	ids->items[ids->n++] = (struct new_id){ from, to };
	return 0;
}

/* Columns of a table that hold ids. */
enum role { ROLE_NONE, ROLE_HOST, ROLE_CARD, ROLE_RUN, ROLE_PROCESS, ROLE_LEASE, ROLE_OWN };
enum { COLUMNS_MAX = 48 };

/* The state while one table of one store is copied. */
struct copying {
	struct merge *m;
	struct source *s;
	const char *table;
	struct str names, marks;
	enum role roles[COLUMNS_MAX];
	int n;
	sqlite3_stmt *put;
};

static enum role role_of(const char *table, const char *column)
{
	static const struct {
		const char *column;
		enum role role;
	} roles[] = { { "host", ROLE_HOST }, { "gpu", ROLE_CARD }, { "run", ROLE_RUN },
		{ "process", ROLE_PROCESS }, { "lease", ROLE_LEASE } };
	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
		if (strcmp(roles[i].column, column) == 0)
			return roles[i].role;
	if (strcmp(column, "id") != 0)
		return ROLE_NONE;
	return strcmp(table, "run") == 0       ? ROLE_RUN
	       : strcmp(table, "process") == 0 ? ROLE_PROCESS
	       : strcmp(table, "lease") == 0   ? ROLE_LEASE
					       : ROLE_OWN;
}

/* Fills `e` from the failure of the new store. Returns e->code. */
static int cannot_write(const struct merge *m, struct err *e)
{
	return sql_fail(e, m->to, "write", m->wish->path);
}

/* Reads the columns of a table; of gpu, without the id, which is looked up. */
static int read_columns(struct copying *c, bool with_id, struct err *e)
{
	sqlite3_stmt *row = NULL;
	int rc = sqlite3_prepare_v2(
		c->m->to, "SELECT name FROM pragma_table_info(?)", -1, &row, NULL);
	sql_bind(row, SQL_RAW(c->table));
	while (rc == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW && c->n < COLUMNS_MAX) {
		const char *name = sql_raw(row, 0);
		if (!with_id && strcmp(name, "id") == 0)
			continue;
		str_addf(&c->names, "%s%s", c->n ? ", " : "", name);
		str_add(&c->marks, c->n ? ", ?" : "?");
		c->roles[c->n++] = role_of(c->table, name);
	}
	sqlite3_finalize(row);
	if (rc != SQLITE_OK)
		return cannot_write(c->m, e);
	return c->names.failed || c->marks.failed ? err_memory(e) : 0;
}

/* Replaces an id by the new one; false: the store has no row with that id, so it is damaged. */
static bool translate(const struct copying *c, int column, int64_t *id)
{
	const struct source *s = c->s;
	switch (c->roles[column]) {
	case ROLE_HOST:
		return find_id(&s->hosts, *id, id);
	case ROLE_CARD:
		return find_id(&s->cards, *id, id);
	case ROLE_RUN:
		*id += s->runs;
		break;
	case ROLE_PROCESS:
		*id += s->processes;
		break;
	case ROLE_LEASE:
		*id += s->leases;
		break;
	case ROLE_OWN:
		*id += s->others;
		break;
	case ROLE_NONE:
		break;
	}
	return true;
}

/* Binds a row; false: the row is left out. */
static bool bind_row(const struct copying *c, sqlite3_stmt *row)
{
	for (int i = 0; i < c->n; i++) {
		int64_t id = sqlite3_column_int64(row, i);
		if (c->roles[i] == ROLE_NONE || sqlite3_column_type(row, i) == SQLITE_NULL) {
			sqlite3_bind_value(c->put, i + 1, sqlite3_column_value(row, i));
			continue;
		}
		if (id < 0 || id > MERGE_ID_MAX || !translate(c, i, &id))
			return false;
		sqlite3_bind_int64(c->put, i + 1, id);
	}
	return true;
}

static int cannot_read(const struct source *s, struct err *e)
{
	return sql_fail(e, s->db, "read", s->path);
}

/* Calls `take` for each row of a source. */
static int each_row(struct source *s, const char *sql,
	int (*take)(void *context, sqlite3_stmt *row, struct err *e), void *context,
	struct err *e)
{
	sqlite3_stmt *row = NULL;
	int step = sqlite3_prepare_v2(s->db, sql, -1, &row, NULL), rc = 0;
	while (step == SQLITE_OK && rc == 0 && sqlite3_step(row) == SQLITE_ROW)
		rc = take(context, row, e);
	if (sqlite3_finalize(row) != SQLITE_OK || step != SQLITE_OK)
		rc = rc ? rc : cannot_read(s, e);
	return rc;
}

static int copy_row(void *copying, sqlite3_stmt *row, struct err *e)
{
	struct copying *c = copying;
	return !bind_row(c, row) || sql_run(c->put, NULL) ? 0 : cannot_write(c->m, e);
}

/* Adds a card, or merges it with that of an earlier store; the names come from the newer row.
 * After the columns of the table, a row has its id, UUID, first and last moment, and host. */
static int copy_card(void *copying, sqlite3_stmt *row, struct err *e)
{
	struct copying *c = copying;
	int64_t old = sqlite3_column_int64(row, c->n),
		first_ms = sqlite3_column_int64(row, c->n + 2),
		host = sqlite3_column_int64(row, c->n + 4), id = 0, last_ms = 0;
	if (!find_id(&c->s->hosts, host, &host))
		return 0;
	sqlite3_stmt *known = NULL; /* the card in the new store; id 0: it is not there yet */
	sqlite3_prepare_v2(c->m->to,
		"SELECT id, first_seen_ms, last_seen_ms FROM gpu WHERE host = ? AND uuid = ?",
		-1, &known, NULL);
	sql_bind(known, SQL_INT(host), SQL_RAW(sql_raw(row, c->n + 1)));
	if (known && sqlite3_step(known) == SQLITE_ROW) {
		id = sqlite3_column_int64(known, 0);
		first_ms = clock_earlier(first_ms, sqlite3_column_int64(known, 1));
		last_ms = sqlite3_column_int64(known, 2);
	}
	if (!known || sqlite3_finalize(known) != SQLITE_OK)
		return cannot_write(c->m, e);
	bool newer = id == 0 || sqlite3_column_int64(row, c->n + 3) > last_ms;
	sql_bind_from(c->put, c->n + 1, SQL_ARGS(SQL_KNOWN(id, 0)));
	if (newer && bind_row(c, row) && !sql_run(c->put, NULL))
		return cannot_write(c->m, e);
	if (id == 0)
		id = sqlite3_last_insert_rowid(c->m->to);
	if (!sql_do(c->m->to,
		    "UPDATE gpu SET first_seen_ms = ?2, last_seen_ms = ?3 WHERE id = ?1", NULL,
		    SQL_INT(id), SQL_INT(first_ms),
		    SQL_INT(newer ? sqlite3_column_int64(row, c->n + 3) : last_ms)))
		return cannot_write(c->m, e);
	return add_id(&c->s->cards, old, id, e);
}

/* Copies the rows of a table. Ids of cards are looked up: stores may share cards. */
static int copy_table(
	struct merge *m, struct source *s, const struct merge_table *t, struct err *e)
{
	struct copying c = { .m = m, .s = s, .table = t->table };
	struct str put = { 0 }, get = { 0 };
	bool cards = strcmp(t->table, "gpu") == 0;
	int rc = read_columns(&c, !cards, e);
	str_addf(&put, "INSERT %sINTO %s (%s%s) VALUES (%s%s) %s",
		t->conflict ? "" : "OR REPLACE ", t->table, str_text(&c.names),
		cards ? ", id" : "", str_text(&c.marks), cards ? ", ?" : "",
		t->conflict ? t->conflict : "");
	str_addf(&get, "SELECT %s%s FROM %s%s", str_text(&c.names),
		cards ? ", id, uuid, first_seen_ms, " SQL_CARD_SEEN ", host" : "", t->table,
		cards ? " ORDER BY id" : "");
	if (rc == 0 && (put.failed || get.failed))
		rc = err_memory(e);
	if (rc == 0 && sqlite3_prepare_v2(m->to, str_text(&put), -1, &c.put, NULL) != SQLITE_OK)
		rc = cannot_write(m, e);
	if (rc == 0)
		rc = each_row(s, str_text(&get), cards ? copy_card : copy_row, &c, e);
	sqlite3_finalize(c.put);
	str_finish(&put);
	str_finish(&get);
	str_finish(&c.names);
	str_finish(&c.marks);
	return rc;
}

/* Exporters show the first users of a host by name (identity.place). Two stores of one host may
 * give the same place to two users, so the places are numbered again. */
static const char places_sql[] =
	"UPDATE identity SET place = (SELECT count(*) FROM identity AS o WHERE o.host = "
	"identity.host AND o.place > 0 AND (o.first_ms, o.user) <= (identity.first_ms, "
	"identity.user)) WHERE place > 0 AND host IN (SELECT host FROM identity WHERE place > "
	"0 GROUP BY host, place HAVING count(*) > 1)";

/* Adds the row of a new host; another machine may already have its name. */
static int add_machine(
	struct merge *m, const struct merge_host *newest, struct machine **new, struct err *e)
{
	int same = 1;
	char unique[sizeof(newest->name) + 16];
	for (size_t i = 0; i < m->n_machines; i++)
		same += strcmp(m->machines[i].newest->name, newest->name) == 0;
	if (!array_one_more(&m->machines, m->n_machines))
		return err_memory(e);
	*new = &m->machines[m->n_machines++];
	**new = (struct machine){ newest, 0 };
	snprintf(unique, sizeof(unique), same > 1 ? "%s#%d" : "%s", newest->name, same);
	if (!sql_do(m->to,
		    "INSERT INTO host (hostname, machine_id, environment, driver, "
		    "first_seen_ms, last_seen_ms) VALUES (?1, ?2, '', '', ?3, 0)",
		    NULL, SQL_RAW(unique), SQL_RAW(newest->machine_id), SQL_INT(INT64_MAX)))
		return cannot_write(m, e);
	(*new)->host = sqlite3_last_insert_rowid(m->to);
	return 0;
}

/* Finds the caller's entry for a row, and the newest row of the same host. */
static const struct merge_host *find_host(
	const struct merge *m, size_t path, int64_t id, const struct merge_host **newest)
{
	const struct merge_host *items = m->wish->hosts->items, *own = NULL;
	for (size_t i = 0; i < m->wish->hosts->n && !own; i++)
		own = items[i].path == path && items[i].id == id ? &items[i] : NULL;
	*newest = own;
	for (size_t i = 0; i < m->wish->hosts->n && own; i++)
		if (items[i].machine == own->machine && items[i].newest)
			*newest = &items[i];
	return own;
}

/* Shows what the newest row says about a host, as a report over all of the stores does. */
static int take_host(void *source, sqlite3_stmt *row, struct err *e)
{
	struct source *s = source;
	struct merge *m = s->merge;
	int64_t id = sqlite3_column_int64(row, 0);
	const struct merge_host *newest = NULL, *own = find_host(m, s->at, id, &newest);
	struct machine *machine = NULL;
	if (!own)
		return err_set(e, ERR_WORLD, "%s has changed meanwhile; try again", s->path);
	for (size_t i = 0; i < m->n_machines && !machine; i++)
		if (m->machines[i].newest == newest)
			machine = &m->machines[i];
	int rc = machine ? 0 : add_machine(m, newest, &machine, e);
	if (rc)
		return rc;
	if (!sql_do(m->to,
		    "UPDATE host SET environment = iif(?6, ?2, environment), driver = iif(?6, "
		    "?3, driver), first_seen_ms = min(first_seen_ms, ?4), last_seen_ms = "
		    "max(last_seen_ms, ?5) WHERE id = ?1",
		    NULL, SQL_INT(machine->host), SQL_RAW(sql_raw(row, 1)),
		    SQL_RAW(sql_raw(row, 2)), SQL_INT(sqlite3_column_int64(row, 3)),
		    SQL_INT(sqlite3_column_int64(row, 4)), SQL_INT(own->newest)))
		return cannot_write(m, e);
	return add_id(&s->hosts, id, machine->host, e);
}

static int open_source(struct source *s, struct err *e)
{
	int rc = store_open_read(&s->db, s->path, e);
	if (rc == 0 && sql_exec(s->db, "BEGIN") != SQLITE_OK)
		rc = cannot_read(s, e);
	return rc;
}

/* Reads the hosts of all stores first, in the order in which the stores were given: that is the
 * order of the hosts in a report. */
static int read_hosts(struct source *s, struct err *e)
{
	int rc = open_source(s, e), step = SQLITE_OK;
	if (rc == 0)
		rc = each_row(s,
			"SELECT id, environment, driver, first_seen_ms, max(last_seen_ms, "
			"coalesce((SELECT max(last_tick_ms) FROM run WHERE run.host = "
			"host.id), 0)) FROM host ORDER BY id",
			take_host, s, e);
	if (rc == 0)
		s->newest_ms = sql_value(s->db, "SELECT max(last_tick_ms) FROM run", -1, &step);
	if (rc == 0 && step != SQLITE_OK)
		rc = cannot_read(s, e);
	sqlite3_close(s->db);
	s->db = NULL;
	return rc;
}

/* Finds the largest ids so far: those of the next store come after them. */
static int set_offsets(struct merge *m, struct source *s, struct err *e)
{
	int step[5] = { 0 };
	s->runs = sql_value(m->to, "SELECT max(id) FROM run", 0, &step[0]);
	s->processes = sql_value(m->to, "SELECT max(id) FROM process", 0, &step[1]);
	s->others = sql_value(m->to, "SELECT max(id) FROM event", 0, &step[2]);
	int64_t imports = sql_value(m->to, "SELECT max(id) FROM import", 0, &step[3]);
	s->others = imports > s->others ? imports : s->others;
	s->leases = sql_value(m->to, "SELECT max(id) FROM lease", 0, &step[4]);
	for (size_t i = 0; i < 5; i++)
		if (step[i] != SQLITE_OK)
			return cannot_write(m, e);
	return s->processes < MERGE_ID_MAX && s->runs < MERGE_ID_MAX &&
			       s->others < MERGE_ID_MAX && s->leases < MERGE_ID_MAX
		       ? 0
		       : err_set(e, ERR_WORLD, "%s has row numbers that no recorder writes",
				 s->path);
}

/* Finds the hours whose slots are not in the sums of a store: the last one, or all. */
static int find_unsummed(struct source *s, struct err *e)
{
	int rc = SQLITE_OK;
	int64_t end = sums_end(s->db, &rc);
	if (rc != SQLITE_OK || !sums_find(s->db, &s->unsummed))
		return cannot_read(s, e);
	s->unsummed.from = clock_later(s->unsummed.from, end);
	s->unsummed.to += HOUR_S;
	return 0;
}

/* The stores have sums up to different hours. The new one has them up to the last of these. */
static int make_sums(struct merge *m, struct err *e)
{
	int rc = SQLITE_OK;
	int64_t end = sums_end(m->to, &rc);
	bool ok = rc == SQLITE_OK;
	for (size_t i = 0; i < m->wish->n_paths && ok; i++) {
		struct sums_span hours = m->sources[i].unsummed;
		hours.to = clock_earlier(hours.to, end);
		ok = hours.from >= hours.to || sums_make(m->to, hours);
	}
	return ok ? 0 : cannot_write(m, e);
}

static int copy_source(struct merge *m, struct source *s, struct err *e)
{
	int rc = open_source(s, e) || set_offsets(m, s, e) || find_unsummed(s, e) ? e->code : 0;
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && rc == 0; i++)
		rc = copy_table(m, s, &tables[i], e);
	sqlite3_close(s->db);
	s->db = NULL;
	return rc;
}

/* The oldest store comes first: if a host is in several, its newest run has the largest id. */
static int compare_sources(const void *x, const void *y)
{
	const struct source *a = x, *b = y;
	int by_tick = array_compare(a->newest_ms, b->newest_ms);
	return by_tick ? by_tick : array_compare((int64_t)a->at, (int64_t)b->at);
}

/* Makes the file a store. What a killed merge leaves behind is not a store, so no report over
 * its directory reads it. */
static int end_copying(struct merge *m, struct err *e)
{
	char sql[64];
	snprintf(sql, sizeof(sql), "COMMIT; PRAGMA application_id = %d", STORE_APPLICATION_ID);
	if (sql_exec(m->to, places_sql) != SQLITE_OK ||
		sql_exec(m->to, "UPDATE reading SET seen_ms = NULL") != SQLITE_OK ||
		sql_exec(m->to, sql) != SQLITE_OK)
		return cannot_write(m, e);
	return 0;
}

static int copy_all(struct merge *m, struct err *e)
{
	const struct merge_wish *w = m->wish;
	int rc = 0;
	if (sql_exec(m->to, "BEGIN") != SQLITE_OK)
		return cannot_write(m, e);
	for (size_t i = 0; i < w->n_paths && rc == 0; i++) {
		m->sources[i] = (struct source){ .merge = m, .path = w->paths[i], .at = i };
		rc = read_hosts(&m->sources[i], e);
	}
	if (rc == 0)
		qsort(m->sources, w->n_paths, sizeof(*m->sources), compare_sources);
	for (size_t i = 0; i < w->n_paths && rc == 0; i++) {
		if (w->progress && w->progress(w->context, (int64_t)i, (int64_t)w->n_paths))
			return err_set(e, ERR_WORLD, "interrupted: no store was made");
		rc = copy_source(m, &m->sources[i], e);
	}
	return rc || make_sums(m, e) ? e->code : end_copying(m, e);
}

/* Limit of SQLite's memory, as a number of files: the new store, and the one being read. */
enum { EXPECTED_FILES = 64 };

/* Nobody else uses the unfinished store, and any failure drops it, so it needs no journal. */
static int open_new(struct merge *m, struct err *e)
{
	foreign_expect(EXPECTED_FILES);
	int rc = sqlite3_open_v2(
		m->path, &m->to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
	if (rc != SQLITE_OK || sql_exec(m->to, "PRAGMA journal_mode = OFF;"
					       "PRAGMA synchronous = OFF;"
					       "PRAGMA locking_mode = EXCLUSIVE;"
					       "PRAGMA cache_size = -32768;"
					       "PRAGMA temp_store = MEMORY") != SQLITE_OK)
		return sql_fail(e, m->to, "make", m->wish->path);
	int code = store_open_upgrade(m->to, m->path, e);
	if (code == 0 && sql_exec(m->to, "PRAGMA application_id = 0") != SQLITE_OK)
		code = cannot_write(m, e);
	return code;
}

static int summarize(struct merge *m, struct merge_summary *s, struct err *e)
{
	static const char *const sql[] = { "SELECT count(*) FROM host",
		"SELECT count(*) FROM gpu", "SELECT min(started_ms) FROM run",
		"SELECT max(last_tick_ms) FROM run" };
	int64_t *const to[] = { &s->hosts, &s->cards, &s->first_ms, &s->last_ms };
	for (size_t i = 0; i < sizeof(sql) / sizeof(sql[0]); i++) {
		int rc = SQLITE_OK;
		*to[i] = sql_value(m->to, sql[i], -1, &rc);
		if (rc != SQLITE_OK)
			return cannot_write(m, e);
	}
	return 0;
}

/* Gives the complete store its name, unless another process has taken that name meanwhile. */
static int publish(const struct merge *m, int fd, struct merge_summary *s, struct err *e)
{
	struct stat st;
	const char *path = m->wish->path;
	if (fsync(fd) != 0 || fstat(fd, &st) != 0)
		return err_set(e, ERR_WORLD, "cannot write %s: %s", path, strerror(errno));
	s->bytes = (int64_t)st.st_size;
	int rc = renameat2(AT_FDCWD, m->path, AT_FDCWD, path, RENAME_NOREPLACE);
	if (rc != 0 && (errno == EINVAL || errno == ENOSYS)) /* not on all file systems */
		rc = link(m->path, path) == 0 ? unlink(m->path) : -1;
	return rc == 0 ? 0 : err_set(e, ERR_WORLD, "cannot make %s: %s", path, strerror(errno));
}

/* Makes the unfinished store in the directory of the new one; returns its descriptor, or -1. */
static int make_file(struct merge *m, struct err *e)
{
	struct stat st;
	const char *path = m->wish->path;
	if (lstat(path, &st) == 0) {
		err_set(e, ERR_WORLD,
			"%s exists already; gua merge makes a new store: give another name. To "
			"add to a store, merge it with the others into a new one",
			path);
		return -1;
	}
	int len = snprintf(m->path, sizeof(m->path), "%s.merge-XXXXXX", path);
	int fd = len > 0 && (size_t)len < sizeof(m->path) ? mkostemp(m->path, O_CLOEXEC) : -1;
	if (fd < 0 || fchmod(fd, 0640) != 0)
		err_set(e, ERR_WORLD, "cannot make %s: %s", path, strerror(errno));
	return fd;
}

static void finish(struct merge *m)
{
	for (size_t i = 0; i < m->wish->n_paths && m->sources; i++) {
		free(m->sources[i].hosts.items);
		free(m->sources[i].cards.items);
	}
	free(m->machines);
	free(m->sources);
}

int merge_stores(const struct merge_wish *wish, struct merge_summary *summary, struct err *e)
{
	struct merge m = { .wish = wish };
	int fd = make_file(&m, e), rc = fd < 0 || e->code ? ERR_WORLD : 0;
	m.sources = calloc(wish->n_paths + 1, sizeof(*m.sources));
	if (rc == 0 && !m.sources)
		rc = err_memory(e);
	if (rc == 0 && (open_new(&m, e) || copy_all(&m, e) || summarize(&m, summary, e)))
		rc = e->code;
	sqlite3_close(m.to);
	if (rc == 0)
		rc = publish(&m, fd, summary, e);
	if (rc && fd >= 0)
		unlink(m.path);
	file_close(fd);
	finish(&m);
	return rc;
}
