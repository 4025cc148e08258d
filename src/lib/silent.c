/* Log functions that do nothing. libgua is linked with this file instead of base/log.c, so that
 * it contains no code that prints. gua_error() returns what went wrong. */
#include "base/base.h"

#define SILENT(name)                                                                           \
	void name(const char *format, ...)                                                     \
	{                                                                                      \
		(void)format;                                                                  \
	}

SILENT(log_error)
SILENT(log_warning)
SILENT(log_notice)
SILENT(log_debug)

void log_setup(enum log_level level, enum log_style style)
{
	(void)level;
	(void)style;
}
