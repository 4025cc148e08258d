/* The table of holders: its columns, and the order that the links in its head select. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/release.h"
#include "present/holders.h"
#include "render/html.h"
#include "render/text.h"
#include "serve/page_parts.h"
#include "serve/world.h"

/* A table while it is written. */
struct listing {
	struct str *out;
	const struct request *q;
	const struct present *now;
	const struct holder_column *columns[HOLDER_COLUMNS_MAX];
	size_t n_columns;
	const struct present_process **rows;
	size_t n;
	size_t by; /* the column that orders it */
	bool down; /* the largest first */
};

/* The path of its notebook, or else the kernel; "": it is not a notebook. */
static const char *notebook_of(const struct present_process *h)
{
	const char *path = h->id.origin.notebook_path;
	return *path ? path : h->id.notebook;
}

static void add_card(const struct listing *l, const struct holder_row *r)
{
	if (l->now->n_hosts > 1) {
		html_text(l->out, r->host->hostname);
		str_add(l->out, " ");
	}
	part_card(l->out, &r->card->id);
}

/* Its most specific name, the command, and whether it has only a bare context. The page
 * truncates the command, which may be 4 KB, so that other columns stay visible. */
static void add_what(const struct listing *l, const struct present_process *h)
{
	const char *command = h->id.command, *label = process_label_of(&h->id);
	str_add(l->out, "<div class=\"clip\">");
	if (*notebook_of(h))
		part_notebook(l->out, h->id.user, notebook_of(h));
	else
		html_text(l->out, label);
	str_add(l->out, *label ? " <span class=\"dim\">" : "<span>");
	html_text(l->out, *command || *label ? command : "-");
	str_add(l->out, "</span></div>");
	if (h->context != CONTEXT_MORE)
		str_addf(l->out, " <span class=\"tag\">%s</span>", context_texts[h->context]);
}

/* The command to copy into a shell, for its owner or for root. */
static void add_release(const struct listing *l, const struct present_process *h)
{
	char command[RELEASE_CAP];
	if (strcmp(h->id.user, USER_DEAD) ==
		0) { /* the process itself has ended; only its parent can be ended */
		str_add(l->out, "-");
		return;
	}
	release_command(command, h->id.pid, h->id.job, h->id.container);
	str_add(l->out, "<code class=\"copy\">");
	html_text(l->out, command);
	str_add(l->out, "</code>");
	/* If rules may end it, its owner can keep it. */
	if (l->q->world->config->policy_rules.n && !h->active)
		str_addf(l->out,
			"<br><code class=\"copy\">gua keep %u --for 4h --reason "
			"&#39;still needed&#39;</code>",
			(unsigned)h->id.pid);
}

static void add_cell(
	const struct listing *l, const struct holder_column *c, const struct holder_row *r)
{
	const struct text_style style = { .utc = l->q->world->utc };
	char text[HOLDER_WHAT_CAP];
	struct cell cell;
	switch (c->look) {
	case HOLDER_USER:
		part_user(l->out, r->process->id.user);
		break;
	case HOLDER_CARD:
		add_card(l, r);
		break;
	case HOLDER_WHAT:
		add_what(l, r->process);
		break;
	case HOLDER_RELEASE:
		add_release(l, r->process);
		break;
	default:
		cell = c->column.get(r, c->column.of);
		text_cell(text, sizeof(text), &c->column, &cell, &style);
		html_text(l->out, text);
		break;
	}
}

