/* A capture of the driver: everything that it answers on this host, as lines of text
 * (gua-capture(5)). Each call has a deadline. A call that does not return is recorded as such,
 * its card is not asked again, and the capture goes on. */
#pragma once

#include "base/base.h"

/* The first line of a capture. */
#define NVML_CAPTURE_HEAD "gua-capture 1"

struct nvml_capture_options {
	const char *path;   /* of the library; NULL: the usual one */
	const char *option; /* the option that sets it, for messages */
	const char *root;   /* where /proc, /sys and /dev are */
	struct clock *clock;
	int64_t deadline_ms; /* of each call */
	int rounds;	     /* how often the changing answers are read, a second apart */
};

/* What a capture found. Call capture_finish() on it. */
struct captured {
	uint32_t *pids; /* processes that the driver named, each once */
	size_t n_pids, cap_pids;
	unsigned n_calls, n_cards;
	char stuck[128];  /* the first call without an answer, and why; or "" */
	int64_t begin_ms; /* wall clock of the first round */
};

/* Appends the lines about the host and about the driver. Without a library or a driver there
 * are fewer lines, which is not a failure. */
int capture_make(const struct nvml_capture_options *o, struct str *out, struct captured *seen,
	struct err *e);
void capture_finish(struct captured *seen);
