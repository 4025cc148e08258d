/* Hosts and their cards, merged over the stores of an audit, and the runs of their recorders;
 * decides which of them belong in the report. */
#include "audit/gather.h"

/* A recorder that replaces another begins with samples that are still in the driver's ring,
 * so the two runs may overlap by this much. */
#define OVERLAP_SLACK_MS 60000

/* The length of a host's own name: "lab" of "lab#2". No real host name has a '#': a merge of
 * stores added the number to another machine of the same name. */
static size_t own_name(const char *hostname)
{
	const char *mark = strrchr(hostname, '#');
	if (!mark || mark == hostname || !mark[1] || mark[1 + strspn(mark + 1, "0123456789")])
		return strlen(hostname);
	return (size_t)(mark - hostname);
}

/* Names a host. If several machines have the same name, the later ones get NAME#2 and so on. */
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
		str_copy(host->hostname, sizeof(host->hostname), hostname);
	else
		snprintf(host->hostname, sizeof(host->hostname), "%.100s#%zu", hostname,
			g->n_named[number]);
	return 0;
}

size_t hosts_first(const struct gather *g, size_t record)
{
	while (g->records[record].same != record)
		record = g->records[record].same;
	return record;
}

/* Whether recorders of two records ran at the same time. Until hosts are known, a run has the
 * number of its record. */
static bool ran_together(const struct gather *g, size_t a, size_t b)
{
	const struct gather_file *p = &g->files[g->records[a].file],
				 *q = &g->files[g->records[b].file];
	for (size_t i = p->first_run; i < p->first_run + p->n_runs; i++)
		for (size_t k = q->first_run; k < q->first_run + q->n_runs; k++) {
			const struct gather_run *x = &g->runs[i], *y = &g->runs[k];
			if (x->host == a && y->host == b &&
				x->started_ms + OVERLAP_SLACK_MS < y->last_tick_ms &&
				y->started_ms + OVERLAP_SLACK_MS < x->last_tick_ms)
				return true;
		}
	return false;
}

/* Whether two records that share a card belong to one host. Cloned images have the same machine
 * id, but share no card; a container may have none, and a new name after each start. */
