/* The options of a query, which gua query and gua smi share. A command has a struct
 * query_values `query` among its values, and AT() is the offset of a member there. */
#pragma once

#include "cmd/share/cmd_live.h"
#include "present/filter.h"
#include "view/query.h"

struct query_values {
	const char *lists[QUERY_LISTS]; /* the fields of each; NULL: not asked for */
	bool helps[QUERY_LISTS];	/* --help-query-... */
	const char *format, *loop, *loop_ms, *file;
};

/* The values of gua query, which gua smi runs with its own. */
struct query_command {
	struct live_values live;
	struct filter_values filter;
	struct query_values query;
	bool mig, t;
};

#define QUERY_ROW(list, name, what, fields)                                                    \
	{                                                                                      \
		OPTION_TEXT, 0, "query-" name, "FIELD,...", what, AT(query.lists[list]),       \
			.words = (fields)                                                      \
	}
#define QUERY_ROWS                                                                             \
	QUERY_ROW(QUERY_GPU, "gpu", "one line per card with these fields", query_gpu_fields),  \
		QUERY_ROW(QUERY_APPS, "compute-apps",                                          \
			"one line per compute process with these fields",                      \
			query_list_app_fields),                                                \
		QUERY_ROW(QUERY_ACCOUNTED, "accounted-apps",                                   \
			"one line per process that accounting mode knows",                     \
			query_list_accounted_fields),                                          \
		QUERY_ROW(QUERY_RETIRED, "retired-pages",                                      \
			"one line per memory page that was given up",                          \
			query_list_retired_fields),                                            \
		QUERY_ROW(QUERY_REMAPPED, "remapped-rows",                                     \
			"one line per card about memory rows that were replaced",              \
			query_list_remapped_fields)

#define QUERY_HELP_ROW(list, name)                                                             \
	{                                                                                      \
		OPTION_FLAG, 0, "help-query-" name,                                            \
			.help = "list the fields of --query-" name, AT(query.helps[list])      \
	}
#define QUERY_HELP_ROWS                                                                        \
	QUERY_HELP_ROW(QUERY_GPU, "gpu"), QUERY_HELP_ROW(QUERY_APPS, "compute-apps"),          \
		QUERY_HELP_ROW(QUERY_ACCOUNTED, "accounted-apps"),                             \
		QUERY_HELP_ROW(QUERY_RETIRED, "retired-pages"),                                \
		QUERY_HELP_ROW(QUERY_REMAPPED, "remapped-rows")

#define QUERY_LOOP_ROWS                                                                        \
	{ OPTION_MAYBE_NEXT, 'l', "loop", "SECONDS",                                           \
		"repeat at this interval (without a value: 5 s)", AT(query.loop) },            \
		{ OPTION_TEXT, 0, "loop-ms", "MS", "the same in milliseconds; also -lms MS",   \
			AT(query.loop_ms) },                                                   \
	{                                                                                      \
		OPTION_TEXT, 'f', "filename", "FILE",                                          \
			"write to FILE instead of standard output", AT(query.file)             \
	}
