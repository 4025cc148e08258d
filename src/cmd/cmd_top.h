/* The options of `gua top`: known to gua, which lists and completes them, and to gua-top, which
 * parses them. */
#pragma once

#include "cmd/share/cmd_live.h"
#include "present/filter.h"

struct top_values {
	struct live_values live;
	const char *sort;
	struct filter_values filter;
	const char *delay;
	bool readonly, once, ascii, no_color, no_mouse, tree;
};
