/* The options of `gua serve`: known to gua, which lists and completes them, and to gua-serve,
 * which parses them. */
#ifndef GUA_CMD_SERVE_H
#define GUA_CMD_SERVE_H

#include "cmd/configure.h"
#include "base/options.h"

struct serve_values {
	struct texts db;
	const char *listen, *now;
	bool utc;
	struct configure_options conf;
};

#endif
