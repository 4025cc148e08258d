/* gua fleet: runs gua-fleet, the program that talks to the engine of a fleet. */
#include "cmd/cmd_fleet.h"

#include "cmd/cmd.h"

#define AT(field) .offset = offsetof(struct fleet_status_values, field)

static const struct option_row options[] = {
	{ OPTION_TEXT, 0, "from", "URL",
		"address of the engine: http://HOST:9090 (default: url in [fleet] of gua.conf)",
		AT(fleet.from) },
	FLEET_ROWS(struct fleet_status_values, fleet),
	{ OPTION_DURATION, 0, "back", "D",
		"name hosts that were seen at most this long ago (default 1d)", AT(back_ms),
		.min = 300e3, .max = 366 * 86400e3 },
	{ OPTION_FLAG, 0, "all", .help = "list all hosts, also those that are well", AT(all) },
	{ OPTION_FLAG, 0, "check", .help = "exit 1 if a host is missing, silent or behind",
		AT(check) },
	{ OPTION_FLAG, 0, "json", .help = "print JSON", AT(json) },
	{ OPTION_FLAG, 0, "utc", .help = "times in UTC instead of local time", AT(utc) },
	CONFIGURE_ROWS(struct fleet_status_values, conf),
	NOW_OPTION(struct fleet_status_values, now),
	{ 0 },
};

const struct command cmd_fleet = {
	.name = "fleet",
	.summary = "show which hosts the engine of a fleet knows; report over all of them",
	.usage = "status|report [--from URL] [OPTIONS]",
	.details = "status: the hosts that are seen, silent or behind. report: the same as\n"
		   "gua report --from, with the options of gua report.",
	.options = options,
	.values_size = sizeof(struct fleet_status_values),
	.operands = "status|report",
	.handed_over = true,
	.reads_configuration = true,
};
