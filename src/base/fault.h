/* A fault that lasts for some time: logged when it starts and when it ends, not each time. */
#pragma once

#include "base/base.h"

/* One kind of fault. Zero-initialise. */
struct fault {
	bool on;	  /* in force now */
	int64_t since_ms; /* when it started */
	int64_t count;	  /* how many times it was raised since then */
	char text[256];	  /* the message at the start, or a later one */
};

/* Raises the fault: logs a warning if it was off, and counts otherwise. Returns true when the
 * fault started with this call. */
bool fault_raise(struct fault *f, int64_t now_ms, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Clears the fault: logs once that it is over, how long it lasted and how often it was seen.
 * Returns true when the fault ended with this call. */
bool fault_clear(struct fault *f, int64_t now_ms);
