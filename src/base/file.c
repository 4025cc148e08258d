/* Reads files up to a size limit, replaces them, and makes directories. */
#include "base/file.h"

#include <sys/resource.h>
#include <sys/sysmacros.h>

#include "base/base.h"

/* How many descriptors to leave free for files that are open for a short time: a store needs
 * four, and each thread needs some. */
enum { SPARE_FILES = 64 };
/* Size of the first buffer when a whole file is read. */
enum { FIRST_BYTES = 16384 };

/* The kernel gives the lowest free number, so the number shows how many are in use. */
bool file_can_stay_open(int fd)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return true;
	rlim_t spare = limit.rlim_cur / 2 < SPARE_FILES ? limit.rlim_cur / 2 : SPARE_FILES;
	return (rlim_t)fd < limit.rlim_cur - spare;
}

void file_allow_many(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static ssize_t read_once(int fd, char *dst, size_t cap)
{
	ssize_t n;
	do
		n = read(fd, dst, cap);
	while (n < 0 && errno == EINTR);
	return n;
}

static ssize_t read_up_to(int fd, char *dst, size_t cap)
{
	size_t len = 0;
	while (len < cap) {
		ssize_t n = read_once(fd, dst + len, cap - len);
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	return (ssize_t)len;
}

/* Reads from `fd` with `fill`, one of the two functions above, then closes it. Returns what
 * file_read_at() returns. */
static ssize_t read_opened(
	int fd, char *dst, size_t cap, ssize_t (*fill)(int fd, char *dst, size_t cap))
{
	if (fd < 0)
		return -1;
	ssize_t n = fill(fd, dst, cap - 1);
	int saved = errno;
	close(fd);
	errno = saved;
	if (n >= 0)
		dst[n] = '\0';
	return n;
}

ssize_t file_read_at(int dirfd, const char *name, char *dst, size_t cap)
{
	return read_opened(
		openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK), dst, cap, read_up_to);
}

ssize_t file_read_piece(int fd, char *dst, size_t cap)
{
	return read_opened(fd, dst, cap, read_once);
}

DIR *file_open_directory(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	if (!directory && fd >= 0)
		close(fd);
	return directory;
}

/* Reads a whole text into a buffer that grows with it. NULL: errno says why (EILSEQ: the text
 * has a NUL), or *len is more than `max`. A hole in a file reads as NULs, so reading stops
 * there and takes no memory for it. */
static char *read_growing(int fd, size_t max, size_t *len)
{
	char *buffer = NULL;
	*len = 0;
	for (size_t cap = FIRST_BYTES;; cap *= 2) {
		cap = cap > max ? max + 1 : cap;
		char *larger = realloc(buffer, cap + 1);
		ssize_t n = larger ? read_up_to(fd, larger + *len, cap - *len) : -1;
		buffer = larger ? larger : buffer;
		if (n > 0 && memchr(buffer + *len, '\0', (size_t)n)) {
			errno = EILSEQ;
			n = -1;
		}
		*len += n < 0 ? 0 : (size_t)n;
		if (n >= 0 && *len < cap)
			return buffer;
		if (n < 0 || *len > max) {
			int saved = errno;
			free(buffer);
			errno = saved;
			return NULL;
		}
	}
}

/* Opens a file for reading, without waiting (for the writer of a FIFO, for example). */
static int open_to_read(const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		err_set(e, ERR_WORLD, "cannot open %s: %s", path, strerror(errno));
	return fd;
}

static int read_whole(
	int fd, const char *path, size_t max, struct file_content *f, struct err *e)
{
	f->data = read_growing(fd, max, &f->len);
	if (!f->data && f->len > max)
		return err_set(e, ERR_WORLD, "%s is larger than %zu bytes", path, max);
	if (!f->data)
		return err_set(e, ERR_WORLD, "cannot read %s: %s", path,
			errno == EILSEQ ? "it has a NUL byte, so it is not a text file"
					: strerror(errno));
	f->data[f->len] = '\0';
	return 0;
}

int file_read_all(const char *path, size_t max, char **data, size_t *len, struct err *e)
{
	struct file_content f = { 0 };
	int fd = open_to_read(path, e);
	if (fd < 0)
		return ERR_WORLD;
	int rc = read_whole(fd, path, max, &f, e);
	close(fd);
	if (rc)
		return rc;
	*data = f.data;
	*len = f.len;
	return 0;
}

static int not_regular(const char *path, mode_t mode, struct err *e)
{
	return err_set(e, ERR_WORLD, "cannot read %s: it is %s; give a file", path,
		S_ISDIR(mode) ? "a directory" : "not a regular file");
}

int file_read_regular(const char *path, size_t max, struct file_content *content, struct err *e)
{
	int rc = 0;
	*content = (struct file_content){ 0 };
	int fd = open_to_read(path, e);
	if (fd < 0) {
		content->error = errno;
		return ERR_WORLD;
	}
	struct stat *st = &content->st;
	if (fstat(fd, st) != 0)
		rc = err_set(e, ERR_WORLD, "cannot read %s: %s", path, strerror(errno));
	else if (!S_ISREG(st->st_mode) &&
		 !(S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3))) /* /dev/null */
		rc = not_regular(path, st->st_mode, e);
	else
		rc = read_whole(fd, path, max, content, e);
	close(fd);
	return rc;
}

