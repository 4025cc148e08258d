/* Draws the cards of `gua top`: one line each, or several cards in a line if there are many. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "top/top_parts.h"
#include "top/top_words.h"

/* Width of a card in a line of several cards, without its bar. */
enum { COMPACT_COLUMNS = 26, COMPACT_TEXTS = 24 };

size_t top_shown_cards(const struct top_now *now)
{
	size_t n = 0;
	for (size_t i = 0; i < now->all->n_cards; i++)
		n += !now->card_on || now->card_on[i];
	return n;
}

struct top_layout top_plan(const struct top_state *s, size_t rows, size_t columns, size_t extra)
{
	/* Title, summary, headings of cards and of processes, keys. */
	size_t n = top_shown_cards(&s->now), fixed = 5 + extra;
	struct top_layout l = { .rows = rows, .columns = columns, .cards_a_line = 1 };
	size_t room = rows > fixed + 2 ? rows - fixed : 2;
	l.cards_rows = n;
	if (rows && n > room * 2 / 3) {
		l.cards_a_line = columns > COMPACT_COLUMNS ? columns / COMPACT_COLUMNS : 1;
		l.cards_rows = (n + l.cards_a_line - 1) / l.cards_a_line;
		if (l.cards_rows > room / 2)
			l.cards_rows = room / 2;
	}
	l.cards_at = 3;
	l.table_at = l.cards_at + l.cards_rows + 1;
	l.table_rows = rows ? room - l.cards_rows : s->model.n_rows;
	return l;
}

/* Widths of the parts of a card's line. */
struct widths {
	size_t name, bar, power, state, spark;
};

/* The name of the card without the maker, which is the same for all. */
static const char *short_name(const struct present_card *c)
{
	return strncmp(c->id.name, "NVIDIA ", 7) == 0 ? c->id.name + 7 : c->id.name;
}

static struct widths choose_widths(const struct top_state *s)
{
	size_t columns = s->layout.columns, longest = 4;
	/* id, utilisation, memory, temperature, since when, blanks */
	size_t fixed = 4 + 1 + 5 + 1 + 10 + 5 + 1 + 7 + 1;
	struct widths w = { .power = columns >= 110 ? 9 : 5, .state = 10 };
	for (size_t i = 0; i < s->now.all->n_cards; i++) {
		size_t wide = text_columns(short_name(&s->now.all->cards[i])) + 1;
		size_t word = strlen(top_state_word(&s->now.all->cards[i]));
		longest = wide > longest ? wide : longest;
		w.state = word > w.state ? word : w.state;
	}
	fixed += w.power + w.state;
	size_t rest = columns > fixed ? columns - fixed : 0;
	if (columns >= 100)
		w.name = longest < rest * 3 / 10 ? longest : rest * 3 / 10;
	rest -= w.name;
	w.bar = rest / 4 > 30 ? 30 : rest / 4;
	rest -= 2 * w.bar;
	w.spark = rest > TOP_HISTORY_MINUTES ? TOP_HISTORY_MINUTES : rest;
	return w;
}

static void draw_heading(struct top_state *s, const struct widths *w)
{
	struct top_frame *f = &s->frame;
	char text[32];
	top_add_field(f, TOP_HEADING, "CARD", 5, true);
	top_add_field(f, TOP_HEADING, w->name ? "NAME" : "", w->name, true);
	top_add_field(f, TOP_HEADING, "USE", w->bar + 6, true);
	top_add_field(f, TOP_HEADING, "MEMORY GiB", w->bar + 10, true);
	top_add_field(f, TOP_HEADING, "POWER", w->power, false);
	top_add_field(f, TOP_HEADING, "TEMP", 5, false);
	top_add_field(f, TOP_HEADING, " STATE", 1 + w->state, true);
	top_add_field(f, TOP_HEADING, "FOR", 7, false);
	snprintf(text, sizeof(text), w->spark > 14 ? " LAST %zu MIN" : " %zu MIN", w->spark);
	top_add_field(f, TOP_HEADING, w->spark > 6 ? text : "", w->spark + 1, true);
	top_fill(f, TOP_HEADING, s->layout.columns);
	top_end_line(f);
}

