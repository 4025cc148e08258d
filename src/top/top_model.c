/* Chooses, sorts and selects the processes of `gua top`, and puts them below their parents,
 * which it reads from /proc. */
#include "top/top_model.h"

#include "proc/proc.h"

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

/* Whether rows are ordered by the text of a column, and not by a number. */
static bool is_by_text(const struct holder_column *c)
{
	return c && c->column.kind == COLUMN_TEXT && c->look != HOLDER_CARD &&
	       c->look != HOLDER_IDLE;
}

/* Sets what the row is ordered by: its value in the column (NULL: none), NAN: not known; or its
 * text. */
static void set_order(
	struct top_row *row, const struct holder_column *c, const struct present *now)
{
	const struct present_process *p = row->process;
	struct holder_row facts;
	int64_t idle_ms;
	if (!c)
		return;
	if (c->look == HOLDER_CARD) {
		row->number = (double)p->card;
	} else if (c->look == HOLDER_IDLE) {
		idle_ms = present_idle_ms(now, p);
		row->number = idle_ms < 0 ? NAN : (double)idle_ms;
	} else if (c->look == HOLDER_USER) {
		row->text = p->id.user;
	} else if (c->look == HOLDER_WHAT) {
		row->text = process_label_of(&p->id);
	} else {
		holders_row_bare(&facts, now, p);
		struct cell cell = c->column.get(&facts, c->column.of);
		row->number = cell.number;
		row->text = cell.text ? cell.text : "";
	}
}

/* Below 0: the left row comes first. Unknown values come last in both directions. */
static int compare(const void *left, const void *right, void *context)
{
	const struct top_model *m = context;
	const struct top_row *x = left, *y = right;
	const struct present_process *a = x->process, *b = y->process;
	int order = 0;
	bool known = true;
	if (is_by_text(m->sort)) {
		known = *x->text && *y->text;
		order = known ? strcasecmp(x->text, y->text) : !*x->text - !*y->text;
	} else if (m->sort) {
		known = !isnan(x->number) && !isnan(y->number);
		order = known ? (x->number > y->number) - (x->number < y->number)
			      : isnan(x->number) - isnan(y->number);
	}
	if (m->sort && known && m->sort->down != m->reverse)
		order = -order;
	if (order == 0)
		order = (a->card > b->card) - (a->card < b->card);
	if (order == 0)
		order = (a->mem_bytes < b->mem_bytes) - (a->mem_bytes > b->mem_bytes);
	return order ? order : (a->id.pid > b->id.pid) - (a->id.pid < b->id.pid);
}

/* Limit for chains of parents. Real chains are shorter, but a changing /proc may yield a
 * cycle. */
enum { DEPTH_MAX = 32 };

#define NO_NODE SIZE_MAX

/* A process of the tree; it may be on several cards. */
struct node {
	uint32_t pid, parent;
	const struct top_ancestor *ancestor; /* NULL: it is on a card */
	size_t up;			     /* its parent's node, or NO_NODE */
};

struct tree_rows {
	struct node *nodes; /* by pid */
	size_t n_nodes;
	const struct top_row *in; /* the sorted rows */
	size_t *node;		  /* the node of each row */
	bool *done;		  /* for each row: whether it is in `out` */
	size_t n_in;
	struct top_row *out;
	size_t n_out, cap_out;
};

static int by_pid(const void *a, const void *b)
{
	uint32_t left = ((const struct node *)a)->pid, right = ((const struct node *)b)->pid;
	return (left > right) - (left < right);
}

static size_t find_node(const struct tree_rows *t, uint32_t pid)
{
	struct node key = { .pid = pid };
	const struct node *n =
		pid ? bsearch(&key, t->nodes, t->n_nodes, sizeof(key), by_pid) : NULL;
	return n ? (size_t)(n - t->nodes) : NO_NODE;
}

