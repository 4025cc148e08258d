/* Further tables of policy.db: arms, the breaker, keeps, the last pass, the last simulation. */
#ifndef GUA_STORE_POLICY_POLICY_MORE_H
#define GUA_STORE_POLICY_POLICY_MORE_H

#include "base/str.h"
#include "store/policy/policy_file.h"

/* Arms until a moment, or (until_ms 0) disarms. */
int policy_file_arm(struct policy_file *f, int64_t now_ms, int64_t until_ms, const char *user,
	struct err *e);
/* Until when ending is allowed, and by whom; *until_ms -1: it is not. */
int policy_file_armed(
	struct policy_file *f, int64_t now_ms, int64_t *until_ms, char user[64], struct err *e);

/* The breaker stops everything, or is released. */
int policy_file_trip(struct policy_file *f, int64_t now_ms, const char *why, struct err *e);
int policy_file_release(struct policy_file *f, int64_t now_ms, const char *user, struct err *e);
/* Since when everything is stopped, and why; *at_ms -1: it is not. */
int policy_file_tripped(struct policy_file *f, int64_t *at_ms, char why[256], struct err *e);
/* Calls `take` with the moment of each release, oldest first, until it returns non-zero. */
int policy_file_releases(struct policy_file *f, int (*take)(void *context, int64_t at_ms),
	void *context, struct err *e);

struct policy_pass {
	int64_t at_ms; /* -1: there was none */
	int64_t sessions, idle;
	char note[256]; /* "" or why nothing was judged */
};
int policy_file_set_pass(struct policy_file *f, const struct policy_pass *p, struct err *e);
int policy_file_pass(struct policy_file *f, struct policy_pass *p, struct err *e);

/* Calls `take` with each kind of step, whether it happened or would have, and how often, until
 * it returns non-zero, which is returned. */
struct policy_count {
	const char *step, *mode;
	int64_t n;
};
typedef int (*policy_count_taker)(void *context, const struct policy_count *c);
int policy_file_counts(
	struct policy_file *f, policy_count_taker take, void *context, struct err *e);

/* A session that is kept, and by whom. */
struct policy_keep {
	const char *session, *user, *reason;
	int64_t uid, pid, from_ms, until_ms;
};
int policy_file_add_keep(struct policy_file *f, const struct policy_keep *k, struct err *e);
/* Ends the keeps of a session. */
int policy_file_drop_keep(
	struct policy_file *f, const char *session, int64_t now_ms, struct err *e);
/* Gives the keep another session. */
int policy_file_move_keep(
	struct policy_file *f, const struct policy_keep *k, const char *session, struct err *e);
/* Calls `take` with the keeps that overlap the span, until it returns non-zero. */
typedef int (*policy_keep_taker)(void *context, const struct policy_keep *k);
int policy_file_keeps(struct policy_file *f, struct policy_span span, policy_keep_taker take,
	void *context, struct err *e);

/* Stores what the last simulation said, and appends it; *at_ms -1: there was none. */
int policy_file_set_simulation(
	struct policy_file *f, int64_t now_ms, const char *json, struct err *e);
int policy_file_simulation(
	struct policy_file *f, int64_t *at_ms, struct str *json, struct err *e);

#endif