static double memory_part(const struct present_card *c)
{
	return c->values[METRIC_MEMORY_USED] / c->values[METRIC_MEMORY_TOTAL];
}

static void draw_memory(struct top_frame *f, const struct present_card *c, size_t bar)
{
	char used[16], total[16], both[40];
	double part = memory_part(c);
	top_gib(used, sizeof(used), c->values[METRIC_MEMORY_USED]);
	top_gib(total, sizeof(total), c->values[METRIC_MEMORY_TOTAL]);
	snprintf(both, sizeof(both), "%s/%s", used, total);
	top_add_bar(f, part >= 0.9 ? TOP_LOST : TOP_PLAIN, part, bar);
	top_add_field(f, TOP_PLAIN, both, 10, false);
}

/* Draws the power in whole watts, as the other views do. */
static void draw_power(struct top_frame *f, const struct present_card *c, size_t width)
{
	char draw[32], limit[32], both[72];
	double drawn = floor(c->values[METRIC_POWER_DRAW]);
	double most = floor(c->values[METRIC_POWER_ENFORCED]);
	top_number(draw, sizeof(draw), drawn, "");
	top_number(limit, sizeof(limit), most, "W");
	snprintf(both, sizeof(both), "%s/%s", draw, limit);
	if (width < 9 || isnan(most))
		top_number(both, sizeof(both), drawn, "W");
	top_add_field(f, TOP_PLAIN, both, width, false);
}

/* Draws the temperature, red from 85 degrees on: most cards slow down slightly above. */
static void draw_temperature(struct top_frame *f, const struct present_card *c)
{
	char text[32];
	double value = c->values[METRIC_TEMPERATURE_GPU];
	top_number(text, sizeof(text), value, f->style.ascii ? "C" : "°");
	top_add_field(f, value >= 85 ? TOP_LOST : TOP_PLAIN, text, 5, false);
}

/* Draws a card without readings: one line that says why. */
static void draw_fault(struct top_frame *f, const struct present_card *c)
{
	static const char *const why[CARD_STATUS_COUNT] = {
		[CARD_STATUS_LOST] = "LOST: the card does not answer",
		[CARD_STATUS_ASLEEP] = "asleep; it is not woken",
		[CARD_STATUS_DENIED] = "DENIED: this user may not open it",
	};
	top_add(f, top_state_style(c), why[c->status]);
	if (c->code == CARD_CODE_STUCK)
		top_add(f, TOP_DIM, " (a call to it has not come back)");
	else if (c->code)
		top_addf(f, TOP_DIM, " (code %d)", c->code);
	if (c->status == CARD_STATUS_LOST)
		top_add(f, TOP_DIM, "; trying again every 30 s");
}

/* Draws how long the card has been in its state. */
static void draw_since(struct top_state *s, const struct present_card *c)
{
	char text[40] = ">";
	size_t mark = c->state_since_ms >= 0 && c->state_longer;
	int64_t ms = c->state_since_ms < 0 ? -1 : s->now.all->now_ms - c->state_since_ms;
	top_span_text(text + mark, sizeof(text) - mark, ms);
	top_add_field(&s->frame, c->state == CARD_IDLE_HELD ? top_state_style(c) : TOP_PLAIN,
		text, 7, false);
}

static void draw_card(struct top_state *s, size_t card, const struct widths *w)
{
	struct top_frame *f = &s->frame;
	const struct present_card *c = &s->now.all->cards[card];
	enum top_style style = top_state_style(c);
	double util = c->values[METRIC_UTILIZATION_GPU], minutes[TOP_HISTORY_MINUTES];
	char text[40];
	card_label(text, sizeof(text), &c->id);
	top_add_field(f, TOP_STRONG, text, 4, false);
	top_add(f, TOP_PLAIN, " ");
	if (w->name)
		top_add_field(f, TOP_PLAIN, short_name(c), w->name - 1, true);
	top_fill(f, TOP_PLAIN, 5 + w->name);
	if (c->status != CARD_STATUS_OK) {
		draw_fault(f, c);
		top_end_line(f);
		return;
	}
	top_add_bar(f, style, util / 100, w->bar);
	top_number(text, sizeof(text), util, "%");
	top_add_field(f, TOP_STRONG, text, 5, false);
	top_add(f, TOP_PLAIN, " ");
	draw_memory(f, c, w->bar);
	draw_power(f, c, w->power);
	draw_temperature(f, c);
	top_add(f, TOP_PLAIN, " ");
	top_add_field(f, style, top_state_word(c), w->state, true);
	draw_since(s, c);
	top_add(f, TOP_PLAIN, " ");
	top_history_get(&s->history, card, s->clock_ms, minutes, w->spark);
	top_add_spark(f, TOP_ACTIVE, minutes, w->spark);
	top_end_line(f);
}

