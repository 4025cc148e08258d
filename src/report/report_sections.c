/* The sections of a report for people, in order: whether it exists, title, and blocks. */
#include "report/report_parts.h"

struct list {
	const struct report *r;
	struct report_section *items;
	size_t n;
};

/* Starts a section; `page` is its heading on a page, NULL: the same. */
static struct report_section *start(
	struct list *l, const char *id, const char *title, const char *page)
{
	struct report_section *s = &l->items[l->n++];
	*s = (struct report_section){ .id = id };
	str_copy(s->title, sizeof(s->title), title);
	str_copy(s->page_title, sizeof(s->page_title), page ? page : title);
	return s;
}

static void put(struct report_section *s, struct report_block block)
{
	s->blocks[s->n_blocks++] = block;
}

static void draw(struct report_section *s, enum block_kind kind)
{
	put(s, (struct report_block){ .kind = kind });
}

static void say(struct report_section *s, enum sentence_kind kind)
{
	put(s, (struct report_block){ .kind = BLOCK_SENTENCES, .sentences = kind });
}

static void show(struct report_section *s, const struct table *t, const char *caption)
{
	put(s, (struct report_block){ .kind = BLOCK_TABLE, .table = t, .caption = caption });
}

static bool says(const struct report *r, enum sentence_kind kind)
{
	size_t at = 0;
	return report_next_sentence(r, kind, &at) != NULL;
}

static void add_overview(struct list *l)
{
	const struct report *r = l->r;
	const struct report_compare *c = &r->compare;
	struct report_section *s = start(l, "headline", "Headline", NULL);
	draw(s, BLOCK_HEADLINE);
	say(s, SENTENCE_OBSERVED);
	say(s, SENTENCE_UNOBSERVED);
	if (says(r, SENTENCE_WASTE) || says(r, SENTENCE_VERDICT)) {
		s = start(l, "waste", "Waste", NULL);
		say(s, SENTENCE_WASTE);
		if (says(r, SENTENCE_VERDICT))
			say(s, SENTENCE_VERDICT);
	}
	if (c->asked) {
		char title[128];
		snprintf(title, sizeof(title), "Compared with %s to %s",
			moment_text(c->since_ms, r->utc).text,
			moment_text(c->until_ms, r->utc).text);
		s = start(l, "compare", title, NULL);
		draw(s, BLOCK_COMPARE);
		say(s, SENTENCE_COMPARE);
	}
	if (r->timeline.n_lanes || r->timeline.too_many) {
		s = start(l, "timeline", r->utc ? "Time line (UTC)" : "Time line", NULL);
		s->page_only = true;
		draw(s, BLOCK_TIMELINE);
	}
}

/* The cards, or the time of the report's users on each card. */
static void add_cards(struct list *l)
{
	const struct report *r = l->r;
	bool held = r->a->of_users && r->by_card.table.n_rows;
	if (r->a->of_users && !held && !says(r, SENTENCE_CARD))
		return;
	char title[64];
	snprintf(title, sizeof(title), "Per GPU, in %s", report_unit(r));
	struct report_section *s =
		start(l, "cards", r->a->of_users ? title : "Per-GPU", "GPUs");
	s->detail = true;
	if (held)
		put(s, (struct report_block){ .kind = BLOCK_TABLE,
			       .table = &r->by_card.table,
			       .caption = r->minutes ? "What they held, in GPU-minutes"
						     : "What they held, in GPU-hours",
			       .bars = "unused" });
	if (!r->a->of_users)
		draw(s, BLOCK_CARDS);
	say(s, SENTENCE_CARD);
}

