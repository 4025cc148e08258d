/* Finds what denies the access, the file or its directory, and names its group. Names come from
 * the local files: a name service could block. */
#include "store/denied.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "model/process.h"
#include "proc/user.h"

enum { NAMES_MAX = 4 << 20 };

/* The group that may read the stores of the service; dist/gua.sysusers makes it. */
#define SERVICE_GROUP "gua"

/* The name of an id in a file like /etc/passwd; /etc/group has its ids in the same place. */
static bool find_name(const char *file, uint32_t id, char *name, size_t cap)
{
	char *bytes = NULL, raw[USER_CAP];
	size_t len = 0;
	struct err unread = { 0 };
	bool found = file_read_all(file, NAMES_MAX, &bytes, &len, &unread) == 0 &&
		     passwd_find(bytes, len, id, raw, sizeof(raw));
	if (found)
		text_escape(name, cap, raw, strlen(raw));
	free(bytes);
	return found;
}

/* What denies the access: the file, or its directory if that cannot be entered. */
struct barrier {
	char path[PATH_MAX];
	bool directory;
	struct stat st;
};

static bool find_barrier(struct barrier *b, const char *path)
{
	text_copy(b->path, sizeof(b->path), path);
	if (stat(path, &b->st) == 0)
		return true;
	char *slash = strrchr(b->path, '/');
	if (errno != EACCES || !slash || slash == b->path)
		return false;
	*slash = '\0';
	b->directory = true;
	return stat(b->path, &b->st) == 0;
}

/* Whether members of its group get through. */
static bool lets_group_in(const struct barrier *b)
{
	return b->st.st_mode & (b->directory ? S_IXGRP : S_IRGRP);
}

/* The advice names commands for root: it must not open another program's file to a group. */
static bool is_named_as_store(const char *path)
{
	size_t len = strlen(path);
	return len > 3 && strcmp(path + len - 3, ".db") == 0;
}

int store_denied(const char *path, struct err *e)
{
	struct barrier b = { 0 };
	char group[USER_CAP] = "", user[USER_CAP] = "NAME";
	err_set(e, ERR_WORLD, "cannot open the store %s: %s", path, strerror(EACCES));
	struct err why = *e;
	if (!is_named_as_store(path) || !find_barrier(&b, path) || !lets_group_in(&b))
		return e->code;
	find_name("/etc/passwd", geteuid(), user, sizeof(user));
	if (b.st.st_gid == 0)
		return err_set(e, ERR_WORLD,
			"%s; only root may read it. To share it, run as root: groupadd -f "
			"" SERVICE_GROUP "; chgrp -R " SERVICE_GROUP
			" %s%s; usermod -aG " SERVICE_GROUP " %s (then log in again)",
			why.text, b.path, b.directory ? "" : "*", user);
	if (!find_name("/etc/group", b.st.st_gid, group, sizeof(group)))
		snprintf(group, sizeof(group), "%u", (unsigned)b.st.st_gid);
	return err_set(e, ERR_WORLD,
		"%s; members of the group %s may read it. Run as root: usermod -aG %s %s (then "
		"log in again)",
		why.text, group, group, user);
}
