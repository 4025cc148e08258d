/* The parts of the report's page about when and how it changed: comparison, trend, hours of the
 * week. */
#include "render/report_html.h"

#include <math.h>
#include <stdio.h>

#include "base/timetext.h"
#include "model/process.h"
#include "render/html.h"
#include "render/report_parts.h"
#include "render/timeline.h"

static void add_figure(struct str *out, const struct report_change *c)
{
	char now[32], before[32], change[64];
	compare_figure(now, c, c->shown_now);
	compare_figure(before, c, c->shown_before);
	compare_change(change, sizeof(change), c);
	str_addf(out,
		"<tr><th scope=\"row\">%s</th><td class=\"n\">%s</td><td class=\"n\">%s</td>"
		"<td class=\"n\">%s</td></tr>\n",
		c->label, now, before, change);
}

static void add_user(struct str *out, const struct report_user_change *u)
{
	const int64_t ms[] = { u->held_ms, u->held_before_ms, u->unused_ms,
		u->unused_before_ms };
	str_add(out, "<tr><th scope=\"row\">");
	html_text(out, user_shown(u->identity));
	str_add(out, "</th>");
	for (size_t i = 0; i < sizeof(ms) / sizeof(ms[0]); i++)
		str_addf(out, "<td class=\"n\">%.2f</td>", (double)ms[i] / 3600e3);
	str_add(out, "</tr>\n");
}

static void add_head(struct str *out, const char *caption, const char *const *titles, size_t n)
{
	str_addf(out, "<table>\n<caption>%s</caption>\n<thead><tr>", caption);
	for (size_t i = 0; i < n; i++)
		str_addf(
			out, "<th scope=\"col\"%s>%s</th>", i ? " class=\"n\"" : "", titles[i]);
	str_add(out, "</tr></thead>\n<tbody>\n");
}

void html_compare(struct str *out, const struct report *r)
{
	static const char *const figures[] = { "figure", "now", "before", "change" };
	static const char *const users[] = { "user", "held h", "before", "unused h", "before" };
	const struct report_compare *c = &r->compare;
	char since[48], until[48], title[128];
	if (!c->asked)
		return;
	moment_text(since, sizeof(since), c->since_ms, r->utc);
	moment_text(until, sizeof(until), c->until_ms, r->utc);
	snprintf(title, sizeof(title), "Compared with %s to %s", since, until);
	html_section(out, "compare", title);
	str_add(out, "<div class=\"pair\">\n");
	if (!c->empty) {
		add_head(out, "Both windows", figures, 4);
		for (size_t i = 0; i < c->n_figures; i++)
			add_figure(out, &c->figures[i]);
		str_add(out, "</tbody></table>\n");
	}
	if (!c->empty && c->n_users) {
		add_head(out, "Users in both windows, in GPU-hours", users, 5);
		for (size_t i = 0; i < c->n_users; i++)
			add_user(out, &c->users[i]);
		str_add(out, "</tbody></table>\n");
	}
	str_add(out, "</div>\n");
	html_sentences(out, r, SENTENCE_COMPARE);
	html_section_end(out);
}

/* The words for active and idle-held time; of users, used and unused, on any card. */
static const char *active_word(const struct report *r)
{
	return r->of_users ? "used" : "active";
}

static const char *idle_word(const struct report *r)
{
	return r->of_users ? "unused" : "idle-held";
}