static bool is_one_host(const struct gather *g, size_t a, size_t b)
{
	const char *p = g->records[a].machine_id, *q = g->records[b].machine_id;
	if (*p && *q)
		return strcmp(p, q) == 0;
	/* Two records with one name would be counted twice: hosts_check_overlap() refuses
	 * that. */
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

/* Joins two records into one host; the newest record names it. */
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

/* Further records with one card are not compared: no host has that many names. */
enum { MOST_SIGHTS = 64 };

/* Compares a record with those that have the same card. */
static int see_card(struct gather *g, size_t record, const char *uuid, struct err *e)
{
	size_t known = g->uuids.n, n = 0;
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

static int take_record(
	struct gather *g, struct gather_file *file, sqlite3_stmt *row, struct err *e)
{
	struct file_part *part = file->part;
	struct gather_record record = { .file = (size_t)(file - g->files),
		.id = sqlite3_column_int64(row, 0),
		.newest_ms = sql_int(row, 3, 0),
		.host = IDMAP_NONE };
	sql_text(row, 1, record.hostname, sizeof(record.hostname));
	sql_text(row, 2, record.machine_id, sizeof(record.machine_id));
	sql_text(row, 4, record.environment, sizeof(record.environment));
	sql_text(row, 5, record.driver, sizeof(record.driver));
	record.hostname[own_name(record.hostname)] = '\0';
	if (!array_one_more(&part->records, part->n_records) ||
		!idmap_put(&file->hosts, record.id, (uint32_t)part->n_records))
		return err_memory(e);
	part->records[part->n_records++] = record;
	return 0;
}

static int take_run(
	struct gather *g, struct gather_file *file, sqlite3_stmt *row, struct err *e)
{
	struct file_part *part = file->part;
	uint32_t record = idmap_get(&file->hosts, sqlite3_column_int64(row, 0));
	char privacy[16];
	(void)g;
	if (record == IDMAP_NONE)
		return 0;
	struct gather_run run = {
		.host = record,
		.started_ms = sql_int(row, 2, 0),
		.last_tick_ms = sql_int(row, 3, 0),
		.ended = sqlite3_column_type(row, 4) != SQLITE_NULL,
		.interval_ms = sql_int(row, 5, 0),
		.rules = { .active_util_pct = sqlite3_column_double(row, 6),
			.held_mem_bytes = sql_int(row, 7, 0),
			.count_graphics = sqlite3_column_int(row, 8) != 0,
			.spell_ms = sql_int(row, 10, 0) },
	};
	sql_text(row, 1, run.source, sizeof(run.source));
	sql_text(row, 9, privacy, sizeof(privacy));
	run.strict = strcmp(privacy, privacy_names[PRIVACY_STRICT]) == 0;
	run.leases = sqlite3_column_int(row, 11) != 0;
	if (!array_one_more(&part->runs, part->n_runs))
		return err_memory(e);
	part->runs[part->n_runs++] = run;
	struct gather_record *host = &part->records[record];
	host->newest_ms = clock_later(host->newest_ms, run.last_tick_ms);
	return 0;
}

static int take_card(
	struct gather *g, struct gather_file *file, sqlite3_stmt *row, struct err *e)
{
	uint32_t record = idmap_get(&file->hosts, sqlite3_column_int64(row, 1));
	(void)g;
	if (record == IDMAP_NONE)
		return 0;
	struct audit_card *card = audit_add_card(&file->part->a, e);
	if (!card || !idmap_put(&file->places, sqlite3_column_int64(row, 0),
			     (uint32_t)file->part->a.n_cards - 1))
		return err_memory(e);
	*card = (struct audit_card){ .host = record,
		.first_seen_ms = sql_int(row, 3, 0),
		.last_seen_ms = sql_int(row, 4, 0),
		.id = sql_card(row, 6) };
	sql_text(row, 2, card->status, sizeof(card->status));
	sql_text(row, 5, card->source, sizeof(card->source));
	return 0;
}

int hosts_read(struct gather *g, struct gather_file *file, struct err *e)
{
	static const char records[] = "SELECT id, hostname, machine_id, last_seen_ms, "
				      "environment, driver FROM host ORDER BY id";
	static const char runs[] =
		"SELECT host, source, started_ms, last_tick_ms, ended_ms, interval_ms, "
		"active_util_pct, held_mem_bytes, count_graphics, privacy, spell_ms, leases "
		"FROM run ORDER BY started_ms, id";
	static const char cards[] = "SELECT id, host, status, first_seen_ms, " SQL_CARD_SEEN
				    ", source, " SQL_CARD_COLUMNS " FROM gpu ORDER BY id";
	if (gather_start_part(g, file, e) || gather_rows(g, file, records, take_record, e) ||
		gather_rows(g, file, runs, take_run, e))
		return e->code;
	return gather_rows(g, file, cards, take_card, e);
}

/* Adds the cards of a file. A card with other MIG instances is still the same card. */
static int add_cards(struct gather *g, struct gather_file *file, struct err *e)
{
	const struct audit *part = &file->part->a;
	int rc = 0;
	for (size_t i = 0; i < part->n_cards && rc == 0; i++) {
		struct audit_card *card = audit_add_card(g->a, e);
		if (!card || !array_one_more(&file->cards, file->n_cards))
			return err_memory(e);
		*card = part->cards[i];
		card->host += file->first_record;
		file->cards[file->n_cards++] = (uint32_t)(g->a->n_cards - 1);
		rc = see_card(g, card->host, part->cards[i].id.uuid, e);
		if (rc == 0)
			rc = see_card(g, card->host, part->cards[i].id.parent_uuid, e);
	}
	return rc;
}

int hosts_add(struct gather *g, struct gather_file *file, struct err *e)
{
	const struct file_part *part = file->part;
	file->first_record = g->n_records;
	file->first_run = g->n_runs;
	for (size_t i = 0; i < part->n_records; i++) {
		if (!array_one_more(&g->records, g->n_records))
			return err_memory(e);
		struct gather_record *record = &g->records[g->n_records];
		*record = part->records[i];
		record->same = record->next = record->newest = g->n_records++;
	}
	for (size_t i = 0; i < part->n_runs; i++) {
		if (!array_one_more(&g->runs, g->n_runs))
			return err_memory(e);
		g->runs[g->n_runs] = part->runs[i];
		g->runs[g->n_runs++].host += file->first_record;
		file->n_runs++;
	}
	return add_cards(g, file, e);
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
	do { /* names that the host had before */
		host->left_out &= !restriction_takes_host(&g->q->only, g->records[at].hostname);
		at = g->records[at].next;
	} while (at != first);
	str_copy(host->machine_id, sizeof(host->machine_id), newest->machine_id);
	g->records[first].host = (uint32_t)(g->a->n_hosts - 1);
	return 0;
}

/* Adds the host of a record, unless another record has added it. */
static int settle_record(
	struct gather *g, struct gather_file *file, size_t index, struct err *e)
{
	const struct gather_record *record = &g->records[index];
	size_t first = hosts_first(g, index);
	int rc = g->records[first].host == IDMAP_NONE ? add_host(g, first, e) : 0;
	if (rc)
		return rc;
	struct audit_host *host = &g->a->hosts[g->records[first].host];
	if (index == g->records[first].newest) {
		str_copy(host->environment, sizeof(host->environment), record->environment);
		str_copy(host->driver, sizeof(host->driver), record->driver);
	}
	return idmap_put(&file->hosts, record->id, g->records[first].host) ? 0 : err_memory(e);
}

static size_t host_of(const struct gather *g, size_t record)
{
	return g->records[hosts_first(g, record)].host;
}

/* Returns the file that has a run. */
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
	char key[32 + SOURCE_LIST_CAP];
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
		return err_set(e, ERR_USAGE,
			"%s and %s both have what was recorded on %s from %s on: give one",
			file_of_run(g, i)->path, file->path, g->a->hosts[run->host].hostname,
			moment_text(run->started_ms, g->q->utc).text);
	}
	return 0;
}

