/* The report for people: its sections, readable at 80 columns. */
#include "render/report_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/shares.h"
#include "base/timetext.h"
#include "render/timeline.h"

enum { LABEL_COLUMNS = 14, INDENT = 2 };

void page_heading(struct page *p, const char *title)
{
	const struct text_style *style = &p->style->text;
	char line[160];
	snprintf(line, sizeof(line), style->ascii ? "%d. %s" : "§%d %s", ++p->section, title);
	str_add(p->out, "\n");
	text_add_colored(p->out, line, "1", style);
	str_add(p->out, "\n");
}

/* Adds the sentences of a kind as paragraphs, wrapped and indented; a label has its own
 * column. */
static void add_sentences(struct str *out, const struct report *r, enum sentence_kind kind,
	size_t indent, const struct text_style *style)
{
	for (size_t i = 0; i < r->n_sentences; i++) {
		const struct sentence *s = &r->sentences[i];
		size_t at = s->label ? LABEL_COLUMNS : indent;
		if (s->kind != kind)
			continue;
		str_addf(out, "%*s%-*s", (int)indent, "", (int)(at - indent),
			s->label ? s->label : "");
		text_add_wrapped(out, s->text, at, at, style);
	}
}

void page_sentences(struct page *p, enum sentence_kind kind)
{
	add_sentences(p->out, p->r, kind, INDENT, &p->style->text);
}

/* The same for warnings: highlighted, and in one line. */
static void add_warnings(struct str *out, const struct report *r, enum sentence_kind kind,
	const struct text_style *style)
{
	for (size_t i = 0; i < r->n_sentences; i++) {
		if (r->sentences[i].kind != kind)
			continue;
		text_add_colored(out, r->sentences[i].text, "1;31", style);
		str_add(out, "\n");
	}
}

/* Adds "HOST (bare, driver V)REST" in one line of at most `columns`; the name is cut if
 * needed. */
static void add_host(struct str *out, const struct report *r, size_t index, const char *rest,
	const struct text_style *style)
{
	const struct audit_host *host = &r->hosts[index];
	bool of_fleet = r->fleet != NULL; /* whose metrics do not say the environment */
	size_t columns = style->columns - (r->n_hosts == 1 ? 6 : 2);
	struct str tail = { 0 };
	str_add(&tail, " (");
	if (!of_fleet) {
		text_add_cut(
			&tail, *host->environment ? host->environment : "unknown", 12, style);
		str_add(&tail, ", ");
	}
	str_add(&tail, "driver ");
	text_add_cut(&tail, *host->driver ? host->driver : "unknown", 14, style);
	str_addf(&tail, ")%s\n", rest);
	text_add_cut(out, host->hostname, columns - text_columns(str_text(&tail)) + 1, style);
	str_add(out, str_text(&tail));
	out->failed |= tail.failed;
	str_finish(&tail);
}

/* Whether there are so many hosts that only the worst are shown. */
static bool is_large(const struct report *r)
{
	return r->n_listed < r->n_hosts;
}

static void add_header(struct str *out, const struct report *r, const struct text_style *style)
{
	char window[48], since[48], rest[96];
	add_warnings(out, r, SENTENCE_SIMULATED, style);
	add_sentences(out, r, SENTENCE_SIMULATED_HOST, INDENT, style);
	add_sentences(out, r, SENTENCE_IMPORTED, 0, style);
	duration_clock(window, sizeof(window), r->length_ms);
	snprintf(rest, sizeof(rest), "  Window: %s", window);
	str_add(out, style->ascii ? "gua - " : "gua — ");
	if (r->n_hosts == 1)
		add_host(out, r, 0, rest, style);
	else
		str_addf(out, "%zu hosts%s\n", r->n_hosts, rest);
	add_sentences(out, r, SENTENCE_COVERAGE, 0, style);
	add_sentences(out, r, SENTENCE_CLIPPED, 0, style);
	add_sentences(out, r, SENTENCE_RESTRICTED, 0, style);
	for (size_t i = 0; i < r->n_hosts && r->n_hosts > 1 && !is_large(r); i++) {
		size_t n = r->hosts[i].n_cards;
		moment_text(since, sizeof(since), r->hosts[i].known_ms, r->utc);
		snprintf(rest, sizeof(rest), ": %zu GPU%s%s%s", n, n == 1 ? "" : "s",
			r->hosts[i].late ? ", since " : "", r->hosts[i].late ? since : "");
		str_add(out, "  ");
		add_host(out, r, i, rest, style);
	}
	add_sentences(out, r, SENTENCE_ABSENT, 0, style);
}

bool report_says(const struct report *r, enum sentence_kind kind)
{
	for (size_t i = 0; i < r->n_sentences; i++)
		if (r->sentences[i].kind == kind)
			return true;
	return false;
}

