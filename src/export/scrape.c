/* Reads from a store what an exporter shows: the cards, and the running totals of users
 * under their exported names. */
#include "export/scrape.h"

#include "base/sha256.h"
#include "audit/audit.h"
#include "present/present_store.h"
#include "store/policy/policy_file.h"
#include "store/sql.h"
#include "store/statusfile.h"
#include "store/store.h"

enum {
	HASH_DIGITS = 16, /* 64 bits: collisions are unlikely even among a million users */
	KEY_LEAST = 16,	  /* bytes: a shorter key could be found by brute force */
};

static const char *const words[] = { "user", "group", "namespace", "hashed", "off" };

/* Reads the key from the first line of the file. */
static int take_key(struct identity_names *n, const char *path, const struct file_content *file,
	struct err *e)
{
	size_t len = strcspn(file->data, "\r\n");
	if (file->st.st_mode & 077)
		return err_set(e, ERR_WORLD,
			"%s can be read by others than its owner: make it chmod 600, and take "
			"another key",
			path);
	if (len < KEY_LEAST || len >= sizeof(n->key))
		return err_set(e, ERR_WORLD,
			"the first line of %s must be a key of %d to %zu characters; make one "
			"with: head -c 32 /dev/urandom | base64",
			path, KEY_LEAST, sizeof(n->key) - 1);
	memcpy(n->key, file->data, len);
	n->key_len = len;
	return 0;
}

int scrape_names_init(struct identity_names *n, const struct config *config, struct err *e)
{
	*n = (struct identity_names){ .max = config->metrics.identity_max,
		.groups = &config->groups,
		.dcgm = strcmp(config->metrics.compat, "dcgm") == 0 };
	for (int i = 0; i <= IDENTITIES_OFF; i++)
		if (strcmp(config->metrics.identities, words[i]) == 0)
			n->how = (enum identity_how)i;
	if (n->how == IDENTITIES_HASHED) {
		const char *path = config->metrics.key_file;
		struct file_content file = { 0 };
		if (!path || !*path)
			return err_set(e, ERR_USAGE,
				"hashed identities need a key: set key_file in [metrics] of "
				"gua.conf");
		int rc = file_read_regular(path, sizeof(n->key), &file, e);
		if (rc == 0)
			rc = take_key(n, path, &file, e);
		if (file.data)
			explicit_bzero(file.data, file.len);
		free(file.data);
		return rc;
	}
	if (n->how == IDENTITIES_NAMESPACE && strcmp(config->pod_user, "namespace") != 0)
		return err_set(e, ERR_USAGE,
			"identities by namespace need the time of pods by namespace; set user "
			"= namespace in [kubernetes] of gua.conf");
	if (n->how == IDENTITIES_GROUP && n->groups->n == 0)
		return err_set(e, ERR_USAGE,
			"identities by group need groups; add to gua.conf a section [groups] "
			"with a line for each, such as: vision = alice bob");
	return 0;
}

const char *scrape_namespace_sql(const struct identity_names *n)
{
	/* '0' is the character after '/': an index over pods answers it. */
	return n->how != IDENTITIES_NAMESPACE
		       ? "0"
		       : "EXISTS (SELECT 1 FROM process WHERE pod > i.user || '/' AND "
			 "pod < i.user || '0') OR EXISTS (SELECT 1 FROM lease WHERE kind = 1 "
			 "AND owner = i.user)";
}

void scrape_identity_name(const struct identity_names *n, const char *user, int64_t place,
	bool is_namespace, char dst[IDENTITY_NAME_CAP])
{
	const char *name = user;
	if (strcmp(user, IDENTITY_UNKNOWN) == 0)
		name = IDENTITY_UNKNOWN;
	else if (n->how == IDENTITIES_GROUP)
		name = config_groups_find(n->groups, user);
	else if (place > n->max || (n->how == IDENTITIES_NAMESPACE && !is_namespace))
		name = NULL;
	else if (n->how == IDENTITIES_HASHED) {
		char hex[HMAC_HEX_CAP];
		sha256_hmac_hex(
			hex, &(struct hmac_key){ n->key, n->key_len }, user, strlen(user));
		hex[HASH_DIGITS] = '\0';
		str_copy(dst, IDENTITY_NAME_CAP, hex);
		return;
	}
	name = name ? name : IDENTITY_OTHER;
	str_escape(dst, IDENTITY_NAME_CAP, name, strlen(name));
}

struct scrape_identity *scrape_identity(struct scrape *s, const char *name)
{
	for (size_t i = 0; i < s->n_identities; i++)
		if (strcmp(s->identities[i].name, name) == 0)
			return &s->identities[i];
	if (!array_one_more(&s->identities, s->n_identities))
		return NULL;
	struct scrape_identity *one = &s->identities[s->n_identities++];
	*one = (struct scrape_identity){ .ms = { 0 } };
	str_copy(one->name, sizeof(one->name), name);
	return one;
}

