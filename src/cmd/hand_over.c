/* Finding and becoming the program of a command that is not built in. */
#include "cmd/hand_over.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "version.h"

/* Names are letters, digits and dashes: nothing that leads out of the directory. */
static int is_name(const char *name)
{
	return *name && *name != '-' &&
	       name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0';
}

static void become(const char *directory, const char *name, char **argv)
{
	char path[PATH_MAX];
	int len = snprintf(path, sizeof(path), "%s/gua-%s", directory, name);
	if (len > 0 && (size_t)len < sizeof(path))
		execv(path, argv);
}

void hand_over(const char *name, char **argv)
{
	char self[PATH_MAX];
	if (!is_name(name))
		return;
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	self[len > 0 ? len : 0] = '\0';
	char *slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	/* What belongs to this program comes first: in a build tree that of the tree, and an
	 * installation may have been moved. */
	if (slash) {
		become(self, name, argv);
		size_t room = sizeof(self) - (size_t)(slash - self);
		snprintf(slash, room, "/../libexec/gua");
		become(self, name, argv);
	}
	become(GUA_LIBEXEC, name, argv);
}
