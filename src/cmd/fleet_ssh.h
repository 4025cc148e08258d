/* The stores of hosts that gua report --ssh names, while they are reported. */
#ifndef GUA_CMD_FLEET_SSH_H
#define GUA_CMD_FLEET_SSH_H

#include "base/scratch.h"
#include "cmd/cmd_report.h"
#include "fleet/remotes.h"

/* Zero-initialise. */
struct fleet_ssh {
	struct scratch scratch;
	struct remotes remotes;
	struct asked_hosts asked; /* how it went */
};

/* Fetches the stores, and adds their paths. Each host that failed is named in the log.
 * ERR_WORLD: none answered. */
int fleet_ssh_fetch(struct fleet_ssh *s, const struct report_hosts *hosts,
	struct store_list *stores, struct err *e);
/* Removes them. */
void fleet_ssh_finish(struct fleet_ssh *s);

#endif
