/* Hosts, merged over the files of an audit, and the runs of their recorders. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "base/timetext.h"
#include "audit/gather_parts.h"
#include "store/sql.h"
#include "store/merge.h"

/* A recorder that replaces another begins with samples that the driver still has from before.
 * The two may overlap by this much. */
#define OVERLAP_SLACK_MS 60000

/* Names a host. If several machines have the same name, the later ones are NAME#2 ... */
static int name_host(
	struct gather *g, struct audit_host *host, const char *hostname, struct err *e)
{
	size_t known = g->hostnames.n;
	uint32_t number = names_find(&g->hostnames, 0, hostname, e);
	if (number == IDMAP_NONE || (number == known && !array_one_more(&g->n_named, known)))
		return err_memory(e);
	if (number == known)
		g->n_named[number] = 0;
	if (++g->n_named[number] == 1)
		text_copy(host->hostname, sizeof(host->hostname), hostname);
	else
		snprintf(host->hostname, sizeof(host->hostname), "%.100s#%zu", hostname,
			g->n_named[number]);
	return 0;
}

static int each_row(struct gather *g, struct gather_file *file, const char *sql,
	int (*take)(struct gather *, struct gather_file *, sqlite3_stmt *, struct err *),
	struct err *e)
{
	sqlite3_stmt *stmt;
	int rc = sql_prepare(file->db, &stmt, e, "%s", sql);
	while (rc == 0) {
		rc = sql_step(stmt, e);
		if (rc <= 0)
			break;
		rc = take(g, file, stmt, e);
	}
	sqlite3_finalize(stmt);
	return rc;
}

size_t hosts_first(const struct gather *g, size_t record)
{
	while (g->records[record].same != record)
		record = g->records[record].same;
	return record;
}

/* Whether recorders of two records ran at the same time. */
static bool ran_together(const struct gather *g, size_t a, size_t b)
{
	const struct gather_record *p = &g->records[a], *q = &g->records[b];
	for (size_t i = p->first_span; i < p->first_span + p->n_spans; i++)
		for (size_t k = q->first_span; k < q->first_span + q->n_spans; k++) {
			const struct gather_span *x = &g->spans[i], *y = &g->spans[k];
			if (x->from_ms + OVERLAP_SLACK_MS < y->to_ms &&
				y->from_ms + OVERLAP_SLACK_MS < x->to_ms)
				return true;
		}
	return false;
}

/* Whether two records that have a card in common are of one host. Cloned images share their
 * machine id, but no card; a container may have no machine id, and another name after each
 * start. */
static bool is_one_host(const struct gather *g, size_t a, size_t b)
{
	const char *p = g->records[a].machine_id, *q = g->records[b].machine_id;
	if (*p && *q)
		return strcmp(p, q) == 0;
	/* Of one name, they would be counted twice: gather_check_overlap() refuses that. */
	if (!*p && !*q && strcmp(g->records[a].hostname, g->records[b].hostname) == 0)
		return true;
	size_t at = b;
	do {
		if (ran_together(g, a, at))
			return false;
		at = g->records[at].next;
	} while (at != b);
	return true;
}

/* Makes one host of two records; the newest gives it its name. */
static void unite(struct gather *g, size_t a, size_t b)
{
	size_t p = hosts_first(g, a), q = hosts_first(g, b);
	struct gather_record *to = &g->records[p < q ? p : q],
			     *from = &g->records[p < q ? q : p];
	if (to == from)
		return;
	if (g->records[from->newest].newest_ms >= g->records[to->newest].newest_ms)
		to->newest = from->newest;
	from->same = (size_t)(to - g->records);
	size_t next = to->next;
	to->next = from->next;
	from->next = next;
}

/* More records with one card are not compared: no host has as many names. */
enum { MOST_SIGHTS = 64 };