int file_check_regular(const char *path, struct err *e)
{
	struct stat st;
	/* The file is not opened: closing it would drop the locks that SQLite has on it. */
	if (stat(path, &st) != 0 || access(path, R_OK) != 0)
		return err_set(e, ERR_WORLD, "cannot open %s: %s", path, strerror(errno));
	return S_ISREG(st.st_mode) ? 0 : not_regular(path, st.st_mode, e);
}

void file_nearest_directory(char *dir, size_t cap, const char *path)
{
	if (!str_copy(dir, cap, path))
		str_copy(dir, cap, "/");
	do {
		char *slash = strrchr(dir, '/');
		if (!slash)
			str_copy(dir, cap, ".");
		else if (slash == dir)
			dir[1] = '\0';
		else
			*slash = '\0';
	} while (access(dir, F_OK) != 0 && strcmp(dir, "/") != 0 && strcmp(dir, ".") != 0);
}

int file_make_directories(const char *path, mode_t mode, struct err *e)
{
	char part[PATH_MAX];
	if (!str_copy(part, sizeof(part), path))
		return err_set(e, ERR_USAGE, "the path %s is too long", path);
	for (char *slash = part + 1;; slash++) {
		if (*slash != '/' && *slash != '\0')
			continue;
		char saved = *slash;
		*slash = '\0';
		if (mkdir(part, mode) != 0 && errno != EEXIST)
			return err_set(e, ERR_WORLD, "cannot make the directory %s: %s", part,
				strerror(errno));
		if (!saved)
			return 0;
		*slash = saved;
	}
}

int file_make_parent(const char *path, mode_t mode, struct err *e)
{
	char parent[PATH_MAX];
	str_copy(parent, sizeof(parent), path);
	char *slash = strrchr(parent, '/');
	if (!slash || slash == parent)
		return 0;
	*slash = '\0';
	return file_make_directories(parent, mode, e);
}

