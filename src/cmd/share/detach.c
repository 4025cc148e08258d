/* Starts the recorder in the background: two forks, a new session, and a pipe that reports
 * whether the start succeeded. */
#include "cmd/share/detach.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"

bool detach_is_waited_for(void)
{
	const char *pid = secure_getenv("SYSTEMD_EXEC_PID");
	return getpid() == 1 || (pid && strtol(pid, NULL, 10) == getpid());
}

/* Opens a file for writing, and creates it with `mode`. Another user may have put something
 * there first, so links are not followed and the call does not wait. */
static int open_plain(const char *path, int flags, mode_t mode)
{
	struct stat st;
	int fd = open(
		path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, mode);
	if (fd < 0)
		return -1;
	bool plain = fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISCHR(st.st_mode));
	bool own = plain && (geteuid() == 0 || st.st_uid == geteuid() || st.st_uid == 0);
	if (own)
		return fd;
	close(fd);
	errno = plain ? EPERM : EINVAL;
	return -1;
}

static int open_log(const char *path, struct err *e)
{
	int rc = file_make_parent(path, 0750, e);
	if (rc)
		return rc;
	int fd = open_plain(path, O_APPEND, 0640);
	if (fd < 0)
		return err_set(e, ERR_WORLD, "cannot open the log file %s: %s", path,
			errno == EINVAL || errno == ENXIO ? "it is not a regular file"
			: errno == EPERM		  ? "it belongs to another user"
							  : strerror(errno));
	return fd;
}

int detach_open_log(const char *path, struct err *e)
{
	int log = open_log(path, e);
	if (log < 0)
		return log;
	dup2(log, STDERR_FILENO);
	close(log);
	return 0;
}

int detach(struct detached *d, const char *log_file, struct err *e)
{
	int ends[2];
	int log = open_log(log_file, e);
	if (log < 0)
		return log;
	if (pipe2(ends, O_CLOEXEC) != 0) {
		close(log);
		return err_set(e, ERR_WORLD, "cannot make a pipe: %s", strerror(errno));
	}
	pid_t first = fork();
	if (first < 0)
		return err_set(e, ERR_WORLD, "cannot fork: %s", strerror(errno));
	if (first > 0) {
		close(log);
		close(ends[1]);
		waitpid(first, NULL, 0);
		*d = (struct detached){ .fd = ends[0] };
		return 1;
	}
	setsid();
	/* A second fork: the process is not a session leader, so it cannot get a terminal. */
	if (fork() != 0)
		_exit(0);
	close(ends[0]);
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	dup2(nothing, STDIN_FILENO);
	dup2(nothing, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
	close(nothing);
	close(log);
	umask(027);
	*d = (struct detached){ .fd = ends[1] };
	return chdir("/") == 0 ? 0
			       : err_set(e, ERR_WORLD, "cannot enter /: %s", strerror(errno));
}

/* Reads the message from the pipe: "PID\n", or "!CODE text". */
int detach_wait(struct detached *d, struct err *e)
{
	char word[sizeof(e->text) + 16];
	size_t len = 0;
	for (;;) {
		ssize_t n = read(d->fd, word + len, sizeof(word) - 1 - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	close(d->fd);
	word[len] = '\0';
	int code = 0, at = 0;
	if (sscanf(word, "!%d %n", &code, &at) == 1)
		return err_set(e, code, "%s", word + at);
	if (sscanf(word, "%d", &d->pid) != 1)
		return err_set(e, ERR_WORLD,
			"the recorder ended before it had started; see its log file");
	return 0;
}

static void say(struct detached *d, const char *word)
{
	if (d->fd < 0)
		return;
	ssize_t n = write(d->fd, word, strlen(word));
	(void)n; /* the parent has ended: nothing to report to */
	close(d->fd);
	d->fd = -1;
}

void detach_ready(struct detached *d)
{
	char word[32];
	snprintf(word, sizeof(word), "%d\n", (int)getpid());
	say(d, word);
}

void detach_failed(struct detached *d, const struct err *e)
{
	char word[sizeof(e->text) + 16];
	snprintf(word, sizeof(word), "!%d %s", e->code, e->text);
	say(d, word);
}

bool detach_write_pid(const char *path)
{
	struct err e = { 0 };
	struct stat st;
	int fd = file_make_parent(path, 0755, &e) == 0 ? open_plain(path, O_TRUNC, 0644) : -1;
	if (fd < 0 || dprintf(fd, "%d\n", (int)getpid()) < 0)
		log_warning("cannot write the pid file %s: %s", path, strerror(errno));
	/* A device such as /dev/null is not removed. */
	bool file = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
	if (fd >= 0)
		close(fd);
	return file;
}
