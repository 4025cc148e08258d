/* Answers with the cards and their holders at the last tick of each store. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/card_name.h"
#include "query/board.h"
#include "render/json.h"
#include "serve/api.h"
#include "serve/params.h"
#include "serve/world.h"

/* How long a request waits for a locked store. */
enum { WAIT_MS = 2000 };

/* Reads the boards of all stores; false: the answer says why that failed. */
static bool read_board(const struct request *q, struct answer *a, struct board *b)
{
	struct err e = { 0 };
	int rc = 0;
	for (size_t i = 0; i < q->world->stores->n && rc == 0; i++)
		rc = board_add(b, q->world->stores->paths[i], q->now_ms, WAIT_MS, &e);
	if (rc)
		answer_err(a, q, &e);
	return rc == 0;
}

/* A text; "" and NULL are null. */
static void add_label(struct json *j, const char *key, const char *text)
{
	json_text(j, key, text && *text ? text : NULL);
}

static void add_known(struct json *j, const char *key, int64_t number)
{
	json_number(j, key, number < 0 ? NAN : (double)number, 0);
}

static void add_card_id(struct json *j, const struct card_id *id)
{
	json_number(j, "card", id->index, 0);
	add_known(j, "mig_index", id->mig_index);
	json_text(j, "uuid", id->uuid);
}

/* The members that documents of the command `gua who` have, too. */
static void add_holder(
	struct json *j, const struct board *b, const struct board_holder *h, int64_t now_ms)
{
	const struct board_card *c = &b->cards[h->card];
	bool idle = !h->active && h->idle_since_ms >= 0;
	json_open(j, NULL, '{');
	json_text(j, "host", b->hosts[c->host].hostname);
	json_text(j, "user", h->user);
	json_number(j, "pid", h->pid, 0);
	add_card_id(j, &c->id);
	json_text(j, "card_state", card_state_names[c->state]);
	add_known(j, "mem_bytes", h->mem_bytes);
	add_label(j, "context", context_texts[h->context]);
	if (h->active || idle)
		json_bool(j, "active", h->active);
	else
		json_text(j, "active", NULL);
	json_moment(j, "idle_since", idle ? h->idle_since_ms : -1);
	json_number(
		j, "idle_seconds", idle ? (double)(now_ms - h->idle_since_ms) / 1000 : NAN, 3);
	json_bool(j, "idle_is_lower_bound", idle && h->idle_longer);
	json_moment(j, "held_since", h->since_ms);
	for (size_t i = 0; i < PROCESS_TEXTS; i++)
		add_label(j, process_fields[i].name, h->texts[i]);
	json_close(j, '}');
}

static void add_host(struct json *j, const struct board_host *h)
{
	json_open(j, NULL, '{');
	json_text(j, "host", h->hostname);
	add_label(j, "driver", h->driver);
	add_label(j, "source", h->source);
	json_bool(j, "simulated", h->simulated);
	json_bool(j, "fresh", !h->stale);
	json_moment(j, "last_tick", h->last_tick_ms);
	json_number(j, "interval_seconds", (double)h->interval_ms / 1000, 3);
	json_close(j, '}');
}

static void add_card(struct json *j, const struct board *b, const struct board_card *c)
{
	json_open(j, NULL, '{');
	json_text(j, "host", b->hosts[c->host].hostname);
	add_card_id(j, &c->id);
	json_text(j, "name", c->id.name);
	add_label(j, "pci", c->id.pci);
	json_text(j, "status", c->status);
	json_moment(j, "last_seen", c->last_seen_ms);
	json_text(j, "state", card_state_names[c->state]);
	json_moment(j, "state_since", c->state_since_ms);
	json_bool(j, "state_since_is_lower_bound", c->state_longer);
	json_number(j, "util_pct", c->now.util_pct, 1);
	json_number(j, "power_w", c->now.power_w, 1);
	json_number(j, "temperature_c", c->now.temperature_c, 0);
	add_known(j, "mem_used_bytes", c->now.mem_used_bytes);
	add_known(j, "mem_total_bytes", c->id.mem_total_bytes);
	json_number(j, "holders", (double)c->n_holders, 0);
	json_close(j, '}');
}

