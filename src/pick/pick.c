/* Decides which cards are free for gua pick, and ranks them; writes and reads the wish of a
 * pick; writes what it found: UUIDs, indexes, JSON, and why there is no card. */
#include "pick/pick.h"

#include "model/process.h"
#include "pick/pick_lock.h"
#include "render/json.h"

/* Differences in free memory below this do not matter. */
#define MEMORY_STEP_BYTES (64LL << 20)

/* For the message, after a number; and one word each, for JSON. */
static const struct {
	const char *text, *word;
} verdicts[PICK_VERDICTS] = {
	[PICK_GOOD] = { "free", "picked" },
	[PICK_UNREADABLE] = { "lost, asleep or not readable", "unreadable" },
	[PICK_INSTANCE] = { "with MIG, where a program can use only one instance", "instance" },
	[PICK_ACTIVE] = { "active", "active" },
	[PICK_HELD] = { "held", "held" },
	[PICK_ORPHAN] = { "with memory in use that no listed process explains",
		"unexplained-memory" },
	[PICK_FULL] = { "without enough free memory", "too-little-memory" },
	[PICK_RECENT] = { "not known to be free for that long", "not-free-for-long-enough" },
	[PICK_TAKEN] = { "reserved by another gua pick", "reserved" },
	[PICK_PROMISED] = { "left for a pick that has waited longer",
		"left-for-earlier-waiter" },
	[PICK_LEASED] = { "given to a job by a scheduler", "leased" },
	[PICK_SPARE] = { "free", "free" },
};

enum pick_verdict pick_judge(
	const struct pick_wish *wish, const struct present_card *card, int64_t now_ms)
{
	const double *values = card->values;
	const struct rules *rules = &wish->rules;
	/* The utilisation of a suspect card is not believed; no process is on it. */
	bool suspect = card->state == CARD_SUSPECT;
	double util_pct = suspect ? NAN : values[METRIC_UTILIZATION_GPU];
	if (card->status != CARD_STATUS_OK || !card->processes_known || !card->id.uuid[0])
		return PICK_UNREADABLE;
	if (wish->n > 1 && card->id.mig_index >= 0)
		return PICK_INSTANCE;
	if (isnan(wish->max_util_pct) ? util_pct >= rules->active_util_pct
				      : util_pct > wish->max_util_pct)
		return PICK_ACTIVE;
	/* Memory that the driver does not report may be any amount. Without utilisation
	 * (instances) it is not known what even a small holder does: there must be none. */
	bool held = values[METRIC_GUA_HOLDERS] != 0 &&
		    (isnan(util_pct) ||
			    !(values[METRIC_GUA_HELD_MEMORY] <= (double)rules->held_mem_bytes));
	if (held && (wish->min_free_bytes < 0 || isnan(util_pct)))
		return PICK_HELD;
	/* A process that is not listed uses the card: by the recorder's rule, or because more
	 * memory is in use than the listed processes and the driver itself can explain. */
	if (wish->min_free_bytes < 0 &&
		(card->unexplained_bytes > rules->held_mem_bytes ||
			values[METRIC_GUA_ORPHAN_MEMORY] >= (double)ORPHAN_LEAST_BYTES))
		return PICK_ORPHAN;
	if (wish->min_free_bytes >= 0 &&
		!(values[METRIC_MEMORY_FREE] >= (double)wish->min_free_bytes))
		return PICK_FULL;
	int64_t since_ms = card->free_since_ms;
	if (wish->free_for_ms > 0 && (since_ms < 0 || now_ms - since_ms < wish->free_for_ms))
		return PICK_RECENT;
	return PICK_GOOD;
}

/* Returns `otherwise` if the value is not known. */
static double known(double value, double otherwise)
{
	return isnan(value) ? otherwise : value;
}

