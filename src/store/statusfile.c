/* Writes and reads the status file of a recorder. */
#include "store/statusfile.h"

#include <sched.h>
#include <sys/vfs.h>

#include "store/identify.h"
#include "store/lock.h"
#include "version.h"

/* Every user may read whether a recorder runs; the directory's mode limits who can reach it. */
enum { STATUS_MODE = 0644, TEXT_CAP = 16384, READ_TRIES = 20 };

/* The first line is "gua-status-1 CHECK", where CHECK is a checksum of all that follows up to
 * the first NUL: a reader that finds a half-written text reads again. */
static const char magic[] = "gua-status-1";
enum { FIRST_LINE = sizeof(magic) + 16 + 1 };

static void describe_self(struct statusfile *f, int64_t started_ms)
{
	int proc = -1;
	struct err unread = { 0 };
	char boot_id[40] = "";
	uint64_t ticks = 0;
	if (proc_open(&proc, "", &unread) == 0) {
		ticks = proc_start_ticks(proc, (uint32_t)getpid());
		proc_read_boot_id(proc, boot_id, sizeof(boot_id));
		close(proc);
	}
	snprintf(f->head, sizeof(f->head),
		"pid %d\nstart_ticks %" PRIu64 "\nboot_id %s\nversion " GUA_VERSION
		"\nstarted_ms %lld\n",
		(int)getpid(), ticks, boot_id, (long long)started_ms);
}

void statusfile_create(struct statusfile *f, const char *db, int64_t started_ms)
{
	struct err e = { 0 };
	*f = (struct statusfile){ 0 };
	if (lock_beside(f->path, sizeof(f->path), db, ".status", &e)) {
		log_warning("%s", e.text);
		return;
	}
	/* The file is always a new one: an old one may be open, locked or planted by others.
	 * Until the lock is taken, its mode lets only this user open it. */
	int fd = -1;
	if (unlink(f->path) == 0 || errno == ENOENT)
		fd = open(f->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		log_warning("cannot make %s: %s; gua status and gua stop cannot find this "
			    "recorder",
			f->path, strerror(errno));
		return;
	}
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	if (fcntl(fd, F_SETLK, &lock) != 0)
		log_debug("cannot lock %s: %s", f->path, strerror(errno));
	f->fd = fd;
	describe_self(f, started_ms);
	statusfile_publish(f, -1, NULL, 0);
	if (fchmod(fd, STATUS_MODE) != 0)
		log_debug("cannot make %s readable for other users: %s", f->path,
			strerror(errno));
}

void statusfile_publish(
	struct statusfile *f, int64_t tick_ms, const struct fault *const *faults, size_t n)
{
	if (!f || f->fd <= 0)
		return;
	char text[TEXT_CAP] = "", first[FIRST_LINE + 1], *body = text + FIRST_LINE;
	size_t cap = sizeof(text) - FIRST_LINE;
	size_t len = (size_t)snprintf(body, cap, "%s%stick_ms %lld\n%s", f->head, f->stuck,
		(long long)tick_ms, f->unread ? "unread 1\n" : "");
	for (size_t i = 0; i < n && len < cap - 400; i++) {
		char safe[320];
		str_escape(safe, sizeof(safe), faults[i]->text, strlen(faults[i]->text));
		len += (size_t)snprintf(body + len, cap - len, "fault %lld %s\n",
			(long long)faults[i]->since_ms, safe);
	}
	snprintf(first, sizeof(first), "%s %016" PRIx64 "\n", magic, str_sum(body));
	memcpy(text, first, FIRST_LINE);
	/* At first the rest of the file is filled with NULs, so that it never needs new disk
	 * space; later only the bytes of the last text are overwritten. */
	size_t own = FIRST_LINE + len + 1, size = own > f->size ? own : f->size;
	if (!f->size && size < STATUS_ROOM)
		size = STATUS_ROOM;
	f->size = own;
	if (pwrite(f->fd, text, size, 0) < (ssize_t)size)
		log_debug("cannot write %s: %s", f->path, strerror(errno));
}

