/* The log of gua enforce, from policy.db: one line for each step. */
#pragma once

#include "base/period.h"
#include "model/table.h"
#include "store/policy/policy_file.h"

/* A step as it is shown in tables. */
struct policy_log_line {
	struct policy_action action;
	const char *mode;
	int64_t held_kib;
	/* For people: "would warn", the name of the session, and the evidence or result. */
	char what[32], shown[SESSION_KEY_CAP], said[768];
};

/* Reads the window of a log, by default the last 30 days. */
int report_policy_window(struct policy_span *span, const struct window_words *words,
	int64_t now_ms, bool utc, struct err *e);

/* An empty table with all columns. Call table_finish(). */
struct table report_policy_log(void);
/* Adds the steps of the span to a table over struct policy_log_line, oldest first. */
int report_policy_add_log(
	struct table *t, struct policy_file *f, struct policy_span span, struct err *e);

/* Calls `take` for each policy.db beside the stores, once for each file, with the first
 * store that it is beside. Stops and returns the code if `take` fails. ERR_NOTHING: there is
 * no policy.db beside any store. */
struct policy_logs {
	int (*take)(void *context, const char *db, const char *policy_db, struct err *e);
	void *context;
};
int report_policy_each(
	const struct policy_logs *l, const char *const *paths, size_t n, struct err *e);
