/* gua report over another engine than stores: gua-fleet runs it with its own. */
#ifndef GUA_CMD_REPORT_H
#define GUA_CMD_REPORT_H

#include "cmd/fleet.h"
#include "query/audit.h"

struct report_engine {
	/* Prepares, when the options and the configuration have been read. */
	int (*open)(void *context, const struct fleet_values *v, const struct config *c,
		struct err *e);
	int (*audit)(
		void *context, struct audit *a, const struct audit_question *q, struct err *e);
	void *context;
};
/* Runs the command. `engine` NULL: over stores. Returns the exit status. */
int report_run(
	const struct command *self, int argc, char **argv, const struct report_engine *engine);

#endif
