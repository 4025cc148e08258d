/* Writes one tick in one transaction: entries that are new or changed, sums into the slots and
 * totals, events, the current holders, idle spells and readings. */
#include "store/store_private.h"

#include "model/scrape.h"
#include "store/crowd.h"
#include "store/sql.h"
#include "store/store.h"

/* A tick may be written this late, when a scrape already shows the time of a new process. */
#define LATE_MS 30000
enum { DAY_S = 86400 };
/* A place becomes free when its user has had no time for this long. */
#define PLACE_FREE_AFTER "35 * 86400000"

#define INSERT_CARD                                                                            \
	"INSERT INTO gpu (host, uuid, name, parent_uuid, pci, idx, mig_index,"                 \
	" gpu_instance, compute_instance, mem_total_bytes, status, first_seen_ms,"             \
	" last_seen_ms, source)"                                                               \
	" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"                \
	" ON CONFLICT (host, uuid) DO UPDATE SET"                                              \
	" first_seen_ms = min(first_seen_ms, excluded.first_seen_ms),"

static const char *const texts[STATEMENT_COUNT] = {
	[STATEMENT_CARD] = INSERT_CARD
	" name = excluded.name, parent_uuid = excluded.parent_uuid, pci = excluded.pci,"
	" idx = excluded.idx, mig_index = excluded.mig_index,"
	" gpu_instance = excluded.gpu_instance,"
	" compute_instance = excluded.compute_instance,"
	" mem_total_bytes = coalesce(excluded.mem_total_bytes, mem_total_bytes),"
	" source = excluded.source, status = excluded.status, last_seen_ms = "
	"excluded.last_seen_ms RETURNING id",
	[STATEMENT_PAST_CARD] = INSERT_CARD
	" last_seen_ms = max(last_seen_ms, excluded.last_seen_ms) RETURNING id",
	[STATEMENT_PAST_CARD_SEEN] =
		"UPDATE gpu SET last_seen_ms = max(last_seen_ms, ?2) WHERE id = ?1",
	[STATEMENT_NAME_CARD] = "UPDATE OR IGNORE gpu SET uuid = ?2 WHERE id = ?1"
				" AND (uuid LIKE 'index-%' OR uuid LIKE 'pci-%')",
	[STATEMENT_FIND_PROCESS] =
		"SELECT process.id FROM open_life JOIN process ON process.id = "
		"open_life.process"
		" JOIN run ON run.id = process.run WHERE open_life.pid = ?1 AND start_ticks = "
		"?2 AND process.host = ?3 AND boot_id = ?4",
	[STATEMENT_ADD_PROCESS] =
		"INSERT INTO process (host, run, pid, start_ticks, started_ms, uid, user,"
		" first_seen_ms, last_seen_ms, last_active_ms, ended_ms, posix_session,"
		" " PROCESS_TEXT_COLUMNS
		") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,"
		" ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27)",
	[STATEMENT_SET_PROCESS] =
		"UPDATE process SET user = ?2, last_seen_ms = max(last_seen_ms, ?3),"
		" last_active_ms = coalesce(max(last_active_ms, ?4), ?4, last_active_ms),"
		" ended_ms = ?5, (" PROCESS_TEXT_COLUMNS ") = (?6, ?7, ?8, ?9, ?10, ?11, ?12,"
		" ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20) WHERE id = ?1 AND NOT " CROWD_SQL,
	[STATEMENT_HAS_NUMBER] =
		"SELECT EXISTS (SELECT 1 FROM total_user WHERE host = ?1 AND user = ?2 AND "
		"moved_ms > coalesce((SELECT named_ms FROM identity WHERE host = ?1 AND "
		"user = ?2), 0))",
	[STATEMENT_JOIN_TOTALS] =
		"INSERT INTO total_user SELECT host, ?3, state, presence_ms, share_ms, moved_ms"
		" FROM total_user WHERE host = ?1 AND user = ?2"
		" ON CONFLICT DO UPDATE SET " TOTAL_USER_ADD,
	[STATEMENT_DROP_TOTALS] = "DELETE FROM total_user WHERE host = ?1 AND user = ?2",
	[STATEMENT_NAME_PROCESSES] =
		"UPDATE process SET user = ?3 WHERE host = ?1 AND user = ?2",
	[STATEMENT_USAGE] = "INSERT INTO usage_1m VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
			    " ON CONFLICT DO UPDATE SET " USAGE_ADD,
	[STATEMENT_HOLDING] =
		"INSERT INTO holding_1m VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11,"
		" ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)"
		" ON CONFLICT DO UPDATE SET " HOLDING_ADD,
	[STATEMENT_SM_ACTIVE] = "INSERT INTO sm_active VALUES (?1, ?2, ?3, ?4)"
				" ON CONFLICT DO UPDATE SET " SM_ACTIVE_ADD,
	[STATEMENT_OVERFULL] = "SELECT gpu, sum(ms) FROM usage_1m WHERE slot = ?1"
			       " GROUP BY gpu HAVING sum(ms) > ?2 LIMIT 1",
	[STATEMENT_CUT_USAGE] =
		"UPDATE usage_1m SET " USAGE_CUT " WHERE slot = ?1 AND gpu = ?2",
	[STATEMENT_CUT_HOLDING] =
		"UPDATE holding_1m SET " HOLDING_CUT " WHERE slot = ?1 AND gpu = ?2",
	[STATEMENT_CUT_RESERVED] =
		"UPDATE reserved_1m SET " RESERVED_CUT " WHERE slot = ?1 AND gpu = ?2",
	[STATEMENT_RESERVED] = "INSERT INTO reserved_1m VALUES (?1, ?2, ?3, ?4, ?5)"
			       " ON CONFLICT DO UPDATE SET " RESERVED_ADD,
	[STATEMENT_LEASED] = "INSERT INTO leased_1d VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
			     " ON CONFLICT DO UPDATE SET " LEASED_ADD,
	/* The row of a lease that an earlier run saw. A job that was started again meanwhile
	 * began later; when a pick began is known only to the run that saw it first. */
	[STATEMENT_FIND_LEASE] =
		"SELECT id FROM lease WHERE host = ?1 AND kind = ?2 AND name = ?3 AND owner = "
		"?4 AND ended_ms IS NULL AND (kind = 2 OR since_ms = ?5 OR"
		" ?5 <= (SELECT max(last_tick_ms) FROM run WHERE host = ?1 AND id < ?6))",
	[STATEMENT_ADD_LEASE] =
		"INSERT INTO lease (uid, job_name, account, share, since_ms, until_ms,"
		" last_seen_ms, ended_ms, task, first_seen_ms, host, kind, name, owner)"
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
	[STATEMENT_SET_LEASE] =
		"UPDATE lease SET uid = ?1, job_name = ?2, account = ?3, share = ?4,"
		" since_ms = iif(kind = 2, min(since_ms, ?5), ?5), until_ms = ?6,"
		" last_seen_ms = ?7, ended_ms = ?8, task = ?9 WHERE id = ?10",
	[STATEMENT_END_LEASES] =
		"UPDATE lease SET ended_ms = max(last_seen_ms, coalesce((SELECT"
		" max(last_tick_ms) FROM run WHERE host = ?1 AND id < ?2), 0))"
		" WHERE host = ?1 AND ended_ms IS NULL AND last_seen_ms <"
		" (SELECT started_ms FROM run WHERE id = ?2)",
	[STATEMENT_RUN_LEASES] = "UPDATE run SET leases = 1 WHERE id = ?1",
	[STATEMENT_TOTAL_GPU] = "INSERT INTO total_gpu VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
				" ON CONFLICT DO UPDATE SET " TOTAL_GPU_ADD,
	[STATEMENT_TOTAL_USER] = "INSERT INTO total_user VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
				 " ON CONFLICT DO UPDATE SET " TOTAL_USER_ADD,
	[STATEMENT_EVENT] = "INSERT INTO event (host, at_ms, gpu, kind, value, text)"
			    " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
	[STATEMENT_CLEAR_HOLDERS] =
		"DELETE FROM holder WHERE gpu IN (SELECT id FROM gpu WHERE host = ?1)",
	[STATEMENT_HOLDER] =
		"INSERT INTO holder VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO UPDATE SET"
		" kind = ?3, mem_bytes = ?4, since_ms = ?5, last_active_ms = ?6",
	[STATEMENT_HOLDER_GONE] = "DELETE FROM holder WHERE gpu = ?1 AND process = ?2",
	/* After the clock was set back, the earlier time is stored: with a last tick in the
	 * future, a run would look live for ever. */
	[STATEMENT_RUN_TICK] = "UPDATE run SET last_tick_ms = ?2 WHERE id = ?1",
	[STATEMENT_PAST_HOST_TICK] =
		"UPDATE host SET last_seen_ms = max(last_seen_ms, ?2) WHERE id = ?1",
	[STATEMENT_LAST_OPEN] = "SELECT max(rowid) FROM open_spell",
	[STATEMENT_CLEAR_OPEN] = "DELETE FROM open_spell WHERE gpu = ?1",
	[STATEMENT_CUT_OPEN] = "DELETE FROM open_spell WHERE rowid >= ?1",
	[STATEMENT_OPEN_SPELL] =
		"INSERT OR REPLACE INTO open_spell (end_ms, gpu, process, begin_ms,"
		" idle_held_ms, squatting_ms, mem_peak_kib, energy_mj, rowid)"
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
	[STATEMENT_SPELL] =
		"INSERT OR REPLACE INTO spell VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8,"
		" ?9)",
	[STATEMENT_FORGET_SPELL] =
		"DELETE FROM spell WHERE end_ms = ?1 AND gpu = ?2 AND process = ?3",
	[STATEMENT_READING] =
		"INSERT OR REPLACE INTO reading VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
	/* The smallest place that is free; 0 for time without a user. */
	[STATEMENT_NEW_USER] =
		"INSERT INTO identity (host, user, place, first_ms)"
		" SELECT ?1, ?2, iif(?2 = '_unknown', 0, (SELECT min(n) FROM (SELECT 1 AS n"
		" UNION ALL SELECT place + 1 FROM identity WHERE host = ?1) WHERE n NOT IN"
		" (SELECT place FROM identity AS other WHERE host = ?1"
		" AND (first_ms > ?3 - " PLACE_FREE_AFTER " OR EXISTS (SELECT 1 FROM total_user"
		" WHERE host = ?1 AND user = other.user"
		" AND moved_ms > ?3 - " PLACE_FREE_AFTER "))))), ?3"
		" WHERE NOT EXISTS (SELECT 1 FROM identity WHERE host = ?1 AND user = ?2)",
	[STATEMENT_NAME_USER] =
		"UPDATE OR IGNORE identity SET user = ?3 WHERE host = ?1 AND user = ?2",
	[STATEMENT_DROP_USER] = "DELETE FROM identity WHERE host = ?1 AND user = ?2",
	[STATEMENT_NEWBORN] =
		"SELECT EXISTS (SELECT 1 FROM identity WHERE host = ?1 AND user = ?2"
		" AND first_ms > ?3)",
	[STATEMENT_NAMED] =
		"UPDATE identity SET named_ms = (SELECT max(moved_ms) FROM total_user"
		" WHERE host = ?1 AND user = ?2) WHERE host = ?1 AND user = ?2",
};

