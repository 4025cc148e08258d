/* Hands a round, and the patrol before it, to the helper of a source, and takes the rounds that
 * it has made.
 *
 * A request: whether power is wanted, flags of the round (ROUND_DRAIN ...), the cards (number;
 * flags and memory of each), the patrol (struct patrol). An answer: rounds until it ends. Each
 * is 0, or the failure (code, text, number) that is the last; flags; moments and costs; the
 * state of the source; and the flags of its cards, with what changes slowly if all were looked
 * at. */
#include "driver/host/apart_round.h"

#include <math.h>

#include "driver/host/apart_source.h"

/* No host has been up for a million years. */
#define TIME_MOST (INT64_MAX / 4)

static unsigned flags_of(const struct round *r)
{
	return (r->drain ? ROUND_DRAIN : 0U) | (r->shared ? ROUND_SHARED : 0U) |
	       (r->look_all ? ROUND_LOOK_ALL : 0U) | (r->energy ? ROUND_ENERGY : 0U);
}

/* What the round wants of a card of the helper. One that has no place was not seen yet. */
static void add_card(struct str *out, const struct round *r, size_t place)
{
	struct round_card c = { .want = true, .mem_bytes = UNKNOWN_BYTES };
	if (place < r->n_cards)
		c = r->cards[place];
	unsigned char flags =
		(c.want ? ROUND_CARD_WANT : 0) | (c.shared ? ROUND_CARD_SHARED : 0);
	wire_write(out, &flags, 1);
	wire_write_number(out, c.mem_bytes);
}

static void write_request(struct apart_source *s, const struct round *r)
{
	struct str *out = apart_source_begin(s, APART_ROUND);
	wire_write_number(out, s->base.want_power);
	wire_write_number(out, flags_of(r));
	wire_write_number(out, (int64_t)s->n_at);
	for (size_t i = 0; i < s->n_at; i++)
		add_card(out, r, s->at[i]);
	wire_write(out, &r->patrol, sizeof(r->patrol));
}

int apart_round(struct source *base, struct round *r, struct err *e)
{
	struct apart_source *s = (struct apart_source *)base;
	const struct str *reply = NULL;
	int64_t left_us = r->patrol.until_us - clock_now(r->clock).boot_us;
	s->rounds = (struct wire){ 0 };
	if (r->scan) {
		int rc = source_scan(base, e);
		if (rc)
			return rc;
	}
	write_request(s, r);
	site_patrol(s->site, left_us > 0 && !clock_is_virtual(r->clock) ? left_us : 0);
	int rc = site_ask(s->site, &s->request, &reply, e);
	if (rc && !s->site->helper)
		apart_source_forget(s);
	if (!rc)
		s->rounds = (struct wire){ .bytes = str_text(reply), .left = reply->len };
	return rc;
}

static int read_failure(struct wire *in, int code, struct err *e)
{
	char text[sizeof(e->text)];
	wire_read_text(in, text, sizeof(text));
	int number = (int)wire_read_number(in, INT32_MIN, INT32_MAX);
	return err_number(e, err_set(e, code, "%s", text), number);
}

static void read_results(struct wire *in, struct round *r)
{
	int64_t *const times[] = { &r->begun_us, &r->ended_us, &r->begun_ms, &r->ended_ms,
		&r->energy_ms, &r->cost_us, &r->shared_cost_us, &r->energy_cost_us };
	unsigned flags = (unsigned)wire_read_number(in, 0, ROUND_FLAGS - 1);
	r->drain = flags & ROUND_DRAIN;
	r->shared = flags & ROUND_SHARED;
	r->look_all = flags & ROUND_LOOK_ALL;
	r->energy = flags & ROUND_ENERGY;
	r->drained = flags & ROUND_DRAINED;
	r->glanced = flags & ROUND_GLANCED;
	r->looks = flags & ROUND_LOOKS;
	r->due = flags & ROUND_DUE;
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		*times[i] = wire_read_number(in, -TIME_MOST, TIME_MOST);
}

/* Takes the results of a card. What was asked for since the round was made is still wanted,
 * unless the round has just done it. */
static void take_card(struct round_card *c, const struct card_reading *r, unsigned char flags)
{
	bool want = flags & ROUND_CARD_WANT;
	c->drained = flags & ROUND_CARD_DRAINED;
	c->looked = flags & ROUND_CARD_LOOKED;
	c->want = c->looked ? want : c->want || want;
	if (c->looked)
		c->mem_bytes = r->mem_used_bytes;
}

/* What the round would have done with a card that the helper does not have: it is lost. */
static unsigned char flags_of_lost(const struct round *r, const struct round_card *c)
{
	bool drained = r->drain || (r->shared && c->shared);
	bool looked = r->looks && r->look_all;
	return ROUND_CARD_WANT | (drained ? ROUND_CARD_DRAINED : 0) |
	       (looked ? ROUND_CARD_LOOKED : 0);
}

static void read_cards(struct apart_source *s, struct wire *in, struct round *r)
{
	for (size_t i = 0; i < s->n_at && !in->bad; i++) {
		struct round_card unused = { 0 };
		struct round_card *c = s->at[i] == NOWHERE ? &unused : &r->cards[s->at[i]];
		unsigned char flags = 0;
		wire_read(in, &flags, 1);
		take_card(c, &s->mirror.source.cards[i], flags);
		if (!r->look_all)
			continue;
		wire_read(in, &c->temperature_c, sizeof(c->temperature_c));
		wire_read(in, &c->power_limit_w, sizeof(c->power_limit_w));
	}
	for (size_t i = 0; i < s->base.n_cards; i++) {
		struct round_card *c = &r->cards[i];
		if (apart_source_has(s, i))
			continue;
		take_card(c, &s->base.cards[i], flags_of_lost(r, c));
		c->temperature_c = c->power_limit_w = NAN;
	}
}

int apart_round_next(struct source *base, struct round *r, struct err *e)
{
	struct apart_source *s = (struct apart_source *)base;
	struct wire *in = &s->rounds;
	if (!in->left)
		return 0;
	int rc = (int)wire_read_number(in, ERR_NOTHING, 0);
	if (rc) {
		rc = read_failure(in, rc, e);
	} else {
		read_results(in, r);
		if (apart_source_read(s, in))
			rc = round_reserve(r, base->n_cards, e);
		if (!in->bad && !rc)
			read_cards(s, in, r);
	}
	if (in->bad)
		return apart_source_refuse(s, e);
	if (rc)
		in->left = 0;
	r->more = in->left > 0;
	return rc ? rc : 1;
}
