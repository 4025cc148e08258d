/* Finds and executes the program gua-NAME of a command that is not built in. */
#include "cmd/share/hand_over.h"

#include "version.h"

/* Writes the path of the program into `path` if the directory contains it. */
static bool is_in(const char *directory, const char *name, char path[PATH_MAX])
{
	return file_path(path, "%s/gua-%s", directory, name) && access(path, X_OK) == 0;
}

bool hand_over_self(char path[PATH_MAX])
{
	ssize_t len = readlink("/proc/self/exe", path, PATH_MAX - 1);
	path[len > 0 ? len : 0] = '\0';
	return len > 0;
}

/* Finds the program of a command that belongs to the running program. A program in a build tree
 * never uses an installed one, which may have another version. */
bool hand_over_path(const char *name, char path[PATH_MAX])
{
	char self[PATH_MAX];
	/* Only letters, digits and dashes, so that a name cannot leave the directory. */
	if (!*name || *name == '-' ||
		name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-")])
		return false;
	if (!hand_over_self(self))
		return false;
	char *slash = strrchr(self, '/');
	if (!slash)
		return false;
	*slash = '\0';
	if (is_in(self, name, path))
		return true;
	/* The same directory, perhaps through links. */
	struct stat a, b;
	if (stat(self, &a) == 0 && stat(GUA_BIN, &b) == 0 && a.st_dev == b.st_dev &&
		a.st_ino == b.st_ino)
		return is_in(GUA_LIBEXEC, name, path);
	/* The installation may have been moved. */
	snprintf(slash, sizeof(self) - (size_t)(slash - self), "/../libexec/gua");
	return is_in(self, name, path);
}

int hand_over(const char *name, char **argv, struct err *e)
{
	char path[PATH_MAX], *word = argv[0];
	if (hand_over_path(name, path)) {
		if (strcmp(word, name) == 0) /* ps shows whose process it is */
			argv[0] = path;
		execv(path, argv);
		argv[0] = word;
	}
	return err_set(e, ERR_WORLD,
		"the program gua-%s is not installed; install the package gua-%s, or build gua "
		"with the option %s",
		name, name, name);
}
