/* The pages about a window of time: Audit, of one card, of one user, and For me. Each has a
 * form that chooses the window, and its report. */
#include "model/card.h"
#include "render/html.h"
#include "render/report_formats.h"
#include "serve/page.h"

/* What a page is about. */
struct report_page {
	struct page_frame frame;      /* its links to other formats are filled in */
	const char *path;	      /* of the page, as in links */
	struct request_param only[4]; /* what the report is restricted to; name NULL: nothing */
	const struct holder_choice *now; /* the holders that are listed first; NULL: none */
};

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
		html_addf(out, "&amp;%-s=%-s", p->name, p->value);
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
		const char *given = page_param(v->whole, p->name);
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
static struct brief day_text(int64_t ms, bool utc)
{
	struct tm t = moment_fields(ms, utc);
	return str_brief("%04d-%02d-%02d", t.tm_year + 1900, t.tm_mon + 1, t.tm_mday);
}

static void add_picker(const struct view *v)
{
	const struct audit_question *asked = &v->params.asked.question;
	const struct by *by = &v->params.asked.request.by;
	bool compares = v->params.asked.compares;
	bool past = asked->until_ms < v->q->now_ms;
	str_add(v->out, "<form class=\"picker\" method=\"get\" aria-label=\"Window\">\n");
	add_presets(v);
	str_addf(v->out,
		"<label>from <input type=\"date\" name=\"since\" value=\"%s\"></label>\n"
		"<label>to (day not included) <input type=\"date\" name=\"until\" "
		"value=\"%s\"></label>\n<label>by <select name=\"by\">",
		day_text(asked->since_ms, asked->utc).text,
		past ? day_text(asked->until_ms, asked->utc).text : "");
	for (size_t i = 0; i < IDENTITIES; i++)
		str_addf(v->out, "<option%s>%s</option>",
			identity_by_is(by, (enum identity)i) ? " selected" : "",
			identity_kinds[i].name);
	if (by->n == 2) /* the form offers no pairs, but keeps one */
		str_addf(v->out, "<option selected>%s,%s</option>",
			identity_kinds[by->kinds[0]].name, identity_kinds[by->kinds[1]].name);
	str_add(v->out, "</select></label>\n");
	/* The form keeps the parameters that it does not ask for. */
	for (size_t i = 0; i < v->q->n_params; i++) {
		const struct request_param *p = &v->q->params[i];
		if (is_of_window(p->name) || strcmp(p->name, "by") == 0 ||
			strcmp(p->name, "compare") == 0)
			continue;
		html_addf(v->out, "<input type=\"hidden\" name=\"%s\" value=\"%s\">\n", p->name,
			p->value);
	}
	str_addf(v->out,
		"<label><input type=\"checkbox\" name=\"compare\" value=\"\"%s> compare with "
		"the time before</label>\n<button>Show</button>\n</form>\n",
		compares ? " checked" : "");
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
	page_query(&spells, "", v->q, &(struct request_param){ "longest", number });
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
	f.paper = page_param(v->q, "print") != NULL;
	if (!e->code) { /* otherwise no format has any data */
		page_query(&hrefs[0], "/api/v1/report", v->whole, NULL);
		page_query(&hrefs[1], "/api/v1/report.csv", v->whole, NULL);
		page_query(&hrefs[2], v->page->path, v->q,
			&(struct request_param){ "print", "1" });
		f.formats[0] = (struct page_link){ "as JSON", str_text(&hrefs[0]) };
		f.formats[1] = (struct page_link){ "as CSV", str_text(&hrefs[1]) };
		f.formats[2] = (struct page_link){ "print", str_text(&hrefs[2]) };
	}
	page_begin(v->out, &f);
	if (!f.paper)
		add_picker(v);
	if (v->page->now && (!e->code || v->answer.empty)) {
		struct present b = { 0 };
		struct err why = { 0 };
		if (request_read_present(&b, v->q, PAGE_WAIT_MS, &why) == 0) {
			page_present_age(v->out, v->q, &b, false);
			page_holders(v->out, v->q, &b, v->page->now);
		} else {
			html_warning(v->out, why.text);
		}
		present_store_finish(&b);
	}
	if (e->code) {
		/* The window has no data, or what the page is about is not in the stores. */
		const struct audit *a = &v->answer.audit;
		const struct audit_question *asked = &v->params.asked.question;
		char sentence[ERR_TEXT_CAP];
		answer_sentence(sentence, e);
		html_warning(v->out, sentence);
		if (!v->answer.empty)
			str_add(v->out, "<p><a href=\"/audit\">The audit of all users and "
					"GPUs</a></p>\n");
		if (v->answer.empty && a->oldest_ms > 0)
			str_addf(v->out,
				"<p><a href=\"?since=%s&amp;until=%s\">All of the "
				"data</a></p>\n",
				day_text(a->oldest_ms, asked->utc).text,
				day_text(a->newest_ms + 86400000, asked->utc).text);
	} else
		add_report(v);
	page_end(v->out);
	for (size_t i = 0; i < 3; i++)
		str_finish(&hrefs[i]);
}

