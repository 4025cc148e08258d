/* Matches cards and processes against the filter options. */
#include "present/filter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/size.h"
#include "model/card.h"

static const struct state_word {
	const char *word;
	unsigned states, statuses;
} state_words[] = {
	{ "active", 1U << CARD_ACTIVE, 0 },
	{ "idle-held", 1U << CARD_IDLE_HELD, 0 },
	{ "idle_held", 1U << CARD_IDLE_HELD, 0 },
	{ "held", 1U << CARD_IDLE_HELD, 0 },
	{ "truly-idle", 1U << CARD_TRULY_IDLE, 0 },
	{ "truly_idle", 1U << CARD_TRULY_IDLE, 0 },
	{ "free", 1U << CARD_TRULY_IDLE, 0 },
	{ "use-unknown", 1U << CARD_USE_UNKNOWN, 0 },
	{ "use_unknown", 1U << CARD_USE_UNKNOWN, 0 },
	{ "unobserved", 1U << CARD_UNOBSERVED, 0 },
	{ "suspect", 1U << CARD_SUSPECT, 0 },
	{ "lost", 0, 1U << CARD_STATUS_LOST },
	{ "asleep", 0, 1U << CARD_STATUS_ASLEEP },
	{ "denied", 0, 1U << CARD_STATUS_DENIED },
};
enum { STATE_WORDS = sizeof(state_words) / sizeof(state_words[0]) };

/* Adds only the first of several words with the same meaning. */
void filter_states(struct str *out)
{
	const struct state_word *before = NULL;
	for (size_t i = 0; i < STATE_WORDS; before = &state_words[i++])
		if (!before || before->states != state_words[i].states ||
			before->statuses != state_words[i].statuses)
			str_addf(out, "%s ", state_words[i].word);
}

static int read_state(struct filter *f, const char *word, struct err *e)
{
	for (size_t i = 0; i < STATE_WORDS; i++) {
		if (strcasecmp(word, state_words[i].word) != 0)
			continue;
		f->states |= state_words[i].states;
		f->statuses |= state_words[i].statuses;
		return 0;
	}
	return err_set(e, ERR_USAGE,
		"--state must be active, idle-held, truly-idle, use-unknown, unobserved, "
		"suspect, lost, asleep or denied, not '%s'",
		word);
}

int filter_init(struct filter *f, const struct filter_values *v, struct err *e)
{
	const struct {
		const char *option;
		const struct text_list *list;
	} lists[] = { { "user", &v->users }, { "pid", &v->pids }, { "id", &v->ids },
		{ "state", &v->states } };
	char word[TEXT_LIST_WORD_CAP];
	*f = (struct filter){ .values = v, .min_mem_bytes = -1 };
	int rc = v->min_mem ? size_parse(v->min_mem, &f->min_mem_bytes, e) : 0;
	if (rc)
		return err_prefix(e, "--min-mem");
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]) && rc == 0; i++)
		rc = options_list_check(lists[i].option, lists[i].list, e);
	for (size_t i = 0; i < v->states.n && rc == 0; i++)
		for (const char *at = v->states.items[i];
			rc == 0 && options_list_word(&at, word);)
			rc = read_state(f, word, e);
	for (size_t i = 0; i < v->pids.n && rc == 0; i++)
		for (const char *at = v->pids.items[i];
			rc == 0 && options_list_word(&at, word);)
			if (word[strspn(word, "0123456789")])
				rc = err_set(e, ERR_USAGE, "--pid takes process ids, not '%s'",
					word);
	return rc;
}

/* Whether a card matches --state. */
static bool has_state(const struct filter *f, const struct present_card *card)
{
	if (card->gone)
		return false;
	if (!f->states && !f->statuses)
		return true;
	if (card->status != CARD_STATUS_OK)
		return f->statuses & 1U << card->status;
	return f->states & 1U << card->state;
}

static bool is_named(const char *word, const void *what)
{
	return card_is_named(word, what);
}

