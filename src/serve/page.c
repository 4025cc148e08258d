/* Writes the frame of HTML pages, and the pieces that pages are made of: bars, signs of states,
 * links, the age of the data, the table of holders. */
#include "serve/page.h"

#include "present/holders.h"
#include "render/html.h"
#include "render/text.h"
#include "version.h"
#include "web_css.h"

static const struct page_link places[PLACES] = {
	[PLACE_NOW] = { "Now", "/" },
	[PLACE_AUDIT] = { "Audit", "/audit" },
	[PLACE_POLICY] = { "Policy", "/policy" },
	[PLACE_ME] = { "For me", "/me" },
};

static void add_link(struct str *out, const struct page_link *l, const char *attributes)
{
	html_addf(out, "<li><a href=\"%s", l->href);
	str_addf(out, "\"%s>", attributes);
	html_addf(out, "%s</a></li>", l->text);
}

/* The pages, the path to this page, and the links to other formats. With the script, the print
 * link prints; without it, the link leads to the page without navigation. */
static void add_navigation(struct str *out, const struct page_frame *f)
{
	str_add(out, "<header class=\"top\"><a class=\"brand\" href=\"/\">gua</a>"
		     "<nav aria-label=\"Pages\"><ul>");
	for (int i = PLACE_NOW; i < PLACES; i++)
		add_link(out, &places[i],
			f->place == (enum page_place)i ? " aria-current=\"page\"" : "");
	str_add(out, "</ul></nav></header>\n");
	if (f->crumbs[0].text) {
		str_add(out, "<nav class=\"crumbs\" aria-label=\"Path to this page\"><ol>");
		for (const struct page_link *l = f->crumbs; l->text; l++)
			add_link(out, l, "");
		html_addf(out, "<li aria-current=\"page\">%s</li></ol></nav>\n", f->title);
	}
	if (!f->formats[0].text)
		return;
	str_add(out, "<nav class=\"formats\" aria-label=\"This page in other formats\"><ul>");
	for (const struct page_link *l = f->formats; l->text; l++)
		add_link(out, l, "");
	str_add(out, "</ul></nav>\n");
}

void page_begin(struct str *out, const struct page_frame *f)
{
	html_addf(out,
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<meta name=\"color-scheme\" content=\"light dark\">\n<title>%s - gua</title>\n"
		"<link rel=\"icon\" type=\"image/svg+xml\" href=\"/assets/gua.svg\">\n"
		"<link rel=\"stylesheet\" href=\"/assets/gua.css\">\n"
		"<script src=\"/assets/gua.js\" defer></script>\n</head>\n<body class=\"%s\">\n"
		"<a class=\"skip\" href=\"#main\">Skip to the content</a>\n",
		f->title, f->paper ? "page on_paper" : "page");
	html_patterns(out);
	if (!f->paper)
		add_navigation(out, f);
	html_addf(out, "<main id=\"main\" tabindex=\"-1\">\n<h1>%s</h1>\n", f->title);
}

void page_end(struct str *out)
{
	str_add(out, "</main>\n<footer class=\"foot\"><p>gua " GUA_VERSION
		     ", GPU usage audit. <code>man gua</code> explains the words, <code>man "
		     "gua-serve</code> the pages.</p></footer>\n</body>\n</html>\n");
}

void page_gauge(struct str *out, double share, const char *class)
{
	double wide = share > 1 ? 100 : share > 0 ? 100 * share : 0;
	str_addf(out,
		"<svg class=\"gauge\" viewBox=\"0 0 100 6\" preserveAspectRatio=\"none\" "
		"aria-hidden=\"true\"><rect class=\"rest\" width=\"100\" height=\"6\"/>"
		"<rect class=\"%s\" width=\"%.1f\" height=\"6\"/></svg>",
		class, wide);
}

void page_user_link(struct str *out, const char *user)
{
	if (strcmp(user, USER_DEAD) == 0) {
		html_text(out, process_shown_user(user));
		return;
	}
	html_addf(out, "<a href=\"/user/%-s\">%s</a>", user, user);
}