/* Answers with the page. The window is the last week unless the request names one. */
static void report_page(
	const struct request *q, struct answer *a, const struct report_page *page)
{
	struct request more = *q;
	struct view v = { .out = &a->body, .q = q, .whole = &more, .page = page };
	struct err e = { 0 };
	if (!page_param(q, "since") && !page_param(q, "last"))
		add_param(&more, "last", "7d");
	for (size_t i = 0; page->only[i].name; i++)
		if (!page_param(q, page->only[i].name))
			add_param(&more, page->only[i].name, page->only[i].value);
	int rc = request_read_report(&v.params, &more, true, &e);
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

void page_audit(const struct request *q, struct answer *a)
{
	report_page(q, a,
		&(struct report_page){ .frame = { .place = PLACE_AUDIT, .title = "Audit" },
			.path = "/audit" });
}

void page_audit_card(const struct request *q, struct answer *a)
{
	char title[384];
	struct str path = { 0 };
	const struct holder_choice now = { .uuid = q->parts[1] };
	html_addf(&path, "/card/%-s", q->parts[1]);
	/* "GPU 2 of lab (A100-SXM4-80GB)", or the UUID of a card that no store has now. */
	struct present b = { 0 };
	struct err e = { 0 };
	snprintf(title, sizeof(title), "%s", q->parts[1]);
	int rc = request_read_present(&b, q, PAGE_WAIT_MS, &e);
	for (size_t i = 0; rc == 0 && i < b.n_cards; i++) {
		const struct present_card *c = &b.cards[i];
		if (strcmp(c->id.uuid, q->parts[1]) != 0)
			continue;
		snprintf(title, sizeof(title), "GPU %s of %s (%s)", card_label(&c->id).text,
			b.hosts[c->host].hostname, card_short_name(c->id.name));
		break;
	}
	present_store_finish(&b);
	report_page(q, a,
		&(struct report_page){ .frame = { .place = PLACE_AUDIT,
					       .title = title,
					       .crumbs = { { "Audit", "/audit" } } },
			.path = str_text(&path),
			.only = { { "card", q->parts[1] }, { "longest", "20" } },
			.now = &now });
	str_finish(&path);
}

void page_audit_notebook(const struct request *q, struct answer *a)
{
	const char *user = q->parts[1], *notebook = q->parts[2],
		   *slash = strrchr(notebook, '/');
	struct str path = { 0 }, owner = { 0 };
	const struct holder_choice now = { .user = user, .notebook = notebook };
	html_addf(&owner, "/user/%-s", user);
	html_addf(&path, "/notebook/%-s/%-s", user, notebook);
	report_page(q, a,
		&(struct report_page){
			.frame = { .place = PLACE_AUDIT,
				.title = slash && slash[1] ? slash + 1 : notebook,
				.crumbs = { { "Audit", "/audit" },
					{ user, str_text(&owner) } } },
			.path = str_text(&path),
			.only = { { "user", user }, { "notebook", notebook },
				{ "longest", "20" } },
			.now = &now });
	str_finish(&owner);
	str_finish(&path);
}

static void user_page(const struct request *q, struct answer *a, const char *user,
	const struct page_frame *frame)
{
	struct str path = { 0 };
	const struct holder_choice now = { .user = user };
	str_add(&path, frame->place == PLACE_ME ? "/me" : "/user/");
	if (frame->place != PLACE_ME)
		html_url(&path, user);
	report_page(q, a,
		&(struct report_page){ .frame = *frame,
			.path = str_text(&path),
			.only = { { "user", user }, { "longest", "20" } },
			.now = &now });
	str_finish(&path);
}

void page_audit_user(const struct request *q, struct answer *a)
{
	const struct page_frame frame = {
		.place = PLACE_AUDIT, .title = q->parts[1], .crumbs = { { "Audit", "/audit" } }
	};
	user_page(q, a, q->parts[1], &frame);
}

static void explain_me(struct answer *a)
{
	page_begin(&a->body, &(struct page_frame){ .place = PLACE_ME, .title = "For me" });
	str_add(&a->body,
		"<p>This page shows your own use of the GPUs, when the server knows who you "
		"are. It does not know that now.</p>\n"
		"<p>It knows users of its own host, who connect to the loopback interface or a "
		"unix socket there, also through <code>ssh -L</code>. A reverse proxy that "
		"logs people in can say in a header who asks. <code>man gua-serve</code> "
		"explains how. Until then:</p>\n<ul>\n"
		"<li>the page of each user is linked wherever the name is shown, on <a "
		"href=\"/\">Now</a> and in the <a href=\"/audit\">Audit</a>;</li>\n"
		"<li>on the host, <code class=\"copy\">gua report --mine</code> prints the "
		"same as text.</li>\n</ul>\n");
	page_end(&a->body);
}

/* The name of a user of this host for "uid:1000", as stores have it. */
static void name_user(char *dst, size_t cap, const char *user, const struct serve_world *world)
{
	char *end = NULL;
	unsigned long uid = strncmp(user, "uid:", 4) == 0 ? strtoul(user + 4, &end, 10) : 0;
	if (!end || *end || !world->users) {
		str_copy(dst, cap, user);
		return;
	}
	pthread_mutex_lock(world->users_lock);
	user_names_get(world->users, (uint32_t)uid, clock_monotonic_us(), dst, cap);
	pthread_mutex_unlock(world->users_lock);
}

void page_audit_me(const struct request *q, struct answer *a)
{
	char title[320], user[256];
	if (!q->user) {
		explain_me(a);
		return;
	}
	name_user(user, sizeof(user), q->user, q->world);
	snprintf(title, sizeof(title), "For me: %s", user);
	const struct page_frame frame = { .place = PLACE_ME, .title = title };
	user_page(q, a, user, &frame);
}
