/* Opens, reads and parses the files of /proc, each with as few calls as possible. */
#include "proc/proc.h"

#include <sys/sysmacros.h>

enum {
	/* Longer than any stat line: 52 numbers and a name. */
	STAT_CAP = 2048,
	/* On a large host the processor masks are longer than the rest of status. */
	STATUS_CAP = 8192,
	SMALL_CAP = 2048,
	NAME_CAP = 48,
	LOCKS_CAP = 1 << 20,
};

/* Writes "PID/NAME", or "NAME" for a handle. */
static void make_name(char dst[NAME_CAP], uint32_t pid, const char *name)
{
	str_copy(dst, NAME_CAP, pid ? str_whole(pid, "/").text : "");
	size_t len = strlen(dst);
	str_copy(dst + len, NAME_CAP - len, name);
}

static ssize_t read_file(int proc, uint32_t pid, const char *name, char *dst, size_t cap)
{
	return file_read_piece(proc_open_file(proc, pid, name), dst, cap);
}

/* The same for files that the kernel reads while it holds a lock of the process (see proc.h):
 * they may block whatever flags they are opened with, and so does a FIFO in a recorded tree. */
static ssize_t wait_for_file(int proc, uint32_t pid, const char *name, char *dst, size_t cap)
{
	char path[NAME_CAP];
	make_name(path, pid, name);
	return file_read_piece(openat(proc, path, O_RDONLY | O_CLOEXEC), dst, cap);
}

/* The result of a reading function: `read` is -1 with errno if the file could not be read. */
static int result_of(ssize_t read, bool parsed)
{
	if (read >= 0 && !parsed)
		errno = ENODATA;
	return read >= 0 && parsed ? 0 : -1;
}

/* Reads the beginning of an open file; returns how many bytes, or -1 with errno. */
static ssize_t read_start(int fd, char *dst, size_t cap)
{
	ssize_t n;
	do
		n = pread(fd, dst, cap, 0);
	while (n < 0 && errno == EINTR);
	return n;
}

int proc_open(int *proc, const char *root, struct err *e)
{
	char path[PATH_MAX];
	if (!file_path(path, "%s/proc", root))
		return err_set(e, ERR_USAGE, "the path %s is too long", root);
	*proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*proc < 0)
		return err_set(e, ERR_WORLD, "cannot look at processes in %s: %s", path,
			strerror(errno));
	return 0;
}