static sqlite3_stmt *statement(struct store *s, enum statement which)
{
	return sql_kept(s->db, &s->statements[which], texts[which]);
}

static bool make_room(struct store *s, const struct tick *t)
{
	return array_reserve(&s->card_ids, &s->card_cap, t->n_cards) &&
	       array_reserve(&s->process_ids, &s->process_cap, t->n_processes) &&
	       array_reserve(&s->lease_ids, &s->lease_cap, t->n_leases) &&
	       array_reserve(&s->holders, &s->holder_cap, t->n_holders) &&
	       array_reserve(&s->next, &s->next_cap, t->n_holders);
}

static bool write_cards(struct store *s, const struct tick *t)
{
	for (size_t i = 0; i < t->n_cards; i++) {
		const struct card_entry *c = &t->cards[i];
		s->card_ids[i] = c->store_id;
		bool known = c->store_id != 0 && !c->dirty && !s->ids_stale;
		if (known && s->past &&
			!sql_put(statement(s, STATEMENT_PAST_CARD_SEEN), NULL,
				SQL_INT(c->store_id), SQL_INT(c->last_seen_ms)))
			return false;
		/* A card that could not be named before keeps its row. */
		if (!known && c->store_id != 0 && !s->ids_stale && card_has_uuid(&c->id) &&
			!sql_put(statement(s, STATEMENT_NAME_CARD), NULL, SQL_INT(c->store_id),
				SQL_TEXT(c->id.uuid)))
			return false;
		enum statement which = s->past ? STATEMENT_PAST_CARD : STATEMENT_CARD;
		if (!known && !sql_put(statement(s, which), &s->card_ids[i], SQL_INT(s->host),
				      SQL_TEXT(c->id.uuid), SQL_TEXT(c->id.name),
				      SQL_TEXT(c->id.parent_uuid), SQL_TEXT(c->id.pci),
				      SQL_INT(c->id.index), SQL_KNOWN(c->id.mig_index, -1),
				      SQL_KNOWN(c->id.gpu_instance, -1),
				      SQL_KNOWN(c->id.compute_instance, -1),
				      SQL_KNOWN(c->id.mem_total_bytes, UNKNOWN_BYTES),
				      SQL_RAW(card_status_names[c->status]),
				      SQL_INT(c->first_seen_ms), SQL_INT(c->last_seen_ms),
				      SQL_TEXT(c->source)))
			return false;
	}
	return true;
}

