/* How the owner of a process frees the memory that it holds. */
#pragma once

#include "base/base.h"

enum { RELEASE_CAP = 192 };

/* The command that ends the process: "scancel 1234" for a Slurm job, "docker stop
 * 3f2a91c4d5e6" for a container, "kubectl delete pod -n ml web-0" for a pod, else "kill 4242".
 * A name that is not plain letters and digits, or not as Kubernetes allows it, is not used: the
 * command is meant to be copied into a shell. The labels may be NULL or "". */
void release_command(char dst[RELEASE_CAP], uint32_t pid, const char *job,
	const char *container, const char *pod);
