/* How many cores and how much memory a process may use: what its cgroups allow (v1, v2 or
 * both), as a batch job, a container or a service has them, and the processors that it may run
 * on, which are those of its cpuset. */
#pragma once

#include "base/base.h"

/* -1: there is no limit, or it cannot be read. */
struct limits {
	int64_t cores; /* rounded up */
	int64_t memory_bytes;
};

/* For a process of the open /proc; the cgroup tree is ROOT/sys/fs/cgroup. */
struct limits limits_read(int proc, uint32_t pid, const char *root);

/* The limit in memory.max or memory.limit_in_bytes, and the cores of cpu.max; -1: none. */
int64_t limits_parse_memory(const char *text);
int64_t limits_parse_cores(const char *text);
