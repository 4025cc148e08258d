/* Reads leases as sessions for the rules that judge them. A lease holds its cards and has no
 * process that could be signalled; it is used while a process of its job is on one of them. */
#include "audit/idle_history.h"
#include "model/lease.h"
#include "store/sql.h"

enum { WINDOW_CAP = 192 };

/* Writes the condition that a lease, called l, is in the window. */
static const char *write_window(char dst[WINDOW_CAP], const struct idle_history *h)
{
	snprintf(dst, WINDOW_CAP,
		"l.host = %lld AND (l.ended_ms IS NULL OR (%d AND l.ended_ms > %lld)) AND "
		"l.first_seen_ms < %lld",
		(long long)h->host, !h->present, (long long)h->since_ms,
		(long long)h->until_ms);
	return dst;
}

/* The processes that use a lease, as lease_is_used_by() says. */
#define ITS_TIME "p.host = l.host AND p.last_seen_ms >= l.first_seen_ms AND %s"
#define USERS                                                                                  \
	"SELECT p.id AS process, l.id AS lease FROM lease AS l JOIN process AS p ON p.job = "  \
	"'slurm:' || l.name WHERE l.kind = 0 AND " ITS_TIME " UNION ALL "                      \
	"SELECT p.id, l.id FROM lease AS l JOIN process AS p ON (p.pod = l.name OR instr("     \
	"p.pod, '/') = 0) WHERE l.kind = 1 AND " ITS_TIME " UNION ALL "                        \
	"SELECT p.id, l.id FROM lease AS l JOIN process AS p ON p.user = l.owner WHERE "       \
	"NOT (l.kind = 0 AND coalesce(p.job, '') GLOB 'slurm:[^s]*') AND NOT (l.kind = 1 AND " \
	"p.pod IS NOT NULL) AND " ITS_TIME
/* Slots in which a card was used or held, and nobody knows by whom: the driver does not list
 * all processes, for example those outside a container or of a virtual GPU. It may be its job.
 */
#define BY_NOBODY                                                                              \
	"SELECT u.slot, l.id, u.gpu, first_seen_ms, ended_ms FROM %s AS u JOIN leased_1d AS "  \
	"d ON d.slot = u.slot - u.slot %% 86400 AND d.gpu = u.gpu JOIN lease AS l ON l.id = "  \
	"d.lease WHERE %s AND u.slot >= %lld AND u.slot < %lld AND u.state IN (0, 1, 4) AND "  \
	"u.ms > 0 AND NOT EXISTS (SELECT 1 FROM %s AS h WHERE h.slot = u.slot AND h.gpu = "    \
	"u.gpu)"

/* Finds the session of a lease, or adds it. */
static uint32_t session_of(struct idle_history *h, sqlite3_stmt *row, struct err *e)
{
	char owner[USER_CAP], name[LABEL_CAP], key[SESSION_KEY_CAP], label[LABEL_CAP + 8];
	enum lease_kind kind = (enum lease_kind)sql_int(row, 1, 0);
	sql_text(row, 2, name, sizeof(name));
	sql_text(row, 3, owner, sizeof(owner));
	snprintf(label, sizeof(label), "%s:%s", lease_kind_names[kind], name);
	snprintf(key, sizeof(key), "lease %.*s of %s", SESSION_KEY_CAP / 2, label, owner);
	uint32_t session = names_find(&h->keys, 0, key, e);
	if (session != h->n_sessions)
		return session;
	if (!array_one_more(&h->sessions, h->n_sessions))
		return IDMAP_NONE;
	struct idle_session *s = &h->sessions[h->n_sessions++];
	*s = (struct idle_session){ .key = arena_text(&h->texts, key),
		.user = arena_text(&h->texts, owner),
		.kind = SESSION_LEASE,
		.use = kind == LEASE_POD ? USE_SERVICE : USE_BATCH,
		.holds = h->present };
	if (kind == LEASE_SLURM)
		s->texts[PROCESS_JOB] = arena_text(&h->texts, label);
	else if (kind == LEASE_POD)
		s->texts[PROCESS_POD] = arena_text(&h->texts, name);
	s->texts[PROCESS_JOB_NAME] = sql_text_copy(row, 5, &h->texts);
	s->texts[PROCESS_ACCOUNT] = sql_text_copy(row, 6, &h->texts);
	s->texts[PROCESS_JOB_TASK] = sql_text_copy(row, 10, &h->texts);
	return session;
}

/* Adds the card of a row to its lease, which may be new. */
static int take_card(struct idle_history *h, sqlite3_stmt *row, struct err *e)
{
	uint32_t card = idmap_get(&h->card_ids, sql_int(row, 9, 0));
	int64_t id = sql_int(row, 0, 0), kind = sql_int(row, 1, -1);
	if (card == IDMAP_NONE || kind < 0 || kind >= LEASE_KINDS)
		return 0;
	/* What was not seen does not count, although the lease may be older. */
	int64_t seen_ms = sql_int(row, 7, 0), end_ms = sql_int(row, 8, INT64_MAX);
	uint32_t process = idmap_get(&h->lease_ids, id);
	if (process == IDMAP_NONE) {
		uint32_t session = session_of(h, row, e);
		process = (uint32_t)h->n_processes;
		if (session == IDMAP_NONE || h->texts.failed ||
			!array_one_more(&h->processes, h->n_processes) ||
			!idmap_put(&h->lease_ids, id, process))
			return err_memory(e);
		h->processes[h->n_processes++] = (struct idle_process){ .session = session,
			.uid = sql_int(row, 4, -1),
			.started_ms = seen_ms,
			.first_ms = seen_ms,
			.last_ms = end_ms };
	}
	if (!array_one_more(&h->spans, h->n_spans))
		return err_memory(e);
	h->spans[h->n_spans++] = (struct idle_span){ .session = h->processes[process].session,
		.process = process,
		.card = card,
		.begin_ms = seen_ms,
		.end_ms = clock_earlier(end_ms, h->last_tick_ms),
		.until_ms = clock_earlier(end_ms, h->last_tick_ms),
		.mem_kib = -1,
		.open = end_ms == INT64_MAX };
	return 0;
}

