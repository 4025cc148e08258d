/* Makes an audit: by asking stores, or step by step for another engine. Each table of a store
 * is read once, in order, and summed in C. */
#ifndef GUA_QUERY_AUDIT_H
#define GUA_QUERY_AUDIT_H

#include "base/err.h"
#include "model/audit.h"

struct audit_question {
	const char *const *paths; /* stores */
	size_t n_paths;
	int64_t since_ms, until_ms; /* asked window */
	int64_t now_ms;
	bool utc;	      /* heatmap in UTC instead of local time */
	bool want_processes;  /* fill processes[] */
	size_t max_processes; /* at most so many of them, those with most time; 0: all */
};

/* Fills `*a` from stores. No data in the window is not an error: n_cards is 0 then, and
 * oldest_ms/newest_ms say where there is some. audit_finish() is due even after a failure. */
int audit_run(struct audit *a, const struct audit_question *q, struct err *e);

/* What model/audit.h asks of an engine: an audit without anything in it; one more host, card,
 * identity or process, in order, nothing known of it yet; then the sums. NULL: out of memory,
 * with `e` set. A pointer is good until the next of its kind is added. */
void audit_init(struct audit *a);
struct audit_host *audit_add_host(struct audit *a, struct err *e);
struct audit_card *audit_add_card(struct audit *a, struct err *e);
struct audit_identity *audit_add_identity(struct audit *a, struct err *e);
struct audit_process *audit_add_process(struct audit *a, struct err *e);
void audit_add_up(struct audit *a);
void audit_finish(struct audit *a);

/* All of a holder's time. */
int64_t audit_holder_ms(const int64_t ms[HOLDER_STATES]);

#endif