/* Finds a run of the same host in an earlier file that overlaps with this one in the window. */
static const struct gather_run *overlapping(
	const struct gather *g, const struct gather_file *file, const struct gather_run *run)
{
	int64_t from_ms = clock_later(run->started_ms, g->a->since_ms);
	int64_t to_ms = clock_earlier(run->last_tick_ms, g->a->until_ms);
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
	if (!r)
		return 0;
	struct brief from = moment_text(clock_later(r->started_ms, run->started_ms), g->q->utc);
	struct brief to =
		moment_text(clock_earlier(r->last_tick_ms, run->last_tick_ms), g->q->utc);
	return err_set(e, ERR_USAGE,
		"%s and %s both recorded the cards of %s from %s to %s, which would be counted "
		"twice: give one%s",
		file_of_run(g, (size_t)(r - g->runs))->path, file->path,
		g->a->hosts[run->host].hostname, from.text, to.text,
		g->strict ? "" : ", or choose other times with --since and --until");
}

int hosts_check_overlap(struct gather *g, struct err *e)
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

/* Adds what a run says about its host. */
static int settle_run(
	struct gather *g, struct gather_file *file, struct gather_run *run, struct err *e)
{
	run->host = host_of(g, run->host);
	if (check_not_copied(g, file, run, e))
		return e->code;
	struct audit_host *h = &g->a->hosts[run->host];
	int64_t age_ms = g->q->now_ms - run->last_tick_ms;
	if (run->last_tick_ms > h->last_tick_ms) {
		h->last_tick_ms = run->last_tick_ms;
		h->interval_ms = run->interval_ms;
	}
	if (!run->ended && age_ms - 10000 <= 2 * run->interval_ms)
		h->recording = true;
	return 0;
}

/* Moves a card to its place, the first that is free, or merges it with that of an earlier file.
 * Returns its index; IDMAP_NONE: out of memory. */
static uint32_t settle_card(
	struct gather *g, struct gather_file *file, size_t from, size_t *n_cards, struct err *e)
{
	struct audit_card card = g->a->cards[from];
	const char *parent = card.id.parent_uuid;
	card.host = host_of(g, card.host);
	card.left_out =
		g->a->hosts[card.host].left_out || !restriction_takes_card(&g->q->only, &card);
	uint32_t host = (uint32_t)card.host;
	uint32_t index = names_find(&g->card_keys, host, card.id.uuid, e);
	if (index == IDMAP_NONE ||
		(*parent && names_find(&g->parents, host, parent, e) == IDMAP_NONE))
		return IDMAP_NONE;
	struct audit_card *known = &g->a->cards[index];
	if (index == *n_cards) {
		++*n_cards;
		*known = card;
		return index;
	}
	/* The newer row has the names. */
	int64_t first_ms = clock_earlier(known->first_seen_ms, card.first_seen_ms);
	if (card.last_seen_ms > known->last_seen_ms)
		*known = card;
	known->first_seen_ms = first_ms;
	return idmap_put(&file->shared, host, 0) ? index : IDMAP_NONE;
}

