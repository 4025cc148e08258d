/* gua export --openmetrics: the past of a store for an engine. */
#ifndef GUA_CMD_EXPORT_OPENMETRICS_H
#define GUA_CMD_EXPORT_OPENMETRICS_H

#include "base/options.h"
#include "config/config.h"
#include "export/export.h"

struct openmetrics_options {
	int64_t step_ms;	 /* 0: a minute */
	struct text_list labels; /* NAME=VALUE */
	const char *identities;	 /* NULL: as configured */
};
#define STEP_DEFAULT_MS 60000

/* Prints to stdout. */
int export_openmetrics(const char *path, struct export_window window,
	const struct openmetrics_options *o, const struct config *config, struct err *e);

#endif