/* Compares the last record with those that have the same card. */
static int see_card(struct gather *g, const char *uuid, struct err *e)
{
	size_t known = g->uuids.n, record = g->n_records - 1, n = 0;
	uint32_t number = *uuid ? names_find(&g->uuids, 0, uuid, e) : IDMAP_NONE;
	if (!*uuid)
		return 0;
	if (number == IDMAP_NONE || !array_one_more(&g->sights, g->n_sights) ||
		(number == known && !array_one_more(&g->last_sight, known)))
		return err_memory(e);
	uint32_t last = number == known ? IDMAP_NONE : g->last_sight[number];
	for (uint32_t at = last; at != IDMAP_NONE && n++ < MOST_SIGHTS; at = g->sights[at].next)
		if (hosts_first(g, g->sights[at].record) != hosts_first(g, record) &&
			is_one_host(g, record, g->sights[at].record))
			unite(g, record, g->sights[at].record);
	g->sights[g->n_sights] = (struct gather_sight){ (uint32_t)record, last };
	g->last_sight[number] = (uint32_t)g->n_sights++;
	return 0;
}

static int take_span(
	struct gather *g, struct gather_file *file, sqlite3_stmt *row, struct err *e)
{
	struct gather_record *record = &g->records[g->n_records - 1];
	(void)file;
	if (!array_one_more(&g->spans, g->n_spans))
		return err_memory(e);
	struct gather_span *span = &g->spans[g->n_spans++];
	*span = (struct gather_span){ sql_int(row, 0, 0), sql_int(row, 1, 0) };
	record->n_spans++;
	if (span->to_ms > record->newest_ms)
		record->newest_ms = span->to_ms;
	return 0;
}

static int take_uuids(
	struct gather *g, struct gather_file *file, sqlite3_stmt *row, struct err *e)
{
	char uuid[UUID_CAP];
	(void)file;
	sql_text(row, 0, uuid, sizeof(uuid));
	int rc = see_card(g, uuid, e);
	sql_text(row, 1, uuid, sizeof(uuid)); /* a card is the same with other MIG instances */
	return rc ? rc : see_card(g, uuid, e);
}

static int take_record(
	struct gather *g, struct gather_file *file, sqlite3_stmt *row, struct err *e)
{
	char sql[128];
	if (!array_one_more(&g->records, g->n_records))
		return err_memory(e);
	struct gather_record *record = &g->records[g->n_records];
	*record = (struct gather_record){ .file = (size_t)(file - g->files),
		.id = sqlite3_column_int64(row, 0),
		.newest_ms = sql_int(row, 3, 0),
		.first_span = g->n_spans,
		.same = g->n_records,
		.next = g->n_records,
		.newest = g->n_records,
		.host = IDMAP_NONE };
	sql_text(row, 1, record->hostname, sizeof(record->hostname));
	sql_text(row, 2, record->machine_id, sizeof(record->machine_id));
	record->hostname[merge_own_name(record->hostname)] = '\0';
	g->n_records++;
	snprintf(sql, sizeof(sql), "SELECT started_ms, last_tick_ms FROM run WHERE host = %lld",
		(long long)record->id);
	int rc = each_row(g, file, sql, take_span, e);
	snprintf(sql, sizeof(sql), "SELECT uuid, parent_uuid FROM gpu WHERE host = %lld",
		(long long)g->records[g->n_records - 1].id);
	return rc ? rc : each_row(g, file, sql, take_uuids, e);
}

int records_add(struct gather *g, struct gather_file *file, struct err *e)
{
	file->first_record = g->n_records;
	return each_row(g, file,
		"SELECT id, hostname, machine_id, last_seen_ms FROM host ORDER BY id",
		take_record, e);
}

