/* What an audit is restricted to: matches users, hosts and cards, finds the processes of those
 * users, and checks that every word names something, because a misspelt name would give an
 * empty report. */

#include "base/nearest.h"
#include "audit/gather.h"
#include "model/card.h"

const char *const restriction_names[RESTRICTIONS] = {
	[ONLY_USER] = "user",
	[ONLY_GROUP] = "group",
	[ONLY_NOTEBOOK] = "notebook",
	[ONLY_JOB] = "job",
	[ONLY_CARD] = "card",
	[ONLY_HOST] = "host",
	[ONLY_MODEL] = "model",
};

bool restriction_of_users(const struct restriction *r)
{
	return r->lists[ONLY_USER].n > 0 || r->lists[ONLY_GROUP].n > 0 ||
	       r->lists[ONLY_NOTEBOOK].n > 0 || r->lists[ONLY_JOB].n > 0;
}

bool restriction_of_cards(const struct restriction *r)
{
	return r->lists[ONLY_CARD].n > 0 || r->lists[ONLY_HOST].n > 0 ||
	       r->lists[ONLY_MODEL].n > 0;
}

static bool is_part(const char *word, const void *text)
{
	return strcasestr(text, word) != NULL;
}

/* A job has two names if it is a task of an array. */
struct job {
	const char *name, *task;
};
static bool is_job(const char *word, const void *what)
{
	const struct job *job = what;
	return process_is_job(word, job->name) || process_is_job(word, job->task);
}

bool restriction_takes_host(const struct restriction *r, const char *hostname)
{
	return options_list_takes(&r->lists[ONLY_HOST], NULL, hostname);
}

bool restriction_takes_card(const struct restriction *r, const struct audit_card *card)
{
	return options_list_takes(&r->lists[ONLY_CARD], card_matches, &card->id) &&
	       options_list_takes(&r->lists[ONLY_MODEL], is_part, card->id.name);
}

bool restriction_takes_user(const struct restriction *r, const char *user, const char *group)
{
	return options_list_takes(&r->lists[ONLY_USER], NULL, user) &&
	       options_list_takes(&r->lists[ONLY_GROUP], NULL, group);
}

bool restriction_takes_job(const struct restriction *r, const char *name, const char *task)
{
	return options_list_takes(&r->lists[ONLY_JOB], is_job, &(struct job){ name, task });
}

bool restriction_takes_job_of(const struct restriction *r, sqlite3_stmt *row, int column)
{
	char name[LABEL_CAP], task[LABEL_CAP];
	sql_text(row, column, name, sizeof(name));
	sql_text(row, column + 1, task, sizeof(task));
	return restriction_takes_job(r, name, task);
}

bool restriction_next(
	const struct restriction *r, enum restriction_kind kind, struct restriction_word *word)
{
	const struct text_list *list = &r->lists[kind];
	char part[TEXT_LIST_WORD_CAP];
	for (; word->item < list->n; word->item++, word->at = NULL) {
		if (!word->at)
			word->at = list->items[word->item];
		if (kind == ONLY_NOTEBOOK) {
			str_escape(word->safe, sizeof(word->safe), word->at, strlen(word->at));
			word->item++;
			word->at = NULL;
			return true;
		}
		if (options_list_word(&word->at, part)) {
			str_escape(word->safe, sizeof(word->safe), part, strlen(part));
			return true;
		}
	}
	return false;
}

bool restriction_has(const struct gather *g, const struct gather_file *file, int64_t process)
{
	return !restriction_of_users(&g->q->only) ||
	       idmap_get(&file->wanted, process) != IDMAP_NONE;
}

const char *restriction_sql(const struct gather *g)
{
	return restriction_of_users(&g->q->only) ? " AND wanted(process)" : "";
}

/* The SQL function wanted(PROCESS). */
static void is_wanted(sqlite3_context *context, int n, sqlite3_value **values)
{
	const struct idmap *wanted = sqlite3_user_data(context);
	(void)n;
	sqlite3_result_int(
		context, idmap_get(wanted, sqlite3_value_int64(values[0])) != IDMAP_NONE);
}

/* `notebook` is "" for a process that is not a notebook. The name must match completely. */
static bool takes_notebook(const struct restriction *r, const char *notebook)
{
	const struct text_list *list = &r->lists[ONLY_NOTEBOOK];
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->items[i], notebook) == 0)
			return true;
	return list->n == 0;
}

static bool takes_user(const struct audit_question *q, const char *user)
{
	const char *group = q->group_of ? q->group_of(q->group_context, user) : NULL;
	return restriction_takes_user(&q->only, user, group);
}

int restriction_take_owner(const struct gather *g, struct gather_file *file, const char *owner,
	bool *takes_it, struct err *e)
{
	const struct restriction *r = &g->q->only;
	*takes_it = true;
	if (!restriction_of_users(r))
		return 0;
	*takes_it = takes_user(g->q, owner) && takes_notebook(r, "");
	return names_find(&file->users, 0, owner, e) == IDMAP_NONE ? ERR_WORLD : 0;
}

/* Notes that jobs have a lease, which may be all they have. No process has these numbers. */
static int read_leases(const struct gather *g, struct gather_file *file, struct err *e)
{
	sqlite3_stmt *stmt;
	int rc = sql_prepare(file->db, &stmt, e, "SELECT -1 - id, " LEASE_JOB " FROM lease");
	while (sql_next(&stmt, &rc, e))
		if (restriction_takes_job_of(&g->q->only, stmt, 1) &&
			!idmap_put(&file->wanted, sqlite3_column_int64(stmt, 0), 0))
			rc = err_memory(e);
	return rc;
}