/* Finds a life that an earlier run stored; *id stays 0 when there is none. Without a start
 * time two lives of a pid cannot be distinguished: such a process always gets a new row. */
static bool find_process(struct store *s, const struct process_entry *p, int64_t *id)
{
	if (p->id.start_ticks == 0)
		return true;
	return sql_put(statement(s, STATEMENT_FIND_PROCESS), id, SQL_INT(p->id.pid),
		SQL_INT((int64_t)p->id.start_ticks), SQL_INT(s->host),
		SQL_TEXT(s->info.boot_id));
}

/* Binds the texts from parameter `first` on. Every process has a command, which may be "". */
static void bind_texts(sqlite3_stmt *q, int first, const struct process_id *id)
{
	_Static_assert(PROCESS_TEXTS == 15, "a new text needs a column and a parameter");
	for (int i = 0; i < PROCESS_TEXTS; i++)
		if (i == PROCESS_COMMAND)
			sql_bind_from(q, first + i, SQL_ARGS(SQL_TEXT(process_text(id, i))));
		else
			sql_bind_from(
				q, first + i, SQL_ARGS(SQL_OPTIONAL(process_text(id, i))));
}

static bool add_process(struct store *s, const struct process_entry *p, int64_t *id)
{
	sqlite3_stmt *q = statement(s, STATEMENT_ADD_PROCESS);
	bind_texts(q, 13, &p->id);
	bool ok = sql_put(q, NULL, SQL_INT(s->host), SQL_INT(s->run), SQL_INT(p->id.pid),
		SQL_INT((int64_t)p->id.start_ticks), SQL_KNOWN(p->id.started_ms, -1),
		SQL_KNOWN(p->id.uid, -1), SQL_TEXT(p->id.user), SQL_INT(p->first_seen_ms),
		SQL_INT(p->last_seen_ms), SQL_KNOWN(p->last_active_ms, -1),
		SQL_KNOWN(p->ended_ms, -1), SQL_KNOWN(p->id.posix_session, 0));
	*id = sqlite3_last_insert_rowid(s->db);
	return ok;
}

