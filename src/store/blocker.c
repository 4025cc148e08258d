/* Asks who holds SQLite's locks. */
#include "store/blocker.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proc/locks.h"
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

/* The process whose lock conflicts with ours; 0: none, or the kernel cannot tell. */
static pid_t holder(int fd, short type, off_t start, off_t len)
{
	const struct flock ours = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len
	};
	pid_t pid = 0;
	proc_record_lock(fd, &ours, &pid);
	return pid;
}

/* Kept open until SQLite has closed the store: closing it drops SQLite's locks. */
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

/* "pid N, uid U, NAME", or as much of it as can be read and may be kept: faults are stored. */
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

void blocker_name(struct store *s, enum blocked what, struct err *e)
{
	char who[320];
	struct err before = *e;
	pid_t pid = find(s, what);
	if (!pid)
		return;
	describe(pid, s->info.privacy, who, sizeof(who));
	err_set(e, before.code, "%s (%s)", before.text, who);
}
