/* The options of `gua serve`: known to gua, which lists and completes them, and to gua-serve,
 * which parses them. */
#pragma once

#include "base/options.h"
#include "cmd/share/configure.h"

/* The others set keys of gua.conf. */
struct serve_values {
	struct configure_options conf;
	struct texts db;
	const char *now;
	bool utc;
};
