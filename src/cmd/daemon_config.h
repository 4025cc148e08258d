/* The recorder's configuration: read at the start and again at SIGHUP. Errors in files are
 * logged and shown in the status, and never end a recorder. */
#ifndef GUA_CMD_DAEMON_CONFIG_H
#define GUA_CMD_DAEMON_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fault.h"
#include "cmd/share/configure.h"

/* Set the first three members and `now.given`, and zero the rest. */
struct daemon_config {
	const struct configure_options *from;
	const struct option_row *table; /* the recorder's options */
	const void *options;		/* their values, where `now.given` says so */
	struct configuration now;	/* in force */
	struct configuration next;	/* for the next run, if `changed` */
	bool changed;
	struct fault fault; /* for the status: the configuration has errors */
};

/* Reads the configuration. Fails for a wrong option only. */
int daemon_config_read(struct daemon_config *d, struct err *e);
/* Raises the fault if the configuration has errors; call it when the log is open. */
void daemon_config_report(struct daemon_config *d, int64_t now_ms);
/* Reads the files again, and logs what is different. A configuration with errors is not taken.
 */
void daemon_config_again(struct daemon_config *d, int64_t now_ms);
/* Between two runs: puts in force what was read again, if that is different. */
void daemon_config_next(struct daemon_config *d);
void daemon_config_finish(struct daemon_config *d);

#endif
