/* The report as a page. Accessible: real tables, a text for every picture, and no meaning by
 * colour alone. Self-contained: no script, no external files. Light, dark and print styles. */
#include "model/process.h"
#include "render/html.h"
#include "render/report_formats.h"
#include "render/timeline.h"

/* The pages of gua serve that names link to. */
static const struct html_link links[] = {
	{ "gpu", "/card/", { "uuid" } },
	{ "gpu", "/card/", { "gpu" } },
	{ "card", "/card/", { "gpu" } },
	{ "user", "/user/", { "identity" } },
	{ "user", "/user/", { "user" } },
	{ "notebook", "/notebook/", { "user", "notebook" } },
	{ "what", "/notebook/", { "user", "notebook_path" } },
	{ "what", "/notebook/", { "user", "notebook" } },
	{ 0 },
};

static void add_sentences(struct str *out, const struct report *r, enum sentence_kind kind)
{
	const struct sentence *s;
	bool open = false; /* a list of labelled sentences */
	for (size_t i = 0; (s = report_next_sentence(r, kind, &i));) {
		if (open != (s->label != NULL))
			str_add(out, open ? "</dl>\n" : "<dl>\n");
		open = s->label != NULL;
		if (open && *s->label)
			html_addf(out, "<dt>%s</dt>", s->label);
		html_addf(out, open ? "<dd>%s</dd>\n" : "<p>%s</p>\n", s->text);
	}
	str_add(out, open ? "</dl>\n" : "");
}

/* Sentences that the reader must not miss. */
static void add_warnings(struct str *out, const struct report *r, enum sentence_kind kind)
{
	const struct sentence *s;
	for (size_t i = 0; (s = report_next_sentence(r, kind, &i));)
		html_warning(out, s->text);
}

/* The subject of the report: the only host, or the number of hosts. */
static void add_subject(struct str *out, const struct report *r)
{
	if (r->a->n_hosts == 1)
		html_text(out, r->a->hosts[0].hostname);
	else
		str_addf(out, "%zu hosts", r->a->n_hosts);
}

static void add_headline(struct str *out, const struct report *r)
{
	if (!r->n_states)
		return;
	/* The bar of the headline, in the order of the list below it. Its parts get their width
	 * from the layout, so that patterns are not stretched. */
	double at = 0;
	str_add(out, "<svg class=\"bar\" role=\"img\" aria-labelledby=\"bar bar-parts\"><title "
		     "id=\"bar\">How the time divides</title><desc id=\"bar-parts\">");
	for (size_t i = 0; i < r->n_states; i++)
		str_addf(out, "%s%s %.1f%%", i ? ", " : "", r->states[i].label,
			100 * r->states[i].shown);
	str_add(out, "</desc>");
	for (size_t i = 0; i < r->n_states; i++) {
		double wide = 100 * r->states[i].shown;
		if (wide > 0)
			str_addf(out,
				"<rect class=\"%s\" x=\"%.1f%%\" width=\"%.1f%%\" "
				"height=\"100%%\"/>",
				state_looks[r->states[i].look].key, at, wide);
		at += wide;
	}
	str_add(out, "</svg>\n<dl class=\"states\">\n");
	for (size_t i = 0; i < r->n_states; i++) {
		const struct report_state *s = &r->states[i];
		str_add(out, "<div class=\"state\"><dt>");
		html_key(out, state_looks[s->look].key);
		html_addf(out, "%s</dt><dd><strong>%.1f%%</strong>", s->label, 100 * s->shown);
		double tenths = ceil(1000 * r->uncertainty - 1e-6);
		if (s->look == CARD_IDLE_HELD && !r->a->of_users && tenths >= 1)
			str_addf(out, " <span class=\"dim\">± %.1f</span>", tenths / 10);
		if (*s->remark)
			html_addf(out, "<br><span class=\"dim\">%s</span>", s->remark);
		str_add(out, "</dd></div>\n");
	}
	str_add(out, "</dl>\n");
}

static void add_table(struct str *out, const struct report *r, const struct report_block *b)
{
	html_table(out, b->table,
		&(struct html_table_style){ .caption = b->caption,
			.bars = b->bars,
			.deep = b->rows ? &b->rows[0].level : NULL,
			.deep_step = sizeof(b->rows[0]),
			.utc = r->utc,
			.links = r->linked && !b->no_links ? links : NULL });
}