/* "  12  45% 32.1G active " and a bar when there is room. */
static void draw_compact(struct top_state *s, size_t card, size_t width)
{
	struct top_frame *f = &s->frame;
	const struct present_card *c = &s->now.all->cards[card];
	enum top_style style = top_state_style(c);
	double util = c->values[METRIC_UTILIZATION_GPU], used = c->values[METRIC_MEMORY_USED];
	size_t from = f->used, bar = width > COMPACT_TEXTS ? width - COMPACT_TEXTS : 0;
	char text[40];
	card_label(text, sizeof(text), &c->id);
	top_add_field(f, TOP_STRONG, text, 4, false);
	top_add(f, TOP_PLAIN, " ");
	if (bar >= 4) {
		top_add_bar(f, style, util / 100, bar - 1);
		top_add(f, TOP_PLAIN, " ");
	}
	top_number(text, sizeof(text), util, "%");
	top_add_field(f, style, text, 4, false);
	top_gib(text, sizeof(text), used);
	top_add_field(f, TOP_PLAIN, text, 6, false);
	top_add(f, TOP_PLAIN, " ");
	top_add_field(f, style, top_state_short(c), 6, true);
	top_fill(f, TOP_PLAIN, from + width);
}

/* The index of the n-th card that is shown. */
static size_t nth_shown(const struct top_now *now, size_t n)
{
	for (size_t i = 0; i < now->all->n_cards; i++)
		if ((!now->card_on || now->card_on[i]) && n-- == 0)
			return i;
	return SIZE_MAX;
}

static void draw_rows(struct top_state *s, const struct widths *w)
{
	const struct top_layout *l = &s->layout;
	size_t n = top_shown_cards(&s->now);
	size_t total = (n + l->cards_a_line - 1) / l->cards_a_line;
	if (s->first_cards_row + l->cards_rows > total)
		s->first_cards_row = total > l->cards_rows ? total - l->cards_rows : 0;
	for (size_t row = 0; row < l->cards_rows; row++) {
		for (size_t k = 0; k < l->cards_a_line; k++) {
			size_t at = (s->first_cards_row + row) * l->cards_a_line + k;
			size_t card = nth_shown(&s->now, at);
			if (card != SIZE_MAX && l->cards_a_line > 1)
				draw_compact(s, card, l->columns / l->cards_a_line);
			else if (card != SIZE_MAX)
				draw_card(s, card, w);
		}
		if (l->cards_a_line > 1)
			top_end_line(&s->frame);
	}
}

void top_draw_cards(struct top_state *s)
{
	struct widths w = choose_widths(s);
	const struct top_layout *l = &s->layout;
	size_t n = top_shown_cards(&s->now), seen = l->cards_rows * l->cards_a_line;
	if (l->cards_a_line == 1) {
		draw_heading(s, &w);
	} else {
		size_t from = s->first_cards_row * l->cards_a_line, to = from + seen;
		top_add(&s->frame, TOP_HEADING, "CARD  USE   GiB STATE");
		if (seen < n)
			top_addf(&s->frame, TOP_HEADING, "   %zu to %zu of %zu: [ and ] scroll",
				from + 1, to < n ? to : n, n);
		top_fill(&s->frame, TOP_HEADING, l->columns);
		top_end_line(&s->frame);
	}
	draw_rows(s, &w);
}
