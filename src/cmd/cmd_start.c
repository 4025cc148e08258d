/* gua start: the same as gua daemon. */
#include "cmd/cmd_daemon.h"

const struct command cmd_start = {
	.name = "start",
	.summary = "start the recorder in the background (the same as daemon)",
	.usage = "[--db PATH] [--interval D] [OPTIONS]",
	.details = daemon_details,
	.options = daemon_options,
	.run = daemon_main,
};