static void add_cards(struct str *out, const struct report *r)
{
	size_t first = 0;
	char caption[256];
	for (size_t i = 0; i < r->n_listed; i++) {
		struct table cards = table_part(&r->cards, first, r->a->hosts[i].n_cards);
		first += cards.n_rows;
		snprintf(caption, sizeof(caption), "What each GPU of %s did",
			r->a->hosts[i].hostname);
		const struct report_block block = {
			.table = &cards, .caption = caption, .bars = "idle-held"
		};
		add_table(out, r, &block);
	}
	if (r->n_listed < r->a->n_hosts)
		str_addf(out,
			"<p>The %zu hosts with the most idle-held time of %zu. <code>--by "
			"host</code> lists hosts, <code>--host NAME</code> shows one, and "
			"<code>--format csv --by card</code> has all GPUs.</p>\n",
			r->n_listed, r->a->n_hosts);
}

static void add_head(struct str *out, const char *caption, const char *const *titles, size_t n)
{
	str_addf(out, "<table>\n<caption>%s</caption>\n<thead><tr>", caption);
	for (size_t i = 0; i < n; i++)
		str_addf(
			out, "<th scope=\"col\"%s>%s</th>", i ? " class=\"n\"" : "", titles[i]);
	str_add(out, "</tr></thead>\n<tbody>\n");
}

static void add_compare(struct str *out, const struct report *r)
{
	static const char *const figures[] = { "figure", "now", "before", "change" };
	static const char *const users[] = { "user", "held h", "before", "unused h", "before" };
	const struct report_compare *c = &r->compare;
	str_add(out, "<div class=\"pair\">\n");
	if (!c->empty) {
		add_head(out, "Both windows", figures, 4);
		for (size_t i = 0; i < c->n_figures; i++) {
			const struct report_change *f = &c->figures[i];
			str_addf(out,
				"<tr><th scope=\"row\">%s</th><td class=\"n\">%s</td>"
				"<td class=\"n\">%s</td><td class=\"n\">%s</td></tr>\n",
				f->label,
				report_text_number(f->shown_now, f->unit == FIGURE_SHARE).text,
				report_text_number(f->shown_before, f->unit == FIGURE_SHARE)
					.text,
				report_text_change(f).text);
		}
		str_add(out, "</tbody></table>\n");
	}
	if (!c->empty && c->n_users) {
		add_head(out, "Users in both windows, in GPU-hours", users, 5);
		for (size_t i = 0; i < c->n_users; i++) {
			const struct report_user_change *u = &c->users[i];
			const int64_t ms[] = { u->now.held_ms, u->before.held_ms,
				u->now.unused_ms, u->before.unused_ms };
			html_addf(out, "<tr><th scope=\"row\">%s</th>",
				process_shown_user(u->identity));
			for (size_t k = 0; k < 4; k++)
				str_addf(out, "<td class=\"n\">%.2f</td>",
					(double)ms[k] / 3600e3);
			str_add(out, "</tr>\n");
		}
		str_add(out, "</tbody></table>\n");
	}
	str_add(out, "</div>\n");
}

/* What the shares refer to. */
static const char *whole_word(const struct report *r)
{
	return r->a->of_users ? "the time held" : "observed time";
}

/* Appends the beginning of a link to the report of a period, if there are links. */
static void add_zoom(struct str *out, const struct report *r, const struct report_period *p)
{
	if (!r->linked)
		return;
	struct period whole = period_at(r->trend.unit, p->from_ms, 0, r->utc);
	struct tm from = moment_fields(whole.from_ms, r->utc);
	struct tm to = moment_fields(whole.to_ms, r->utc);
	str_addf(out, "<a href=\"?since=%04d-%02d-%02d&amp;until=%04d-%02d-%02d%s\">",
		from.tm_year + 1900, from.tm_mon + 1, from.tm_mday, to.tm_year + 1900,
		to.tm_mon + 1, to.tm_mday, r->link_rest);
}

