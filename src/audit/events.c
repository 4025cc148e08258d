/* Reads events from stores, and times without a recorder from the runs; counts them by kind. */

#include "audit/gather.h"

#define RUNS                                                                                   \
	"(SELECT host, started_ms, lag(last_tick_ms) OVER hosts AS before_ms, "                \
	"lag(how_ended) OVER hosts AS how FROM run WHERE source <> 'import' "                  \
	"WINDOW hosts AS (PARTITION BY host ORDER BY started_ms))"
#define EVENTS                                                                                 \
	"SELECT at_ms, host, gpu, kind, value, text FROM event "                               \
	"WHERE at_ms >= ?1 AND at_ms < ?2"
#define PAUSES                                                                                 \
	" UNION ALL SELECT started_ms, host, NULL, 'recorder-off', started_ms - before_ms, "   \
	"coalesce(how, '') FROM " RUNS                                                         \
	" WHERE before_ms < started_ms AND started_ms >= ?1 AND started_ms < ?2"

/* Writes the text of a time without a recorder: the store has only the way in which the run
 * before it ended. */
static void explain_off(struct event_row *row)
{
	char how[24];
	str_copy(how, sizeof(how), row->text);
	/* A changed configuration begins a run, too. */
	if (row->value < 1000 && strcmp(how, "stopped") == 0)
		str_copy(row->text, sizeof(row->text),
			"started again at once, or read a changed configuration");
	else
		snprintf(row->text, sizeof(row->text), "no recorder for %s%s%s",
			duration_text(row->value).text, *how ? "; the one before was " : "",
			how);
}

/* Reads a row; false: its host or card is not in the audit. */
static bool read_row(const struct gather_file *file, sqlite3_stmt *stmt, struct event_row *row)
{
	row->at_ms = sql_int(stmt, 0, 0);
	row->host = idmap_get(&file->hosts, sqlite3_column_int64(stmt, 1));
	row->card = IDMAP_NONE;
	bool of_card = sqlite3_column_type(stmt, 2) != SQLITE_NULL;
	if (of_card)
		row->card = gather_card(file, sqlite3_column_int64(stmt, 2));
	sql_text(stmt, 3, row->kind, sizeof(row->kind));
	row->value = sql_int(stmt, 4, 0);
	sql_text(stmt, 5, row->text, sizeof(row->text));
	if (event_kind_of(row->kind) == EVENT_RECORDER_OFF)
		explain_off(row);
	return row->host != IDMAP_NONE && (!of_card || row->card != IDMAP_NONE);
}

int events_of(struct event_taker *t, const struct gather_file *file, struct err *e)
{
	sqlite3_stmt *stmt;
	struct event_row row;
	/* Most windows have no later start of a recorder: looking is cheaper than preparing. */
	int64_t restarts = 0;
	int rc = sql_number(file->db, &restarts, e,
		"SELECT total(started_ms >= %lld AND started_ms < %lld) * (count(*) > 1) FROM "
		"run",
		(long long)t->since_ms, (long long)t->until_ms);
	if (rc)
		return rc;
	rc = sql_prepare(file->db, &stmt, e, "%s", restarts ? EVENTS PAUSES : EVENTS);
	sql_bind(stmt, SQL_INT(t->since_ms), SQL_INT(t->until_ms));
	while (sql_next(&stmt, &rc, e))
		rc = read_row(file, stmt, &row) ? t->take(t, &row, e) : 0;
	return rc;
}

/* The kinds that a report mentions, in its order. It does not mention ordinary events: a
 * card that is back, asleep, new. */
static const struct mentioned {
	enum event_kind kind;
	bool lasts;	     /* the value is how long it lasted */
	int64_t at_least_ms; /* shorter ones are not mentioned */
} mentioned[] = {
	{ EVENT_CARD_LOST, false, 0 },
	{ EVENT_XID, false, 0 },
	{ EVENT_DRIVER_DOWN, false, 0 },
	{ EVENT_SUSPECT, false, 0 },
	{ EVENT_STORE_FAULT, false, 0 },
	{ EVENT_GAP, true, 0 },
	{ EVENT_RECORDER_OFF, true, 60000 }, /* a shorter time is a restart */
	{ EVENT_SUSPEND, true, 0 },
	{ EVENT_CLOCK_STEP, false, 0 },
};
enum { N_MENTIONED = sizeof(mentioned) / sizeof(mentioned[0]) };

static size_t rank_of(enum event_kind kind)
{
	size_t i = 0;
	while (i < N_MENTIONED && mentioned[i].kind != kind)
		i++;
	return i;
}

/* More XID numbers than a driver has, so a damaged store cannot make the report long. */
enum { MOST_GROUPS = 64 };

/* Returns the group of the event; NULL: out of memory, or there are too many groups. */
static struct audit_event *group_of(
	struct audit *a, enum event_kind kind, int64_t xid, struct err *e)
{
	for (size_t i = 0; i < a->n_events; i++)
		if (a->events[i].kind == kind && a->events[i].xid == xid)
			return &a->events[i];
	struct audit_event *group = a->n_events < MOST_GROUPS ? audit_add_event(a, e) : NULL;
	if (group) {
		group->kind = kind;
		group->xid = xid;
		group->total_ms = mentioned[rank_of(kind)].lasts ? 0 : -1;
	}
	return group;
}

static int count_event(struct event_taker *t, const struct event_row *row, struct err *e)
{
	enum event_kind kind = event_kind_of(row->kind);
	size_t rank = rank_of(kind);
	if (rank == N_MENTIONED ||
		(mentioned[rank].lasts && row->value < mentioned[rank].at_least_ms))
		return 0;
	if (hours_mark(t->g->a, t->context, row, kind, e))
		return e->code;
	struct audit_event *group =
		group_of(t->g->a, kind, kind == EVENT_XID ? row->value : -1, e);
	if (!group)
		return e->code;
	group->times++;
	if (mentioned[rank].lasts && row->value > 0)
		group->total_ms += row->value > ROW_MAX ? ROW_MAX : row->value;
	if (row->at_ms < group->last_ms)
		return 0;
	group->last_ms = row->at_ms;
	group->last_host = row->host;
	group->last_card = row->card == IDMAP_NONE ? AUDIT_NO_CARD : row->card;
	str_copy(group->last_text, sizeof(group->last_text), row->text);
	return 0;
}

static int compare_groups(const void *x, const void *y)
{
	const struct audit_event *p = x, *q = y;
	int by_rank = array_compare((int64_t)rank_of(p->kind), (int64_t)rank_of(q->kind));
	return by_rank ? by_rank : array_compare(p->xid, q->xid);
}

int events_add(struct gather *g, struct gather_file *file, struct err *e)
{
	struct event_taker t = { .g = g,
		.since_ms = g->a->since_ms,
		.until_ms = g->a->until_ms,
		.take = count_event,
		.context = &g->marks };
	return events_of(&t, file, e);
}

void events_sort(struct audit *a)
{
	array_sort(a->events, a->n_events, compare_groups);
}
