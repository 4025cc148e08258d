/* The time line on the report's page: a row for each card, a legend, and the numbers. */
#include "render/report_html.h"

#include "render/html.h"
#include "render/timeline.h"

/* A lane in pixels: marks are above the columns. The width is that of the page, so shapes are
 * in units that are stretched; patterns are not, since they fill a rectangle that is cut to the
 * shape. */
enum { MARKS_TALL = 9, COLUMNS_TALL = 26, UNITS_WIDE = 2000, UNITS_TALL = 100 };
static const struct box units = { 0, 0, UNITS_WIDE, UNITS_TALL };

static void add_stretched(
	struct str *out, const struct report_timeline *t, size_t lane, size_t n)
{
	str_addf(out,
		"<svg y=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
		"preserveAspectRatio=\"none\">"
		"<path class=\"%s\" d=\"",
		MARKS_TALL, COLUMNS_TALL, UNITS_WIDE, UNITS_TALL,
		card_state_names[states_upwards[n - 1]]);
	timeline_shape(out, t, &t->lanes[lane], n, units);
	str_add(out, "\"/></svg>");
}

static void add_pattern(struct str *out, const struct report_timeline *t, size_t lane, size_t n)
{
	str_addf(out,
		"<clipPath id=\"cut-%zu-%zu\" clipPathUnits=\"objectBoundingBox\">"
		"<path transform=\"scale(%g %g)\" d=\"",
		lane, n, 1.0 / UNITS_WIDE, 1.0 / UNITS_TALL);
	timeline_shape(out, t, &t->lanes[lane], n, units);
	str_addf(out,
		"\"/></clipPath><rect class=\"%s\" y=\"%d\" width=\"100%%\" height=\"%d\" "
		"clip-path=\"url(#cut-%zu-%zu)\"/>",
		card_state_names[states_upwards[n - 1]], MARKS_TALL, COLUMNS_TALL, lane, n);
}

static void add_states(struct str *out, const struct report_timeline *t, size_t lane)
{
	for (size_t n = CARD_STATES; n > 0; n--) {
		enum card_state state = states_upwards[n - 1];
		if (!timeline_has(t, &t->lanes[lane], n - 1))
			continue;
		if (state == CARD_IDLE_HELD || state == CARD_UNOBSERVED)
			add_pattern(out, t, lane, n);
		else
			add_stretched(out, t, lane, n);
	}
	str_addf(out, "<rect class=\"edge\" y=\"%d\" width=\"100%%\" height=\"%d\"/>",
		MARKS_TALL, COLUMNS_TALL);
}

/* The marks of a lane; `at` is the first that is not drawn yet. */
static void add_marks(struct str *out, const struct report_timeline *t, size_t lane, size_t *at)
{
	while (*at < t->n_marks && t->marks[*at].lane == lane) {
		size_t n = timeline_cluster(t, *at);
		str_addf(
			out, "<svg x=\"%.2f%%\" overflow=\"visible\">", 100 * t->marks[*at].at);
		if (t->lanes[lane].share)
			str_addf(out, "<line class=\"mark\" y1=\"%d\" y2=\"%d\"/>", MARKS_TALL,
				MARKS_TALL + COLUMNS_TALL);
		for (size_t i = 0; i < n; i++) {
			const struct report_mark *m = &t->marks[*at + i];
			str_addf(out, "<use class=\"mark\" href=\"#mark-%s\" x=\"%zu\"><title>",
				mark_shape_names[mark_shape_of(m->kind)], 9 * i);
			html_text(out, m->text);
			str_add(out, "</title></use>");
		}
		str_add(out, "</svg>");
		*at += n;
	}
}

/* The name of a lane; on a server, it leads to the page of the card. */
static void add_name(struct str *out, const struct report *r, const struct report_lane *lane)
{
	bool link = r->linked && lane->uuid;
	if (link) {
		str_add(out, "<a href=\"/card/");
		html_url(out, lane->uuid);
		str_add(out, "\">");
	}
	html_text(out, lane->label);
	str_add(out, link ? "</a>" : "");
}