/* A user as the store has it. */
struct user_total {
	char user[IDENTITY_NAME_CAP];
	int64_t place, first_ms, moved_ms;
	bool is_namespace;
	int64_t ms[IDENTITY_SUMS];
};

static bool is_new(const struct user_total *u, int64_t now_ms)
{
	return now_ms >= u->first_ms && now_ms - u->first_ms < SCRAPE_NEWBORN_MS;
}

/* Adds a user's time to the right series. A user without recent time has no series, but time
 * that was counted in _other stays there: a counter must not decrease. */
static int add_user(struct scrape *s, const struct identity_names *names,
	const struct user_total *u, int64_t now_ms, struct err *e)
{
	char name[IDENTITY_NAME_CAP];
	scrape_identity_name(names, u->user, u->place, u->is_namespace, name);
	bool shared = names->how == IDENTITIES_GROUP || strcmp(name, IDENTITY_OTHER) == 0 ||
		      strcmp(name, IDENTITY_UNKNOWN) == 0;
	s->others += strcmp(name, IDENTITY_OTHER) == 0;
	if (!shared && now_ms - u->moved_ms > SCRAPE_KEEP_MS)
		return 0;
	struct scrape_identity *to = scrape_identity(s, name);
	if (!to)
		return err_memory(e);
	for (int i = 0; i < IDENTITY_SUMS; i++)
		to->ms[i] += shared || !is_new(u, now_ms) ? u->ms[i] : 0;
	return 0;
}

/* Time of the cards that no user has a share of: a series of its own, so that all series add
 * up to the time of the cards. */
static int set_unknown(
	struct scrape *s, sqlite3 *db, const int64_t known_ms[IDENTITY_SUMS], struct err *e)
{
	struct scrape_identity *to = scrape_identity(s, IDENTITY_UNKNOWN);
	if (!to)
		return err_memory(e);
	for (int i = IDENTITY_ACTIVE; i <= IDENTITY_IDLE_HELD; i++) {
		int64_t held_ms = 0;
		int rc = sql_number(db, &held_ms, e,
			"SELECT sum(ms) FROM total_gpu WHERE state = %d AND gpu IN (SELECT id "
			"FROM gpu WHERE host = " SCRAPE_HOST ")",
			i == IDENTITY_ACTIVE ? CARD_ACTIVE : CARD_IDLE_HELD);
		if (rc)
			return rc;
		to->ms[i] = held_ms > known_ms[i] ? held_ms - known_ms[i] : 0;
	}
	return 0;
}

/* Reads the identities of a host; with `now_ms` -1, all of them at their true values. */
static int read_identities(struct scrape *s, struct sqlite3 *db,
	const struct identity_names *names, int64_t now_ms, struct err *e)
{
	sqlite3_stmt *row = NULL;
	struct user_total u;
	int64_t known_ms[IDENTITY_SUMS] = { 0 };
	s->has_identities = names->how != IDENTITIES_OFF;
	if (!s->has_identities)
		return 0;
	/* Series that exist from the first scrape on. */
	size_t n = names->how == IDENTITIES_GROUP ? names->groups->n : 0;
	bool ok = scrape_identity(s, IDENTITY_OTHER) && scrape_identity(s, IDENTITY_UNKNOWN);
	for (size_t i = 0; ok && i < n; i++)
		ok = scrape_identity(s, names->groups->items[i].name) != NULL;
	int rc = ok ? 0 : err_memory(e);
	if (rc == 0)
		rc = sql_prepare(db, &row, e,
			"SELECT i.user, place, first_ms, max(moved_ms), %s, "
			"sum(iif(state = 0, share_ms, 0)), sum(iif(state = 1, share_ms, 0)), "
			"sum(iif(state = 3, presence_ms, 0)), "
			"sum(iif(state = 5, share_ms, 0)) FROM identity AS i LEFT JOIN "
			"total_user AS t ON t.host = i.host AND t.user = i.user "
			"WHERE i.host = " SCRAPE_HOST " GROUP BY i.user ORDER BY place, i.user",
			scrape_namespace_sql(names));
	while (sql_next(&row, &rc, e)) {
		sql_text(row, 0, u.user, sizeof(u.user));
		u.place = sql_int(row, 1, 0);
		u.first_ms = sql_int(row, 2, 0);
		u.moved_ms = sql_int(row, 3, u.first_ms);
		u.is_namespace = sql_int(row, 4, 0) != 0;
		for (int i = 0; i < IDENTITY_SUMS; i++)
			u.ms[i] = sql_int(row, 5 + i, 0);
		bool unknown = strcmp(u.user, IDENTITY_UNKNOWN) == 0;
		for (int i = 0; !unknown && i < IDENTITY_SUMS; i++)
			known_ms[i] += u.ms[i];
		rc = add_user(s, names, &u, now_ms, e);
	}
	return rc ? rc : set_unknown(s, db, known_ms, e);
}