/* Adds the host of a record, by the first of its records. */
static int add_host(struct gather *g, size_t first, struct err *e)
{
	const struct gather_record *newest = &g->records[g->records[first].newest];
	struct audit_host *host = audit_add_host(g->a, e);
	if (!host || name_host(g, host, newest->hostname, e))
		return ERR_WORLD;
	host->left_out = !restriction_takes_host(&g->q->only, host->hostname);
	size_t at = first;
	do { /* names that it had before */
		host->left_out &= !restriction_takes_host(&g->q->only, g->records[at].hostname);
		at = g->records[at].next;
	} while (at != first);
	text_copy(host->machine_id, sizeof(host->machine_id), newest->machine_id);
	g->records[first].host = (uint32_t)(g->a->n_hosts - 1);
	return 0;
}

static int take_host(
	struct gather *g, struct gather_file *file, sqlite3_stmt *row, struct err *e)
{
	size_t record = file->first_record;
	int64_t id = sqlite3_column_int64(row, 0);
	/* Both are sorted by id; one that came meanwhile has no record. */
	while (record < g->n_records && g->records[record].file == (size_t)(file - g->files) &&
		g->records[record].id < id)
		record++;
	if (record == g->n_records || g->records[record].file != (size_t)(file - g->files) ||
		g->records[record].id != id)
		return 0;
	file->first_record = record;
	size_t first = hosts_first(g, record);
	int rc = g->records[first].host == IDMAP_NONE ? add_host(g, first, e) : 0;
	if (rc)
		return rc;
	struct audit_host *host = &g->a->hosts[g->records[first].host];
	if (record == g->records[first].newest) {
		sql_text(row, 1, host->environment, sizeof(host->environment));
		sql_text(row, 2, host->driver, sizeof(host->driver));
	}
	return idmap_put(&file->hosts, id, g->records[first].host) ? 0 : err_memory(e);
}

/* The file that has a run. */
static const struct gather_file *file_of_run(const struct gather *g, size_t run)
{
	const struct gather_file *file = g->files;
	while (run >= file->first_run + file->n_runs)
		file++;
	return file;
}

/* Refuses a run that is also in an earlier file: one file is a copy of the other, and
 * everything would be counted twice. */
static int check_not_copied(struct gather *g, const struct gather_file *file,
	const struct gather_run *run, struct err *e)
{
	char when[48], key[32 + SOURCE_LIST_CAP];
	size_t known = g->run_keys.n;
	snprintf(key, sizeof(key), "%lld %s", (long long)run->started_ms, run->source);
	uint32_t number = names_find(&g->run_keys, (uint32_t)run->host, key, e);
	if (number == IDMAP_NONE)
		return ERR_WORLD;
	for (size_t i = 0; i < file->first_run && number < known; i++) {
		const struct gather_run *r = &g->runs[i];
		if (r->host != run->host || r->started_ms != run->started_ms ||
			strcmp(r->source, run->source) != 0)
			continue;
		moment_text(when, sizeof(when), run->started_ms, g->q->utc);
		return err_set(e, ERR_USAGE,
			"%s and %s both have what was recorded on %s from %s on: give one",
			file_of_run(g, i)->path, file->path, g->a->hosts[run->host].hostname,
			when);
	}
	return 0;
}

/* Finds a run of the same host in an earlier file that overlaps with this one in the window. */
static const struct gather_run *overlapping(
	const struct gather *g, const struct gather_file *file, const struct gather_run *run)
{
	int64_t from_ms = run->started_ms, to_ms = run->last_tick_ms;
	from_ms = from_ms > g->a->since_ms ? from_ms : g->a->since_ms;
	to_ms = to_ms < g->a->until_ms ? to_ms : g->a->until_ms;
	for (size_t i = 0; i < file->first_run && from_ms < to_ms; i++) {
		const struct gather_run *r = &g->runs[i];
		if (r->host == run->host && r->started_ms + OVERLAP_SLACK_MS < to_ms &&
			r->last_tick_ms > from_ms + OVERLAP_SLACK_MS)
			return r;
	}
	return NULL;
}

