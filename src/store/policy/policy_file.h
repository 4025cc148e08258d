/* policy.db, the file of gua enforce: how far sessions have gone, every step, notices, keeps
 * and arms. The schema is policy.sql. Only gua enforce writes it; reports and pages read it. */
#ifndef GUA_STORE_POLICY_POLICY_FILE_H
#define GUA_STORE_POLICY_POLICY_FILE_H

#include "base/err.h"
#include "model/policy.h"

struct policy_file;

/* "policy.db" in the directory of the store at `db`. */
void policy_file_path(char *dst, size_t cap, const char *db);

/* Opens it. `write`: makes the file (mode 0640) when it is missing. Otherwise a missing file is
 * ERR_NOTHING. */
int policy_file_open(struct policy_file **f, const char *path, bool write, struct err *e);
void policy_file_close(struct policy_file *f);

/* Everything written between the two calls is one transaction. With `keep` false, or after a
 * failure, nothing of it is kept. */
int policy_file_begin(struct policy_file *f, struct err *e);
int policy_file_end(struct policy_file *f, bool keep, struct err *e);

/* The state of a session; POLICY_STATE_NONE if it has none. A state of STAGE_NONE is removed.
 */
int policy_file_state(
	struct policy_file *f, const char *key, struct policy_state *state, struct err *e);
int policy_file_set_state(struct policy_file *f, const char *key, const char *user,
	const struct policy_state *state, struct err *e);
/* Calls `take` with the key and user of every session that has a state. */
typedef int (*policy_session_taker)(
	void *context, const char *key, const char *user, const struct policy_state *state);
int policy_file_sessions(
	struct policy_file *f, policy_session_taker take, void *context, struct err *e);

/* One step; texts may be NULL. Unknown numbers are -1. */
struct policy_action {
	int64_t id, at_ms, uid, held_bytes, idle_since_ms, idle_ms, given_back_ms;
	enum policy_step step;
	enum policy_stage stage;
	bool would;
	const char *rule, *session, *kind, *user, *pids, *cards, *evidence, *result, *config,
		*actor;
	const char *command, *gpus;	    /* of its process; the cards by index */
	const char *step_name, *stage_name; /* when read */
};
int policy_file_add_action(struct policy_file *f, const struct policy_action *a, struct err *e);
/* Calls `take` with the steps in since <= at < until, oldest first, until it returns non-zero,
 * which is returned. */
typedef int (*policy_action_taker)(void *context, const struct policy_action *a);
struct policy_span {
	int64_t since_ms, until_ms;
};
int policy_file_actions(struct policy_file *f, struct policy_span span,
	policy_action_taker take, void *context, struct err *e);

#endif
