/* One pass of gua enforce over the present: gathers what policy.db and the store know, judges,
 * writes what follows into policy.db in one transaction, and then acts. */
#pragma once

#include "policy/judge.h"
#include "config/settings.h"
#include "policy/facts.h"
#include "store/policy/policy_file.h"

struct endings;

/* One step of a session, valid during the pass. */
struct enforcer_step {
	const struct policy *policy;
	const struct facts_now *now;
	size_t session; /* index in now->facts; SIZE_MAX: it no longer holds a card */
	const struct session_facts *facts;
	const struct verdict *verdict;
	int64_t now_ms;
	const struct policy_keep *keeps; /* of all sessions, in the last four weeks */
};

/* When a session was last seen in use: a pass that knows this reads only the newest slots. */
struct enforcer_used {
	char key[SESSION_KEY_CAP];
	int64_t used_ms, idle_below; /* the limit that was applied, in percent */
};

/* The CPU time of a session that was spared because of its CPU use, as of a pass. */
struct enforcer_cpu {
	char key[SESSION_KEY_CAP];
	double cpu_s;
	int64_t at_us; /* monotonic */
	bool busy;     /* used the CPU since the pass before, or unknown */
};

/* Zero-initialise; the caller sets the members up to `endings`. */
struct enforcer {
	struct policy policy; /* history and may_end are set by each pass */
	const char *db;
	int proc; /* as in struct facts_now; enforcer_finish() closes it */
	const char *policy_db;
	const struct clock *clock;
	const struct settings
		*settings; /* the configuration, for the check whether it may end sessions */
	const char *config_hash;
	bool users_can_ask; /* sessions are ended only where users can keep one */
	struct endings *endings;
	struct policy_file *file; /* opened by a pass; NULL: not open */
	int64_t now_ms;		  /* the moment that the last pass judged */
	struct policy_pass last;  /* what it saw */
	/* Private. */
	bool primed; /* `used` is filled */
	struct enforcer_used *used;
	size_t n_used;
	struct enforcer_cpu *cpu;
	size_t n_cpu;
};

/* The row of the log about a step, with all its texts in the arena. False: out of memory. */
bool enforcer_row(struct policy_action *a, struct arena *texts, const struct enforcer *x,
	const struct enforcer_step *s);

/* What is to be read of the present, with facts_now_read(). */
struct facts_now enforcer_facts(const struct enforcer *x, int64_t now_ms, bool brief);

/* Opens policy.db if it is not open. Fails when the store or policy.db cannot be read or
 * written; then nothing was done. */
int enforcer_pass(struct enforcer *x, int64_t now_ms, struct err *e);
/* Closes policy.db and /proc. */
void enforcer_finish(struct enforcer *x);