/* Whether `a` is picked before `b`. */
static bool is_better(const struct present_card *a, const struct present_card *b)
{
	if ((a->state == CARD_SUSPECT) != (b->state == CARD_SUSPECT))
		return b->state == CARD_SUSPECT;
	double free_a = floor(known(a->values[METRIC_MEMORY_FREE], 0) / MEMORY_STEP_BYTES);
	double free_b = floor(known(b->values[METRIC_MEMORY_FREE], 0) / MEMORY_STEP_BYTES);
	if (free_a != free_b)
		return free_a > free_b;
	double util_a = known(a->values[METRIC_UTILIZATION_GPU], 100);
	double util_b = known(b->values[METRIC_UTILIZATION_GPU], 100);
	if (util_a != util_b)
		return util_a < util_b;
	int64_t since_a = a->free_since_ms < 0 ? INT64_MAX : a->free_since_ms;
	int64_t since_b = b->free_since_ms < 0 ? INT64_MAX : b->free_since_ms;
	if (since_a != since_b)
		return since_a < since_b;
	return a->id.index != b->id.index ? a->id.index < b->id.index
					  : a->id.mig_index < b->id.mig_index;
}

size_t pick_rank(const struct pick_wish *wish, struct pick_candidate *candidates, size_t n,
	int64_t now_ms)
{
	size_t good = 0;
	for (size_t i = 0; i < n; i++) {
		struct pick_candidate c = candidates[i];
		size_t at = good;
		c.verdict = pick_judge(wish, c.card, now_ms);
		if (c.verdict == PICK_GOOD && c.lease)
			c.verdict = PICK_LEASED;
		candidates[i].verdict = c.verdict;
		if (c.verdict != PICK_GOOD)
			continue;
		candidates[i] = candidates[good++];
		for (; at > 0 && is_better(c.card, candidates[at - 1].card); at--)
			candidates[at] = candidates[at - 1];
		candidates[at] = c;
	}
	return good;
}

#define FORMAT_NAME "gua-pick-1 "

void pick_wish_add(struct str *out, const struct pick_wish *wish, const char *cards)
{
	str_addf(out, FORMAT_NAME "%lld %lld ", (long long)wish->n,
		(long long)wish->min_free_bytes);
	if (isnan(wish->max_util_pct))
		str_add(out, "- ");
	else
		str_addf(out, "%.9g ", wish->max_util_pct);
	str_addf(out, "%lld %s\n", (long long)wish->free_for_ms, *cards ? cards : "*");
}

/* Reads a number that a space follows, and moves *at behind the space. */
static bool next_number(const char **at, int64_t min, int64_t max, int64_t *number)
{
	char *end = NULL;
	errno = 0;
	*number = strtoll(*at, &end, 10);
	if (errno || end == *at || *end != ' ' || *number < min || *number > max)
		return false;
	*at = end + 1;
	return true;
}

/* The same for a percentage; "-": none. */
static bool next_percentage(const char **at, double *pct)
{
	char *end = NULL;
	*pct = NAN;
	if (strncmp(*at, "- ", 2) == 0) {
		*at += 2;
		return true;
	}
	*pct = strtod(*at, &end);
	if (end == *at || *end != ' ' || !(*pct >= 0 && *pct <= 100))
		return false;
	*at = end + 1;
	return true;
}

bool pick_ask_parse(const char *bytes, size_t len, struct pick_ask *ask)
{
	char line[PICK_WISH_CAP];
	const char *at = line, *end = memchr(bytes, '\n', len);
	if (!end || (size_t)(end - bytes) >= sizeof(line) || memchr(bytes, 0, len))
		return false;
	memcpy(line, bytes, (size_t)(end - bytes));
	line[end - bytes] = '\0';
	*ask = (struct pick_ask){ 0 };
	if (strncmp(at, FORMAT_NAME, strlen(FORMAT_NAME)) != 0)
		return false;
	at += strlen(FORMAT_NAME);
	if (!next_number(&at, 1, PICK_MAX_CARDS, &ask->wish.n) ||
		!next_number(&at, -1, INT64_MAX, &ask->wish.min_free_bytes) ||
		!next_percentage(&at, &ask->wish.max_util_pct) ||
		!next_number(&at, 0, INT64_MAX, &ask->wish.free_for_ms) || !*at)
		return false;
	return str_copy(ask->cards, sizeof(ask->cards), at);
}

