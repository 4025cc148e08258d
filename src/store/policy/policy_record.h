/* What steps of gua enforce write into policy.db: how far a session has gone, a row of the log,
 * and notices. The caller makes the records first, and writes all of them in one transaction.
 */
#pragma once

#include "store/policy/policy_file.h"
#include "store/policy/policy_notice.h"

struct policy_record {
	const char *key, *user;		  /* of the session */
	const struct policy_state *state; /* NULL: it stays as it is */
	const struct policy_action
		*action; /* NULL: no row; STEP_BREAKER also trips the breaker */
	const struct policy_notice *notices; /* to be queued */
	size_t n_notices;
	bool cancels; /* takes back the notices that wait for the session */
};

/* Writes all records, and the result of the pass if `pass` is not NULL; after a failure nothing
 * is written. */
int policy_record_write(struct policy_file *f, const struct policy_record *records, size_t n,
	const struct policy_pass *pass, struct err *e);
