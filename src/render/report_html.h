/* The parts of the report as a page. Only for render/report_html*.c. */
#ifndef GUA_RENDER_REPORT_HTML_H
#define GUA_RENDER_REPORT_HTML_H

#include "render/report.h"

/* Appends <section> with its heading; ended by html_section_end(). */
void html_section(struct str *out, const char *id, const char *title);
void html_section_end(struct str *out);
/* Appends the sentences of a kind: labelled ones as a list of terms, others as paragraphs. */
void html_sentences(struct str *out, const struct report *r, enum sentence_kind kind);

/* The time line, if there is one. */
void html_timeline(struct str *out, const struct report *r);
/* The comparison, the trend, the hours of the week; each if there is one. */
void html_compare(struct str *out, const struct report *r);
void html_trend(struct str *out, const struct report *r);
void html_hours(struct str *out, const struct report *r);

#endif
