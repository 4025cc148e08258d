/* Finds and executes the program gua-NAME of a command that is not built in. */
#include "cmd/hand_over.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "version.h"

/* Only letters, digits and dashes: a name cannot lead out of the directory. */
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

/* Finds the program of a command. */
static bool find(const char *name, char path[PATH_MAX])
{
	char self[PATH_MAX];
	if (!is_name(name))
		return false;
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	self[len > 0 ? len : 0] = '\0';
	char *slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	/* Programs beside this one come first: in a build tree those of the tree, and an
	 * installation may have been moved. */
	if (slash && is_in(self, name, path))
		return true;
	if (slash)
		snprintf(slash, sizeof(self) - (size_t)(slash - self), "/../libexec/gua");
	return (slash && is_in(self, name, path)) || is_in(GUA_LIBEXEC, name, path);
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
