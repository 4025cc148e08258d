/* The options with which a fleet's engine is reached: the same in gua fleet and gua report. */
#pragma once

#include "cmd/share/configure.h"

struct fleet_values {
	const char *from;    /* NULL: not given; "": the one of gua.conf */
	const char *metrics; /* whose metrics; NULL: auto */
	struct text_list headers, params;
};

/* Rows for the struct fleet_values that is `member` of `type`, without --from. */
#define FLEET_ROWS(type, member)                                                               \
	KEY_ROW(0, "match", "fleet.match"), KEY_ROW(0, "host-label", "fleet.host_label"),      \
		KEY_ROW(0, "expect", "fleet.expect"),                                          \
		KEY_ROW(0, "bearer-file", "fleet.bearer_file"),                                \
		KEY_ROW(0, "basic-file", "fleet.basic_file"),                                  \
		KEY_ROW(0, "cert", "fleet.cert_file"), KEY_ROW(0, "key", "fleet.key_file"),    \
		KEY_ROW(0, "ca", "fleet.ca_file"),                                             \
		{ OPTION_LIST, 0, "header", "HEADER",                                          \
			"a header of every request: 'X-Scope-OrgID: lab'",                     \
			.offset = offsetof(type, member.headers) },                            \
		KEY_ROW(0, "header-file", "fleet.header_file"),                                \
		{ OPTION_LIST, 0, "param", "NAME=VALUE",                                       \
			"a parameter of every query: dedup=false",                             \
			.offset = offsetof(type, member.params) },                             \
		KEY_ROW(0, "timeout", "fleet.timeout"), KEY_ROW(0, "retries", "fleet.retries")

/* Values of gua fleet status. */
struct fleet_status_values {
	struct configure_options conf;
	struct fleet_values fleet;
	int64_t back_ms;
	const char *now;
	bool json, all, utc, check;
};