/* Draws period i. In a report about users, unobserved time is not part of the column. */
static void add_period(struct str *out, const struct report *r, size_t i, double step)
{
	enum { TALL = 120 };
	const struct report_period *p = &r->trend.periods[i];
	size_t n = CARD_STATES - r->a->of_users;
	double all = 0, y = TALL, x = (double)i * step, wide = step * 0.85; /* x in percent */
	for (size_t k = 0; k < n; k++)
		all += (double)p->ms[state_order[k]];
	add_zoom(out, r, p);
	str_addf(out, "<g><title>%s: ", p->name);
	if (isnan(p->share[CARD_ACTIVE]))
		str_add(out, r->a->of_users ? "nothing held" : "no reading");
	else
		str_addf(out, "%s %.1f %%, %s %.1f %%, unobserved %.1f %%",
			report_text_state(r, CARD_ACTIVE), 100 * p->share[CARD_ACTIVE],
			report_text_state(r, CARD_IDLE_HELD), 100 * p->share[CARD_IDLE_HELD],
			100 * p->share[CARD_UNOBSERVED]);
	str_add(out, "</title>");
	for (size_t k = 0; all > 0 && k < n; k++) {
		double tall = TALL * (double)p->ms[state_order[k]] / all;
		y -= tall;
		if (tall > 0)
			str_addf(out,
				"<rect class=\"%s\" x=\"%.2f%%\" y=\"%.1f\" width=\"%.2f%%\" "
				"height=\"%.1f\"/>",
				state_looks[state_order[k]].key, x, y, wide, tall);
	}
	if (all > 0)
		str_addf(out,
			"<rect class=\"edge\" x=\"%.2f%%\" width=\"%.2f%%\" height=\"%d\"/>", x,
			wide, TALL);
	str_add(out, r->linked ? "</g></a>\n" : "</g>\n");
}

static void add_trend(struct str *out, const struct report *r)
{
	const struct report_trend *t = &r->trend;
	double step = 100.0 / ((double)t->n - 0.15); /* the last one ends at the edge */
	str_addf(out,
		"<svg class=\"trend\" role=\"%s\" "
		"aria-labelledby=\"trend-is trend-has\"><title id=\"trend-is\">How %s divides, "
		"by %s</title><desc id=\"trend-has\">The table below has the numbers.</desc>\n",
		r->linked ? "group" : "img", /* role "img" would hide its links */
		r->a->of_users ? "the time held" : "the GPUs&#39; time",
		period_unit_names[t->unit]);
	for (size_t i = 0; i < t->n; i++)
		add_period(out, r, i, step);
	str_addf(out, "<text x=\"0\" y=\"136\">%s</text>", t->periods[0].name);
	str_addf(out, "<text x=\"100%%\" y=\"136\" text-anchor=\"end\">%s</text></svg>\n",
		t->periods[t->n - 1].name);
	str_add(out, "<details><summary>The numbers</summary>\n");
	const char *const titles[] = { "period", report_text_state(r, CARD_ACTIVE),
		report_text_state(r, CARD_IDLE_HELD), "unobserved" };
	char caption[80];
	snprintf(caption, sizeof(caption), "Share of %s; unobserved: of all time of the GPUs",
		whole_word(r));
	add_head(out, caption, titles, 4);
	for (size_t i = 0; i < t->n; i++) {
		const struct report_period *p = &t->periods[i];
		static const enum card_state shown[] = { CARD_ACTIVE, CARD_IDLE_HELD,
			CARD_UNOBSERVED };
		str_add(out, "<tr><th scope=\"row\">");
		add_zoom(out, r, p);
		str_addf(out, "%s%s</th>", p->name, r->linked ? "</a>" : "");
		for (size_t k = 0; k < 3; k++)
			str_addf(out, "<td class=\"n\">%s</td>",
				report_text_number(p->share[shown[k]], true).text);
		str_add(out, "</tr>\n");
	}
	str_add(out, "</tbody></table></details>\n");
}