static void add_lane(struct str *out, const struct report *r, size_t lane, size_t *at)
{
	const struct report_timeline *t = &r->timeline;
	const struct report_lane *l = &t->lanes[lane];
	if (l->heading) {
		str_add(out, "<tr><th class=\"of\" scope=\"rowgroup\" colspan=\"2\">");
		html_text(out, l->heading);
		str_add(out, "</th></tr>\n");
	}
	str_add(out, "<tr><th scope=\"row\">");
	add_name(out, r, l);
	str_addf(out,
		"</th><td><svg class=\"lane%s\" role=\"img\" aria-labelledby=\"lane-%zu "
		"about-%zu\"><title id=\"lane-%zu\">",
		l->share ? "" : " low", lane, lane, lane);
	html_text(out, l->name);
	str_addf(out, "</title><desc id=\"about-%zu\">", lane);
	html_text(out, l->text);
	str_add(out, "</desc>");
	if (l->share)
		add_states(out, t, lane);
	add_marks(out, t, lane, at);
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

/* What the colours and the shapes mean, from the ground up. */
static void add_legend(struct str *out, const struct report *r)
{
	const struct report_timeline *t = &r->timeline;
	bool used[MARK_SHAPES] = { false };
	str_add(out, "<ul class=\"legend\">\n");
	for (size_t n = 0; n < CARD_STATES; n++)
		if (t->states[states_upwards[n]])
			str_addf(out,
				"<li><svg class=\"key\" viewBox=\"0 0 12 12\" "
				"aria-hidden=\"true\">"
				"<rect class=\"%s\" width=\"12\" "
				"height=\"12\"/></svg>%s</li>\n",
				card_state_names[states_upwards[n]],
				t->words[states_upwards[n]]);
	for (size_t i = 0; i < t->n_marks; i++)
		used[mark_shape_of(t->marks[i].kind)] = true;
	for (int i = 0; i < MARK_SHAPES; i++)
		if (used[i])
			str_addf(out,
				"<li><svg class=\"sign\" viewBox=\"-4 0 8 8\" "
				"aria-hidden=\"true\">"
				"<use class=\"mark\" href=\"#mark-%s\"/></svg>%s</li>\n",
				mark_shape_names[i], mark_shape_words[i]);
	str_add(out, "</ul>\n");
}

/* What happened in a column. */
static void add_happened(struct str *out, const struct report_timeline *t, size_t column)
{
	bool some = false;
	str_add(out, "<td>");
	for (size_t i = 0; i < t->n_marks; i++) {
		const struct report_mark *m = &t->marks[i];
		if (m->column != column || m->lane >= timeline_shown(t))
			continue;
		str_add(out, some ? "; " : "");
		html_text(out, t->lanes[m->lane].name);
		str_add(out, ": ");
		html_text(out, m->label);
		some = true;
	}
	str_add(out, "</td>");
}

static void add_numbers_row(struct str *out, const struct report_timeline *t, size_t column)
{
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
	if (t->n_marks)
		add_happened(out, t, column);
	str_add(out, "</tr>\n");
}

/* The same as a table. */
static void add_numbers(struct str *out, const struct report *r)
{
	const struct report_timeline *t = &r->timeline;
	str_addf(out,
		"<details><summary>The numbers</summary>\n<div class=\"wide\" tabindex=\"0\" "
		"role=\"region\" aria-label=\"Numbers of the time "
		"line\"><table>\n<caption>Percent "
		"%s / percent %s of each GPU&#39;s time; gua report --format csv --table "
		"timeline "
		"has the seconds</caption>\n<thead><tr><th scope=\"col\">from</th>",
		t->words[CARD_ACTIVE], t->words[CARD_IDLE_HELD]);
	for (size_t i = 0; i < timeline_shown(t); i++) {
		if (!t->lanes[i].share)
			continue;
		str_add(out, "<th scope=\"col\" class=\"n\">");
		html_text(out, t->lanes[i].name);
		str_add(out, "</th>");
	}
	str_addf(out, "%s</tr></thead>\n<tbody>\n",
		t->n_marks ? "<th scope=\"col\">events</th>" : "");
	for (size_t i = 0; i < t->n; i++)
		add_numbers_row(out, t, i);
	str_add(out, "</tbody></table></div></details>\n");
}

void html_timeline(struct str *out, const struct report *r)
{
	const struct report_timeline *t = &r->timeline;
	size_t at = 0;
	if (!t->n_lanes && !t->too_many)
		return;
	html_section(out, "timeline", r->utc ? "Time line (UTC)" : "Time line");
	if (t->too_many) {
		str_add(out, "<p>There are too many GPUs for a time line: --host, --card or "
			     "--model choose some.</p>\n");
		html_section_end(out);
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
		"scope=\"col\"><span "
		"class=\"hidden\">time</span></th></tr></thead>\n<tbody>\n",
		r->of_users ? "The time that they held each GPU" : "What each GPU did",
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
	add_numbers(out, r);
	html_section_end(out);
}