bool pick_ask_names(const struct pick_ask *ask, const char *uuid)
{
	size_t len = strlen(uuid);
	if (strcmp(ask->cards, "*") == 0)
		return true;
	for (const char *at = ask->cards; *at; at += strcspn(at, ","), at += *at == ',')
		if (strcspn(at, ",") == len && strncmp(at, uuid, len) == 0)
			return true;
	return false;
}

void pick_result_finish(struct pick_result *r)
{
	for (size_t i = 0; i < r->n_facts; i++)
		file_close(r->facts[i].lock);
	free(r->facts);
	r->facts = NULL;
	r->n_facts = r->n_picked = 0;
}

#define PLAIN_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-/_.:"

int pick_result_uuids(const struct pick_result *r, struct str *out, struct err *e)
{
	for (size_t i = 0; i < r->n_picked; i++) {
		const char *uuid = r->facts[i].id.uuid;
		if (uuid[strspn(uuid, PLAIN_CHARACTERS)])
			return err_set(e, ERR_WORLD,
				"the driver reports an unusable UUID for a card: '%s'", uuid);
		str_addf(out, "%s%s", i ? "," : "", uuid);
	}
	return 0;
}

void pick_result_indexes(const struct pick_result *r, struct str *out)
{
	for (size_t i = 0; i < r->n_picked; i++) {
		str_addf(out, "%s%s", i ? "," : "", card_label(&r->facts[i].id).text);
	}
}

int pick_result_refuse(const struct pick_result *r, size_t n, struct err *e)
{
	struct str why = { 0 };
	size_t counts[PICK_VERDICTS] = { 0 };
	for (size_t i = 0; i < r->n_facts; i++)
		counts[r->facts[i].verdict]++;
	for (size_t i = 0; i < PICK_VERDICTS; i++)
		if (counts[i])
			str_addf(&why, "%s%zu %s", why.len ? "; " : "", counts[i],
				verdicts[i].text);
	if (n == 1)
		err_set(e, ERR_WORLD, "no free card: %s", str_text(&why));
	else
		err_set(e, ERR_WORLD, "fewer than %zu free cards: %s", n, str_text(&why));
	str_finish(&why);
	return ERR_WORLD;
}

void pick_result_reservations(const struct pick_result *r, struct str *out)
{
	struct user_names *names = NULL;
	if (user_names_new(&names, user_find_system, NULL, USER_DEADLINE_MS, NULL) != 0)
		return;
	for (size_t i = 0; i < r->n_facts; i++) {
		const struct pick_fact *f = &r->facts[i];
		struct brief label = card_label(&f->id);
		if (f->verdict == PICK_LEASED)
			str_addf(out, "gua pick: card %s is given to %s by %s (%s)\n",
				label.text, f->lease.owner, lease_kind_names[f->lease.kind],
				f->lease.id);
		if (f->verdict != PICK_TAKEN && f->verdict != PICK_PROMISED)
			continue;
		str_addf(out, "gua pick: card %s is %s ", label.text,
			f->verdict == PICK_TAKEN ? "reserved by" : "left for");
		pick_lock_add_owner(out, &f->by, names);
		str_addf(
			out, "%s\n", f->verdict == PICK_TAKEN ? "" : ", who has waited longer");
	}
	user_names_free(names);
}

