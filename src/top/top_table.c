/* Draws the table of processes of `gua top`. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "top/top_parts.h"
#include "top/top_words.h"

/* The columns of a table, and how wide they are; 0: there is no room. */
struct shown_columns {
	const struct holder_column *all[HOLDER_COLUMNS_MAX];
	size_t widths[HOLDER_COLUMNS_MAX];
	size_t n;
	bool what; /* WHAT has a column of its own */
};

/* The text of the WHAT column: what the row belongs to, else what its memory says of its
 * context. */
static const char *what_of(const struct top_row *row)
{
	const char *what = top_what(row);
	return *what || !row->process ? what : context_texts[row->process->context];
}

/* Widens columns to fit the rows that have been shown. They do not shrink again. */
static void follow_widths(struct top_state *s)
{
	const struct top_model *m = &s->model;
	for (size_t i = m->first; i < m->n_rows && i < m->first + s->layout.table_rows; i++) {
		size_t user = text_columns(user_shown(top_row_id(&m->rows[i])->user));
		size_t what = text_columns(what_of(&m->rows[i]));
		s->widest_user = user > s->widest_user ? user : s->widest_user;
		s->widest_what = what > s->widest_what ? what : s->widest_what;
	}
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

const struct holder_column *top_title_at(const struct top_state *s, size_t column)
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

/* Whether a column is aligned to the left: those that fit their content are. */
static bool is_left(const struct holder_column *c)
{
	return c->top_width == 0;
}

static void draw_heading(struct top_state *s, const struct shown_columns *c)
{
	struct top_frame *f = &s->frame;
	top_add(f, TOP_HEADING, " ");
	for (size_t i = 0; i < c->n; i++) {
		const struct holder_column *info = c->all[i];
		if (!c->widths[i])
			continue;
		bool merged = info->look == HOLDER_COMMAND && !c->what && s->widest_what;
		top_add_field(f, info == s->model.sort ? TOP_SORTED : TOP_HEADING,
			merged ? "WHAT, COMMAND" : info->top_title, c->widths[i],
			is_left(info));
		top_add(f, TOP_HEADING, i + 1 < c->n ? " " : "");
	}
	top_fill(f, TOP_HEADING, s->layout.columns);
	top_end_line(f);
}

static void idle_text(char *dst, size_t cap, const struct holder_row *row)
{
	int64_t idle_ms = present_idle_ms(row->now, row->process);
	size_t mark = idle_ms >= 0 && row->process->idle_longer;
	if (row->process->active)
		text_copy(dst, cap, "active");
	else
		top_span_text(dst + mark, cap - mark, idle_ms);
	if (mark)
		dst[0] = '>';
}

/* The text of one cell of a process. */
static void cell_text_of(
	char *dst, size_t cap, const struct holder_column *c, const struct holder_row *row)
{
	struct cell cell = c->column.get(row, c->column.of);
	bool known = !isnan(cell.number);
	if (c->look == HOLDER_IDLE)
		idle_text(dst, cap, row);
	else if (c->column.kind == COLUMN_TEXT)
		text_copy(dst, cap, cell.text ? cell.text : "");
	else if (c->column.kind == COLUMN_KIB)
		top_size(dst, cap, known ? (int64_t)(cell.number * 1024) : -1);
	else if (c->column.kind == COLUMN_MOMENT)
		top_span_text(dst, cap, known ? row->now->now_ms - (int64_t)cell.number : -1);
	else
		top_number(dst, cap, cell.number, "");
}

/* Returns the text without its first columns. */
static const char *shifted(const char *text, size_t columns_off)
{
	unsigned code_point;
	for (; columns_off && *text; columns_off--) {
		size_t len = utf8_char(text, strlen(text), &code_point);
		text += len ? len : 1;
	}
	return text;
}

static void draw_command(struct top_state *s, const struct top_row *row, enum top_style style,
	size_t width, bool merged)
{
	struct top_frame *f = &s->frame;
	struct str text = { 0 };
	const struct process_id *id = top_row_id(row);
	if (row->depth) {
		str_add_repeat(&text, "  ", row->depth - 1);
		str_add(&text, f->style.ascii ? "`-" : "└─");
	}
	const char *what = merged ? what_of(row) : "";
	str_addf(&text, "%s%s%s", what, *what ? "  " : "", id->command);
	top_add_field(f, style, shifted(str_text(&text), s->shift), width, true);
	str_finish(&text);
}

/* The style of a cell in a row that is not selected. */
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
	bool idle = p && present_idle_ms(s->now.all, p) >= 0;
	char text[64];
	struct holder_row facts;
	if (p)
		holders_row(&facts, s->now.all, p);
	top_add(f, selected ? TOP_SELECTED : TOP_IDLE, idle ? "!" : " ");
	for (size_t i = 0; i < columns->n; i++) {
		const struct holder_column *c = columns->all[i];
		size_t width = columns->widths[i];
		enum top_style style = selected ? TOP_SELECTED : cell_style(p, idle, c->look);
		if (!width)
			continue;
		text[0] = '\0';
		if (c->look == HOLDER_PID)
			snprintf(text, sizeof(text), "%u", top_row_id(row)->pid);
		else if (p)
			cell_text_of(text, sizeof(text), c, &facts);
		if (c->look == HOLDER_COMMAND)
			draw_command(s, row, style, width, !columns->what);
		else if (c->look == HOLDER_USER)
			top_add_field(f, style, user_shown(top_row_id(row)->user), width, true);
		else if (c->look == HOLDER_WHAT)
			top_add_field(f, style, what_of(row), width, true);
		else
			top_add_field(f, style, text, width, is_left(c));
		top_add(f, style, i + 1 < columns->n ? " " : "");
	}
	if (selected)
		top_fill(f, TOP_SELECTED, s->layout.columns);
	top_end_line(f);
}

void top_draw_table(struct top_state *s)
{
	struct shown_columns columns;
	struct top_model *m = &s->model;
	top_model_show(m, s->layout.table_rows);
	follow_widths(s);
	choose_columns(s, &columns);
	draw_heading(s, &columns);
	for (size_t i = 0; i < s->layout.table_rows && m->first + i < m->n_rows; i++) {
		size_t at = m->first + i;
		draw_row(s, &m->rows[at], &columns, s->layout.rows && at == m->selected);
	}
	if (m->n_rows == 0) {
		top_add(&s->frame, TOP_DIM,
			s->now.all->n_processes ? "  no process matches"
						: "  no processes on the cards");
		top_end_line(&s->frame);
	}
}
