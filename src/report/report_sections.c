/* The sections of a report for people, in order: whether each exists, its title, and its
 * blocks. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/moment.h"
#include "report/report.h"

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

static void add_headline(struct list *l)
{
	struct report_section *s = start(l, "headline", "Headline", NULL);
	draw(s, BLOCK_HEADLINE);
	say(s, SENTENCE_OBSERVED);
	say(s, SENTENCE_UNOBSERVED);
}

static void add_waste(struct list *l)
{
	if (!says(l->r, SENTENCE_WASTE) && !says(l->r, SENTENCE_VERDICT))
		return;
	struct report_section *s = start(l, "waste", "Waste", NULL);
	say(s, SENTENCE_WASTE);
	if (says(l->r, SENTENCE_VERDICT))
		say(s, SENTENCE_VERDICT);
}

static void add_compare(struct list *l)
{
	const struct report_compare *c = &l->r->compare;
	char since[48], until[48], title[128];
	if (!c->asked)
		return;
	moment_text(since, sizeof(since), c->since_ms, l->r->utc);
	moment_text(until, sizeof(until), c->until_ms, l->r->utc);
	snprintf(title, sizeof(title), "Compared with %s to %s", since, until);
	struct report_section *s = start(l, "compare", title, NULL);
	draw(s, BLOCK_COMPARE);
	say(s, SENTENCE_COMPARE);
}

static void add_timeline(struct list *l)
{
	const struct report_timeline *t = &l->r->timeline;
	if (!t->n_lanes && !t->too_many)
		return;
	struct report_section *s =
		start(l, "timeline", l->r->utc ? "Time line (UTC)" : "Time line", NULL);
	s->page_only = true;
	draw(s, BLOCK_TIMELINE);
}

/* The cards, or the time of the report's users on each card. */
static void add_cards(struct list *l)
{
	const struct report *r = l->r;
	bool held = r->of_users && r->by_card.table.n_rows;
	if (r->of_users && !held && !says(r, SENTENCE_CARD))
		return;
	struct report_section *s =
		start(l, "cards", r->of_users ? "Per GPU, in GPU-hours" : "Per-GPU", "GPUs");
	s->detail = true;
	if (held)
		put(s, (struct report_block){ .kind = BLOCK_TABLE,
			       .table = &r->by_card.table,
			       .caption = "What they held, in GPU-hours",
			       .bars = "unused" });
	if (!r->of_users)
		draw(s, BLOCK_CARDS);
	say(s, SENTENCE_CARD);
}

static void add_holders(struct list *l)
{
	const struct report_breakdown *b = &l->r->breakdown;
	char title[96] = "By ", page[96];
	if (identity_by_is(&b->by, IDENTITY_CARD) ||
		(!b->table.n_rows && !says(l->r, SENTENCE_HOLDERS)))
		return;
	for (size_t i = 0; i < b->by.n; i++)
		snprintf(title + strlen(title), sizeof(title) - strlen(title), "%s%s",
			i ? ", " : "", identity_kinds[b->by.kinds[i]].name);
	str_copy(page, sizeof(page), title);
	if (b->measures[b->by.n - 1] != MEASURE_CARDS)
		snprintf(
			title + strlen(title), sizeof(title) - strlen(title), ", in GPU-hours");
	struct report_section *s = start(l, "holders", title, page);
	if (b->table.n_rows)
		put(s, (struct report_block){ .kind = BLOCK_TABLE,
			       .table = &b->table,
			       .caption = "Who held the GPUs, in GPU-hours",
			       .bars = "unused",
			       .rows = b->rows });
	say(s, SENTENCE_HOLDERS);
}

static void add_longest(struct list *l)
{
	if (!l->r->longest.n_rows)
		return;
	struct report_section *s = start(l, "longest", "Longest idle spells", NULL);
	show(s, &l->r->longest, "Who held which GPU idle for longest");
	say(s, SENTENCE_SPELLS);
	say(s, SENTENCE_SPELL);
}

/* The cost of the cards, and who caused it. */
static void add_bill(struct list *l)
{
	const struct report_bill *bill = &l->r->bill;
	char title[96];
	if (!bill->currency || !bill->lines.n_rows)
		return;
	snprintf(title, sizeof(title), "Bill, in %s", bill->currency);
	struct report_section *s = start(l, "bill", title, NULL);
	show(s, &bill->lines, "Whose the money is");
	say(s, SENTENCE_BILL);
	if (!l->r->of_users)
		show(s, &bill->cards, "What each GPU costs");
}

static void add_energy(struct list *l)
{
	if (!l->r->bill.shown || (l->r->of_users && !l->r->held_ms))
		return;
	struct report_section *s = start(l, "energy", "Energy", NULL);
	if (l->r->bill.has_energy)
		show(s, &l->r->bill.energy, "Whose the energy is");
	say(s, SENTENCE_ENERGY);
}

static void add_policy(struct list *l)
{
	if (!l->r->policy.n_rows)
		return;
	struct report_section *s = start(l, "policy", "What was done", NULL);
	put(s, (struct report_block){ .kind = BLOCK_TABLE,
		       .table = &l->r->policy,
		       .caption = "Warnings and ended sessions, by user",
		       .no_links = true });
	say(s, SENTENCE_POLICY);
}

static void add_trend(struct list *l)
{
	static const char *const units[] = { [PERIOD_DAY] = "day",
		[PERIOD_WEEK] = "week",
		[PERIOD_MONTH] = "month",
		[PERIOD_YEAR] = "year" };
	const struct report *r = l->r;
	char title[64], page[64];
	if (r->trend.n < 2 || (r->of_users && !r->held_ms))
		return;
	snprintf(title, sizeof(title), "Trend by %s (%s)", units[r->trend.unit],
		r->utc ? "UTC" : "local time");
	snprintf(page, sizeof(page), "Trend, by %s", units[r->trend.unit]);
	struct report_section *s = start(l, "trend", title, page);
	s->detail = true;
	draw(s, BLOCK_TREND);
}

static void add_hours(struct list *l)
{
	if (!l->r->has_hours)
		return;
	struct report_section *s = start(l, "hours",
		l->r->utc ? "Hours of the week (UTC)" : "Hours of the week (local time)",
		l->r->utc ? "Hours of the week (UTC)" : "Hours of the week");
	draw(s, BLOCK_HOURS);
}

static void add_events(struct list *l)
{
	if (l->r->events.n_rows)
		say(start(l, "events", "Events", NULL), SENTENCE_EVENT);
}

size_t report_sections(const struct report *r, struct report_section sections[REPORT_SECTIONS])
{
	static void (*const parts[])(struct list *) = { add_headline, add_waste, add_compare,
		add_timeline, add_cards, add_holders, add_longest, add_bill, add_energy,
		add_policy, add_trend, add_hours, add_events };
	struct list l = { .r = r, .items = sections };
	_Static_assert(sizeof(parts) / sizeof(parts[0]) == REPORT_SECTIONS, "one each");
	for (size_t i = 0; i < REPORT_SECTIONS; i++)
		parts[i](&l);
	return l.n;
}