/* "no holders, utilisation 0%, free memory 79.4 GiB, free for 12 min" */
static void add_why(struct json *j, const struct pick_result *r, const struct pick_fact *f)
{
	struct str why = { 0 };
	if (f->holders == 0)
		str_add(&why, "no holders");
	else if (isnan(f->holders))
		str_add(&why, "holders not known");
	else
		str_addf(&why, "holders: %.0f", f->holders);
	if (f->suspect[0])
		str_add(&why, ", utilisation not believed");
	else if (!isnan(f->util_pct))
		str_addf(&why, ", utilisation %.0f %%", f->util_pct);
	if (!isnan(f->free_bytes))
		str_addf(&why, ", free memory %s", size_text(f->free_bytes).text);
	if (f->free_since_ms >= 0 && r->time_ms > f->free_since_ms)
		str_addf(&why, ", free for %s",
			duration_text(r->time_ms - f->free_since_ms).text);
	json_text(j, "why", str_text(&why));
	str_finish(&why);
}

static void add_id(struct json *j, const struct card_id *id)
{
	json_number(j, "index", id->index, 0);
	json_known(j, "mig_index", id->mig_index);
	json_text(j, "uuid", card_has_uuid(id) ? id->uuid : NULL);
	json_label(j, "name", id->name);
}

static void add_other(struct json *j, const struct pick_fact *f, struct user_names *names)
{
	json_open(j, NULL, '{');
	add_id(j, &f->id);
	json_text(j, "verdict", verdicts[f->verdict].word);
	json_text(j, "why", verdicts[f->verdict].text);
	if (f->verdict == PICK_TAKEN || f->verdict == PICK_PROMISED) {
		char user[USER_CAP] = "";
		int64_t uid = pick_lock_owner_uid(&f->by);
		if (uid >= 0)
			user_names_get(names, (uint32_t)uid, 0, user, sizeof(user));
		json_open(j, "by", '{');
		json_label(j, "user", user);
		json_known(j, "uid", uid);
		json_known(j, "pid", f->by.pid);
		json_label(j, "command", f->by.comm);
		json_number(j, "seconds_left",
			f->by.left_ms < 0 ? NAN : (double)f->by.left_ms / 1000, 0);
		json_close(j, '}');
	} else
		json_text(j, "by", NULL);
	if (f->verdict == PICK_LEASED) {
		json_open(j, "lease", '{');
		json_text(j, "kind", lease_kind_names[f->lease.kind]);
		json_text(j, "id", f->lease.id);
		json_text(j, "owner", f->lease.owner);
		json_close(j, '}');
	} else {
		json_text(j, "lease", NULL);
	}
	json_close(j, '}');
}

void pick_result_json(
	const struct pick_result *r, int64_t hold_ms, const char *error, struct str *out)
{
	struct json j = { .out = out, .lines = 2 };
	struct user_names *names = NULL;
	if (user_names_new(&names, user_find_system, NULL, USER_DEADLINE_MS, NULL) != 0) {
		out->failed = true;
		return;
	}
	json_open(&j, NULL, '{');
	json_text(&j, "schema", "gua-pick-1");
	json_label(&j, "host", r->host);
	json_moment(&j, "time", r->time_ms);
	json_label(&j, "note", r->note);
	json_text(&j, "error", error);
	json_number(&j, "hold_seconds", error ? NAN : (double)hold_ms / 1000, 3);
	json_open(&j, "picked", '[');
	for (size_t i = 0; i < r->n_picked && !error; i++) {
		const struct pick_fact *f = &r->facts[i];
		json_open(&j, NULL, '{');
		add_id(&j, &f->id);
		json_number(&j, "mem_free_bytes", f->free_bytes, 0);
		json_number(&j, "util_pct", f->util_pct, 1);
		json_moment(&j, "free_since", f->free_since_ms);
		add_why(&j, r, f);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_open(&j, "not_picked", '[');
	for (size_t i = r->n_picked; i < r->n_facts; i++)
		add_other(&j, &r->facts[i], names);
	json_close(&j, ']');
	json_close(&j, '}');
	user_names_free(names);
}
