/* Does the same work on many items with several threads. Takes the results one after the other,
 * in the order of the items, so the outcome does not depend on the threads. */
#pragma once

#include "base/base.h"

struct crew {
	size_t n; /* items */
	/* Works on an item; it must change nothing that belongs to another item. */
	void (*work)(void *context, size_t item);
	/* Takes the result of an item, after those of all items before it. False: ends the
	 * work early. */
	bool (*take)(void *context, size_t item);
	void *context;
};

/* How many threads the processors of this process can run at once, at most CREW_MAX. */
enum { CREW_MAX = 16 };
size_t crew_size(void);

/* Does all of the work. At most `threads` items are in work or wait to be taken. The caller's
 * thread is one of the threads, and the only one if no other can be started. */
void crew_run(const struct crew *c, size_t threads);
