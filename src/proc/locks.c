/* Asks fcntl(2), and reads /proc/locks: "1: FLOCK  ADVISORY  WRITE 123 fe:00:4711 0 EOF". */
#include "proc/locks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "proc/proc.h"

enum { LINE_CAP = 256, LOCKS_CAP = 1 << 20 };

bool proc_record_lock(int fd, const struct flock *wanted, pid_t *pid)
{
	struct flock ask = *wanted;
	*pid = 0;
	if (fd < 0 || fcntl(fd, F_GETLK, &ask) != 0)
		return false;
	if (ask.l_type != F_UNLCK)
		*pid = ask.l_pid > 0 ? ask.l_pid : LOCK_UNSEEN;
	return true;
}

bool proc_lock_owner(struct lock_owner *o, int proc, int64_t pid)
{
	struct proc_stat stat;
	struct proc_status status;
	int process = pid > 0 ? proc_open_process(proc, (uint32_t)pid) : -1;
	bool read = process >= 0 && proc_read_stat(process, 0, &stat) == 0 &&
		    proc_read_status(process, 0, &status) == 0;
	if (process >= 0)
		close(process);
	if (!read)
		return false;
	*o = (struct lock_owner){ .uid = status.uid, .start_ticks = stat.start_ticks };
	memcpy(o->comm, stat.comm, stat.comm_len);
	str_escape(o->name, sizeof(o->name), stat.comm, stat.comm_len);
	return true;
}

/* The pid of one line, or -1 if it is not a lock on the file. A line with "->" waits for one.
 */
static int64_t parse_line(const char *line, const struct proc_file *file)
{
	int64_t pid = -1;
	unsigned major_number = 0, minor_number = 0;
	uint64_t inode = 0;
	if (sscanf(line, "%*15[0-9]: FLOCK %*15s %*15s %12" SCNd64 " %8x:%8x:%20" SCNu64, &pid,
		    &major_number, &minor_number, &inode) != 4)
		return -1;
	bool same = major_number == major(file->device) &&
		    minor_number == minor(file->device) && inode == file->inode;
	return same && pid > 0 && pid <= INT32_MAX ? pid : -1;
}

int64_t proc_parse_locks(const char *bytes, size_t len, const struct proc_file *file)
{
	for (const char *at = bytes, *end; at < bytes + len; at = end + 1) {
		char line[LINE_CAP];
		end = memchr(at, '\n', len - (size_t)(at - bytes));
		if (!end)
			return -1;
		size_t n = (size_t)(end - at);
		if (n >= sizeof(line))
			continue;
		memcpy(line, at, n);
		line[n] = '\0';
		int64_t pid = parse_line(line, file);
		if (pid > 0)
			return pid;
	}
	return -1;
}

int64_t proc_lock_pid(int proc, const struct proc_file *file)
{
	char *bytes = malloc(LOCKS_CAP);
	ssize_t n = bytes ? file_read_at(proc, "locks", bytes, LOCKS_CAP) : -1;
	int64_t pid = n > 0 ? proc_parse_locks(bytes, (size_t)n, file) : -1;
	free(bytes);
	return pid;
}