static bool set_process(struct store *s, const struct process_entry *p, int64_t id)
{
	sqlite3_stmt *q = statement(s, STATEMENT_SET_PROCESS);
	bind_texts(q, 6, &p->id);
	return sql_put(q, NULL, SQL_INT(id), SQL_TEXT(p->id.user), SQL_INT(p->last_seen_ms),
		SQL_KNOWN(p->last_active_ms, -1), SQL_KNOWN(p->ended_ms, -1));
}

/* Time of a user whose name was not known is stored under "uid:N". Once the name is known, the
 * processes get it. Time that has a name keeps it: the number may belong to another person now.
 * Running totals stay, because they are exported: an engine that has seen the number's counter
 * would count its time again if the name's counter took it over. They are moved only if the
 * counter has shown nothing but 0. */
static bool join_name(struct store *s, const struct process_id *id, int64_t at_ms)
{
	char number[32];
	int64_t stored = 0, newborn = 0;
	snprintf(number, sizeof(number), "uid:%lld", (long long)id->owner_uid);
	if (id->owner_uid < 0 || strcmp(id->user, number) == 0)
		return true;
	if (!sql_put(statement(s, STATEMENT_HAS_NUMBER), &stored, SQL_INT(s->host),
		    SQL_TEXT(number)))
		return false;
	if (!stored)
		return true;
	if (!sql_put(statement(s, STATEMENT_NAME_PROCESSES), NULL, SQL_INT(s->host),
		    SQL_TEXT(number), SQL_TEXT(id->user)) ||
		!sql_put(statement(s, STATEMENT_NEWBORN), &newborn, SQL_INT(s->host),
			SQL_TEXT(number), SQL_INT(at_ms - SCRAPE_NEWBORN_MS + LATE_MS)))
		return false;
	if (!newborn)
		return sql_put(statement(s, STATEMENT_NAMED), NULL, SQL_INT(s->host),
			SQL_TEXT(number));
	return sql_put(statement(s, STATEMENT_JOIN_TOTALS), NULL, SQL_INT(s->host),
		       SQL_TEXT(number), SQL_TEXT(id->user)) &&
	       sql_put(statement(s, STATEMENT_DROP_TOTALS), NULL, SQL_INT(s->host),
		       SQL_TEXT(number)) &&
	       sql_put(statement(s, STATEMENT_NAME_USER), NULL, SQL_INT(s->host),
		       SQL_TEXT(number), SQL_TEXT(id->user)) &&
	       sql_put(statement(s, STATEMENT_DROP_USER), NULL, SQL_INT(s->host),
		       SQL_TEXT(number));
}

static bool write_process(
	struct store *s, const struct process_entry *p, int64_t at_ms, int64_t *id)
{
	if (*id && !p->dirty)
		return true;
	if (*id == 0 && !find_process(s, p, id))
		return false;
	if (*id && !set_process(s, p, *id))
		return false;
	return crowd_take(s, p, at_ms, id) && (*id || add_process(s, p, id)) &&
	       join_name(s, &p->id, at_ms) &&
	       sql_put(statement(s, STATEMENT_NEW_USER), NULL, SQL_INT(s->host),
		       SQL_TEXT(p->id.user), SQL_INT(at_ms));
}

static bool write_processes(struct store *s, const struct tick *t)
{
	for (size_t i = 0; i < t->n_processes; i++) {
		s->process_ids[i] = s->ids_stale ? 0 : t->processes[i].store_id;
		if (!write_process(s, &t->processes[i], t->at_ms, &s->process_ids[i]))
			return false;
	}
	return crowd_merge(s);
}

static bool write_usage(struct store *s, const struct usage_sum *u)
{
	int64_t card = s->card_ids[u->card], energy_unknown_ms = u->ms - u->energy_ms;
	sums_note(s, u->slot);
	if (!sql_put(statement(s, STATEMENT_USAGE), NULL, SQL_INT(u->slot), SQL_INT(card),
		    SQL_INT(u->state), SQL_INT(u->ms), SQL_INT(u->util_pct_ms),
		    SQL_INT(u->energy_mj), SQL_INT(energy_unknown_ms), SQL_INT(u->unsure_ms),
		    SQL_INT(u->unsure_ms2)))
		return false;
	/* SM activity is kept by the hour from the start; finer slots are not needed. */
	return u->sm_active_ms == 0 ||
	       sql_put(statement(s, STATEMENT_SM_ACTIVE), NULL,
		       SQL_INT(u->slot - u->slot % 3600), SQL_INT(card),
		       SQL_INT(u->sm_active_ms), SQL_INT(u->sm_active_pct_ms));
}