enum {
	WAIT_MS = 1000, /* longest wait for a locked store: a scrape has a deadline */
	TICKS_MISSED =
		3, /* this many ticks may be missing before the recorder counts as silent */
	LATE_MS = 5000,
	BEFORE_ALL = -1, /* a moment at which no user is new and none has been gone for long */
};

void scrape_finish(struct scrape *s)
{
	free(s->cards);
	free(s->identities);
	free(s->actions);
	*s = (struct scrape){ .faults = -1 };
}

/* Whether the recorder is running and its last tick is recent. */
static bool is_up(const struct scrape *s, const char *path, bool open, int64_t now_ms)
{
	int64_t allowed_ms = TICKS_MISSED * s->interval_ms + LATE_MS;
	return open && statusfile_is_running(path) != 0 &&
	       now_ms - s->last_tick_ms <= allowed_ms;
}

static int read_run(
	struct scrape *s, sqlite3 *db, const char *path, int64_t now_ms, struct err *e)
{
	sqlite3_stmt *row = NULL;
	bool open = false;
	int rc = sql_prepare(db, &row, e,
		"SELECT last_tick_ms, started_ms, interval_ms, ended_ms IS NULL, version, "
		"source, (SELECT driver FROM host WHERE host.id = run.host), "
		"(SELECT max(leases) FROM run AS any WHERE any.host = run.host) FROM run "
		"WHERE source <> 'import' ORDER BY id DESC LIMIT 1");
	if (sql_next(&row, &rc, e)) {
		s->any_run = true;
		s->last_tick_ms = sql_int(row, 0, 0);
		s->started_ms = sql_int(row, 1, 0);
		s->interval_ms = sql_int(row, 2, 0);
		open = sql_int(row, 3, 0) != 0;
		sql_text(row, 4, s->version, sizeof(s->version));
		sql_text(row, 5, s->source, sizeof(s->source));
		sql_text(row, 6, s->driver, sizeof(s->driver));
		s->has_leases = sql_int(row, 7, 0) != 0;
	}
	sqlite3_finalize(row);
	s->up = s->any_run && is_up(s, path, open, now_ms);
	return rc;
}

static int add_card(struct scrape *s, const struct store_card *c, int64_t now_ms, struct err *e)
{
	if (!c->current && now_ms - c->last_seen_ms > SCRAPE_KEEP_MS)
		return 0;
	if (!array_one_more(&s->cards, s->n_cards))
		return err_memory(e);
	struct scrape_card *to = &s->cards[s->n_cards++];
	*to = (struct scrape_card){ .gpu = c->gpu, .id = c->id, .now = c->now };
	str_copy(to->source, sizeof(to->source), c->source);
	to->live = s->up && c->current;
	return 0;
}

/* Whether an absent card is missing: an instance that was destroyed is not, nor is a card
 * that was divided into instances. */
static bool is_missed(const struct store_cards *all, const struct store_card *c)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->cards[i].current && all->cards[i].status == CARD_STATUS_OK &&
			strcmp(all->cards[i].id.parent_uuid, c->id.uuid) == 0)
			return false;
	return c->id.mig_index < 0;
}

static struct scrape_card *find_card(struct scrape *s, int64_t gpu)
{
	for (size_t i = 0; i < s->n_cards; i++)
		if (s->cards[i].gpu == gpu)
			return &s->cards[i];
	return NULL;
}

static int read_totals(struct scrape *s, sqlite3 *db, struct err *e)
{
	sqlite3_stmt *row = NULL;
	int rc = sql_prepare(db, &row, e, "SELECT gpu, state, ms, energy_mj FROM total_gpu");
	while (sql_next(&row, &rc, e)) {
		struct scrape_card *c = find_card(s, sql_int(row, 0, -1));
		int64_t state = sql_int(row, 1, -1);
		if (!c || state < 0 || state >= CARD_STATES)
			continue;
		c->ms[state] = sql_int(row, 2, 0);
		c->energy_mj[state] = sql_int(row, 3, 0);
		c->has_energy |= c->energy_mj[state] > 0;
	}
	return rc;
}

