/* Takes the recorder's lock, and the lock of the store itself. */
#include "store/lock.h"

#include "proc/proc.h"
#include "store/store_private.h"

/* SQLite's lock bytes: in the -shm file (https://sqlite.org/walformat.html, 2.3.1) and in the
 * database itself. */
enum {
	SHM_WRITE = 120, /* writing, checkpointing, recovery */
	SHM_WRITE_BYTES = 3,
	SHM_READ = 123, /* five marks: states that readers use */
	SHM_READ_BYTES = 5,
	DB_PENDING = 0x40000000,
	DB_BYTES = 512,
};

/* Returns the process whose lock conflicts with ours; 0: none, or the kernel cannot tell. */
static pid_t holder(int fd, short type, off_t start, off_t len)
{
	const struct flock ours = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len
	};
	pid_t pid = 0;
	proc_record_lock(fd, &ours, &pid);
	return pid;
}

/* It stays open until SQLite has closed the store, because closing it drops SQLite's locks. */
static int shm_of(struct store *s)
{
	char path[PATH_MAX + 8];
	if (s->shm_fd < 0) {
		snprintf(path, sizeof(path), "%s-shm", s->path);
		s->shm_fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	}
	return s->shm_fd;
}

static pid_t find(struct store *s, enum blocked what)
{
	if (what == BLOCKS_FOLDING)
		return holder(shm_of(s), F_WRLCK, SHM_READ, SHM_READ_BYTES);
	pid_t pid = holder(shm_of(s), F_WRLCK, SHM_WRITE, SHM_WRITE_BYTES);
	/* All readers have read locks on the database, so only a write lock counts there. */
	return pid || !s->locked ? pid : holder(s->lock_fd, F_RDLCK, DB_PENDING, DB_BYTES);
}

/* Writes "pid N, uid U, NAME", or what can be read and may be kept: faults are stored. */
static void describe(pid_t pid, enum privacy privacy, char *dst, size_t cap)
{
	struct lock_owner owner;
	struct err unread = { 0 };
	int proc = -1;
	snprintf(dst, cap, pid > 0 ? "pid %d" : "its pid is not visible here", (int)pid);
	if (proc_open(&proc, "", &unread) != 0)
		return;
	if (proc_lock_owner(&owner, proc, pid)) {
		bool named = privacy != PRIVACY_STRICT;
		snprintf(dst, cap, "pid %d, uid %lld%s%s", (int)pid, (long long)owner.uid,
			named ? ", " : "", named ? owner.name : "");
	}
	close(proc);
}

void lock_name_blocker(struct store *s, enum blocked what, struct err *e)
{
	char who[320];
	struct err before = *e;
	pid_t pid = find(s, what);
	if (!pid)
		return;
	describe(pid, s->info.privacy, who, sizeof(who));
	err_set(e, before.code, "%s (%s)", before.text, who);
}

int lock_beside(char *path, size_t cap, const char *db, const char *suffix, struct err *e)
{
	char real[PATH_MAX];
	const char *name = realpath(db, real) ? real : db;
	int n = snprintf(path, cap, "%s%s", name, suffix);
	if (n < 0 || (size_t)n >= cap)
		return err_set(e, ERR_USAGE, "the path %s is too long", db);
	return 0;
}

/* Finds the directory of the file `path`. */
static bool find_directory(const char *path, struct stat *st)
{
	char above[PATH_MAX + 16];
	str_copy(above, sizeof(above), path);
	char *slash = strrchr(above, '/');
	if (slash)
		slash[1] = '\0';
	return stat(slash ? above : ".", st) == 0;
}

bool lock_trusts(uid_t uid, const char *db, const char *path)
{
	struct stat st;
	return uid == 0 || uid == geteuid() || (stat(db, &st) == 0 && st.st_uid == uid) ||
	       (find_directory(path, &st) && st.st_uid == uid);
}

/* The directory may belong to root: its owner is not the store's then, and still trusted. */
bool lock_protects(const char *db, uid_t *owner)
{
	char real[PATH_MAX];
	struct stat st, directory;
	if (!realpath(db, real) || stat(real, &st) != 0 || !find_directory(real, &directory))
		return false;
	*owner = st.st_uid;
	return S_ISREG(st.st_mode) &&
	       !((st.st_mode | directory.st_mode) & (S_IWGRP | S_IWOTH)) &&
	       (directory.st_uid == 0 || directory.st_uid == st.st_uid);
}

int lock_check_logs(const char *db, struct err *e)
{
	static const char *const suffixes[] = { "-journal", "-wal", "-shm" };
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		char path[PATH_MAX + 16];
		struct stat st, directory;
		int rc = lock_beside(path, sizeof(path), db, suffixes[i], e);
		if (rc)
			return rc;
		if (lstat(path, &st) == 0 && !lock_trusts(st.st_uid, db, path) &&
			find_directory(path, &directory) && (directory.st_mode & S_ISVTX))
			return err_set(e, ERR_WORLD,
				"%s belongs to the user with uid %u, who does not own the "
				"store; remove it, and keep the store in a directory that "
				"others cannot write to",
				path, (unsigned)st.st_uid);
	}
	return 0;
}

