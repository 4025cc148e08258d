/* Asks at a few moments of a window what an engine has, before all of it is read. */
#pragma once

#include "fleet/exporter.h"
#include "fleet/fleet.h"

enum { PROBES = 8 };
struct probe {
	struct fleet *f;
	double from_s, to_s, range_s; /* range: how much of the window each moment covers */
	struct probe_number {
		const struct fleet *f;
		double value;
		size_t n; /* how many came */
	} found[PROBES];  /* the last moment is the first */
};

/* A start of 0 asks for all data: then the window begins as far back as engines may go. */
struct probe probe_of(struct fleet *f, int64_t since_ms, int64_t until_ms);
/* Asks `before SELECTOR[range]after` at each moment, the oldest first. The selector is of the
 * exporter's metrics with the role; without such, nothing is asked. probe_has() asks one moment
 * after the other, the newest first, until one has a number above 0. */
struct probe_query {
	const char *before, *after;
	const struct exporter *x; /* NULL: the matchers alone select */
	enum exporter_role role;
	const char *matchers;	  /* NULL: none */
	engine_answer_take *take; /* NULL: the numbers go into `found` */
	void *context;
};
int probe_ask(struct probe *p, const struct probe_query *q, struct err *e);
int probe_has(struct probe *p, const struct probe_query *q, bool *has, struct err *e);
double probe_largest(const struct probe *p);
/* Where the oldest moment with an answer begins, in ms; -1: there is none. */
int64_t probe_oldest(const struct probe *p);
/* Counts the series of an exporter with a role at each moment; *found is NULL if there are
 * none. */
int probe_count(struct probe *p, const struct exporter *x, enum exporter_role role,
	const struct exporter_metric **found, struct err *e);
/* How many series of the cards' use, or else memory, an exporter has at a time. */
int probe_count_cards(struct probe *p, const struct exporter *x, double *n, struct err *e);
