/* Reads the leases of the window that had reserved time, the most of it first. */
#include "audit/gather.h"

#define IN_WINDOW(table)                                                                       \
	"SELECT gpu, lease, reserved_ms FROM " table " WHERE slot >= %1$lld AND slot < "       \
	"%2$lld"
#define H_SLOTS IN_WINDOW("reserved_1h")
#define M5_SLOTS IN_WINDOW("reserved_5m")
#define M1_SLOTS IN_WINDOW("reserved_1m")
/* What a lease used, and what it did not, is stored by day. */
#define OF_DAYS(sum)                                                                           \
	"(SELECT sum(" sum ") FROM leased_1d AS d WHERE d.slot >= %3$lld AND d.slot < %2$lld " \
	"AND d.gpu = s.gpu AND d.lease = s.lease)"
#define USED OF_DAYS("active_ms + idle_held_ms + use_unknown_ms")
#define UNTOUCHED OF_DAYS("untouched_ms")
/* Cards that were used or held for a minute while the driver listed nobody there. */
#define BY_NOBODY(slot)                                                                        \
	"SELECT gpu, ms FROM usage_" slot " AS u WHERE slot >= %1$lld AND slot < %2$lld AND "  \
	"state IN (0, 1, 4) AND NOT EXISTS (SELECT 1 FROM holding_" slot " AS h WHERE "        \
	"h.slot = u.slot AND h.gpu = u.gpu)"
#define NOBODY_1H BY_NOBODY("1h")
#define NOBODY_5M BY_NOBODY("5m")
#define NOBODY_1M BY_NOBODY("1m")
#define NOBODY                                                                                 \
	"WITH nobody AS MATERIALIZED (SELECT gpu FROM (" NOBODY_1H " UNION ALL " NOBODY_5M     \
	" UNION ALL " NOBODY_1M ") GROUP BY gpu HAVING sum(ms) >= 60000) "
#define LEASES_SQL                                                                             \
	NOBODY "SELECT s.gpu, kind, name, owner, job_name, account, since_ms, ended_ms, "      \
	       "sum(reserved_ms), " USED ", " LEASE_JOB ", task, " UNTOUCHED                   \
	       ", s.gpu IN (SELECT gpu FROM nobody) FROM (" H_SLOTS " UNION ALL " M5_SLOTS     \
	       " UNION ALL " M1_SLOTS ") AS s JOIN lease ON lease.id = "                       \
	       "s.lease GROUP BY s.lease, s.gpu"

static int take_lease(
	struct gather *g, struct gather_file *file, sqlite3_stmt *row, struct err *e)
{
	struct audit *a = g->a;
	struct audit_leases *all = &a->leases;
	uint32_t card = gather_card(file, sqlite3_column_int64(row, 0));
	int64_t kind = sql_int(row, 1, -1);
	char owner[USER_CAP];
	bool takes_it;
	sql_text(row, 3, owner, sizeof(owner));
	int rc = restriction_take_owner(g, file, owner, &takes_it, e);
	takes_it = takes_it && restriction_takes_job_of(&g->q->only, row, 10);
	bool other = g->q->present_of && strcmp(g->q->present_of, owner) != 0;
	if (rc || !takes_it || other || card == IDMAP_NONE || kind < 0 || kind >= LEASE_KINDS)
		return rc;
	if (!array_one_more(&all->items, all->n))
		return err_memory(e);
	all->items[all->n++] = (struct audit_lease){ .card = card,
		.kind = (enum lease_kind)kind,
		.name = sql_text_copy(row, 2, &a->texts),
		.owner = sql_text_copy(row, 3, &a->texts),
		.job_name = sql_text_copy(row, 4, &a->texts),
		.account = sql_text_copy(row, 5, &a->texts),
		.task = sql_text_copy(row, 12, &a->texts),
		.since_ms = sql_int(row, 6, -1),
		.ended_ms = sql_int(row, 7, -1),
		.reserved_ms = sql_int(row, 8, 0),
		.used_ms = sql_int(row, 9, 0),
		.untouched_ms = sql_int(row, 13, 0),
		.by_nobody = sql_int(row, 14, 0) != 0 };
	return a->texts.failed ? err_memory(e) : 0;
}

int audit_leases_add(struct gather *g, struct gather_file *file, struct err *e)
{
	char sql[3072];
	if (!g->q->max_spells || !g->a->has_leases)
		return 0;
	snprintf(sql, sizeof(sql), LEASES_SQL, (long long)g->from_slot, (long long)g->to_slot,
		(long long)(g->from_slot - g->from_slot % 86400));
	return gather_rows(g, file, sql, take_lease, e);
}

static int compare(const void *x, const void *y)
{
	const struct audit_lease *a = x, *b = y;
	if (a->reserved_ms != b->reserved_ms)
		return array_compare(b->reserved_ms, a->reserved_ms);
	int by_card = array_compare((int64_t)a->card, (int64_t)b->card);
	return by_card ? by_card : strcmp(a->name, b->name);
}

void audit_leases_sort(struct audit_leases *all, size_t most)
{
	array_sort(all->items, all->n, compare);
	all->n_left_out = all->n > most ? all->n - most : 0;
	all->n -= all->n_left_out;
}
