/* The table of holders: its columns, and the order that the links in its head ask for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/timetext.h"
#include "model/release.h"
#include "render/html.h"
#include "serve/page_parts.h"
#include "serve/world.h"

/* A table while it is written. */
struct listing {
	struct str *out;
	const struct request *q;
	const struct board *b;
	const struct board_holder **rows;
	size_t n;
	size_t by; /* the column that orders it */
	bool down; /* the largest first */
};

static const char *text_of(const char *text)
{
	return text ? text : "";
}

/* The path of its notebook, or else the kernel; NULL: it is none. */
static const char *holder_notebook(const struct board_holder *h)
{
	const char *path = h->texts[PROCESS_NOTEBOOK_PATH];
	return path ? path : h->texts[PROCESS_NOTEBOOK];
}

const char *holder_label(const struct board_holder *h)
{
	return process_label(holder_notebook(h), h->texts[PROCESS_JOB],
		h->texts[PROCESS_CONTAINER], h->texts[PROCESS_POD]);
}

/* The part of what a holder is that people know it by, and that it is sorted by. */
static const char *name_of(const struct board_holder *h)
{
	const char *label = holder_label(h);
	return *label ? label : text_of(h->texts[PROCESS_COMMAND]);
}

static void add_user(const struct listing *l, const struct board_holder *h)
{
	part_user(l->out, h->user);
}

static void add_card(const struct listing *l, const struct board_holder *h)
{
	const struct board_card *c = &l->b->cards[h->card];
	if (l->b->n_hosts > 1) {
		html_text(l->out, l->b->hosts[c->host].hostname);
		str_add(l->out, " ");
	}
	part_card(l->out, &c->id);
}

static void add_pid(const struct listing *l, const struct board_holder *h)
{
	str_addf(l->out, "%u", (unsigned)h->pid);
}

static void add_memory(const struct listing *l, const struct board_holder *h)
{
	char size[SIZE_TEXT_CAP];
	size_text(size, (double)h->mem_bytes);
	str_add(l->out, size);
}

static void add_idle(const struct listing *l, const struct board_holder *h)
{
	char age[40];
	const struct board_host *host = &l->b->hosts[l->b->cards[h->card].host];
	duration_text(age, sizeof(age), part_idle_ms(l->q, host, h->idle_since_ms));
	if (h->active)
		str_add(l->out, "active");
	else if (h->idle_since_ms < 0)
		str_add(l->out, "use unknown");
	else
		str_addf(l->out, "%s%s", h->idle_longer ? "&gt; " : "", age);
}

static void add_since(const struct listing *l, const struct board_holder *h)
{
	char moment[48] = "-";
	if (h->since_ms >= 0)
		moment_text(moment, sizeof(moment), h->since_ms, l->q->world->utc);
	str_add(l->out, moment);
}

/* Its most specific name, the command, and whether it is a bare context. A command of 4 KB must
 * not push the others off the screen: the page clips it. */
static void add_what(const struct listing *l, const struct board_holder *h)
{
	const char *command = text_of(h->texts[PROCESS_COMMAND]), *label = holder_label(h);
	const char *notebook = holder_notebook(h);
	str_add(l->out, "<div class=\"clip\">");
	if (notebook)
		part_notebook(l->out, h->user, notebook);
	else
		html_text(l->out, label);
	str_add(l->out, *label ? " <span class=\"dim\">" : "<span>");
	html_text(l->out, *command || *label ? command : "-");
	str_add(l->out, "</span></div>");
	if (h->context != CONTEXT_MORE)
		str_addf(l->out, " <span class=\"tag\">%s</span>", context_texts[h->context]);
}

