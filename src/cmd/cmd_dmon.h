/* The values of gua dmon, which gua smi runs with others. */
#pragma once

#include "cmd/share/cmd_live.h"
#include "present/filter.h"

struct dmon_values {
	struct live_values live;
	struct filter_values filter;
	const char *select, *delay, *front, *format, *file;
	int64_t count;
	bool processes;
};
