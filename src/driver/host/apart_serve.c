/* The process that opens a source and serves its calls. */
#include "driver/host/apart_serve.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "driver/host/apart_wire.h"
#include "driver/source.h"

void apart_begin(void *context, struct helper_place *unused)
{
	struct apart_serving *v = context;
	(void)unused;
	v->sent = calloc(1, sizeof(*v->sent));
	v->options.avoids = &v->avoids;
	v->cost_us = clock_cost_us(v->options.clock);
}

void apart_end(void *context)
{
	struct apart_serving *v = context;
	source_close(v->source);
}

static void read_avoids(struct apart_serving *v, struct wire *in)
{
	v->avoids.n = (size_t)wire_read_number(in, 0, SOURCE_AVOID_MAX);
	for (size_t i = 0; i < v->avoids.n; i++) {
		struct source_avoid *one = &v->avoids.cards[i];
		one->index = (int)wire_read_number(in, 0, INT32_MAX);
		wire_read_text(in, one->pci, sizeof(one->pci));
	}
}

/* Flags of the cards that this process has; NULL: all. */
static const bool *read_flags(struct apart_serving *v, struct wire *in)
{
	size_t n_cards = v->source->n_cards;
	int64_t n = wire_read_number(in, APART_ALL, (int64_t)n_cards);
	if (n == APART_ALL || !array_reserve(&v->flags, &v->cap_flags, n_cards + 1))
		return NULL;
	for (size_t i = 0; i < n_cards; i++) {
		unsigned char flag = 0;
		if ((int64_t)i < n)
			wire_read(in, &flag, 1);
		v->flags[i] = flag != 0;
	}
	return v->flags;
}

static int call_source(struct apart_serving *v, enum apart_call call, struct wire *in,
	struct wire_fresh *fresh, struct err *e)
{
	struct source *s = v->source;
	switch (call) {
	case APART_SCAN:
		read_avoids(v, in);
		fresh->drained = fresh->looked = true;
		return source_scan(s, e);
	case APART_DRAIN:
		s->want_power = wire_read_number(in, 0, 1) != 0;
		fresh->drained_cards = read_flags(v, in);
		fresh->drained = true;
		return source_drain(s, fresh->drained_cards, e);
	case APART_GLANCE:
		return source_glance(s, (unsigned)wire_read_number(in, 0, UINT16_MAX), e);
	case APART_LOOK:
		fresh->looked_cards = read_flags(v, in);
		fresh->looked = true;
		return source_look(s, fresh->looked_cards, e);
	default:
		return 0;
	}
}

static int open_source(struct apart_serving *v, struct wire *in, struct err *e)
{
	read_avoids(v, in);
	int rc = v->kind->open(&v->source, &v->options, e);
	if (rc)
		v->source = NULL;
	return rc;
}

static void answer_metrics(struct apart_serving *v, struct wire *in, struct str *reply)
{
	unsigned char wanted[METRIC_COUNT];
	double values[METRIC_COUNT];
	metric_texts texts;
	struct source *s = v->source;
	struct metric_request request = { .wanted = wanted };
	request.card = (size_t)wire_read_number(in, 0, (int64_t)s->n_cards - 1);
	request.board = wire_read_number(in, 0, 1) != 0;
	wire_read(in, wanted, sizeof(wanted));
	wire_read(in, values, sizeof(values));
	wire_read(in, texts, sizeof(texts));
	if (!in->bad && s->ops->metrics)
		s->ops->metrics(s, &request, values, texts);
	wire_write(reply, values, sizeof(values));
	wire_write(reply, texts, sizeof(texts));
}

static void answer_board(struct apart_serving *v, struct wire *in, struct str *reply)
{
	struct source *s = v->source;
	size_t card = (size_t)wire_read_number(in, 0, (int64_t)s->n_cards - 1);
	struct card_id id = { 0 };
	if (in->bad)
		return;
	id = s->cards[card].id;
	if (s->ops->board)
		s->ops->board(s, card, &id);
	wire_write_id(reply, &id);
}

static void answer_accounts(struct apart_serving *v, struct wire *in, struct str *reply)
{
	struct source *s = v->source;
	size_t card = (size_t)wire_read_number(in, 0, (int64_t)s->n_cards - 1);
	size_t max = (size_t)wire_read_number(in, 0, APART_ACCOUNTS_MAX), n = 0;
	struct process_account *found = calloc(max + 1, sizeof(*found));
	if (!in->bad && found && s->ops->accounts)
		n = s->ops->accounts(s, card, found, max);
	wire_write_number(reply, (int64_t)n);
	wire_write(reply, found, n * sizeof(*found));
	reply->failed |= !found;
	free(found);
}

static void answer_facilities(struct apart_serving *v, struct str *reply)
{
	struct facility rows[APART_FACILITIES_MAX];
	size_t n = v->source->ops->facilities(v->source, rows, APART_FACILITIES_MAX);
	wire_write_number(reply, (int64_t)n);
	for (size_t i = 0; i < n; i++) {
		wire_write_text(reply, rows[i].job);
		wire_write_text(reply, rows[i].how);
		wire_write_text(reply, rows[i].note);
		wire_write_number(reply, rows[i].fallback);
		wire_write_number(reply, rows[i].works);
	}
}

static void answer(
	struct apart_serving *v, enum apart_call call, struct wire *in, struct str *reply)
{
	if (call == APART_METRICS)
		answer_metrics(v, in, reply);
	if (call == APART_BOARD)
		answer_board(v, in, reply);
	if (call == APART_ACCOUNTS)
		answer_accounts(v, in, reply);
	if (call == APART_FACILITIES)
		answer_facilities(v, reply);
}

static void serve_call(
	struct apart_serving *v, enum apart_call call, struct wire *in, struct str *reply)
{
	struct wire_fresh fresh = { 0 };
	struct str answered = { 0 };
	struct err e = { 0 };
	int rc = call == APART_OPEN ? open_source(v, in, &e) : 0;
	if (!v->source && !rc)
		rc = err_set(&e, ERR_WORLD, "the source is not open");
	if (!rc && call != APART_OPEN)
		rc = call_source(v, call, in, &fresh, &e);
	if (v->source && !rc)
		answer(v, call, in, &answered);
	int64_t wall_ms = clock_wall_ms(v->options.clock);
	wire_write_number(reply, rc);
	wire_write_text(reply, e.text);
	wire_write_number(reply, e.number);
	wire_write_number(reply, v->source != NULL);
	if (v->source)
		wire_write_source(reply, v->source, v->sent, &fresh);
	wire_write(reply, str_text(&answered), answered.len);
	reply->failed |= answered.failed;
	str_finish(&answered);
	int64_t cost_us = clock_cost_us(v->options.clock);
	wire_write_number(reply, cost_us - v->cost_us);
	wire_write_number(reply, wall_ms);
	v->cost_us = cost_us;
}

void apart_serve(void *context, const struct str *request, struct str *reply)
{
	struct apart_serving *v = context;
	struct wire in = { .bytes = str_text(request), .left = request->len };
	enum apart_call call = (enum apart_call)wire_read_number(&in, 0, APART_CALLS - 1);
	if (call == APART_ROUND)
		apart_serve_round(v, &in, reply);
	else
		serve_call(v, call, &in, reply);
	source_place_set(v->options.place, -1, "");
}
