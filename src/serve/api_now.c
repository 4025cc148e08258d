/* Answers with the cards and their holders at the last tick of each store. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/card_name.h"
#include "model/table.h"
#include "present/holders.h"
#include "present/present_store.h"
#include "render/json.h"
#include "render/rows.h"
#include "serve/api.h"
#include "serve/params.h"
#include "serve/world.h"

/* How long a request waits for a locked store. */
enum { WAIT_MS = 2000 };

/* Reads the present of all stores; false: the answer says why that failed. */
static bool read_present(const struct request *q, struct answer *a, struct present *now)
{
	struct err e = { 0 };
	int rc = 0;
	for (size_t i = 0; i < q->world->stores->n && rc == 0; i++)
		rc = present_store_add(now, q->world->stores->paths[i], q->now_ms, WAIT_MS, &e);
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

static void add_host(struct json *j, const struct present_host *h)
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

static void add_card(struct json *j, const struct present *now, const struct present_card *c)
{
	json_open(j, NULL, '{');
	json_text(j, "host", now->hosts[c->host].hostname);
	add_card_id(j, &c->id);
	json_text(j, "name", c->id.name);
	add_label(j, "pci", c->id.pci);
	json_text(j, "status", card_status_names[c->status]);
	json_moment(j, "last_seen", c->last_seen_ms);
	json_text(j, "state", card_state_names[c->state]);
	json_moment(j, "state_since", c->state_since_ms);
	json_bool(j, "state_since_is_lower_bound", c->state_longer);
	json_number(j, "util_pct", c->values[METRIC_UTILIZATION_GPU], 1);
	json_number(j, "power_w", c->values[METRIC_POWER_DRAW], 1);
	json_number(j, "temperature_c", c->values[METRIC_TEMPERATURE_GPU], 0);
	json_number(j, "mem_used_bytes", c->values[METRIC_MEMORY_USED], 0);
	add_known(j, "mem_total_bytes", c->id.mem_total_bytes);
	json_number(j, "holders", (double)c->n_processes, 0);
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

static bool is_wanted(
	const struct who_params *p, const struct present *now, const struct present_process *h)
{
	const struct card_id *id = &now->cards[h->card].id;
	if (p->users.n && !text_list_any(&p->users, is_name, h->id.user))
		return false;
	if (p->cards.n && !text_list_any(&p->cards, names_card, id))
		return false;
	return p->idle_ms < 0 || (!h->active && h->idle_since_ms >= 0 &&
					 now->now_ms - h->idle_since_ms >= p->idle_ms);
}

/* The holders that are wanted; `columns` must outlive the table. Call table_finish(). */
static struct table list_holders(const struct present *now, const struct who_params *p,
	struct column columns[HOLDER_COLUMNS_MAX])
{
	struct table t = { .columns = columns,
		.n_columns = holders_data_columns(columns, true) };
	struct holder_row row;
	for (size_t i = 0; i < now->n_processes; i++) {
		if (!is_wanted(p, now, &now->processes[i]))
			continue;
		holders_row(&row, now, &now->processes[i]);
		table_add(&t, &row);
	}
	return t;
}

static void add_holders(struct json *j, const struct present *now, const struct who_params *p)
{
	struct column columns[HOLDER_COLUMNS_MAX];
	struct table t = list_holders(now, p, columns);
	json_table(j, "holders", &t);
	table_finish(&t);
}

void api_now(const struct request *q, struct answer *a)
{
	const struct who_params all = { .idle_ms = -1 };
	struct present now = { 0 };
	struct json j = { .out = &a->body, .lines = 2 };
	if (read_present(q, a, &now)) {
		json_open(&j, NULL, '{');
		json_text(&j, "schema", "gua-now-1");
		json_moment(&j, "time", q->now_ms);
		json_open(&j, "hosts", '[');
		for (size_t i = 0; i < now.n_hosts; i++)
			add_host(&j, &now.hosts[i]);
		json_close(&j, ']');
		json_open(&j, "cards", '[');
		for (size_t i = 0; i < now.n_cards; i++)
			add_card(&j, &now, &now.cards[i]);
		json_close(&j, ']');
		add_holders(&j, &now, &all);
		json_close(&j, '}');
	}
	present_store_finish(&now);
}

/* Why the holders are not those of the present; NULL: they are. */
static const char *note_of(const struct present *now)
{
	for (size_t i = 0; i < now->n_hosts; i++)
		if (now->hosts[i].stale)
			return now->hosts[i].any_run
				       ? "the recorder does not run: these were the holders at "
					 "its last tick"
				       : "nothing has been recorded yet";
	return NULL;
}

void api_who(const struct request *q, struct answer *a)
{
	struct who_params p = { .idle_ms = -1 };
	struct present now = { 0 };
	struct json j = { .out = &a->body, .lines = 2 };
	struct err e = { 0 };
	if (params_read(q, who_rows, &p, &e) != 0)
		answer_err(a, q, &e);
	else if (read_present(q, a, &now)) {
		json_open(&j, NULL, '{');
		json_text(&j, "schema", "gua-who-1");
		json_text(&j, "host", now.n_hosts == 1 ? now.hosts[0].hostname : NULL);
		json_moment(&j, "time", q->now_ms);
		json_text(&j, "note", note_of(&now));
		json_moment(&j, "recorded_until",
			now.n_hosts == 1 && now.hosts[0].stale ? now.hosts[0].last_tick_ms
							       : -1);
		add_holders(&j, &now, &p);
		json_close(&j, '}');
	}
	present_store_finish(&now);
}

void api_who_csv(const struct request *q, struct answer *a)
{
	struct who_params p = { .idle_ms = -1 };
	struct present now = { 0 };
	struct err e = { 0 };
	if (params_read(q, who_rows, &p, &e) != 0)
		answer_err(a, q, &e);
	else if (read_present(q, a, &now)) {
		struct column columns[HOLDER_COLUMNS_MAX];
		struct table t = list_holders(&now, &p, columns);
		rows_table(&a->body, &t);
		table_finish(&t);
	}
	present_store_finish(&now);
}
