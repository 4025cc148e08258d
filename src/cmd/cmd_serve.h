/* The options of `gua serve`: known to gua, which lists and completes them, and to gua-serve,
 * which parses them. */
#pragma once

#include "base/options.h"
#include "cmd/share/configure.h"

/* Most of them are keys of gua.conf, too: their values are read from there. */
struct serve_values {
	struct configure_options conf;
	struct texts db;
	const char *now, *compat;
	bool utc;
	struct config_serve conf_serve;
};