/* What to copy into a shell: for its owner, or for root. */
static void add_release(const struct listing *l, const struct board_holder *h)
{
	char command[RELEASE_CAP];
	if (strcmp(h->user, USER_DEAD) == 0) { /* no process can be ended, but its parent */
		str_add(l->out, "-");
		return;
	}
	release_command(command, h->pid, h->texts[PROCESS_JOB], h->texts[PROCESS_CONTAINER]);
	str_add(l->out, "<code class=\"copy\">");
	html_text(l->out, command);
	str_add(l->out, "</code>");
	/* Where rules may end it, its owner can ask for more time. */
	if (l->q->world->config->policy_rules.n && !h->active)
		str_addf(l->out,
			"<br><code class=\"copy\">gua keep %u --for 4h --reason "
			"&#39;still needed&#39;</code>",
			(unsigned)h->pid);
}

static int compare_numbers(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_user(const struct board_holder *a, const struct board_holder *b)
{
	return strcmp(a->user, b->user);
}

static int by_card(const struct board_holder *a, const struct board_holder *b)
{
	return compare_numbers((int64_t)a->card, (int64_t)b->card);
}

static int by_pid(const struct board_holder *a, const struct board_holder *b)
{
	return compare_numbers(a->pid, b->pid);
}

static int by_memory(const struct board_holder *a, const struct board_holder *b)
{
	return compare_numbers(a->mem_bytes, b->mem_bytes);
}

/* The time for which it is idle: none while it is active, the least while it is not known. */
static int by_idle(const struct board_holder *a, const struct board_holder *b)
{
	int64_t idle_a = a->active		? INT64_MAX
			 : a->idle_since_ms < 0 ? INT64_MAX - 1
						: a->idle_since_ms;
	int64_t idle_b = b->active		? INT64_MAX
			 : b->idle_since_ms < 0 ? INT64_MAX - 1
						: b->idle_since_ms;
	return compare_numbers(idle_b, idle_a);
}

static int by_since(const struct board_holder *a, const struct board_holder *b)
{
	return compare_numbers(a->since_ms, b->since_ms);
}

static int by_what(const struct board_holder *a, const struct board_holder *b)
{
	return strcmp(name_of(a), name_of(b));
}

static const struct holder_column {
	const char *key, *title;
	void (*add)(const struct listing *l, const struct board_holder *h);
	int (*compare)(const struct board_holder *a, const struct board_holder *b);
	bool number; /* is aligned to the right */
	bool down;   /* the largest first, when it is chosen */
} columns[] = {
	{ "user", "user", add_user, by_user, .number = false },
	{ "card", "GPU", add_card, by_card, .number = false },
	{ "memory", "memory", add_memory, by_memory, .number = true, .down = true },
	{ "idle", "idle for", add_idle, by_idle, .number = true, .down = true },
	{ "what", "what", add_what, by_what, .number = false },
	{ "since", "on the GPU since", add_since, by_since, .number = false },
	{ "pid", "pid", add_pid, by_pid, .number = true },
	{ NULL, "to release it", add_release, NULL, .number = false },
};
enum { N_COLUMNS = sizeof(columns) / sizeof(columns[0]), BY_IDLE = 3 };

/* The order is the column's; what is equal stands by card and pid. */
static int compare_rows(const void *left, const void *right, void *context)
{
	const struct board_holder *a = *(const struct board_holder *const *)left;
	const struct board_holder *b = *(const struct board_holder *const *)right;
	const struct listing *l = context;
	int order = columns[l->by].compare(a, b);
	if (order)
		return l->down ? -order : order;
	return by_card(a, b) ? by_card(a, b) : by_pid(a, b);
}

/* The parameter is the key of a column, and ".up" or ".down" after it. */
static void choose_order(struct listing *l)
{
	const char *order = part_param(l->q, "order");
	size_t len = order ? strcspn(order, ".") : 0;
	l->by = BY_IDLE;
	for (size_t i = 0; i < N_COLUMNS && order; i++)
		if (columns[i].key && strlen(columns[i].key) == len &&
			strncmp(columns[i].key, order, len) == 0)
			l->by = i;
	l->down = columns[l->by].down;
	if (order && order[len])
		l->down = strcmp(order + len, ".down") == 0;
}

static void add_head_cell(const struct listing *l, size_t i)
{
	const struct holder_column *c = &columns[i];
	bool current = i == l->by;
	bool down = current ? !l->down : c->down; /* what the link asks for */
	str_addf(l->out, "<th scope=\"col\"%s%s>", c->number ? " class=\"n\"" : "",
		!current  ? ""
		: l->down ? " aria-sort=\"descending\""
			  : " aria-sort=\"ascending\"");
	if (!c->compare) {
		bool rules = l->q->world->config->policy_rules.n > 0;
		str_addf(l->out, "%s</th>", rules ? "to release or keep it" : c->title);
		return;
	}
	char value[32];
	struct str href = { 0 };
	snprintf(value, sizeof(value), "%s.%s", c->key, down ? "down" : "up");
	part_query(&href, "", l->q, &(struct request_param){ "order", value });
	str_addf(l->out, "<a id=\"sort-%s\" href=\"", c->key);
	html_text(l->out, str_text(&href));
	str_addf(l->out, "#holding\">%s", c->title);
	str_finish(&href);
	if (current)
		str_addf(l->out, "<span aria-hidden=\"true\"> %s</span>",
			l->down ? "\u25be" : "\u25b4");
	str_add(l->out, "</a></th>");
}

static void add_row(const struct listing *l, const struct board_holder *h)
{
	str_add(l->out, h->active ? "<tr>" : "<tr class=\"idle\">");
	for (size_t i = 0; i < N_COLUMNS; i++) {
		str_add(l->out, i == 0				? "<th scope=\"row\">"
				: columns[i].number		? "<td class=\"n\">"
				: columns[i].compare == by_what ? "<td class=\"what\">"
								: "<td>");
		columns[i].add(l, h);
		str_add(l->out, i == 0 ? "</th>" : "</td>");
	}
	str_add(l->out, "</tr>\n");
}

static bool is_chosen(
	const struct board *b, const struct board_holder *h, const struct holder_choice *choice)
{
	const char *notebook = text_of(holder_notebook(h));
	return !choice ||
	       ((!choice->user || strcmp(choice->user, h->user) == 0) &&
		       (!choice->notebook || strcmp(choice->notebook, notebook) == 0) &&
		       (!choice->uuid || strcmp(choice->uuid, b->cards[h->card].id.uuid) == 0));
}

static void write_table(const struct listing *l)
{
	str_add(l->out, "<div class=\"wide\" tabindex=\"0\" role=\"region\" "
			"aria-labelledby=\"holding\">"
			"<table class=\"holders\">\n<thead><tr>");
	for (size_t i = 0; i < N_COLUMNS; i++)
		add_head_cell(l, i);
	str_add(l->out, "</tr></thead>\n<tbody>\n");
	for (size_t i = 0; i < l->n; i++)
		add_row(l, l->rows[i]);
	str_add(l->out, "</tbody></table></div>\n");
}

/* There is no row: nobody holds anything, or it is not known. */
static void add_nobody(struct str *out, const struct board *b, bool chosen)
{
	bool known = true;
	for (size_t i = 0; i < b->n_hosts; i++)
		known &= part_knows_holders(b, i);
	str_add(out, !known   ? "<p>Not known: the recorder is not running.</p>\n"
		     : chosen ? "<p>Nothing is held now.</p>\n"
			      : "<p>No process holds a GPU.</p>\n");
}

void part_holders(struct str *out, const struct request *q, const struct board *b,
	const struct holder_choice *choice)
{
	struct listing l = { .out = out, .q = q, .b = b };
	l.rows = calloc(b->n_holders + 1, sizeof(const struct board_holder *));
	out->failed |= !l.rows;
	for (size_t i = 0; i < b->n_holders && l.rows; i++)
		if (is_chosen(b, &b->holders[i], choice))
			l.rows[l.n++] = &b->holders[i];
	choose_order(&l);
	if (l.n)
		qsort_r(l.rows, l.n, sizeof(const struct board_holder *), compare_rows, &l);
	str_add(out, "<h2 id=\"holding\">Holders</h2>\n");
	if (l.n)
		write_table(&l);
	else
		add_nobody(out, b, choice != NULL);
	free(l.rows);
}
