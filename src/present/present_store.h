/* Fills the present from stores alone: the cards of a host at its recorder's last tick, and the
 * processes that held them. For pages and programs that must not ask the driver. */
#ifndef GUA_PRESENT_PRESENT_STORE_H
#define GUA_PRESENT_PRESENT_STORE_H

#include "base/err.h"
#include "model/present.h"

/* Adds the host of the store at `path`, as of `now_ms`, to *p (zero-initialise it). Waits at
 * most `wait_ms` for a locked store. After a failure *p has what it had before, or more: call
 * present_store_finish(). */
int present_store_add(
	struct present *p, const char *path, int64_t now_ms, int wait_ms, struct err *e);
void present_store_finish(struct present *p);

#endif
