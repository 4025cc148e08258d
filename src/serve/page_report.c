/* Writes the form that chooses a window, and the report of it. */
#include "serve/page_report.h"

#include <stdio.h>
#include <string.h>

#include "base/moment.h"
#include "render/html.h"
#include "render/report_formats.h"
#include "serve/params.h"

/* A page while it is written. */
struct view {
	struct str *out;
	const struct request *q;     /* the request as it came */
	const struct request *whole; /* the same with what the page adds to it */
	const struct report_page *page;
	struct report_params params;
	struct report_answer answer;
};

static void add_param(struct request *q, const char *name, const char *value)
{
	if (q->n_params < REQUEST_MAX_PARAMS)
		q->params[q->n_params++] = (struct request_param){ name, value };
}

static const struct preset {
	const char *text, *name, *value;
} presets[] = {
	{ "hour", "last", "1h" },
	{ "day", "last", "24h" },
	{ "week", "last", "7d" },
	{ "month", "last", "30d" },
	{ "year", "last", "365d" },
	{ "last week", "since", "lastweek" },
	{ "last month", "since", "lastmonth" },
};

static bool is_of_window(const char *name)
{
	return strcmp(name, "since") == 0 || strcmp(name, "until") == 0 ||
	       strcmp(name, "last") == 0;
}

/* Adds the other parameters of the page to a link, after the window. */
static void add_rest(const struct view *v, struct str *out)
{
	for (size_t i = 0; i < v->q->n_params; i++) {
		const struct request_param *p = &v->q->params[i];
		if (is_of_window(p->name))
			continue;
		str_add(out, "&amp;");
		html_url(out, p->name);
		str_add(out, "=");
		html_url(out, p->value);
	}
}

/* Adds the same to the form, as hidden fields. */
static void add_hidden(const struct view *v)
{
	for (size_t i = 0; i < v->q->n_params; i++) {
		const struct request_param *p = &v->q->params[i];
		if (is_of_window(p->name) || strcmp(p->name, "by") == 0 ||
			strcmp(p->name, "compare") == 0)
			continue;
		str_add(v->out, "<input type=\"hidden\" name=\"");
		html_text(v->out, p->name);
		str_add(v->out, "\" value=\"");
		html_text(v->out, p->value);
		str_add(v->out, "\">\n");
	}
}

/* A link to the window of the same length before or after this one. */
static void add_step(const struct view *v, int direction, const char *text)
{
	const struct audit_question *asked = &v->params.asked.question;
	int64_t length_ms = asked->until_ms - asked->since_ms;
	int64_t since_ms = asked->since_ms + direction * length_ms;
	if (since_ms >= v->q->now_ms || since_ms < 0)
		return;
	str_addf(v->out, "<li><a href=\"?since=%%40%lld&amp;until=%%40%lld",
		(long long)since_ms / 1000, (long long)(since_ms + length_ms) / 1000);
	add_rest(v, v->out);
	str_addf(v->out, "\">%s</a></li>", text);
}

static void add_presets(const struct view *v)
{
	str_add(v->out, "<ul class=\"presets\" aria-label=\"Windows\">");
	for (size_t i = 0; i < sizeof(presets) / sizeof(presets[0]); i++) {
		const struct preset *p = &presets[i];
		const char *given = part_param(v->whole, p->name);
		bool current = given && strcmp(given, p->value) == 0;
		str_addf(v->out, "<li><a href=\"?%s=%s", p->name, p->value);
		add_rest(v, v->out);
		str_addf(v->out, "\"%s>%s</a></li>", current ? " aria-current=\"true\"" : "",
			p->text);
	}
	add_step(v, -1, "earlier");
	add_step(v, 1, "later");
	str_add(v->out, "</ul>\n");
}

/* The day of a moment, in the format of the form's field and of the parameter. */
static void day_text(char dst[48], int64_t ms, bool utc)
{
	struct tm t = moment_fields(ms, utc);
	snprintf(dst, 48, "%04d-%02d-%02d", t.tm_year + 1900, t.tm_mon + 1, t.tm_mday);
}

static void add_dates(const struct view *v)
{
	const struct audit_question *asked = &v->params.asked.question;
	char since[48], until[48] = "";
	day_text(since, asked->since_ms, asked->utc);
	if (asked->until_ms < v->q->now_ms)
		day_text(until, asked->until_ms, asked->utc);
	str_addf(v->out,
		"<label>from <input type=\"date\" name=\"since\" value=\"%s\"></label>\n"
		"<label>to (day not included) <input type=\"date\" name=\"until\" "
		"value=\"%s\"></label>\n",
		since, until);
}

static void add_kinds(const struct view *v)
{
	const struct by *by = &v->params.asked.request.by;
	str_add(v->out, "<label>by <select name=\"by\">");
	for (size_t i = 0; i < IDENTITIES; i++)
		str_addf(v->out, "<option%s>%s</option>",
			identity_by_is(by, (enum identity)i) ? " selected" : "",
			identity_kinds[i].name);
	str_add(v->out, "</select></label>\n");
}

