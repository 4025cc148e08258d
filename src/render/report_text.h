/* The parts of the text report, for its files alone. */
#ifndef GUA_RENDER_REPORT_TEXT_H
#define GUA_RENDER_REPORT_TEXT_H

#include "render/report.h"

/* A blank line and "§N TITLE". */
void report_heading(
	struct str *out, const struct text_style *style, int number, const char *title);
/* An indented line, wrapped; `label` (or NULL) stands in a column of its own. */
void report_line(struct str *out, const struct text_style *style, const char *label,
	const char *format, ...) __attribute__((format(printf, 4, 5)));

void report_cards_section(
	struct str *out, const struct audit *a, const struct report_style *style);
void report_holders_section(
	struct str *out, const struct audit *a, const struct report_style *style);
void report_heatmap_section(
	struct str *out, const struct audit *a, const struct text_style *style);

#endif
