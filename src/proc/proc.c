/* Opens, reads and parses the files of a process, each with as few calls as possible. */
#include "proc/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

enum {
	/* Longer than any stat line: 52 numbers and a name. */
	STAT_CAP = 2048,
	/* On a large host the processor masks are longer than the rest of status. */
	STATUS_CAP = 8192,
	SMALL_CAP = 2048,
	NAME_CAP = 48,
};

/* Writes "PID/NAME", or "NAME" for a handle's process. Without printf, because the tracker does
 * this thousands of times a second. */
static void make_name(char dst[NAME_CAP], uint32_t pid, const char *name)
{
	char digits[16];
	size_t n = 0, at = 0;
	for (uint32_t left = pid; left; left /= 10)
		digits[n++] = (char)('0' + left % 10);
	while (n)
		dst[at++] = digits[--n];
	if (at)
		dst[at++] = '/';
	while (*name && at + 1 < NAME_CAP)
		dst[at++] = *name++;
	dst[at] = '\0';
}

static ssize_t read_file(int proc, uint32_t pid, const char *name, char *dst, size_t cap)
{
	char path[NAME_CAP];
	make_name(path, pid, name);
	return file_read_piece_at(proc, path, dst, cap);
}

/* The same for the files that the kernel reads with a lock of the process held: see proc.h. */
static ssize_t wait_for_file(int proc, uint32_t pid, const char *name, char *dst, size_t cap)
{
	char path[NAME_CAP];
	make_name(path, pid, name);
	return file_wait_piece_at(proc, path, dst, cap);
}

/* What a reader returns: `read` is -1 with errno set when the file could not be read. */
static int result_of(ssize_t read, bool parsed)
{
	if (read >= 0 && !parsed)
		errno = ENODATA;
	return read >= 0 && parsed ? 0 : -1;
}

int proc_open(int *proc, const char *root, struct err *e)
{
	char path[PATH_MAX];
	if (snprintf(path, sizeof(path), "%s/proc", root) >= (int)sizeof(path))
		return err_set(e, ERR_USAGE, "the path %s is too long", root);
	*proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*proc < 0)
		return err_set(e, ERR_WORLD, "cannot look at processes in %s: %s", path,
			strerror(errno));
	return 0;
}

int proc_open_process(int proc, uint32_t pid)
{
	char path[NAME_CAP];
	make_name(path, pid, "");
	return openat(proc, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

int proc_read_stat(int proc, uint32_t pid, struct proc_stat *stat)
{
	char bytes[STAT_CAP];
	ssize_t n = read_file(proc, pid, "stat", bytes, sizeof(bytes));
	return result_of(n, n > 0 && proc_parse_stat(bytes, (size_t)n, stat));
}

int proc_open_stat(int proc, uint32_t pid)
{
	char path[NAME_CAP];
	make_name(path, pid, "stat");
	return openat(proc, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

/* The kernel gives the line in one read. */
int proc_read_stat_again(int stat_fd, struct proc_stat *stat)
{
	char bytes[STAT_CAP];
	ssize_t n;
	do
		n = pread(stat_fd, bytes, sizeof(bytes), 0);
	while (n < 0 && errno == EINTR);
	return result_of(n, n > 0 && proc_parse_stat(bytes, (size_t)n, stat));
}

int64_t proc_read_resident(int proc, uint32_t pid)
{
	char bytes[SMALL_CAP];
	ssize_t n = read_file(proc, pid, "statm", bytes, sizeof(bytes));
	return n < 0 ? -1 : proc_parse_resident(bytes, (size_t)n);
}

uint64_t proc_start_ticks(int proc, uint32_t pid)
{
	struct proc_stat stat;
	return proc_read_stat(proc, pid, &stat) == 0 ? stat.start_ticks : 0;
}

int proc_read_status(int proc, uint32_t pid, struct proc_status *status)
{
	char bytes[STATUS_CAP];
	ssize_t n = read_file(proc, pid, "status", bytes, sizeof(bytes));
	proc_parse_status(bytes, n < 0 ? 0 : (size_t)n, status);
	return result_of(n, n > 0);
}

int proc_read_rollup(int proc, uint32_t pid, struct proc_rollup *rollup)
{
	char bytes[SMALL_CAP];
	ssize_t n = wait_for_file(proc, pid, "smaps_rollup", bytes, sizeof(bytes));
	return result_of(n, n > 0 && proc_parse_rollup(bytes, (size_t)n, rollup));
}

int proc_read_io(int proc, uint32_t pid, struct proc_io *io)
{
	char bytes[SMALL_CAP];
	ssize_t n = wait_for_file(proc, pid, "io", bytes, sizeof(bytes));
	return result_of(n, n > 0 && proc_parse_io(bytes, (size_t)n, io));
}

int64_t proc_read_login_uid(int proc, uint32_t pid)
{
	char bytes[SMALL_CAP];
	uint64_t uid = 0;
	ssize_t n = read_file(proc, pid, "loginuid", bytes, sizeof(bytes));
	/* The largest number means that there is no login uid. */
	bool known = n > 0 && proc_parse_number(bytes, (size_t)n, &uid) && uid < UINT32_MAX;
	return known ? (int64_t)uid : -1;
}

/* The host's namespace maps all uids to themselves, in one line. */
int proc_read_user_namespace(int proc, uint32_t pid)
{
	char bytes[SMALL_CAP];
	unsigned inner = 0, outer = 0, count = 0;
	int end = 0;
	ssize_t n = read_file(proc, pid, "uid_map", bytes, sizeof(bytes));
	if (n <= 0)
		return -1;
	bool one = sscanf(bytes, "%u %u %u %n", &inner, &outer, &count, &end) == 3 && end == n;
	return !one || inner != 0 || outer != 0 || count != UINT32_MAX;
}

ssize_t proc_read_arguments(int proc, uint32_t pid, char *dst, size_t cap)
{
	return wait_for_file(proc, pid, "cmdline", dst, cap);
}

ssize_t proc_read_cgroup(int proc, uint32_t pid, char *dst, size_t cap)
{
	return read_file(proc, pid, "cgroup", dst, cap);
}

ssize_t proc_read_environment(int proc, uint32_t pid, char *dst, size_t cap)
{
	return wait_for_file(proc, pid, "environ", dst, cap);
}

ssize_t proc_read_program(int proc, uint32_t pid, char *dst, size_t cap)
{
	char path[NAME_CAP];
	make_name(path, pid, "exe");
	return readlinkat(proc, path, dst, cap);
}

int proc_stat_program(int proc, uint32_t pid, struct stat *st)
{
	char path[NAME_CAP];
	struct statx now;
	make_name(path, pid, "exe");
	/* What the kernel has: a server of a network file system may never answer. */
	if (statx(proc, path, AT_STATX_DONT_SYNC, STATX_UID | STATX_MODE, &now) != 0)
		return -1;
	*st = (struct stat){ .st_uid = now.stx_uid, .st_mode = now.stx_mode };
	return 0;
}

void proc_name_in(char *dst, size_t cap, int directory, const char *name)
{
	snprintf(dst, cap, "/proc/self/fd/%d/%s", directory, name);
}