/* How a state looks in a bar. */
static const struct bar_mark {
	const char *block, *ascii, *color;
} bar_marks[REPORT_MARKS] = {
	[CARD_ACTIVE] = { "█", "#", "32" },
	[CARD_IDLE_HELD] = { "▒", "=", "33" },
	[CARD_TRULY_IDLE] = { "░", ".", "2" },
	[CARD_USE_UNKNOWN] = { "▚", "?", "35" },
	[MARK_SQUATTING] = { "▓", "%", "31" },
};

static const char *bar_mark(int mark, const struct text_style *style)
{
	return style->ascii ? bar_marks[mark].ascii : bar_marks[mark].block;
}

void page_cells(struct page *p, int mark, size_t n)
{
	struct str run = { 0 };
	str_add_repeat(&run, bar_mark(mark, &p->style->text), n);
	if (n)
		text_add_colored(
			p->out, str_text(&run), bar_marks[mark].color, &p->style->text);
	p->out->failed |= run.failed;
	str_finish(&run);
}

static void add_bar(struct page *p)
{
	const struct report *r = p->r;
	double parts[REPORT_MARKS];
	size_t cells[SHARES_MAX];
	for (size_t i = 0; i < r->n_states; i++)
		parts[i] = (double)r->states[i].ms;
	shares_divide(parts, r->n_states, p->style->bar_cells, true, cells);
	for (size_t i = 0; i < r->n_states; i++)
		page_cells(p, r->states[i].mark, cells[i]);
	str_add(p->out, "\n");
}

/* Adds " ± 0.2": how far the share can be off, in percent, rounded up to a tenth; nothing for
 * 0. */
static void add_uncertainty(struct str *out, double share, const struct text_style *style)
{
	double tenths = ceil(1000 * share - 1e-6);
	if (tenths >= 1)
		str_addf(out, " %s %.1f", style->ascii ? "+-" : "±", tenths / 10);
}

static void add_state(struct str *out, const struct report *r, const struct report_state *s,
	const struct text_style *style)
{
	str_addf(out, "  %-*s%s %5.1f%%", r->of_users ? 18 : 12, s->label,
		bar_mark(s->mark, style), 100 * s->shown);
	if (s->mark == CARD_IDLE_HELD && !r->of_users)
		add_uncertainty(out, r->uncertainty, style);
	if (*s->remark)
		str_addf(out, "  %s %s", style->ascii ? "<-" : "←", s->remark);
	str_add(out, "\n");
}

static void add_headline(struct page *p)
{
	struct str *out = p->out;
	const struct report *r = p->r;
	const struct report_style *style = p->style;
	page_heading(p, "Headline");
	if (r->n_states)
		add_bar(p);
	for (size_t i = 0; i < r->n_states; i++)
		add_state(out, r, &r->states[i], &style->text);
	add_sentences(out, r, SENTENCE_OBSERVED, INDENT, &style->text);
	for (size_t i = 0; i < r->n_sentences; i++) {
		if (r->sentences[i].kind != SENTENCE_UNOBSERVED)
			continue;
		str_addf(out, "  %-12s  %5.1f%% ", "unobserved",
			100 * r->shown[CARD_UNOBSERVED]);
		text_add_wrapped(out, r->sentences[i].text, 23, 24, &style->text);
	}
}

static void add_waste(struct page *p)
{
	struct str *out = p->out;
	const struct report *r = p->r;
	const struct text_style *style = &p->style->text;
	if (!report_says(r, SENTENCE_WASTE) && !report_says(r, SENTENCE_VERDICT))
		return;
	page_heading(p, "Waste");
	add_sentences(out, r, SENTENCE_WASTE, INDENT, style);
	add_sentences(out, r, SENTENCE_VERDICT, INDENT, style);
}

/* The rows of cards of the hosts that are listed. A terminal shows the first ones; whoever asks
 * for cards with --by gets all. */
static void add_card_rows(struct page *p)
{
	enum { MOST = 48 };
	const struct report *r = p->r;
	const struct text_style *style = &p->style->text;
	size_t all = by_is(&r->breakdown.by, IDENTITY_CARD) ? r->cards.n_rows : MOST;
	size_t first = 0, shown = 0;
	for (size_t i = 0; i < r->n_listed; i++) {
		size_t n = r->hosts[i].n_cards;
		struct table cards =
			table_part(&r->cards, first, n < all - shown ? n : all - shown);
		first += n;
		shown += cards.n_rows;
		if (!cards.n_rows)
			continue;
		if (r->n_hosts > 1) {
			str_add(p->out, " ");
			text_add_cut(p->out, r->hosts[i].hostname, style->columns - 2, style);
			str_add(p->out, "\n");
		}
		text_add_table(p->out, &cards, style);
	}
	if (shown < first)
		str_addf(
			p->out, "  " TIMELINE_MORE "; --by card\n  lists all\n", first - shown);
}

