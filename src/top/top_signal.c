/* A pid may be somebody else's by the time a key is pressed: a pidfd and a start time are not.
 */
#include "top/top_signal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "proc/procread.h"

static bool is_same(const struct process_id *id)
{
	char path[64], bytes[2048];
	struct stat_line s;
	snprintf(path, sizeof(path), "/proc/%u/stat", id->pid);
	ssize_t n = file_read_at(AT_FDCWD, path, bytes, sizeof(bytes));
	return n > 0 && stat_line_parse(bytes, (size_t)n, &s) &&
	       s.start_ticks == id->start_ticks;
}

int top_signal_send(const struct process_id *id, int number, struct err *e)
{
	int rc = 0;
	if (id->pid <= 1 || id->start_ticks == 0)
		return err_set(e, ERR_WORLD, "process %u is not known well enough to signal it",
			id->pid);
	int fd = (int)syscall(SYS_pidfd_open, (pid_t)id->pid, 0);
	if (fd < 0)
		return err_set(e, ERR_WORLD, "cannot signal process %u: %s", id->pid,
			errno == ESRCH ? "it has ended" : strerror(errno));
	/* What the pidfd holds cannot change any more: when the start time is the same now, it
	 * is that process. */
	if (!is_same(id))
		rc = err_set(e, ERR_WORLD,
			"process %u has ended, and the pid is another's: not sent", id->pid);
	else if (syscall(SYS_pidfd_send_signal, fd, number, NULL, 0) != 0)
		rc = err_set(
			e, ERR_WORLD, "cannot signal process %u: %s", id->pid, strerror(errno));
	close(fd);
	return rc;
}
