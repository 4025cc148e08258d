/* The stylesheet of pages, in parts that a program joins: the colours, spacing and type; what
 * states are drawn with; what every page shares; the parts of a report. Each part needs the
 * ones before it. */
#ifndef GUA_RENDER_STYLE_H
#define GUA_RENDER_STYLE_H

#include "base/str.h"

enum style_part { STYLE_TOKENS, STYLE_STATES, STYLE_PAGE, STYLE_REPORT, STYLE_PARTS };

/* Appends the parts from `first` to `last`. */
void style_add(struct str *out, enum style_part first, enum style_part last);

#endif