/* Sets one count of each card; `place` is its offset in struct scrape_card. */
static int read_counts(
	struct scrape *s, sqlite3 *db, const char *sql, size_t place, struct err *e)
{
	sqlite3_stmt *row = NULL;
	int rc = sql_prepare(db, &row, e, "%s", sql);
	while (sql_next(&row, &rc, e)) {
		struct scrape_card *c = find_card(s, sql_int(row, 0, -1));
		if (c)
			*(int64_t *)((char *)c + place) = sql_int(row, 1, 0);
	}
	return rc;
}

static int read_cards(struct scrape *s, sqlite3 *db, int64_t now_ms, struct err *e)
{
	struct store_cards all;
	int rc = present_store_cards(&all, db, e);
	for (size_t i = 0; rc == 0 && i < all.n; i++)
		rc = add_card(s, &all.cards[i], now_ms, e);
	int64_t n = 0;
	for (size_t i = 0; i < all.n; i++) {
		const struct store_card *c = &all.cards[i];
		n += c->current && (c->status != CARD_STATUS_LOST || is_missed(&all, c));
	}
	s->present = n;
	present_store_cards_free(&all);
	if (rc || read_totals(s, db, e) ||
		read_counts(s, db, "SELECT gpu, count(*) FROM holder GROUP BY gpu",
			offsetof(struct scrape_card, processes), e))
		return e->code;
	return read_counts(s, db,
		"SELECT gpu, count(*) FROM open_spell AS o WHERE " OPEN_IS_SPELL
		" GROUP BY gpu",
		offsetof(struct scrape_card, spells), e);
}

/* Spells that ended because the recorder stopped may still go on: they are not counted. */
static int read_spells(struct scrape *s, sqlite3 *db, struct err *e)
{
	sqlite3_stmt *row = NULL;
	int rc = sql_prepare(db, &row, e,
		"SELECT sum(how_ended = 0), sum(how_ended = 1), sum(how_ended = 2) FROM spell");
	if (sql_next(&row, &rc, e))
		for (int i = 0; i < SPELL_STOPPED; i++)
			s->spells_ended[i] = sql_int(row, i, 0);
	sqlite3_finalize(row);
	return rc;
}

static int take_count(void *context, const struct policy_count *c)
{
	struct scrape *s = context;
	if (!array_one_more(&s->actions, s->n_actions))
		return err_memory(NULL);
	struct scrape_action *a = &s->actions[s->n_actions++];
	str_copy(a->step, sizeof(a->step), c->step);
	str_copy(a->mode, sizeof(a->mode), c->mode);
	a->count = c->n;
	return 0;
}

int scrape_totals(struct scrape *s, struct sqlite3 *db, const char *path,
	const struct identity_names *names, struct err *e)
{
	*s = (struct scrape){ .faults = -1 };
	if (read_run(s, db, path, BEFORE_ALL, e) || read_cards(s, db, BEFORE_ALL, e))
		return e->code;
	return read_identities(s, db, names, BEFORE_ALL, e);
}

int scrape_read(struct scrape *s, const char *path, const struct identity_names *names,
	int64_t now_ms, struct err *e)
{
	sqlite3 *db = NULL;
	*s = (struct scrape){ .faults = -1, .dcgm = names->dcgm };
	int64_t ignored = 0;
	/* Readings and totals are from the same tick. */
	bool failed = store_open_read_within(&db, path, WAIT_MS, e) ||
		      sql_number(db, &ignored, e, "BEGIN") ||
		      read_run(s, db, path, now_ms, e) || read_cards(s, db, now_ms, e) ||
		      read_identities(s, db, names, now_ms, e) || read_spells(s, db, e) ||
		      sql_number(db, &s->events, e, "SELECT max(id) FROM event");
	sqlite3_close(db);
	/* The size of the store and its log, and the faults that the recorder reports. */
	static const char *const ends[] = { "", "-wal" };
	struct err unread = { 0 };
	struct published p;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		char full[4096 + 8];
		struct stat st;
		snprintf(full, sizeof(full), "%s%s", path, ends[i]);
		s->db_bytes += stat(full, &st) == 0 ? (int64_t)st.st_size : 0;
	}
	if (s->up && statusfile_read(&p, path, &unread) == 0 && p.told)
		s->faults = (int64_t)p.n_faults;
	if (!failed) {
		/* Reads what gua enforce did, if its policy.db exists and is readable. */
		char file[PATH_MAX];
		struct policy_file *f = NULL;
		policy_file_path(file, sizeof(file), path);
		if (policy_file_open(&f, file, false, NULL) == 0) {
			if (policy_file_counts(f, take_count, s, NULL) != 0)
				s->n_actions = 0;
			policy_file_close(f);
		}
	}
	return failed ? e->code : 0;
}
