/* Parameters of a request as values: they are rows of option tables, and mean the same as the
 * options of the commands. */
#ifndef GUA_SERVE_PARAMS_H
#define GUA_SERVE_PARAMS_H

#include "base/options.h"
#include "report/report_ask.h"
#include "serve/request.h"

/* Reads all parameters that have a row into `values`; the rows end with one without a name. The
 * last of several counts, except for lists. ERR_USAGE: a value is wrong. */
int params_read(
	const struct request *q, const struct option_row *rows, void *values, struct err *e);

/* A question about a window of time, with the options of gua-report(1). */
struct report_params {
	struct report_words words;
	const char *table; /* of CSV; NULL: the usual one */
	const char *utc;
	struct report_asked asked;
	struct report_prices prices;
	char currency[64];
};
/* Largest number of rows in an answer: what a page can show. gua report prints all. */
enum { REPORT_ROWS = 1000 };
/* The names of these parameters, for the table of routes. */
#define WINDOW_PARAMS "since until last utc"
#define REPORT_PARAMS                                                                          \
	WINDOW_PARAMS " by user group notebook card host model sort compare top longest"

/* Reads the question of a request; with `people`, it shows few rows unless `top` is given.
 * The struct must not be moved, and is valid as long as the request. */
int params_read_report(
	struct report_params *p, const struct request *q, bool people, struct err *e);

#endif