static void add_week(struct str *out, const struct report *r, enum card_state state)
{
	const char *word = report_text_state(r, state);
	str_addf(out,
		"<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Hours of the "
		"week, %s\"><table class=\"week\">\n<caption>%s, percent of "
		"%s</caption>\n<thead><tr><td></td>",
		word, word, whole_word(r));
	for (int hour = 0; hour < 24; hour++)
		str_addf(out, "<th scope=\"col\">%02d</th>", hour);
	str_add(out, "</tr></thead>\n<tbody>\n");
	for (int i = 1; i <= 7; i++) { /* Monday first */
		str_addf(out, "<tr><th scope=\"row\">%s</th>", moment_weekdays[i % 7]);
		for (int hour = 0; hour < 24; hour++) {
			/* One hour: darker for a larger share; the number is in its title. */
			const struct report_hour *h = &r->hours[i % 7][hour];
			str_add(out, "<td");
			if (h->observed)
				str_addf(out,
					" class=\"%s h%.0f\" title=\"%s %02d:00, %.0f "
					"%%\">%.0f",
					state_looks[state].key, floor(h->share[state] * 9.999),
					moment_weekdays[i % 7], hour, 100 * h->share[state],
					100 * h->share[state]);
			else
				str_add(out, " class=\"none\">");
			str_add(out, "</td>");
		}
		str_add(out, "</tr>\n");
	}
	str_add(out, "</tbody></table></div>\n");
}

static void add_weeks(struct str *out, const struct report *r)
{
	str_add(out, "<div class=\"pair\">\n");
	add_week(out, r, CARD_ACTIVE);
	add_week(out, r, CARD_IDLE_HELD);
	str_add(out, "</div>\n");
}

/* A lane in pixels: marks are above the columns. A lane is as wide as the page, so shapes
 * have units that are stretched. */
enum { MARKS_TALL = 9, COLUMNS_TALL = 26, UNITS_WIDE = 2000, UNITS_TALL = 100 };
static const struct box units = { 0, 0, UNITS_WIDE, UNITS_TALL };

/* Draws the states of a lane. Patterns are not stretched: they fill a rectangle that is clipped
 * to the shape. */
static void add_states(struct str *out, const struct report_timeline *t, size_t lane)
{
	for (size_t n = CARD_STATES; n > 0; n--) {
		enum card_state state = state_order[n - 1];
		const char *class = state_looks[state].key;
		bool pattern = state_looks[state].pattern;
		if (!timeline_has(t, &t->lanes[lane], n - 1))
			continue;
		if (pattern)
			str_addf(out,
				"<clipPath id=\"cut-%zu-%zu\" "
				"clipPathUnits=\"objectBoundingBox\">"
				"<path transform=\"scale(%g %g)\" d=\"",
				lane, n, 1.0 / UNITS_WIDE, 1.0 / UNITS_TALL);
		else
			str_addf(out,
				"<svg y=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
				"preserveAspectRatio=\"none\"><path class=\"%s\" d=\"",
				MARKS_TALL, COLUMNS_TALL, UNITS_WIDE, UNITS_TALL, class);
		timeline_shape(out, t, &t->lanes[lane], n, units);
		if (pattern)
			str_addf(out,
				"\"/></clipPath><rect class=\"%s\" y=\"%d\" width=\"100%%\" "
				"height=\"%d\" clip-path=\"url(#cut-%zu-%zu)\"/>",
				class, MARKS_TALL, COLUMNS_TALL, lane, n);
		else
			str_add(out, "\"/></svg>");
	}
	str_addf(out, "<rect class=\"edge\" y=\"%d\" width=\"100%%\" height=\"%d\"/>",
		MARKS_TALL, COLUMNS_TALL);
}

