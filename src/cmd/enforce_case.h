/* What the parts of enforce_end.h share: the sessions that are being ended, and those that are
 * held. */
#ifndef GUA_CMD_ENFORCE_CASE_H
#define GUA_CMD_ENFORCE_CASE_H

#include <limits.h>

#include "cmd/enforce_end.h"
#include "cmd/share/cmd_live.h"
#include "policy/notice.h"

enum { LIST_CAP = 1024 };

/* What is needed of a session once the pass that decided is over. */
struct ending_case {
	int64_t ticket; /* 0: free */
	char key[SESSION_KEY_CAP], user[USER_CAP], rule[RULE_NAME_CAP];
	/* For the log: as much as fits. */
	char pids[LIST_CAP], cards[LIST_CAP], gpus[LABEL_CAP], command[COMMAND_CAP];
	struct end_process *processes; /* all of them, in the order of signals */
	size_t n_processes;
	enum session_kind kind;
	int64_t uid, held_bytes, idle_since_ms, clock_ms, final_ms;
	struct policy_state state;
	struct notice notice;
	bool over; /* `outcome` is known, and could not be stored yet */
	int64_t retry_us;
	struct ending_outcome outcome;
};

struct held {
	char key[SESSION_KEY_CAP], user[USER_CAP];
	struct end_process process;
	bool refused; /* it must not be signalled, or has ended */
};

struct enforce_end {
	const struct enforce *x;
	struct enforcer *enforcer;
	struct endings *endings;
	struct live_session live;
	char program[PATH_MAX];
	int64_t tickets;
	struct ending_case cases[ENDINGS_MOST];
	struct held *held;
	size_t n_held;
	/* Of this pass: processes that cannot or must not be ended, and why the first. */
	size_t n_refused;
	char refused[256];
	bool unreachable; /* gua-end did not answer: it is not asked again */
	bool failing;	  /* an outcome could not be stored */
};

/* The case with this ticket; 0: a free one. NULL: there is none. */
struct ending_case *enforce_case_find(struct enforce_end *x, int64_t ticket);
/* Adds a row about a case: step, stage, evidence and result are those of `what`. */
int enforce_case_row(struct enforce_end *x, const struct ending_case *c,
	const struct policy_action *what, struct err *e);

/* Lets go of the processes of a session. */
void enforce_end_release(struct enforce_end *x, const char *key);

/* The case is over: stores the outcome and tells people. If it cannot be stored, the case stays
 * until it can. */
void enforce_case_finish(
	struct enforce_end *x, struct ending_case *c, const struct ending_outcome *o);
/* Tries again to store outcomes. */
void enforce_case_retry(struct enforce_end *x);
/* Until the next try; -1: nothing waits. */
int64_t enforce_case_wait_ms(const struct enforce_end *x);

#endif
