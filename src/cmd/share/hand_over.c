/* Finds and executes the program gua-NAME of a command that is not built in. */
#include "cmd/share/hand_over.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "version.h"

/* Allows only letters, digits and dashes, so that a name cannot leave the directory. */
static int is_name(const char *name)
{
	return *name && *name != '-' &&
	       name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0';
}

/* Writes the path of the program into `path` if the directory contains it. */
static bool is_in(const char *directory, const char *name, char path[PATH_MAX])
{
	int len = snprintf(path, PATH_MAX, "%s/gua-%s", directory, name);
	return len > 0 && len < PATH_MAX && access(path, X_OK) == 0;
}

/* Whether both names refer to the same directory, also through links. */
static bool is_same(const char *one, const char *other)
{
	struct stat a, b;
	return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

bool hand_over_self(char path[PATH_MAX])
{
	ssize_t len = readlink("/proc/self/exe", path, PATH_MAX - 1);
	path[len > 0 ? len : 0] = '\0';
	return len > 0;
}

/* Finds the program of a command that belongs to the running program. A program in a build tree
 * never uses an installed one, which may have another version. */
static bool find(const char *name, char path[PATH_MAX])
{
	char self[PATH_MAX];
	if (!is_name(name) || !hand_over_self(self))
		return false;
	char *slash = strrchr(self, '/');
	if (!slash)
		return false;
	*slash = '\0';
	if (is_in(self, name, path))
		return true;
	if (is_same(self, GUA_BIN))
		return is_in(GUA_LIBEXEC, name, path);
	/* The installation may have been moved. */
	snprintf(slash, sizeof(self) - (size_t)(slash - self), "/../libexec/gua");
	return is_in(self, name, path);
}

bool hand_over_path(const char *name, char path[PATH_MAX])
{
	return find(name, path);
}

bool hand_over_finds(const char *name)
{
	char path[PATH_MAX];
	return find(name, path);
}

void hand_over(const char *name, char **argv)
{
	char path[PATH_MAX];
	if (find(name, path))
		execv(path, argv);
}
