/* Draws the table of processes of `gua top`. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "top/top_parts.h"
#include "top/top_words.h"

enum column_id {
	COLUMN_CARD,
	COLUMN_USER,
	COLUMN_PID,
	COLUMN_KIND,
	COLUMN_MEM,
	COLUMN_SM,
	COLUMN_CPU,
	COLUMN_HOST,
	COLUMN_AGE,
	COLUMN_IDLE,
	COLUMN_WHAT,
	COLUMN_COMMAND,
	COLUMNS,
};

static const struct column_info {
	const char *title;
	size_t width; /* 0: fits the content */
	bool left;
	size_t from;	    /* shown on screens with at least this many columns */
	enum top_sort sort; /* TOP_SORTS: not a sort column */
} columns[COLUMNS] = {
	[COLUMN_CARD] = { "CARD", 4, false, 0, TOP_SORT_CARD },
	[COLUMN_USER] = { "USER", 0, true, 0, TOP_SORT_USER },
	[COLUMN_PID] = { "PID", 7, false, 0, TOP_SORT_PID },
	[COLUMN_KIND] = { "T", 1, false, 76, TOP_SORTS },
	[COLUMN_MEM] = { "MEM", 8, false, 0, TOP_SORT_MEM },
	[COLUMN_SM] = { "SM%", 3, false, 0, TOP_SORT_SM },
	[COLUMN_CPU] = { "CPU%", 5, false, 0, TOP_SORT_CPU },
	[COLUMN_HOST] = { "HOST", 8, false, 90, TOP_SORT_HOST },
	[COLUMN_AGE] = { "AGE", 6, false, 0, TOP_SORT_AGE },
	[COLUMN_IDLE] = { "IDLE", 7, false, 0, TOP_SORT_IDLE },
	[COLUMN_WHAT] = { "WHAT", 0, true, 110, TOP_SORT_WHAT },
	[COLUMN_COMMAND] = { "COMMAND", 0, true, 0, TOP_SORT_COMMAND },
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

static void choose_widths(const struct top_state *s, size_t *widths)
{
	size_t screen = s->layout.columns, used = 1;
	for (size_t c = 0; c < COLUMNS; c++)
		widths[c] = screen >= columns[c].from ? columns[c].width : 0;
	widths[COLUMN_USER] = within(s->widest_user, 4, screen < 100 ? 8 : 16);
	if (screen >= columns[COLUMN_WHAT].from && s->widest_what)
		widths[COLUMN_WHAT] = within(s->widest_what, 4, screen / 5);
	for (size_t c = 0; c < COLUMN_COMMAND; c++)
		used += widths[c] ? widths[c] + 1 : 0;
	widths[COLUMN_COMMAND] = screen > used ? screen - used : 0;
}

enum top_sort top_title_at(const struct top_state *s, size_t column)
{
	size_t widths[COLUMNS], end = 1;
	choose_widths(s, widths);
	for (size_t c = 0; c < COLUMNS; c++) {
		end += widths[c] ? widths[c] + 1 : 0;
		if (column < end)
			return columns[c].sort;
	}
	return TOP_SORTS;
}

static void draw_heading(struct top_state *s, const size_t *widths)
{
	struct top_frame *f = &s->frame;
	top_add(f, TOP_HEADING, " ");
	for (size_t c = 0; c < COLUMNS; c++) {
		const struct column_info *info = &columns[c];
		bool sorts = info->sort == s->model.sort;
		if (!widths[c])
			continue;
		bool merged = c == COLUMN_COMMAND && !widths[COLUMN_WHAT] && s->widest_what;
		top_add_field(f, sorts ? TOP_SORTED : TOP_HEADING,
			merged ? "WHAT, COMMAND" : info->title, widths[c], info->left);
		top_add(f, TOP_HEADING, c + 1 < COLUMNS ? " " : "");
	}
	top_fill(f, TOP_HEADING, s->layout.columns);
	top_end_line(f);
}

/* The text of one cell of a process. */
static void cell(char *dst, size_t cap, const struct top_state *s,
	const struct present_process *p, enum column_id c)
{
	int64_t now_ms = s->now.all->now_ms, started_ms = p->id.started_ms;
	int64_t idle_ms = top_idle_ms(p, now_ms);
	size_t mark = idle_ms >= 0 && p->idle_longer;
	*dst = '\0';
	switch (c) {
	case COLUMN_CARD:
		card_label(dst, cap, &s->now.all->cards[p->card].id);
		break;
	case COLUMN_KIND:
		text_copy(dst, cap, top_kind(p->kind));
		break;
	case COLUMN_MEM:
		top_size(dst, cap, p->mem_bytes);
		break;
	case COLUMN_SM:
		top_number(dst, cap, p->sm_pct, "");
		break;
	case COLUMN_CPU:
		top_number(dst, cap, p->cpu_pct, "");
		break;
	case COLUMN_HOST:
		top_size(dst, cap, p->rss_bytes);
		break;
	case COLUMN_AGE:
		top_span_text(dst, cap, started_ms < 0 ? -1 : now_ms - started_ms);
		break;
	case COLUMN_IDLE:
		if (p->active)
			text_copy(dst, cap, "active");
		else
			top_span_text(dst + mark, cap - mark, idle_ms);
		if (mark)
			dst[0] = '>';
		break;
	default:
		break;
	}
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
static enum top_style cell_style(const struct present_process *p, bool idle, size_t c)
{
	if (!p)
		return TOP_DIM;
	if (c == COLUMN_IDLE)
		return p->active ? TOP_ACTIVE : idle ? TOP_IDLE : TOP_PLAIN;
	if (c == COLUMN_SM && p->active)
		return TOP_ACTIVE;
	return idle && c != COLUMN_COMMAND && c != COLUMN_WHAT ? TOP_IDLE : TOP_PLAIN;
}

static void draw_row(
	struct top_state *s, const struct top_row *row, const size_t *widths, bool selected)
{
	struct top_frame *f = &s->frame;
	const struct present_process *p = row->process;
	bool idle = p && top_idle_ms(p, s->now.all->now_ms) >= 0;
	char text[64];
	top_add(f, selected ? TOP_SELECTED : TOP_IDLE, idle ? "!" : " ");
	for (size_t c = 0; c < COLUMNS; c++) {
		enum top_style style = selected ? TOP_SELECTED : cell_style(p, idle, c);
		if (!widths[c])
			continue;
		text[0] = '\0';
		if (c == COLUMN_PID)
			snprintf(text, sizeof(text), "%u", top_row_id(row)->pid);
		else if (p)
			cell(text, sizeof(text), s, p, (enum column_id)c);
		if (c == COLUMN_COMMAND)
			draw_command(s, row, style, widths[c], !widths[COLUMN_WHAT]);
		else if (c == COLUMN_USER || c == COLUMN_WHAT)
			top_add_field(f, style,
				c == COLUMN_USER ? user_shown(top_row_id(row)->user)
						 : what_of(row),
				widths[c], true);
		else
			top_add_field(f, style, text, widths[c], columns[c].left);
		top_add(f, style, c + 1 < COLUMNS ? " " : "");
	}
	if (selected)
		top_fill(f, TOP_SELECTED, s->layout.columns);
	top_end_line(f);
}

void top_draw_table(struct top_state *s)
{
	size_t widths[COLUMNS];
	struct top_model *m = &s->model;
	top_model_show(m, s->layout.table_rows);
	follow_widths(s);
	choose_widths(s, widths);
	draw_heading(s, widths);
	for (size_t i = 0; i < s->layout.table_rows && m->first + i < m->n_rows; i++) {
		size_t at = m->first + i;
		draw_row(s, &m->rows[at], widths, s->layout.rows && at == m->selected);
	}
	if (m->n_rows == 0) {
		top_add(&s->frame, TOP_DIM,
			s->now.all->n_processes ? "  no process matches"
						: "  no processes on the cards");
		top_end_line(&s->frame);
	}
}