/* The cards, or what the users of the report did on each. */
static void add_cards(struct page *p)
{
	struct str *out = p->out;
	const struct report *r = p->r;
	const struct text_style *style = &p->style->text;
	if (r->of_users && !r->by_card.table.n_rows && !report_says(r, SENTENCE_CARD))
		return;
	page_heading(p, r->of_users ? "Per GPU, in GPU-hours" : "Per-GPU");
	if (r->of_users && r->by_card.table.n_rows)
		text_add_table(out, &r->by_card.table, style);
	if (!r->of_users)
		add_card_rows(p);
	if (is_large(r) && !r->of_users)
		str_addf(out,
			"  The %zu hosts with the most idle-held time of %zu. --by host lists "
			"hosts, --host\n  NAME shows one, and --format csv --by card has all "
			"GPUs.\n",
			r->n_listed, r->n_hosts);
	add_sentences(out, r, SENTENCE_CARD, INDENT, style);
}

static void add_holders(struct page *p)
{
	struct str *out = p->out;
	const struct report *r = p->r;
	const struct text_style *style = &p->style->text;
	const struct by *by = &r->breakdown.by;
	char title[96] = "By ";
	if (by_is(by, IDENTITY_CARD) ||
		(!r->breakdown.table.n_rows && !report_says(r, SENTENCE_HOLDERS)))
		return;
	for (size_t i = 0; i < by->n; i++)
		snprintf(title + strlen(title), sizeof(title) - strlen(title), "%s%s",
			i ? ", " : "", identity_kinds[by->kinds[i]].name);
	if (r->breakdown.measures[by->n - 1] != MEASURE_CARDS)
		snprintf(
			title + strlen(title), sizeof(title) - strlen(title), ", in GPU-hours");
	page_heading(p, title);
	if (r->breakdown.table.n_rows)
		text_add_table(out, &r->breakdown.table, style);
	add_sentences(out, r, SENTENCE_HOLDERS, INDENT, style);
}

static void add_longest(struct page *p)
{
	if (!p->r->longest.n_rows)
		return;
	page_heading(p, "Longest idle spells");
	text_add_table(p->out, &p->r->longest, &p->style->text);
	page_sentences(p, SENTENCE_SPELLS);
	page_sentences(p, SENTENCE_SPELL);
}

/* What the cards cost, and whose it is. */
static void add_bill(struct page *p)
{
	const struct report_bill *bill = &p->r->bill;
	const struct text_style *style = &p->style->text;
	char title[96];
	if (!bill->currency || !bill->lines.n_rows)
		return;
	snprintf(title, sizeof(title), "Bill, in %s", bill->currency);
	page_heading(p, title);
	text_add_table(p->out, &bill->lines, style);
	add_sentences(p->out, p->r, SENTENCE_BILL, INDENT, style);
	if (!p->r->of_users)
		text_add_table(p->out, &bill->cards, style);
}

static void add_energy(struct page *p)
{
	const struct report_bill *bill = &p->r->bill;
	const struct text_style *style = &p->style->text;
	if (!bill->shown || (p->r->of_users && !p->r->held_ms))
		return;
	page_heading(p, "Energy");
	if (bill->has_energy)
		text_add_table(p->out, &bill->energy, style);
	add_sentences(p->out, p->r, SENTENCE_ENERGY, INDENT, style);
}

/* What belongs to no other part. */
static void add_others(struct page *p)
{
	for (size_t i = 0; i < p->r->n_sections; i++) {
		const struct report_section *section = &p->r->sections[i];
		if (!section->table.n_rows)
			continue;
		page_heading(p, section->title);
		text_add_table(p->out, &section->table, &p->style->text);
		if (strcmp(section->key, "policy") == 0)
			page_sentences(p, SENTENCE_POLICY);
	}
}

static void add_events(struct page *p)
{
	struct str *out = p->out;
	const struct report *r = p->r;
	const struct text_style *style = &p->style->text;
	if (!r->events.n_rows)
		return;
	page_heading(p, "Events");
	add_sentences(out, r, SENTENCE_EVENT, INDENT, style);
}

void report_text(struct str *out, const struct report *r, const struct report_style *style)
{
	struct page page = { .out = out, .r = r, .style = style };
	add_header(out, r, &style->text);
	add_headline(&page);
	add_waste(&page);
	page_compare(&page);
	if (!style->brief)
		add_cards(&page);
	add_holders(&page);
	add_longest(&page);
	add_bill(&page);
	add_energy(&page);
	add_others(&page);
	if (!style->brief)
		page_trend(&page);
	page_hours(&page);
	add_events(&page);
	str_add(out, "\n");
	add_sentences(out, r, SENTENCE_RULES, 0, &style->text);
	add_sentences(out, r, SENTENCE_FLEET, 0, &style->text);
	out->failed |= r->failed;
}
