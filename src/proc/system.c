/* Reads the files of /proc that do not belong to a process. */
#include "proc/system.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"

static int open_file(int proc, const char *name)
{
	return openat(proc, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

/* Reads the beginning of an open file; returns how many bytes, or -1 with errno. */
static ssize_t read_start(int fd, char *dst, size_t cap)
{
	ssize_t n;
	do
		n = pread(fd, dst, cap, 0);
	while (n < 0 && errno == EINTR);
	return n;
}

int proc_open_memory(int proc)
{
	return open_file(proc, "meminfo");
}

bool proc_read_memory(int fd, struct proc_memory *memory)
{
	char bytes[2048];
	ssize_t n = read_start(fd, bytes, sizeof(bytes));
	return n > 0 && proc_parse_memory(bytes, (size_t)n, memory);
}

int proc_open_cpu(int proc)
{
	return open_file(proc, "stat");
}

/* The first line is enough; the file of a large host has thousands. */
bool proc_read_cpu(int fd, struct proc_cpu *cpu)
{
	char bytes[256];
	ssize_t n = read_start(fd, bytes, sizeof(bytes));
	return n > 0 && proc_parse_cpu(bytes, (size_t)n, cpu);
}

int proc_open_newest(int proc)
{
	return open_file(proc, "loadavg");
}

int64_t proc_read_newest(int fd)
{
	char bytes[256];
	int64_t newest;
	ssize_t n = read_start(fd, bytes, sizeof(bytes));
	return n > 0 && proc_parse_newest(bytes, (size_t)n, &newest) ? newest : -1;
}

DIR *proc_open_list(int proc)
{
	int fd = openat(proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	if (!list && fd >= 0)
		close(fd);
	return list;
}

uint32_t proc_next_listed(DIR *list)
{
	for (struct dirent *d = readdir(list); d; d = readdir(list)) {
		uint64_t pid = 0;
		if (proc_parse_number(d->d_name, strlen(d->d_name), &pid) && pid > 0 &&
			pid <= INT_MAX)
			return (uint32_t)pid;
	}
	return 0;
}

/* The file grows with cores and interrupts, to 100 kB and more, and btime is near its end. So
 * it is read in pieces, which overlap by more than the length of the line. */
static int64_t read_boot_time(int fd)
{
	enum { OVERLAP = 64 };
	char bytes[16 * 1024];
	size_t have = 0;
	for (;;) {
		ssize_t n = read(fd, bytes + have, sizeof(bytes) - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		have += (size_t)n;
		int64_t seconds = proc_parse_boot_time(bytes, have);
		if (seconds >= 0)
			return seconds;
		if (have > OVERLAP) {
			memmove(bytes, bytes + have - OVERLAP, OVERLAP);
			have = OVERLAP;
		}
	}
}

/* Uses the clocks of this host, unless they count from another moment (a time namespace). */
static int64_t finer_boot_ms(int64_t boot_ms)
{
	struct timespec wall, boot;
	if (clock_gettime(CLOCK_REALTIME, &wall) != 0 ||
		clock_gettime(CLOCK_BOOTTIME, &boot) != 0)
		return boot_ms;
	int64_t finer_ms = (int64_t)(wall.tv_sec - boot.tv_sec) * 1000 +
			   (wall.tv_nsec - boot.tv_nsec) / 1000000;
	return llabs(finer_ms - boot_ms) <= 1500 ? finer_ms : boot_ms;
}

int64_t proc_boot_ms(int proc, bool real)
{
	int fd = open_file(proc, "stat");
	if (fd < 0)
		return -1;
	int64_t seconds = read_boot_time(fd);
	close(fd);
	if (seconds < 0)
		return -1;
	return real ? finer_boot_ms(seconds * 1000) : seconds * 1000;
}

void proc_read_boot_id(int proc, char *dst, size_t cap)
{
	char bytes[64];
	dst[0] = '\0';
	if (file_read_at(proc, "sys/kernel/random/boot_id", bytes, sizeof(bytes)) > 0)
		str_escape(dst, cap, bytes, strcspn(bytes, "\n"));
}
