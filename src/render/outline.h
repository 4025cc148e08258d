/* An outline: nested groups of named values, printed as indented text, as JSON or as CSV. A
 * value has one name for people and one for programs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "render/json.h"

enum outline_kind { OUTLINE_OPEN, OUTLINE_CLOSE, OUTLINE_REAL, OUTLINE_COUNT, OUTLINE_TEXT };

struct outline_item {
	enum outline_kind kind;
	const char *key, *label; /* constant texts */
	double number;		 /* NAN: unknown */
	const char *text;	 /* OUTLINE_TEXT: borrowed until the outline is printed */
};

struct outline {
	struct outline_item *items;
	size_t n, cap;
	bool failed;		/* out of memory */
	const char *replace[2]; /* a word in names and its other spelling, or NULL */
};

void outline_open(struct outline *o, const char *key, const char *label);
void outline_close(struct outline *o);
void outline_real(struct outline *o, const char *key, const char *label, double number);
/* Adds a whole number; -1 is unknown. */
void outline_count(struct outline *o, const char *key, const char *label, int64_t number);
void outline_text(struct outline *o, const char *key, const char *label, const char *text);
void outline_finish(struct outline *o);

/* Appends "Label: value" lines, indented by three spaces per level; reals have up to three
 * decimals. */
void outline_print_text(struct str *out, const struct outline *o);
/* Adds the values to the open object. */
void outline_print_json(struct json *j, const struct outline *o);
/* Appends "path.to.key,value" lines. */
void outline_print_csv(struct str *out, const struct outline *o);
