/* The log of the library: none. libgua is linked with this instead of base/log.c, so that the
 * part of the code that could print is not in it at all. What went wrong is in gua_error(). */
#include "base/log.h"

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
