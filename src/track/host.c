/* Reads the host's memory and CPU time from two files of /proc, which stay open. */
#include "track/host.h"

#include <math.h>
#include <unistd.h>

#include "proc/system.h"

void host_open(struct host *h, int proc_fd)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	*h = (struct host){
		.memory_fd = proc_open_memory(proc_fd),
		.cpu_fd = proc_open_cpu(proc_fd),
		.cores = cores > 0 ? cores : 1,
		.capacity_bytes = -1,
		.used_bytes = -1,
		.max_used_bytes = -1,
		.busy_ticks = -1,
		.all_ticks = -1,
	};
	host_look(h);
	h->first_busy_ticks = h->busy_ticks;
	h->first_all_ticks = h->all_ticks;
}

void host_close(struct host *h)
{
	if (h->memory_fd >= 0)
		close(h->memory_fd);
	if (h->cpu_fd >= 0)
		close(h->cpu_fd);
}

void host_look(struct host *h)
{
	struct proc_memory memory;
	struct proc_cpu cpu;
	if (proc_read_memory(h->memory_fd, &memory)) {
		h->capacity_bytes = memory.total_bytes;
		h->used_bytes = memory.used_bytes;
		if (h->used_bytes > h->max_used_bytes)
			h->max_used_bytes = h->used_bytes;
	}
	if (proc_read_cpu(h->cpu_fd, &cpu)) {
		h->busy_ticks = cpu.busy_ticks;
		h->all_ticks = cpu.all_ticks;
	}
}

double host_cpu_pct(const struct host *h, int64_t busy_before, int64_t all_before)
{
	int64_t all = h->all_ticks - all_before, busy = h->busy_ticks - busy_before;
	if (all_before < 0 || all <= 0)
		return NAN;
	double part = (double)busy / (double)all;
	return 100.0 * (double)h->cores * (part < 0 ? 0 : part > 1 ? 1 : part);
}
