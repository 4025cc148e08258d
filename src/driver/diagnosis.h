/* How a source examines itself: whether it can be used on this host, and what is in the way.
 * It is asked whether or not it could be opened; it reads, and changes nothing. */
#ifndef GUA_DRIVER_DIAGNOSIS_H
#define GUA_DRIVER_DIAGNOSIS_H

#include <stdbool.h>

#include "base/err.h"
#include "model/finding.h"

struct source;

/* What is known when a source is asked to examine itself. */
struct diagnosis {
	const char *name;      /* as the user named the source: "nvml", "capture:FILE" */
	const char *root;      /* where /proc, /sys and /dev are; "" for the real ones */
	struct source *source; /* drained and looked at once; NULL: that failed */
	struct err why;	       /* then: the sentence */
	bool hangs;	       /* if it failed: whether it did not answer in time */
	void *before; /* what the kind's look() saw before the source was opened, or NULL */
};

/* Of each kind, for the table of kinds. */
void *nvml_diagnose_before(const char *root);
void nvml_diagnose(const struct diagnosis *d, struct findings *f);
void sim_diagnose(const struct diagnosis *d, struct findings *f);
void capture_diagnose(const struct diagnosis *d, struct findings *f);

#endif
