/* Prints one series after the other, a sample at each step. */
#include "export/backfill.h"

#include "export/exposition.h"

enum { FLUSH_BYTES = 64 * 1024 };

/* What is printed now. */
struct filling {
	struct str *out;
	struct history *h;
	const struct backfill *b;
	const struct history_slot *slots;
	size_t n_slots;
	const struct family *family;
	struct str labels; /* of the series */
	struct str head;   /* the beginning of its lines */
	struct err *e;
};

/* Begins a series with the labels that were added, and those that all have. */
static void begin_series(struct filling *f)
{
	str_clear(&f->head);
	family_name(&f->head, f->family);
	if (f->labels.len && *f->b->labels)
		str_add(&f->labels, ",");
	str_add(&f->labels, f->b->labels);
	if (f->labels.len)
		str_addf(&f->head, "{%s}", str_text(&f->labels));
	str_clear(&f->labels);
}

static void add_sample(struct filling *f, int64_t value, int64_t at_s)
{
	str_addf(f->out, "%s %lld %lld\n", str_text(&f->head), (long long)value,
		(long long)at_s);
}

/* Calls `sample` for each moment of a slot that has one: its begin, if the slot before does not
 * end there, each step, and the end of the last slot. */
typedef void sampler(struct filling *f, size_t slot, int64_t at_s, const void *context);

static int for_moments(struct filling *f, sampler *sample, const void *context)
{
	int64_t step_s = f->b->step_s;
	for (size_t i = 0; i < f->n_slots; i++) {
		const struct history_slot *s = &f->slots[i];
		int64_t at_s = s->from_s - s->from_s % step_s + step_s;
		if (i == 0 || f->slots[i - 1].to_s != s->from_s)
			sample(f, i, s->from_s, context);
		for (; at_s <= s->to_s; at_s += step_s)
			sample(f, i, at_s, context);
		if (i + 1 == f->n_slots && at_s - step_s != s->to_s)
			sample(f, i, s->to_s, context);
		if (f->out->failed || f->head.failed || f->labels.failed)
			return err_memory(f->e);
		int rc = f->out->len < FLUSH_BYTES ? 0
						   : f->b->flush(f->out, f->b->context, f->e);
		if (rc)
			return rc;
	}
	return 0;
}

/* A counter between two slots: the sum before the slot, and what it adds. */
struct running {
	const struct history_series *series;
	int64_t *before;
	size_t *slot;
};

static void sample_counter(struct filling *f, size_t slot, int64_t at_s, const void *context)
{
	const struct running *r = context;
	for (; *r->slot < slot; ++*r->slot)
		*r->before += r->series->adds[*r->slot];
	const struct history_slot *s = &f->slots[slot];
	double part = (double)(at_s - s->from_s) / (double)(s->to_s - s->from_s);
	int64_t value = *r->before + (int64_t)(part * (double)r->series->adds[slot]);
	add_sample(f, value / 1000, at_s);
}

static int print_counter(struct filling *f, const struct history_series *series)
{
	int64_t before = series->begin;
	size_t slot = 0;
	struct running r = { series, &before, &slot };
	begin_series(f);
	return for_moments(f, sample_counter, &r);
}

static void head(struct filling *f, const struct family *family)
{
	f->family = family;
	family_head(f->out, family, true);
}

/* One state of each card. */
static int print_cards(struct filling *f, enum history_what what, enum card_state state)
{
	const struct scrape *s = history_totals(f->h);
	int rc = history_begin(f->h, what, state, f->e);
	for (size_t i = 0; rc == 0 && i < s->n_cards; i++) {
		struct history_series series;
		rc = history_next(f->h, &series, f->e);
		if (rc || (what == HISTORY_ENERGY && !s->cards[i].has_energy))
			continue;
		label_card(&f->labels, &s->cards[i].id);
		if (f->family != &family_unobserved)
			label_add(&f->labels, "state", exposition_states[state]);
		rc = print_counter(f, &series);
	}
	return rc;
}

static int print_states(struct filling *f)
{
	int rc = 0;
	head(f, &family_state);
	for (int i = 0; rc == 0 && i < CARD_STATES; i++)
		if (i != CARD_UNOBSERVED)
			rc = print_cards(f, HISTORY_TIME, (enum card_state)i);
	if (rc)
		return rc;
	head(f, &family_unobserved);
	rc = print_cards(f, HISTORY_TIME, CARD_UNOBSERVED);
	head(f, &family_energy);
	for (int i = 0; rc == 0 && i < CARD_STATES; i++)
		rc = print_cards(f, HISTORY_ENERGY, (enum card_state)i);
	return rc;
}

static int print_identity(struct filling *f, enum identity_sum sum)
{
	const struct scrape *s = history_totals(f->h);
	int rc = history_begin(f->h, HISTORY_IDENTITY, sum, f->e);
	for (size_t i = 0; rc == 0 && i < s->n_identities; i++) {
		struct history_series series;
		rc = history_next(f->h, &series, f->e);
		label_add(&f->labels, "identity", s->identities[i].name);
		if (sum != IDENTITY_SQUATTING)
			label_add(&f->labels, "state",
				exposition_states[sum == IDENTITY_ACTIVE ? CARD_ACTIVE
									 : CARD_IDLE_HELD]);
		rc = rc ? rc : print_counter(f, &series);
	}
	return rc;
}

static int print_identities(struct filling *f)
{
	if (!history_totals(f->h)->has_identities)
		return 0;
	head(f, &family_identity);
	int rc = print_identity(f, IDENTITY_ACTIVE);
	if (rc == 0)
		rc = print_identity(f, IDENTITY_IDLE_HELD);
	if (rc)
		return rc;
	head(f, &family_squatting);
	return print_identity(f, IDENTITY_SQUATTING);
}

static void sample_one(struct filling *f, size_t slot, int64_t at_s, const void *context)
{
	(void)slot;
	(void)context;
	add_sample(f, 1, at_s);
}

static void sample_cards(struct filling *f, size_t slot, int64_t at_s, const void *context)
{
	(void)context;
	add_sample(f, f->slots[slot].cards, at_s);
}

static void sample_moment(struct filling *f, size_t slot, int64_t at_s, const void *context)
{
	(void)slot;
	(void)context;
	add_sample(f, at_s, at_s);
}

/* How many cards there were, up to when they are accounted, and what they are. */
static int print_facts(struct filling *f)
{
	const struct scrape *s = history_totals(f->h);
	head(f, &family_gpus);
	begin_series(f);
	int rc = for_moments(f, sample_cards, NULL);
	if (rc)
		return rc;
	head(f, &family_accounted);
	begin_series(f);
	rc = for_moments(f, sample_moment, NULL);
	head(f, &family_card_info);
	for (size_t i = 0; rc == 0 && i < s->n_cards; i++) {
		label_card_info(&f->labels, &s->cards[i], s->driver);
		begin_series(f);
		rc = for_moments(f, sample_one, NULL);
	}
	return rc;
}

int backfill_print(struct str *out, struct history *h, const struct backfill *b, struct err *e)
{
	struct filling f = { .out = out, .h = h, .b = b, .e = e };
	f.slots = history_slots(h, &f.n_slots);
	int rc = f.n_slots ? print_states(&f) : 0;
	if (rc == 0 && f.n_slots)
		rc = print_identities(&f);
	if (rc == 0 && f.n_slots)
		rc = print_facts(&f);
	str_add(out, "# EOF\n");
	str_finish(&f.labels);
	str_finish(&f.head);
	return rc ? rc : b->flush(out, b->context, e);
}
