/* Writes and reads the wish of a pick: "gua-pick-1 N MIN_FREE MAX_UTIL FREE_FOR CARDS". */
#include "pick/pick_wish.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
	return text_copy(ask->cards, sizeof(ask->cards), at);
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
