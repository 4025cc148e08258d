/* Lock files of gua pick, in a directory that all users share. */
#include "cmd/pick_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"

#define SHARED_DIRECTORY "/run/lock/gua"
enum { NAME_CAP = 128 };

/* Opens a directory, and creates it with `mode` if it is missing. Symbolic links are not
 * followed, because another user may have created them. */
static int open_directory(const char *path, mode_t mode)
{
	bool made = mkdir(path, mode) == 0;
	if (!made && errno != EEXIST)
		return -1;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* The umask may have removed bits. */
	if (fd >= 0 && made && fchmod(fd, mode) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Whether all users may create files there, and no user may remove those of others. */
static bool is_shared(int fd)
{
	struct stat s;
	return fstat(fd, &s) == 0 && (s.st_mode & 01777) == 01777;
}

static int own_directory(const char *runtime, struct err *e)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/gua/pick", runtime);
	if (n < 0 || (size_t)n >= sizeof(path))
		return err_set(e, ERR_USAGE, "XDG_RUNTIME_DIR is too long");
	int rc = file_make_parent(path, 0700, e);
	if (rc)
		return rc;
	int fd = open_directory(path, 0700);
	return fd >= 0 ? fd
		       : err_set(e, ERR_WORLD, "cannot open %s: %s", path, strerror(errno));
}

int pick_lock_directory(const char *asked, bool *shared, struct err *e)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	const char *path = asked ? asked : SHARED_DIRECTORY;
	int fd = open_directory(path, 01777);
	int error = errno;
	*shared = fd >= 0 && is_shared(fd);
	if (fd >= 0 && (asked || *shared))
		return fd;
	if (fd >= 0)
		close(fd);
	if (!asked && runtime && runtime[0] == '/')
		return own_directory(runtime, e);
	if (fd >= 0)
		return err_set(e, ERR_WORLD,
			"%s is not a directory that all users share (mode 1777); give another "
			"one with --lock-dir",
			path);
	return err_set(e, ERR_WORLD,
		"cannot create %s for the locks: %s; give another directory with --lock-dir",
		path, strerror(error));
}

/* Makes a file name: other characters than letters, digits and a few signs become '_'. */
static void make_name(char name[NAME_CAP], const char *text)
{
	size_t i = 0;
	for (; i < NAME_CAP - 1 && text[i]; i++) {
		char c = text[i];
		bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
			     (c >= 'A' && c <= 'Z') || c == '-';
		name[i] = (char)(plain ? c : '_');
	}
	name[i] = '\0';
}

/* Opens a lock file for reading, which is enough for flock(). So another user's file can be
 * used, even if the kernel forbids O_CREAT on it in shared directories. */
static int open_file(int directory, const char *name)
{
	int fd = -1;
	for (int tries = 0; tries < 3 && fd < 0; tries++) {
		fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (fd >= 0 || errno != ENOENT)
			break;
		fd = openat(directory, name, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
		if (fd >= 0)
			(void)fchmod(fd, 0444); /* independent of the umask */
		else if (errno != EEXIST)
			break;
	}
	return fd;
}

int pick_lock_take(int directory, const char *text, bool wait, struct err *e)
{
	char name[NAME_CAP];
	struct stat s;
	make_name(name, text);
	int fd = open_file(directory, name);
	if (fd < 0)
		return err_set(
			e, ERR_WORLD, "cannot open the lock %s: %s", name, strerror(errno));
	if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode)) {
		close(fd);
		return err_set(e, ERR_WORLD, "the lock %s is not a regular file", name);
	}
	int rc;
	do
		rc = flock(fd, LOCK_EX | (wait ? 0 : LOCK_NB));
	while (rc != 0 && errno == EINTR);
	if (rc == 0)
		return fd;
	int code = errno == EWOULDBLOCK ? ERR_BUSY : ERR_WORLD;
	err_set(e, code, "cannot lock %s: %s", name, strerror(errno));
	close(fd);
	return code;
}

/* Closes the standard streams, so that readers of the output do not wait for this process. */
static void let_go_of_terminal(void)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd <= 2; fd++)
		if (nothing < 0 || dup2(nothing, fd) < 0)
			close(fd);
	if (nothing > 2)
		close(nothing);
	setsid();
	(void)!chdir("/");
}

int pick_lock_keep(int64_t ms, struct err *e)
{
	if (ms <= 0)
		return 0;
	pid_t pid = fork();
	if (pid < 0)
		return err_set(e, ERR_WORLD, "cannot hold the cards: %s", strerror(errno));
	if (pid > 0)
		return 0;
	let_go_of_terminal();
	struct timespec left = { ms / 1000, ms % 1000 * 1000000 };
	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		;
	_exit(0);
}
