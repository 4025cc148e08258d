/* Sub-tracking results as text and JSON. */
#ifndef GUA_RENDER_SUBTRACK_H
#define GUA_RENDER_SUBTRACK_H

#include "base/str.h"
#include "query/subtrack.h"

void subtrack_text(struct str *out, const struct subtrack *s);
/* Appends one JSON document; missing values are null. It is the input of a comparison. */
void subtrack_json(struct str *out, const struct subtrack *s);

#endif