static void add_lane(struct str *out, const struct report *r, size_t lane, size_t *at)
{
	const struct report_timeline *t = &r->timeline;
	const struct report_lane *l = &t->lanes[lane];
	bool link = r->linked && l->uuid; /* to the card's page */
	if (l->heading)
		html_addf(out,
			"<tr><th class=\"of\" scope=\"rowgroup\" colspan=\"2\">%s</th></tr>\n",
			l->heading);
	str_add(out, "<tr><th scope=\"row\">");
	if (link) {
		html_addf(out, "<a href=\"/card/%-s\">", l->uuid);
	}
	html_addf(out, link ? "%s</a>" : "%s", l->label);
	html_addf(out,
		"</th><td><svg class=\"lane%s\" role=\"img\" aria-labelledby=\"lane-%zu "
		"about-%zu\"><title id=\"lane-%zu\">%s</title><desc id=\"about-%zu\">%s</desc>",
		l->share ? "" : " low", lane, lane, lane, l->name, lane, l->text);
	if (l->share)
		add_states(out, t, lane);
	/* The marks of a lane; `at` is the first that is not drawn yet. */
	while (*at < t->n_marks && t->marks[*at].lane == lane) {
		size_t n = timeline_cluster(t, *at);
		str_addf(
			out, "<svg x=\"%.2f%%\" overflow=\"visible\">", 100 * t->marks[*at].at);
		if (t->lanes[lane].share)
			str_addf(out, "<line class=\"mark\" y1=\"%d\" y2=\"%d\"/>", MARKS_TALL,
				MARKS_TALL + COLUMNS_TALL);
		for (size_t i = 0; i < n; i++) {
			const struct report_mark *m = &t->marks[*at + i];
			html_addf(out,
				"<use class=\"mark\" href=\"#mark-%s\" "
				"x=\"%zu\"><title>%s</title></use>",
				mark_shape_names[timeline_shape_of(m->kind)], 9 * i, m->text);
		}
		str_add(out, "</svg>");
		*at += n;
	}
	str_add(out, "</svg></td></tr>\n");
}

static void add_axis(struct str *out, const struct report_timeline *t)
{
	str_add(out, "</tbody>\n<tfoot><tr><td></td><td><svg class=\"axis\" "
		     "aria-hidden=\"true\">");
	for (size_t i = 0; i < t->n_ticks; i++) {
		const struct report_tick *tick = &t->ticks[i];
		double at = 100 * tick->at;
		str_addf(out,
			"<g%s><line x1=\"%.2f%%\" x2=\"%.2f%%\" y2=\"4\"/><text x=\"%.2f%%\" "
			"y=\"16\" text-anchor=\"%s\">%s</text></g>",
			tick->between ? " class=\"between\"" : "", at, at, at,
			at < 4	  ? "start"
			: at > 96 ? "end"
				  : "middle",
			tick->label);
	}
	str_add(out, "</svg></td></tr></tfoot>");
}

/* The meaning of colours and shapes, from the bottom up. */
static void add_legend(struct str *out, const struct report *r)
{
	const struct report_timeline *t = &r->timeline;
	bool used[MARK_SHAPES] = { false };
	str_add(out, "<ul class=\"legend\">\n");
	for (size_t n = 0; n < CARD_STATES; n++) {
		if (!t->states[state_order[n]])
			continue;
		str_add(out, "<li>");
		html_key(out, state_looks[state_order[n]].key);
		str_addf(out, "%s</li>\n", t->words[state_order[n]]);
	}
	for (size_t i = 0; i < t->n_marks; i++)
		used[timeline_shape_of(t->marks[i].kind)] = true;
	for (int i = 0; i < MARK_SHAPES; i++)
		if (used[i])
			str_addf(out,
				"<li><svg class=\"sign\" viewBox=\"-4 0 8 8\" "
				"aria-hidden=\"true\">"
				"<use class=\"mark\" href=\"#mark-%s\"/></svg>%s</li>\n",
				mark_shape_names[i], mark_shape_words[i]);
	str_add(out, "</ul>\n");
}

static void add_numbers_row(struct str *out, const struct report_timeline *t, size_t column)
{
	const char *separator = "";
	str_addf(out, "<tr><th scope=\"row\">%s</th>", t->columns[column].name);
	for (size_t i = 0; i < timeline_shown(t); i++) {
		const struct report_lane *lane = &t->lanes[i];
		if (!lane->share)
			continue;
		const double *share = lane->share[column];
		double seen = share[CARD_ACTIVE] + share[CARD_IDLE_HELD] +
			      share[CARD_TRULY_IDLE] + share[CARD_USE_UNKNOWN];
		if (seen > 0)
			str_addf(out, "<td class=\"n\">%.0f / %.0f</td>",
				100 * share[CARD_ACTIVE], 100 * share[CARD_IDLE_HELD]);
		else
			str_add(out, "<td class=\"n\">-</td>");
	}
	str_add(out, t->n_marks ? "<td>" : "");
	for (size_t i = 0; i < t->n_marks; i++) {
		const struct report_mark *m = &t->marks[i];
		if (m->column != column || m->lane >= timeline_shown(t))
			continue;
		str_add(out, separator);
		html_addf(out, "%s: %s", t->lanes[m->lane].name, m->label);
		separator = "; ";
	}
	str_add(out, t->n_marks ? "</td></tr>\n" : "</tr>\n");
}

