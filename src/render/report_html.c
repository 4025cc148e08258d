/* The body of the report as HTML. Tables are tables, every picture has a text, and no colour
 * stands alone. */
#include "render/report_html.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/timetext.h"
#include "render/html.h"
#include "render/report_parts.h"
#include "render/timeline.h"

/* Where names lead: the pages of gua serve. */
static const struct html_link links[] = {
	{ "gpu", "/card/", { "uuid" } },
	{ "gpu", "/card/", { "gpu" } },
	{ "card", "/card/", { "gpu" } },
	{ "user", "/user/", { "identity" } },
	{ "user", "/user/", { "user" } },
	{ "notebook", "/notebook/", { "user", "notebook" } },
	{ "what", "/notebook/", { "user", "notebook_path" } },
	{ "what", "/notebook/", { "user", "notebook" } },
	{ 0 },
};

/* Appends a table of the report. */
static void add_table(struct str *out, const struct report *r, const struct table *t,
	struct html_table_style style)
{
	style.utc = r->utc;
	style.links = r->linked ? links : NULL;
	html_table(out, t, &style);
}

void html_section(struct str *out, const char *id, const char *title)
{
	str_addf(out, "<section aria-labelledby=\"%s\">\n<h2 id=\"%s\">", id, id);
	html_text(out, title);
	str_add(out, "</h2>\n");
}

void html_section_end(struct str *out)
{
	str_add(out, "</section>\n");
}

static void add_labelled(struct str *out, const struct sentence *s, bool *open)
{
	if (!*open)
		str_add(out, "<dl>\n");
	*open = true;
	if (*s->label) {
		str_add(out, "<dt>");
		html_text(out, s->label);
		str_add(out, "</dt>");
	}
	str_add(out, "<dd>");
	html_text(out, s->text);
	str_add(out, "</dd>\n");
}

void html_sentences(struct str *out, const struct report *r, enum sentence_kind kind)
{
	bool open = false;
	for (size_t i = 0; i < r->n_sentences; i++) {
		const struct sentence *s = &r->sentences[i];
		if (s->kind != kind)
			continue;
		if (s->label) {
			add_labelled(out, s, &open);
			continue;
		}
		str_add(out, open ? "</dl>\n<p>" : "<p>");
		open = false;
		html_text(out, s->text);
		str_add(out, "</p>\n");
	}
	str_add(out, open ? "</dl>\n" : "");
}

/* Sentences that the reader must not miss. */
static void add_warnings(struct str *out, const struct report *r, enum sentence_kind kind)
{
	for (size_t i = 0; i < r->n_sentences; i++) {
		if (r->sentences[i].kind != kind)
			continue;
		str_add(out, "<p class=\"warning\" role=\"note\">");
		html_text(out, r->sentences[i].text);
		str_add(out, "</p>\n");
	}
}

static void add_host(struct str *out, const struct report *r, const struct audit_host *h)
{
	char since[48];
	html_text(out, h->hostname);
	str_add(out, " (");
	html_text(out, *h->environment ? h->environment : "unknown");
	str_add(out, ", driver ");
	html_text(out, *h->driver ? h->driver : "unknown");
	moment_text(since, sizeof(since), h->known_ms, r->utc);
	str_addf(out, ", %zu GPU%s%s%s)", h->n_cards, h->n_cards == 1 ? "" : "s",
		h->late ? ", since " : "", h->late ? since : "");
}

/* Whose report it is: the only host, or how many. */
static void add_subject(struct str *out, const struct report *r)
{
	if (r->n_hosts == 1)
		html_text(out, r->hosts[0].hostname);
	else
		str_addf(out, "%zu hosts", r->n_hosts);
}

static void add_header(struct str *out, const struct report *r)
{
	str_add(out, "<header>\n");
	add_warnings(out, r, SENTENCE_SIMULATED);
	add_warnings(out, r, SENTENCE_SIMULATED_HOST);
	add_warnings(out, r, SENTENCE_IMPORTED);
	if (!r->linked) {
		str_add(out, "<h1>GPU usage audit: ");
		add_subject(out, r);
		str_add(out, "</h1>\n");
	}
	html_sentences(out, r, SENTENCE_COVERAGE);
	html_sentences(out, r, SENTENCE_CLIPPED);
	html_sentences(out, r, SENTENCE_RESTRICTED);
	str_add(out, "<ul class=\"hosts\">\n");
	for (size_t i = 0; i < r->n_hosts && r->n_listed == r->n_hosts; i++) {
		str_add(out, "<li>");
		add_host(out, r, &r->hosts[i]);
		str_add(out, "</li>\n");
	}
	str_add(out, "</ul>\n");
	add_warnings(out, r, SENTENCE_ABSENT);
	str_add(out, "</header>\n");
}

/* The bar of the headline, in the order of the list below it. Its parts have no width of their
 * own, so that patterns are not stretched. */