static int settle_file(
	struct gather *g, struct gather_file *file, size_t *n_cards, struct err *e)
{
	int rc = 0;
	for (size_t i = file->first_record; i < g->n_records && rc == 0; i++)
		if (g->records[i].file == (size_t)(file - g->files))
			rc = settle_record(g, file, i, e);
		else
			break;
	for (size_t i = 0; i < file->n_runs && rc == 0; i++)
		rc = settle_run(g, file, &g->runs[file->first_run + i], e);
	for (size_t i = 0; i < file->n_cards && rc == 0; i++) {
		file->cards[i] = settle_card(g, file, file->cards[i], n_cards, e);
		rc = file->cards[i] == IDMAP_NONE ? err_memory(e) : 0;
	}
	return rc;
}

int hosts_join(struct gather *g, struct err *e)
{
	size_t n_cards = 0;
	int rc = 0;
	for (size_t i = 0; i < g->n_files && rc == 0 && !g->again; i++) {
		struct gather_file *file = &g->files[i];
		rc = file->code ? 0 : settle_file(g, file, &n_cards, e);
		if (rc == ERR_USAGE && g->q->fetched_to) { /* it is a copy of another */
			e->code = ERR_WORLD;
			rc = gather_failed(g, file, e);
		}
	}
	g->a->n_cards = n_cards;
	return rc;
}

static bool is_parent(const struct gather *g, const struct audit_card *card)
{
	return names_has(&g->parents, (uint32_t)card->host, card->id.uuid);
}

/* Whether the recorder of a card's host stopped before the window, but not long before, and the
 * card was present until then. */
static bool is_silent(const struct gather *g, const struct audit_card *card)
{
	const struct audit_host *host = &g->a->hosts[card->host];
	return host->measured && !host->ran && !is_parent(g, card) &&
	       host->last_tick_ms < g->a->since_ms &&
	       host->last_tick_ms > g->a->since_ms - AUDIT_SILENT_MS &&
	       host->last_tick_ms - card->last_seen_ms <= 2 * host->interval_ms + 10000;
}

/* Whether a card without a slot in the window belongs in the report: its host was recorded, and
 * the card was known to be unreachable. A card with status ok that was not seen was removed, or
 * was a MIG instance. */
static bool belongs(const struct gather *g, const struct audit_card *card)
{
	const struct audit *a = g->a;
	if (card->has_rows || card->left_out)
		return !card->left_out;
	if (is_silent(g, card))
		return g->has_rows;
	return a->hosts[card->host].ran && strcmp(card->status, "ok") != 0 &&
	       card->first_seen_ms < a->until_ms && !is_parent(g, card);
}

/* Sets the card's window, which begins when the card was first seen, and the unobserved time,
 * which is the rest of it. */
static void set_window(const struct gather *g, struct audit_card *card)
{
	const struct audit_host *host = &g->a->hosts[card->host];
	card->from_ms = clock_later(card->first_seen_ms, g->a->since_ms);
	card->to_ms = host->until_ms;
	/* Unobserved time at the end may only be waiting for the next tick, which accounts for
	 * the driver's newest samples: a running recorder may be a moment late. */
	bool pending = host->recording && strcmp(card->status, "ok") == 0 &&
		       host->until_ms - card->last_seen_ms <= 2 * host->interval_ms + 10000;
	if (pending || is_parent(g, card))
		card->to_ms = clock_earlier(card->to_ms, card->last_seen_ms);
	int64_t rest_ms = card->to_ms - card->from_ms - state_observed_ms(card->ms);
	card->ms[CARD_UNOBSERVED] = clock_later(rest_ms, 0);
}

/* Limits sums to 0 and to the card's time: energy can lag a tick behind, and rows of a damaged
 * store can hold anything. */
static void set_bounds(struct audit_card *card)
{
	int64_t observed_ms = 0;
	for (int state = 0; state < CARD_STATES; state++) {
		int64_t *known_ms = &card->energy_known_ms[state];
		if (*known_ms < 0 || card->energy_mj[state] < 0)
			*known_ms = card->energy_mj[state] = 0;
		*known_ms = clock_earlier(*known_ms, card->ms[state]);
		observed_ms += state == CARD_UNOBSERVED ? 0 : card->ms[state];
	}
	card->unsure_ms2 = clock_later(card->unsure_ms2, 0);
	card->unsure_ms += llround(sqrt((double)card->unsure_ms2));
	card->unsure_ms = clock_later(clock_earlier(card->unsure_ms, observed_ms), 0);
}

