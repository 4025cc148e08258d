/* Bytes as a file, for targets that open one by its path. */
#ifndef GUA_TESTS_FUZZ_FUZZ_FILE_H
#define GUA_TESTS_FUZZ_FUZZ_FILE_H

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

enum { FUZZ_PATH = 64 };

/* Removes the file and what SQLite left beside it. */
static inline void fuzz_file_remove(const char *path)
{
	static const char *const endings[] = { "", "-wal", "-shm", "-journal" };
	char beside[FUZZ_PATH + 16];
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		snprintf(beside, sizeof(beside), "%s%s", path, endings[i]);
		unlink(beside);
	}
}

/* Writes the bytes into a file of this process, in memory where there is such a place. */
static inline void fuzz_file_at(
	char path[FUZZ_PATH], const char *ending, const uint8_t *data, size_t size)
{
	const char *where = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	snprintf(path, FUZZ_PATH, "%s/gua-fuzz-%d.%s", where, (int)getpid(), ending);
	fuzz_file_remove(path);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && (!size || write(fd, data, size) == (ssize_t)size));
	close(fd);
}

#endif
