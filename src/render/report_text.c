/* The report for people: its sections, readable at 80 columns. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/shares.h"
#include "base/moment.h"
#include "model/process.h"
#include "render/report_formats.h"
#include "render/timeline.h"

enum { LABEL_COLUMNS = 14, INDENT = 2 };

/* A report while it is printed. */
struct page {
	struct str *out;
	const struct report *r;
	const struct report_style *style;
	int section; /* number of the last heading */
};

static void add_heading(struct page *p, const char *title)
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

/* Adds "HOST (bare, driver V)REST" in one line of at most `columns`; a long name is
 * truncated. */
static void add_host(struct str *out, const struct report *r, size_t index, const char *rest,
	const struct text_style *style)
{
	const struct audit_host *host = &r->hosts[index];
	bool of_fleet =
		r->fleet != NULL; /* metrics of a fleet do not include the environment */
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
	text_add_cut(out, host->hostname, columns - str_columns(str_text(&tail)) + 1, style);
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

/* Appends `n` cells of a bar, as the state looks there. */
static void add_cells(struct page *p, int mark, size_t n)
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
		add_cells(p, r->states[i].mark, cells[i]);
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
	if (p->r->n_states)
		add_bar(p);
	for (size_t i = 0; i < p->r->n_states; i++)
		add_state(p->out, p->r, &p->r->states[i], &p->style->text);
}

/* Continues "unobserved 5.0%". */
static void add_unobserved(struct page *p)
{
	const struct report *r = p->r;
	for (size_t i = 0; i < r->n_sentences; i++) {
		if (r->sentences[i].kind != SENTENCE_UNOBSERVED)
			continue;
		str_addf(p->out, "  %-12s  %5.1f%% ", "unobserved",
			100 * r->shown[CARD_UNOBSERVED]);
		text_add_wrapped(p->out, r->sentences[i].text, 23, 24, &p->style->text);
	}
}

