/* The engine of gua report that answers instead of stores: gua-fleet has one. */
#pragma once

#include "cmd/cmd_fleet.h"
#include "audit/audit.h"
#include "store/store_list.h"

/* The hosts to fetch stores from, and the time that the report is about. */
struct report_hosts {
	const char *file;
	int64_t since_ms, until_ms;
	int64_t timeout_ms; /* for each host */
};

/* cmd_report.parts */
struct report_engine {
	/* Called when the options and the configuration have been read. */
	int (*open)(void *context, const struct fleet_values *v, const struct config *c,
		struct err *e);
	int (*audit)(
		void *context, struct audit *a, const struct audit_question *q, struct err *e);
	/* Fetches the stores of hosts; asked() then returns the result for each host. */
	int (*fetch)(void *context, const struct report_hosts *hosts, struct store_list *stores,
		struct err *e);
	const struct asked_hosts *(*asked)(void *context);
	void *context;
};
