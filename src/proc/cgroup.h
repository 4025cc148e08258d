/* Finds the batch job, container, pod and unit of a process from its cgroup path, and the user
 * in whose slice it runs. A job, container or pod is believed only where its manager makes it:
 * users and containers may name their own cgroups as they like. Below a user's own service
 * manager only containers get a label, and they belong to that user. The unit is a label for
 * people: below a user's service manager, or in a container, the user or container chooses it.
 */
#pragma once

#include <glob.h>

#include "base/piece.h"
#include "model/process.h"

/* Each text is escaped, and "" when the path has none. */
struct cgroup_labels {
	char job[LABEL_CAP];	   /* slurm:ID pbs:ID lsf:ID nomad:ALLOC.TASK */
	char container[LABEL_CAP]; /* docker:ID12 podman:ID12 containerd:ID12 crio:ID12
				      container:ID12 lxc:NAME machine:NAME */
	char pod[LABEL_CAP];	   /* uid of a kubernetes pod */
	char unit[LABEL_CAP];	   /* service or scope, with systemd's escapes decoded */
	char session[SESSION_CAP]; /* the login manager's number of a login session */
	int64_t slice_uid;	   /* whose login slice it runs in; -1: in none */
};

/* Reads /proc/PID/cgroup (v1, v2 or both). The outermost job, container
 * and pod win, and the deepest unit. Of a path outside of our cgroup namespace ("/../../x") the
 * rest after the dots is used, except for `session` and `slice_uid`. */
void cgroup_parse(const char *bytes, size_t len, struct cgroup_labels *labels);

/* Lists the cgroups of Slurm's jobs below `root` ("": this host): paths that end with "job_N"
 * or with the job's SLUID. The caller frees them with globfree(3). A job without a step has
 * none, and a site may have moved them: that there is none proves nothing. */
void cgroup_find_slurm(const char *root, glob_t *found);
/* Lists the cgroups of Kubernetes' pods in the same way: paths that end with "podUID", or with
 * "...-podUID.slice" and '_' for '-'. */
void cgroup_find_pods(const char *root, glob_t *found);
