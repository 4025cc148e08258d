/* Finds the host name, the machine id, and whether this is a container. */
#include "record/machine.h"

#include "proc/proc.h"

/* Reads a small file below root; "" when it is not there. */
static void read_text(char *dst, size_t cap, const char *root, const char *path)
{
	char full[PATH_MAX];
	snprintf(full, sizeof(full), "%s%s", root, path);
	ssize_t n = file_read_at(AT_FDCWD, full, dst, cap);
	dst[n < 0 ? 0 : n] = '\0';
}

/* Marks in the first process' cgroup path, and the environment that they show. */
static const struct engine_mark {
	const char *text, *environment;
} marks[] = {
	{ "kubepods", "k8s" },
	{ "docker", "docker" },
	{ "libpod", "podman" },
	{ "lxc", "lxc" },
	{ "containerd", "containerd" },
};

/* The cgroup of the first process; "" when it cannot be read. */
static void read_first_cgroup(char *dst, size_t cap, const char *root)
{
	int proc = -1;
	ssize_t n = -1;
	if (proc_open(&proc, root, NULL) == 0) {
		n = proc_read_cgroup(proc, 1, dst, cap);
		close(proc);
	}
	dst[n < 0 ? 0 : n] = '\0';
}

static const char *environment_of(const char *root)
{
	char cgroup[8192], path[PATH_MAX];
	read_first_cgroup(cgroup, sizeof(cgroup), root);
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (strstr(cgroup, marks[i].text))
			return marks[i].environment;
	/* In a cgroup namespace the path shows nothing, but the container engines leave a file.
	 */
	snprintf(path, sizeof(path), "%s/.dockerenv", root);
	if (access(path, F_OK) == 0)
		return "docker";
	snprintf(path, sizeof(path), "%s/run/.containerenv", root);
	return access(path, F_OK) == 0 ? "podman" : "bare";
}

void machine_describe(struct run_info *info, const char *root, const char *name)
{
	char raw[128] = "";
	if (*name)
		str_copy(raw, sizeof(raw), name);
	else if (gethostname(raw, sizeof(raw) - 1) != 0)
		str_copy(raw, sizeof(raw), "localhost");
	str_escape(info->hostname, sizeof(info->hostname), raw, strlen(raw));
	read_text(raw, sizeof(raw), root, "/etc/machine-id");
	raw[strcspn(raw, "\n")] = '\0';
	str_escape(info->machine_id, sizeof(info->machine_id), raw, strlen(raw));
	/* A source with its own host name simulates that host, or replays a capture of it:
	 * the environment of this machine does not apply. */
	const char *environment = strcmp(info->source, "capture") == 0 ? "captured"
				  : *name			       ? "simulated"
								       : environment_of(root);
	str_copy(info->environment, sizeof(info->environment), environment);
}
