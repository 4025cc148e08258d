/* Explains what happens to a session and why, rule by rule: for gua enforce explain, and for
 * users who ask the service about their own. */
#pragma once

#include "config/settings.h"
#include "policy/facts.h"
#include "policy/rules.h"
#include "store/policy/policy_file.h"

struct explain_question {
	struct facts_now *now; /* already read */
	struct policy policy;  /* a copy: explain() adds what is known about the session */
	const struct settings *settings;
	struct policy_file
		*file; /* NULL: gua enforce run has not run, or policy.db cannot be read */
	struct facts_asked what;
	uint32_t uid; /* who asks: a user is told about own sessions only, without the rules and
			 exemptions of others; 0: everything */
	bool json, utc;
};
#define EXPLAIN_NO_LEASE                                                                       \
	"no lease of this name is judged: it is not yours, it has ended, or no rule has "      \
	"reserved_for"

/* Appends the explanation. ERR_NOTHING: the process holds no card. */
int explain(struct explain_question *x, struct str *out, struct err *e);