/* Notes the users of a store, and which of its processes match. */
static int read_processes(const struct gather *g, struct gather_file *file, struct err *e)
{
	sqlite3_stmt *stmt;
	char last[USER_CAP] = "", user[USER_CAP], notebook[1024];
	bool take = takes_user(g->q, last);
	int rc = sql_prepare(file->db, &stmt, e,
		"SELECT id, user, coalesce(notebook_path, notebook, ''), job, job_task FROM "
		"process ORDER BY id");
	while (sql_next(&stmt, &rc, e)) {
		sql_text(stmt, 1, user, sizeof(user));
		if (strcmp(user, last) != 0) {
			if (names_find(&file->users, 0, user, e) == IDMAP_NONE)
				rc = ERR_WORLD;
			take = takes_user(g->q, user);
			str_copy(last, sizeof(last), user);
		}
		sql_text(stmt, 2, notebook, sizeof(notebook));
		if (take && rc == 0 && takes_notebook(&g->q->only, notebook) &&
			restriction_takes_job_of(&g->q->only, stmt, 3) &&
			!idmap_put(&file->wanted, sqlite3_column_int64(stmt, 0), 0))
			rc = err_memory(e);
	}
	if (rc == 0 && g->q->only.lists[ONLY_JOB].n)
		rc = read_leases(g, file, e);
	if (rc == 0 && sqlite3_create_function(file->db, "wanted", 1,
			       SQLITE_UTF8 | SQLITE_DETERMINISTIC, &file->wanted, is_wanted,
			       NULL, NULL) != SQLITE_OK)
		rc = err_memory(e);
	return rc;
}

/* The names of one kind in the stores: each word of an option must match one. */
struct known {
	enum restriction_kind kind;
	size_t n;
	const char *(*name)(const struct gather *g, size_t i); /* for cards: NULL */
};

static const char *user_name(const struct gather *g, size_t i)
{
	return g->users.items[i].text;
}

/* The current names of hosts, then their earlier names in the stores. */
static const char *host_name(const struct gather *g, size_t i)
{
	return i < g->a->n_hosts ? g->a->hosts[i].hostname
				 : g->records[i - g->a->n_hosts].hostname;
}

static const char *model_name(const struct gather *g, size_t i)
{
	return g->a->cards[i].id.name;
}

/* Reports a word that names nothing, with the most similar name. */
static int no_such(
	const struct gather *g, const struct known *k, const char *word, struct err *e)
{
	struct nearest like = nearest_to(word, strlen(word));
	for (size_t i = 0; i < k->n && k->name; i++)
		nearest_try(&like, k->name(g, i));
	return err_set(e, ERR_NOTHING, "%s no %s '%s'%s%s%s",
		g->n_files > 1 ? "the stores have" : "the store has",
		restriction_names[k->kind], word, like.name ? "; did you mean '" : "",
		like.name ? like.name : "", like.name ? "'?" : "");
}

/* Notebooks, or jobs: one of them must match. */
static int check_any(const struct gather *g, enum restriction_kind kind, struct err *e)
{
	const struct text_list *words = &g->q->only.lists[kind];
	char safe[256];
	if (!words->n || g->n_wanted)
		return 0;
	str_escape(safe, sizeof(safe), words->items[0], strlen(words->items[0]));
	return err_set(e, ERR_NOTHING, "%s no %s '%s' of these users",
		g->n_files > 1 ? "the stores have" : "the store has", restriction_names[kind],
		safe);
}

static bool is_named(const struct gather *g, const struct known *k, size_t i, const char *word)
{
	if (k->kind == ONLY_CARD)
		return card_is_named(word, &g->a->cards[i].id);
	if (k->kind == ONLY_MODEL)
		return strcasestr(k->name(g, i), word) != NULL;
	return strcmp(k->name(g, i), word) == 0;
}

static int check_words(const struct gather *g, const struct known *k, struct err *e)
{
	const struct text_list *words = &g->q->only.lists[k->kind];
	char word[TEXT_LIST_WORD_CAP];
	for (size_t w = 0; w < words->n; w++)
		for (const char *at = words->items[w]; options_list_word(&at, word);) {
			size_t i = 0;
			while (i < k->n && !is_named(g, k, i, word))
				i++;
			if (i == k->n)
				return no_such(g, k, word, e);
		}
	return 0;
}

int restriction_read(struct gather *g, struct gather_file *file, struct err *e)
{
	idmap_finish(&file->wanted);
	return restriction_of_users(&g->q->only) ? read_processes(g, file, e) : 0;
}

int restriction_add(struct gather *g, struct gather_file *file, struct err *e)
{
	for (size_t i = 0; i < file->users.n; i++)
		if (names_find(&g->users, 0, file->users.items[i].text, e) == IDMAP_NONE)
			return ERR_WORLD;
	names_finish(&file->users);
	g->n_wanted += file->wanted.n;
	return 0;
}

int restriction_check_users(const struct gather *g, struct err *e)
{
	const struct known users = { ONLY_USER, g->users.n, user_name };
	if (check_words(g, &users, e) || check_any(g, ONLY_NOTEBOOK, e))
		return e->code;
	return check_any(g, ONLY_JOB, e);
}

int restriction_check_words(struct gather *g, struct err *e)
{
	const struct known known[] = {
		{ ONLY_HOST, g->a->n_hosts + g->n_records, host_name },
		{ ONLY_CARD, g->a->n_cards, NULL },
		{ ONLY_MODEL, g->a->n_cards, model_name },
	};
	int rc = 0;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]) && rc == 0; i++)
		rc = check_words(g, &known[i], e);
	return rc;
}
