/* Finds, sorts and describes the holders of the cards. */
#include "view/who.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/size.h"
#include "base/timetext.h"
#include "present/holders.h"
#include "render/json.h"
#include "render/rows.h"

/* Order: longest idle first, then unknown, then active; then by card, most memory first. */
static int compare(const void *left, const void *right)
{
	const struct present_process *a = *(const struct present_process *const *)left;
	const struct present_process *b = *(const struct present_process *const *)right;
	int64_t since_a = holders_idle_order(a), since_b = holders_idle_order(b);
	if (since_a != since_b)
		return since_a < since_b ? -1 : 1;
	if (a->card != b->card)
		return a->card < b->card ? -1 : 1;
	if (a->mem_bytes != b->mem_bytes)
		return a->mem_bytes > b->mem_bytes ? -1 : 1;
	return a->id.pid < b->id.pid ? -1 : 1;
}

static bool is_wanted(
	const struct who_question *q, const struct present_process *p, int64_t now_ms)
{
	if (!p->holder || !filter_process(q->filter, p))
		return false;
	return q->idle_ms < 0 ||
	       (!p->active && p->idle_since_ms >= 0 && now_ms - p->idle_since_ms >= q->idle_ms);
}

int who_find(
	struct who *f, const struct present *now, const struct who_question *q, struct err *e)
{
	*f = (struct who){ .now = now };
	size_t *picked = calloc(now->n_cards + 1, sizeof(*picked));
	f->holders = calloc(now->n_processes + 1, sizeof(const struct present_process *));
	int n_picked =
		picked && f->holders ? filter_cards(q->filter, now, picked, e) : err_memory(e);
	for (int i = 0; i < n_picked; i++) {
		const struct present_card *c = &now->cards[picked[i]];
		for (size_t k = 0; k < c->n_processes; k++) {
			const struct present_process *p = &now->processes[c->first_process + k];
			if (is_wanted(q, p, now->now_ms))
				f->holders[f->n++] = p;
		}
	}
	free(picked);
	qsort(f->holders, f->holders ? f->n : 0, sizeof(const struct present_process *),
		compare);
	return n_picked < 0 ? n_picked : 0;
}

void who_finish(struct who *f)
{
	free(f->holders);
	*f = (struct who){ 0 };
}

/* The holders as rows of these columns. Call table_finish(). */
static struct table list(const struct who *w, const struct column *columns, size_t n)
{
	struct table t = { .columns = columns, .n_columns = n };
	struct holder_row row;
	for (size_t i = 0; i < w->n; i++) {
		holders_row(&row, w->now, w->holders[i]);
		table_add(&t, &row);
	}
	return t;
}

void who_text(struct str *out, const struct who *w, const struct text_style *style)
{
	struct column columns[HOLDER_COLUMNS_MAX];
	struct table t = list(w, columns, holders_text_columns(columns));
	text_add_table(out, &t, style);
	table_finish(&t);
}

void who_json(struct str *out, const struct who *w)
{
	struct json j = { .out = out, .lines = 2 };
	const struct present_host *host = &w->now->hosts[0];
	struct column columns[HOLDER_COLUMNS_MAX];
	struct table t = list(w, columns, holders_data_columns(columns, false));
	json_open(&j, NULL, '{');
	json_text(&j, "schema", "gua-who-1");
	json_text(&j, "host", host->hostname);
	json_moment(&j, "time", w->now->now_ms);
	json_text(&j, "note", *host->note ? host->note : NULL);
	json_moment(&j, "recorded_until", host->recorded_until_ms);
	json_table(&j, "holders", &t);
	json_close(&j, '}');
	table_finish(&t);
}

/* Adds a note about what could not be read of a card. */
static void add_card_note(struct str *out, const struct present_card *c)
{
	char card[CARD_LABEL_CAP], text[256], size[SIZE_TEXT_CAP];
	double orphan = c->values[METRIC_GUA_ORPHAN_MEMORY];
	card_label(card, sizeof(card), &c->id);
	if (c->status != CARD_STATUS_OK)
		str_addf(out, "card %s is %s: its holders are not known\n", card,
			card_status_names[c->status]);
	else if (!c->processes_known)
		str_addf(out, "the driver does not list the processes on card %s\n", card);
	else if (c->state == CARD_SUSPECT) {
		present_suspect_text(text, sizeof(text), c);
		str_addf(out, "%s\n", text);
	} else if (orphan >= (double)ORPHAN_LEAST_BYTES) {
		size_text(size, orphan);
		str_addf(out,
			"card %s has %s in use that no listed process explains: see man "
			"gua-memory\n",
			card, size);
	}
}

/* Whether options restrict the holders that are listed. */
static bool is_narrow(const struct who_question *q)
{
	const struct filter_values *v = q->filter->values;
	return q->idle_ms >= 0 || v->users.n || v->pids.n || v->ids.n || v->states.n ||
	       v->min_mem;
}

void who_notes(struct str *out, const struct who *f, const struct who_question *q, bool text)
{
	bool some_then = false;
	const char *note = f->now->hosts[0].note;
	const struct present_card *cards = f->now->cards;
	for (size_t i = 0; i < f->now->n_cards; i++)
		if (filter_card(q->filter, &cards[i]))
			add_card_note(out, &cards[i]);
	for (size_t i = 0; i < f->n; i++)
		some_then |= present_was_idle(f->holders[i]);
	if (*note)
		str_addf(out, "%s%s\n", note,
			some_then && text ? "; in brackets: how long it was idle then" : "");
	if (f->n == 0 && text)
		str_add(out,
			is_narrow(q) ? "no process matches\n" : "no process holds a card\n");
}
