/* Finds process lives in data without start times: sightings of one (pid, user, command)
 * without a long gap are one life. Only lives that may still be sighted are kept in memory. */
#pragma once

#include "base/idmap.h"
#include "model/tick.h"

/* A life ends when it is not sighted for this many intervals. */
#define PYLIVES_GAP_INTERVALS 10

/* Zero-initialise. */
struct pylives {
	struct process_entry *entries; /* for struct tick */
	int64_t *expire_ms; /* by entry: it has ended if it is not sighted until then */
	size_t n, cap;
	struct idmap by_pid; /* entries */
};

struct sighting {
	uint32_t pid;
	const char *user, *command; /* escaped */
	int64_t at_ms, interval_ms;
};

void pylives_finish(struct pylives *l);
/* Returns the index in entries of the life that was sighted; -1: out of memory. */
int64_t pylives_sight(struct pylives *l, const struct sighting *s);
/* Marks the lives that ended before `at_ms` as ended: call before they are written. */
void pylives_end(struct pylives *l, int64_t at_ms);
/* Forgets the lives that are marked as ended: call after they are written. Indexes change. */
void pylives_forget(struct pylives *l);
