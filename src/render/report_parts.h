/* The parts of the report for people. Only for render/report*.c. */
#ifndef GUA_RENDER_REPORT_PARTS_H
#define GUA_RENDER_REPORT_PARTS_H

#include "render/report.h"

/* A report while it is printed. */
struct page {
	struct str *out;
	const struct report *r;
	const struct report_style *style;
	int section; /* number of the last heading */
};

/* Appends a blank line and "§N TITLE", with the next number. */
void page_heading(struct page *p, const char *title);
/* Appends `n` cells of a bar, as the state looks there. */
void page_cells(struct page *p, int mark, size_t n);

/* Whether there is a sentence of that kind. */
bool report_says(const struct report *r, enum sentence_kind kind);
/* Appends the sentences of a kind as paragraphs, indented; a label has its own column. */
void page_sentences(struct page *p, enum sentence_kind kind);

/* A figure of a comparison as people read it, and how it changed: "▲ +1.5 points". */
void compare_figure(char dst[32], const struct report_change *c, double number);
void compare_change(char *dst, size_t cap, const struct report_change *c);
/* The comparison, if there is one. */
void page_compare(struct page *p);
/* The trend, if there is more than one period; the hours of the week. */
void page_trend(struct page *p);
void page_hours(struct page *p);

#endif