static void add_headline_bar(struct str *out, const struct report *r)
{
	double at = 0;
	str_add(out, "<svg class=\"bar\" role=\"img\" aria-labelledby=\"bar bar-parts\"><title "
		     "id=\"bar\">How the time divides</title><desc id=\"bar-parts\">");
	for (size_t i = 0; i < r->n_states; i++)
		str_addf(out, "%s%s %.1f%%", i ? ", " : "", r->states[i].label,
			100 * r->states[i].shown);
	str_add(out, "</desc>");
	for (size_t i = 0; i < r->n_states; i++) {
		double wide = 100 * r->states[i].shown;
		if (wide > 0)
			str_addf(out,
				"<rect class=\"%s\" x=\"%.1f%%\" width=\"%.1f%%\" "
				"height=\"100%%\"/>",
				mark_class(r->states[i].mark), at, wide);
		at += wide;
	}
	str_add(out, "</svg>\n");
}

static void add_state(struct str *out, const struct report *r, const struct report_state *s)
{
	str_addf(out,
		"<div class=\"state\"><dt><svg class=\"key\" viewBox=\"0 0 12 12\" "
		"aria-hidden=\"true\"><rect class=\"%s\" width=\"12\" height=\"12\"/></svg>",
		mark_class(s->mark));
	html_text(out, s->label);
	str_addf(out, "</dt><dd><strong>%.1f%%</strong>", 100 * s->shown);
	double tenths = ceil(1000 * r->uncertainty - 1e-6);
	if (s->mark == CARD_IDLE_HELD && !r->of_users && tenths >= 1)
		str_addf(out, " <span class=\"dim\">± %.1f</span>", tenths / 10);
	if (*s->remark) {
		str_add(out, "<br><span class=\"dim\">");
		html_text(out, s->remark);
		str_add(out, "</span>");
	}
	str_add(out, "</dd></div>\n");
}

static void add_headline(struct str *out, const struct report *r)
{
	html_section(out, "headline", "Headline");
	if (r->n_states)
		add_headline_bar(out, r);
	str_add(out, r->n_states ? "<dl class=\"states\">\n" : "");
	for (size_t i = 0; i < r->n_states; i++)
		add_state(out, r, &r->states[i]);
	str_add(out, r->n_states ? "</dl>\n" : "");
	html_sentences(out, r, SENTENCE_OBSERVED);
	for (size_t i = 0; i < r->n_sentences; i++) {
		if (r->sentences[i].kind != SENTENCE_UNOBSERVED)
			continue;
		str_addf(out, "<p>unobserved: %.1f%% ", 100 * r->shown[CARD_UNOBSERVED]);
		html_text(out, r->sentences[i].text);
		str_add(out, "</p>\n");
	}
	html_section_end(out);
}

static void add_waste(struct str *out, const struct report *r)
{
	bool verdict = report_says(r, SENTENCE_VERDICT);
	if (!verdict && !report_says(r, SENTENCE_WASTE))
		return;
	html_section(out, "waste", "Waste");
	html_sentences(out, r, SENTENCE_WASTE);
	str_add(out, verdict ? "<div class=\"verdict\">\n" : "");
	html_sentences(out, r, SENTENCE_VERDICT);
	str_add(out, verdict ? "</div>\n" : "");
	html_section_end(out);
}

static void add_cards(struct str *out, const struct report *r)
{
	size_t first = 0;
	char caption[256];
	bool held = r->of_users && r->by_card.table.n_rows;
	if (r->of_users && !held && !report_says(r, SENTENCE_CARD))
		return;
	html_section(out, "cards", "GPUs");
	if (held)
		add_table(out, r, &r->by_card.table,
			(struct html_table_style){
				.caption = "What they held, in GPU-hours", .bars = "unused" });
	for (size_t i = 0; i < r->n_listed && !r->of_users; i++) {
		struct table cards = table_part(&r->cards, first, r->hosts[i].n_cards);
		first += cards.n_rows;
		snprintf(caption, sizeof(caption), "What each GPU of %s did",
			r->hosts[i].hostname);
		add_table(out, r, &cards,
			(struct html_table_style){ .caption = caption, .bars = "idle-held" });
	}
	if (r->n_listed < r->n_hosts && !r->of_users)
		str_addf(out,
			"<p>The %zu hosts with the most idle-held time of %zu. <code>--by "
			"host</code> lists hosts, <code>--host NAME</code> shows one, and "
			"<code>--format csv --by card</code> has all GPUs.</p>\n",
			r->n_listed, r->n_hosts);
	html_sentences(out, r, SENTENCE_CARD);
	html_section_end(out);
}

static void add_holders(struct str *out, const struct report *r)
{
	const struct report_breakdown *b = &r->breakdown;
	char title[96] = "By ";
	if (by_is(&b->by, IDENTITY_CARD) ||
		(!b->table.n_rows && !report_says(r, SENTENCE_HOLDERS)))
		return;
	for (size_t i = 0; i < b->by.n; i++)
		snprintf(title + strlen(title), sizeof(title) - strlen(title), "%s%s",
			i ? ", " : "", identity_kinds[b->by.kinds[i]].name);
	html_section(out, "holders", title);
	if (b->table.n_rows)
		add_table(out, r, &b->table,
			(struct html_table_style){ .caption = "Who held the GPUs, in GPU-hours",
				.bars = "unused",
				.deep = b->rows ? &b->rows[0].level : NULL,
				.deep_step = sizeof(b->rows[0]) });
	html_sentences(out, r, SENTENCE_HOLDERS);
	html_section_end(out);
}

