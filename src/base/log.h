/* The log: one line a message on stderr, with systemd's <N> priority prefix under a service
 * manager and a time stamp otherwise. A fault that repeats is logged when it starts and when it
 * ends, through struct fault. */
#ifndef GUA_BASE_LOG_H
#define GUA_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum log_level {
	LOG_LEVEL_NONE = -1, /* print nothing */
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARNING,
	LOG_LEVEL_NOTICE,
	LOG_LEVEL_DEBUG
};

/* How lines start: plain text for commands, a time stamp or a journal priority for daemons. */
enum log_style { LOG_STYLE_PLAIN, LOG_STYLE_STAMP, LOG_STYLE_JOURNAL };

/* The process' only mutable globals: set once at start, before any thread. */
void log_setup(enum log_level level, enum log_style style);

void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_notice(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

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
