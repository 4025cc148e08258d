/* The routes of the server: one const table. Adding a page or a document is adding a row.
 *
 * A pattern is a path: "/api/v1/now". A part "*" stands for any one part, which the handler
 * finds in q->parts. The first row that matches counts. */
#pragma once

#include "serve/answer.h"
#include "serve/request.h"

struct route {
	const char *path;
	/* Fills the answer. It runs in one of several threads, so it must use nothing but
	 * its arguments. */
	void (*answer)(const struct request *q, struct answer *a);
	const char *type; /* Content-Type of the answer, unless the handler sets another */
	/* Names of the parameters, separated by blanks. Others are refused, because a
	 * misspelt parameter would silently change the result. NULL: none. */
	const char *params;
	unsigned cache_ms; /* how old a reused answer may be if the store has not changed; 0: 1
			      s */
	bool open;	   /* also for clients that are not logged in */
	bool first; /* reads little, and others wait for it: the page Now, health checks */
	bool quick; /* reads little, but its answer depends on its parameters */
	bool fixed; /* never changes: browsers may keep it for some minutes */
	const char *text; /* the whole answer; there is no handler then */
	bool personal;	  /* the handler reads q->user */
	/* The Content-Type for an Accept header (NULL: none), a constant; the handler finds
	 * the header in q->accept. NULL: there is one type. */
	const char *(*negotiate)(const char *accept);
};

/* The table of all routes, which ends with a row without a path. */
extern const struct route route_table[];

/* The route of a request; NULL: there is none. */
const struct route *route_find(const struct route *table, const struct request *q);
#define ROUTE_NONE "There is no such page; / has links to all of them."
/* ERR_USAGE: the request has a parameter that the route does not have. */
int route_check(const struct route *r, const struct request *q, struct err *e);
/* Checks the parameters and calls the handler: always fills the answer. */
void route_answer(const struct route *r, const struct request *q, struct answer *a);