void statusfile_set_stuck(struct statusfile *f, const struct source_stuck *stuck, size_t n)
{
	int proc = -1;
	struct err unread = { 0 };
	if (!f)
		return;
	f->stuck[0] = '\0';
	if (n == 0 || proc_open(&proc, "", &unread))
		return;
	size_t len = 0;
	for (size_t i = 0; i < n; i++) {
		const struct source_avoid *card = &stuck[i].card;
		uint64_t ticks = proc_start_ticks(proc, (uint32_t)stuck[i].pid);
		size_t room = sizeof(f->stuck) - len;
		int wrote = snprintf(f->stuck + len, room,
			"stuck %s %d %" PRIu64 " %d %s %s %s\n", stuck[i].kind, stuck[i].pid,
			ticks, card->index, card->pci[0] ? card->pci : "-",
			card->uuid[0] ? card->uuid : "-", card->name);
		if (wrote < 0 || (size_t)wrote >= room)
			break;
		len += (size_t)wrote;
	}
	f->stuck[len] = '\0';
	close(proc);
}

void statusfile_remove(struct statusfile *f)
{
	if (f->fd <= 0)
		return;
	if (!f->stuck[0])
		unlink(f->path);
	close(f->fd);
	f->fd = 0;
}

/* Refuses a file that no recorder of this store can have made. */
static int check_file(int fd, const char *db, const char *path, struct err *e)
{
	struct stat st;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return err_set(e, ERR_WORLD, "%s is not a regular file; remove it", path);
	if (lock_trusts(st.st_uid, db, path))
		return 0;
	return err_set(e, ERR_WORLD,
		"%s belongs to the user with uid %u, who does not own the store; remove it and "
		"start the recorder again",
		path, (unsigned)st.st_uid);
}

/* Opens the file for reading; *fd is -1 when there is no file. */
static int open_status(const char *db, int *fd, struct err *e)
{
	char path[sizeof(((struct statusfile *)0)->path)];
	*fd = -1;
	int rc = lock_beside(path, sizeof(path), db, ".status", e);
	if (rc)
		return rc;
	*fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY);
	if (*fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (*fd < 0 && errno == EACCES)
		return identify_denied(db, e);
	if (*fd < 0)
		return err_set(e, ERR_WORLD, "cannot open %s: %s", path,
			errno == ELOOP ? "it is a symbolic link; remove it" : strerror(errno));
	rc = check_file(*fd, db, path, e);
	if (rc) {
		close(*fd);
		*fd = -1;
	}
	return rc;
}

/* The value of "KEY VALUE" in the lines of `text`, or NULL. */
static const char *value_of(const char *text, const char *key)
{
	size_t len = strlen(key);
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, len) == 0 && line[len] == ' ')
			return line + len + 1;
	}
	return NULL;
}

static int64_t number_of(const char *text, const char *key, int64_t fallback)
{
	const char *value = value_of(text, key);
	return value ? strtoll(value, NULL, 10) : fallback;
}

static void word_of(char *dst, size_t cap, const char *text, const char *key)
{
	const char *value = value_of(text, key);
	str_escape(dst, cap, value ? value : "", value ? strcspn(value, "\n") : 0);
}

static void parse_faults(struct published *p, const char *text)
{
	for (const char *at = text; (at = value_of(at, "fault"));) {
		if (p->n_faults == STATUS_MAX_FAULTS)
			return;
		struct published_fault *f = &p->faults[p->n_faults++];
		char *end = NULL;
		f->since_ms = strtoll(at, &end, 10);
		end += *end == ' ';
		str_escape(f->text, sizeof(f->text), end, strcspn(end, "\n"));
		at = strchr(at, '\n');
		if (!at)
			return;
	}
}

/* Reads a complete text; false: the recorder could not write one. */
static bool read_text(int fd, char *text, size_t cap)
{
	for (int i = 0; i < READ_TRIES; i++) {
		uint64_t check = 0;
		char word[sizeof(magic)] = "";
		ssize_t n = pread(fd, text, cap - 1, 0);
		text[n > 0 ? n : 0] = '\0';
		if (n > FIRST_LINE && sscanf(text, "%12s %16" SCNx64, word, &check) == 2 &&
			strcmp(word, magic) == 0 && str_sum(text + FIRST_LINE) == check)
			return true;
		sched_yield();
	}
	return false;
}

