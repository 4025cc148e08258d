/* Hosts, merged over the files of an audit, and the runs of their recorders. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "base/timetext.h"
#include "query/gather_parts.h"
#include "query/sql.h"
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

/* The index of a host; an earlier file may have added it. IDMAP_NONE: out of memory. */
static uint32_t find_host(
	struct gather *g, const char *hostname, const char *machine_id, struct err *e)
{
	struct audit *a = g->a;
	char key[sizeof(a->hosts->hostname) + sizeof(a->hosts->machine_id)];
	snprintf(key, sizeof(key), "%s\n%s", hostname, machine_id);
	uint32_t index = names_find(&g->host_keys, 0, key, e);
	if (index == IDMAP_NONE || index < a->n_hosts)
		return index;
	struct audit_host *host = audit_add_host(a, e);
	if (!host || name_host(g, host, hostname, e))
		return IDMAP_NONE;
	host->left_out = !restriction_takes_host(&g->q->only, host->hostname);
	text_copy(host->machine_id, sizeof(host->machine_id), machine_id);
	return index;
}

static int take_host(
	struct gather *g, struct gather_file *file, sqlite3_stmt *row, struct err *e)
{
	struct audit *a = g->a;
	char hostname[sizeof(a->hosts->hostname)], machine_id[sizeof(a->hosts->machine_id)];
	sql_text(row, 1, hostname, sizeof(hostname));
	sql_text(row, 2, machine_id, sizeof(machine_id));
	hostname[merge_own_name(hostname)] = '\0';
	uint32_t i = find_host(g, hostname, machine_id, e);
	if (i == IDMAP_NONE)
		return ERR_WORLD;
	sql_text(row, 3, a->hosts[i].environment, sizeof(a->hosts[i].environment));
	sql_text(row, 4, a->hosts[i].driver, sizeof(a->hosts[i].driver));
	if (!idmap_put(&file->hosts, sqlite3_column_int64(row, 0), i))
		return err_memory(e);
	return 0;
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

int hosts_add(struct gather *g, struct gather_file *file, struct err *e)
{
	file->first_run = g->n_runs;
	int rc = each_row(g, file,
		"SELECT id, hostname, machine_id, environment, driver FROM host ORDER BY id",
		take_host, e);
	if (rc)
		return rc;
	return each_row(g, file,
		"SELECT host, source, started_ms, last_tick_ms, ended_ms, interval_ms, "
		"active_util_pct, held_mem_bytes, count_graphics, privacy, spell_ms "
		"FROM run ORDER BY started_ms, id",
		take_run, e);
}
