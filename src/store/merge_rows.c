/* Copies the rows of one store into another: ids of hosts and cards are looked up, those of
 * runs, processes and events moved. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "store/merge_private.h"
#include "store/sqlite.h"
#include "store/sums.h"

#define ADD_USAGE "ON CONFLICT (slot, gpu, state) DO UPDATE SET " USAGE_ADD
#define ADD_HEAT                                                                               \
	"ON CONFLICT (slot) DO UPDATE SET " ADD("active_ms") ", " ADD(                         \
		"idle_held_ms") ", " ADD("truly_idle_ms")

/* The tables after host and gpu, and what happens to a row whose key is there already: only
 * where a host is in several stores, or where a row is of all cards. */
static const struct merge_table {
	const char *table, *conflict;
} tables[] = {
	{ "run", "" },
	{ "process", "" },
	{ "open_life", "" },
	{ "holder", "" },
	{ "spell", "" },
	{ "open_spell", "" },
	{ "usage_1m", ADD_USAGE },
	{ "usage_5m", ADD_USAGE },
	{ "usage_1h", ADD_USAGE },
	{ "usage_1d", ADD_USAGE },
	{ "heat_5m", ADD_HEAT },
	{ "heat_1h", ADD_HEAT },
	{ "sm_active", "ON CONFLICT (slot, gpu) DO UPDATE SET " SM_ACTIVE_ADD },
	{ "holding_1m", "" },
	{ "holding_5m", "" },
	{ "holding_1h", "" },
	{ "holding_1d", "" },
	{ "total_gpu", "ON CONFLICT (gpu, state) DO UPDATE SET " TOTAL_GPU_ADD },
	{ "total_user",
		"ON CONFLICT (host, user, state) DO UPDATE SET " ADD("presence_ms") ", " ADD(
			"share_ms") ", moved_ms = max(moved_ms, excluded.moved_ms)" },
	{ "identity", "ON CONFLICT (host, user) DO UPDATE SET "
		      "first_ms = min(first_ms, excluded.first_ms), "
		      "named_ms = max(named_ms, excluded.named_ms)" },
	{ "reading", NULL }, /* replaced: the newest store is the last */
	{ "event", "" },
	{ "import", "ON CONFLICT (host, first_ms, last_ms, samples) DO NOTHING" },
};

static int compare_ids(const void *x, const void *y)
{
	int64_t a = ((const struct new_id *)x)->from, b = ((const struct new_id *)y)->from;
	return a < b ? -1 : a > b;
}

/* False: the store has no such row. */
static bool find_id(const struct new_ids *ids, int64_t from, int64_t *to)
{
	const struct new_id key = { .from = from };
	const struct new_id *found =
		ids->n ? bsearch(&key, ids->items, ids->n, sizeof(key), compare_ids) : NULL;
	if (found)
		*to = found->to;
	return found != NULL;
}

int merge_add_id(struct new_ids *ids, int64_t from, int64_t to, struct err *e)
{
	if (!array_one_more(&ids->items, ids->n))
		return err_memory(e);
	ids->items[ids->n++] = (struct new_id){ from, to };
	return 0;
}

/* Columns of a table that hold ids. */
enum role { ROLE_NONE, ROLE_HOST, ROLE_CARD, ROLE_RUN, ROLE_PROCESS, ROLE_OWN };
enum { COLUMNS_MAX = 48 };

/* The copying of one table of one store. */
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
		{ "process", ROLE_PROCESS } };
	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
		if (strcmp(roles[i].column, column) == 0)
			return roles[i].role;
	if (strcmp(column, "id") != 0)
		return ROLE_NONE;
	return strcmp(table, "run") == 0       ? ROLE_RUN
	       : strcmp(table, "process") == 0 ? ROLE_PROCESS
					       : ROLE_OWN;
}

/* Reads the columns of a table; of gpu, without the id, which is looked up. */
static int read_columns(struct copying *c, bool with_id, struct err *e)
{
	sqlite3_stmt *row = NULL;
	int rc = sqlite3_prepare_v2(
		c->m->to, "SELECT name FROM pragma_table_info(?)", -1, &row, NULL);
	sqlite3_bind_text(row, 1, c->table, -1, SQLITE_STATIC);
	while (rc == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW && c->n < COLUMNS_MAX) {
		const char *name = merge_text(row, 0);
		if (!with_id && strcmp(name, "id") == 0)
			continue;
		str_addf(&c->names, "%s%s", c->n ? ", " : "", name);
		str_add(&c->marks, c->n ? ", ?" : "?");
		c->roles[c->n++] = role_of(c->table, name);
	}
	sqlite3_finalize(row);
	if (rc != SQLITE_OK)
		return merge_cannot_write(c->m, e);
	return c->names.failed || c->marks.failed ? err_memory(e) : 0;
}

static void finish_copying(struct copying *c)
{
	sqlite3_finalize(c->put);
	str_finish(&c->names);
	str_finish(&c->marks);
}

/* The new id of a column; false: the store has no row with that id, as only a damaged one. */
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
	case ROLE_OWN:
		*id += s->others;
		break;
	case ROLE_NONE:
		break;
	}
	return true;
}

/* Binds a row; false: it is left out. */
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

static int copy_rows(struct copying *c, struct err *e)
{
	struct str sql = { 0 };
	sqlite3_stmt *row = NULL;
	str_addf(&sql, "SELECT %s FROM %s", str_text(&c->names), c->table);
	if (sql.failed)
		return err_memory(e);
	int step = sqlite3_prepare_v2(c->s->db, str_text(&sql), -1, &row, NULL), rc = 0;
	str_finish(&sql);
	while (step == SQLITE_OK && rc == 0 && sqlite3_step(row) == SQLITE_ROW)
		if (bind_row(c, row) && !sql_run(c->put, NULL))
			rc = merge_cannot_write(c->m, e);
	if (sqlite3_finalize(row) != SQLITE_OK || step != SQLITE_OK)
		rc = rc ? rc : merge_cannot_read(c->s, e);
	return rc;
}