int idle_leases_read(struct idle_history *h, struct err *e)
{
	char window[WINDOW_CAP];
	sqlite3_stmt *rows = NULL;
	if (!h->leases)
		return 0;
	int rc = sql_prepare(h->db, &rows, e,
		"SELECT l.id, kind, name, owner, uid, job_name, account, max(since_ms, "
		"first_seen_ms), ended_ms, d.gpu, 'slurm:' || task FROM lease AS l JOIN "
		"(SELECT DISTINCT lease, "
		"gpu FROM leased_1d WHERE slot >= (SELECT min(first_seen_ms) / 1000 - 86400 "
		"FROM lease AS l WHERE %s)) AS d ON d.lease = l.id WHERE %s ORDER BY l.id",
		write_window(window, h), window);
	while (sql_next(&rows, &rc, e))
		rc = take_card(h, rows, e);
	return rc;
}

/* Whether the lease has the card. */
static bool has_card(const struct idle_history *h, uint32_t process, uint32_t card)
{
	for (size_t i = 0; i < h->n_spans; i++)
		if (h->spans[i].process == process && h->spans[i].card == card)
			return true;
	return false;
}

/* A slot in which a process of a lease was, or may have been, on a card. */
static int take_use(struct idle_history *h, int64_t slot_ms, sqlite3_stmt *row, struct err *e)
{
	uint32_t lease = idmap_get(&h->lease_ids, sql_int(row, 1, 0));
	uint32_t card = idmap_get(&h->card_ids, sql_int(row, 2, 0));
	int64_t from_ms = sql_int(row, 0, 0) * 1000;
	if (lease == IDMAP_NONE || card == IDMAP_NONE || !has_card(h, lease, card))
		return 0;
	for (unsigned i = 0; i < h->n_limits; i++) {
		if (!array_one_more(&h->marks, h->n_marks))
			return err_memory(e);
		h->marks[h->n_marks++] =
			(struct idle_mark){ .session = h->processes[lease].session,
				.card = card,
				.limit = i,
				.pct = IDLE_USE_UNKNOWN,
				.from_ms = clock_later(from_ms, sql_int(row, 3, 0)),
				.until_ms = clock_earlier(
					from_ms + slot_ms, sql_int(row, 4, INT64_MAX)),
				.slot_ms = from_ms };
	}
	return 0;
}

/* A slot in which it was not known whether the lease had ended. */
static int take_doubt(struct idle_history *h, int64_t slot_ms, sqlite3_stmt *row, struct err *e)
{
	uint32_t lease = idmap_get(&h->lease_ids, sql_int(row, 1, 0));
	int64_t from_ms = sql_int(row, 0, 0) * 1000;
	if (lease == IDMAP_NONE)
		return 0;
	if (!array_one_more(&h->blinds, h->n_blinds))
		return err_memory(e);
	h->blinds[h->n_blinds++] = (struct idle_blind){ .session = h->processes[lease].session,
		.unobserved = true,
		.from_ms = from_ms,
		.to_ms = clock_earlier(from_ms + slot_ms, h->last_tick_ms) };
	return 0;
}

int idle_leases_read_use(struct idle_history *h, struct err *e)
{
	int64_t first_s = idle_history_first_ms(h) / 1000, until_s = h->until_ms / 1000 + 1;
	char window[WINDOW_CAP];
	int rc = 0;
	write_window(window, h);
	for (size_t i = 0; h->lease_ids.n && i < SLOT_TABLES && rc == 0; i++) {
		const struct slot_table *t = &slot_tables[i];
		sqlite3_stmt *rows = NULL;
		rc = sql_prepare(h->db, &rows, e,
			"WITH users AS MATERIALIZED (" USERS ") SELECT slot, lease, gpu, "
			"first_seen_ms, iif(process IN (SELECT process FROM holder), "
			"NULL, last_seen_ms) FROM users JOIN %s AS h USING "
			"(process) JOIN process AS p ON p.id = process WHERE slot >= %lld "
			"AND slot < %lld",
			window, window, window, t->holding, (long long)(first_s - t->seconds),
			(long long)until_s);
		while (sql_next(&rows, &rc, e))
			rc = take_use(h, t->seconds * 1000, rows, e);
		rows = NULL;
		if (rc == 0)
			rc = sql_prepare(h->db, &rows, e, BY_NOBODY, t->usage, window,
				(long long)(first_s - t->seconds), (long long)until_s,
				t->holding);
		while (sql_next(&rows, &rc, e))
			rc = take_use(h, t->seconds * 1000, rows, e);
		rows = NULL;
		if (rc == 0)
			rc = sql_prepare(h->db, &rows, e,
				"SELECT slot, lease FROM %s WHERE unknown_ms > 0 AND slot >= "
				"%lld AND slot < %lld",
				t->reserved, (long long)(first_s - t->seconds),
				(long long)until_s);
		while (sql_next(&rows, &rc, e))
			rc = take_doubt(h, t->seconds * 1000, rows, e);
	}
	return rc;
}
