/* The findings of `gua doctor`: each looks at one thing, changes nothing, and says what to do.
 */
#ifndef GUA_CMD_DOCTOR_H
#define GUA_CMD_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "source/source.h"

enum finding_result { FINDING_OK, FINDING_WARNING, FINDING_PROBLEM };

struct finding {
	char check[32]; /* what was looked at: "module", "card 0" ... */
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

/* What is being looked at. */
struct examination {
	const char *root;      /* where /proc, /sys, /dev and /etc are; "" for the real ones */
	const char *nvml;      /* the library that the user named, or NULL */
	const char *db;	       /* the store's path */
	struct source *source; /* NULL: the driver did not open */
	struct err why;	       /* then: the sentence */
	bool hangs;	       /* then: it has not answered in time */
};

/* Adds a finding; returns it so that an advice can be put in. */
struct finding *finding_add(struct findings *f, enum finding_result result, const char *check,
	const char *format, ...) __attribute__((format(printf, 4, 5)));
void finding_advise(struct finding *row, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* doctor_host.c: system, module, device nodes, who can be seen, the store. */
void examine_system(const struct examination *x, struct findings *f);
void examine_module(const struct examination *x, struct findings *f);
void examine_nodes(const struct examination *x, struct findings *f);
void examine_visibility(const struct examination *x, struct findings *f);
void examine_store(const struct examination *x, struct findings *f);

/* doctor_driver.c: library, driver, cards, ways. */
void examine_driver(const struct examination *x, struct findings *f);
void examine_cards(const struct examination *x, struct findings *f);
void examine_facilities(const struct examination *x, struct findings *f);

#endif
