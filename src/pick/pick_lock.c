/* Opens, creates, locks and keeps the lock files of gua pick; finds the process that holds a
 * lock; keeps the queue of waiting picks. */
#include "pick/pick_lock.h"

#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/random.h>

#include "model/process.h"
#include "proc/proc.h"

/* The name of the process that keeps cards after a pick without a command; it contains the
 * number of seconds. Up to a day, it fits the kernel's 15 bytes. */
#define PICK_KEEPER_NAME "gua-hold %llds"

int64_t pick_lock_owner_uid(const struct pick_owner *o)
{
	return o->uid >= 0 ? o->uid : o->file_uid;
}

/* How much longer a keeper keeps its cards: the kernel reports when it started, and its name
 * says for how long. */
static int64_t time_left_ms(const struct lock_owner *owner)
{
	char again[sizeof(owner->comm)];
	long long seconds = 0;
	if (sscanf(owner->comm, "gua-hold %9llds", &seconds) != 1 || seconds < 0)
		return -1;
	snprintf(again, sizeof(again), PICK_KEEPER_NAME, seconds);
	if (strcmp(owner->comm, again) != 0)
		return -1;
	struct timespec now;
	clock_gettime(CLOCK_BOOTTIME, &now);
	int64_t now_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
	int64_t ticks = sysconf(_SC_CLK_TCK);
	int64_t started_ms = (int64_t)(owner->start_ticks / (uint64_t)ticks) * 1000;
	int64_t left_ms = started_ms + (seconds + 1) * 1000 - now_ms;
	return left_ms > 0 ? left_ms : 0;
}

/* Finds the process that has locked the open file. */
static void find_owner(struct pick_owner *o, int fd)
{
	struct stat s;
	struct lock_owner owner;
	int proc = -1;
	*o = (struct pick_owner){ .file_uid = -1, .pid = -1, .uid = -1, .left_ms = -1 };
	if (fstat(fd, &s) != 0)
		return;
	o->file_uid = s.st_uid;
	if (proc_open(&proc, "", NULL) != 0)
		return;
	struct file_id file = { .device = s.st_dev, .inode = s.st_ino };
	o->pid = proc_lock_pid(proc, &file);
	if (o->pid > 0 && proc_lock_owner(&owner, proc, o->pid)) {
		o->uid = owner.uid;
		o->left_ms = time_left_ms(&owner);
		str_copy(o->comm, sizeof(o->comm), owner.name);
	} else if (o->pid > 0) {
		o->pid = -1; /* it has ended: its children have the lock */
	}
	close(proc);
}

static void add_user(struct str *out, int64_t uid, struct user_names *names)
{
	char user[USER_CAP] = "another user";
	if (uid == geteuid())
		str_copy(user, sizeof(user), "you");
	else if (uid >= 0)
		user_names_get(names, (uint32_t)uid, clock_monotonic_us(), user, sizeof(user));
	str_add(out, user);
}

void pick_lock_add_owner(struct str *out, const struct pick_owner *o, struct user_names *names)
{
	add_user(out, pick_lock_owner_uid(o), names);
	if (o->pid < 0)
		return;
	str_addf(out, " (pid %lld, %s", (long long)o->pid, o->comm);
	if (o->left_ms >= 0) {
		struct brief left = duration_text(o->left_ms);
		str_addf(out, "; %s left", left.text);
	}
	if (o->uid >= 0 && o->uid != o->file_uid) {
		str_add(out, "; the lock file belongs to ");
		add_user(out, o->file_uid, names);
	}
	str_add(out, ")");
}

#define TURN_NAME "choosing"
enum {
	TRIES = 8, /* how often to try to lock a file that others replace or lock meanwhile */
	TURN_POLL_MS = 10,     /* how often a pick tries to take its turn */
	LOOK_NS = 2000 * 1000, /* how long another pick may hold a lock to look at it */
	FILES_OF_USER = 64,    /* files of one other user that are checked in one pass */
};

static void sleep_ns(int64_t ns)
{
	struct timespec left = { ns / 1000000000, ns % 1000000000 };
	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		;
}

__attribute__((format(printf, 2, 3))) static void warn(
	struct pick_locks *l, const char *format, ...)
{
	char text[PICK_NAME_CAP * 4 + 256];
	va_list list;
	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	l->warn(text);
}

/* Reports a file that cannot be used: each once, and only some, because there may be thousands.
 */
static int skip(struct pick_locks *l, const char *name, const char *why)
{
	char safe[PICK_NAME_CAP * 4];
	for (size_t i = 0; i < l->n_skipped; i++)
		if (strcmp(l->skipped[i], name) == 0)
			return -1;
	if (l->n_skipped == PICK_MAX_SKIPPED)
		return -1;
	str_copy(l->skipped[l->n_skipped++], PICK_NAME_CAP, name);
	str_escape(safe, sizeof(safe), name, strlen(name));
	warn(l, "the lock file %s is skipped: %s", safe, why);
	if (l->n_skipped == PICK_MAX_SKIPPED)
		warn(l, "other such files are skipped without a message");
	return -1;
}

