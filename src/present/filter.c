/* Matches cards and processes against the filter options. */
#include "present/filter.h"

#include <ctype.h>

#include "model/card.h"

/* Appends "idle-held " for "idle_held". */
static void add_name(struct str *out, const char *key)
{
	for (; *key; key++)
		str_add_bytes(out, *key == '_' ? "-" : key, 1);
	str_add(out, " ");
}

void filter_states(struct str *out)
{
	for (size_t i = 0; i < CARD_SHOWN_STATES; i++)
		add_name(out, state_looks[state_order[i]].key);
	for (size_t i = CARD_STATUS_OK + 1; i < CARD_STATUS_COUNT; i++)
		add_name(out, card_status_names[i]);
}

/* Whether the user wrote this key: "idle_held", "idle-held", "Idle-Held". */
static bool is_key(const char *word, const char *key)
{
	for (; *word && *key; word++, key++)
		if ((*word == '-' ? '_' : tolower((unsigned char)*word)) != *key)
			return false;
	return *word == *key;
}

static int read_state(struct filter *f, const char *word, struct err *e)
{
	struct str names = { 0 };
	if (strcasecmp(word, "held") == 0)
		word = state_looks[CARD_IDLE_HELD].key;
	else if (strcasecmp(word, "free") == 0)
		word = state_looks[CARD_TRULY_IDLE].key;
	for (size_t i = 0; i < CARD_SHOWN_STATES; i++)
		if (is_key(word, state_looks[i].key)) {
			f->states |= 1U << i;
			return 0;
		}
	for (size_t i = CARD_STATUS_OK + 1; i < CARD_STATUS_COUNT; i++)
		if (is_key(word, card_status_names[i])) {
			f->statuses |= 1U << i;
			return 0;
		}
	filter_states(&names);
	err_set(e, ERR_USAGE, "--state must be one of %s(not '%s')", str_text(&names), word);
	str_finish(&names);
	return e->code;
}

int filter_init(struct filter *f, const struct filter_values *v, struct err *e)
{
	const struct {
		const char *option;
		const struct text_list *list;
	} lists[] = { { "user", &v->users }, { "pid", &v->pids }, { "job", &v->jobs },
		{ "id", &v->ids }, { "state", &v->states } };
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

bool filter_card(const struct filter *f, const struct present_card *card)
{
	return has_state(f, card) &&
	       options_list_takes(&f->values->ids, card_matches, &card->id);
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

static bool is_job(const char *word, const void *what)
{
	const struct process_id *id = &((const struct present_process *)what)->id;
	return process_is_job(word, id->job) || process_is_job(word, id->origin.job_task);
}

bool filter_process(const struct filter *f, const struct present_process *p)
{
	const struct filter_values *v = f->values;
	if (!options_list_takes(&v->users, is_user, p))
		return false;
	if (!options_list_takes(&v->pids, is_pid, p))
		return false;
	if (!options_list_takes(&v->jobs, is_job, p))
		return false;
	if (v->compute && p->kind == PROCESS_GRAPHICS)
		return false;
	/* Unknown memory may be any amount. */
	return f->min_mem_bytes < 0 || p->mem_bytes < 0 || p->mem_bytes >= f->min_mem_bytes;
}

bool filter_has_process(const struct filter *f)
{
	return f->values->users.n || f->values->pids.n || f->values->jobs.n ||
	       f->min_mem_bytes >= 0;
}

bool filter_on_card(const struct filter *f, const struct present *now, size_t card)
{
	const struct present_card *c = &now->cards[card];
	bool passes = !filter_has_process(f);
	for (size_t k = 0; k < c->n_processes && !passes; k++)
		passes = filter_process(f, &now->processes[c->first_process + k]);
	return passes;
}
