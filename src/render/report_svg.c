/* The headline and the time line of a report as one picture, for a README or a slide. */
#include "render/html.h"
#include "render/report_formats.h"
#include "render/timeline.h"

/* Sizes, in units of the picture. */
enum {
	WIDE = 960,
	MARGIN = 24,
	INNER = WIDE - 2 * MARGIN,
	BAR_TALL = 32,
	LABEL_WIDE = 84, /* of lanes */
	LANE_TALL = 24,
	LANE_STEP = 36,
	HOST_STEP = 14,
	LABEL_CHARS = 11,
	TEXT_CHARS = 110,
};

static const char style[] = "text { fill: var(--ink); font: 13px var(--font); }\n"
			    ".title { font-size: 18px; font-weight: 600; }\n"
			    ".host { font-weight: 600; }\n"
			    ".dim { fill: var(--dim); }\n"
			    ".warn { fill: var(--warn); font-weight: 600; }\n"
			    ".axis { fill: var(--dim); font-size: 11px; }\n"
			    ".tick { stroke: var(--edge); }\n";

/* A picture while it is drawn. */
struct picture {
	struct str *out;
	const struct report *r;
	int y; /* where the next part begins */
};

/* Appends the rest of a text element, with at most this many characters. */
static void add_cut(struct str *out, const char *text, size_t columns)
{
	struct str cut = { 0 };
	text_add_cut(&cut, text, columns, &(struct text_style){ 0 });
	html_addf(out, "%s</text>\n", str_text(&cut));
	out->failed |= cut.failed;
	str_finish(&cut);
}

/* Appends text at the left, and moves down. */
static void add_line(struct picture *p, const char *class, int tall, const char *text)
{
	str_addf(p->out, "<text class=\"%s\" x=\"%d\" y=\"%d\">", class, MARGIN,
		p->y + tall * 3 / 4);
	add_cut(p->out, text, TEXT_CHARS);
	p->y += tall;
}

static void add_sentences(struct picture *p, enum sentence_kind kind, const char *class)
{
	const struct sentence *s;
	for (size_t i = 0; (s = report_next_sentence(p->r, kind, &i));)
		add_line(p, class, 20, s->text);
}

static void add_key(struct picture *p, int x, const char *class)
{
	str_addf(p->out,
		"<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"12\" height=\"12\"/>"
		"<rect class=\"edge\" x=\"%d\" y=\"%d\" width=\"12\" height=\"12\"/>",
		class, x, p->y, x, p->y);
}

static void add_headline(struct picture *p)
{
	double at = MARGIN;
	int x = MARGIN;
	p->y += 6;
	for (size_t i = 0; i < p->r->n_states; i++) {
		const struct report_state *s = &p->r->states[i];
		double wide = INNER * s->shown;
		if (wide > 0)
			str_addf(p->out,
				"<rect class=\"%s\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" "
				"height=\"%d\"/>\n",
				state_looks[s->look].key, at, p->y, wide, BAR_TALL);
		at += wide;
	}
	str_addf(p->out,
		"<rect class=\"edge\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", MARGIN,
		p->y, INNER, BAR_TALL);
	p->y += BAR_TALL + 10;
	for (size_t i = 0; i < p->r->n_states; i++) {
		const struct report_state *s = &p->r->states[i];
		char text[96];
		snprintf(text, sizeof(text), "%s %.1f%%", s->label, 100 * s->shown);
		add_key(p, x, state_looks[s->look].key);
		str_addf(
			p->out, "<text x=\"%d\" y=\"%d\">%s</text>\n", x + 18, p->y + 11, text);
		x += 18 + 8 * (int)strlen(text) + 16;
	}
	p->y += 28;
}

static void add_states(struct picture *p, const struct report_lane *lane)
{
	const struct report_timeline *t = &p->r->timeline;
	const struct box box = { MARGIN + LABEL_WIDE, p->y + 9, INNER - LABEL_WIDE, LANE_TALL };
	for (size_t n = CARD_STATES; n > 0; n--) {
		if (!timeline_has(t, lane, n - 1))
			continue;
		str_addf(
			p->out, "<path class=\"%s\" d=\"", state_looks[state_order[n - 1]].key);
		timeline_shape(p->out, t, lane, n, box);
		str_add(p->out, "\"/>");
	}
	str_addf(p->out,
		"<rect class=\"edge\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", box.x,
		box.y, box.width, box.height);
}

/* The marks of a lane; `at` is the first that is not drawn yet. */
static void add_marks(struct picture *p, size_t lane, size_t *at)
{
	const struct report_timeline *t = &p->r->timeline;
	while (*at < t->n_marks && t->marks[*at].lane == lane) {
		size_t n = timeline_cluster(t, *at);
		double x = MARGIN + LABEL_WIDE + (INNER - LABEL_WIDE) * t->marks[*at].at;
		for (size_t i = 0; i < n; i++) {
			const struct report_mark *m = &t->marks[*at + i];
			html_addf(p->out,
				"<use class=\"mark\" href=\"#mark-%s\" x=\"%.1f\" y=\"%d\">"
				"<title>%s</title></use>",
				mark_shape_names[timeline_shape_of(m->kind)], x + 9 * (double)i,
				p->y, m->text);
		}
		*at += n;
	}
}