static void parse(struct published *p, int fd)
{
	char text[TEXT_CAP];
	p->told = read_text(fd, text, sizeof(text));
	if (!p->told)
		return;
	const char *body = text + FIRST_LINE;
	p->writer = (pid_t)number_of(body, "pid", 0);
	p->start_ticks = (uint64_t)number_of(body, "start_ticks", 0);
	p->started_ms = number_of(body, "started_ms", -1);
	p->tick_ms = number_of(body, "tick_ms", -1);
	p->unread = p->tick_ms < 0 || number_of(body, "unread", 0);
	word_of(p->boot_id, sizeof(p->boot_id), body, "boot_id");
	word_of(p->version, sizeof(p->version), body, "version");
	parse_faults(p, body);
}

/* Asks the kernel which process has the write lock; read locks of readers do not matter. False:
 * the file system has no locks. */
static bool ask_holder(int fd, pid_t *pid)
{
	const struct flock ours = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	return proc_record_lock(fd, &ours, pid);
}

/* Used without locks: returns the process that wrote the file, if it is still the same one. */
static pid_t writer_of(const struct published *p)
{
	int proc = -1;
	struct err unread = { 0 };
	char boot_id[sizeof(p->boot_id)] = "";
	if (!p->told || !p->start_ticks || proc_open(&proc, "", &unread))
		return 0;
	proc_read_boot_id(proc, boot_id, sizeof(boot_id));
	bool same = strcmp(boot_id, p->boot_id) == 0 &&
		    proc_start_ticks(proc, (uint32_t)p->writer) == p->start_ticks;
	close(proc);
	return same ? p->writer : 0;
}

int statusfile_read(struct published *p, const char *db, struct err *e)
{
	int fd = -1;
	*p = (struct published){ .started_ms = -1, .tick_ms = -1 };
	int rc = open_status(db, &fd, e);
	if (rc || fd < 0)
		return rc;
	struct stat st;
	p->owner = fstat(fd, &st) == 0 ? st.st_uid : (uid_t)-1;
	parse(p, fd);
	if (!ask_holder(fd, &p->pid))
		p->pid = writer_of(p);
	close(fd);
	return 0;
}

/* Reads a line about a stuck process; false: not such a line, or that process has ended. */
static bool read_stuck(const char *line, int proc, struct source_stuck *one)
{
	uint64_t ticks = 0;
	int name = 0;
	struct source_avoid *card = &one->card;
	_Static_assert(SOURCE_KIND_CAP == 16 && PCI_CAP == 32 && UUID_CAP == 96, "see below");
	*one = (struct source_stuck){ 0 };
	if (sscanf(line, "%15s %d %" SCNu64 " %d %31s %95s %n", one->kind, &one->pid, &ticks,
		    &card->index, card->pci, card->uuid, &name) != 6)
		return false;
	if (strcmp(card->pci, "-") == 0)
		card->pci[0] = '\0';
	if (strcmp(card->uuid, "-") == 0)
		card->uuid[0] = '\0';
	size_t end = strcspn(line, "\n");
	if ((size_t)name < end)
		str_escape(card->name, sizeof(card->name), line + name, end - (size_t)name);
	return one->pid > 0 && ticks && proc_start_ticks(proc, (uint32_t)one->pid) == ticks;
}

size_t statusfile_read_stuck(const char *db, struct source_stuck *out, size_t max)
{
	int fd = -1, proc = -1;
	struct err unread = { 0 };
	char text[TEXT_CAP], boot_id[40] = "", was[40];
	size_t n = 0;
	if (open_status(db, &fd, &unread) || fd < 0)
		return 0;
	bool told = read_text(fd, text, sizeof(text));
	close(fd);
	if (!told || proc_open(&proc, "", &unread))
		return 0;
	proc_read_boot_id(proc, boot_id, sizeof(boot_id));
	word_of(was, sizeof(was), text + FIRST_LINE, "boot_id");
	const char *at = strcmp(was, boot_id) == 0 ? text + FIRST_LINE : NULL;
	while (at && n < max && (at = value_of(at, "stuck"))) {
		n += read_stuck(at, proc, &out[n]);
		at = strchr(at, '\n');
	}
	close(proc);
	return n;
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

int statusfile_is_running(const char *db)
{
	int fd = -1;
	pid_t pid = 0;
	struct err unread = { 0 };
	if (open_status(db, &fd, &unread) || fd < 0)
		return -1;
	bool known = is_local(fd) && ask_holder(fd, &pid);
	close(fd);
	return known ? pid != 0 : -1;
}
