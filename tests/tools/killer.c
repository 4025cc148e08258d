/* Preloaded into a program (LD_PRELOAD): kills it, as kill -9 does, in place of its Nth write
 * to a database's log, or to another file of it. In virtual time that is the same moment every
 * time, in the middle of a transaction or at its end. SQLite writes with pwrite64().
 *
 * KILLER_WRITES=N
 * KILLER_FILE=TEXT  what is in the path of the file; without it, a log is meant */
#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long writes;

static int is_log(int fd)
{
	char link[64], path[PATH_MAX];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, sizeof(path) - 1);
	const char *part = getenv("KILLER_FILE");
	path[n > 0 ? n : 0] = '\0';
	if (part)
		return strstr(path, part) != NULL;
	return n > 4 && strncmp(path + n - 4, "-wal", 4) == 0;
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at)
{
	ssize_t (*next)(int, const void *, size_t, off64_t) =
		(ssize_t(*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64");
	const char *limit = getenv("KILLER_WRITES");
	if (limit && is_log(fd) && ++writes == atol(limit))
		kill(getpid(), SIGKILL);
	return next(fd, data, size, at);
}
