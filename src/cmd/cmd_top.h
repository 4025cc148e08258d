/* The options of `gua top`: gua lists and completes them, and gua-top parses them. */
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
