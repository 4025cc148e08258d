/* Removes files and directories that a failed command has created. */
#include "cmd/share/leftover.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"

void leftover_note(struct leftover *l, const char *path)
{
	struct stat st;
	char above[PATH_MAX];
	*l = (struct leftover){ 0 };
	l->fresh = text_copy(l->path, sizeof(l->path), path) && lstat(path, &st) != 0;
	text_copy(above, sizeof(above), path);
	for (char *slash = strrchr(above, '/'); slash && slash != above && !l->kept;
		slash = strrchr(above, '/')) {
		*slash = '\0';
		if (stat(above, &st) == 0)
			l->kept = strlen(above);
	}
}

void leftover_remove(const struct leftover *l)
{
	char above[PATH_MAX];
	if (!l->fresh || unlink(l->path) != 0)
		return;
	text_copy(above, sizeof(above), l->path);
	for (char *slash = strrchr(above, '/'); slash && (size_t)(slash - above) > l->kept;
		slash = strrchr(above, '/')) {
		*slash = '\0';
		if (rmdir(above) != 0)
			return;
	}
}
