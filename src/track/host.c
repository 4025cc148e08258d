/* Two files of /proc, kept open. */
#include "track/host.h"

#include <fcntl.h>
#include <math.h>
#include <unistd.h>

#include "proc/procread.h"

void host_open(struct host *h, int proc_fd)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	*h = (struct host){
		.meminfo_fd = openat(proc_fd, "meminfo", O_RDONLY | O_CLOEXEC),
		.stat_fd = openat(proc_fd, "stat", O_RDONLY | O_CLOEXEC),
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
	if (h->meminfo_fd >= 0)
		close(h->meminfo_fd);
	if (h->stat_fd >= 0)
		close(h->stat_fd);
}

void host_look(struct host *h)
{
	char bytes[2048];
	ssize_t n = h->meminfo_fd < 0 ? -1 : read_again(h->meminfo_fd, bytes, sizeof(bytes));
	if (n > 0 && meminfo_parse(bytes, (size_t)n, &h->capacity_bytes, &h->used_bytes) &&
		h->used_bytes > h->max_used_bytes)
		h->max_used_bytes = h->used_bytes;
	/* The first line is enough; the file of a large host has thousands. */
	n = h->stat_fd < 0 ? -1 : pread(h->stat_fd, bytes, 256, 0);
	if (n > 0)
		cpu_line_parse(bytes, (size_t)n, &h->busy_ticks, &h->all_ticks);
}

double host_cpu_pct(const struct host *h, int64_t busy_before, int64_t all_before)
{
	int64_t all = h->all_ticks - all_before, busy = h->busy_ticks - busy_before;
	if (all_before < 0 || all <= 0)
		return NAN;
	double part = (double)busy / (double)all;
	return 100.0 * (double)h->cores * (part < 0 ? 0 : part > 1 ? 1 : part);
}
