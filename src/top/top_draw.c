/* Draws the whole screen of `gua top`: title, summary, cards, table or page, messages, keys. */
#include "top/top_state.h"
#include "top/top_words.h"

/* Width of a card in a line of several cards, without its bar. */
enum { COMPACT_COLUMNS = 26, COMPACT_TEXTS = 26 };

static size_t shown_cards(const struct top_now *now)
{
	size_t n = 0;
	for (size_t i = 0; i < now->all->n_cards; i++)
		n += !now->card_on || now->card_on[i];
	return n;
}

size_t top_draw_card_at(const struct top_state *s, size_t n)
{
	const struct top_now *now = &s->now;
	for (size_t i = 0; i < now->all->n_cards; i++)
		if ((!now->card_on || now->card_on[i]) && n-- == 0)
			return i;
	return SIZE_MAX;
}

static enum top_style label_style(const struct top_state *s, size_t card)
{
	bool selected = s->on_cards && top_draw_card_at(s, s->card_row) == card;
	return selected ? TOP_SELECTED : TOP_STRONG;
}

/* Widths of the parts of a card's line. */
struct widths {
	size_t name, bar, power, state, spark;
};

static struct widths choose_widths(const struct top_state *s)
{
	size_t columns = s->layout.columns, longest = 4;
	/* id, utilisation, memory, temperature, since when, blanks */
	size_t fixed = 4 + 1 + 5 + 1 + 10 + 5 + 1 + 7 + 1;
	struct widths w = { .power = columns >= 110 ? 9 : 5, .state = 10 };
	for (size_t i = 0; i < s->now.all->n_cards; i++) {
		size_t wide = str_columns(card_short_name(s->now.all->cards[i].id.name)) + 1;
		size_t word = strlen(top_words_state(&s->now.all->cards[i]));
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

static void draw_fault(struct top_frame *f, const struct present_card *c)
{
	static const char *const why[CARD_STATUS_COUNT] = {
		[CARD_STATUS_LOST] = "LOST: the card does not answer",
		[CARD_STATUS_ASLEEP] = "asleep; it is not woken",
		[CARD_STATUS_DENIED] = "DENIED: this user may not open it",
	};
	top_frame_add(f, top_words_state_style(c), why[c->status]);
	if (c->code == CARD_CODE_STUCK)
		top_frame_add(f, TOP_DIM, " (a call to it has not come back)");
	else if (c->code)
		top_frame_addf(f, TOP_DIM, " (code %d)", c->code);
	if (c->status == CARD_STATUS_LOST)
		top_frame_add(f, TOP_DIM, "; trying again every 30 s");
}

static void draw_card(struct top_state *s, size_t card, const struct widths *w)
{
	struct top_frame *f = &s->frame;
	const struct present_card *c = &s->now.all->cards[card];
	enum top_style style = top_words_state_style(c);
	double util = c->values[METRIC_UTILIZATION_GPU], minutes[TOP_HISTORY_MINUTES];
	top_frame_add_field(f, label_style(s, card), card_label(&c->id).text, 4, false);
	top_frame_add(f, TOP_PLAIN, " ");
	if (w->name)
		top_frame_add_field(
			f, TOP_PLAIN, card_short_name(c->id.name), w->name - 1, true);
	top_frame_fill(f, TOP_PLAIN, 5 + w->name);
	if (c->status != CARD_STATUS_OK) {
		draw_fault(f, c);
		top_frame_end_line(f);
		return;
	}
	top_frame_add_bar(f, style, util / 100, w->bar);
	top_frame_add_field(f, TOP_STRONG, top_words_number(util, "%").text, 5, false);
	top_frame_add(f, TOP_PLAIN, " ");
	/* Power is in whole watts, as in the other views; the temperature is red from 85
	 * degrees on: most cards slow down slightly above. */
	double drawn = floor(c->values[METRIC_POWER_DRAW]);
	struct brief power = top_words_number(drawn, "W");
	double used = c->values[METRIC_MEMORY_USED], total = c->values[METRIC_MEMORY_TOTAL];
	double most = floor(c->values[METRIC_POWER_ENFORCED]);
	double degrees = c->values[METRIC_TEMPERATURE_GPU];
	top_frame_add_bar(f, used / total >= 0.9 ? TOP_LOST : TOP_PLAIN, used / total, w->bar);
	top_frame_add_field(f, TOP_PLAIN,
		str_brief("%.18s/%.18s", top_words_gib(used).text, top_words_gib(total).text)
			.text,
		10, false);
	if (w->power >= 9 && !isnan(most))
		power = str_brief("%.18s/%.18s", top_words_number(drawn, "").text,
			top_words_number(most, "W").text);
	top_frame_add_field(f, TOP_PLAIN, power.text, w->power, false);
	top_frame_add_field(f, degrees >= 85 ? TOP_LOST : TOP_PLAIN,
		top_words_number(degrees, f->style.ascii ? "C" : "°").text, 5, false);
	top_frame_add(f, TOP_PLAIN, " ");
	top_frame_add_field(f, style, top_words_state(c), w->state, true);
	bool mark = c->state_since_ms >= 0 && c->state_longer;
	int64_t ms = c->state_since_ms < 0 ? -1 : s->now.all->now_ms - c->state_since_ms;
	top_frame_add_field(&s->frame,
		c->state == CARD_IDLE_HELD ? top_words_state_style(c) : TOP_PLAIN,
		str_brief("%s%.20s", mark ? ">" : "", top_words_span(ms).text).text, 7, false);
	top_frame_add(f, TOP_PLAIN, " ");
	top_history_get(&s->history, card, s->clock_ms, minutes, w->spark);
	top_frame_add_spark(f, TOP_ACTIVE, minutes, w->spark);
	top_frame_end_line(f);
}

/* "  12  45% 32.1G active    " and a bar when there is room. */
static void draw_compact(struct top_state *s, size_t card, size_t width)
{
	struct top_frame *f = &s->frame;
	const struct present_card *c = &s->now.all->cards[card];
	enum top_style style = top_words_state_style(c);
	double util = c->values[METRIC_UTILIZATION_GPU], used = c->values[METRIC_MEMORY_USED];
	size_t from = f->used, bar = width > COMPACT_TEXTS ? width - COMPACT_TEXTS : 0;
	top_frame_add_field(f, label_style(s, card), card_label(&c->id).text, 4, false);
	top_frame_add(f, TOP_PLAIN, " ");
	if (bar >= 4) {
		top_frame_add_bar(f, style, util / 100, bar - 1);
		top_frame_add(f, TOP_PLAIN, " ");
	}
	top_frame_add_field(f, style, top_words_number(util, "%").text, 4, false);
	top_frame_add_field(f, TOP_PLAIN, top_words_gib(used).text, 6, false);
	top_frame_add(f, TOP_PLAIN, " ");
	top_frame_add_field(f, style, top_words_state(c), 10, true);
	top_frame_fill(f, TOP_PLAIN, from + width);
}

static void draw_cards(struct top_state *s)
{
	struct widths w = choose_widths(s);
	struct top_frame *f = &s->frame;
	const struct top_layout *l = &s->layout;
	size_t n = shown_cards(&s->now), a_line = l->cards_a_line;
	size_t all_rows = (n + a_line - 1) / a_line;
	size_t last_row = all_rows > l->cards_rows ? all_rows - l->cards_rows : 0;
	size_t from = s->first_cards_row * a_line, to = from + l->cards_rows * a_line;
	if (a_line == 1) {
		top_frame_add_field(f, TOP_HEADING, "CARD", 5, true);
		top_frame_add_field(f, TOP_HEADING, w.name ? "NAME" : "", w.name, true);
		top_frame_add_field(f, TOP_HEADING, "USE", w.bar + 6, true);
		top_frame_add_field(
			f, TOP_HEADING, w.bar ? "MEMORY GiB" : " MEM GiB", w.bar + 10, true);
		top_frame_add_field(f, TOP_HEADING, "POWER", w.power, false);
		top_frame_add_field(f, TOP_HEADING, "TEMP", 5, false);
		top_frame_add_field(f, TOP_HEADING, " STATE", 1 + w.state, true);
		top_frame_add_field(f, TOP_HEADING, "FOR", 7, false);
		struct brief past =
			str_brief(w.spark > 14 ? " LAST %zu MIN" : " %zu MIN", w.spark);
		top_frame_add_field(
			f, TOP_HEADING, w.spark > 6 ? past.text : "", w.spark + 1, true);
		top_frame_fill(f, TOP_HEADING, s->layout.columns);
		top_frame_end_line(f);
	} else {
		top_frame_add(f, TOP_HEADING, "CARD  USE   GiB STATE");
		if (l->cards_rows * a_line < n)
			top_frame_addf(f, TOP_HEADING, "   %zu to %zu of %zu: [ and ] scroll",
				from + 1, to < n ? to : n, n);
		top_frame_fill(f, TOP_HEADING, l->columns);
		top_frame_end_line(f);
	}
	if (s->on_cards && s->card_row < from)
		s->first_cards_row = s->card_row / a_line;
	if (s->on_cards && s->card_row >= to)
		s->first_cards_row = s->card_row / a_line + 1 - l->cards_rows;
	if (s->first_cards_row > last_row)
		s->first_cards_row = last_row;
	for (size_t row = 0; row < l->cards_rows; row++) {
		for (size_t k = 0; k < a_line; k++) {
			size_t at = (s->first_cards_row + row) * a_line + k;
			size_t card = top_draw_card_at(s, at);
			if (card != SIZE_MAX && a_line > 1)
				draw_compact(s, card, l->columns / a_line);
			else if (card != SIZE_MAX)
				draw_card(s, card, &w);
		}
		if (a_line > 1)
			top_frame_end_line(f);
	}
}

/* The columns of a table, and how wide they are; 0: there is no room. */
struct shown_columns {
	const struct holder_column *all[HOLDER_COLUMNS_MAX];
	size_t widths[HOLDER_COLUMNS_MAX];
	size_t n;
	bool what; /* WHAT has a column of its own */
};

/* The text of the WHAT column: what the row belongs to, or else whether it has only a bare
 * context. */
static const char *what_of(const struct top_row *row)
{
	const char *what = top_model_row_label(row);
	return *what || !row->process ? what : context_texts[row->process->context];
}

static size_t within(size_t value, size_t least, size_t most)
{
	return value < least ? least : value > most ? most : value;
}

static void choose_columns(const struct top_state *s, struct shown_columns *c)
{
	size_t screen = s->layout.columns, used = 1, last = 0;
	*c = (struct shown_columns){ 0 };
	c->n = holders_top_columns(c->all);
	for (size_t i = 0; i < c->n; i++) {
		const struct holder_column *info = c->all[i];
		c->widths[i] = screen >= info->top_from ? info->top_width : 0;
		if (info->look == HOLDER_USER)
			c->widths[i] = within(s->widest_user, 4, screen < 100 ? 8 : 16);
		if (info->look == HOLDER_WHAT && screen >= info->top_from && s->widest_what)
			c->widths[i] = within(s->widest_what, 4, screen / 5);
		c->what |= info->look == HOLDER_WHAT && c->widths[i];
		if (info->look == HOLDER_COMMAND)
			last = i;
		else
			used += c->widths[i] ? c->widths[i] + 1 : 0;
	}
	c->widths[last] = screen > used ? screen - used : 0;
}

const struct holder_column *top_draw_title_at(const struct top_state *s, size_t column)
{
	struct shown_columns c;
	size_t end = 1;
	choose_columns(s, &c);
	for (size_t i = 0; i < c.n; i++) {
		end += c.widths[i] ? c.widths[i] + 1 : 0;
		if (column < end)
			return c.all[i]->sort_word ? c.all[i] : NULL;
	}
	return NULL;
}

/* A cell of a process. */
static struct brief cell_brief(const struct holder_column *c, const struct holder_row *row)
{
	if (c->look == HOLDER_CARD)
		return card_label(&row->card->id);
	if (c->look == HOLDER_IDLE) {
		int64_t idle_ms = present_idle_ms(row->now, row->process);
		if (row->process->active)
			return str_brief("active");
		struct brief span = top_words_span(idle_ms);
		return idle_ms >= 0 && row->process->idle_longer
			       ? str_brief(">%.20s", span.text)
			       : span;
	}
	struct cell cell = c->column.get(row, c->column.of);
	bool known = !isnan(cell.number);
	if (c->column.kind == COLUMN_TEXT)
		return str_brief("%s", cell.text ? cell.text : "");
	if (c->column.kind == COLUMN_KIB)
		return top_words_size(known ? (int64_t)(cell.number * 1024) : -1);
	if (c->column.kind == COLUMN_MOMENT)
		return top_words_span(known ? row->now->now_ms - (int64_t)cell.number : -1);
	return top_words_number(cell.number, "");
}

/* The command with what it belongs to, unless that has a column, and its place in the tree. */
static const char *command_of(
	const struct top_state *s, const struct top_row *row, bool merged, struct str *text)
{
	unsigned code_point;
	str_clear(text);
	if (row->depth) {
		str_add_repeat(text, "  ", row->depth - 1);
		str_add(text, s->frame.style.ascii ? "`-" : "└─");
	}
	const char *what = merged ? what_of(row) : "";
	str_add(text, what);
	str_add(text, *what ? "  " : "");
	str_add(text, top_model_row_id(row)->command);
	const char *from = str_text(text);
	for (size_t i = 0; i < s->shift && *from; i++) {
		size_t len = str_utf8_char(from, strlen(from), &code_point);
		from += len ? len : 1;
	}
	return from;
}

static enum top_style cell_style(
	const struct present_process *p, bool idle, enum holder_look look)
{
	if (!p)
		return TOP_DIM;
	if (look == HOLDER_IDLE)
		return p->active ? TOP_ACTIVE : idle ? TOP_IDLE : TOP_PLAIN;
	if (look == HOLDER_SM && p->active)
		return TOP_ACTIVE;
	return idle && look != HOLDER_COMMAND && look != HOLDER_WHAT ? TOP_IDLE : TOP_PLAIN;
}

static void draw_row(struct top_state *s, const struct top_row *row,
	const struct shown_columns *columns, bool selected)
{
	struct top_frame *f = &s->frame;
	const struct present_process *p = row->process;
	const struct process_id *id = top_model_row_id(row);
	bool idle = p && present_idle_ms(s->now.all, p) >= 0;
	struct holder_row facts;
	struct str command = { 0 };
	if (p)
		holders_row_bare(&facts, s->now.all, p);
	top_frame_add(f, selected ? TOP_SELECTED : TOP_IDLE, idle ? "!" : " ");
	for (size_t i = 0; i < columns->n; i++) {
		const struct holder_column *c = columns->all[i];
		size_t width = columns->widths[i];
		enum top_style style = selected ? TOP_SELECTED : cell_style(p, idle, c->look);
		struct brief brief;
		const char *text = "";
		if (!width)
			continue;
		if (c->look == HOLDER_COMMAND)
			text = command_of(s, row, !columns->what, &command);
		else if (c->look == HOLDER_USER)
			text = process_shown_user(id->user);
		else if (c->look == HOLDER_WHAT)
			text = what_of(row);
		else if (c->look == HOLDER_PID)
			text = (brief = str_whole(id->pid, "")).text;
		else if (p)
			text = (brief = cell_brief(c, &facts)).text;
		top_frame_add_field(f, style, text, width, c->top_width == 0);
		if (i + 1 < columns->n)
			top_frame_fill(f, style, f->used + 1);
	}
	if (selected)
		top_frame_fill(f, TOP_SELECTED, s->layout.columns);
	top_frame_end_line(f);
	str_finish(&command);
}

static void draw_table(struct top_state *s)
{
	struct shown_columns columns;
	struct top_model *m = &s->model;
	top_model_show(m, s->layout.table_rows);
	/* Columns get wider for the rows that are shown, and do not shrink again. */
	for (size_t i = m->first; i < m->n_rows && i < m->first + s->layout.table_rows; i++) {
		const char *shown = process_shown_user(top_model_row_id(&m->rows[i])->user);
		size_t user = str_columns(shown), what = str_columns(what_of(&m->rows[i]));
		s->widest_user = user > s->widest_user ? user : s->widest_user;
		s->widest_what = what > s->widest_what ? what : s->widest_what;
	}
	choose_columns(s, &columns);
	struct top_frame *f = &s->frame;
	top_frame_add(f, TOP_HEADING, " ");
	for (size_t i = 0; i < columns.n; i++) {
		const struct holder_column *info = columns.all[i];
		if (!columns.widths[i])
			continue;
		bool merged = info->look == HOLDER_COMMAND && !columns.what && s->widest_what;
		top_frame_add_field(f, info == s->model.sort ? TOP_SORTED : TOP_HEADING,
			merged ? "WHAT, COMMAND" : info->top_title, columns.widths[i],
			info->top_width == 0);
		top_frame_add(f, TOP_HEADING, i + 1 < columns.n ? " " : "");
	}
	top_frame_fill(f, TOP_HEADING, s->layout.columns);
	top_frame_end_line(f);
	for (size_t i = 0; i < s->layout.table_rows && m->first + i < m->n_rows; i++) {
		size_t at = m->first + i;
		draw_row(s, &m->rows[at], &columns,
			s->layout.rows && at == m->selected && !s->on_cards);
	}
	if (m->n_rows == 0) {
		top_frame_add(&s->frame, TOP_DIM,
			s->now.all->n_processes ? "  no process matches"
						: "  no processes on the cards");
		top_frame_end_line(&s->frame);
	}
}

static void draw_title(struct top_state *s)
{
	struct top_frame *f = &s->frame;
	size_t columns = s->layout.columns;
	struct brief when = moment_format(
		columns >= 90 ? "%a %Y-%m-%d %H:%M:%S" : "%H:%M:%S", s->clock_ms, false);
	top_frame_add(f, TOP_TITLE, " gua top  ");
	top_frame_add(f, TOP_TITLE, s->host);
	if (*s->driver)
		top_frame_addf(f, TOP_TITLE, "  driver %s", s->driver);
	if (s->no_signals && columns >= 70)
		top_frame_addf(f, TOP_TITLE, "  (%s)", s->no_signals);
	top_frame_fill(f, TOP_TITLE,
		columns > strlen(when.text) + 2 ? columns - strlen(when.text) - 2 : 0);
	top_frame_addf(f, TOP_TITLE, " %s", when.text);
	top_frame_fill(f, TOP_TITLE, columns);
	top_frame_end_line(f);
}

/* "8 cards: 1 lost, 3 active, 2 idle-held": one span for each state that a card is in.
 * States that need attention come first, because the end of the line may not fit on the
 * screen. */
static void draw_states(struct top_state *s)
{
	struct top_frame *f = &s->frame;
	enum { FAULTS = 2, KINDS = FAULTS + CARD_SHOWN_STATES + 1 };
	struct present_card kinds[KINDS] = {
		{ .status = CARD_STATUS_LOST },
		{ .status = CARD_STATUS_DENIED },
	};
	kinds[KINDS - 1].status = CARD_STATUS_ASLEEP;
	for (size_t k = 0; k < CARD_SHOWN_STATES; k++)
		kinds[FAULTS + k].state = state_order[k];
	size_t n = shown_cards(&s->now);
	const char *separator = ": ";
	top_frame_addf(f, TOP_STRONG, " %zu card%s", n, n == 1 ? "" : "s");
	for (size_t k = 0; k < KINDS; k++) {
		size_t count = 0;
		for (size_t i = 0; i < s->now.all->n_cards; i++) {
			const struct present_card *c = &s->now.all->cards[i];
			bool ok = c->status == CARD_STATUS_OK;
			count += (!s->now.card_on || s->now.card_on[i]) &&
				 c->status == kinds[k].status &&
				 (!ok || c->state == kinds[k].state);
		}
		if (!count)
			continue;
		top_frame_add(f, TOP_PLAIN, separator);
		top_frame_addf(f, top_words_state_style(&kinds[k]), "%zu %s", count,
			top_words_state(&kinds[k]));
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
	if (idle)
		top_frame_addf(f, TOP_IDLE, " %zu of %zu %sholder%s idle: %s%s", idle, holders,
			shown, holders == 1 ? "" : "s", more && idle_bytes ? ">" : "",
			top_words_size(more && !idle_bytes ? -1 : idle_bytes).text);
	else
		top_frame_addf(f, TOP_PLAIN, " %zu %sholder%s", holders, shown,
			holders == 1 ? "" : "s");
	top_frame_add(f, TOP_PLAIN, ";");
	draw_states(s);
	top_frame_end_line(f);
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
		top_frame_add(f, TOP_KEY, "Filter: ");
		top_frame_add(f, TOP_LABEL, s->model.filter);
		top_frame_add(f, TOP_LABEL, "_");
		top_frame_add(f, TOP_KEY, "  Enter keeps it, Escape removes it");
		top_frame_end_line(f);
		return;
	}
	/* A filter hides rows, so it is always shown. */
	if (s->model.filter[0])
		top_frame_addf(f, TOP_IDLE, "only '%s' ", s->model.filter);
	if (s->model.user[0])
		top_frame_addf(f, TOP_IDLE, "only of %s ", process_shown_user(s->model.user));
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (keys[i].key[0] == 'k' && s->no_signals)
			continue;
		top_frame_add(f, TOP_KEY, keys[i].key);
		top_frame_add(f, TOP_LABEL, keys[i].label);
	}
	top_frame_fill(f, TOP_LABEL, s->layout.columns);
	top_frame_end_line(f);
}

/* Draws the line above the keys; false if there is nothing to show. */
static bool draw_message(struct top_state *s, bool count_only)
{
	bool any = s->message[0] || s->silent_ms || s->fault[0] || s->note[0];
	if (count_only || !any)
		return any;
	if (s->message[0]) {
		top_frame_addf(&s->frame, TOP_STRONG, " %s", s->message);
	} else if (s->silent_ms) {
		top_frame_addf(&s->frame, TOP_LOST,
			" the driver has not answered for %s; showing the last readings",
			top_words_span(s->silent_ms).text);
	} else if (s->fault[0]) {
		top_frame_addf(&s->frame, TOP_LOST, " no driver for %s, trying again: %s",
			top_words_span(s->clock_ms - s->fault_since_ms).text, s->fault);
	} else {
		top_frame_addf(&s->frame, TOP_DIM, " %s", s->note);
	}
	top_frame_end_line(&s->frame);
	return true;
}

void top_draw(struct top_state *s, size_t rows, size_t columns)
{
	size_t extra = draw_message(s, true);
	top_frame_start(&s->frame, columns);
	/* Title, summary, headings of cards and of processes, keys. */
	size_t n = shown_cards(&s->now), fixed = 5 + extra;
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
	s->layout = l;
	draw_title(s);
	draw_summary(s);
	/* Pages of text need the room. */
	if (s->page == TOP_TABLE || s->page == TOP_SORT_MENU || s->page == TOP_USER_MENU)
		draw_cards(s);
	if (s->page == TOP_TABLE)
		draw_table(s);
	else
		top_pages_draw(s);
	if (rows)
		top_frame_cut(&s->frame, rows > 1 + extra ? rows - 1 - extra : 0);
	while (s->frame.lines + 1 + extra < rows)
		top_frame_end_line(&s->frame);
	draw_message(s, false);
	if (rows)
		draw_keys(s);
}
