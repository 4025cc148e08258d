/* Reads the values of rules and exemptions. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/timetext.h"
#include "config/config_policy.h"
#include "config/parse.h"
#include "model/policy.h"

int parse_patterns(const struct config_value *v, struct err *e)
{
	struct config_patterns *all = v->at;
	char **words = NULL;
	int rc = parse_list(v, &words, e);
	for (size_t i = 0; !rc && words[i]; i++) {
		void *items = all->items;
		const char **at = config_one_more(v->arena, &items, all->n, sizeof(*at));
		if (!at || !(*at = arena_text(v->arena, words[i]))) {
			rc = err_memory(e);
			break;
		}
		all->items = items;
		all->n++;
	}
	free(words);
	return rc;
}

static int find_use(const char *word)
{
	for (int i = 0; i < SESSION_USES; i++)
		if (strcasecmp(word, session_use_names[i]) == 0)
			return i;
	return -1;
}

int parse_uses(const struct config_value *v, struct err *e)
{
	char **words = NULL;
	int rc = parse_list(v, &words, e);
	for (size_t i = 0; !rc && words[i]; i++) {
		int use = find_use(words[i]);
		if (use < 0)
			rc = err_set(e, ERR_USAGE,
				"%s takes interactive, batch and service, not '%s'", v->name,
				words[i]);
		else
			*(unsigned *)v->at |= 1u << use;
	}
	free(words);
	return rc;
}

int parse_stage(const struct config_value *v, struct err *e)
{
	int64_t ms = 0;
	if (strcasecmp(v->text, "never") == 0) {
		*(int64_t *)v->at = AT_NEVER;
		return 0;
	}
	if (duration_parse(v->text, &ms, NULL) != 0 || ms < (int64_t)v->key->value.min ||
		ms > (int64_t)v->key->value.max)
		return err_set(e, ERR_USAGE,
			"%s takes a length of time between 5m and 52w, or never, not '%s'",
			v->name, v->text);
	*(int64_t *)v->at = ms;
	return 0;
}

int parse_last_day(const struct config_value *v, struct err *e)
{
	int32_t day = parse_date(v->text);
	if (day < 0)
		return err_set(e, ERR_USAGE, "%s takes a date as 2026-12-31, not '%s'", v->name,
			v->text);
	*(int32_t *)v->at = day;
	return 0;
}
