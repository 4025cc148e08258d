/* Bytes as a file, for targets that open one by its path. */
#ifndef GUA_TESTS_FUZZ_FUZZ_FILE_H
#define GUA_TESTS_FUZZ_FUZZ_FILE_H

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

/* Writes the bytes into a file of this process, in memory where there is such a place, and
 * gives its path; what SQLite leaves beside it is removed with the one before. */
static inline const char *fuzz_file(const uint8_t *data, size_t size)
{
	static char path[64];
	char beside[80];
	const char *where = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	snprintf(path, sizeof(path), "%s/gua-fuzz-%d.db", where, (int)getpid());
	static const char *const endings[] = { "", "-wal", "-shm", "-journal" };
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		snprintf(beside, sizeof(beside), "%s%s", path, endings[i]);
		unlink(beside);
	}
	if (!data)
		return path;
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	close(fd);
	return path;
}

#endif
