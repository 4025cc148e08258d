/* Sub-tracking results and their comparisons as text and JSON. */
#ifndef GUA_SUBTRACK_SUBTRACK_PRINT_H
#define GUA_SUBTRACK_SUBTRACK_PRINT_H

#include <jansson.h>

#include "base/str.h"
#include "subtrack/subtrack.h"

void subtrack_text(struct str *out, const struct subtrack *s);
/* Appends one JSON document; missing values are null. It is the input of a comparison. */
void subtrack_json(struct str *out, const struct subtrack *s);

/* The result of subtrack_compare(). The text is gpu-tracker's. */
void subtrack_comparison_text(struct str *out, const json_t *comparison);
void subtrack_comparison_json(struct str *out, const json_t *comparison);

#endif
