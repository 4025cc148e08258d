/* The part of the report for people that compares two windows: what rose, what fell. */
#include "render/report_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/timetext.h"
#include "model/process.h"

#define MS_PER_HOUR 3600e3
enum { LABEL = 20, NUMBER = 10, CHANGE = 16, USER = 14, USER_CHANGE = 11 };

/* Whether it is printed as 0. */
static bool is_same(double change, double step)
{
	return fabs(change) < step / 2;
}

/* An arrow for the direction; not by colour alone. */
static const char *arrow(double change, double step, bool ascii)
{
	if (is_same(change, step))
		return "=";
	if (ascii)
		return change > 0 ? "^" : "v";
	return change > 0 ? "▲" : "▼";
}

/* A change as it is printed. */
struct change {
	char text[32];
	double change, step; /* smaller than half a step is none */
	int better;	     /* as in struct report_change */
	int columns;	     /* width of the field */
};

/* Appends the change, right-aligned, in green if it is for the better and red if not. */
static void add_change(struct page *p, const struct change *c)
{
	const struct text_style *style = &p->style->text;
	char line[64];
	bool same = is_same(c->change, c->step);
	snprintf(line, sizeof(line), "%s%s%s", arrow(c->change, c->step, style->ascii),
		same ? "" : " ", same ? "" : c->text);
	int wide = (int)text_columns(line);
	str_addf(p->out, "%*s", wide < c->columns ? c->columns - wide : 0, "");
	if (c->better == 0 || same)
		str_add(p->out, line);
	else
		text_add_colored(p->out, line, c->change * c->better > 0 ? "32" : "31", style);
}

void compare_figure(char dst[32], const struct report_change *c, double number)
{
	if (isnan(number))
		snprintf(dst, 32, "-");
	else if (c->unit == FIGURE_SHARE)
		snprintf(dst, 32, "%.1f%%", 100 * number);
	else
		snprintf(dst, 32, "%.2f", number);
}

/* A change in percent of what was before: "+12.3%", or without percent where that says
 * little. */
static void show_percent(char dst[32], const struct report_difference *d)
{
	if (isnan(d->percent))
		snprintf(dst, 32, "%s", d->change != 0 ? "new" : "");
	else if (d->percent <= -100)
		snprintf(dst, 32, "gone");
	else if (d->percent >= 1000)
		snprintf(dst, 32, "x %.0f", 1 + d->percent / 100);
	else
		snprintf(dst, 32, "%+.1f%%", d->percent);
}

/* What changed, with its sign. */
static struct change change_of(const struct report_change *c)
{
	bool share = c->unit == FIGURE_SHARE;
	double difference = c->shown.change;
	struct change change = { .change = difference,
		.step = share ? 0.001 : 0.01,
		.better = c->better,
		.columns = CHANGE };
	if (share)
		snprintf(change.text, sizeof(change.text), "%+.1f points", 100 * difference);
	else if (c->unit == FIGURE_GPUS)
		snprintf(change.text, sizeof(change.text), "%+.2f", difference);
	else
		show_percent(change.text, &c->exact);
	return change;
}

void compare_change(char *dst, size_t cap, const struct report_change *c)
{
	struct change change = change_of(c);
	bool same = is_same(change.change, change.step);
	if (isnan(change.change))
		text_copy(dst, cap, "-");
	else
		snprintf(dst, cap, "%s%s%s", arrow(change.change, change.step, false),
			same ? "" : " ", same ? "" : change.text);
}

static void add_figure(struct page *p, const struct report_change *c)
{
	char now[32], before[32];
	struct change change = change_of(c);
	compare_figure(now, c, c->shown_now);
	compare_figure(before, c, c->shown_before);
	str_addf(p->out, "  %-*s  %*s  %*s", LABEL, c->label, NUMBER, now, NUMBER, before);
	if (!isnan(change.change))
		add_change(p, &change);
	str_add(p->out, "\n");
}

static void add_hours(struct page *p, int64_t now_ms, int64_t before_ms,
	const struct report_difference *d, int better)
{
	struct change change = { .change = d->change,
		.step = MS_PER_HOUR / 100,
		.better = better,
		.columns = USER_CHANGE };
	show_percent(change.text, d);
	str_addf(p->out, "  %8.2f %8.2f", (double)now_ms / MS_PER_HOUR,
		(double)before_ms / MS_PER_HOUR);
	add_change(p, &change);
}

static void add_users(struct page *p)
{
	const struct report_compare *c = &p->r->compare;
	const struct text_style *style = &p->style->text;
	str_addf(p->out, "\n  %-*s  %8s %8s%*s  %8s %8s%*s\n", USER, "user", "held h", "before",
		USER_CHANGE, "change", "unused h", "before", USER_CHANGE, "change");
	for (size_t i = 0; i < c->n_users; i++) {
		const struct report_user_change *u = &c->users[i];
		str_add(p->out, "  ");
		size_t wide = text_add_cut(p->out, user_shown(u->identity), USER, style);
		str_add_repeat(p->out, " ", USER - wide);
		add_hours(p, u->held_ms, u->held_before_ms, &u->held, 0);
		add_hours(p, u->unused_ms, u->unused_before_ms, &u->unused, -1);
		while (p->out->len && p->out->data[p->out->len - 1] == ' ')
			p->out->len--;
		str_add(p->out, "\n");
	}
	if (c->n_left_out)
		str_addf(p->out, "  %zu more users: --top 0 shows all\n", c->n_left_out);
}

void page_compare(struct page *p)
{
	const struct report_compare *c = &p->r->compare;
	char since[48], until[48], title[128];
	if (!c->asked)
		return;
	moment_text(since, sizeof(since), c->since_ms, p->r->utc);
	moment_text(until, sizeof(until), c->until_ms, p->r->utc);
	snprintf(title, sizeof(title), "Compared with %s to %s", since, until);
	page_heading(p, title);
	if (!c->empty) {
		str_addf(p->out, "  %-*s  %*s  %*s%*s\n", LABEL, "", NUMBER, "now", NUMBER,
			"before", CHANGE, "change");
		for (size_t i = 0; i < c->n_figures; i++)
			if (!p->style->brief || c->figures[i].unit == FIGURE_SHARE)
				add_figure(p, &c->figures[i]);
		if (c->n_users && !p->style->brief)
			add_users(p);
	}
	page_sentences(p, SENTENCE_COMPARE);
}
