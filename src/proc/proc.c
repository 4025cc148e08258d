/* Reading and parsing what /proc says about one process. */
#include "proc/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"

/* Field 22 of stat is the 20th behind the comm: state is the first of those. */
enum { FIELD_START = 20 };

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

/* Reads digits at *at, moves behind them; false when there are none or too many. */
static bool take_number(const char *bytes, size_t len, size_t *at, uint64_t *number)
{
	size_t start = *at;
	uint64_t n = 0;
	for (; *at < len && is_digit(bytes[*at]); ++*at)
		if (__builtin_mul_overflow(n, 10, &n) ||
			__builtin_add_overflow(n, (uint64_t)(bytes[*at] - '0'), &n))
			return false;
	*number = n;
	return *at > start;
}

bool proc_parse_number(const char *bytes, size_t len, uint64_t *number)
{
	size_t at = 0;
	if (!take_number(bytes, len, &at, number))
		return false;
	while (at < len && is_space(bytes[at]))
		at++;
	return at == len;
}

/* "PID (COMM) STATE PPID ...": the comm may hold anything, parentheses too, so its end is the
 * last one; what follows is numbers only. */
bool proc_parse_stat(const char *bytes, size_t len, struct proc_stat *stat)
{
	const char *open = memchr(bytes, '(', len);
	const char *close = memrchr(bytes, ')', len);
	if (!open || !close || close < open)
		return false;
	stat->comm = open + 1;
	stat->comm_len = (size_t)(close - open) - 1;
	size_t at = (size_t)(close - bytes) + 1;
	for (int field = 1;; field++) {
		while (at < len && bytes[at] == ' ')
			at++;
		if (at == len || is_space(bytes[at]))
			return false;
		if (field == 1)
			stat->state = bytes[at];
		if (field == FIELD_START)
			break;
		while (at < len && !is_space(bytes[at]))
			at++;
	}
	/* A number that ends with the bytes may have been cut. */
	return take_number(bytes, len, &at, &stat->start_ticks) && at < len &&
	       is_space(bytes[at]);
}

/* "Uid:\tREAL\tEFFECTIVE\tSAVED\tFS" */
bool proc_parse_uid(const char *bytes, size_t len, uint32_t *uid)
{
	static const char key[] = "\nUid:";
	const char *line = memmem(bytes, len, key, sizeof(key) - 1);
	if (!line)
		return false;
	size_t at = (size_t)(line - bytes) + sizeof(key) - 1;
	uint64_t number = 0;
	for (int i = 0; i < 2; i++) {
		while (at < len && (bytes[at] == '\t' || bytes[at] == ' '))
			at++;
		if (!take_number(bytes, len, &at, &number))
			return false;
	}
	if (at == len || number > UINT32_MAX)
		return false;
	*uid = (uint32_t)number;
	return true;
}

bool proc_next_argument(
	const char *bytes, size_t len, size_t *at, const char **arg, size_t *arg_len)
{
	if (*at >= len)
		return false;
	*arg = bytes + *at;
	*arg_len = strnlen(*arg, len - *at);
	*at += *arg_len + 1;
	return true;
}

int proc_open(const char *proc, uint32_t pid)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%u", proc, pid);
	if (n < 0 || (size_t)n >= sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* "btime N" at the start of a line and whole; -1 when it is not in these bytes. */
static int64_t find_boot_time(const char *bytes, size_t len)
{
	static const char key[] = "\nbtime ";
	const char *line = memmem(bytes, len, key, sizeof(key) - 1);
	if (!line)
		return -1;
	size_t at = (size_t)(line - bytes) + sizeof(key) - 1;
	uint64_t seconds = 0;
	bool whole = take_number(bytes, len, &at, &seconds) && at < len && bytes[at] == '\n';
	return whole && seconds < INT64_MAX / 1000 ? (int64_t)seconds : -1;
}

/* The file grows with cores and interrupts, to 100 kB and more, and btime stands near its end:
 * so it is read in pieces that overlap by more than the line is long. */
int64_t proc_boot_time(const char *proc, char *buffer, size_t cap)
{
	enum { OVERLAP = 64 };
	char path[PATH_MAX];
	if (snprintf(path, sizeof(path), "%s/stat", proc) >= (int)sizeof(path))
		return -1;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -1;
	int64_t seconds = -1;
	size_t have = 0;
	for (;;) {
		ssize_t n = read(fd, buffer + have, cap - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		have += (size_t)n;
		seconds = find_boot_time(buffer, have);
		if (seconds >= 0)
			break;
		if (have > OVERLAP) {
			memmove(buffer, buffer + have - OVERLAP, OVERLAP);
			have = OVERLAP;
		}
	}
	close(fd);
	return seconds;
}
