/* A request as handlers see it: what all requests share, the parts of its path, and its
 * parameters, decoded and checked. Bytes from a client are untrusted; this is their only
 * parser, and it has a fuzz target. */
#pragma once

#include <pthread.h>

#include "base/options.h"
#include "config/config.h"
#include "present/present_store.h"
#include "proc/user.h"
#include "report/report_ask.h"
#include "store/store_list.h"

/* What all requests share: the stores, the configuration, the clock, and the names of users. */
struct serve_world {
	const struct store_list *stores; /* at least one */
	const struct config *config;
	int64_t now_ms;		  /* a fixed clock, for tests; 0: the real one */
	bool utc;		  /* times on pages in UTC instead of local time */
	struct user_names *users; /* of this host; under the next */
	pthread_mutex_t *users_lock;
};

enum { REQUEST_MAX_PARTS = 8, REQUEST_MAX_PARAMS = 32, REQUEST_MAX_BYTES = 4096 };

/* The format that a client prefers, for a route that has several. */
enum media { MEDIA_HTML, MEDIA_JSON, MEDIA_CSV, MEDIA_TEXT };

struct request_param {
	const char *name, *value; /* valid UTF-8 without control characters */
};

struct foreign_stop;

struct request {
	/* The path between slashes, decoded: "/card/GPU-1" has "card" and "GPU-1"; "/" has
	 * none. */
	const char *parts[REQUEST_MAX_PARTS];
	size_t n_parts;
	struct request_param params[REQUEST_MAX_PARAMS]; /* in the order of the query */
	size_t n_params;
	const char *accept; /* the Accept header; NULL: none was sent */
	enum media media;   /* what it prefers */
	const char *user;   /* the user that asks, verified; NULL: unknown */
	int64_t now_ms;
	const struct serve_world *world;
	struct foreign_stop *stop; /* of store/foreign.h: ends a query that takes too long */
	const struct str_limit *limit; /* limits the size of the answer; NULL: no limit */
	struct arena texts;	       /* memory of this request; freed with it */
};

/* Reads the target of a request line: "/card/GPU-1?since=7d". ERR_USAGE: the server does not
 * accept it. Call request_finish() in any case. */
int request_parse(struct request *q, const char *target, size_t len, struct err *e);
void request_finish(struct request *q);

/* The value of the first parameter with this name; NULL: there is none. */
const char *request_param(const struct request *q, const char *name);

/* Reads the present of all stores, waiting so long for one that is locked. Call
 * present_store_finish() even if it fails. */
int request_read_present(
	struct present *p, const struct request *q, int wait_ms, struct err *e);

/* Reads an Accept header (NULL: none was sent) and returns the preferred format. */
enum media request_accept(const char *header);
/* The target without the values of its parameters, for a log: "/api/v1/report?since&user". */
void request_target_shown(char *dst, size_t cap, const char *target);

/* Reads all parameters that have a row into `values`. They mean the same as the options of the
 * commands; the rows end with one without a name. The last of several counts, except for lists.
 * ERR_USAGE: a value is wrong. */
int request_read(
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
	WINDOW_PARAMS " by user group notebook job card host model sort compare top longest"

/* Reads the question of a request; with `people`, it shows few rows unless `top` is given.
 * The struct must not be moved, and is valid as long as the request. */
int request_read_report(
	struct report_params *p, const struct request *q, bool people, struct err *e);
