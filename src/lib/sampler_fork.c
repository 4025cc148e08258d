/* The child process that samples. It is forked from the caller's program without an exec, so it
 * closes the program's files, runs none of its handlers, and ends when the program ends. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/sampler.h"

/* Keeps `n` files, moved to 3, 4 ...; standard input and output become /dev/null. */
static void keep_files(int *keep, int n)
{
	enum { ABOVE = 64 };
	for (int i = 0; i < n; i++)
		if (keep[i] >= 0)
			keep[i] = fcntl(keep[i], F_DUPFD, ABOVE);
	int null = open("/dev/null", O_RDWR);
	for (int i = 0; i < 3; i++)
		if (null >= 0)
			dup2(null, i);
	for (int i = 0; i < n; i++)
		if (keep[i] >= 0)
			keep[i] = dup2(keep[i], 3 + i);
	syscall(SYS_close_range, 3U + (unsigned)n, ~0U, 0U); /* the function needs glibc 2.34 */
}

static void tell(int fd)
{
	uint64_t one = 1;
	if (write(fd, &one, sizeof(one)) < 0)
		return; /* the caller does not wait any more */
}

static void child(const struct tracker_options *given, struct image *im, int *files)
{
	struct tracker_options o = *given;
	struct tracker *t = NULL;
	pid_t self = getpid();
	prctl(PR_SET_NAME, TRACK_HELPER_NAME);
	keep_files(files, 3);
	o.excluded = &self;
	o.n_excluded = 1;
	o.source.clock = NULL;
	int rc = tracker_open(&t, &o, &im->err);
	if (!rc)
		image_publish(im, t, false);
	tell(files[1]);
	if (!rc && sampler_run(t, im, files[0], files[2])) {
		tracker_stop(t);
		image_publish(im, t, true);
	}
	/* Run no exit handlers: they belong to the program. */
	syscall(SYS_exit_group, 0);
}

pid_t sampler_fork(const struct tracker_options *o, struct image *im, int stop_fd, int ready_fd)
{
	sigset_t all, before;
	/* PR_SET_PDEATHSIG would report the end of the forking thread, not of the process. */
	int parent_fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid_t pid = fork();
	if (pid == 0) {
		int files[] = { stop_fd, ready_fd, parent_fd };
		child(o, im, files);
	}
	int saved = errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (parent_fd >= 0)
		close(parent_fd);
	errno = saved;
	return pid;
}