static void add_picker(const struct view *v)
{
	bool compares = v->params.asked.compares;
	str_add(v->out, "<form class=\"picker\" method=\"get\" aria-label=\"Window\">\n");
	add_presets(v);
	add_dates(v);
	add_kinds(v);
	add_hidden(v);
	str_addf(v->out,
		"<label><input type=\"checkbox\" name=\"compare\" value=\"\"%s> compare with "
		"the time before</label>\n<button>Show</button>\n</form>\n",
		compares ? " checked" : "");
}

/* Adds what the user or card of the page holds now. */
static void add_present(const struct view *v)
{
	struct present b = { 0 };
	struct err e = { 0 };
	if (!v->page->now)
		return;
	if (part_present(&b, v->q, &e) == 0) {
		part_present_age(v->out, v->q, &b, false);
		page_holders(v->out, v->q, &b, v->page->now);
	} else {
		part_warning(v->out, e.text);
	}
	present_store_finish(&b);
}

/* The window has no data, or what the page is about is not in the stores. */
static void add_nothing(const struct view *v, const struct err *e)
{
	const struct audit *a = &v->answer.audit;
	const struct audit_question *asked = &v->params.asked.question;
	char first[48], last[48], sentence[ERR_TEXT_CAP];
	answer_sentence(sentence, e);
	part_warning(v->out, sentence);
	if (!v->answer.empty)
		str_add(v->out,
			"<p><a href=\"/audit\">The audit of all users and GPUs</a></p>\n");
	if (!v->answer.empty || a->oldest_ms <= 0)
		return;
	day_text(first, a->oldest_ms, asked->utc);
	day_text(last, a->newest_ms + 86400000, asked->utc);
	str_addf(v->out, "<p><a href=\"?since=%s&amp;until=%s\">All of the data</a></p>\n",
		first, last);
}

/* Sets the links to the other formats; the frame borrows the texts. */
static void name_formats(struct page_frame *f, const struct view *v, struct str hrefs[3])
{
	static const struct request_param print = { "print", "1" };
	part_query(&hrefs[0], "/api/v1/report", v->whole, NULL);
	part_query(&hrefs[1], "/api/v1/report.csv", v->whole, NULL);
	part_query(&hrefs[2], v->page->path, v->q, &print);
	f->formats[0] = (struct page_link){ "as JSON", str_text(&hrefs[0]) };
	f->formats[1] = (struct page_link){ "as CSV", str_text(&hrefs[1]) };
	f->formats[2] = (struct page_link){ "print", str_text(&hrefs[2]) };
}

/* Appends the report; its links keep the other parameters. */
static void add_report(struct view *v)
{
	struct report *r = &v->answer.report;
	struct str rest = { 0 }, spells = { 0 };
	char number[24];
	size_t n = r->longest.n_rows + r->n_spells_left;
	snprintf(number, sizeof(number), "%zu", n < REPORT_ROWS ? n : (size_t)REPORT_ROWS);
	add_rest(v, &rest);
	part_query(&spells, "", v->q, &(struct request_param){ "longest", number });
	r->linked = true;
	r->link_rest = str_text(&rest);
	r->link_spells = str_text(&spells);
	report_html_body(v->out, r);
	v->out->failed |= rest.failed || spells.failed;
	str_finish(&rest);
	str_finish(&spells);
}

static void write_page(struct view *v, const struct err *e)
{
	struct page_frame f = v->page->frame;
	struct str hrefs[3] = { { 0 } };
	f.paper = part_param(v->q, "print") != NULL;
	if (!e->code) /* otherwise no format has any data */
		name_formats(&f, v, hrefs);
	page_begin(v->out, &f);
	if (!f.paper)
		add_picker(v);
	if (!e->code || v->answer.empty)
		add_present(v);
	if (e->code) {
		add_nothing(v, e);
	} else {
		add_report(v);
	}
	page_end(v->out);
	for (size_t i = 0; i < 3; i++)
		str_finish(&hrefs[i]);
}

void report_page(const struct request *q, struct answer *a, const struct report_page *page)
{
	struct request more = *q;
	struct view v = { .out = &a->body, .q = q, .whole = &more, .page = page };
	struct err e = { 0 };
	if (!part_param(q, "since") && !part_param(q, "last"))
		add_param(&more, "last", "7d");
	for (size_t i = 0; page->only[i].name; i++)
		if (!part_param(q, page->only[i].name))
			add_param(&more, page->only[i].name, page->only[i].value);
	int rc = params_read_report(&v.params, &more, true, &e);
	v.params.asked.question.want_columns = true;
	if (rc == 0)
		rc = report_ask_answer(&v.answer, &v.params.asked, &e);
	if (rc && e.code != ERR_NOTHING) {
		answer_err(a, q, &e);
	} else {
		/* Every user has a page of their own, even without any data. */
		a->status = rc && page->frame.place != PLACE_ME ? 404 : 200;
		write_page(&v, &e);
	}
	report_ask_finish(&v.answer);
}
