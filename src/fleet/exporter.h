/* What other exporters show of a card: the names of their metrics and of their labels, in all
 * the versions that are still in use. A new exporter is a row of the table in exporter.c. */
#pragma once

#include "fleet/engine_answer.h"

enum exporter_role {
	EXPORTER_USE,	     /* utilisation, in percent */
	EXPORTER_MEMORY,     /* used memory, in bytes */
	EXPORTER_SM_ACTIVE,  /* in percent; shown, not judged */
	EXPORTER_ENERGY,     /* a counter, in mJ */
	EXPORTER_POWER,	     /* in W */
	EXPORTER_JOB_NUMBER, /* whose the card is, where labels do not say it; 0: nobody's */
	EXPORTER_USER_NUMBER,
	EXPORTER_INFO, /* 1; its labels have the model */
	EXPORTER_ROLES,
};

enum exporter_label {
	EXPORTER_CARD, /* its UUID */
	EXPORTER_INSTANCE,
	EXPORTER_INDEX,
	EXPORTER_MODEL,
	EXPORTER_HOST,
	EXPORTER_NAMESPACE,
	EXPORTER_POD,
	EXPORTER_CONTAINER,
	EXPORTER_JOB,
	EXPORTER_USER,
	EXPORTER_DRIVER,
	EXPORTER_LABELS
};
enum { EXPORTER_SPELLINGS = 4 };

/* Metrics that mean the same, as versions of an exporter call them. */
struct exporter_metric {
	const char *names; /* "a|b"; NULL: the end of a list */
	enum exporter_role role;
	double scale; /* to the unit of its role */
	int rank;     /* of two that a card has at a moment, the higher one counts; higher ones
			 first */
};

struct exporter {
	const char *name; /* of the option --metrics */
	const struct exporter_metric *metrics;
	const char *labels[EXPORTER_LABELS][EXPORTER_SPELLINGS]; /* the first that is there */
	const char *build; /* a metric whose label `version` is the exporter's; NULL: none */
	bool has_reserved; /* used memory includes what the driver keeps for itself */
	int64_t reads_ms;  /* how often it reads the card, if that is known; else 0 */
};
enum { EXPORTERS = 3 };
extern const struct exporter exporters[EXPORTERS];

/* NULL: there is none of that name. */
const struct exporter_metric *exporter_metric(const struct exporter *x, const char *name);
/* The first one with that role; NULL: there is none. */
const struct exporter_metric *exporter_first(const struct exporter *x, enum exporter_role role);
/* A matcher of all metrics with that role: `__name__=~"a|b"`. NULL: there are none. */
const char *exporter_match(
	const struct exporter *x, enum exporter_role role, struct arena *texts);
/* All spellings of all labels, and more labels, with commas. */
const char *exporter_labels(const struct exporter *x, const char *more, struct arena *texts);
/* The value of a label; "": it has none. */
const char *exporter_label(
	const struct exporter *x, const struct labels *l, enum exporter_label label);
/* A larger value is not a reading: exporters also print numbers that mean "not known". */
extern const double exporter_most[EXPORTER_ROLES];
