/* Finds from the cgroup path of a process its batch job, container, pod and unit. */
#ifndef GUA_PROC_CGROUP_H
#define GUA_PROC_CGROUP_H

#include <stddef.h>

#include "proc/text.h"

/* Each is escaped, and "" when the path has none. */
struct cgroup_labels {
	char job[LABEL_CAP];	   /* slurm:ID pbs:ID lsf:ID nomad:ALLOC.TASK */
	char container[LABEL_CAP]; /* docker:ID12 podman:ID12 containerd:ID12 crio:ID12
				      container:ID12 lxc:NAME machine:NAME */
	char pod[LABEL_CAP];	   /* uid of a kubernetes pod */
	char unit[LABEL_CAP];	   /* service or scope, with systemd's escapes decoded */
};

/* Reads /proc/PID/cgroup (v1, v2 or both). Of several matches for a label the deepest wins. */
void cgroup_parse(const char *bytes, size_t len, struct cgroup_labels *labels);

#endif
