/* The recorder's lock: a POSIX record lock, which gives the pid of its holder. */
#include "store/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/str.h"

/* STORE.lock, beside the file that a symbolic link points to. */
static int lock_path(char *path, size_t cap, const char *db, struct err *e)
{
	char real[PATH_MAX];
	const char *name = realpath(db, real) ? real : db;
	int n = snprintf(path, cap, "%s.lock", name);
	if (n < 0 || (size_t)n >= cap)
		return err_set(e, ERR_USAGE, "the path %s is too long", db);
	return 0;
}

static pid_t holder_of(int fd)
{
	struct flock ask = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	if (fcntl(fd, F_GETLK, &ask) != 0 || ask.l_type == F_UNLCK)
		return 0;
	return ask.l_pid > 0 ? ask.l_pid : LOCK_ELSEWHERE;
}

/* A recorder that could not start deletes its lock file. A lock on the deleted file protects
 * nothing. */
static bool is_still_there(int fd, const char *path)
{
	struct stat held, there;
	return fstat(fd, &held) == 0 && stat(path, &there) == 0 &&
	       held.st_ino == there.st_ino && held.st_dev == there.st_dev;
}

static void refuse(pid_t holder, const char *db, struct err *e)
{
	char who[40] = "outside of this container";
	if (holder != LOCK_ELSEWHERE)
		snprintf(who, sizeof(who), "(pid %d)", (int)holder);
	err_set(e, ERR_WORLD, "a recorder %s is already writing %s; see: gua status --db %s",
		who, db, db);
}

int lock_take(const char *db, int *fd, struct err *e)
{
	char path[PATH_MAX];
	int rc = file_make_parent(db, 0750, e);
	if (!rc)
		rc = lock_path(path, sizeof(path), db, e);
	if (rc)
		return rc;
	int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (lock < 0)
		return err_set(e, ERR_WORLD, "cannot open %s: %s", path, strerror(errno));
	struct flock want = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	if (fcntl(lock, F_SETLK, &want) != 0) {
		if (errno == EACCES || errno == EAGAIN)
			refuse(holder_of(lock), db, e);
		else
			err_set(e, ERR_WORLD, "cannot lock %s: %s", path, strerror(errno));
		close(lock);
		return e ? e->code : ERR_WORLD;
	}
	if (!is_still_there(lock, path)) {
		close(lock);
		return lock_take(db, fd, e);
	}
	lock_publish(lock, NULL, 0);
	*fd = lock;
	return 0;
}

/* Far beyond SQLite's own lock bytes, and beyond every page. */
enum { STORE_BYTE_SHIFT = 62 };

int lock_store(int fd, const char *db, struct err *e)
{
	struct flock want = { .l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = (off_t)1 << STORE_BYTE_SHIFT,
		.l_len = 1 };
	if (fcntl(fd, F_OFD_SETLK, &want) == 0)
		return 0;
	if (errno != EACCES && errno != EAGAIN) {
		log_debug("cannot lock %s itself: %s", db, strerror(errno));
		return 0;
	}
	/* A program that may only read the store can take a read lock; recorders take write
	 * locks only. */
	if (fcntl(fd, F_OFD_GETLK, &want) == 0 && want.l_type == F_RDLCK) {
		log_warning("a program that is not a recorder has locked %s; recording goes on",
			db);
		return 0;
	}
	return err_set(e, ERR_WORLD,
		"another recorder is already writing %s, under another name of the file (a "
		"hard "
		"link)",
		db);
}

int lock_holder(const char *db, pid_t *pid, char *text, struct err *e)
{
	char path[PATH_MAX];
	*pid = 0;
	if (text)
		text[0] = '\0';
	int rc = lock_path(path, sizeof(path), db, e);
	if (rc)
		return rc;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (fd < 0)
		return err_set(e, ERR_WORLD, "cannot open %s: %s", path, strerror(errno));
	*pid = holder_of(fd);
	if (*pid && text) {
		ssize_t n = pread(fd, text, LOCK_TEXT_CAP - 1, 0);
		text[n < 0 ? 0 : n] = '\0';
	}
	close(fd);
	return 0;
}

/* On some network file systems the locks of other hosts are not visible. */
static bool is_local(int fd)
{
	static const uint32_t remote[] = { 0x6969 /* NFS */, 0x517b /* SMB */,
		0xff534d42 /* CIFS */, 0xfe534d42 /* SMB2 */, 0x65735546 /* FUSE */,
		0x01021997 /* 9P */, 0x00c36400 /* Ceph */, 0x0bd00bd0 /* Lustre */,
		0x47504653 /* GPFS */ };
	struct statfs info;
	if (fstatfs(fd, &info) != 0)
		return false;
	for (size_t i = 0; i < sizeof(remote) / sizeof(remote[0]); i++)
		if ((uint32_t)info.f_type == remote[i])
			return false;
	return true;
}

int lock_is_held(const char *db)
{
	char path[PATH_MAX];
	struct err unread = { 0 };
	struct flock ask = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int fd = lock_path(path, sizeof(path), db, &unread) == 0
			 ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
			 : -1;
	if (fd < 0)
		return -1;
	bool told = is_local(fd) && fcntl(fd, F_GETLK, &ask) == 0;
	close(fd);
	return told ? ask.l_type != F_UNLCK : -1;
}

void lock_publish(int fd, const struct fault *const *faults, size_t n)
{
	if (fd < 0)
		return;
	char text[LOCK_TEXT_CAP] = "", before[LOCK_TEXT_CAP];
	size_t len = 0;
	for (size_t i = 0; i < n && len < sizeof(text) - 400; i++) {
		char safe[320];
		text_escape(safe, sizeof(safe), faults[i]->text, strlen(faults[i]->text));
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%lld %s\n",
			(long long)faults[i]->since_ms, safe);
	}
	/* The rest of the file is filled with NULs, so that it never needs new disk space.
	 * Written only when it changes: a tick without news writes nothing here. */
	size_t size = len < LOCK_ROOM ? LOCK_ROOM : len + 1;
	ssize_t old = pread(fd, before, sizeof(before), 0);
	if (old >= (ssize_t)size && memcmp(before, text, size) == 0)
		return;
	if (pwrite(fd, text, size, 0) < (ssize_t)size)
		log_debug("cannot write the lock file: %s", strerror(errno));
}