/* The cards' running totals: those of a tick that is in two slots are written at once. */
static bool write_card_totals(struct store *s, const struct tick *t)
{
	struct usage_sum sum[CARD_STATES];
	for (size_t card = 0; card < t->n_cards; card++) {
		memset(sum, 0, sizeof(sum));
		for (size_t i = 0; i < t->n_usage; i++) {
			const struct usage_sum *u = &t->usage[i];
			if (u->card != card)
				continue;
			struct usage_sum *to = &sum[u->state];
			to->card++; /* there is something to add */
			to->ms += u->ms;
			to->energy_mj += u->energy_mj;
			to->energy_ms += u->energy_ms;
			to->unsure_ms += u->unsure_ms;
			to->unsure_ms2 += u->unsure_ms2;
		}
		for (int state = 0; state < CARD_STATES; state++)
			if (sum[state].card &&
				!sql_put(statement(s, STATEMENT_TOTAL_GPU), NULL,
					SQL_INT(s->card_ids[card]), SQL_INT(state),
					SQL_INT(sum[state].ms), SQL_INT(sum[state].energy_mj),
					SQL_INT(sum[state].ms - sum[state].energy_ms),
					SQL_INT(sum[state].unsure_ms),
					SQL_INT(sum[state].unsure_ms2)))
				return false;
	}
	return true;
}

/* Finds the sums of a user in this tick, or adds them. Ticks have few users: they are searched
 * one by one, from the one that was found last. NULL: no memory. */
static struct user_sum *find_user(struct store *s, const char *user, size_t *last)
{
	for (size_t i = 0; i < s->n_users; i++) {
		size_t at = (*last + i) % s->n_users;
		if (strcmp(s->users[at].user, user) == 0) {
			*last = at;
			return &s->users[at];
		}
	}
	if (!array_reserve(&s->users, &s->user_cap, s->n_users + 1))
		return NULL;
	*last = s->n_users++;
	s->users[*last] = (struct user_sum){ .user = user };
	return &s->users[*last];
}

/* The users' running totals: presence by the user's state; shares of active time count as
 * active, those of idle-held time as idle-held. */
static bool write_user_totals(struct store *s, const struct tick *t)
{
	size_t last = 0;
	s->n_users = 0;
	for (size_t i = 0; i < t->n_holding; i++) {
		const struct holding_sum *h = &t->holding[i];
		struct user_sum *sum = find_user(s, t->processes[h->process].id.user, &last);
		if (!sum)
			return false;
		for (int state = 0; state < HOLDER_STATES; state++) {
			sum->presence_ms[state] += h->presence_ms[state];
			sum->moved[state] |= h->presence_ms[state] != 0;
		}
		sum->share_ms[HOLDER_ACTIVE] += h->active_share_ms;
		sum->moved[HOLDER_ACTIVE] |= h->active_share_ms != 0;
		sum->share_ms[HOLDER_IDLE_HELD] += h->idle_share_ms;
		sum->moved[HOLDER_IDLE_HELD] |= h->idle_share_ms != 0;
	}
	for (size_t i = 0; i < s->n_users * HOLDER_STATES; i++) {
		const struct user_sum *sum = &s->users[i / HOLDER_STATES];
		size_t state = i % HOLDER_STATES;
		if (sum->moved[state] &&
			!sql_put(statement(s, STATEMENT_TOTAL_USER), NULL, SQL_INT(s->host),
				SQL_TEXT(sum->user), SQL_INT((int64_t)state),
				SQL_INT(sum->presence_ms[state]), SQL_INT(sum->share_ms[state]),
				SQL_INT(t->at_ms)))
			return false;
	}
	return true;
}

/* Version 2 of the schema added the last state, after all other columns. */
static bool write_holding(struct store *s, const struct holding_sum *h)
{
	int64_t own_use = h->sm_max_pct >= 0 ? h->own_unknown_ms * 256 + h->sm_max_pct : -1;
	int64_t twice_ms[HOLDER_STATES];
	sums_note(s, h->slot);
	for (int state = 0; state < HOLDER_STATES; state++)
		twice_ms[state] = h->ms[state] - h->presence_ms[state];
	return sql_put(statement(s, STATEMENT_HOLDING), NULL, SQL_INT(h->slot),
		SQL_INT(s->card_ids[h->card]), SQL_INT(s->process_ids[h->process]),
		SQL_INT(h->ms[HOLDER_ACTIVE]), SQL_INT(h->ms[HOLDER_IDLE_HELD]),
		SQL_INT(h->ms[HOLDER_TRULY_IDLE]), SQL_INT(h->ms[HOLDER_SQUATTING]),
		SQL_INT(twice_ms[HOLDER_ACTIVE]), SQL_INT(twice_ms[HOLDER_IDLE_HELD]),
		SQL_INT(twice_ms[HOLDER_TRULY_IDLE]), SQL_INT(twice_ms[HOLDER_SQUATTING]),
		SQL_INT(h->active_share_ms), SQL_INT(h->idle_share_ms),
		SQL_KNOWN(h->sm_pct_ms, -1), SQL_KNOWN(h->mem_peak_kib, -1),
		SQL_INT(h->ms[HOLDER_USE_UNKNOWN]), SQL_INT(twice_ms[HOLDER_USE_UNKNOWN]),
		SQL_INT(h->engine_ms), SQL_KNOWN(own_use, -1));
}