bool filter_card(const struct filter *f, const struct present_card *card)
{
	const struct text_list *ids = &f->values->ids;
	return has_state(f, card) && (!ids->n || options_list_any(ids, is_named, &card->id));
}

/* Adds the cards that one --id names to the `n` that are picked. Returns how many there are
 * then, or ERR_NOTHING. */
static int pick_id(const struct filter *f, const struct present *now, const char *id,
	size_t *picked, size_t n)
{
	bool named = false;
	for (size_t i = 0; i < now->n_cards; i++) {
		if (!card_is_named(id, &now->cards[i].id))
			continue;
		named = true;
		bool again = false;
		for (size_t k = 0; k < n; k++)
			again |= picked[k] == i;
		if (!again && has_state(f, &now->cards[i]))
			picked[n++] = i;
	}
	return named ? (int)n : ERR_NOTHING;
}

/* Orders cards by index and instance. In the source, new cards and instances come last. */
static bool comes_before(const struct card_id *a, const struct card_id *b)
{
	return a->index != b->index ? a->index < b->index : a->mig_index < b->mig_index;
}

/* Inserts a card among the `n` that are picked. */
static void put_in_order(
	const struct present_card *cards, size_t *picked, size_t n, size_t card)
{
	size_t at = n;
	for (; at > 0 && comes_before(&cards[card].id, &cards[picked[at - 1]].id); at--)
		picked[at] = picked[at - 1];
	picked[at] = card;
}

static int pick_all(const struct filter *f, const struct present *now, size_t *picked)
{
	const struct present_card *cards = now->cards;
	size_t n = 0;
	for (size_t i = 0; i < now->n_cards; i++)
		if (has_state(f, &cards[i]))
			put_in_order(cards, picked, n++, i);
	return (int)n;
}

int filter_cards(
	const struct filter *f, const struct present *now, size_t *picked, struct err *e)
{
	const struct text_list *ids = &f->values->ids;
	char word[TEXT_LIST_WORD_CAP];
	int n = 0;
	if (ids->n == 0)
		return pick_all(f, now, picked);
	for (size_t i = 0; i < ids->n; i++)
		for (const char *at = ids->items[i]; options_list_word(&at, word);) {
			n = pick_id(f, now, word, picked, (size_t)n);
			if (n < 0)
				return err_set(e, ERR_NOTHING,
					"card '%s' does not exist; gua smi -L lists the cards",
					word);
		}
	for (int i = 1; f->by_index && i < n; i++)
		put_in_order(now->cards, picked, (size_t)i, picked[i]);
	return n;
}

static bool is_user(const char *word, const void *what)
{
	const struct present_process *p = what;
	char *end = NULL;
	if (strcmp(word, p->id.user) == 0 || strcmp(word, process_shown_user(p->id.user)) == 0)
		return true;
	long long uid = strtoll(word, &end, 10);
	return *end == '\0' && uid == p->id.uid;
}

static bool is_pid(const char *word, const void *what)
{
	const struct present_process *p = what;
	return strtoul(word, NULL, 10) == p->id.pid;
}

bool filter_process(const struct filter *f, const struct present_process *p)
{
	const struct filter_values *v = f->values;
	if (v->users.n && !options_list_any(&v->users, is_user, p))
		return false;
	if (v->pids.n && !options_list_any(&v->pids, is_pid, p))
		return false;
	if (v->compute && p->kind == PROCESS_GRAPHICS)
		return false;
	/* Unknown memory may be any amount. */
	return f->min_mem_bytes < 0 || p->mem_bytes < 0 || p->mem_bytes >= f->min_mem_bytes;
}

bool filter_has_process(const struct filter *f)
{
	return f->values->users.n || f->values->pids.n || f->min_mem_bytes >= 0;
}

bool filter_on_card(const struct filter *f, const struct present *now, size_t card)
{
	const struct present_card *c = &now->cards[card];
	bool passes = !filter_has_process(f);
	for (size_t k = 0; k < c->n_processes && !passes; k++)
		passes = filter_process(f, &now->processes[c->first_process + k]);
	return passes;
}