/* Explains what the headline does not: other states, and the marks. */
static void add_legend(struct picture *p)
{
	const struct report_timeline *t = &p->r->timeline;
	bool used[MARK_SHAPES] = { false };
	int x = MARGIN + LABEL_WIDE;
	if (t->states[CARD_UNOBSERVED]) {
		add_key(p, x, "unobserved");
		str_addf(p->out, "<text class=\"axis\" x=\"%d\" y=\"%d\">unobserved</text>\n",
			x + 18, p->y + 10);
		x += 100;
	}
	for (size_t i = 0; i < t->n_marks; i++)
		used[timeline_shape_of(t->marks[i].kind)] = true;
	for (int i = 0; i < MARK_SHAPES; i++) {
		if (!used[i])
			continue;
		str_addf(p->out,
			"<use class=\"mark\" href=\"#mark-%s\" x=\"%d\" y=\"%d\"/>"
			"<text class=\"axis\" x=\"%d\" y=\"%d\">%s</text>\n",
			mark_shape_names[i], x + 4, p->y + 2, x + 14, p->y + 10,
			mark_shape_words[i]);
		x += 30 + 6 * (int)strlen(mark_shape_words[i]);
	}
	p->y += 18;
}

static void add_timeline(struct picture *p)
{
	const struct report_timeline *t = &p->r->timeline;
	size_t at = 0;
	for (size_t i = 0; i < timeline_shown(t); i++) {
		const struct report_lane *lane = &t->lanes[i];
		bool card = lane->share != NULL;
		if (lane->heading) {
			p->y += 6;
			add_line(p, "host", 18, lane->heading);
		}
		html_addf(p->out, "<g><title>%s</title><desc>%s</desc>\n", lane->name,
			lane->text);
		str_addf(p->out, "<text x=\"%d\" y=\"%d\">", MARGIN, p->y + (card ? 26 : 9));
		add_cut(p->out, lane->label, LABEL_CHARS);
		if (card)
			add_states(p, lane);
		add_marks(p, i, &at);
		str_add(p->out, "</g>\n");
		p->y += card ? LANE_STEP : HOST_STEP;
	}
	if (timeline_shown(t) < t->n_lanes) {
		char more[96];
		snprintf(more, sizeof(more), TIMELINE_MORE, t->n_lanes - timeline_shown(t));
		add_line(p, "dim", 24, more);
	}
	if (t->n_lanes) {
		for (size_t i = 0; i < t->n_ticks; i++) {
			double x = MARGIN + LABEL_WIDE + (INNER - LABEL_WIDE) * t->ticks[i].at;
			str_addf(p->out,
				"<line class=\"tick\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" "
				"y2=\"%d\"/><text class=\"axis\" x=\"%.1f\" y=\"%d\" "
				"text-anchor=\"%s\">%s</text>\n",
				x, x, p->y, p->y + 4, x, p->y + 16,
				t->ticks[i].at < 0.04	? "start"
				: t->ticks[i].at > 0.96 ? "end"
							: "middle",
				t->ticks[i].label);
		}
		p->y += 24;
		add_legend(p);
	}
}

void report_svg(struct str *out, const struct report *r)
{
	struct str body = { 0 };
	struct picture p = { .out = &body, .r = r, .y = MARGIN };
	struct str title = { 0 };
	add_sentences(&p, SENTENCE_SIMULATED, "warn");
	add_sentences(&p, SENTENCE_SIMULATED_HOST, "warn");
	str_add(&title, "GPU usage audit: ");
	if (r->a->n_hosts == 1)
		str_add(&title, r->a->hosts[0].hostname);
	else
		str_addf(&title, "%zu hosts", r->a->n_hosts);
	add_line(&p, "title", 28, str_text(&title));
	body.failed |= title.failed;
	str_finish(&title);
	add_sentences(&p, SENTENCE_COVERAGE, "dim");
	add_sentences(&p, SENTENCE_CLIPPED, "dim");
	add_sentences(&p, SENTENCE_RESTRICTED, "dim");
	if (r->n_states)
		add_headline(&p);
	else
		add_sentences(&p, SENTENCE_OBSERVED, "dim");
	add_timeline(&p);
	str_addf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
		"height=\"%d\" role=\"img\" aria-labelledby=\"title parts\">\n<title "
		"id=\"title\">GPU usage audit: ",
		WIDE, p.y + MARGIN, WIDE, p.y + MARGIN);
	report_html_title(out, r);
	str_add(out, "</title>\n<desc id=\"parts\">");
	for (size_t i = 0; i < r->n_states; i++)
		str_addf(out, "%s%s %.1f%%", i ? ", " : "", r->states[i].label,
			100 * r->states[i].shown);
	str_add(out, "</desc>\n<style>\n");
	html_style(out, STYLE_TOKENS, STYLE_STATES);
	str_addf(out, "%s</style>\n<defs>", style);
	html_pattern_defs(out);
	timeline_shapes(out);
	str_addf(out, "</defs>\n<rect class=\"paper\" width=\"%d\" height=\"%d\"/>\n%s</svg>\n",
		WIDE, p.y + MARGIN, str_text(&body));
	out->failed |= body.failed || r->failed;
	str_finish(&body);
}
