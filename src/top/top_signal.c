/* Sends a signal through a pidfd, after a check of the start time: by the time a key is
 * pressed, the pid may belong to another process. */
#include "top/top_signal.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proc/proc.h"

static bool is_same(const struct process_id *id)
{
	int proc = -1;
	if (proc_open(&proc, "", NULL) != 0)
		return false;
	uint64_t start_ticks = proc_start_ticks(proc, id->pid);
	close(proc);
	return start_ticks == id->start_ticks;
}

int top_signal_send(const struct process_id *id, int number, struct err *e)
{
	int rc = 0;
	if (id->pid <= 1 || id->start_ticks == 0)
		return err_set(e, ERR_WORLD,
			"cannot signal process %u: it cannot be identified", id->pid);
	int fd = (int)syscall(SYS_pidfd_open, (pid_t)id->pid, 0);
	if (fd < 0)
		return err_set(e, ERR_WORLD, "cannot signal process %u: %s", id->pid,
			errno == ESRCH ? "it has ended" : strerror(errno));
	/* A pidfd always refers to the same process: if the start time still matches, it is the
	 * right one. */
	if (!is_same(id))
		rc = err_set(e, ERR_WORLD,
			"process %u has ended and another process has its pid: not sent",
			id->pid);
	else if (syscall(SYS_pidfd_send_signal, fd, number, NULL, 0) != 0)
		rc = err_set(
			e, ERR_WORLD, "cannot signal process %u: %s", id->pid, strerror(errno));
	close(fd);
	return rc;
}
