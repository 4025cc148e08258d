/* Reads the running totals of users and adds them up by what they are called. */
#include <sqlite3.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "export/scrape.h"
#include "store/sql.h"

/* The host of the newest run. */
#define HOST_SQL "(SELECT host FROM run WHERE source <> 'import' ORDER BY id DESC LIMIT 1)"

struct scrape_identity *scrape_identity(struct scrape *s, const char *name)
{
	for (size_t i = 0; i < s->n_identities; i++)
		if (strcmp(s->identities[i].name, name) == 0)
			return &s->identities[i];
	if (!array_one_more(&s->identities, s->n_identities))
		return NULL;
	struct scrape_identity *one = &s->identities[s->n_identities++];
	*one = (struct scrape_identity){ .ms = { 0 } };
	text_copy(one->name, sizeof(one->name), name);
	return one;
}

/* A user as the store has it. */
struct user_total {
	char user[IDENTITY_NAME_CAP];
	int64_t place, first_ms, moved_ms;
	int64_t ms[IDENTITY_SUMS];
};

static void take_row(struct user_total *u, sqlite3_stmt *row)
{
	sql_text(row, 0, u->user, sizeof(u->user));
	u->place = sql_int(row, 1, 0);
	u->first_ms = sql_int(row, 2, 0);
	u->moved_ms = sql_int(row, 3, u->first_ms);
	for (int i = 0; i < IDENTITY_SUMS; i++)
		u->ms[i] = sql_int(row, 4 + i, 0);
}

static bool is_new(const struct user_total *u, int64_t now_ms)
{
	return now_ms >= u->first_ms && now_ms - u->first_ms < SCRAPE_NEWBORN_MS;
}

/* Adds a user's time to the series that has it. A user that has had no time for long has none,
 * but what was part of _other stays there: a counter must not fall. */
static int add_user(struct scrape *s, const struct identity_names *names,
	const struct user_total *u, int64_t now_ms, struct err *e)
{
	char name[IDENTITY_NAME_CAP];
	identity_name(names, u->user, u->place, name);
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

/* What the cards did and no user has a share of: set apart, so that all series add up to the
 * time of the cards. */
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
			"FROM gpu WHERE host = " HOST_SQL ")",
			i == IDENTITY_ACTIVE ? CARD_ACTIVE : CARD_IDLE_HELD);
		if (rc)
			return rc;
		to->ms[i] = held_ms > known_ms[i] ? held_ms - known_ms[i] : 0;
	}
	return 0;
}

/* Series that are there from the first scrape. */
static int add_fixed(struct scrape *s, const struct identity_names *names, struct err *e)
{
	size_t n = names->how == IDENTITIES_GROUP ? names->groups->n : 0;
	bool ok = scrape_identity(s, IDENTITY_OTHER) && scrape_identity(s, IDENTITY_UNKNOWN);
	for (size_t i = 0; ok && i < n; i++)
		ok = scrape_identity(s, names->groups->items[i].name) != NULL;
	return ok ? 0 : err_memory(e);
}

int scrape_identities(struct scrape *s, struct sqlite3 *db, const struct identity_names *names,
	int64_t now_ms, struct err *e)
{
	sqlite3_stmt *row = NULL;
	struct user_total u;
	int64_t known_ms[IDENTITY_SUMS] = { 0 };
	s->has_identities = names->how != IDENTITIES_OFF;
	if (!s->has_identities)
		return 0;
	int rc = add_fixed(s, names, e);
	if (rc == 0)
		rc = sql_prepare(db, &row, e,
			"SELECT i.user, place, first_ms, max(moved_ms), "
			"sum(iif(state = 0, share_ms, 0)), sum(iif(state = 1, share_ms, 0)), "
			"sum(iif(state = 3, presence_ms, 0)) FROM identity AS i LEFT JOIN "
			"total_user AS t ON t.host = i.host AND t.user = i.user "
			"WHERE i.host = " HOST_SQL " GROUP BY i.user ORDER BY place, i.user");
	while (rc == 0 && (rc = sql_step(row, e)) == 1) {
		take_row(&u, row);
		bool unknown = strcmp(u.user, IDENTITY_UNKNOWN) == 0;
		for (int i = 0; !unknown && i < IDENTITY_SUMS; i++)
			known_ms[i] += u.ms[i];
		rc = add_user(s, names, &u, now_ms, e);
	}
	sqlite3_finalize(row);
	return rc ? rc : set_unknown(s, db, known_ms, e);
}
