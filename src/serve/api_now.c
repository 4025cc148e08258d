/* Answers with the cards and their holders at the last tick of each store. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/card_name.h"
#include "model/table.h"
#include "present/board.h"
#include "render/json.h"
#include "render/rows.h"
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

/* A holder, with the members that it has in documents of the command `gua who`. Moments are -1,
 * texts NULL where they are not known. */
struct holder_line {
	const char *host, *user, *uuid, *state, *context, *texts[PROCESS_TEXTS];
	int64_t uid, pid, card, mig_index;
	double mem_kib, active, sm_pct, idle_ms, idle_longer, was_idle_longer;
	int64_t idle_since_ms, was_idle_since_ms, last_active_ms, held_since_ms, started_ms;
};

#define OF(member) .of = offsetof(struct holder_line, member)
#define TEXT(name, member)                                                                     \
	{                                                                                      \
		.key = name, .kind = COLUMN_TEXT, .get = get_string, OF(member)                \
	}
#define WHOLE(name, what, member)                                                              \
	{                                                                                      \
		.key = name, .kind = COLUMN_##what, .get = get_known, OF(member)               \
	}
#define NUMBER(name, what, member)                                                             \
	{                                                                                      \
		.key = name, .kind = COLUMN_##what, .get = get_double, OF(member)              \
	}
static const struct column holder_columns[] = {
	TEXT("host", host),
	TEXT("user", user),
	WHOLE("uid", COUNT, uid),
	WHOLE("pid", COUNT, pid),
	WHOLE("card", COUNT, card),
	WHOLE("mig_index", COUNT, mig_index),
	TEXT("uuid", uuid),
	TEXT("card_state", state),
	NUMBER("mem_bytes", KIB, mem_kib),
	TEXT("context", context),
	NUMBER("active", BOOL, active),
	NUMBER("sm_pct", PCT, sm_pct),
	WHOLE("idle_since", MOMENT, idle_since_ms),
	NUMBER("idle_seconds", MS, idle_ms),
	NUMBER("idle_is_lower_bound", BOOL, idle_longer),
	WHOLE("was_idle_since", MOMENT, was_idle_since_ms),
	NUMBER("was_idle_is_lower_bound", BOOL, was_idle_longer),
	WHOLE("last_active", MOMENT, last_active_ms),
	WHOLE("held_since", MOMENT, held_since_ms),
	WHOLE("started", MOMENT, started_ms),
	TEXT("command", texts[PROCESS_COMMAND]),
	TEXT("notebook", texts[PROCESS_NOTEBOOK]),
	TEXT("notebook_path", texts[PROCESS_NOTEBOOK_PATH]),
	TEXT("job", texts[PROCESS_JOB]),
	TEXT("job_name", texts[PROCESS_JOB_NAME]),
	TEXT("account", texts[PROCESS_ACCOUNT]),
	TEXT("container", texts[PROCESS_CONTAINER]),
	TEXT("pod", texts[PROCESS_POD]),
	TEXT("unit", texts[PROCESS_UNIT]),
	TEXT("login", texts[PROCESS_LOGIN]),
	TEXT("session", texts[PROCESS_SESSION]),
	TEXT("parents", texts[PROCESS_PARENTS]),
	TEXT("python_env", texts[PROCESS_PYTHON_ENV]),
	TEXT("tag", texts[PROCESS_TAG]),
};
#undef OF

static const char *text_or_null(const char *text)
{
	return text && *text ? text : NULL;
}

/* What a recorder that is silent saw last is what was: nobody knows what is. */
static void take_idle(
	struct holder_line *line, const struct board_holder *h, bool stale, int64_t now_ms)
{
	line->active = h->active ? 1 : h->idle_since_ms >= 0 ? 0 : NAN;
	line->idle_since_ms = line->was_idle_since_ms = -1;
	line->idle_ms = NAN;
	if (h->active || h->idle_since_ms < 0)
		return;
	if (stale) {
		line->was_idle_since_ms = h->idle_since_ms;
		line->was_idle_longer = h->idle_longer;
		return;
	}
	line->idle_since_ms = h->idle_since_ms;
	line->idle_ms = (double)(now_ms - h->idle_since_ms);
	line->idle_longer = h->idle_longer;
}

static void add_holder(
	struct table *t, const struct board *b, const struct board_holder *h, int64_t now_ms)
{
	const struct board_card *c = &b->cards[h->card];
	const struct board_host *host = &b->hosts[c->host];
	struct holder_line line = { .host = host->hostname,
		.user = h->user,
		.uid = h->uid,
		.pid = h->pid,
		.card = c->id.index,
		.mig_index = c->id.mig_index,
		.uuid = c->id.uuid,
		.state = card_state_names[c->state],
		.mem_kib = h->mem_bytes < 0 ? NAN : (double)h->mem_bytes / 1024,
		.context = text_or_null(context_texts[h->context]),
		.sm_pct = NAN, /* the store has the use of a card only */
		.last_active_ms = h->last_active_ms,
		.held_since_ms = h->since_ms,
		.started_ms = h->started_ms };
	for (size_t i = 0; i < PROCESS_TEXTS; i++)
		line.texts[i] = text_or_null(h->texts[i]);
	take_idle(&line, h, host->stale, now_ms);
	table_add(t, &line);
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

/* The holders that are wanted. Call table_finish(). */
static struct table list_holders(
	const struct board *b, const struct who_params *p, const struct request *q)
{
	struct table t = { .columns = holder_columns,
		.n_columns = sizeof(holder_columns) / sizeof(holder_columns[0]) };
	for (size_t i = 0; i < b->n_holders; i++)
		if (is_wanted(p, b, &b->holders[i], q->now_ms))
			add_holder(&t, b, &b->holders[i], q->now_ms);
	return t;
}

static void add_holders(struct json *j, const struct board *b, const struct who_params *p,
	const struct request *q)
{
	struct table t = list_holders(b, p, q);
	json_table(j, "holders", &t);
	table_finish(&t);
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

void api_who_csv(const struct request *q, struct answer *a)
{
	struct who_params p = { .idle_ms = -1 };
	struct board b = { 0 };
	struct err e = { 0 };
	if (params_read(q, who_rows, &p, &e) != 0)
		answer_err(a, q, &e);
	else if (read_board(q, a, &b)) {
		struct table t = list_holders(&b, &p, q);
		rows_table(&a->body, &t);
		table_finish(&t);
	}
	board_finish(&b);
}
