/* The part of a report about one person, for the digest that is mailed to them. */
#ifndef GUA_MODEL_REPORT_PERSON_H
#define GUA_MODEL_REPORT_PERSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/process.h"
#include "model/release.h"

/* A process of theirs that holds a card idle now, and how to end it. */
struct report_release {
	char where[192]; /* "GPU 2", "GPU 2 of lab" */
	int64_t mem_bytes, idle_ms;
	const char *what; /* the audit's */
	char command[RELEASE_CAP];
	bool notebook;
};

enum { RELEASES_MAX = 4 };

struct report_person {
	char name[USER_CAP];		     /* "": the report is about nobody in particular */
	int64_t held_ms, used_ms, unused_ms; /* presence */
	int64_t held_before_ms, used_before_ms, unused_before_ms; /* in the other window */
	double cost, cost_before; /* of their share of idle-held time; NAN: no price */
	size_t rank, n_users;	  /* place by unused hours, from 1; 0: they held nothing */
	struct report_release releases[RELEASES_MAX]; /* longest idle first */
	size_t n_releases, n_more;
};

#endif