static bool write_lease(
	struct store *s, const struct lease_entry *l, int64_t at_ms, int64_t *id)
{
	const struct lease *lease = &l->lease;
	if (*id && !l->dirty)
		return true;
	if (!*id && !sql_put(statement(s, STATEMENT_FIND_LEASE), id, SQL_INT(s->host),
			    SQL_INT(lease->kind), SQL_TEXT(lease->id), SQL_TEXT(lease->owner),
			    SQL_INT(lease->since_ms), SQL_INT(s->run)))
		return false;
	bool known = *id != 0;
	sqlite3_stmt *q = statement(s, known ? STATEMENT_SET_LEASE : STATEMENT_ADD_LEASE);
	if (known)
		sql_bind_from(q, 10, SQL_ARGS(SQL_INT(*id)));
	else
		sql_bind_from(q, 10,
			SQL_ARGS(SQL_INT(l->first_seen_ms), SQL_INT(s->host),
				SQL_INT(lease->kind), SQL_TEXT(lease->id),
				SQL_TEXT(lease->owner)));
	if (!sql_put(q, NULL, SQL_KNOWN(lease->uid, -1), SQL_OPTIONAL(lease->job_name),
		    SQL_OPTIONAL(lease->account), SQL_INT(lease->share),
		    SQL_INT(lease->since_ms), SQL_KNOWN(lease->until_ms, -1),
		    SQL_INT(l->last_seen_ms), SQL_KNOWN(l->ended_ms, -1),
		    SQL_OPTIONAL(lease->task)))
		return false;
	if (!known)
		*id = sqlite3_last_insert_rowid(s->db);
	return known || sql_put(statement(s, STATEMENT_NEW_USER), NULL, SQL_INT(s->host),
				SQL_TEXT(lease->owner), SQL_INT(at_ms));
}

/* Writes the leases and their sums. At the first tick of a run, those that are not there any
 * more have ended. */
static bool write_leases(struct store *s, const struct tick *t)
{
	for (size_t i = 0; i < t->n_leases; i++) {
		s->lease_ids[i] = s->ids_stale ? 0 : t->leases[i].store_id;
		if (!write_lease(s, &t->leases[i], t->at_ms, &s->lease_ids[i]))
			return false;
	}
	for (size_t i = 0; i < t->n_leased; i++) {
		const struct lease_sum *l = &t->leased[i];
		int64_t card = s->card_ids[l->card], lease = s->lease_ids[l->lease];
		if ((l->reserved_ms || l->unknown_ms) &&
			!sql_put(statement(s, STATEMENT_RESERVED), NULL, SQL_INT(l->slot),
				SQL_INT(card), SQL_INT(lease), SQL_INT(l->reserved_ms),
				SQL_INT(l->unknown_ms)))
			return false;
		/* Its own time may be in the row of a later slot of the day. */
		bool own = l->active_ms || l->idle_held_ms || l->use_unknown_ms ||
			   l->untouched_ms || !l->reserved_ms;
		if (own &&
			!sql_put(statement(s, STATEMENT_LEASED), NULL,
				SQL_INT(l->slot - l->slot % DAY_S), SQL_INT(card),
				SQL_INT(lease), SQL_INT(l->active_ms), SQL_INT(l->idle_held_ms),
				SQL_INT(l->use_unknown_ms), SQL_INT(l->untouched_ms)))
			return false;
		if (l->reserved_ms &&
			!sql_put(statement(s, STATEMENT_TOTAL_USER), NULL, SQL_INT(s->host),
				SQL_TEXT(t->leases[l->lease].lease.owner),
				SQL_INT(CARD_RESERVED), SQL_INT(l->reserved_ms),
				SQL_INT(l->reserved_ms), SQL_INT(t->at_ms)))
			return false;
	}
	if (!s->past && !s->leases_checked &&
		!sql_put(statement(s, STATEMENT_END_LEASES), NULL, SQL_INT(s->host),
			SQL_INT(s->run)))
		return false;
	return !t->has_leases || s->leases_noted ||
	       sql_put(statement(s, STATEMENT_RUN_LEASES), NULL, SQL_INT(s->run));
}

/* Limits the time of a card in a slot to the length of the slot. It would be more after the
 * clock was set back, when the same minutes pass again. */
static bool cut_slot(struct store *s, int64_t slot, int64_t slot_ms)
{
	for (;;) {
		sqlite3_stmt *q = statement(s, STATEMENT_OVERFULL);
		sql_bind(q, SQL_INT(slot), SQL_INT(slot_ms));
		int rc = q ? sqlite3_step(q) : SQLITE_ERROR;
		int64_t card = sqlite3_column_int64(q, 0), ms = sqlite3_column_int64(q, 1);
		sqlite3_reset(q);
		if (rc != SQLITE_ROW)
			return rc == SQLITE_DONE;
		for (enum statement cut = STATEMENT_CUT_USAGE; cut <= STATEMENT_CUT_RESERVED;
			cut++)
			if (!sql_put(statement(s, cut), NULL, SQL_INT(slot), SQL_INT(card),
				    SQL_INT(slot_ms), SQL_INT(ms)))
				return false;
		if (!s->told_cut)
			log_warning("a card had %.1f s in a slot of %.0f s: the clock was set "
				    "back, or time was counted twice; cut to its length",
				(double)ms / 1000, (double)slot_ms / 1000);
		s->told_cut = true;
	}
}