int file_open_or_make(const char *path, int flags, mode_t mode)
{
	char parent[PATH_MAX];
	struct stat dir;
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	if (!file_path(parent, "%.*s", (int)(name - path), path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	/* The directory is opened once, because others may replace what its path names. */
	int at = open(*parent ? parent : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (at < 0)
		return -1;
	/* O_EXCL follows no link, so that only a file of this directory is given away. */
	int fd = openat(at, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | flags, mode);
	if (fd < 0 && errno == EEXIST)
		fd = openat(at, name, O_RDWR | O_CLOEXEC | flags, mode);
	/* Where root may not give files away, as in some containers, it stays root's. */
	else if (fd >= 0 && geteuid() == 0 && fstat(at, &dir) == 0 && dir.st_uid != 0)
		(void)!fchown(fd, dir.st_uid, dir.st_gid);
	int why = errno;
	close(at);
	errno = why;
	return fd;
}

void file_close(int fd)
{
	if (fd >= 0)
		close(fd);
}

void file_hold_standard(void)
{
	int fd = 0;
	while (fd >= 0 && fd <= STDERR_FILENO)
		fd = open("/dev/null", O_RDONLY);
	if (fd > STDERR_FILENO)
		close(fd);
}

static bool write_whole(int fd, const char *bytes, size_t len)
{
	while (len) {
		ssize_t n = write(fd, bytes, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		bytes += n;
		len -= (size_t)n;
	}
	return true;
}

/* Gives a new file the mode and the owner of `before`, the file that it replaces (NULL: none).
 * If the group cannot be kept, the group gets no rights. */
static void permit(int fd, const struct stat *before)
{
	mode_t mask = umask(077); /* setting the mask is the only way to read it */
	umask(mask);
	bool same = before && fchown(fd, before->st_uid, before->st_gid) == 0;
	(void)fchmod(fd, before ? before->st_mode & (same ? 0777 : 0707) : 0666 & ~mask);
}

bool file_path(char path[PATH_MAX], const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int n = vsnprintf(path, PATH_MAX, format, args);
	va_end(args);
	return n >= 0 && n < PATH_MAX;
}

ssize_t file_read_below(const char *root, const char *path, char *dst, size_t cap)
{
	char whole[PATH_MAX];
	if (!file_path(whole, "%s%s", root, path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return file_read_at(AT_FDCWD, whole, dst, cap);
}

bool file_is_below(const char *root, const char *path)
{
	char whole[PATH_MAX];
	return file_path(whole, "%s%s", root, path) && access(whole, F_OK) == 0;
}

/* Opens the file to write: a new file beside `path`, whose name goes into `made`; or, with
 * `keep`, if `path` is a device, a FIFO or a link such as /dev/stdout, what it names. */
static int open_beside(const char *path, bool keep, char made[PATH_MAX])
{
	struct stat there;
	bool exists = keep && lstat(path, &there) == 0;
	made[0] = '\0';
	if (exists && S_ISLNK(there.st_mode))
		return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY | O_CLOEXEC, 0666);
	if (exists && !S_ISREG(there.st_mode))
		return open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
	if (!file_path(made, "%s.XXXXXX", path)) {
		made[0] = '\0';
		errno = ENAMETOOLONG;
		return -1;
	}
	int fd = mkostemp(made, O_CLOEXEC);
	if (fd < 0)
		made[0] = '\0';
	else
		permit(fd, exists ? &there : NULL);
	return fd;
}

static int replace(const char *path, bool keep, const char *bytes, size_t len, struct err *e)
{
	char made[PATH_MAX];
	int fd = open_beside(path, keep, made);
	bool ok = fd >= 0 && write_whole(fd, bytes, len);
	int why = errno;
	if (fd >= 0 && close(fd) != 0 && ok) {
		ok = false;
		why = errno;
	}
	if (ok && *made && rename(made, path) != 0) {
		ok = false;
		why = errno;
	}
	if (!ok && *made)
		unlink(made);
	return ok ? 0 : err_set(e, ERR_WORLD, "cannot write %s: %s", path, strerror(why));
}

int file_replace(const char *path, const char *bytes, size_t len, struct err *e)
{
	return replace(path, true, bytes, len, e);
}

int file_replace_entry(const char *path, const char *bytes, size_t len, struct err *e)
{
	return replace(path, false, bytes, len, e);
}

int file_make_absolute(const char **path, char *storage, struct err *e)
{
	char here[PATH_MAX];
	if (!*path || **path == '/' || **path == '\0')
		return 0;
	if (!getcwd(here, sizeof(here)) || !file_path(storage, "%s/%s", here, *path))
		return err_set(e, ERR_USAGE, "the path %s is too long", *path);
	*path = storage;
	return 0;
}

int file_id_compare(const struct file_id *a, const struct file_id *b)
{
	if (a->inode != b->inode)
		return a->inode < b->inode ? -1 : 1;
	return a->device < b->device ? -1 : a->device > b->device;
}