static int check_run(const struct gather *g, const struct gather_file *file,
	const struct gather_run *run, struct err *e)
{
	bool shared = idmap_get(&file->shared, (int64_t)run->host) != IDMAP_NONE;
	const struct gather_run *r = shared ? overlapping(g, file, run) : NULL;
	char from[48], to[48];
	if (!r)
		return 0;
	int64_t from_ms = r->started_ms, to_ms = r->last_tick_ms;
	from_ms = from_ms > run->started_ms ? from_ms : run->started_ms;
	to_ms = to_ms < run->last_tick_ms ? to_ms : run->last_tick_ms;
	moment_text(from, sizeof(from), from_ms, g->q->utc);
	moment_text(to, sizeof(to), to_ms, g->q->utc);
	return err_set(e, ERR_USAGE,
		"%s and %s both recorded the cards of %s from %s to %s, which would be counted "
		"twice: give one%s",
		file_of_run(g, (size_t)(r - g->runs))->path, file->path,
		g->a->hosts[run->host].hostname, from, to,
		g->strict ? "" : ", or choose other times with --since and --until");
}

int gather_check_overlap(struct gather *g, struct err *e)
{
	for (struct gather_file *file = g->files; file < g->files + g->n_files; file++) {
		int rc = 0;
		for (size_t i = 0; i < file->n_runs && rc == 0 && file->shared.n; i++)
			rc = check_run(g, file, &g->runs[file->first_run + i], e);
		if (rc && g->q->fetched_to) {
			e->code = ERR_WORLD;
			rc = gather_failed(g, file, e);
		}
		if (rc || g->again)
			return rc;
	}
	return 0;
}

static int take_run(
	struct gather *g, struct gather_file *file, sqlite3_stmt *row, struct err *e)
{
	uint32_t host = idmap_get(&file->hosts, sqlite3_column_int64(row, 0));
	char privacy[16];
	if (host == IDMAP_NONE)
		return 0;
	if (!array_one_more(&g->runs, g->n_runs))
		return err_memory(e);
	struct gather_run *run = &g->runs[g->n_runs++];
	file->n_runs++;
	*run = (struct gather_run){
		.host = host,
		.started_ms = sql_int(row, 2, 0),
		.last_tick_ms = sql_int(row, 3, 0),
		.ended = sqlite3_column_type(row, 4) != SQLITE_NULL,
		.interval_ms = sql_int(row, 5, 0),
		.rules = { .active_util_pct = sqlite3_column_double(row, 6),
			.held_mem_bytes = sql_int(row, 7, 0),
			.count_graphics = sqlite3_column_int(row, 8) != 0,
			.spell_ms = sql_int(row, 10, 0) },
	};
	sql_text(row, 1, run->source, sizeof(run->source));
	sql_text(row, 9, privacy, sizeof(privacy));
	run->strict = strcmp(privacy, privacy_names[PRIVACY_STRICT]) == 0;
	int rc = check_not_copied(g, file, run, e);
	if (rc)
		return rc;
	struct audit_host *h = &g->a->hosts[host];
	int64_t age_ms = g->q->now_ms - run->last_tick_ms;
	if (run->last_tick_ms > h->last_tick_ms) {
		h->last_tick_ms = run->last_tick_ms;
		h->interval_ms = run->interval_ms;
	}
	if (!run->ended && age_ms - 10000 <= 2 * run->interval_ms)
		h->recording = true;
	return 0;
}

int hosts_add(struct gather *g, struct gather_file *file, struct err *e)
{
	file->first_run = g->n_runs;
	int rc = each_row(
		g, file, "SELECT id, environment, driver FROM host ORDER BY id", take_host, e);
	if (rc)
		return rc;
	return each_row(g, file,
		"SELECT host, source, started_ms, last_tick_ms, ended_ms, interval_ms, "
		"active_util_pct, held_mem_bytes, count_graphics, privacy, spell_ms "
		"FROM run ORDER BY started_ms, id",
		take_run, e);
}
