/* Chooses the command that ends a process. */
#include "model/release.h"

static const struct manager {
	const char *prefix;  /* of the label */
	const char *command; /* that ends what the label names */
} managers[] = {
	{ "slurm:", "scancel" },
	{ "pbs:", "qdel" },
	{ "lsf:", "bkill" },
	{ "docker:", "docker stop" },
	{ "podman:", "podman stop" },
};

/* Characters that are safe in a shell and cannot begin an option. */
#define PLAIN "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

static bool by_manager(char dst[RELEASE_CAP], const char *label)
{
	for (size_t i = 0; label && i < sizeof(managers) / sizeof(managers[0]); i++) {
		size_t len = strlen(managers[i].prefix);
		const char *name = label + len;
		if (strncmp(label, managers[i].prefix, len) != 0 || !*name ||
			name[strspn(name, PLAIN)] || strlen(name) > 64)
			continue;
		snprintf(dst, RELEASE_CAP, "%s %s", managers[i].command, name);
		return true;
	}
	return false;
}

static bool by_cluster(char dst[RELEASE_CAP], const char *pod)
{
	const char *slash = pod ? strchr(pod, '/') : NULL;
	if (!slash || pod[strspn(pod, PLAIN "-./")] || strspn(pod, PLAIN) == 0 ||
		strspn(slash + 1, PLAIN) == 0 || strchr(slash + 1, '/'))
		return false;
	snprintf(dst, RELEASE_CAP, "kubectl delete pod -n %.*s %s", (int)(slash - pod), pod,
		slash + 1);
	return true;
}

void release_command(char dst[RELEASE_CAP], uint32_t pid, const char *job,
	const char *container, const char *pod)
{
	if (!by_manager(dst, job) && !by_cluster(dst, pod) && !by_manager(dst, container))
		snprintf(dst, RELEASE_CAP, "kill %u", (unsigned)pid);
}