static int copy_table(
	struct merge *m, struct source *s, const struct merge_table *t, struct err *e)
{
	struct copying c = { .m = m, .s = s, .table = t->table };
	struct str sql = { 0 };
	int rc = read_columns(&c, true, e);
	str_addf(&sql, "INSERT %sINTO %s (%s) VALUES (%s) %s", t->conflict ? "" : "OR REPLACE ",
		t->table, str_text(&c.names), str_text(&c.marks),
		t->conflict ? t->conflict : "");
	if (rc == 0 && sql.failed)
		rc = err_memory(e);
	if (rc == 0 && sqlite3_prepare_v2(m->to, str_text(&sql), -1, &c.put, NULL) != SQLITE_OK)
		rc = merge_cannot_write(m, e);
	if (rc == 0)
		rc = copy_rows(&c, e);
	str_finish(&sql);
	finish_copying(&c);
	return rc;
}

/* A card in the new store. */
struct card {
	int64_t id; /* 0: it is not there yet */
	int64_t first_ms, last_ms;
};

static int find_card(
	const struct merge *m, int64_t host, const char *uuid, struct card *card, struct err *e)
{
	sqlite3_stmt *row = NULL;
	*card = (struct card){ .id = 0 };
	if (sqlite3_prepare_v2(m->to,
		    "SELECT id, first_seen_ms, last_seen_ms FROM gpu WHERE host = ? AND uuid = "
		    "?",
		    -1, &row, NULL) != SQLITE_OK)
		return merge_cannot_write(m, e);
	sqlite3_bind_int64(row, 1, host);
	sqlite3_bind_text(row, 2, uuid, -1, SQLITE_STATIC);
	if (sqlite3_step(row) == SQLITE_ROW)
		*card = (struct card){ sqlite3_column_int64(row, 0),
			sqlite3_column_int64(row, 1), sqlite3_column_int64(row, 2) };
	return sqlite3_finalize(row) == SQLITE_OK ? 0 : merge_cannot_write(m, e);
}

static int set_first_seen(const struct merge *m, int64_t card, int64_t first_ms, struct err *e)
{
	sqlite3_stmt *put = NULL;
	if (sqlite3_prepare_v2(m->to,
		    "UPDATE gpu SET first_seen_ms = min(first_seen_ms, ?2) WHERE id = ?1", -1,
		    &put, NULL) == SQLITE_OK) {
		sqlite3_bind_int64(put, 1, card);
		sqlite3_bind_int64(put, 2, first_ms);
	}
	bool good = sql_run(put, NULL);
	sqlite3_finalize(put);
	return good ? 0 : merge_cannot_write(m, e);
}

/* Adds a card, or merges it with that of an earlier store: the newer row has the names. After
 * the columns of the table, a row has its id, UUID, first and last moment, and host. */
static int copy_card(struct copying *c, sqlite3_stmt *row, struct err *e)
{
	int64_t old = sqlite3_column_int64(row, c->n),
		host = sqlite3_column_int64(row, c->n + 4);
	int64_t first_ms = sqlite3_column_int64(row, c->n + 2);
	struct card card;
	if (!find_id(&c->s->hosts, host, &host))
		return 0;
	int rc = find_card(c->m, host, merge_text(row, c->n + 1), &card, e);
	if (rc)
		return rc;
	if (!card.id || sqlite3_column_int64(row, c->n + 3) > card.last_ms) {
		sql_bind_known(c->put, c->n + 1, card.id, 0);
		if (bind_row(c, row) && !sql_run(c->put, NULL))
			return merge_cannot_write(c->m, e);
	}
	if (card.id)
		rc = set_first_seen(
			c->m, card.id, first_ms < card.first_ms ? first_ms : card.first_ms, e);
	else
		card.id = sqlite3_last_insert_rowid(c->m->to);
	return rc ? rc : merge_add_id(&c->s->cards, old, card.id, e);
}

static int copy_cards(struct merge *m, struct source *s, struct err *e)
{
	struct copying c = { .m = m, .s = s, .table = "gpu" };
	struct str get = { 0 }, put = { 0 };
	sqlite3_stmt *row = NULL;
	int rc = read_columns(&c, false, e), step = SQLITE_OK;
	str_addf(&put, "INSERT OR REPLACE INTO gpu (%s, id) VALUES (%s, ?)", str_text(&c.names),
		str_text(&c.marks));
	str_addf(&get,
		"SELECT %s, id, uuid, first_seen_ms, last_seen_ms, host FROM gpu ORDER BY id",
		str_text(&c.names));
	if (rc == 0 && (put.failed || get.failed))
		rc = err_memory(e);
	if (rc == 0 && sqlite3_prepare_v2(m->to, str_text(&put), -1, &c.put, NULL) != SQLITE_OK)
		rc = merge_cannot_write(m, e);
	if (rc == 0)
		step = sqlite3_prepare_v2(s->db, str_text(&get), -1, &row, NULL);
	while (rc == 0 && step == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW)
		rc = copy_card(&c, row, e);
	if (sqlite3_finalize(row) != SQLITE_OK || step != SQLITE_OK)
		rc = rc ? rc : merge_cannot_read(s, e);
	str_finish(&get);
	str_finish(&put);
	finish_copying(&c);
	return rc;
}

int merge_copy(struct merge *m, struct source *s, struct err *e)
{
	int rc = copy_cards(m, s, e);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && rc == 0; i++)
		rc = copy_table(m, s, &tables[i], e);
	return rc;
}
