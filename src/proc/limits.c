/* Reads the limits of a process from the cgroups that it is in, and from those above them. */
#include "proc/limits.h"

#include "base/piece.h"
#include "proc/proc.h"

enum { CGROUP_CAP = 8192, VALUE_CAP = 64 };

static void lower(int64_t *limit, int64_t value)
{
	if (value > 0 && (*limit < 0 || value < *limit))
		*limit = value;
}

int64_t limits_parse_memory(const char *text)
{
	char *end;
	long long bytes = strtoll(text, &end, 10);
	/* Version 1 says "no limit" with the largest number of pages. */
	return end == text || bytes < 0 || bytes >= LLONG_MAX / 2 ? -1 : bytes;
}

int64_t limits_parse_cores(const char *text)
{
	long long quota, period;
	if (sscanf(text, "%lld %lld", &quota, &period) != 2 || quota <= 0 || period <= 0)
		return -1;
	return quota / period + (quota % period != 0);
}

/* Reads a file of a cgroup; "" when it has none. */
static const char *read_value(char value[VALUE_CAP], const char *directory, const char *name)
{
	char path[PATH_MAX];
	if (!file_path(path, "%s/%s", directory, name) ||
		file_read_at(AT_FDCWD, path, value, VALUE_CAP) < 0)
		value[0] = '\0';
	return value;
}

/* The limits of one directory of either version; the files of the other are not there. */
static void take_directory(struct limits *l, const char *directory)
{
	char text[VALUE_CAP], period[VALUE_CAP], both[2 * VALUE_CAP];
	lower(&l->memory_bytes, limits_parse_memory(read_value(text, directory, "memory.max")));
	lower(&l->memory_bytes,
		limits_parse_memory(read_value(text, directory, "memory.limit_in_bytes")));
	lower(&l->cores, limits_parse_cores(read_value(text, directory, "cpu.max")));
	read_value(text, directory, "cpu.cfs_quota_us");
	read_value(period, directory, "cpu.cfs_period_us");
	snprintf(both, sizeof(both), "%s %s", text, period);
	lower(&l->cores, limits_parse_cores(both));
}

/* A cgroup and all above it up to the mount point. In a container the path may be the host's,
 * and its own cgroup the mount point: directories that do not exist have no limits. */
static void take_path(struct limits *l, const char *mount, struct piece path)
{
	char directory[PATH_MAX];
	size_t base = strlen(mount);
	if (!file_path(directory, "%s%.*s", mount, (int)path.len, path.at) ||
		strstr(directory + base, "/.."))
		return;
	for (;;) {
		take_directory(l, directory);
		char *slash = strrchr(directory + base, '/');
		if (!slash)
			return;
		*slash = '\0';
	}
}

/* "0::/PATH" is version 2, "N:CONTROLLER,...:/PATH" version 1, with a mount for each group of
 * controllers, which is also named by each of them. */
static void take_line(struct limits *l, const char *root, struct piece line)
{
	static const char *const controllers[] = { "memory", "cpu" };
	char mount[PATH_MAX], names[128];
	piece_cut(&line, ':');
	struct piece list = piece_cut(&line, ':');
	if (!line.at)
		return;
	snprintf(names, sizeof(names), ",%.*s,", (int)list.len, list.at);
	if (!list.len) {
		snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup", root);
		take_path(l, mount, line);
		snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup/unified", root);
		take_path(l, mount, line);
	}
	for (size_t i = 0; i < sizeof(controllers) / sizeof(controllers[0]); i++) {
		char wanted[16];
		snprintf(wanted, sizeof(wanted), ",%s,", controllers[i]);
		snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup/%s", root, controllers[i]);
		if (strstr(names, wanted))
			take_path(l, mount, line);
	}
}

struct limits limits_read(int proc, uint32_t pid, const char *root)
{
	struct limits l = { -1, -1 };
	struct proc_status status;
	char bytes[CGROUP_CAP];
	ssize_t n = proc_read_cgroup(proc, pid, bytes, sizeof(bytes));
	struct piece rest = { bytes, n < 0 ? 0 : (size_t)n }, line;
	while (line = piece_cut(&rest, '\n'), rest.at)
		take_line(&l, root, line);
	if (proc_read_status(proc, pid, &status) == 0)
		lower(&l.cores, status.processors);
	return l;
}