/* Most ticks are in one slot or two, whose rows take turns: a slot of the last rows was cut. */
static bool cut_slots(struct store *s, const struct tick *t)
{
	for (size_t i = 0; i < t->n_usage; i++) {
		int64_t slot = t->usage[i].slot;
		size_t back = 1;
		while (back <= i && back < 16 && t->usage[i - back].slot != slot)
			back++;
		if ((back > i || back == 16) && !cut_slot(s, slot, t->slot_ms))
			return false;
	}
	return true;
}

static bool write_sums(struct store *s, const struct tick *t)
{
	for (size_t i = 0; i < t->n_usage; i++)
		if (!write_usage(s, &t->usage[i]))
			return false;
	for (size_t i = 0; i < t->n_holding; i++)
		if (!write_holding(s, &t->holding[i]))
			return false;
	if (!write_card_totals(s, t) || !write_user_totals(s, t) || !write_leases(s, t))
		return false;
	if (t->slot_ms && !cut_slots(s, t))
		return false;
	for (size_t i = 0; i < t->n_events; i++) {
		const struct event *v = &t->events[i];
		if (!sql_put(statement(s, STATEMENT_EVENT), NULL, SQL_INT(s->host),
			    SQL_INT(v->at_ms),
			    SQL_KNOWN(v->card >= 0 ? s->card_ids[v->card] : -1, -1),
			    SQL_RAW(event_kind_names[v->kind]), SQL_INT(v->value),
			    SQL_TEXT(v->text)))
			return false;
	}
	return true;
}

/* Finds the row of a holder among others, usually at the same index; or NULL. */
static const struct stored_holder *find_holder(
	const struct stored_holder *rows, size_t n, const struct stored_holder *h, size_t place)
{
	for (size_t k = 0; k < n; k++) {
		const struct stored_holder *row = &rows[(place + k) % n];
		if (row->gpu == h->gpu && row->process == h->process)
			return row;
	}
	return NULL;
}

/* Removes the stored holders that are not there any more. */
static bool drop_holders(struct store *s)
{
	for (size_t i = 0; i < s->n_holders; i++) {
		const struct stored_holder *was = &s->holders[i];
		if (!find_holder(s->next, s->n_next, was, i) &&
			!sql_put(statement(s, STATEMENT_HOLDER_GONE), NULL, SQL_INT(was->gpu),
				SQL_INT(was->process)))
			return false;
	}
	return true;
}

static int active_first(const void *a, const void *b)
{
	const struct stored_holder *x = a, *y = b;
	return array_compare(y->last_active_ms, x->last_active_ms);
}

/* Writes the holders that have changed since the last tick. The first tick replaces the table,
 * which may have the holders of another run. From time to time all are written anew, those that
 * were active last first: they will change again, and then they share pages. */
static bool write_holders(struct store *s, const struct tick *t)
{
	s->n_next = t->n_holders;
	for (size_t i = 0; i < t->n_holders; i++) {
		const struct holder_now *h = &t->holders[i];
		s->next[i] = (struct stored_holder){ s->card_ids[h->card],
			s->process_ids[h->process], h->kind, h->mem_bytes, h->since_ms,
			h->last_active_ms };
	}
	bool anew = !s->holders_known || (!s->past && s->ticks % 64 == 0);
	if (anew ? !sql_put(statement(s, STATEMENT_CLEAR_HOLDERS), NULL, SQL_INT(s->host))
		 : !drop_holders(s))
		return false;
	if (anew && s->n_next)
		qsort(s->next, s->n_next, sizeof(*s->next), active_first);
	for (size_t i = 0; i < s->n_next; i++) {
		const struct stored_holder *now = &s->next[i];
		const struct stored_holder *was =
			anew ? NULL : find_holder(s->holders, s->n_holders, now, i);
		if (was && memcmp(was, now, sizeof(*now)) == 0)
			continue;
		if (!sql_put(statement(s, STATEMENT_HOLDER), NULL, SQL_INT(now->gpu),
			    SQL_INT(now->process), SQL_INT(now->kind),
			    SQL_KNOWN(now->mem_bytes, UNKNOWN_BYTES), SQL_INT(now->since_ms),
			    SQL_KNOWN(now->last_active_ms, -1)))
			return false;
	}
	return true;
}

/* A spell that was open when an earlier run ended was stored as one that ended then: that row
 * is removed. An open one gets the row `place` of open_spell. */
static bool write_spell(struct store *s, const struct spell *spell, int64_t place)
{
	int64_t card = s->card_ids[spell->card], process = s->process_ids[spell->process];
	bool open = spell->how == SPELL_OPEN;
	sqlite3_stmt *q = statement(s, open ? STATEMENT_OPEN_SPELL : STATEMENT_SPELL);
	if (spell->stored_end_ms >= 0 &&
		!sql_put(statement(s, STATEMENT_FORGET_SPELL), NULL,
			SQL_INT(spell->stored_end_ms), SQL_INT(card), SQL_INT(process)))
		return false;
	sql_bind_from(q, 9, SQL_ARGS(SQL_INT(open ? place : (int64_t)spell->how)));
	return sql_put(q, NULL, SQL_INT(spell->end_ms), SQL_INT(card), SQL_INT(process),
		SQL_INT(spell->begin_ms), SQL_INT(spell->idle_held_ms),
		SQL_INT(spell->squatting_ms), SQL_KNOWN(spell->mem_peak_kib, -1),
		SQL_KNOWN(spell->energy_mj, -1));
}