static void add_timeline(struct str *out, const struct report *r)
{
	const struct report_timeline *t = &r->timeline;
	size_t at = 0;
	if (t->too_many) {
		str_add(out, "<p>There are too many GPUs for a time line: --host, --card or "
			     "--model choose some.</p>\n");
		return;
	}
	str_add(out,
		"<svg class=\"defs\" aria-hidden=\"true\" width=\"0\" height=\"0\"><defs>");
	timeline_shapes(out);
	str_add(out, "</defs></svg>\n");
	add_legend(out, r);
	str_addf(out,
		"<table class=\"lanes\">\n<caption>%s; a column is %s</caption>\n<thead><tr>"
		"<th scope=\"col\"><span class=\"hidden\">GPU</span></th><th "
		"scope=\"col\"><span class=\"hidden\">time</span></th></tr></thead>\n<tbody>\n",
		r->a->of_users ? "The time that they held each GPU" : "What each GPU did",
		t->width);
	for (size_t i = 0; i < timeline_shown(t); i++)
		add_lane(out, r, i, &at);
	if (timeline_shown(t) < t->n_lanes)
		str_addf(out,
			"<tr><th class=\"of\" scope=\"row\" colspan=\"2\">" TIMELINE_MORE
			"</th></tr>\n",
			t->n_lanes - timeline_shown(t));
	add_axis(out, t);
	str_add(out, "</table>\n");
	str_addf(out,
		"<details><summary>The numbers</summary>\n<div class=\"wide\" tabindex=\"0\" "
		"role=\"region\" aria-label=\"Numbers of the time "
		"line\"><table>\n<caption>Percent %s / percent %s of each GPU&#39;s time; gua "
		"report --format csv --table timeline has the "
		"seconds</caption>\n<thead><tr><th scope=\"col\">from</th>",
		t->words[CARD_ACTIVE], t->words[CARD_IDLE_HELD]);
	for (size_t i = 0; i < timeline_shown(t); i++) {
		if (!t->lanes[i].share)
			continue;
		html_addf(out, "<th scope=\"col\" class=\"n\">%s</th>", t->lanes[i].name);
	}
	str_addf(out, "%s</tr></thead>\n<tbody>\n",
		t->n_marks ? "<th scope=\"col\">events</th>" : "");
	for (size_t i = 0; i < t->n; i++)
		add_numbers_row(out, t, i);
	str_add(out, "</tbody></table></div></details>\n");
}

static void add_said(struct str *out, const struct report *r, enum sentence_kind kind)
{
	bool verdict = kind == SENTENCE_VERDICT;
	const struct sentence *s;
	size_t at = 0;
	if (kind == SENTENCE_UNOBSERVED && (s = report_next_sentence(r, kind, &at))) {
		html_addf(out, "<p>unobserved: %.1f%% %s</p>\n",
			100 * r->shown[CARD_UNOBSERVED], s->text);
	} else if (kind == SENTENCE_SPELLS && r->linked && r->n_spells_left) {
		/* On a page of gua serve, a link replaces the sentence. */
		html_addf(out, "<p><a href=\"%s#longest\">%zu more idle spells</a></p>\n",
			r->link_spells, r->n_spells_left);
	} else {
		str_add(out, verdict ? "<div class=\"verdict\">\n" : "");
		add_sentences(out, r, kind);
		str_add(out, verdict ? "</div>\n" : "");
	}
}

static void add_block(struct str *out, const struct report *r, const struct report_block *b)
{
	static void (*const pictures[])(struct str *, const struct report *) = {
		[BLOCK_HEADLINE] = add_headline,
		[BLOCK_COMPARE] = add_compare,
		[BLOCK_TIMELINE] = add_timeline,
		[BLOCK_CARDS] = add_cards,
		[BLOCK_TREND] = add_trend,
		[BLOCK_HOURS] = add_weeks,
	};
	if (b->kind == BLOCK_SENTENCES)
		add_said(out, r, b->sentences);
	else if (b->kind == BLOCK_TABLE)
		add_table(out, r, b);
	else
		pictures[b->kind](out, r);
}