/* What shares are of. */
static const char *whole_word(const struct report *r)
{
	return r->of_users ? "the time held" : "observed time";
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

/* Draws period i. Of users, the cards' unobserved time is not a part of the column. */
static void add_period(struct str *out, const struct report *r, size_t i, double step)
{
	enum { TALL = 120 };
	const struct report_period *p = &r->trend.periods[i];
	size_t n = CARD_STATES - r->of_users;
	double all = 0, y = TALL, x = (double)i * step, wide = step * 0.85; /* x in percent */
	for (size_t k = 0; k < n; k++)
		all += (double)p->ms[states_upwards[k]];
	add_zoom(out, r, p);
	str_addf(out, "<g><title>%s: ", p->name);
	if (isnan(p->share[CARD_ACTIVE]))
		str_add(out, r->of_users ? "nothing held" : "no reading");
	else
		str_addf(out, "%s %.1f %%, %s %.1f %%, unobserved %.1f %%", active_word(r),
			100 * p->share[CARD_ACTIVE], idle_word(r),
			100 * p->share[CARD_IDLE_HELD], 100 * p->share[CARD_UNOBSERVED]);
	str_add(out, "</title>");
	for (size_t k = 0; all > 0 && k < n; k++) {
		double tall = TALL * (double)p->ms[states_upwards[k]] / all;
		y -= tall;
		if (tall > 0)
			str_addf(out,
				"<rect class=\"%s\" x=\"%.2f%%\" y=\"%.1f\" width=\"%.2f%%\" "
				"height=\"%.1f\"/>",
				card_state_names[states_upwards[k]], x, y, wide, tall);
	}
	if (all > 0)
		str_addf(out,
			"<rect class=\"edge\" x=\"%.2f%%\" width=\"%.2f%%\" height=\"%d\"/>", x,
			wide, TALL);
	str_add(out, r->linked ? "</g></a>\n" : "</g>\n");
}

void html_trend(struct str *out, const struct report *r)
{
	static const char *const units[] = { [PERIOD_DAY] = "day",
		[PERIOD_WEEK] = "week",
		[PERIOD_MONTH] = "month",
		[PERIOD_YEAR] = "year" };
	const struct report_trend *t = &r->trend;
	char title[64];
	if (t->n < 2 || (r->of_users && !r->held_ms))
		return;
	snprintf(title, sizeof(title), "Trend, by %s", units[t->unit]);
	html_section(out, "trend", title);
	double step = 100.0 / ((double)t->n - 0.15); /* the last one ends at the edge */
	str_addf(out,
		"<svg class=\"trend\" role=\"%s\" "
		"aria-labelledby=\"trend-is trend-has\"><title id=\"trend-is\">How %s divides, "
		"by "
		"%s</title><desc id=\"trend-has\">The table below has the numbers.</desc>\n",
		r->linked ? "group" : "img", /* a picture would hide its links */
		r->of_users ? "the time held" : "the GPUs&#39; time", units[t->unit]);
	for (size_t i = 0; i < t->n; i++)
		add_period(out, r, i, step);
	str_addf(out, "<text x=\"0\" y=\"136\">%s</text>", t->periods[0].name);
	str_addf(out, "<text x=\"100%%\" y=\"136\" text-anchor=\"end\">%s</text></svg>\n",
		t->periods[t->n - 1].name);
	str_add(out, "<details><summary>The numbers</summary>\n");
	const char *const titles[] = { "period", active_word(r), idle_word(r), "unobserved" };
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
			if (isnan(p->share[shown[k]]))
				str_add(out, "<td class=\"n\">-</td>");
			else
				str_addf(out, "<td class=\"n\">%.1f%%</td>",
					100 * p->share[shown[k]]);
		str_add(out, "</tr>\n");
	}
	str_add(out, "</tbody></table></details>\n");
	html_section_end(out);
}

static const char *const days[] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };

/* One hour: the darker, the larger the share; its number is in the title. */
static void add_hour(struct str *out, const struct report_hour *h, enum card_state state,
	const char *day, int hour)
{
	str_add(out, "<td");
	if (h->observed)
		str_addf(out, " class=\"%s h%.0f\" title=\"%s %02d:00, %.0f %%\">%.0f",
			card_state_names[state], floor(h->share[state] * 9.999), day, hour,
			100 * h->share[state], 100 * h->share[state]);
	else
		str_add(out, " class=\"none\">");
	str_add(out, "</td>");
}

static void add_week(struct str *out, const struct report *r, enum card_state state)
{
	const char *word = state == CARD_ACTIVE ? active_word(r) : idle_word(r);
	str_addf(out,
		"<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Hours of the "
		"week, %s\"><table class=\"week\">\n<caption>%s, percent of "
		"%s</caption>\n<thead><tr><td></td>",
		word, word, whole_word(r));
	for (int hour = 0; hour < 24; hour++)
		str_addf(out, "<th scope=\"col\">%02d</th>", hour);
	str_add(out, "</tr></thead>\n<tbody>\n");
	for (int i = 1; i <= 7; i++) { /* Monday first */
		str_addf(out, "<tr><th scope=\"row\">%s</th>", days[i % 7]);
		for (int hour = 0; hour < 24; hour++)
			add_hour(out, &r->hours[i % 7][hour], state, days[i % 7], hour);
		str_add(out, "</tr>\n");
	}
	str_add(out, "</tbody></table></div>\n");
}

void html_hours(struct str *out, const struct report *r)
{
	if (!r->has_hours)
		return;
	html_section(out, "hours", r->utc ? "Hours of the week (UTC)" : "Hours of the week");
	str_add(out, "<div class=\"pair\">\n");
	add_week(out, r, CARD_ACTIVE);
	add_week(out, r, CARD_IDLE_HELD);
	str_add(out, "</div>\n");
	html_section_end(out);
}