/* Sets what is known of the cards after all files were read. */
static void settle_cards(struct gather *g)
{
	struct audit *a = g->a;
	g->has_rows = false;
	for (size_t i = 0; i < a->n_cards; i++)
		g->has_rows |= a->cards[i].has_rows && !a->cards[i].left_out;
	for (size_t i = 0; i < a->n_cards; i++) {
		struct audit_card *card = &a->cards[i];
		set_bounds(card);
		set_window(g, card);
		card->left_out = !belongs(g, card);
		a->hosts[card->host].n_cards += !card->left_out;
		if (!card->left_out)
			hours_add_window(&a->days, card->from_ms, card->to_ms);
	}
	hours_settle(&a->days);
}

static int compare_hosts(const void *x, const void *y, void *idle)
{
	uint32_t p = *(const uint32_t *)x, q = *(const uint32_t *)y;
	const int64_t *idle_ms = idle;
	int by_idle = array_compare(idle_ms[q], idle_ms[p]);
	return by_idle ? by_idle : array_compare(p, q);
}

/* Removes hosts without a card, and sorts the others: as in the stores or, if there are many,
 * by idle-held time, the most first. */
static int sort_hosts(struct gather *g, struct err *e)
{
	struct audit *a = g->a;
	size_t n = a->n_hosts, with_cards = 0, kept = 0;
	struct audit_host *hosts = calloc(n + 1, sizeof(*hosts));
	int64_t *idle_ms = calloc(n + 1, sizeof(*idle_ms));
	uint32_t *order = calloc(2 * n + 1, sizeof(*order)), *to = order ? order + n : NULL;
	bool good = hosts && idle_ms && order;
	for (uint32_t i = 0; i < n && good; i++) {
		with_cards += a->hosts[i].n_cards > 0;
		order[i] = i;
	}
	for (size_t i = 0; i < a->n_cards && good; i++)
		if (!a->cards[i].left_out)
			idle_ms[a->cards[i].host] += a->cards[i].ms[CARD_IDLE_HELD];
	if (with_cards > AUDIT_HOSTS_LISTED)
		qsort_r(order, n, sizeof(*order), compare_hosts, idle_ms);
	for (size_t i = 0; i < n && good; i++) {
		const struct audit_host *host = &a->hosts[order[i]];
		to[order[i]] = host->n_cards ? (uint32_t)kept : IDMAP_NONE;
		if (host->n_cards)
			hosts[kept++] = *host;
	}
	for (size_t i = 0; i < a->n_cards && good; i++)
		a->cards[i].host = to[a->cards[i].host];
	for (size_t i = 0; i < g->n_files && good; i++)
		idmap_renumber(&g->files[i].hosts, to);
	free(order);
	free(idle_ms);
	free(good ? a->hosts : hosts);
	if (!good)
		return err_memory(e);
	a->hosts = hosts;
	a->n_hosts = kept;
	return 0;
}

/* Order: host, index, instance, UUID. */
static int compare_cards(const void *x, const void *y, void *cards)
{
	const struct audit_card *p = (struct audit_card *)cards + *(const uint32_t *)x;
	const struct audit_card *q = (struct audit_card *)cards + *(const uint32_t *)y;
	int order = array_compare((int64_t)p->host, (int64_t)q->host);
	if (order == 0)
		order = array_compare(p->id.index, q->id.index);
	if (order == 0)
		order = array_compare(p->id.mig_index, q->id.mig_index);
	return order ? order : strcmp(p->id.uuid, q->id.uuid);
}

/* Removes cards that do not belong in the report, and sorts the others. */
static int sort_cards(struct gather *g, struct err *e)
{
	struct audit *a = g->a;
	size_t n = a->n_cards, kept = 0;
	struct audit_card *cards = calloc(n + 1, sizeof(*cards));
	uint32_t *order = calloc(2 * n + 1, sizeof(*order)), *to = order ? order + n : NULL;
	if (!cards || !order) {
		free(cards);
		free(order);
		return err_memory(e);
	}
	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	qsort_r(order, n, sizeof(*order), compare_cards, a->cards);
	for (size_t i = 0; i < n; i++) {
		const struct audit_card *card = &a->cards[order[i]];
		to[order[i]] = card->left_out ? IDMAP_NONE : (uint32_t)kept;
		if (!card->left_out)
			cards[kept++] = *card;
	}
	for (size_t i = 0; i < g->n_files; i++)
		for (size_t k = 0; k < g->files[i].n_cards; k++)
			g->files[i].cards[k] = to[g->files[i].cards[k]];
	free(order);
	free(a->cards);
	a->cards = cards;
	a->n_cards = kept;
	return 0;
}

int hosts_settle(struct gather *g, struct err *e)
{
	settle_cards(g);
	int rc = sort_hosts(g, e);
	return rc ? rc : sort_cards(g, e);
}
