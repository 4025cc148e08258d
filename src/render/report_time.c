/* The parts of the report for people about when: the trend, and the hours of the week. */
#include "render/report_parts.h"

#include <math.h>
#include <stdio.h>

#include "base/shares.h"

enum { BAR_CELLS = 32, LABEL = 12, ROWS_MOST = 14 };

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
	if (page->r->of_users) /* the rest of the cards' time is not theirs */
		parts[CARD_UNOBSERVED] = 0;
	shares_divide(parts, CARD_STATES, BAR_CELLS, true, cells);
	static const enum card_state order[] = { CARD_ACTIVE, CARD_IDLE_HELD, CARD_TRULY_IDLE,
		CARD_USE_UNKNOWN };
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		page_cells(page, order[i], cells[order[i]]);
}

static void show_share(char dst[16], double share)
{
	if (isnan(share))
		snprintf(dst, 16, "-");
	else
		snprintf(dst, 16, "%.1f%%", 100 * share);
}

/* A state of cards, or of the users that the report is about: theirs is unused on any card. */
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
	str_addf(out, "  %-*s", LABEL, state_word(r, state));
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
	str_addf(out, "  %*s%-*s%s\n", LABEL, "", (int)(columns - text_columns(last)), first,
		last);
}

/* Continues "Shares of". Users have no blank: what they did not hold is not theirs. */
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

void page_trend(struct page *page)
{
	static const char *const units[] = { [PERIOD_DAY] = "day",
		[PERIOD_WEEK] = "week",
		[PERIOD_MONTH] = "month",
		[PERIOD_YEAR] = "year" };
	const struct report *r = page->r;
	const struct text_style *style = &page->style->text;
	bool rows = r->trend.n <= ROWS_MOST;
	char title[64];
	if (r->trend.n < 2 || (r->of_users && !r->held_ms))
		return;
	snprintf(title, sizeof(title), "Trend by %s (%s)", units[r->trend.unit],
		r->utc ? "UTC" : "local time");
	page_heading(page, title);
	if (rows)
		add_periods(page);
	else
		add_lines(page->out, r, style);
	str_addf(page->out, "  Shares of ");
	text_add_wrapped(page->out, trend_legend(r, rows, style->ascii), 12, 2, style);
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

void page_hours(struct page *page)
{
	const struct report *r = page->r;
	const struct text_style *style = &page->style->text;
	if (!r->has_hours)
		return;
	page_heading(
		page, r->utc ? "Hours of the week (UTC)" : "Hours of the week (local time)");
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