static void make_nodes(struct tree_rows *t, const struct top_now *now)
{
	size_t n = 0, kept = 0;
	for (size_t i = 0; i < t->n_in; i++) {
		const struct present_process *p = t->in[i].process;
		uint32_t parent = now->parents ? now->parents[p - now->all->processes] : 0;
		t->nodes[n++] = (struct node){ .pid = p->id.pid, .parent = parent };
	}
	for (size_t i = 0; i < now->n_family; i++)
		t->nodes[n++] = (struct node){ .pid = now->family[i].id.pid,
			.parent = now->family[i].parent,
			.ancestor = &now->family[i] };
	qsort(t->nodes, n, sizeof(*t->nodes), by_pid);
	for (size_t i = 0; i < n; i++) {
		if (kept && t->nodes[kept - 1].pid == t->nodes[i].pid) {
			if (!t->nodes[i].ancestor)
				t->nodes[kept - 1].ancestor = NULL;
			continue;
		}
		t->nodes[kept++] = t->nodes[i];
	}
	t->n_nodes = kept;
	for (size_t i = 0; i < kept; i++) {
		size_t up = find_node(t, t->nodes[i].parent);
		t->nodes[i].up = up == i ? NO_NODE : up;
	}
	for (size_t i = 0; i < t->n_in; i++)
		t->node[i] = find_node(t, t->in[i].process->id.pid);
}

/* Returns the child of `top` that is `node` or an ancestor of it; NO_NODE: there is none. If
 * `top` is NO_NODE, returns the root above `node`. */
static size_t child_towards(const struct tree_rows *t, size_t top, size_t node)
{
	for (int i = 0; i < DEPTH_MAX && node != NO_NODE; i++) {
		if (t->nodes[node].up == top)
			return node;
		node = t->nodes[node].up;
	}
	return NO_NODE;
}

static void put(struct tree_rows *t, const struct top_row *row, unsigned depth)
{
	if (t->n_out == t->cap_out)
		return;
	t->out[t->n_out] = *row;
	t->out[t->n_out++].depth = depth;
}

/* Appends a process, once for each of its cards, and then all its descendants. */
static void put_family(struct tree_rows *t, size_t node, unsigned depth)
{
	if (t->nodes[node].ancestor)
		put(t, &(struct top_row){ .ancestor = t->nodes[node].ancestor }, depth);
	for (size_t i = 0; i < t->n_in; i++) {
		if (t->done[i] || t->node[i] != node)
			continue;
		t->done[i] = true;
		put(t, &t->in[i], depth);
	}
	for (size_t i = 0; depth < DEPTH_MAX && i < t->n_in; i++) {
		size_t child = t->done[i] ? NO_NODE : child_towards(t, node, t->node[i]);
		if (child != NO_NODE)
			put_family(t, child, depth + 1);
	}
}

/* Puts the sorted rows into the order of a tree, and adds their ancestors. Siblings keep their
 * order. False: out of memory; the rows are unchanged. */
static bool order_as_tree(struct top_model *m, const struct top_now *now)
{
	struct tree_rows t = { .in = m->rows, .n_in = m->n_rows, .cap_out = m->cap_rows };
	if (m->n_rows == 0)
		return true;
	t.nodes = calloc(m->n_rows + now->n_family, sizeof(*t.nodes));
	t.node = calloc(m->n_rows, sizeof(*t.node));
	t.done = calloc(m->n_rows, sizeof(*t.done));
	t.out = calloc(t.cap_out, sizeof(*t.out));
	bool ok = t.nodes && t.node && t.done && t.out;
	if (ok) {
		make_nodes(&t, now);
		for (size_t i = 0; i < t.n_in; i++) {
			size_t root =
				t.done[i] ? NO_NODE : child_towards(&t, NO_NODE, t.node[i]);
			if (root != NO_NODE)
				put_family(&t, root, 0);
			/* Its parents form a cycle. */
			if (!t.done[i]) {
				t.done[i] = true;
				put(&t, &t.in[i], 0);
			}
		}
		memcpy(m->rows, t.out, t.n_out * sizeof(*t.out));
		m->n_rows = t.n_out;
	}
	free(t.nodes);
	free(t.node);
	free(t.done);
	free(t.out);
	return ok;
}

