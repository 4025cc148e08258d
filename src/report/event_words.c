/* Reads which events a user wants. */
#include <string.h>

#include "model/card_name.h"
#include "model/tick.h"
#include "report/event_list.h"

void event_kind_words(struct str *out)
{
	for (int i = 0; i < EVENT_KINDS; i++)
		str_addf(out, "%s ", event_kind_names[i]);
}

static bool names_card(const char *word, const void *card)
{
	return card_is_named(word, card);
}

static bool is_kind(const char *word, const void *kind)
{
	return strcmp(word, kind) == 0;
}

bool event_words_take(const void *words, const struct card_id *card, const char *kind)
{
	const struct event_words *w = words;
	if (w->cards.n && (!card || !text_list_any(&w->cards, names_card, card)))
		return false;
	return !w->kinds.n || text_list_any(&w->kinds, is_kind, kind);
}

static int check_kinds(const struct text_list *kinds, struct err *e)
{
	char word[TEXT_LIST_WORD_CAP];
	struct str known = { 0 };
	int rc = text_list_check("kind", kinds, e);
	event_kind_words(&known);
	for (size_t i = 0; i < kinds->n && rc == 0; i++)
		for (const char *at = kinds->items[i]; rc == 0 && text_list_word(&at, word);)
			if (event_kind_of(word) == EVENT_KINDS)
				rc = err_set(e, ERR_USAGE,
					"there is no kind '%s'; write one of: %s", word,
					str_text(&known));
	str_finish(&known);
	return rc;
}

int event_words_check(const struct event_words *words, struct err *e)
{
	int rc = text_list_check("card", &words->cards, e);
	return rc ? rc : check_kinds(&words->kinds, e);
}

int event_ask(struct audit_question *q, const struct window_words *words, int64_t now_ms,
	bool utc, struct err *e)
{
	struct window window = { .until_ms = now_ms };
	struct window_words own = *words;
	if (!own.since && !own.last)
		own.last = "7d";
	if (window_parse(&window, &own, now_ms, utc, e) != 0)
		return ERR_USAGE;
	q->now_ms = now_ms;
	q->since_ms = window.since_ms;
	q->until_ms = window.until_ms;
	q->utc = utc;
	return 0;
}