static void add_field(struct str *out, const struct request_param *p, char *before)
{
	str_add_bytes(out, before, 1);
	html_addf(out, "%-s=%-s", p->name, p->value);
	*before = '&';
}

void page_query(struct str *out, const char *path, const struct request *q,
	const struct request_param *instead)
{
	char before = '?';
	str_add(out, path);
	for (size_t i = 0; i < q->n_params; i++) {
		const char *name = q->params[i].name;
		bool of_page = strcmp(name, "print") == 0 || strcmp(name, "order") == 0;
		if (!of_page && (!instead || strcmp(name, instead->name) != 0))
			add_field(out, &q->params[i], &before);
	}
	if (instead)
		add_field(out, instead, &before);
}

const char *page_param(const struct request *q, const char *name)
{
	const char *value = request_param(q, name);
	return value && *value ? value : NULL;
}

int64_t page_idle_ms(const struct request *q, const struct present_host *h, int64_t since_ms)
{
	int64_t until_ms = h->stale ? h->last_tick_ms : q->now_ms;
	return until_ms > since_ms ? until_ms - since_ms : 0;
}

bool page_knows_holders(const struct present *b, size_t host)
{
	for (size_t i = 0; i < b->n_cards; i++)
		if (b->cards[i].host == host && b->cards[i].n_processes)
			return true;
	return b->hosts[host].running;
}

/* Adds how old the data of a host is or, if its recorder has been silent for too long, why. */
static void add_age(struct str *out, const struct request *q, const struct present_host *h)
{
	int64_t age_ms = q->now_ms - h->last_tick_ms;
	struct brief moment = moment_text(h->last_tick_ms, q->world->utc);
	/* The clock may have been set since: then the moment is in the future. */
	struct brief ago = str_brief(age_ms >= 0 ? " %s ago" : "", duration_text(age_ms).text);
	char text[512];
	if (!h->stale) {
		html_addf(out,
			"<p class=\"age\">%s, driver %s. Read%s (%s); the recorder reads every "
			"%s.</p>\n",
			h->hostname, *h->driver ? h->driver : "unknown", ago.text, moment.text,
			duration_text(h->interval_ms).text);
		return;
	}
	if (!h->any_run)
		snprintf(text, sizeof(text),
			"No recorder has written to this store yet. Start one: gua start");
	else if (!h->running || h->killed)
		snprintf(text, sizeof(text),
			"The recorder of %s %s. This is what it saw last%s (%s). Start it: gua "
			"start",
			h->hostname, h->killed ? "was killed" : "is not running", ago.text,
			moment.text);
	else
		snprintf(text, sizeof(text),
			"The recorder of %s wrote last%s (%s). To find out why: gua status",
			h->hostname, ago.text, moment.text);
	html_warning(out, text);
}

void page_present_age(
	struct str *out, const struct request *q, const struct present *b, bool all)
{
	for (size_t i = 0; i < b->n_hosts; i++)
		if (all || b->hosts[i].stale)
			add_age(out, q, &b->hosts[i]);
}

void page_css(const struct request *q, struct answer *a)
{
	(void)q;
	html_style(&a->body, STYLE_TOKENS, STYLE_REPORT);
	str_add(&a->body, web_css);
}

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

/* Its most specific name, the command, and whether it has only a bare context. The page
 * truncates the command, which may be 4 KB, so that other columns stay visible. */
static void add_what(const struct listing *l, const struct present_process *h)
{
	const char *command = h->id.command, *label = process_label_of(&h->id);
	str_add(l->out, "<div class=\"clip\">");
	if (*notebook_of(h))
		html_addf(l->out, "<a href=\"/notebook/%-s/%-s\">%s</a>", h->id.user,
			notebook_of(h), notebook_of(h));
	else
		html_text(l->out, label);
	str_add(l->out, *label ? " <span class=\"dim\">" : "<span>");
	html_addf(l->out, "%s</span></div>", *command || *label ? command : "-");
	if (h->context != CONTEXT_MORE)
		str_addf(l->out, " <span class=\"tag\">%s</span>", context_texts[h->context]);
}

