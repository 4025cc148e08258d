/* Opens the directory of the locks: the one that all users share, or a private one. */
#include "cmd/pick_place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"

#define SHARED_DIRECTORY "/run/lock/gua"
/* Sticky: nobody can remove or rename the files of others, except the directory's owner. */
enum { SHARED_MODE = 01777, PRIVATE_MODE = 0700 };

/* Opens a directory, and creates it with `mode` (0: not) if it is missing. Symbolic links are
 * not followed, because another user may have created them. */
static int open_directory(const char *path, mode_t mode)
{
	bool made = mode && mkdir(path, mode) == 0;
	if (mode && !made && errno != EEXIST)
		return -1;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* The umask may have removed bits. */
	if (fd >= 0 && made && fchmod(fd, mode) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Opens the directory of all users. On failure returns -1, and writes what is wrong with it. */
static int open_shared(const char *path, char *why, size_t cap)
{
	struct stat s;
	int fd = open_directory(path, geteuid() == 0 ? SHARED_MODE : 0);
	if (fd < 0 || fstat(fd, &s) != 0)
		snprintf(why, cap, "%s: %s", path, strerror(errno));
	else if (s.st_uid != 0)
		snprintf(why, cap, "%s does not belong to root", path);
	else if ((s.st_mode & 07777) != SHARED_MODE)
		snprintf(why, cap, "%s does not have mode 1777", path);
	else
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Opens a directory that nobody else can write to. */
static int open_private(const char *path, struct err *e)
{
	struct stat s;
	int fd = open_directory(path, PRIVATE_MODE);
	if (fd < 0 || fstat(fd, &s) != 0)
		err_set(e, ERR_WORLD,
			"cannot open %s for the locks: %s; give another directory with "
			"--lock-dir",
			path, strerror(errno));
	else if (s.st_uid != geteuid() || (s.st_mode & 022))
		err_set(e, ERR_WORLD,
			"%s belongs to another user or others may write to it; give another "
			"directory for the locks with --lock-dir",
			path);
	else
		return fd;
	if (fd >= 0)
		close(fd);
	return ERR_WORLD;
}

/* Opens $XDG_RUNTIME_DIR/gua/pick or, if that is not possible, /tmp/gua-pick-UID. */
static int open_own(const char *root, struct err *e)
{
	char path[PATH_MAX];
	struct err ignored = { 0 };
	const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
	int n = runtime && runtime[0] == '/'
			? snprintf(path, sizeof(path), "%s/gua/pick", runtime)
			: -1;
	if (n > 0 && (size_t)n < sizeof(path) && access(runtime, W_OK) == 0 &&
		file_make_parent(path, PRIVATE_MODE, &ignored) == 0) {
		int fd = open_private(path, &ignored);
		if (fd >= 0)
			return fd;
	}
	n = snprintf(path, sizeof(path), "%s/tmp/gua-pick-%u", root, (unsigned)geteuid());
	if (n < 0 || (size_t)n >= sizeof(path))
		return err_set(e, ERR_USAGE, "the path of the locks is too long");
	return open_private(path, e);
}

static int open_asked(int *fd, const char *path, struct err *e)
{
	struct stat s;
	*fd = open_directory(path, SHARED_MODE);
	if (*fd < 0)
		return err_set(e, ERR_WORLD, "cannot open %s for the locks: %s", path,
			strerror(errno));
	if (fstat(*fd, &s) == 0 && s.st_uid != 0 && s.st_uid != geteuid())
		fprintf(stderr,
			"gua pick: the directory of the locks belongs to uid %u, who can "
			"remove locks of others\n",
			(unsigned)s.st_uid);
	return 0;
}

int pick_place_open(int *fd, const char *asked, const char *root, struct err *e)
{
	struct err own = { 0 };
	char path[PATH_MAX], why[PATH_MAX + 64], safe[PATH_MAX];
	if (asked)
		return open_asked(fd, asked, e);
	int n = snprintf(path, sizeof(path), "%s" SHARED_DIRECTORY, root);
	if (n < 0 || (size_t)n >= sizeof(path))
		return err_set(e, ERR_USAGE, "the path of the locks is too long");
	*fd = open_shared(path, why, sizeof(why));
	if (*fd >= 0)
		return 0;
	*fd = open_own(root, &own);
	text_escape(safe, sizeof(safe), why, strlen(why));
	if (*fd >= 0)
		fprintf(stderr,
			"gua pick: picks of other users are not seen (%s); an administrator "
			"can create the directory: systemd-tmpfiles --create gua.conf\n",
			safe);
	else
		fprintf(stderr,
			"gua pick: the cards are not reserved, and other picks may choose them "
			"too (%s; %s)\n",
			safe, own.text);
	*fd = *fd >= 0 ? *fd : -1;
	return 0;
}
