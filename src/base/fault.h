/* A fault that lasts: logged when it starts and when it ends, not each time it is seen. */
#ifndef GUA_BASE_FAULT_H
#define GUA_BASE_FAULT_H

#include <stdbool.h>
#include <stdint.h>

/* One thing that can be wrong for a while. Zero-initialise. */
struct fault {
	bool on;	  /* in force now */
	int64_t since_ms; /* when it started */
	int64_t count;	  /* how often it was raised since */
	char text[256];	  /* the sentence that it started with */
};

/* Raises: logs a warning when it was off; counts otherwise. Returns true when it started now.
 */
bool fault_raise(struct fault *f, int64_t now_ms, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Clears: logs once that it is over, how long it took and how often it was seen. Returns true
 * when it ended now. */
bool fault_clear(struct fault *f, int64_t now_ms);

#endif