static bool is_wanted(
	const struct top_model *m, const struct top_now *now, const struct present_process *p)
{
	bool found = !m->filter[0] || strcasestr(str_brief("%u", p->id.pid).text, m->filter) ||
		     strcasestr(process_shown_user(p->id.user), m->filter);
	for (size_t i = 0; i < PROCESS_TEXTS && !found; i++)
		found = strcasestr(process_text(&p->id, i), m->filter);
	return found && (!now->card_on || now->card_on[p->card]) &&
	       (!now->filter || filter_process(now->filter, p)) &&
	       (!m->user[0] || strcmp(m->user, p->id.user) == 0);
}

static struct top_key key_of(const struct top_row *row)
{
	const struct process_id *id = top_model_row_id(row);
	return (struct top_key){ id->pid, id->start_ticks,
		row->process ? row->process->card : SIZE_MAX };
}

bool top_model_arrange(struct top_model *m, const struct top_now *now)
{
	size_t most = now->all->n_processes + now->n_family;
	if (!array_reserve(&m->rows, &m->cap_rows, most))
		return false;
	m->n_rows = 0;
	for (size_t i = 0; i < now->all->n_processes; i++) {
		const struct present_process *p = &now->all->processes[i];
		if (!is_wanted(m, now, p))
			continue;
		m->rows[m->n_rows] = (struct top_row){ .process = p };
		set_order(&m->rows[m->n_rows++], m->sort, now->all);
	}
	if (m->n_rows)
		qsort_r(m->rows, m->n_rows, sizeof(*m->rows), compare, m);
	bool whole = !m->tree || order_as_tree(m, now);
	/* Finds the selected process again; when it is gone, the row in its place is selected.
	 */
	for (size_t i = 0; i < m->n_rows; i++) {
		struct top_key key = key_of(&m->rows[i]);
		if (key.pid == m->key.pid && key.start_ticks == m->key.start_ticks &&
			key.card == m->key.card) {
			m->selected = i;
			return whole;
		}
	}
	top_model_select(m, m->selected);
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

void top_model_family_finish(struct top_family *f)
{
	free(f->parents);
	free(f->ancestors);
	*f = (struct top_family){ 0 };
}

/* The parent of a process, 0 when it is not known or is init. */
static uint32_t read_parent(const struct top_family *f, uint32_t pid)
{
	struct proc_stat stat;
	if (proc_read_stat(owners_proc(reader_owners(f->reader)), pid, &stat) != 0 ||
		stat.ppid <= 1)
		return 0;
	return (uint32_t)stat.ppid;
}

static bool is_known(const struct top_family *f, const struct top_now *now, uint32_t pid)
{
	for (size_t i = 0; i < now->all->n_processes; i++)
		if (now->all->processes[i].id.pid == pid)
			return true;
	for (size_t i = 0; i < f->n; i++)
		if (f->ancestors[i].id.pid == pid)
			return true;
	return false;
}

/* Adds a process and returns its parent; 0: the chain ends. */
static uint32_t add_ancestor(struct top_family *f, uint32_t pid)
{
	if (!array_reserve(&f->ancestors, &f->cap, f->n + 1))
		return 0;
	struct top_ancestor *a = &f->ancestors[f->n];
	bool brief;
	if (!reader_describe(f->reader, pid, &a->id, &brief))
		return 0;
	a->parent = read_parent(f, pid);
	f->n++;
	return a->parent;
}

void top_model_family_read(struct top_family *f, struct reader *reader, struct top_now *now)
{
	f->reader = reader;
	now->parents = NULL;
	now->n_family = f->n = 0;
	if (now->all->n_processes == 0)
		return;
	if (!array_reserve(&f->parents, &f->cap_parents, now->all->n_processes))
		return;
	for (size_t i = 0; i < now->all->n_processes; i++) {
		const struct process_id *id = &now->all->processes[i].id;
		f->parents[i] = id->start_ticks ? read_parent(f, id->pid) : 0;
		uint32_t pid = f->parents[i];
		for (int k = 0; k < DEPTH_MAX && pid && !is_known(f, now, pid); k++)
			pid = add_ancestor(f, pid);
	}
	now->parents = f->parents;
	now->family = f->ancestors;
	now->n_family = f->n;
}
