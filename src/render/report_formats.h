/* The report in its formats: each prints the same struct report. */
#pragma once

#include "report/report.h"
#include "render/text.h"

struct report_style {
	struct text_style text;
	size_t bar_cells; /* width of the bar */
	/* A short version: without the cards, the trend and the map of active hours; of a
	 * comparison only the shares. */
	bool brief;
};

/* For people. */
void report_text(struct str *out, const struct report *r, const struct report_style *style);
/* For people, as one page of HTML that needs no other file. */
void report_html(struct str *out, const struct report *r);
/* The same for a page with its own frame and stylesheet (html_style): a title, and the content
 * of <main>. No script, no style attributes. */
void report_html_body(struct str *out, const struct report *r);
void report_html_title(struct str *out, const struct report *r);
/* The headline and the time line alone, as one SVG. */
void report_svg(struct str *out, const struct report *r);
/* For mail: the report, or with r->person that part, in at most 25 lines of plain text of 72
 * columns. */
void report_digest(struct str *out, const struct report *r, const struct text_style *style);
/* For programs: JSON as man/report.schema.json describes it; one of the tables as CSV. */
enum report_table {
	REPORT_TABLE_BY, /* the breakdown, or the cards */
	REPORT_TABLE_BILL,
	REPORT_TABLE_TREND,
	REPORT_TABLE_EVENTS,
	REPORT_TABLE_LONGEST,
	REPORT_TABLE_COMPARE, /* the figures; a report without comparison has none */
	REPORT_TABLE_COMPARE_USERS,
	REPORT_TABLE_TIMELINE,
	REPORT_TABLES,
};
/* Their names, in that order. */
#define REPORT_TABLE_CHOICES "by|bill|trend|events|longest|compare|compare-users|timeline"
/* The table of that name; the usual one for NULL. */
enum report_table report_csv_table(const char *name);
/* The word for a state of cards or, in a report about users, of their time: idle-held then
 * means unused on any card. Of active, idle-held and unobserved time only. */
const char *report_text_state(const struct report *r, enum card_state state);
/* A share in percent, or another figure; "-" if it is not known. */
struct brief report_text_number(double number, bool share);
/* How a figure of a comparison changed: "▲ +1.5 points". */
struct brief report_text_change(const struct report_change *c);
/* A change in percent of the earlier value: "+12.3%"; without a percentage where it would mean
 * little: "new", "gone". */
struct brief report_text_percent(const struct report_difference *d);
void report_json(struct str *out, const struct report *r);
void report_csv(struct str *out, const struct report *r, enum report_table table);
