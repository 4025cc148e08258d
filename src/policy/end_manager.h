/* Ends what a manager started, by the manager's own command: a signal to a process of a
 * container or a job would only make the manager start it again. The command runs in a process
 * of its own, with a deadline, from an argument vector. */
#pragma once

#include "base/helper.h"
#include "config/config.h"

enum { MANAGER_ARGUMENTS = 32, MANAGER_CAP = 512 };

/* What is ended: the labels of its managers, each "" if it has none, and why. */
struct managed {
	const char *job, *container, *pod, *reason;
};

struct manager_command {
	char text[2 * MANAGER_CAP]; /* the arguments, one after the other */
	size_t used;		    /* of it */
	const char *argv[MANAGER_ARGUMENTS + 5];
	/* Is run first, to tell the user of the job in its output; its failure is ignored.
	 * NULL: there is no such command. */
	const char *tell[MANAGER_ARGUMENTS + 3];
	char shown[MANAGER_CAP]; /* the command as shown to people */
};

/* Finds the command for a job, pod or container: the label is "slurm:1234", "ml/web-0",
 * "podman:3f2a91c4d5e6". 0: there is one; 1: nothing manages it (the labels are empty, or of a
 * kind without a command); ERR_USAGE: the configured command is wrong; ERR_NOTHING: it is a pod
 * that no command ends, and it must not be signalled: the kubelet would start it again. */
int end_manager_find(struct manager_command *c, const struct config_end *config,
	const struct managed *what, struct err *e);

/* Whether a user chose the names in /proc/PID/cgroup. Such a user may have chosen the name
 * of somebody else's container, so the session is then ended by signals, not by a manager. */
bool end_manager_is_users(const char *cgroup, size_t len);

/* Starts the command. */
int end_manager_start(
	struct helper **h, const struct manager_command *c, int64_t timeout_ms, struct err *e);
/* Whether the command has finished; `e` is filled if it failed. Call this until it returns
 * true, then free the helper. */
bool end_manager_is_over(struct helper *h, struct err *e);
