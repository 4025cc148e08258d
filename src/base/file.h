/* Reads small files, mainly in /proc, up to a limit; it does not rely on the size that the
 * system reports. Also replaces files and makes directories. */
#pragma once

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"

/* Reads at most cap-1 bytes of `name` below the directory `dirfd` (AT_FDCWD: a path) into `dst`
 * and terminates it with a NUL (the content may hold NULs itself). Returns the bytes read, or
 * -1 with errno. */
ssize_t file_read_at(int dirfd, const char *name, char *dst, size_t cap);

/* The same for a file that was just opened (or was not: -1 with errno), which is closed, and
 * which the kernel returns with one read if the buffer is large enough, as it does with most
 * files of a process. There is no second read to find the end. */
ssize_t file_read_piece(int fd, char *dst, size_t cap);

/* Opens a directory below another one for reading, or NULL with errno. The caller closes it
 * with closedir(3). */
DIR *file_open_directory(int dirfd, const char *name);

/* Makes a path from a format; false: it does not fit. */
bool file_path(char path[PATH_MAX], const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The same as file_read_at() for ROOT/PATH; `root` is "" for the system's own files. */
ssize_t file_read_below(const char *root, const char *path, char *dst, size_t cap);
bool file_is_below(const char *root, const char *path);

/* Reads a whole text file of at most `max` bytes; the caller frees *data. A file with a NUL
 * byte is refused. */
int file_read_all(const char *path, size_t max, char **data, size_t *len, struct err *e);

/* The content of a file, and what kind of file it is. The caller frees `data`. */
struct file_content {
	char *data;
	size_t len;
	struct stat st; /* of the file that was read, even if `path` names another one by now */
	int error;	/* errno, if it could not be opened */
};
/* The same for a file that must be a regular one, or /dev/null, which is empty: others could
 * block their reader for ever, or never end. */
int file_read_regular(
	const char *path, size_t max, struct file_content *content, struct err *e);

/* Fails unless `path` is a regular file that may be read: a pipe or device could block its
 * reader for ever, or never end. */
int file_check_regular(const char *path, struct err *e);

/* Whether a descriptor that was just opened can stay open for long: true if this process may
 * still open enough other files for short use. */
bool file_can_stay_open(int fd);

/* Lets this process open as many files as the system allows it: the usual limit is lower, for
 * programs that use select(2). */
void file_allow_many(void);

/* Closes a descriptor; a negative one is none. */
void file_close(int fd);
/* Call at the start of a program: opens /dev/null in place of closed standard streams.
 * Otherwise the next file that is opened would get their number and the program's output.
 * Writing to them stays an error. */
void file_hold_standard(void);

/* Replaces the whole file or, on failure, leaves the old one: readers never see a part of it.
 * The new file keeps mode and owner. If `path` is a device, a FIFO or a symbolic link, the
 * bytes are written to what it names. */
int file_replace(const char *path, const char *bytes, size_t len, struct err *e);
/* The same for a directory of somebody else: nothing there is followed or kept. A link or a
 * FIFO is replaced, too, and the new file has the mode of the mask. */
int file_replace_entry(const char *path, const char *bytes, size_t len, struct err *e);

/* Identifies the file that a path leads to. Comparing orders files; 0: the same file. */
struct file_id {
	dev_t device;
	ino_t inode;
};
int file_id_compare(const struct file_id *a, const struct file_id *b);

/* Finds the nearest directory above `path` that exists, to check if files can be made in it. */
void file_nearest_directory(char *dir, size_t cap, const char *path);
/* Makes `path` and its missing parents with `mode`. */
int file_make_directories(const char *path, mode_t mode, struct err *e);
/* The same for the directory that the file `path` is in. */
int file_make_parent(const char *path, mode_t mode, struct err *e);
/* Opens a file for reading and writing, and makes it if it is not there: flags and result are
 * those of open(2). What root makes in the directory of another user, such as that of a
 * service, belongs to that user. With O_CREAT, a file that only a link names is made, too, and
 * the system refuses a file of others in a directory such as /tmp: fs.protected_regular. */
int file_open_or_make(const char *path, int flags, mode_t mode);
/* Makes a path absolute, if it is relative, in `storage` of PATH_MAX bytes. NULL and an empty
 * path do not change. */
int file_make_absolute(const char **path, char *storage, struct err *e);