static int compare_numbers(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

/* The name by which people know a holder. */
static const char *name_of(const struct present_process *h)
{
	const char *label = process_label_of(&h->id);
	return *label ? label : h->id.command;
}

/* Compares two cells of a plain column; unknown values are the smallest. */
static int compare_cells(const struct listing *l, const struct column *c,
	const struct present_process *a, const struct present_process *b)
{
	struct holder_row row_a, row_b;
	holders_row_bare(&row_a, l->now, a);
	holders_row_bare(&row_b, l->now, b);
	struct cell left = c->get(&row_a, c->of), right = c->get(&row_b, c->of);
	double x = isnan(left.number) ? -INFINITY : left.number;
	double y = isnan(right.number) ? -INFINITY : right.number;
	if (c->kind == COLUMN_TEXT)
		return strcmp(left.text ? left.text : "", right.text ? right.text : "");
	return (x > y) - (x < y);
}

/* Compares by the selected column, then by card and pid. */
static int compare_rows(const void *left, const void *right, void *context)
{
	const struct present_process *a = *(const struct present_process *const *)left;
	const struct present_process *b = *(const struct present_process *const *)right;
	const struct listing *l = context;
	const struct holder_column *c = l->columns[l->by];
	int by_card = compare_numbers((int64_t)a->card, (int64_t)b->card), order;
	switch (c->look) {
	case HOLDER_USER:
		order = strcmp(a->id.user, b->id.user);
		break;
	case HOLDER_CARD:
		order = by_card;
		break;
	case HOLDER_IDLE: /* a larger key means a shorter idle time */
		order = compare_numbers(holders_idle_order(b), holders_idle_order(a));
		break;
	case HOLDER_WHAT:
		order = strcmp(name_of(a), name_of(b));
		break;
	default:
		order = compare_cells(l, &c->column, a, b);
		break;
	}
	if (order)
		return l->down ? -order : order;
	return by_card ? by_card : compare_numbers(a->id.pid, b->id.pid);
}

/* The parameter is the name of a column followed by ".up" or ".down". */
static void choose_order(struct listing *l)
{
	const char *order = part_param(l->q, "order");
	size_t len = order ? strcspn(order, ".") : 0;
	for (size_t i = 0; i < l->n_columns; i++)
		if (l->columns[i]->look == HOLDER_IDLE)
			l->by = i;
	for (size_t i = 0; i < l->n_columns && order; i++)
		if (l->columns[i]->order && strlen(l->columns[i]->order) == len &&
			strncmp(l->columns[i]->order, order, len) == 0)
			l->by = i;
	l->down = l->columns[l->by]->down;
	if (order && order[len])
		l->down = strcmp(order + len, ".down") == 0;
}

/* Whether the column is right-aligned. */
static bool is_number(const struct holder_column *c)
{
	return c->look == HOLDER_IDLE ||
	       (c->column.kind != COLUMN_TEXT && c->column.kind != COLUMN_MOMENT);
}

static void add_head_cell(const struct listing *l, size_t i)
{
	const struct holder_column *c = l->columns[i];
	bool current = i == l->by;
	bool down = current ? !l->down : c->down; /* the order that the link selects */
	str_addf(l->out, "<th scope=\"col\"%s%s>", is_number(c) ? " class=\"n\"" : "",
		!current  ? ""
		: l->down ? " aria-sort=\"descending\""
			  : " aria-sort=\"ascending\"");
	if (!c->order) {
		bool rules = l->q->world->config->policy_rules.n > 0;
		str_addf(l->out, "%s</th>", rules ? "to release or keep it" : c->page_title);
		return;
	}
	char value[32];
	struct str href = { 0 };
	snprintf(value, sizeof(value), "%s.%s", c->order, down ? "down" : "up");
	part_query(&href, "", l->q, &(struct request_param){ "order", value });
	str_addf(l->out, "<a id=\"sort-%s\" href=\"", c->order);
	html_text(l->out, str_text(&href));
	str_addf(l->out, "#holding\">%s", c->page_title);
	str_finish(&href);
	if (current)
		str_addf(l->out, "<span aria-hidden=\"true\"> %s</span>",
			l->down ? "\u25be" : "\u25b4");
	str_add(l->out, "</a></th>");
}

static void add_row(const struct listing *l, const struct present_process *h)
{
	struct holder_row row;
	holders_row(&row, l->now, h);
	str_add(l->out, h->active ? "<tr>" : "<tr class=\"idle\">");
	for (size_t i = 0; i < l->n_columns; i++) {
		const struct holder_column *c = l->columns[i];
		str_add(l->out, i == 0			 ? "<th scope=\"row\">"
				: is_number(c)		 ? "<td class=\"n\">"
				: c->look == HOLDER_WHAT ? "<td class=\"what\">"
							 : "<td>");
		add_cell(l, c, &row);
		str_add(l->out, i == 0 ? "</th>" : "</td>");
	}
	str_add(l->out, "</tr>\n");
}

static bool is_chosen(const struct present *now, const struct present_process *h,
	const struct holder_choice *choice)
{
	return !choice ||
	       ((!choice->user || strcmp(choice->user, h->id.user) == 0) &&
		       (!choice->notebook || strcmp(choice->notebook, notebook_of(h)) == 0) &&
		       (!choice->uuid ||
			       strcmp(choice->uuid, now->cards[h->card].id.uuid) == 0));
}

static void write_table(const struct listing *l)
{
	str_add(l->out, "<div class=\"wide\" tabindex=\"0\" role=\"region\" "
			"aria-labelledby=\"holding\">"
			"<table class=\"holders\">\n<thead><tr>");
	for (size_t i = 0; i < l->n_columns; i++)
		add_head_cell(l, i);
	str_add(l->out, "</tr></thead>\n<tbody>\n");
	for (size_t i = 0; i < l->n; i++)
		add_row(l, l->rows[i]);
	str_add(l->out, "</tbody></table></div>\n");
}

/* Says why there is no row: nobody holds a card, or it is not known. */
static void add_nobody(struct str *out, const struct present *now, bool chosen)
{
	bool known = true;
	for (size_t i = 0; i < now->n_hosts; i++)
		known &= part_knows_holders(now, i);
	str_add(out, !known   ? "<p>Not known: the recorder is not running.</p>\n"
		     : chosen ? "<p>Nothing is held now.</p>\n"
			      : "<p>No process holds a GPU.</p>\n");
}

void page_holders(struct str *out, const struct request *q, const struct present *now,
	const struct holder_choice *choice)
{
	struct listing l = { .out = out, .q = q, .now = now };
	l.rows = calloc(now->n_processes + 1, sizeof(const struct present_process *));
	out->failed |= !l.rows;
	for (size_t i = 0; i < now->n_processes && l.rows; i++)
		if (is_chosen(now, &now->processes[i], choice))
			l.rows[l.n++] = &now->processes[i];
	l.n_columns = holders_page_columns(l.columns);
	choose_order(&l);
	if (l.n)
		qsort_r(l.rows, l.n, sizeof(const struct present_process *), compare_rows, &l);
	str_add(out, "<h2 id=\"holding\">Holders</h2>\n");
	if (l.n)
		write_table(&l);
	else
		add_nobody(out, now, choice != NULL);
	free(l.rows);
}
