/* Makes notices of the steps of a pass and puts them into the queue of policy.db. */
#ifndef GUA_POLICY_TELL_H
#define GUA_POLICY_TELL_H

#include "policy/enforcer.h"

/* For enforcer_hooks.queue: warnings are queued; when a session recovered, was kept, exempted
 * or released, what waits is taken back. */
int tell_step(struct policy_file *f, const struct enforcer_step *s, struct err *e);

#endif
