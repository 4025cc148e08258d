/* The report for people: its sections, readable at 80 columns. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/shares.h"
#include "base/timetext.h"
#include "render/report.h"

enum { LABEL_COLUMNS = 14, INDENT = 2 };

/* A blank line and "§N TITLE". */
static void add_heading(
	struct str *out, const struct text_style *style, int number, const char *title)
{
	char line[80];
	snprintf(line, sizeof(line), style->ascii ? "%d. %s" : "§%d %s", number, title);
	str_add(out, "\n");
	text_add_colored(out, line, "1", style);
	str_add(out, "\n");
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
static void add_host(struct str *out, const struct audit_host *host, const char *rest,
	size_t columns, const struct text_style *style)
{
	struct str tail = { 0 };
	str_add(&tail, " (");
	text_add_cut(&tail, *host->environment ? host->environment : "unknown", 12, style);
	str_add(&tail, ", driver ");
	text_add_cut(&tail, *host->driver ? host->driver : "unknown", 14, style);
	str_addf(&tail, ")%s\n", rest);
	text_add_cut(out, host->hostname, columns - text_columns(str_text(&tail)) + 1, style);
	str_add(out, str_text(&tail));
	out->failed |= tail.failed;
	str_finish(&tail);
}

static void add_header(struct str *out, const struct report *r, const struct text_style *style)
{
	char window[48], rest[64];
	add_warnings(out, r, SENTENCE_SIMULATED, style);
	add_sentences(out, r, SENTENCE_SIMULATED_HOST, INDENT, style);
	add_sentences(out, r, SENTENCE_IMPORTED, 0, style);
	duration_clock(window, sizeof(window), r->length_ms);
	snprintf(rest, sizeof(rest), "  Window: %s", window);
	str_add(out, style->ascii ? "gua - " : "gua — ");
	if (r->n_hosts == 1)
		add_host(out, &r->hosts[0], rest, style->columns - 6, style);
	else
		str_addf(out, "%zu hosts%s\n", r->n_hosts, rest);
	add_sentences(out, r, SENTENCE_COVERAGE, 0, style);
	for (size_t i = 0; i < r->n_hosts && r->n_hosts > 1; i++) {
		size_t n = r->hosts[i].n_cards;
		snprintf(rest, sizeof(rest), ": %zu GPU%s", n, n == 1 ? "" : "s");
		str_add(out, "  ");
		add_host(out, &r->hosts[i], rest, style->columns - 2, style);
	}
	add_sentences(out, r, SENTENCE_ABSENT, 0, style);
}

/* How a state looks in the bar. */
static const struct bar_mark {
	const char *block, *ascii, *color;
} bar_marks[CARD_STATES] = {
	[CARD_ACTIVE] = { "█", "#", "32" },
	[CARD_IDLE_HELD] = { "▒", "=", "33" },
	[CARD_TRULY_IDLE] = { "░", ".", "2" },
	[CARD_USE_UNKNOWN] = { "▚", "?", "35" },
};

static const char *bar_mark(enum card_state state, const struct text_style *style)
{
	return style->ascii ? bar_marks[state].ascii : bar_marks[state].block;
}

static void add_bar(struct str *out, const struct report *r, const struct report_style *style)
{
	double parts[CARD_STATES];
	size_t cells[SHARES_MAX];
	for (size_t i = 0; i < r->n_states; i++)
		parts[i] = (double)r->ms[r->states[i].state];
	shares_divide(parts, r->n_states, style->bar_cells, true, cells);
	for (size_t i = 0; i < r->n_states; i++) {
		enum card_state state = r->states[i].state;
		struct str run = { 0 };
		str_add_repeat(&run, bar_mark(state, &style->text), cells[i]);
		if (cells[i])
			text_add_colored(
				out, str_text(&run), bar_marks[state].color, &style->text);
		out->failed |= run.failed;
		str_finish(&run);
	}
	str_add(out, "\n");
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
	str_addf(out, "  %-12s%s %5.1f%%", s->label, bar_mark(s->state, style),
		100 * r->shown[s->state]);
	if (s->state == CARD_IDLE_HELD)
		add_uncertainty(out, r->uncertainty, style);
	if (*s->remark)
		str_addf(out, "  %s %s", style->ascii ? "<-" : "←", s->remark);
	str_add(out, "\n");
}

static void add_headline(
	struct str *out, const struct report *r, const struct report_style *style)
{
	add_heading(out, &style->text, 1, "Headline");
	if (r->n_states)
		add_bar(out, r, style);
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

static void add_waste(struct str *out, const struct report *r, const struct text_style *style)
{
	add_heading(out, style, 2, "Waste");
	add_sentences(out, r, SENTENCE_WASTE, INDENT, style);
	add_sentences(out, r, SENTENCE_VERDICT, INDENT, style);
}

static void add_cards(struct str *out, const struct report *r, const struct text_style *style)
{
	size_t first = 0;
	add_heading(out, style, 3, "Per-GPU");
	for (size_t i = 0; i < r->n_hosts; i++) {
		struct table cards = table_part(&r->cards, first, r->hosts[i].n_cards);
		first += cards.n_rows;
		if (r->n_hosts > 1) {
			str_add(out, " ");
			text_add_cut(out, r->hosts[i].hostname, style->columns - 2, style);
			str_add(out, "\n");
		}
		text_add_table(out, &cards, style);
	}
	add_sentences(out, r, SENTENCE_CARD, INDENT, style);
}

static void add_holders(struct str *out, const struct report *r, const struct text_style *style)
{
	const struct by *by = &r->breakdown.by;
	char title[96] = "By ";
	if (by_is(by, IDENTITY_CARD))
		return;
	for (size_t i = 0; i < by->n; i++)
		snprintf(title + strlen(title), sizeof(title) - strlen(title), "%s%s",
			i ? ", " : "", identity_kinds[by->kinds[i]].name);
	if (r->breakdown.measures[by->n - 1] != MEASURE_CARDS)
		snprintf(
			title + strlen(title), sizeof(title) - strlen(title), ", in GPU-hours");
	add_heading(out, style, 4, title);
	if (r->breakdown.table.n_rows)
		text_add_table(out, &r->breakdown.table, style);
	add_sentences(out, r, SENTENCE_HOLDERS, INDENT, style);
}

/* Shares from 0 to 1; the first is for less than 1 %. */
static const char *const block_densities[] = { "·", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
static const char *const ascii_densities[] = { ".", ":", "-", "=", "+", "*", "#", "%", "@" };
enum { DENSITIES = 9 };

static const char *density(double share, bool ascii)
{
	size_t level = share < 0.01 ? 0 : 1 + (size_t)(share * (DENSITIES - 1));
	if (level >= DENSITIES)
		level = DENSITIES - 1;
	return ascii ? ascii_densities[level] : block_densities[level];
}

static void add_heat_row(struct str *out, const struct report_hour hours[24], int state,
	const struct text_style *style)
{
	for (int hour = 0; hour < 24; hour++) {
		const char *mark = " ";
		if (hours[hour].observed)
			mark = density(hours[hour].share[state], style->ascii);
		str_addf(out, " %s%s", mark, mark);
	}
	while (out->len && out->data[out->len - 1] == ' ')
		out->len--;
	str_add(out, "\n");
}

static void add_heatmap(struct str *out, const struct report *r, const char *title, int state,
	const struct text_style *style)
{
	static const char *const days[] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
	str_addf(out, "  %s\n     ", title);
	for (int hour = 0; hour < 24; hour++)
		str_addf(out, " %02d", hour);
	str_add(out, "\n");
	for (int day = 0; day < 7; day++) {
		int dow = (day + 1) % 7;
		str_addf(out, "  %s", days[dow]);
		add_heat_row(out, r->hours[dow], state, style);
	}
}

static void add_hours(struct str *out, const struct report *r, const struct text_style *style)
{
	add_heading(out, style, 5,
		r->utc ? "Hours of the week (UTC)" : "Hours of the week (local time)");
	add_heatmap(out, r, "active, share of observed time", CARD_ACTIVE, style);
	add_heatmap(out, r, "idle-held, share of observed time", CARD_IDLE_HELD, style);
	str_add(out, "  ");
	text_add_wrapped(out,
		style->ascii
			? "'.' below 1%, then :-=+*#%@ in eighths up to 100%; blank: no data"
			: "· below 1%, then ▁▂▃▄▅▆▇█ in eighths up to 100%; blank: no data",
		INDENT, INDENT, style);
}

static void add_events(struct str *out, const struct report *r, const struct text_style *style)
{
	if (!r->events.n_rows)
		return;
	add_heading(out, style, 6, "Events");
	add_sentences(out, r, SENTENCE_EVENT, INDENT, style);
}

void report_text(struct str *out, const struct report *r, const struct report_style *style)
{
	add_header(out, r, &style->text);
	add_headline(out, r, style);
	add_waste(out, r, &style->text);
	add_cards(out, r, &style->text);
	add_holders(out, r, &style->text);
	add_hours(out, r, &style->text);
	add_events(out, r, &style->text);
	str_add(out, "\n");
	add_sentences(out, r, SENTENCE_RULES, 0, &style->text);
	out->failed |= r->failed;
}
