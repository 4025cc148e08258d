/* Chooses, sorts and selects the processes of `gua top`. */
#include "top/top_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "top/top_tree.h"

const char *const top_sort_names[TOP_SORTS] = {
	[TOP_SORT_CARD] = "card",
	[TOP_SORT_USER] = "user",
	[TOP_SORT_PID] = "process id",
	[TOP_SORT_MEM] = "memory on the card",
	[TOP_SORT_SM] = "use of the card",
	[TOP_SORT_CPU] = "CPU use",
	[TOP_SORT_HOST] = "host memory",
	[TOP_SORT_AGE] = "age",
	[TOP_SORT_IDLE] = "idle for",
	[TOP_SORT_WHAT] = "notebook, job, container",
	[TOP_SORT_COMMAND] = "command",
};

const char *const top_sort_words[TOP_SORTS] = { "card", "user", "pid", "mem", "sm", "cpu",
	"host", "age", "idle", "what", "command" };

void top_model_finish(struct top_model *m)
{
	free(m->rows);
	*m = (struct top_model){ 0 };
}

const struct process_id *top_row_id(const struct top_row *row)
{
	return row->process ? &row->process->id : &row->ancestor->id;
}

int64_t top_idle_ms(const struct present_process *p, int64_t now_ms)
{
	if (!p->holder || p->active || p->idle_since_ms < 0)
		return -1;
	return now_ms > p->idle_since_ms ? now_ms - p->idle_since_ms : 0;
}

const char *top_what(const struct top_row *row)
{
	return process_label_of(top_row_id(row));
}

/* The value of a process to sort by: the largest comes first; NAN: not known. */
static double number_of(const struct present_process *p, enum top_sort sort, int64_t now_ms)
{
	int64_t idle_ms = top_idle_ms(p, now_ms);
	switch (sort) {
	case TOP_SORT_PID:
		return -(double)p->id.pid;
	case TOP_SORT_CARD:
		return -(double)p->card;
	case TOP_SORT_MEM:
		return p->mem_bytes < 0 ? NAN : (double)p->mem_bytes;
	case TOP_SORT_SM:
		return p->sm_pct;
	case TOP_SORT_CPU:
		return p->cpu_pct;
	case TOP_SORT_HOST:
		return p->rss_bytes < 0 ? NAN : (double)p->rss_bytes;
	case TOP_SORT_AGE:
		return p->id.started_ms < 0 ? NAN : -(double)p->id.started_ms;
	case TOP_SORT_IDLE:
		return idle_ms < 0 ? NAN : (double)idle_ms;
	default:
		return NAN;
	}
}

static const char *text_of(const struct present_process *p, enum top_sort sort)
{
	return sort == TOP_SORT_USER   ? p->id.user
	       : sort == TOP_SORT_WHAT ? process_label_of(&p->id)
				       : p->id.command;
}

/* Below 0: a comes first. Unknown values come last in both directions. */
static int compare_numbers(double a, double b, bool reverse)
{
	if (isnan(a) || isnan(b))
		return isnan(a) - isnan(b);
	int order = (a < b) - (a > b);
	return reverse ? -order : order;
}

static int compare_texts(const char *a, const char *b, bool reverse)
{
	if (!*a || !*b)
		return !*a - !*b;
	int order = strcasecmp(a, b);
	return reverse ? -order : order;
}

struct sorting {
	enum top_sort sort;
	bool reverse;
	int64_t now_ms;
};

static int compare(const void *left, const void *right, void *context)
{
	const struct sorting *s = context;
	const struct present_process *a = ((const struct top_row *)left)->process;
	const struct present_process *b = ((const struct top_row *)right)->process;
	bool texts = s->sort == TOP_SORT_USER || s->sort == TOP_SORT_WHAT ||
		     s->sort == TOP_SORT_COMMAND;
	int order = texts ? compare_texts(text_of(a, s->sort), text_of(b, s->sort), s->reverse)
			  : compare_numbers(number_of(a, s->sort, s->now_ms),
				    number_of(b, s->sort, s->now_ms), s->reverse);
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
	bool found = strcasestr(pid, part) || strcasestr(user_shown(id->user), part);
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
	const struct process_id *id = top_row_id(row);
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
	struct sorting s = { m->sort, m->reverse, now->all->now_ms };
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