/* Whether the path still leads to the open file. A recorder that could not start deletes its
 * lock file, and a lock on the deleted file protects nothing. */
static bool is_still_there(int fd, const char *path)
{
	struct stat held, there;
	return fstat(fd, &held) == 0 && lstat(path, &there) == 0 &&
	       held.st_ino == there.st_ino && held.st_dev == there.st_dev;
}

/* The lock file decides who may record, so it must be a plain file of this user that no other
 * user can open. Root may record into another user's store. */
static int check_file(int fd, const char *path, struct err *e)
{
	struct stat st;
	if (fstat(fd, &st) != 0)
		return err_set(e, ERR_WORLD, "cannot read %s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_nlink > 1)
		return err_set(e, ERR_WORLD,
			"%s is not a lock file of gua (not a regular file, or a hard link); "
			"remove it",
			path);
	if (st.st_uid != geteuid() && geteuid() != 0)
		return err_set(e, ERR_WORLD,
			"%s belongs to the user with uid %u; record as that user, or remove "
			"the file",
			path, (unsigned)st.st_uid);
	if ((st.st_mode & 077) && fchmod(fd, 0600) != 0)
		log_debug("cannot take the permissions for %s from other users: %s", path,
			strerror(errno));
	return 0;
}

static int open_file(const char *path, int *fd, struct err *e)
{
	struct stat st;
	*fd = file_open_or_make(path, O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
	if (*fd < 0 && errno == ELOOP)
		return err_set(
			e, ERR_WORLD, "cannot open %s: it is a symbolic link; remove it", path);
	if (*fd < 0 && errno == EACCES && lstat(path, &st) == 0)
		return err_set(e, ERR_WORLD,
			"cannot open %s: it belongs to the user with uid %u; record as that "
			"user, or run as root: chown --reference=DIRECTORY STORE*",
			path, (unsigned)st.st_uid);
	if (*fd < 0)
		return err_set(e, errno == ENOSPC || errno == EDQUOT ? ERR_BUSY : ERR_WORLD,
			"cannot open %s: %s; --db PATH names another place for the store", path,
			strerror(errno));
	int rc = check_file(*fd, path, e);
	if (rc)
		close(*fd);
	return rc;
}

static int refuse(pid_t holder, const char *db, struct err *e)
{
	char who[40] = "outside of this container";
	if (holder > 0)
		snprintf(who, sizeof(who), "(pid %d)", (int)holder);
	return err_set(e, ERR_WORLD,
		"a recorder %s is already writing %s; see: gua status --db %s", who, db, db);
}

/* Tries once to take the lock. 0: locked; 1: the file must be opened again. */
static int try_lock(int fd, const char *path, const char *db, struct err *e)
{
	struct flock want = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	if (fcntl(fd, F_SETLK, &want) == 0)
		return is_still_there(fd, path) ? 0 : 1;
	if (errno != EACCES && errno != EAGAIN)
		return err_set(e, ERR_WORLD, "cannot lock %s: %s", path, strerror(errno));
	if (fcntl(fd, F_GETLK, &want) != 0 || want.l_type == F_UNLCK)
		return 1;
	if (want.l_type == F_WRLCK)
		return refuse(want.l_pid, db, e);
	/* A read lock is not a recorder's. A reader may have it from the time when older
	 * versions let all users read this file; a new file has no such lock. */
	log_notice(
		"a program that is not a recorder has locked %s; the file is replaced", path);
	if (is_still_there(fd, path))
		unlink(path);
	return 1;
}

enum { LOCK_TRIES = 100 };

int lock_take(const char *db, int *fd, struct err *e)
{
	char path[PATH_MAX + 8];
	int rc = file_make_parent(db, 0750, e);
	if (rc)
		return err_set(
			e, rc, "%s; --db PATH names another place for the store", e->text);
	rc = lock_beside(path, sizeof(path), db, ".lock", e);
	for (int i = 0; !rc && i < LOCK_TRIES; i++) {
		rc = open_file(path, fd, e);
		if (rc)
			return rc;
		rc = try_lock(*fd, path, db, e);
		if (rc == 0)
			return 0;
		close(*fd);
		rc = rc == 1 ? 0 : rc;
	}
	return rc ? rc
		  : err_set(e, ERR_WORLD,
			    "cannot lock %s: it is being replaced again and again", path);
}

/* A byte far beyond SQLite's own lock bytes and beyond every page. */
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
		"hard link)",
		db);
}
