/* Chooses, sorts and selects the processes of `gua top`. */
#include "top/top_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "top/top_tree.h"

void top_model_finish(struct top_model *m)
{
	free(m->rows);
	*m = (struct top_model){ 0 };
}

const struct process_id *top_model_row_id(const struct top_row *row)
{
	return row->process ? &row->process->id : &row->ancestor->id;
}

const char *top_model_row_label(const struct top_row *row)
{
	return process_label_of(top_model_row_id(row));
}

/* What rows are ordered by. */
struct sorting {
	const struct holder_column *column; /* NULL: none */
	bool reverse;
	const struct present *now;
};

/* The value of a process in the column; NAN: not known. */
static double number_of(const struct sorting *s, const struct present_process *p)
{
	struct holder_row row;
	int64_t idle_ms = present_idle_ms(s->now, p);
	if (s->column->look == HOLDER_CARD)
		return (double)p->card;
	if (s->column->look == HOLDER_IDLE)
		return idle_ms < 0 ? NAN : (double)idle_ms;
	holders_row_bare(&row, s->now, p);
	return s->column->column.get(&row, s->column->column.of).number;
}

static const char *text_of(const struct sorting *s, const struct present_process *p)
{
	struct holder_row row;
	if (s->column->look == HOLDER_USER)
		return p->id.user;
	if (s->column->look == HOLDER_WHAT)
		return process_label_of(&p->id);
	holders_row_bare(&row, s->now, p);
	const char *text = s->column->column.get(&row, s->column->column.of).text;
	return text ? text : "";
}

/* Below 0: a comes first. Unknown values come last in both directions. */
static int compare_numbers(double a, double b, bool down)
{
	if (isnan(a) || isnan(b))
		return isnan(a) - isnan(b);
	int order = (a > b) - (a < b);
	return down ? -order : order;
}

static int compare_texts(const char *a, const char *b, bool down)
{
	if (!*a || !*b)
		return !*a - !*b;
	int order = strcasecmp(a, b);
	return down ? -order : order;
}

static int compare(const void *left, const void *right, void *context)
{
	const struct sorting *s = context;
	const struct present_process *a = ((const struct top_row *)left)->process;
	const struct present_process *b = ((const struct top_row *)right)->process;
	const struct holder_column *c = s->column;
	bool down = c && c->down != s->reverse;
	bool texts = c && c->column.kind == COLUMN_TEXT && c->look != HOLDER_CARD &&
		     c->look != HOLDER_IDLE;
	int order = !c	    ? 0
		    : texts ? compare_texts(text_of(s, a), text_of(s, b), down)
			    : compare_numbers(number_of(s, a), number_of(s, b), down);
	if (order == 0)
		order = (a->card > b->card) - (a->card < b->card);
	if (order == 0)
		order = (a->mem_bytes < b->mem_bytes) - (a->mem_bytes > b->mem_bytes);
	return order ? order : (a->id.pid > b->id.pid) - (a->id.pid < b->id.pid);
}

static bool contains(const struct present_process *p, const char *part)
{
	char pid[16];
	const struct process_id *id = &p->id;
	snprintf(pid, sizeof(pid), "%u", id->pid);
	bool found = strcasestr(pid, part) || strcasestr(process_shown_user(id->user), part);
	for (size_t i = 0; i < PROCESS_TEXTS && !found; i++)
		found = strcasestr(process_text(id, i), part);
	return found;
}

static bool wanted(
	const struct top_model *m, const struct top_now *now, const struct present_process *p)
{
	return (!now->card_on || now->card_on[p->card]) &&
	       (!now->filter || filter_process(now->filter, p)) &&
	       (!m->user[0] || strcmp(m->user, p->id.user) == 0) &&
	       (!m->filter[0] || contains(p, m->filter));
}

static struct top_key key_of(const struct top_row *row)
{
	const struct process_id *id = top_model_row_id(row);
	return (struct top_key){ id->pid, id->start_ticks,
		row->process ? row->process->card : SIZE_MAX };
}

/* Finds the selected process again; when it is gone, the row in its place is selected. */
static void follow_selection(struct top_model *m)
{
	for (size_t i = 0; i < m->n_rows; i++) {
		struct top_key key = key_of(&m->rows[i]);
		if (key.pid == m->key.pid && key.start_ticks == m->key.start_ticks &&
			key.card == m->key.card) {
			m->selected = i;
			return;
		}
	}
	top_model_select(m, m->selected);
}

bool top_model_arrange(struct top_model *m, const struct top_now *now)
{
	size_t most = now->all->n_processes + now->n_family;
	struct sorting s = { m->sort, m->reverse, now->all };
	if (!array_reserve(&m->rows, &m->cap_rows, most))
		return false;
	m->n_rows = 0;
	for (size_t i = 0; i < now->all->n_processes; i++)
		if (wanted(m, now, &now->all->processes[i]))
			m->rows[m->n_rows++] =
				(struct top_row){ .process = &now->all->processes[i] };
	if (m->n_rows)
		qsort_r(m->rows, m->n_rows, sizeof(*m->rows), compare, &s);
	bool whole = !m->tree || top_tree_order(m, now);
	follow_selection(m);
	return whole;
}

void top_model_select(struct top_model *m, size_t row)
{
	m->selected = m->n_rows == 0 ? 0 : row < m->n_rows ? row : m->n_rows - 1;
	if (m->n_rows)
		m->key = key_of(&m->rows[m->selected]);
}

void top_model_move(struct top_model *m, long by)
{
	long to = (long)m->selected + by;
	top_model_select(m, to < 0 ? 0 : (size_t)to);
}

void top_model_show(struct top_model *m, size_t visible)
{
	if (visible == 0)
		return;
	if (m->selected < m->first)
		m->first = m->selected;
	if (m->selected >= m->first + visible)
		m->first = m->selected - visible + 1;
	if (m->first + visible > m->n_rows)
		m->first = m->n_rows > visible ? m->n_rows - visible : 0;
}

const struct top_row *top_model_row(const struct top_model *m)
{
	return m->n_rows ? &m->rows[m->selected] : NULL;
}