/* The command to copy into a shell, for its owner or for root. */
static void add_release(const struct listing *l, const struct present_process *h)
{
	char command[RELEASE_CAP];
	if (!present_release(l->now, h, command)) {
		str_add(l->out, "-");
		return;
	}
	html_addf(l->out, "<code class=\"copy\">%s</code>", command);
	/* If rules may end it, its owner can keep it. */
	if (l->q->world->config->policy_rules.n)
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
		page_user_link(l->out, r->process->id.user);
		break;
	case HOLDER_CARD:
		if (l->now->n_hosts > 1) {
			html_addf(l->out, "%s ", r->host->hostname);
		}
		html_addf(
			l->out, "<a href=\"/card/%-s\">GPU %s</a>", r->card->id.uuid, r->label);
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
	int by_card = array_compare((int64_t)a->card, (int64_t)b->card), order;
	switch (c->look) {
	case HOLDER_USER:
		order = strcmp(a->id.user, b->id.user);
		break;
	case HOLDER_CARD:
		order = by_card;
		break;
	case HOLDER_IDLE: /* a larger key means a shorter idle time */
		order = array_compare(holders_idle_order(b), holders_idle_order(a));
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
	return by_card ? by_card : array_compare(a->id.pid, b->id.pid);
}

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
	page_query(&href, "", l->q, &(struct request_param){ "order", value });
	html_addf(l->out, "<a id=\"sort-%s\" href=\"%s#holding\">%s", c->order, str_text(&href),
		c->page_title);
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
	str_add(l->out, present_idle_ms(l->now, h) < 0 ? "<tr>" : "<tr class=\"idle\">");
	for (size_t i = 0; i < l->n_columns; i++) {
		const struct holder_column *c = l->columns[i];
		str_add(l->out, i == 0			 ? "<th scope=\"row\">"
				: is_number(c)		 ? "<td class=\"n\""
				: c->look == HOLDER_WHAT ? "<td class=\"what\""
							 : "<td");
		/* A narrow screen shows the title before the value: but not "GPU GPU 1". */
		if (i > 0 && c->look != HOLDER_CARD)
			str_addf(l->out, " data-title=\"%s\"", c->page_title);
		str_add(l->out, i > 0 ? ">" : "");
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
	/* The parameter is the name of a column followed by ".up" or ".down". */
	const char *order = page_param(l.q, "order");
	size_t len = order ? strcspn(order, ".") : 0;
	for (size_t i = 0; i < l.n_columns; i++)
		if (l.columns[i]->look == HOLDER_IDLE)
			l.by = i;
	for (size_t i = 0; i < l.n_columns && order; i++)
		if (l.columns[i]->order && strlen(l.columns[i]->order) == len &&
			strncmp(l.columns[i]->order, order, len) == 0)
			l.by = i;
	l.down = l.columns[l.by]->down;
	if (order && order[len])
		l.down = strcmp(order + len, ".down") == 0;
	if (l.n)
		qsort_r(l.rows, l.n, sizeof(const struct present_process *), compare_rows, &l);
	str_add(out, "<h2 id=\"holding\">Holders</h2>\n");
	bool known = true;
	for (size_t i = 0; i < now->n_hosts; i++)
		known &= page_knows_holders(now, i);
	if (l.n) {
		str_add(l.out, "<div class=\"wide\" tabindex=\"0\" role=\"region\" "
			       "aria-labelledby=\"holding\">"
			       "<table class=\"holders\">\n<thead><tr>");
		for (size_t i = 0; i < l.n_columns; i++)
			add_head_cell(&l, i);
		str_add(l.out, "</tr></thead>\n<tbody>\n");
		for (size_t i = 0; i < l.n; i++)
			add_row(&l, l.rows[i]);
		str_add(l.out, "</tbody></table></div>\n");
	} else
		str_add(out, !known   ? "<p>Not known: the recorder is not running.</p>\n"
			     : choice ? "<p>Nothing is held now.</p>\n"
				      : "<p>No process holds a GPU.</p>\n");
	free(l.rows);
}
