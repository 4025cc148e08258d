/* The options of `gua query` and `gua smi` that choose a query and list its fields. AT(field)
 * is the offset in the values of the command. */
#pragma once

#include "base/options.h"
#include "view/query.h"

#define QUERY_ROWS                                                                             \
	{ OPTION_TEXT, 0, "query-gpu", "FIELD,...", "one line per card with these fields",     \
		AT(gpu), .words = query_gpu_fields },                                          \
		{ OPTION_TEXT, 0, "query-compute-apps", "FIELD,...",                           \
			"one line per compute process with these fields", AT(apps),            \
			.words = query_list_app_fields },                                      \
		{ OPTION_TEXT, 0, "query-accounted-apps", "FIELD,...",                         \
			"one line per process that accounting mode knows", AT(accounted),      \
			.words = query_list_accounted_fields },                                \
		{ OPTION_TEXT, 0, "query-retired-pages", "FIELD,...",                          \
			"one line per memory page that was given up", AT(retired),             \
			.words = query_list_retired_fields },                                  \
	{                                                                                      \
		OPTION_TEXT, 0, "query-remapped-rows", "FIELD,...",                            \
			"one line per card about memory rows that were replaced",              \
			AT(remapped), .words = query_list_remapped_fields                      \
	}

#define QUERY_HELP_ROWS                                                                        \
	{ OPTION_FLAG, 0, "help-query-gpu", .help = "list the fields of --query-gpu",          \
		AT(help_gpu) },                                                                \
		{ OPTION_FLAG, 0, "help-query-compute-apps",                                   \
			.help = "list the fields of --query-compute-apps", AT(help_apps) },    \
		{ OPTION_FLAG, 0, "help-query-accounted-apps",                                 \
			.help = "list the fields of --query-accounted-apps",                   \
			AT(help_accounted) },                                                  \
		{ OPTION_FLAG, 0, "help-query-retired-pages",                                  \
			.help = "list the fields of --query-retired-pages",                    \
			AT(help_retired) },                                                    \
	{                                                                                      \
		OPTION_FLAG, 0, "help-query-remapped-rows",                                    \
			.help = "list the fields of --query-remapped-rows", AT(help_remapped)  \
	}
