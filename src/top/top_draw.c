/* Draws the whole screen of `gua top`: title, summary, cards, table or page, messages, keys. */
#include <stdio.h>
#include <string.h>

#include "base/timetext.h"
#include "top/top_parts.h"
#include "top/top_words.h"

static void draw_title(struct top_state *s)
{
	struct top_frame *f = &s->frame;
	char when[40] = "";
	struct tm tm = moment_fields(s->clock_ms, false);
	bool wide = s->layout.columns >= 90;
	strftime(when, sizeof(when), wide ? "%a %Y-%m-%d %H:%M:%S" : "%H:%M:%S", &tm);
	size_t at =
		s->layout.columns > strlen(when) + 1 ? s->layout.columns - strlen(when) - 1 : 0;
	top_add(f, TOP_TITLE, " gua top  ");
	top_add(f, TOP_TITLE, s->host);
	if (*s->driver)
		top_addf(f, TOP_TITLE, "  driver %s", s->driver);
	if (s->no_signals && s->layout.columns >= 70)
		top_addf(f, TOP_TITLE, "  (%s)", s->no_signals);
	top_fill(f, TOP_TITLE, at);
	top_add(f, TOP_TITLE, when);
	top_fill(f, TOP_TITLE, s->layout.columns);
	top_end_line(f);
}

/* "8 cards: 1 lost, 3 active, 2 idle-held": one span for each state that a card is in. What
 * needs somebody comes first, because the end of the line may not fit on the screen. */
static void draw_states(struct top_state *s)
{
	struct top_frame *f = &s->frame;
	static const struct present_card kinds[] = {
		{ .status = CARD_STATUS_LOST },
		{ .status = CARD_STATUS_DENIED },
		{ .state = CARD_ACTIVE },
		{ .state = CARD_IDLE_HELD },
		{ .state = CARD_TRULY_IDLE },
		{ .state = CARD_USE_UNKNOWN },
		{ .state = CARD_UNOBSERVED },
		{ .state = CARD_SUSPECT },
		{ .status = CARD_STATUS_ASLEEP },
	};
	size_t n = top_shown_cards(&s->now);
	const char *separator = ": ";
	top_addf(f, TOP_STRONG, " %zu card%s", n, n == 1 ? "" : "s");
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		const char *word = top_state_word(&kinds[k]);
		size_t count = 0;
		for (size_t i = 0; i < s->now.all->n_cards; i++)
			count += (!s->now.card_on || s->now.card_on[i]) &&
				 strcmp(top_state_word(&s->now.all->cards[i]), word) == 0;
		if (!count)
			continue;
		top_add(f, TOP_PLAIN, separator);
		top_addf(f, top_state_style(&kinds[k]), "%zu %s", count, word);
		separator = ", ";
	}
}

/* Draws how much memory the listed processes hold, and how much of it idle ones hold. This
 * comes first, because the end of the line may not fit on the screen. */
static void draw_summary(struct top_state *s)
{
	struct top_frame *f = &s->frame;
	const struct top_model *m = &s->model;
	bool hides = m->filter[0] || m->user[0] ||
		     (s->now.filter && filter_has_process(s->now.filter));
	const char *shown = hides ? "shown " : "";
	size_t holders = 0, idle = 0;
	int64_t idle_bytes = 0;
	bool more = false; /* the driver does not report the memory of some */
	char size[16];
	for (size_t i = 0; i < m->n_rows; i++) {
		const struct present_process *p = m->rows[i].process;
		if (!p || !p->holder)
			continue;
		holders++;
		if (present_idle_ms(s->now.all, p) < 0)
			continue;
		idle++;
		idle_bytes += p->mem_bytes > 0 ? p->mem_bytes : 0;
		more |= p->mem_bytes < 0;
	}
	top_size(size, sizeof(size), more && !idle_bytes ? -1 : idle_bytes);
	if (idle)
		top_addf(f, TOP_IDLE, " %zu of %zu %sholder%s idle: %s%s", idle, holders, shown,
			holders == 1 ? "" : "s", more && idle_bytes ? ">" : "", size);
	else
		top_addf(f, TOP_PLAIN, " %zu %sholder%s", holders, shown,
			holders == 1 ? "" : "s");
	top_add(f, TOP_PLAIN, ";");
	draw_states(s);
	top_end_line(f);
}

static void draw_keys(struct top_state *s)
{
	static const struct {
		const char *key, *label;
	} keys[] = { { "F1", "Help " }, { "/", "Filter " }, { "u", "User " }, { "t", "Tree " },
		{ "F6", "Sort " }, { "i", "Idle first " }, { "Enter", "Details " },
		{ "k", "Signal " }, { "q", "Quit " } };
	struct top_frame *f = &s->frame;
	if (s->typing) {
		top_add(f, TOP_KEY, "Filter: ");
		top_add(f, TOP_LABEL, s->model.filter);
		top_add(f, TOP_LABEL, "_");
		top_add(f, TOP_KEY, "  Enter keeps it, Escape removes it");
		top_end_line(f);
		return;
	}
	/* A filter hides rows, so it is always shown. */
	if (s->model.filter[0])
		top_addf(f, TOP_IDLE, "only '%s' ", s->model.filter);
	if (s->model.user[0])
		top_addf(f, TOP_IDLE, "only of %s ", user_shown(s->model.user));
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (keys[i].key[0] == 'k' && s->no_signals)
			continue;
		top_add(f, TOP_KEY, keys[i].key);
		top_add(f, TOP_LABEL, keys[i].label);
	}
	top_fill(f, TOP_LABEL, s->layout.columns);
	top_end_line(f);
}

/* Draws the line above the keys; false if there is nothing to show. */
static bool draw_message(struct top_state *s, bool count_only)
{
	bool any = s->message[0] || s->silent_ms || s->fault[0] || s->note[0];
	char age[16];
	if (count_only || !any)
		return any;
	if (s->message[0]) {
		top_addf(&s->frame, TOP_STRONG, " %s", s->message);
	} else if (s->silent_ms) {
		top_span_text(age, sizeof(age), s->silent_ms);
		top_addf(&s->frame, TOP_LOST,
			" the driver has not answered for %s; showing the last readings", age);
	} else if (s->fault[0]) {
		top_span_text(age, sizeof(age), s->clock_ms - s->fault_since_ms);
		top_addf(&s->frame, TOP_LOST, " no driver for %s, trying again: %s", age,
			s->fault);
	} else {
		top_addf(&s->frame, TOP_DIM, " %s", s->note);
	}
	top_end_line(&s->frame);
	return true;
}

void top_draw(struct top_state *s, size_t rows, size_t columns)
{
	size_t extra = draw_message(s, true);
	top_frame_start(&s->frame, columns);
	s->layout = top_plan(s, rows, columns, extra);
	draw_title(s);
	draw_summary(s);
	/* Pages of text need the room. */
	if (s->page == TOP_TABLE || s->page == TOP_SORT_MENU || s->page == TOP_USER_MENU)
		top_draw_cards(s);
	if (s->page == TOP_TABLE)
		top_draw_table(s);
	else
		top_draw_page(s);
	if (rows)
		top_frame_cut(&s->frame, rows > 1 + extra ? rows - 1 - extra : 0);
	while (s->frame.lines + 1 + extra < rows)
		top_end_line(&s->frame);
	draw_message(s, false);
	if (rows)
		draw_keys(s);
}