int proc_open_process(int proc, uint32_t pid)
{
	char path[NAME_CAP];
	make_name(path, pid, "");
	return openat(proc, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

int proc_read_stat(int proc, uint32_t pid, struct proc_stat *stat)
{
	char bytes[STAT_CAP];
	ssize_t n = read_file(proc, pid, "stat", bytes, sizeof(bytes));
	return result_of(n, n > 0 && proc_parse_stat(bytes, (size_t)n, stat));
}

int proc_open_file(int proc, uint32_t pid, const char *name)
{
	char path[NAME_CAP];
	make_name(path, pid, name);
	return openat(proc, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

/* The kernel returns the line in one read. */
int proc_read_stat_again(int stat_fd, struct proc_stat *stat)
{
	char bytes[STAT_CAP];
	ssize_t n = read_start(stat_fd, bytes, sizeof(bytes));
	return result_of(n, n > 0 && proc_parse_stat(bytes, (size_t)n, stat));
}

int64_t proc_read_resident(int proc, uint32_t pid)
{
	char bytes[SMALL_CAP];
	ssize_t n = read_file(proc, pid, "statm", bytes, sizeof(bytes));
	return n < 0 ? -1 : proc_parse_resident(bytes, (size_t)n);
}

int64_t proc_read_resident_again(int statm_fd)
{
	char bytes[SMALL_CAP];
	ssize_t n = read_start(statm_fd, bytes, sizeof(bytes));
	return n <= 0 ? -1 : proc_parse_resident(bytes, (size_t)n);
}

uint64_t proc_start_ticks(int proc, uint32_t pid)
{
	struct proc_stat stat;
	return proc_read_stat(proc, pid, &stat) == 0 ? stat.start_ticks : 0;
}

int proc_read_status(int proc, uint32_t pid, struct proc_status *status)
{
	char bytes[STATUS_CAP];
	ssize_t n = read_file(proc, pid, "status", bytes, sizeof(bytes));
	proc_parse_status(bytes, n < 0 ? 0 : (size_t)n, status);
	return result_of(n, n > 0);
}

int proc_read_rollup(int proc, uint32_t pid, struct proc_rollup *rollup)
{
	char bytes[SMALL_CAP];
	ssize_t n = wait_for_file(proc, pid, "smaps_rollup", bytes, sizeof(bytes));
	return result_of(n, n > 0 && proc_parse_rollup(bytes, (size_t)n, rollup));
}

int proc_read_io(int proc, uint32_t pid, struct proc_io *io)
{
	char bytes[SMALL_CAP];
	ssize_t n = wait_for_file(proc, pid, "io", bytes, sizeof(bytes));
	return result_of(n, n > 0 && proc_parse_io(bytes, (size_t)n, io));
}

int64_t proc_read_login_uid(int proc, uint32_t pid)
{
	char bytes[SMALL_CAP];
	uint64_t uid = 0;
	ssize_t n = read_file(proc, pid, "loginuid", bytes, sizeof(bytes));
	/* The largest number means that there is no login uid. */
	bool known = n > 0 && proc_parse_number(bytes, (size_t)n, &uid) && uid < UINT32_MAX;
	return known ? (int64_t)uid : -1;
}

/* The host's namespace maps all uids to themselves, in one line. */
int proc_read_user_namespace(int proc, uint32_t pid)
{
	char bytes[SMALL_CAP];
	unsigned inner = 0, outer = 0, count = 0;
	int end = 0;
	ssize_t n = read_file(proc, pid, "uid_map", bytes, sizeof(bytes));
	if (n <= 0)
		return -1;
	bool one = sscanf(bytes, "%u %u %u %n", &inner, &outer, &count, &end) == 3 && end == n;
	return !one || inner != 0 || outer != 0 || count != UINT32_MAX;
}

ssize_t proc_read_arguments(int proc, uint32_t pid, char *dst, size_t cap)
{
	return wait_for_file(proc, pid, "cmdline", dst, cap);
}

ssize_t proc_read_cgroup(int proc, uint32_t pid, char *dst, size_t cap)
{
	return read_file(proc, pid, "cgroup", dst, cap);
}

ssize_t proc_read_environment(int proc, uint32_t pid, char *dst, size_t cap)
{
	return wait_for_file(proc, pid, "environ", dst, cap);
}

ssize_t proc_read_link(int proc, uint32_t pid, const char *name, char *dst, size_t cap)
{
	char path[NAME_CAP];
	make_name(path, pid, name);
	return readlinkat(proc, path, dst, cap);
}

int proc_stat_program(int proc, uint32_t pid, struct stat *st)
{
	char path[NAME_CAP];
	struct statx now;
	make_name(path, pid, "exe");
	/* AT_STATX_DONT_SYNC: use what the kernel knows, because the server of a network file
	 * system may never answer. */
	if (statx(proc, path, AT_STATX_DONT_SYNC, STATX_UID | STATX_MODE, &now) != 0)
		return -1;
	*st = (struct stat){ .st_uid = now.stx_uid, .st_mode = now.stx_mode };
	return 0;
}

void proc_name_in(char *dst, size_t cap, int directory, const char *name)
{
	snprintf(dst, cap, "/proc/self/fd/%d/%s", directory, name);
}

/* From here on: files of the whole host. */

bool proc_read_memory(int fd, struct proc_memory *memory)
{
	char bytes[2048];
	ssize_t n = read_start(fd, bytes, sizeof(bytes));
	return n > 0 && proc_parse_memory(bytes, (size_t)n, memory);
}

/* Reads only the first line: on a large host the file has thousands. */
bool proc_read_cpu(int fd, struct proc_cpu *cpu)
{
	char bytes[256];
	ssize_t n = read_start(fd, bytes, sizeof(bytes));
	return n > 0 && proc_parse_cpu(bytes, (size_t)n, cpu);
}

int64_t proc_read_newest(int fd)
{
	char bytes[256];
	int64_t newest;
	ssize_t n = read_start(fd, bytes, sizeof(bytes));
	return n > 0 && proc_parse_newest(bytes, (size_t)n, &newest) ? newest : -1;
}

DIR *proc_open_list(int proc)
{
	return file_open_directory(proc, ".");
}

uint32_t proc_next_listed(DIR *list)
{
	for (struct dirent *d = readdir(list); d; d = readdir(list)) {
		uint64_t pid = 0;
		if (proc_parse_number(d->d_name, strlen(d->d_name), &pid) && pid > 0 &&
			pid <= INT_MAX)
			return (uint32_t)pid;
	}
	return 0;
}

/* The file grows with cores and interrupts, to 100 kB and more, and btime is near its end. So
 * it is read in pieces, which overlap by more than the length of the line. */
static int64_t read_boot_time(int fd)
{
	enum { OVERLAP = 64 };
	char bytes[16 * 1024];
	size_t have = 0;
	for (;;) {
		ssize_t n = read(fd, bytes + have, sizeof(bytes) - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		have += (size_t)n;
		int64_t seconds = proc_parse_boot_time(bytes, have);
		if (seconds >= 0)
			return seconds;
		if (have > OVERLAP) {
			memmove(bytes, bytes + have - OVERLAP, OVERLAP);
			have = OVERLAP;
		}
	}
}

/* Uses the clocks of this host, unless they count from another moment (in a time namespace). */
static int64_t finer_boot_ms(int64_t boot_ms)
{
	struct timespec wall, boot;
	if (clock_gettime(CLOCK_REALTIME, &wall) != 0 ||
		clock_gettime(CLOCK_BOOTTIME, &boot) != 0)
		return boot_ms;
	int64_t finer_ms = (int64_t)(wall.tv_sec - boot.tv_sec) * 1000 +
			   (wall.tv_nsec - boot.tv_nsec) / 1000000;
	return llabs(finer_ms - boot_ms) <= 1500 ? finer_ms : boot_ms;
}

int64_t proc_boot_ms(int proc, bool real)
{
	int fd = openat(proc, "stat", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -1;
	int64_t seconds = read_boot_time(fd);
	close(fd);
	if (seconds < 0)
		return -1;
	return real ? finer_boot_ms(seconds * 1000) : seconds * 1000;
}

void proc_read_boot_id(int proc, char *dst, size_t cap)
{
	char bytes[64];
	dst[0] = '\0';
	if (file_read_at(proc, "sys/kernel/random/boot_id", bytes, sizeof(bytes)) > 0)
		str_escape(dst, cap, bytes, strcspn(bytes, "\n"));
}

/* From here on: locks of files. */

bool proc_record_lock(int fd, const struct flock *wanted, pid_t *pid)
{
	struct flock ask = *wanted;
	*pid = 0;
	if (fd < 0 || fcntl(fd, F_GETLK, &ask) != 0)
		return false;
	if (ask.l_type != F_UNLCK)
		*pid = ask.l_pid > 0 ? ask.l_pid : LOCK_UNSEEN;
	return true;
}

bool proc_lock_owner(struct lock_owner *o, int proc, int64_t pid)
{
	struct proc_stat stat;
	struct proc_status status;
	int process = pid > 0 ? proc_open_process(proc, (uint32_t)pid) : -1;
	bool read = process >= 0 && proc_read_stat(process, 0, &stat) == 0 &&
		    proc_read_status(process, 0, &status) == 0;
	file_close(process);
	if (!read)
		return false;
	*o = (struct lock_owner){ .uid = status.uid, .start_ticks = stat.start_ticks };
	memcpy(o->comm, stat.comm, stat.comm_len);
	str_escape(o->name, sizeof(o->name), stat.comm, stat.comm_len);
	return true;
}

/* A line of /proc/locks, such as "1: FLOCK  ADVISORY  WRITE 123 fe:00:4711 0 EOF". */
struct lock_line {
	int64_t pid;
	unsigned major, minor;
	uint64_t inode;
};

/* Takes the next whole line of a flock(2) from *rest; false: there is none. A line with "->" is
 * a process that waits for a lock, and most lines are of other kinds. */
static bool next_lock(char **rest, struct lock_line *l)
{
	for (char *line, *end; (end = strchr(line = *rest, '\n')) != NULL;) {
		*rest = end + 1;
		*end = '\0';
		if (strstr(line, ": FLOCK ") &&
			sscanf(line,
				"%*15[0-9]: FLOCK %*15s %*15s %12" SCNd64 " %8x:%8x:%20" SCNu64,
				&l->pid, &l->major, &l->minor, &l->inode) == 4)
			return true;
	}
	return false;
}

int64_t proc_parse_locks(char *text, const struct file_id *file)
{
	struct lock_line l;
	while (next_lock(&text, &l))
		if (l.major == major(file->device) && l.minor == minor(file->device) &&
			l.inode == file->inode && l.pid > 0 && l.pid <= INT32_MAX)
			return l.pid;
	return -1;
}

/* Reads /proc/locks into memory that the caller frees; NULL: it cannot be read. */
static char *read_locks(int proc)
{
	char *text = malloc(LOCKS_CAP);
	if (text && file_read_at(proc, "locks", text, LOCKS_CAP) >= 0)
		return text;
	free(text);
	return NULL;
}

bool proc_locked_inodes(int proc, struct idmap *inodes)
{
	char *text = read_locks(proc), *rest = text;
	struct lock_line l;
	bool ok = text != NULL;
	while (ok && next_lock(&rest, &l))
		ok = idmap_put(inodes, (int64_t)l.inode, 1);
	free(text);
	return ok;
}

int64_t proc_lock_pid(int proc, const struct file_id *file)
{
	char *text = read_locks(proc);
	int64_t pid = text ? proc_parse_locks(text, file) : -1;
	free(text);
	return pid;
}
