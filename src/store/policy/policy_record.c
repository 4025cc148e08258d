/* Writes the records of steps. */
#include "store/policy/policy_record.h"

static int write_one(struct policy_file *f, const struct policy_record *r, struct err *e)
{
	const struct policy_action *a = r->action;
	int rc = r->state ? policy_file_set_state(f, r->key, r->user, r->state, e) : 0;
	if (rc == 0 && a)
		rc = policy_file_add_action(f, a, e);
	if (rc == 0 && a && a->step == STEP_BREAKER)
		rc = policy_file_trip(f, a->at_ms, a->evidence, e);
	if (rc == 0 && r->cancels)
		rc = policy_notice_cancel(f, r->key, a->at_ms, e);
	for (size_t i = 0; i < r->n_notices && rc == 0; i++)
		rc = policy_notice_add(f, &r->notices[i], e);
	return rc;
}

int policy_record_write(struct policy_file *f, const struct policy_record *records, size_t n,
	const struct policy_pass *pass, struct err *e)
{
	int rc = policy_file_begin(f, e);
	if (rc)
		return rc;
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = write_one(f, &records[i], e);
	if (rc == 0 && pass)
		rc = policy_file_set_pass(f, pass, e);
	return policy_file_end(f, rc, e);
}