/* The cards of the listed hosts. A terminal shows the first ones; --by card lists all. */
static void add_card_rows(struct page *p)
{
	enum { MOST = 48 };
	const struct report *r = p->r;
	const struct text_style *style = &p->style->text;
	size_t all = identity_by_is(&r->breakdown.by, IDENTITY_CARD) ? r->cards.n_rows : MOST;
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

static void add_cards(struct page *p)
{
	const struct report *r = p->r;
	add_card_rows(p);
	if (is_large(r))
		str_addf(p->out,
			"  The %zu hosts with the most idle-held time of %zu. --by host lists "
			"hosts, --host\n  NAME shows one, and --format csv --by card has all "
			"GPUs.\n",
			r->n_listed, r->n_hosts);
}

#define MS_PER_HOUR 3600e3
enum { LABEL = 20, NUMBER = 10, CHANGE = 16, USER = 14, USER_CHANGE = 11 };

/* Whether the change is printed as 0. */
static bool is_same(double change, double step)
{
	return fabs(change) < step / 2;
}

/* An arrow for the direction, so that it is not shown by colour only. */
static const char *arrow(double change, double step, bool ascii)
{
	if (is_same(change, step))
		return "=";
	if (ascii)
		return change > 0 ? "^" : "v";
	return change > 0 ? "▲" : "▼";
}

/* A change as it is printed. */
struct change {
	char text[32];
	double change, step; /* a change below half a step counts as none */
	int better;	     /* as in struct report_change */
	int columns;	     /* width of the field */
};

/* Appends the change, right-aligned, in green if it is for the better and red if not. */
static void add_change(struct page *p, const struct change *c)
{
	const struct text_style *style = &p->style->text;
	char line[64];
	bool same = is_same(c->change, c->step);
	snprintf(line, sizeof(line), "%s%s%s", arrow(c->change, c->step, style->ascii),
		same ? "" : " ", same ? "" : c->text);
	int wide = (int)str_columns(line);
	str_addf(p->out, "%*s", wide < c->columns ? c->columns - wide : 0, "");
	if (c->better == 0 || same)
		str_add(p->out, line);
	else
		text_add_colored(p->out, line, c->change * c->better > 0 ? "32" : "31", style);
}

void report_text_figure(char dst[32], const struct report_change *c, double number)
{
	if (isnan(number))
		snprintf(dst, 32, "-");
	else if (c->unit == FIGURE_SHARE)
		snprintf(dst, 32, "%.1f%%", 100 * number);
	else
		snprintf(dst, 32, "%.2f", number);
}

/* A change in percent of the earlier value: "+12.3%"; without a percentage where it would
 * mean little. */
static void show_percent(char dst[32], const struct report_difference *d)
{
	if (isnan(d->percent))
		snprintf(dst, 32, "%s", d->change != 0 ? "new" : "");
	else if (d->percent <= -100)
		snprintf(dst, 32, "gone");
	else if (d->percent >= 1000)
		snprintf(dst, 32, "x %.0f", 1 + d->percent / 100);
	else
		snprintf(dst, 32, "%+.1f%%", d->percent);
}

/* What changed, with its sign. */
static struct change change_of(const struct report_change *c)
{
	bool share = c->unit == FIGURE_SHARE;
	double difference = c->shown.change;
	struct change change = { .change = difference,
		.step = share ? 0.001 : 0.01,
		.better = c->better,
		.columns = CHANGE };
	if (share)
		snprintf(change.text, sizeof(change.text), "%+.1f points", 100 * difference);
	else if (c->unit == FIGURE_GPUS)
		snprintf(change.text, sizeof(change.text), "%+.2f", difference);
	else
		show_percent(change.text, &c->exact);
	return change;
}

void report_text_change(char *dst, size_t cap, const struct report_change *c)
{
	struct change change = change_of(c);
	bool same = is_same(change.change, change.step);
	if (isnan(change.change))
		str_copy(dst, cap, "-");
	else
		snprintf(dst, cap, "%s%s%s", arrow(change.change, change.step, false),
			same ? "" : " ", same ? "" : change.text);
}

static void add_figure(struct page *p, const struct report_change *c)
{
	char now[32], before[32];
	struct change change = change_of(c);
	report_text_figure(now, c, c->shown_now);
	report_text_figure(before, c, c->shown_before);
	str_addf(p->out, "  %-*s  %*s  %*s", LABEL, c->label, NUMBER, now, NUMBER, before);
	if (!isnan(change.change))
		add_change(p, &change);
	str_add(p->out, "\n");
}

static void add_hours(struct page *p, int64_t now_ms, int64_t before_ms,
	const struct report_difference *d, int better)
{
	struct change change = { .change = d->change,
		.step = MS_PER_HOUR / 100,
		.better = better,
		.columns = USER_CHANGE };
	show_percent(change.text, d);
	str_addf(p->out, "  %8.2f %8.2f", (double)now_ms / MS_PER_HOUR,
		(double)before_ms / MS_PER_HOUR);
	add_change(p, &change);
}

static void add_users(struct page *p)
{
	const struct report_compare *c = &p->r->compare;
	const struct text_style *style = &p->style->text;
	str_addf(p->out, "\n  %-*s  %8s %8s%*s  %8s %8s%*s\n", USER, "user", "held h", "before",
		USER_CHANGE, "change", "unused h", "before", USER_CHANGE, "change");
	for (size_t i = 0; i < c->n_users; i++) {
		const struct report_user_change *u = &c->users[i];
		str_add(p->out, "  ");
		size_t wide =
			text_add_cut(p->out, process_shown_user(u->identity), USER, style);
		str_add_repeat(p->out, " ", USER - wide);
		add_hours(p, u->held_ms, u->held_before_ms, &u->held, 0);
		add_hours(p, u->unused_ms, u->unused_before_ms, &u->unused, -1);
		while (p->out->len && p->out->data[p->out->len - 1] == ' ')
			p->out->len--;
		str_add(p->out, "\n");
	}
	if (c->n_left_out)
		str_addf(p->out, "  %zu more users: --top 0 shows all\n", c->n_left_out);
}

static void add_compare(struct page *p)
{
	const struct report_compare *c = &p->r->compare;
	if (c->empty)
		return;
	str_addf(p->out, "  %-*s  %*s  %*s%*s\n", LABEL, "", NUMBER, "now", NUMBER, "before",
		CHANGE, "change");
	for (size_t i = 0; i < c->n_figures; i++)
		if (!p->style->brief || c->figures[i].unit == FIGURE_SHARE)
			add_figure(p, &c->figures[i]);
	if (c->n_users && !p->style->brief)
		add_users(p);
}

enum { BAR_CELLS = 32, TREND_LABEL = 12, ROWS_MOST = 14 };

/* Shares from 0 to 1; the first is for less than 1 %. */
static const char *const block_densities[] = { "·", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
enum { DENSITIES = 9 };
#define LEGEND_BLOCKS "· below 1%, then ▁▂▃▄▅▆▇█ in eighths up to 100%; blank: no data"
#define LEGEND_ASCII "'.' below 1%, 0 below 10%, 1 below 20% ... 9 from 90%; blank: no data"

static const char *const digit_densities[] = { ".", "0", "1", "2", "3", "4", "5", "6", "7", "8",
	"9" };
enum { DIGITS = 11 };

/* A share as one character: a block in eighths, or in ASCII the digit of its tens. */
static const char *density(double share, bool ascii)
{
	size_t most = ascii ? DIGITS - 1 : DENSITIES - 1;
	if (isnan(share))
		return " ";
	size_t level = share < 0.01 ? 0 : 1 + (size_t)(share * (double)most);
	level = level < most ? level : most;
	return ascii ? digit_densities[level] : block_densities[level];
}

/* Appends the bar of a period: the states of observed time, and blanks for the rest. */
static void add_period_bar(struct page *page, const struct report_period *p)
{
	double parts[CARD_STATES];
	size_t cells[SHARES_MAX];
	for (int state = 0; state < CARD_STATES; state++)
		parts[state] = (double)p->ms[state];
	if (page->r->of_users) /* the rest of the cards' time does not belong to these users */
		parts[CARD_UNOBSERVED] = 0;
	shares_divide(parts, CARD_STATES, BAR_CELLS, true, cells);
	static const enum card_state order[] = { CARD_ACTIVE, CARD_IDLE_HELD, CARD_TRULY_IDLE,
		CARD_USE_UNKNOWN };
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		add_cells(page, order[i], cells[order[i]]);
}

static void show_share(char dst[16], double share)
{
	if (isnan(share))
		snprintf(dst, 16, "-");
	else
		snprintf(dst, 16, "%.1f%%", 100 * share);
}

/* The word for a state of cards, or of the users that the report is about: for users,
 * idle-held means unused on any card. */
static const char *state_word(const struct report *r, enum card_state state)
{
	static const char *const words[2][CARD_STATES] = {
		{ [CARD_ACTIVE] = "active",
			[CARD_IDLE_HELD] = "idle-held",
			[CARD_UNOBSERVED] = "unobserved" },
		{ [CARD_ACTIVE] = "used",
			[CARD_IDLE_HELD] = "unused",
			[CARD_UNOBSERVED] = "unobserved" },
	};
	return words[r->of_users][state];
}

/* A line for each period. */
static void add_periods(struct page *page)
{
	static const char *const titles[] = { [PERIOD_DAY] = "day",
		[PERIOD_WEEK] = "week from",
		[PERIOD_MONTH] = "month",
		[PERIOD_YEAR] = "year" };
	const struct report_trend *t = &page->r->trend;
	struct str *out = page->out;
	char active[16], held[16], missing[16];
	str_addf(out, "  %-10s  %6s  %9s  %10s\n", titles[t->unit],
		state_word(page->r, CARD_ACTIVE), state_word(page->r, CARD_IDLE_HELD),
		state_word(page->r, CARD_UNOBSERVED));
	for (size_t i = 0; i < t->n; i++) {
		const struct report_period *p = &t->periods[i];
		show_share(active, p->share[CARD_ACTIVE]);
		show_share(held, p->share[CARD_IDLE_HELD]);
		show_share(missing, p->share[CARD_UNOBSERVED]);
		str_addf(out, "  %-10s  %6s  %9s  %10s  ", p->name, active, held, missing);
		add_period_bar(page, p);
		while (out->len && out->data[out->len - 1] == ' ')
			out->len--;
		str_add(out, "\n");
	}
}

/* A column of one or two characters for each period, and the share of the last one. */
static size_t columns_of(const struct report_trend *t)
{
	return t->n <= TREND_MAX / 2 ? 2 : 1;
}

static void add_line(struct str *out, const struct report *r, enum card_state state,
	const struct text_style *style)
{
	const struct report_trend *t = &r->trend;
	static const char *const colors[CARD_STATES] = {
		[CARD_ACTIVE] = "32", [CARD_IDLE_HELD] = "33", [CARD_UNOBSERVED] = "2"
	};
	struct str line = { 0 };
	char last[16];
	for (size_t i = 0; i < t->n; i++)
		str_add_repeat(&line, density(t->periods[i].share[state], style->ascii),
			columns_of(t));
	show_share(last, t->periods[t->n - 1].share[state]);
	str_addf(out, "  %-*s", TREND_LABEL, state_word(r, state));
	text_add_colored(out, str_text(&line), colors[state], style);
	str_addf(out, " %s\n", last);
	out->failed |= line.failed;
	str_finish(&line);
}

static void add_lines(struct str *out, const struct report *r, const struct text_style *style)
{
	const struct report_trend *t = &r->trend;
	const char *first = t->periods[0].name, *last = t->periods[t->n - 1].name;
	size_t columns = t->n * columns_of(t);
	add_line(out, r, CARD_ACTIVE, style);
	add_line(out, r, CARD_IDLE_HELD, style);
	add_line(out, r, CARD_UNOBSERVED, style);
	str_addf(out, "  %*s%-*s%s\n", TREND_LABEL, "", (int)(columns - str_columns(last)),
		first, last);
}

/* Continues "Shares of". In a report about users there is no blank, because time in which
 * they held nothing is not theirs. */
static const char *trend_legend(const struct report *r, bool rows, bool ascii)
{
	if (r->of_users && rows)
		return "the time held; unobserved: of the GPUs' time.";
	if (r->of_users)
		return ascii ? "the time held, as a number for the last one: " LEGEND_ASCII
			     : "the time held, as a number for the last one: " LEGEND_BLOCKS;
	if (rows)
		return "observed time; the bar is all time, blank where unobserved.";
	return ascii ? "observed time, as a number for the last one: " LEGEND_ASCII
		     : "observed time, as a number for the last one: " LEGEND_BLOCKS;
}

static void add_trend(struct page *page)
{
	const struct text_style *style = &page->style->text;
	bool rows = page->r->trend.n <= ROWS_MOST;
	if (rows)
		add_periods(page);
	else
		add_lines(page->out, page->r, style);
	str_addf(page->out, "  Shares of ");
	text_add_wrapped(page->out, trend_legend(page->r, rows, style->ascii), 12, 2, style);
}

/* Steps of a map on a terminal with 256 colours, from below 1 % to 100 %. */
enum { STEPS = 6 };
static const int active_colors[STEPS] = { 236, 22, 28, 34, 40, 83 };
static const int held_colors[STEPS] = { 236, 52, 94, 136, 172, 214 };

static const int *colors_of(int state)
{
	return state == CARD_ACTIVE ? active_colors : held_colors;
}

/* Below 1 %, then fifths. */
static int step_of(double share)
{
	int step = share < 0.01 ? 0 : 1 + (int)(share * (STEPS - 1));
	return step < STEPS ? step : STEPS - 1;
}

/* Appends the cells of a day, each three columns wide: filled with its colour, or a mark. */
static void add_day(struct str *out, const struct report_hour hours[24], int state,
	const struct text_style *style)
{
	struct str row = { 0 };
	for (int hour = 0; hour < 24; hour++) {
		double share = hours[hour].observed ? hours[hour].share[state] : (double)NAN;
		const char *mark = density(share, style->ascii);
		if (style->color256 && !isnan(share))
			str_addf(&row, "\033[48;5;%dm   \033[0m",
				colors_of(state)[step_of(share)]);
		else
			str_addf(&row, " %s%s", style->ascii ? " " : mark, mark);
	}
	while (row.len && row.data[row.len - 1] == ' ')
		row.data[--row.len] = '\0';
	if (style->color256)
		str_addf(out, " %s", str_text(&row));
	else
		text_add_colored(
			out, str_text(&row), state == CARD_ACTIVE ? "32" : "33", style);
	out->failed |= row.failed;
	str_finish(&row);
}

static void add_map(
	struct str *out, const struct report *r, int state, const struct text_style *style)
{
	static const char *const days[] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
	str_addf(out, "  %s, share of %s\n     ", state_word(r, (enum card_state)state),
		r->of_users ? "the time held" : "observed time");
	for (int hour = 0; hour < 24; hour++)
		str_addf(out, " %02d", hour);
	str_add(out, "\n");
	for (int day = 0; day < 7; day++) {
		int dow = (day + 1) % 7;
		str_addf(out, "  %s", days[dow]);
		add_day(out, r->hours[dow], state, style);
		while (out->len && out->data[out->len - 1] == ' ')
			out->len--;
		str_add(out, "\n");
	}
}

/* The colours of both maps, from nothing to everything. */
static void add_color_legend(struct str *out)
{
	static const char *const marks[STEPS] = { "below 1%", "to 20%", "to 40%", "to 60%",
		"to 80%", "to 100%" };
	for (int i = 0; i < STEPS; i++)
		str_addf(out, "  \033[48;5;%dm  \033[0m\033[48;5;%dm  \033[0m %s",
			active_colors[i], held_colors[i], marks[i]);
	str_add(out, "\n  blank: no data\n");
}

static void add_week(struct page *page)
{
	const struct report *r = page->r;
	const struct text_style *style = &page->style->text;
	if (!page->style->brief)
		add_map(page->out, r, CARD_ACTIVE, style);
	add_map(page->out, r, CARD_IDLE_HELD, style);
	if (style->color256) {
		add_color_legend(page->out);
		return;
	}
	str_add(page->out, "  ");
	text_add_wrapped(page->out, style->ascii ? LEGEND_ASCII : LEGEND_BLOCKS, 2, 2, style);
}

static void add_block(struct page *p, const struct report_block *b)
{
	static void (*const pictures[])(struct page *) = { [BLOCK_HEADLINE] = add_headline,
		[BLOCK_COMPARE] = add_compare,
		[BLOCK_CARDS] = add_cards,
		[BLOCK_TREND] = add_trend,
		[BLOCK_HOURS] = add_week };
	if (b->kind == BLOCK_TABLE)
		text_add_table(p->out, b->table, &p->style->text);
	else if (b->kind != BLOCK_SENTENCES)
		pictures[b->kind](p);
	else if (b->sentences == SENTENCE_UNOBSERVED)
		add_unobserved(p);
	else
		add_sentences(p->out, p->r, b->sentences, INDENT, &p->style->text);
}

void report_text(struct str *out, const struct report *r, const struct report_style *style)
{
	struct page page = { .out = out, .r = r, .style = style };
	struct report_section sections[REPORT_SECTIONS];
	size_t n = report_sections(r, sections);
	add_header(out, r, &style->text);
	for (size_t i = 0; i < n; i++) {
		const struct report_section *s = &sections[i];
		if (s->page_only || (s->detail && style->brief))
			continue;
		add_heading(&page, s->title);
		for (size_t k = 0; k < s->n_blocks; k++)
			add_block(&page, &s->blocks[k]);
	}
	str_add(out, "\n");
	add_sentences(out, r, SENTENCE_RULES, 0, &style->text);
	add_sentences(out, r, SENTENCE_FLEET, 0, &style->text);
	out->failed |= r->failed;
}
