/* policy.db, the file of gua enforce: how far sessions have gone, every step, notices, keeps
 * and arms. The schema is policy.sql. Only gua enforce writes it; reports and pages read it. */
#pragma once

#include "model/policy.h"

struct policy_file;

/* "policy.db" in the directory of the store at `db`. */
void policy_file_path(char *dst, size_t cap, const char *db);

/* Opens it. `write`: makes the file (mode 0640) when it is missing. Otherwise a missing file,
 * or one that has no tables yet, is ERR_NOTHING. */
int policy_file_open(struct policy_file **f, const char *path, bool write, struct err *e);
void policy_file_close(struct policy_file *f);

/* Everything that is written between the two calls is one transaction. `rc` says how that went:
 * if it is not 0, nothing is kept, and it is returned. */
int policy_file_begin(struct policy_file *f, struct err *e);
int policy_file_end(struct policy_file *f, int rc, struct err *e);

/* Reads the state of a session; POLICY_STATE_NONE if it has none. */
int policy_file_state(
	struct policy_file *f, const char *key, struct policy_state *state, struct err *e);
/* Makes a list, in the arena, of all sessions that have a state, by key. */
struct policy_session {
	const char *key, *user;
	struct policy_state state;
	struct policy_session *next; /* NULL: it is the last one */
};
int policy_file_sessions(struct policy_file *f, struct arena *arena,
	struct policy_session **first, struct err *e);

/* One step; texts may be NULL. Unknown numbers are -1. */
struct policy_action {
	int64_t id, at_ms, uid, held_bytes, idle_since_ms, idle_ms, given_back_ms;
	enum policy_step step;
	enum policy_stage stage;
	bool would;
	const char *rule, *session, *kind, *user, *pids, *cards, *evidence, *result, *config,
		*actor;
	const char *command, *gpus;	    /* of its process; the cards by index */
	const char *step_name, *stage_name; /* set when read */
};
/* Initialises the numbers of an action that is not about the use of cards. */
#define POLICY_ACTION_UNKNOWN                                                                  \
	.uid = -1, .held_bytes = -1, .idle_since_ms = -1, .idle_ms = -1, .given_back_ms = -1
int policy_file_add_action(struct policy_file *f, const struct policy_action *a, struct err *e);
/* Calls `take` with the steps in since <= at < until, oldest first, until it returns non-zero,
 * which is returned. */
typedef int (*policy_action_taker)(void *context, const struct policy_action *a);
struct policy_span {
	int64_t since_ms, until_ms;
};
int policy_file_actions(struct policy_file *f, struct policy_span span,
	policy_action_taker take, void *context, struct err *e);

/* Arms until a moment, or (until_ms 0) disarms. */
int policy_file_arm(struct policy_file *f, int64_t now_ms, int64_t until_ms, const char *user,
	struct err *e);
/* Releases the breaker, which stops everything. */
int policy_file_release(struct policy_file *f, int64_t now_ms, const char *user, struct err *e);
/* Whether anything may be done now. */
struct policy_orders {
	int64_t armed_until_ms; /* until then sessions may be ended; -1: they may not */
	char armed_by[64];
	int64_t stopped_ms; /* since then the breaker has stopped everything; -1: it has not */
	char stopped_why[256];
};
int policy_file_orders(
	struct policy_file *f, int64_t now_ms, struct policy_orders *o, struct err *e);
/* Reads the moment of each release, oldest first; the caller frees *at_ms, also after a
 * failure. */
int policy_file_releases(struct policy_file *f, int64_t **at_ms, size_t *n, struct err *e);

struct policy_pass {
	int64_t at_ms; /* -1: there was no pass */
	int64_t sessions, idle;
	char note[256]; /* "" or why nothing was judged */
};
int policy_file_set_pass(struct policy_file *f, const struct policy_pass *p, struct err *e);
int policy_file_pass(struct policy_file *f, struct policy_pass *p, struct err *e);

/* What steps of gua enforce write: how far a session has gone, a row of the log, and notices.
 * The caller makes the records first, and writes all of them in one transaction. */
struct policy_notice;
struct policy_record {
	const char *key, *user;		  /* of the session */
	const struct policy_state *state; /* NULL: it stays as it is; STAGE_NONE: removed */
	const struct policy_action
		*action; /* NULL: no row; STEP_BREAKER also trips the breaker */
	const struct policy_notice *notices; /* to be queued */
	size_t n_notices;
	bool cancels; /* takes back the notices that wait for the session */
};
/* Writes all records, and the result of the pass if `pass` is not NULL; after a failure nothing
 * is written. */
int policy_file_write(struct policy_file *f, const struct policy_record *records, size_t n,
	const struct policy_pass *pass, struct err *e);

/* Calls `take` with each kind of step, whether it was taken or only would have been, and how
 * often, until it returns non-zero, which is returned. */
struct policy_count {
	const char *step, *mode;
	int64_t n;
};
typedef int (*policy_count_taker)(void *context, const struct policy_count *c);
int policy_file_counts(
	struct policy_file *f, policy_count_taker take, void *context, struct err *e);

/* A session that is kept, and who keeps it. */
struct policy_keep {
	const char *session, *user, *reason;
	int64_t uid, pid, from_ms, until_ms;
	struct policy_keep *next; /* in a list; NULL: it is the last one */
};
int policy_file_add_keep(struct policy_file *f, const struct policy_keep *k, struct err *e);
/* Ends the keeps of a session. */
int policy_file_drop_keep(
	struct policy_file *f, const char *session, int64_t now_ms, struct err *e);
/* Moves a keep to another session. */
int policy_file_move_keep(
	struct policy_file *f, const struct policy_keep *k, const char *session, struct err *e);
/* Reads until when a session is kept as of now; *until_ms -1: it is not. */
int policy_file_kept_until(struct policy_file *f, const char *session, int64_t now_ms,
	int64_t *until_ms, struct err *e);
/* Makes a list, in the arena, of the keeps that overlap the span, oldest first. */
int policy_file_keeps(struct policy_file *f, struct policy_span span, struct arena *arena,
	struct policy_keep **first, struct err *e);

/* Stores the result of a simulation in place of the last one. */
int policy_file_set_simulation(
	struct policy_file *f, int64_t now_ms, const char *json, struct err *e);
/* Appends the stored result to a text; *at_ms -1: there is none. */
int policy_file_simulation(
	struct policy_file *f, int64_t *at_ms, struct str *json, struct err *e);
