/* The findings of `gua doctor`: each row names what was checked, the result, and what to do
 * about it. Each source adds the findings about itself. */
#pragma once

#include "base/base.h"

enum finding_result { FINDING_OK, FINDING_WARNING, FINDING_PROBLEM };

struct finding {
	char check[32]; /* what was checked: "module", "card 0" ... */
	enum finding_result result;
	char text[640];	  /* what was found */
	char advice[320]; /* what to do about it, or "" */
};

enum { FINDINGS_MAX = 256 };

struct findings {
	struct finding rows[FINDINGS_MAX];
	size_t n;
	size_t count[3]; /* by result */
};

/* Adds a finding and returns it, so that the caller can add advice. */
struct finding *finding_add(struct findings *f, enum finding_result result, const char *check,
	const char *format, ...) __attribute__((format(printf, 4, 5)));
void finding_advise(struct finding *row, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