/* Which holders are wanted, as the options of `gua who` say. */
struct who_params {
	struct text_list users, cards;
	int64_t idle_ms; /* -1: any */
};

#define AT(member) .offset = offsetof(struct who_params, member)
static const struct option_row who_rows[] = {
	{ .kind = OPTION_LIST, .name = "user", AT(users) },
	{ .kind = OPTION_LIST, .name = "card", AT(cards) },
	{ .kind = OPTION_DURATION, .name = "idle", AT(idle_ms) },
	{ 0 },
};

static bool is_name(const char *word, const void *name)
{
	return strcmp(word, name) == 0;
}

static bool names_card(const char *word, const void *card)
{
	return card_is_named(word, card);
}

static bool is_wanted(const struct who_params *p, const struct board *b,
	const struct board_holder *h, int64_t now_ms)
{
	const struct card_id *id = &b->cards[h->card].id;
	if (p->users.n && !text_list_any(&p->users, is_name, h->user))
		return false;
	if (p->cards.n && !text_list_any(&p->cards, names_card, id))
		return false;
	return p->idle_ms < 0 ||
	       (!h->active && h->idle_since_ms >= 0 && now_ms - h->idle_since_ms >= p->idle_ms);
}

static void add_holders(struct json *j, const struct board *b, const struct who_params *p,
	const struct request *q)
{
	json_open(j, "holders", '[');
	for (size_t i = 0; i < b->n_holders; i++)
		if (is_wanted(p, b, &b->holders[i], q->now_ms))
			add_holder(j, b, &b->holders[i], q->now_ms);
	json_close(j, ']');
}

void api_now(const struct request *q, struct answer *a)
{
	const struct who_params all = { .idle_ms = -1 };
	struct board b = { 0 };
	struct json j = { .out = &a->body, .lines = 2 };
	if (read_board(q, a, &b)) {
		json_open(&j, NULL, '{');
		json_text(&j, "schema", "gua-now-1");
		json_moment(&j, "time", q->now_ms);
		json_open(&j, "hosts", '[');
		for (size_t i = 0; i < b.n_hosts; i++)
			add_host(&j, &b.hosts[i]);
		json_close(&j, ']');
		json_open(&j, "cards", '[');
		for (size_t i = 0; i < b.n_cards; i++)
			add_card(&j, &b, &b.cards[i]);
		json_close(&j, ']');
		add_holders(&j, &b, &all, q);
		json_close(&j, '}');
	}
	board_finish(&b);
}

/* Why the holders are not those of the present; NULL: they are. */
static const char *note_of(const struct board *b)
{
	for (size_t i = 0; i < b->n_hosts; i++)
		if (b->hosts[i].stale)
			return b->hosts[i].any_run
				       ? "the recorder does not run: these were the holders at "
					 "its last tick"
				       : "nothing has been recorded yet";
	return NULL;
}

void api_who(const struct request *q, struct answer *a)
{
	struct who_params p = { .idle_ms = -1 };
	struct board b = { 0 };
	struct json j = { .out = &a->body, .lines = 2 };
	struct err e = { 0 };
	if (params_read(q, who_rows, &p, &e) != 0)
		answer_err(a, q, &e);
	else if (read_board(q, a, &b)) {
		json_open(&j, NULL, '{');
		json_text(&j, "schema", "gua-who-1");
		json_text(&j, "host", b.n_hosts == 1 ? b.hosts[0].hostname : NULL);
		json_moment(&j, "time", q->now_ms);
		json_text(&j, "note", note_of(&b));
		json_moment(&j, "recorded_until",
			b.n_hosts == 1 && b.hosts[0].stale ? b.hosts[0].last_tick_ms : -1);
		add_holders(&j, &b, &p, q);
		json_close(&j, '}');
	}
	board_finish(&b);
}
