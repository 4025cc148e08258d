/* Hosts, merged over the files of an audit, and the runs of their recorders. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "base/timetext.h"
#include "query/gather.h"
#include "query/sql.h"

/* A recorder that replaces another begins with samples that the driver still has from before.
 * The two may overlap by this much. */
#define OVERLAP_SLACK_MS 60000

/* Names a host. If two machines have the same name, the later one is NAME#2. */
static void name_host(const struct audit *a, struct audit_host *host, const char *hostname)
{
	int same = 1;
	for (const struct audit_host *h = a->hosts; h < host; h++) {
		size_t len = strlen(hostname);
		bool starts = strncmp(h->hostname, hostname, len) == 0;
		same += starts && (h->hostname[len] == '\0' || h->hostname[len] == '#');
	}
	if (same == 1)
		text_copy(host->hostname, sizeof(host->hostname), hostname);
	else
		snprintf(host->hostname, sizeof(host->hostname), "%.100s#%d", hostname, same);
}

/* Whether it is the host with that name and machine id; an earlier file may have added it. */
static bool is_host(const struct audit_host *host, const char *hostname, const char *machine_id)
{
	size_t len = strlen(hostname);
	return strcmp(host->machine_id, machine_id) == 0 &&
	       strncmp(host->hostname, hostname, len) == 0 &&
	       (host->hostname[len] == '\0' || host->hostname[len] == '#');
}

static int take_host(
	struct gather *g, struct gather_file *file, sqlite3_stmt *row, struct err *e)
{
	struct audit *a = g->a;
	char hostname[sizeof(a->hosts->hostname)], machine_id[sizeof(a->hosts->machine_id)];
	size_t i = 0;
	sql_text(row, 1, hostname, sizeof(hostname));
	sql_text(row, 2, machine_id, sizeof(machine_id));
	while (i < a->n_hosts && !is_host(&a->hosts[i], hostname, machine_id))
		i++;
	if (i == a->n_hosts) {
		struct audit_host *host = audit_add_host(a, e);
		if (!host)
			return ERR_WORLD;
		name_host(a, host, hostname);
		host->left_out = !restriction_takes_host(&g->q->only, host->hostname);
		text_copy(host->machine_id, sizeof(host->machine_id), machine_id);
	}
	sql_text(row, 3, a->hosts[i].environment, sizeof(a->hosts[i].environment));
	sql_text(row, 4, a->hosts[i].driver, sizeof(a->hosts[i].driver));
	if (!idmap_put(&file->hosts, sqlite3_column_int64(row, 0), (uint32_t)i))
		return err_memory(e);
	return 0;
}

/* Refuses a run that is also in an earlier file: one file is a copy of the other, and
 * everything would be counted twice. */
static int check_not_copied(const struct gather *g, const struct gather_file *file,
	const struct gather_run *run, struct err *e)
{
	const struct gather_file *other = g->files;
	char when[48];
	for (size_t i = 0; i < file->first_run; i++) {
		const struct gather_run *r = &g->runs[i];
		if (r->host != run->host || r->started_ms != run->started_ms ||
			strcmp(r->source, run->source) != 0)
			continue;
		while (other + 1 < file && other[1].first_run <= i)
			other++;
		moment_text(when, sizeof(when), run->started_ms, g->q->utc);
		return err_set(e, ERR_USAGE,
			"%s and %s both have what was recorded on %s from %s on: give one",
			other->path, file->path, g->a->hosts[run->host].hostname, when);
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

int gather_check_overlap(
	const struct gather *g, const struct gather_file *file, size_t host, struct err *e)
{
	const struct gather_file *next = file + 1, *other = g->files;
	size_t end = next < g->files + g->n_files ? next->first_run : g->n_runs;
	char from[48], to[48];
	for (size_t i = file->first_run; i < end; i++) {
		const struct gather_run *run = &g->runs[i];
		const struct gather_run *r =
			run->host == host ? overlapping(g, file, run) : NULL;
		if (!r)
			continue;
		while (other + 1 < file && other[1].first_run <= (size_t)(r - g->runs))
			other++;
		int64_t from_ms = r->started_ms, to_ms = r->last_tick_ms;
		from_ms = from_ms > run->started_ms ? from_ms : run->started_ms;
		to_ms = to_ms < run->last_tick_ms ? to_ms : run->last_tick_ms;
		moment_text(from, sizeof(from), from_ms, g->q->utc);
		moment_text(to, sizeof(to), to_ms, g->q->utc);
		return err_set(e, ERR_USAGE,
			"%s and %s both recorded the cards of %s from %s to %s, which would be "
			"counted twice: give one, or choose other times with --since and "
			"--until",
			other->path, file->path, g->a->hosts[host].hostname, from, to);
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

int gather_hosts(struct gather *g, struct err *e)
{
	int rc = 0;
	for (size_t i = 0; i < g->n_files && rc == 0; i++) {
		g->files[i].first_run = g->n_runs;
		rc = each_row(g, &g->files[i],
			"SELECT id, hostname, machine_id, environment, driver FROM host "
			"ORDER BY id",
			take_host, e);
		if (rc == 0)
			rc = each_row(g, &g->files[i],
				"SELECT host, source, started_ms, last_tick_ms, ended_ms, "
				"interval_ms, active_util_pct, held_mem_bytes, count_graphics, "
				"privacy, spell_ms FROM run ORDER BY started_ms, id",
				take_run, e);
	}
	return rc;
}
