/* Writes log lines to stderr, escaped. libgua uses lib/silent.c instead. */
#include "base/log.h"

#include "base/base.h"

static enum log_level max_level = LOG_LEVEL_NOTICE;
static enum log_style line_style = LOG_STYLE_PLAIN;
static log_receiver *receiver; /* NULL: lines are printed */
static void *receiver_context;

void log_setup(enum log_level level, enum log_style style)
{
	max_level = level;
	line_style = style;
}

void log_divert(log_receiver *line, void *context)
{
	receiver = line;
	receiver_context = context;
}

static const char *const level_names[] = { "error: ", "warning: ", "", "" };
/* syslog(3) priorities, which the journal reads from a leading <N>. */
static const int level_priorities[] = { 3, 4, 5, 7 };

static void log_line(enum log_level level, const char *text)
{
	if (line_style == LOG_STYLE_JOURNAL) {
		fprintf(stderr, "<%d>%s\n", level_priorities[level], text);
		return;
	}
	char stamp[32] = "";
	if (line_style == LOG_STYLE_STAMP) {
		time_t now = time(NULL);
		struct tm tm;
		if (gmtime_r(&now, &tm))
			strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%SZ ", &tm);
	}
	fprintf(stderr, "%sgua: %s%s\n", stamp, level_names[level], text);
}

static void log_args(enum log_level level, const char *format, va_list args)
{
	if (level > max_level)
		return;
	char raw[1024], safe[1536];
	int n = vsnprintf(raw, sizeof(raw), format, args);
	size_t len = n < 0 ? 0 : (size_t)n < sizeof(raw) ? (size_t)n : sizeof(raw) - 1;
	str_escape(safe, sizeof(safe), raw, len);
	if (receiver)
		receiver(receiver_context, level, safe);
	else
		log_line(level, safe);
}

void log_at(unsigned level, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	log_args(level <= LOG_LEVEL_DEBUG ? (enum log_level)level : LOG_LEVEL_ERROR, format,
		args);
	va_end(args);
}

#define LOG_FUNCTION(name, level)                                                              \
	void name(const char *format, ...)                                                     \
	{                                                                                      \
		va_list args;                                                                  \
		va_start(args, format);                                                        \
		log_args(level, format, args);                                                 \
		va_end(args);                                                                  \
	}

LOG_FUNCTION(log_error, LOG_LEVEL_ERROR)
LOG_FUNCTION(log_warning, LOG_LEVEL_WARNING)
LOG_FUNCTION(log_notice, LOG_LEVEL_NOTICE)
LOG_FUNCTION(log_debug, LOG_LEVEL_DEBUG)