/* On a page, a link to the same page with more of them takes the place of the sentence. */
static void add_more_spells(struct str *out, const struct report *r)
{
	str_add(out, "<p><a href=\"");
	html_text(out, r->link_spells);
	str_addf(out, "#longest\">%zu more idle spells</a></p>\n", r->n_spells_left);
}

static void add_longest(struct str *out, const struct report *r)
{
	if (!r->longest.n_rows)
		return;
	html_section(out, "longest", "Longest idle spells");
	add_table(out, r, &r->longest,
		(struct html_table_style){ .caption = "Who held which GPU idle for longest" });
	if (r->linked && r->n_spells_left)
		add_more_spells(out, r);
	else
		html_sentences(out, r, SENTENCE_SPELLS);
	html_sentences(out, r, SENTENCE_SPELL);
	html_section_end(out);
}

/* What the cards cost, and whose it is. */
static void add_bill(struct str *out, const struct report *r)
{
	const struct report_bill *bill = &r->bill;
	struct str title = { 0 };
	if (!bill->currency || !bill->lines.n_rows)
		return;
	str_addf(&title, "Bill, in %s", bill->currency);
	html_section(out, "bill", str_text(&title));
	add_table(out, r, &bill->lines,
		(struct html_table_style){ .caption = "Whose the money is" });
	html_sentences(out, r, SENTENCE_BILL);
	if (!r->of_users)
		add_table(out, r, &bill->cards,
			(struct html_table_style){ .caption = "What each GPU costs" });
	html_section_end(out);
	out->failed |= title.failed;
	str_finish(&title);
}

static void add_energy(struct str *out, const struct report *r)
{
	if (!r->bill.shown || (r->of_users && !r->held_ms))
		return;
	html_section(out, "energy", "Energy");
	if (r->bill.has_energy)
		add_table(out, r, &r->bill.energy,
			(struct html_table_style){ .caption = "Whose the energy is" });
	html_sentences(out, r, SENTENCE_ENERGY);
	html_section_end(out);
}

/* What belongs to no other part. */
static void add_others(struct str *out, const struct report *r)
{
	for (size_t i = 0; i < r->n_sections; i++) {
		const struct report_section *section = &r->sections[i];
		if (!section->table.n_rows)
			continue;
		html_section(out, section->key, section->title);
		html_table(out, &section->table,
			&(struct html_table_style){
				.caption = section->caption, .utc = r->utc });
		if (strcmp(section->key, "policy") == 0)
			html_sentences(out, r, SENTENCE_POLICY);
		html_section_end(out);
	}
}

static void add_events(struct str *out, const struct report *r)
{
	if (!r->events.n_rows)
		return;
	html_section(out, "events", "Events");
	html_sentences(out, r, SENTENCE_EVENT);
	html_section_end(out);
}

/* The words of gua(1). */
static const struct {
	const char *word, *meaning;
} definitions[] = {
	{ "active", "the GPU's utilisation is at least the threshold named below" },
	{ "idle-held", "utilisation is below that, and processes hold memory: nobody else can "
		       "use it" },
	{ "truly-idle", "utilisation is below that, and no process holds memory" },
	{ "use unknown", "processes hold memory, and the driver reports no utilisation" },
	{ "unobserved", "there is no reading: it counts as none of the others" },
	{ "idle on busy GPU", "a user is idle on a GPU that somebody else keeps active" },
	{ "GPU-hours", "hours of one GPU, as measured" },
};

static void add_foot(struct str *out, const struct report *r)
{
	str_add(out, "<footer>\n<h2>What the words mean</h2>\n<dl>\n");
	for (size_t i = 0; i < sizeof(definitions) / sizeof(definitions[0]); i++)
		str_addf(out, "<dt>%s</dt><dd>%s</dd>\n", definitions[i].word,
			definitions[i].meaning);
	str_add(out, "</dl>\n");
	html_sentences(out, r, SENTENCE_RULES);
	html_sentences(out, r, SENTENCE_FLEET);
	str_add(out, "</footer>\n");
}

void report_html_title(struct str *out, const struct report *r)
{
	char since[48], until[48];
	moment_text(since, sizeof(since), r->since_ms, r->utc);
	moment_text(until, sizeof(until), r->until_ms, r->utc);
	add_subject(out, r);
	str_addf(out, ", %s to %s", since, until);
}

void report_html_body(struct str *out, const struct report *r)
{
	str_add(out, "<article class=\"report\">\n");
	if (!r->linked)
		html_patterns(out);
	add_header(out, r);
	add_headline(out, r);
	add_waste(out, r);
	html_compare(out, r);
	html_timeline(out, r);
	add_cards(out, r);
	add_holders(out, r);
	add_longest(out, r);
	add_bill(out, r);
	add_energy(out, r);
	add_others(out, r);
	html_trend(out, r);
	html_hours(out, r);
	add_events(out, r);
	add_foot(out, r);
	str_add(out, "</article>\n");
	out->failed |= r->failed;
}
