/* Decides which cards are free for gua pick, and ranks them; writes and reads the wish of a
 * pick. */
#include "pick/pick.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Differences in free memory below this do not matter. */
#define MEMORY_STEP_BYTES (64LL << 20)

const char *const pick_verdict_names[PICK_VERDICTS] = {
	[PICK_GOOD] = "free",
	[PICK_UNREADABLE] = "lost, asleep or not readable",
	[PICK_INSTANCE] = "with MIG, where a program can use only one instance",
	[PICK_ACTIVE] = "active",
	[PICK_HELD] = "held",
	[PICK_ORPHAN] = "with memory in use that no listed process explains",
	[PICK_FULL] = "without enough free memory",
	[PICK_RECENT] = "not known to be free for that long",
	[PICK_TAKEN] = "reserved by another gua pick",
	[PICK_PROMISED] = "left for a pick that has waited longer",
	[PICK_SPARE] = "free",
};

const char *const pick_verdict_words[PICK_VERDICTS] = {
	[PICK_GOOD] = "picked",
	[PICK_UNREADABLE] = "unreadable",
	[PICK_INSTANCE] = "instance",
	[PICK_ACTIVE] = "active",
	[PICK_HELD] = "held",
	[PICK_ORPHAN] = "unexplained-memory",
	[PICK_FULL] = "too-little-memory",
	[PICK_RECENT] = "not-free-for-long-enough",
	[PICK_TAKEN] = "reserved",
	[PICK_PROMISED] = "left-for-earlier-waiter",
	[PICK_SPARE] = "free",
};

/* Whether holders keep the card. Memory that the driver does not report may be any amount;
 * without utilisation, it is not known what even a small holder does. */
static bool is_held(
	const struct pick_wish *wish, const struct present_card *card, double util_pct)
{
	double held = card->values[METRIC_GUA_HELD_MEMORY];
	if (card->values[METRIC_GUA_HOLDERS] == 0 || isnan(util_pct))
		return card->values[METRIC_GUA_HOLDERS] != 0;
	return !(held <= (double)wish->rules.held_mem_bytes);
}

/* Whether a process that is not listed uses the card: by the recorder's rule, or because more
 * memory is in use than the listed processes and the driver itself can explain. */
static bool is_held_unseen(const struct pick_wish *wish, const struct present_card *card)
{
	return card->unexplained_bytes > wish->rules.held_mem_bytes ||
	       card->values[METRIC_GUA_ORPHAN_MEMORY] >= (double)ORPHAN_LEAST_BYTES;
}

static bool is_active(const struct pick_wish *wish, double util_pct)
{
	return isnan(wish->max_util_pct) ? util_pct >= wish->rules.active_util_pct
					 : util_pct > wish->max_util_pct;
}

enum pick_verdict pick_judge(
	const struct pick_wish *wish, const struct present_card *card, int64_t now_ms)
{
	/* The utilisation of a suspect card is not believed; no process is on it. */
	bool suspect = card->state == CARD_SUSPECT;
	double util_pct = suspect ? NAN : card->values[METRIC_UTILIZATION_GPU];
	if (card->status != CARD_STATUS_OK || !card->processes_known || !card->id.uuid[0])
		return PICK_UNREADABLE;
	if (wish->n > 1 && card->id.mig_index >= 0)
		return PICK_INSTANCE;
	if (is_active(wish, util_pct))
		return PICK_ACTIVE;
	/* Without utilisation (instances) it is not known what holders do: there must be none.
	 */
	if ((wish->min_free_bytes < 0 || isnan(util_pct)) && is_held(wish, card, util_pct))
		return PICK_HELD;
	if (wish->min_free_bytes < 0 && is_held_unseen(wish, card))
		return PICK_ORPHAN;
	if (wish->min_free_bytes >= 0 &&
		!(card->values[METRIC_MEMORY_FREE] >= (double)wish->min_free_bytes))
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
		candidates[i].verdict = c.verdict = pick_judge(wish, c.card, now_ms);
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
	str_addf(out, FORMAT_NAME "%zu %lld ", wish->n, (long long)wish->min_free_bytes);
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
	int64_t n = 0;
	const char *at = line, *end = memchr(bytes, '\n', len);
	if (!end || (size_t)(end - bytes) >= sizeof(line) || memchr(bytes, 0, len))
		return false;
	memcpy(line, bytes, (size_t)(end - bytes));
	line[end - bytes] = '\0';
	*ask = (struct pick_ask){ 0 };
	if (strncmp(at, FORMAT_NAME, strlen(FORMAT_NAME)) != 0)
		return false;
	at += strlen(FORMAT_NAME);
	if (!next_number(&at, 1, PICK_MAX_CARDS, &n) ||
		!next_number(&at, -1, INT64_MAX, &ask->wish.min_free_bytes) ||
		!next_percentage(&at, &ask->wish.max_util_pct) ||
		!next_number(&at, 0, INT64_MAX, &ask->wish.free_for_ms) || !*at)
		return false;
	ask->wish.n = (size_t)n;
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
