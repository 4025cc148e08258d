/* Matches users and cards with what a user asked for. */
#include "audit/restriction.h"

#include <string.h>

#include "base/str.h"
#include "model/card_name.h"

const char *const restriction_names[RESTRICTIONS] = {
	[ONLY_USER] = "user",
	[ONLY_GROUP] = "group",
	[ONLY_NOTEBOOK] = "notebook",
	[ONLY_CARD] = "card",
	[ONLY_HOST] = "host",
	[ONLY_MODEL] = "model",
};

bool restriction_of_users(const struct restriction *r)
{
	return r->lists[ONLY_USER].n > 0 || r->lists[ONLY_GROUP].n > 0 ||
	       r->lists[ONLY_NOTEBOOK].n > 0;
}

bool restriction_of_cards(const struct restriction *r)
{
	return r->lists[ONLY_CARD].n > 0 || r->lists[ONLY_HOST].n > 0 ||
	       r->lists[ONLY_MODEL].n > 0;
}

static bool is_equal(const char *word, const void *text)
{
	return text && strcmp(word, text) == 0;
}

static bool is_part(const char *word, const void *text)
{
	return strcasestr(text, word) != NULL;
}

static bool is_card(const char *word, const void *id)
{
	return card_is_named(word, id);
}

/* Whether a list is not given, or has a word that matches. */
static bool takes(const struct text_list *list,
	bool (*match)(const char *word, const void *what), const void *what)
{
	return list->n == 0 || text_list_any(list, match, what);
}

bool restriction_takes_host(const struct restriction *r, const char *hostname)
{
	return takes(&r->lists[ONLY_HOST], is_equal, hostname);
}

bool restriction_takes_card(const struct restriction *r, const struct audit_card *card)
{
	return takes(&r->lists[ONLY_CARD], is_card, &card->id) &&
	       takes(&r->lists[ONLY_MODEL], is_part, card->id.name);
}

bool restriction_takes_user(const struct restriction *r, const char *user, const char *group)
{
	return takes(&r->lists[ONLY_USER], is_equal, user) &&
	       takes(&r->lists[ONLY_GROUP], is_equal, group);
}

bool restriction_takes_notebook(const struct restriction *r, const char *notebook)
{
	const struct text_list *list = &r->lists[ONLY_NOTEBOOK];
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->items[i], notebook) == 0)
			return true;
	return list->n == 0;
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
			text_escape(word->safe, sizeof(word->safe), word->at, strlen(word->at));
			word->item++;
			word->at = NULL;
			return true;
		}
		if (text_list_word(&word->at, part)) {
			text_escape(word->safe, sizeof(word->safe), part, strlen(part));
			return true;
		}
	}
	return false;
}