/* Removes the stretches of the listed cards, which another run may have left, and finds where
 * those of this run begin. */
static bool clear_open(struct store *s, const struct tick *t)
{
	int64_t last = 0;
	for (size_t i = 0; i < t->n_cards; i++)
		if (t->cards[i].listed && !sql_put(statement(s, STATEMENT_CLEAR_OPEN), NULL,
						  SQL_INT(s->card_ids[i])))
			return false;
	if (!sql_run(statement(s, STATEMENT_LAST_OPEN), &last))
		return false;
	s->open_first = last + 1;
	s->n_open = 0;
	return true;
}

/* Most stretches that were open still are, so rows are changed in place: each tick writes its
 * stretches to the same rows, whatever processes they are of. Those of cards that were not
 * listed stay. */
static bool write_spells(struct store *s, const struct tick *t)
{
	int64_t n = 0, last = 0;
	size_t listed = 0;
	for (size_t i = 0; i < t->n_cards; i++)
		listed += t->cards[i].listed;
	if (!sql_run(statement(s, STATEMENT_LAST_OPEN), &last))
		return false;
	/* All are written anew when another card was listed, when another program has changed
	 * the table, and from time to time, because rows that grow leave pages half empty. */
	bool anew = !s->open_known || listed != s->n_listed || s->ticks % 16 == 0 ||
		    last != s->open_first + s->n_open - 1;
	s->ticks++;
	s->n_listed = listed;
	if (anew && !clear_open(s, t))
		return false;
	for (size_t i = 0; i < t->n_spells; i++) {
		const struct spell *spell = &t->spells[i];
		if (!write_spell(s, spell, s->open_first + n))
			return false;
		n += spell->how == SPELL_OPEN;
	}
	s->n_next_open = n;
	return n >= s->n_open ||
	       sql_put(statement(s, STATEMENT_CUT_OPEN), NULL, SQL_INT(s->open_first + n));
}

/* Replaces the readings of the last tick, which exporters and pages show. */
static bool write_readings(struct store *s, const struct tick *t)
{
	for (size_t i = 0; !s->past && i < t->n_cards; i++) {
		const struct card_now *now = &t->cards[i].now;
		if (!sql_put(statement(s, STATEMENT_READING), NULL, SQL_INT(s->card_ids[i]),
			    SQL_INT(t->at_ms), SQL_REAL(now->util_pct),
			    SQL_KNOWN(now->mem_used_bytes, UNKNOWN_BYTES),
			    SQL_REAL(now->power_w), SQL_REAL(now->power_limit_w),
			    SQL_REAL(now->temperature_c),
			    SQL_KNOWN(now->idle_held_since_ms, -1),
			    SQL_INT(t->cards[i].last_seen_ms)))
			return false;
	}
	return true;
}

static bool write_time(struct store *s, int64_t at_ms)
{
	return sql_put(statement(s, STATEMENT_RUN_TICK), NULL, SQL_INT(s->run),
		       SQL_INT(at_ms)) &&
	       (!s->past || sql_put(statement(s, STATEMENT_PAST_HOST_TICK), NULL,
				    SQL_INT(s->host), SQL_INT(at_ms)));
}

/* Marks the recorder's entries as stored. Called only when the tick was written. */
static void confirm(struct store *s, struct tick *t)
{
	for (size_t i = 0; i < t->n_cards; i++) {
		t->cards[i].store_id = s->card_ids[i];
		t->cards[i].dirty = false;
	}
	for (size_t i = 0; i < t->n_processes; i++) {
		t->processes[i].store_id = s->process_ids[i];
		t->processes[i].dirty = false;
	}
	for (size_t i = 0; i < t->n_leases; i++) {
		t->leases[i].store_id = s->lease_ids[i];
		t->leases[i].dirty = false;
	}
	s->leases_checked = true;
	s->leases_noted = t->has_leases;
	struct stored_holder *holders = s->holders;
	size_t cap = s->holder_cap;
	s->holders = s->next;
	s->holder_cap = s->next_cap;
	s->n_holders = s->n_next;
	s->next = holders;
	s->next_cap = cap;
	s->holders_known = true;
	s->n_open = s->n_next_open;
	s->open_known = true;
	s->ids_stale = false;
}

int write_tick(struct store *s, struct tick *t, struct err *e)
{
	if (!make_room(s, t))
		return err_memory(e);
	int code = store_ensure_run(s, e);
	if (!code)
		code = store_begin(s, e);
	if (code)
		return code;
	int64_t host = s->host;
	if (!sums_begin(s) || !store_find_host(s, t) || !write_cards(s, t) ||
		!write_processes(s, t) || !write_sums(s, t) || !write_holders(s, t) ||
		!write_spells(s, t) || !write_readings(s, t) || !write_time(s, t->at_ms) ||
		!(s->in_batch || sums_settle(s))) {
		s->holders_known = s->open_known = false;
		s->host = host;
		crowd_forget(s);
		return store_abandon(s, "write", e);
	}
	code = store_commit(s, e);
	if (code) {
		s->open_known = false;
		s->host = host;
		crowd_forget(s);
		return code;
	}
	s->host_found = true;
	confirm(s, t);
	return 0;
}