/* Whether a file of this user is checked. A user needs one file for each card and each
 * waiting pick; a user who makes a million files only hides their own. */
static bool admit(struct pick_locks *l, uid_t uid)
{
	size_t i = 0;
	if (uid == geteuid())
		return true;
	while (i < l->n_users && l->users[i].uid != uid)
		i++;
	if (i == PICK_MAX_USERS)
		return false;
	if (i == l->n_users) {
		l->users[l->n_users].uid = uid;
		l->users[l->n_users++].n = 0;
	}
	return ++l->users[i].n <= FILES_OF_USER;
}

/* Opens a lock file for reading, which is enough for flock(). Returns -1 if it is not a plain
 * file that can be read; a file that has just been removed is not reported. */
static int open_file(struct pick_locks *l, const char *name)
{
	struct stat s;
	/* Check the type first: opening a device might have an effect. */
	if (fstatat(l->directory, name, &s, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? -1 : skip(l, name, strerror(errno));
	if (!S_ISREG(s.st_mode))
		return skip(l, name, "it is not a regular file");
	if (!admit(l, s.st_uid))
		return skip(l, name, "its owner has too many of them");
	int fd = openat(l->directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -1 : skip(l, name, strerror(errno));
	if (fstat(fd, &s) == 0 && S_ISREG(s.st_mode))
		return fd;
	close(fd);
	return skip(l, name, "it is not a regular file");
}

/* Whether the name still refers to the open file: its owner may have removed it. */
static bool is_there(const struct pick_locks *l, const char *name, int fd)
{
	struct stat named, opened;
	return fstatat(l->directory, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstat(fd, &opened) == 0 && named.st_dev == opened.st_dev &&
	       named.st_ino == opened.st_ino;
}

/* Opens a file and locks it if nobody else has. Returns a descriptor; *locked says whether it
 * is locked now. -1: it cannot be used. */
static int try_file(struct pick_locks *l, const char *name, bool *locked)
{
	for (int tries = 0; tries < TRIES; tries++) {
		int fd = open_file(l, name);
		if (fd < 0)
			return fd;
		*locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
		if (!*locked || is_there(l, name, fd))
			return fd;
		close(fd);
	}
	return skip(l, name, "it is replaced again and again");
}

/* Creates PREFIX.UID (PREFIX.UID.RANDOM, if there is such a file) with this text, readable for
 * all, and locks it. Writes its name; returns a descriptor, or ERR_WORLD. */
static int create_file(struct pick_locks *l, const char *prefix, const char *text,
	char name[PICK_NAME_CAP], struct err *e)
{
	size_t len = strlen(text);
	for (int tries = 0; tries < TRIES; tries++) {
		uint64_t random = 0;
		if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
			random = (uint64_t)getpid() << 8 | (unsigned)tries;
		snprintf(name, PICK_NAME_CAP, tries ? "%.100s.%u.%016llx" : "%.100s.%u", prefix,
			(unsigned)geteuid(), (unsigned long long)random);
		int fd =
			openat(l->directory, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
		if (fd < 0 && errno == EEXIST)
			continue;
		if (fd < 0)
			break;
		/* The mode is independent of the umask. */
		bool good = write(fd, text, len) == (ssize_t)len && fchmod(fd, 0444) == 0;
		bool locked = good && flock(fd, LOCK_EX | LOCK_NB) == 0;
		/* Another pick that checks the file at this moment holds its lock for an
		 * instant. */
		for (int looks = 1; good && !locked && looks < TRIES; looks++) {
			sleep_ns(LOOK_NS);
			locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
		}
		if (locked && is_there(l, name, fd))
			return fd;
		(void)unlinkat(l->directory, name, 0);
		close(fd);
	}
	return err_set(e, ERR_WORLD, "cannot create a lock file: %s", strerror(errno));
}

/* Starts a pass over the directory; to be closed with closedir(3). */
static DIR *list_files(struct pick_locks *l)
{
	l->n_users = 0;
	return file_open_directory(l->directory, ".");
}

/* The next file that is called PREFIX or PREFIX.ANYTHING; NULL: the end. */
static const char *next_file(DIR *list, const char *prefix)
{
	size_t len = strlen(prefix);
	for (struct dirent *entry; (entry = readdir(list));)
		if (strncmp(entry->d_name, prefix, len) == 0 &&
			(entry->d_name[len] == '\0' || entry->d_name[len] == '.') &&
			strlen(entry->d_name) < PICK_NAME_CAP)
			return entry->d_name;
	return NULL;
}

static bool is_own(int fd)
{
	struct stat s;
	return fstat(fd, &s) == 0 && s.st_uid == geteuid();
}

/* Checks all files of a card, except `mine` (its name, or ""). If none is locked, returns 0,
 * or a locked file of this user, whose name it writes to `mine`. ERR_BUSY: one is locked. */
static int look_at_files(struct pick_locks *l, const char *card, char mine[PICK_NAME_CAP],
	struct pick_owner *by, struct err *e)
{
	DIR *list = list_files(l);
	int found = 0;
	bool search = !mine[0];
	if (!list)
		return err_set(e, ERR_WORLD, "cannot read the directory of the locks: %s",
			strerror(errno));
	for (const char *name; found >= 0 && (name = next_file(list, card));) {
		bool locked = false;
		int fd = search || strcmp(name, mine) != 0 ? try_file(l, name, &locked) : -1;
		if (fd < 0)
			continue;
		if (!locked) {
			find_owner(by, fd);
			int64_t uid = pick_lock_owner_uid(by);
			if (!l->ignore_others || uid < 0 || uid == geteuid()) {
				if (found > 0)
					close(found);
				found = ERR_BUSY;
			}
		} else if (search && !found && is_own(fd)) {
			snprintf(mine, PICK_NAME_CAP, "%s", name);
			found = fd;
			continue;
		} else if (search && is_own(fd)) {
			(void)unlinkat(l->directory, name, 0); /* one is enough */
		}
		close(fd);
	}
	closedir(list);
	return found;
}

/* Returns a descriptor that stands in for a reservation that could not be made. */
static int go_without(struct pick_locks *l, struct err *e)
{
	if (!l->is_open && l->directory >= 0)
		warn(l, "%s; the cards are not reserved, and other picks may choose them too",
			e->text);
	l->is_open = true;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return fd >= 0 ? fd : err_set(e, ERR_WORLD, "/dev/null: %s", strerror(errno));
}

/* Locks the user's own file first and then checks those of others: of two picks that do this
 * at the same time, at least one sees the other, even if neither has its turn. */
int pick_lock_card(struct pick_locks *l, const char *uuid, struct pick_owner *by, struct err *e)
{
	char card[PICK_NAME_CAP], mine[PICK_NAME_CAP] = "";
	if (l->directory < 0)
		return go_without(l, e);
	/* A file name: other characters than letters, digits and '-' become '_'. */
	size_t i = 0;
	for (; i < PICK_NAME_CAP / 2 && uuid[i]; i++) {
		char c = uuid[i];
		bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
			     (c >= 'A' && c <= 'Z') || c == '-';
		card[i] = (char)(plain ? c : '_');
	}
	card[i] = '\0';
	int fd = look_at_files(l, card, mine, by, e);
	if (fd < 0)
		return fd;
	if (fd == 0)
		fd = create_file(l, card, "", mine, e);
	if (fd < 0)
		return go_without(l, e);
	int rc = look_at_files(l, card, mine, by, e);
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

/* Reports once which process keeps the turn. */
static void report_turn(struct pick_locks *l, int fd)
{
	struct user_names *names = NULL;
	struct pick_owner by;
	struct str who = { 0 };
	if (l->turn_is_stuck)
		return;
	l->turn_is_stuck = true;
	find_owner(&by, fd);
	by.file_uid = by.uid; /* the file may belong to the user of an earlier pick */
	if (by.pid > 0 &&
		user_names_new(&names, user_find_system, NULL, USER_DEADLINE_MS, NULL) == 0)
		pick_lock_add_owner(&who, &by, names);
	warn(l, "%s has kept the lock \"" TURN_NAME "\" for too long; choosing without it",
		who.len ? str_text(&who) : "another pick");
	user_names_free(names);
	str_finish(&who);
}

int pick_lock_turn(struct pick_locks *l, int64_t wait_ms)
{
	int fd = -1;
	if (l->directory < 0)
		return -1;
	for (int64_t waited_ms = 0;; waited_ms += TURN_POLL_MS) {
		if (fd < 0) {
			fd = openat(l->directory, TURN_NAME,
				O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
			if (fd >= 0)
				(void)fchmod(fd, 0444); /* independent of the umask */
			else
				fd = open_file(l, TURN_NAME);
		}
		bool locked = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
		bool there = fd >= 0 && is_there(l, TURN_NAME, fd);
		if (locked && there)
			return fd;
		if (fd < 0 || l->turn_is_stuck || waited_ms >= wait_ms)
			break;
		if (!there) {
			close(fd); /* the file was removed: there may be a new one */
			fd = -1;
		}
		sleep_ns(TURN_POLL_MS * 1000000L);
	}
	if (fd >= 0) {
		report_turn(l, fd);
		close(fd);
	}
	return -1;
}

/* The background process. It changes the lock from exclusive to shared, which counts as taking
 * it anew: from now on the kernel names this process, not the pick, which ends. */
static _Noreturn void keep(const int *locks, size_t n, int64_t ms, int ready)
{
	char name[32];
	snprintf(name, sizeof(name), PICK_KEEPER_NAME, (long long)((ms + 999) / 1000));
	prctl(PR_SET_NAME, name);
	for (size_t i = 0; i < n; i++)
		(void)flock(locks[i], LOCK_SH | LOCK_NB);
	/* Readers of the output must not wait for this process. */
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd <= 2; fd++)
		if (nothing < 0 || dup2(nothing, fd) < 0)
			close(fd);
	if (nothing > 2)
		close(nothing);
	setsid();
	(void)!chdir("/");
	close(ready);
	sleep_ns(ms * 1000000);
	_exit(0);
}

int pick_lock_keep(const int *locks, size_t n, int64_t ms, struct err *e)
{
	int ready[2];
	char byte;
	if (ms <= 0)
		return 0;
	pid_t pid = pipe2(ready, O_CLOEXEC) == 0 ? fork() : -1;
	if (pid < 0)
		return err_set(e, ERR_WORLD, "cannot hold the cards: %s", strerror(errno));
	if (pid == 0) {
		close(ready[0]);
		keep(locks, n, ms, ready[1]);
	}
	close(ready[1]);
	while (read(ready[0], &byte, 1) < 0 && errno == EINTR)
		;
	close(ready[0]);
	return 0;
}

#define TICKET_NAME "waiting"
/* Largest number of tickets that count: the first ones of the queue. */
enum { MAX_TICKETS = 64 };

/* When the file was created or, if the file system does not record that, when its inode last
 * changed. Its owner cannot set either to an earlier time. */
static struct pick_moment moment_of(int fd)
{
	struct statx s;
	if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME | STATX_CTIME | STATX_INO, &s) != 0)
		return (struct pick_moment){ .ns = INT64_MAX };
	struct statx_timestamp t = s.stx_mask & STATX_BTIME ? s.stx_btime : s.stx_ctime;
	return (struct pick_moment){ .ns = t.tv_sec * 1000000000 + t.tv_nsec,
		.inode = s.stx_ino };
}

static int compare_moments(const struct pick_moment *a, const struct pick_moment *b)
{
	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return a->inode < b->inode ? -1 : a->inode > b->inode;
}

int pick_lock_join(struct pick_queue *q, struct pick_locks *l, const char *wish, struct err *e)
{
	q->fd = create_file(l, TICKET_NAME, wish, q->name, e);
	if (q->fd < 0)
		return q->fd;
	q->since = moment_of(q->fd);
	return 0;
}

void pick_lock_leave(struct pick_queue *q, struct pick_locks *l)
{
	if (q->fd < 0)
		return;
	(void)unlinkat(l->directory, q->name, 0);
	close(q->fd);
	q->fd = -1;
}

/* Reads a ticket. False: it is not valid. */
static bool read_ticket(struct pick_locks *l, const char *name, struct pick_ticket *t)
{
	char text[PICK_WISH_CAP];
	bool locked = false;
	int fd = try_file(l, name, &locked);
	if (fd < 0)
		return false;
	if (locked)
		(void)unlinkat(l->directory, name, 0);
	else
		find_owner(&t->by, fd);
	ssize_t n = locked ? -1 : pread(fd, text, sizeof(text), 0);
	t->since = moment_of(fd);
	close(fd);
	return n > 0 && pick_ask_parse(text, (size_t)n, &t->ask);
}

size_t pick_lock_waiting(
	const struct pick_queue *q, struct pick_locks *l, struct pick_ticket **tickets)
{
	size_t n = 0;
	/* The list stays sorted; the last one is dropped if there are too many. */
	DIR *list = list_files(l);
	*tickets = malloc((MAX_TICKETS + 1) * sizeof(**tickets));
	for (const char *name; list && *tickets && (name = next_file(list, TICKET_NAME));) {
		struct pick_ticket *t = &(*tickets)[MAX_TICKETS];
		if (q->fd >= 0 && strcmp(name, q->name) == 0)
			continue;
		if (!read_ticket(l, name, t) ||
			(q->fd >= 0 && compare_moments(&t->since, &q->since) >= 0))
			continue;
		const struct pick_ticket one = *t;
		size_t at = n < MAX_TICKETS ? n++ : n;
		for (; at > 0 && compare_moments(&one.since, &(*tickets)[at - 1].since) < 0;
			at--)
			(*tickets)[at] = (*tickets)[at - 1];
		(*tickets)[at] = one;
	}
	if (list)
		closedir(list);
	return n;
}
