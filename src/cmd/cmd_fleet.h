/* The options with which a fleet's engine is reached: the same in gua fleet and gua report. */
#pragma once

#include "cmd/share/configure.h"

struct fleet_values {
	const char *from;    /* NULL: not given; "": the one of gua.conf */
	const char *metrics; /* whose metrics; NULL: auto */
	/* The rest is read through the configuration, which the options override. */
	const char *match, *host_label, *expect, *bearer_file, *basic_file, *cert, *key, *ca,
		*header_file;
	struct text_list headers, params;
	int64_t timeout_ms, retries;
};

/* Rows for the struct fleet_values that is `member` of `type`, without --from. */
#define FLEET_AT(type, member, field) .offset = offsetof(type, member.field)
#define FLEET_ROWS(type, member)                                                               \
	{ OPTION_TEXT, 0, "match", "SELECTOR",                                                 \
		"only series that match, of a fleet: '{job=\"gua\"}'",                         \
		FLEET_AT(type, member, match) },                                               \
		{ OPTION_TEXT, 0, "host-label", "LABEL",                                       \
			"label that tells the hosts of a fleet apart (default instance)",      \
			FLEET_AT(type, member, host_label) },                                  \
		{ OPTION_TEXT, 0, "expect", "N|FILE",                                          \
			"how many hosts a fleet should have, or a file with their names",      \
			FLEET_AT(type, member, expect) },                                      \
		{ OPTION_TEXT, 0, "bearer-file", "FILE",                                       \
			"file with a bearer token for the engine",                             \
			FLEET_AT(type, member, bearer_file) },                                 \
		{ OPTION_TEXT, 0, "basic-file", "FILE",                                        \
			"file with USER:PASSWORD for the engine",                              \
			FLEET_AT(type, member, basic_file) },                                  \
		{ OPTION_TEXT, 0, "cert", "FILE", "the client's certificate (PEM)",            \
			FLEET_AT(type, member, cert) },                                        \
		{ OPTION_TEXT, 0, "key", "FILE", "the client's key (PEM)",                     \
			FLEET_AT(type, member, key) },                                         \
		{ OPTION_TEXT, 0, "ca", "FILE",                                                \
			"authorities to trust instead of the system's (PEM)",                  \
			FLEET_AT(type, member, ca) },                                          \
		{ OPTION_LIST, 0, "header", "HEADER",                                          \
			"a header of every request: 'X-Scope-OrgID: lab'",                     \
			FLEET_AT(type, member, headers) },                                     \
		{ OPTION_TEXT, 0, "header-file", "FILE", "file with headers, one a line",      \
			FLEET_AT(type, member, header_file) },                                 \
		{ OPTION_LIST, 0, "param", "NAME=VALUE",                                       \
			"a parameter of every query: dedup=false",                             \
			FLEET_AT(type, member, params) },                                      \
		{ OPTION_DURATION, 0, "timeout", "D",                                          \
			"how long one query may take, or one host of --ssh "                   \
			"(default 2m)",                                                        \
			FLEET_AT(type, member, timeout_ms), .min = 100, .max = 3600e3 },       \
	{                                                                                      \
		OPTION_COUNT, 0, "retries", "N",                                               \
			"how often a query is repeated after a fault that may pass (default "  \
			"3)",                                                                  \
			FLEET_AT(type, member, retries), .max = 10                             \
	}

/* Values of gua fleet status. */
struct fleet_status_values {
	struct configure_options conf;
	struct fleet_values fleet;
	int64_t back_ms;
	const char *now;
	bool json, all, utc, check;
};
