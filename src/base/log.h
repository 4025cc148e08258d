/* The log: one line per message on stderr, with systemd's <N> priority prefix under a service
 * manager and a time stamp otherwise. */
#pragma once

enum log_level {
	LOG_LEVEL_NONE = -1, /* print nothing */
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARNING,
	LOG_LEVEL_NOTICE,
	LOG_LEVEL_DEBUG
};

/* How lines start: plain text for commands, a time stamp or a journal priority for daemons. */
enum log_style { LOG_STYLE_PLAIN, LOG_STYLE_STAMP, LOG_STYLE_JOURNAL };

/* Sets the level and the style. These and the receiver of log_divert() are the only mutable
 * globals of the process. Call it once at the start, before any thread. */
void log_setup(enum log_level level, enum log_style style);

/* Passes all further messages, as safe text, to `line` instead of printing them: for a process
 * that has no stderr. */
typedef void log_receiver(void *context, enum log_level level, const char *text);
void log_divert(log_receiver *line, void *context);

/* Logs at a level that is known only at run time; an unknown level counts as an error. */
void log_at(unsigned level, const char *format, ...) __attribute__((format(printf, 2, 3)));
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_notice(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