static void add_holders(struct list *l)
{
	const struct report_breakdown *b = &l->r->breakdown;
	char title[96], page[96] = "By ";
	if (identity_by_is(&b->by, IDENTITY_CARD) ||
		(!b->table.n_rows && !says(l->r, SENTENCE_HOLDERS)))
		return;
	for (size_t i = 0; i < b->by.n; i++)
		snprintf(page + strlen(page), sizeof(page) - strlen(page), "%s%s",
			i ? ", " : "", identity_kinds[b->by.kinds[i]].name);
	bool cards = b->measures[b->by.n - 1] == MEASURE_CARDS;
	snprintf(title, sizeof(title), "%.70s%s%s", page, cards ? "" : ", in ",
		cards ? "" : report_unit(l->r));
	struct report_section *s = start(l, "holders", title, page);
	if (b->table.n_rows)
		put(s, (struct report_block){ .kind = BLOCK_TABLE,
			       .table = &b->table,
			       .caption = l->r->minutes ? "Who held the GPUs, in GPU-minutes"
							: "Who held the GPUs, in GPU-hours",
			       .bars = "unused",
			       .rows = b->rows });
	say(s, SENTENCE_HOLDERS);
}

/* The longest idle spells, what the cards cost, and what was done about it. */
static void add_costs(struct list *l)
{
	const struct report *r = l->r;
	const struct report_bill *bill = &r->bill;
	struct report_section *s;
	if (r->longest.n_rows) {
		s = start(l, "longest", "Longest idle spells", NULL);
		show(s, &r->longest, "Who held which GPU idle for longest");
		say(s, SENTENCE_SPELLS);
		say(s, SENTENCE_SPELL);
	}
	if (r->leases.n_rows) {
		char title[96];
		snprintf(
			title, sizeof(title), "Given away and not used, in %s", report_unit(r));
		s = start(l, "leases", title, "Given away and not used");
		show(s, &r->leases, "Which jobs had which GPU and did not use it");
		say(s, SENTENCE_LEASES);
	}
	if (bill->currency && bill->lines.n_rows) {
		char title[96];
		snprintf(title, sizeof(title), "Bill, in %s", bill->currency);
		s = start(l, "bill", title, NULL);
		show(s, &bill->lines, "Whose the money is");
		say(s, SENTENCE_BILL);
		if (!r->a->of_users)
			show(s, &bill->cards, "What each GPU costs");
	}
	if (bill->shown && (!r->a->of_users || r->held_ms)) {
		s = start(l, "energy", "Energy", NULL);
		if (bill->has_energy)
			show(s, &bill->energy, "Whose the energy is");
		say(s, SENTENCE_ENERGY);
	}
	if (r->policy.n_rows) {
		s = start(l, "policy", "What was done", NULL);
		put(s, (struct report_block){ .kind = BLOCK_TABLE,
			       .table = &r->policy,
			       .caption = "Warnings and ended sessions, by user",
			       .no_links = true });
		say(s, SENTENCE_POLICY);
	}
}

static void add_times(struct list *l)
{
	const struct report *r = l->r;
	const char *zone = r->utc ? "UTC" : "local time";
	char title[64], page[64];
	if (r->trend.n >= 2 && (!r->a->of_users || r->held_ms)) {
		const char *unit = period_unit_names[r->trend.unit];
		snprintf(title, sizeof(title), "Trend by %s (%s)", unit, zone);
		snprintf(page, sizeof(page), "Trend, by %s", unit);
		struct report_section *s = start(l, "trend", title, page);
		s->detail = true;
		draw(s, BLOCK_TREND);
	}
	if (r->has_hours) {
		snprintf(title, sizeof(title), "Hours of the week (%s)", zone);
		draw(start(l, "hours", title, r->utc ? title : "Hours of the week"),
			BLOCK_HOURS);
	}
	if (r->events.n_rows)
		say(start(l, "events", "Events", NULL), SENTENCE_EVENT);
}

size_t report_sections(const struct report *r, struct report_section sections[REPORT_SECTIONS])
{
	struct list l = { .r = r, .items = sections };
	add_overview(&l);
	add_cards(&l);
	add_holders(&l);
	add_costs(&l);
	add_times(&l);
	return l.n;
}