/* The definitions of states, as in gua(1). */
static const struct {
	const char *word, *meaning;
} definitions[] = {
	{ "active", "the GPU's utilisation is at least the threshold named below" },
	{ "idle-held", "utilisation is below that, and processes hold memory: nobody else can "
		       "use it" },
	{ "truly-idle", "utilisation is below that, and no process holds memory" },
	{ "use unknown", "processes hold memory, and the driver reports no utilisation" },
	{ "unobserved", "there is no reading: it counts as none of the others" },
	{ "idle on busy GPU", "a user is idle on a GPU that somebody else keeps active" },
	{ "GPU-hours", "hours of one GPU, as measured" },
};

void report_html_title(struct str *out, const struct report *r)
{
	add_subject(out, r);
	str_addf(out, ", %s to %s", moment_text(r->a->since_ms, r->utc).text,
		moment_text(r->a->until_ms, r->utc).text);
}

void report_html_body(struct str *out, const struct report *r)
{
	struct report_section sections[REPORT_SECTIONS];
	size_t n = report_sections(r, sections);
	str_add(out, "<article class=\"report\">\n");
	if (!r->linked)
		html_patterns(out);
	str_add(out, "<header>\n");
	add_warnings(out, r, SENTENCE_SIMULATED);
	add_warnings(out, r, SENTENCE_SIMULATED_HOST);
	add_warnings(out, r, SENTENCE_IMPORTED);
	if (!r->linked) {
		str_add(out, "<h1>GPU usage audit: ");
		add_subject(out, r);
		str_add(out, "</h1>\n");
	}
	add_sentences(out, r, SENTENCE_COVERAGE);
	add_sentences(out, r, SENTENCE_CLIPPED);
	add_sentences(out, r, SENTENCE_RESTRICTED);
	str_add(out, "<ul class=\"hosts\">\n");
	for (size_t i = 0; i < r->a->n_hosts && r->n_listed == r->a->n_hosts; i++) {
		const struct audit_host *h = &r->a->hosts[i];
		html_addf(out, "<li>%s (%s, driver %s", h->hostname,
			*h->environment ? h->environment : "unknown",
			*h->driver ? h->driver : "unknown");
		struct brief since = moment_text(h->known_ms, r->utc);
		str_addf(out, ", %zu GPU%s%s%s)</li>\n", h->n_cards, h->n_cards == 1 ? "" : "s",
			h->late ? ", since " : "", h->late ? since.text : "");
	}
	str_add(out, "</ul>\n");
	add_warnings(out, r, SENTENCE_ABSENT);
	str_add(out, "</header>\n");
	for (size_t i = 0; i < n; i++) {
		const struct report_section *s = &sections[i];
		html_addf(out, "<section aria-labelledby=\"%s\">\n<h2 id=\"%s\">%s</h2>\n",
			s->id, s->id, s->page_title);
		for (size_t k = 0; k < s->n_blocks; k++)
			add_block(out, r, &s->blocks[k]);
		str_add(out, "</section>\n");
	}
	str_add(out, "<footer>\n<h2>What the words mean</h2>\n<dl>\n");
	for (size_t i = 0; i < sizeof(definitions) / sizeof(definitions[0]); i++)
		str_addf(out, "<dt>%s</dt><dd>%s</dd>\n", definitions[i].word,
			definitions[i].meaning);
	str_add(out, "</dl>\n");
	add_sentences(out, r, SENTENCE_RULES);
	add_sentences(out, r, SENTENCE_FLEET);
	str_add(out, "</footer>\n</article>\n");
	out->failed |= r->failed;
}

void report_html(struct str *out, const struct report *r)
{
	str_add(out,
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<meta name=\"color-scheme\" content=\"light dark\">\n<title>gua: ");
	report_html_title(out, r);
	str_add(out, "</title>\n<style>\n");
	html_style(out, STYLE_TOKENS, STYLE_REPORT);
	str_add(out, "</style>\n</head>\n<body>\n"
		     "<a class=\"skip\" href=\"#report\">Skip to the report</a>\n"
		     "<main id=\"report\">\n");
	report_html_body(out, r);
	str_add(out, "</main>\n</body>\n</html>\n");
}
