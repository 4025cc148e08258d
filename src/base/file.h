/* Reads small files, mainly in /proc, up to a limit; it does not rely on the size that the
 * system reports. */
#ifndef GUA_BASE_FILE_H
#define GUA_BASE_FILE_H

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

/* The same for a file that the kernel hands over with one read, if there is room for it, as it
 * does with most files of a process: there is no second read to find its end. */
ssize_t file_read_piece_at(int dirfd, const char *name, char *dst, size_t cap);

/* The same for such a file that may make its reader wait, as some files of processes do
 * whatever flags they are opened with. A FIFO in a recorded tree makes its reader wait too. */
ssize_t file_wait_piece_at(int dirfd, const char *name, char *dst, size_t cap);

/* Reads a whole text file of at most `max` bytes; the caller frees *data. A file with a NUL
 * byte is refused. */
int file_read_all(const char *path, size_t max, char **data, size_t *len, struct err *e);

/* What was read, and what the file is. Free `data`. */
struct file_content {
	char *data;
	size_t len;
	struct stat st; /* of the file that was read, whatever its name means now */
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

/* Call at the start of a program: opens /dev/null in place of closed standard streams.
 * Otherwise the next file that is opened would get their number and the program's output.
 * Writing to them stays an error. */
void file_hold_standard(void);

/* Writes the file whole, or leaves what was there: readers never see a part of it. It keeps its
 * mode and owner. A device or a FIFO, and what a symbolic link names, is written to as it is.
 */
int file_replace(const char *path, const char *bytes, size_t len, struct err *e);

/* Which file a path leads to, and an order of files; 0: it is the same file. */
struct file_id {
	dev_t device;
	ino_t inode;
};
int file_id_compare(const struct file_id *a, const struct file_id *b);

/* The nearest directory above `path` that exists: files can be made there, or not. */
void file_nearest_directory(char *dir, size_t cap, const char *path);
/* Makes `path` and its missing parents with `mode`. */
int file_make_directories(const char *path, mode_t mode, struct err *e);
/* The same for the directory that the file `path` is in. */
int file_make_parent(const char *path, mode_t mode, struct err *e);
/* Makes a path absolute, in `storage` of PATH_MAX bytes where it is not; NULL and an empty one
 * stay. */
int file_make_absolute(const char **path, char *storage, struct err *e);

#endif
