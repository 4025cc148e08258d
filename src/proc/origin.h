/* Where a process comes from, for people: what started it, in which session, which programs
 * stand between, and what its environment says that it is for. Processes choose their names and
 * their environment, so all of this is a label and decides nothing. */
#ifndef GUA_PROC_ORIGIN_H
#define GUA_PROC_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "model/process.h"
#include "proc/cgroup.h"
#include "proc/proc_parse.h"
#include "proc/piece.h"

/* What is known of the process already. */
struct origin_known {
	int proc;   /* an open /proc */
	int handle; /* of the process; see proc.h */
	uint32_t pid;
	const struct proc_stat *stat;
	const struct cgroup_labels *labels;
	bool kernel; /* it is a Jupyter kernel */
	/* Its argv[0]. `at` NULL: be brief, and read nothing that may block. Then there are no
	 * python_env and none of the last four. */
	struct piece program;
};

/* Fills all of `origin`. What may not be read is "": of other users' processes, only root and
 * programs with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH may read the environment. It is read
 * into memory that is wiped at once; see environment.h for what is looked for. */
void origin_read(struct proc_origin *origin, const struct origin_known *known);

#endif
