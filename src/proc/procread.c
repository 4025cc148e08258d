/* Parsers of the kernel's counters. */
#include "proc/procread.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The number at or behind *p, blanks passed over; moves behind it. A sign is allowed. False
 * when there is none before the end of the line. Too large a number stays at INT64_MAX. */
static bool next_number(const char **p, const char *end, int64_t *number)
{
	const char *at = *p;
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	bool minus = at < end && *at == '-';
	at += minus;
	if (at == end || !is_digit(*at))
		return false;
	int64_t n = 0;
	for (; at < end && is_digit(*at); at++)
		if (__builtin_mul_overflow(n, 10, &n) ||
			__builtin_add_overflow(n, *at - '0', &n))
			n = INT64_MAX;
	*p = at;
	*number = minus ? -n : n;
	return true;
}

/* The number behind `key` (with its colon) at the start of a line; -1 when it is not there. */
static int64_t keyed(const char *bytes, size_t len, const char *key)
{
	size_t key_len = strlen(key);
	const char *end = bytes + len;
	for (const char *line = bytes; line && line < end;) {
		const char *p = line + key_len;
		int64_t number;
		if ((size_t)(end - line) > key_len && memcmp(line, key, key_len) == 0 &&
			next_number(&p, end, &number))
			return number;
		line = memchr(line, '\n', (size_t)(end - line));
		line += line != NULL;
	}
	return -1;
}

static int64_t keyed_kib(const char *bytes, size_t len, const char *key)
{
	int64_t kib = keyed(bytes, len, key);
	return kib < 0 || kib > INT64_MAX / 1024 ? -1 : kib * 1024;
}

/* Fields behind the comm, which may hold anything: state is the first. */
enum {
	FIELD_PPID = 1,
	FIELD_MINOR = 7,
	FIELD_THREADS = 17,
	FIELD_START = 19,
	FIELD_RSS = 21,
	STAT_FIELDS = 22,
};

bool stat_line_parse(const char *bytes, size_t len, struct stat_line *s)
{
	const char *close = memrchr(bytes, ')', len), *end = bytes + len;
	int64_t field[STAT_FIELDS] = { 0 };
	if (!close || end - close < 4)
		return false;
	s->state = close[2];
	const char *p = close + 3;
	for (int i = 1; i < STAT_FIELDS; i++)
		if (!next_number(&p, end, &field[i]))
			return false;
	s->ppid = (pid_t)field[FIELD_PPID];
	s->minor_faults = field[FIELD_MINOR];
	s->waited_minor_faults = field[FIELD_MINOR + 1];
	s->major_faults = field[FIELD_MINOR + 2];
	s->waited_major_faults = field[FIELD_MINOR + 3];
	s->user_ticks = field[FIELD_MINOR + 4];
	s->system_ticks = field[FIELD_MINOR + 5];
	s->waited_user_ticks = field[FIELD_MINOR + 6];
	s->waited_system_ticks = field[FIELD_MINOR + 7];
	s->threads = field[FIELD_THREADS];
	s->start_ticks = (uint64_t)field[FIELD_START];
	s->rss_pages = field[FIELD_RSS];
	return p < end;
}

void status_parse(const char *bytes, size_t len, struct status_lines *s)
{
	s->tgid = keyed(bytes, len, "Tgid:");
	s->uid = keyed(bytes, len, "Uid:");
	s->peak_rss_bytes = keyed_kib(bytes, len, "VmHWM:");
	s->voluntary = keyed(bytes, len, "voluntary_ctxt_switches:");
	s->involuntary = keyed(bytes, len, "nonvoluntary_ctxt_switches:");
}

static int64_t or_zero(int64_t n)
{
	return n < 0 ? 0 : n;
}

bool rollup_parse(const char *bytes, size_t len, struct rollup *r)
{
	/* Pages of hugetlbfs are in none of the first three. */
	int64_t huge = or_zero(keyed_kib(bytes, len, "Private_Hugetlb:"));
	int64_t rss = keyed_kib(bytes, len, "Rss:"), pss = keyed_kib(bytes, len, "Pss:");
	if (rss < 0 || pss < 0)
		return false;
	r->rss_bytes = rss + huge;
	r->pss_bytes = pss + huge;
	r->uss_bytes = or_zero(keyed_kib(bytes, len, "Private_Clean:")) +
		       or_zero(keyed_kib(bytes, len, "Private_Dirty:")) + huge;
	int64_t swap = keyed_kib(bytes, len, "SwapPss:");
	r->swap_bytes = or_zero(swap < 0 ? keyed_kib(bytes, len, "Swap:") : swap);
	return true;
}

bool io_parse(const char *bytes, size_t len, int64_t *read_bytes, int64_t *written_bytes)
{
	*read_bytes = keyed(bytes, len, "read_bytes:");
	*written_bytes = keyed(bytes, len, "write_bytes:");
	return *read_bytes >= 0 && *written_bytes >= 0;
}

bool meminfo_parse(const char *bytes, size_t len, int64_t *total_bytes, int64_t *used_bytes)
{
	int64_t total = keyed_kib(bytes, len, "MemTotal:");
	int64_t free = keyed_kib(bytes, len, "MemFree:");
	if (total < 0 || free < 0)
		return false;
	int64_t used = total - free - or_zero(keyed_kib(bytes, len, "Buffers:")) -
		       or_zero(keyed_kib(bytes, len, "Cached:")) -
		       or_zero(keyed_kib(bytes, len, "SReclaimable:"));
	*total_bytes = total;
	*used_bytes = used < 0 ? total - free : used;
	return true;
}

/* "cpu  USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL GUEST GUEST_NICE": guests are in user
 * and nice already. */
bool cpu_line_parse(const char *bytes, size_t len, int64_t *busy_ticks, int64_t *all_ticks)
{
	enum { IDLE = 3, IOWAIT = 4, FIELDS = 8 };
	if (len < 4 || memcmp(bytes, "cpu ", 4) != 0)
		return false;
	const char *p = bytes + 4, *end = bytes + len;
	int64_t number, all = 0, idle = 0;
	for (int i = 0; i < FIELDS && next_number(&p, end, &number); i++) {
		all += number;
		idle += i == IDLE || i == IOWAIT ? number : 0;
	}
	*busy_ticks = all - idle;
	*all_ticks = all;
	return all > 0;
}

bool loadavg_parse(const char *bytes, size_t len, int64_t *newest_pid)
{
	while (len > 0 && (bytes[len - 1] == '\n' || bytes[len - 1] == '\0'))
		len--;
	const char *blank = memrchr(bytes, ' ', len), *end = bytes + len;
	return blank && next_number(&blank, end, newest_pid) && blank == end;
}

void proc_name(char *dst, size_t cap, pid_t pid, const char *name)
{
	char digits[16];
	size_t n = 0, at = 0;
	unsigned left = pid > 0 ? (unsigned)pid : 0;
	do {
		digits[n++] = (char)('0' + left % 10);
		left /= 10;
	} while (left);
	while (n && at + 2 < cap)
		dst[at++] = digits[--n];
	dst[at++] = '/';
	while (*name && at + 1 < cap)
		dst[at++] = *name++;
	dst[at] = '\0';
}

ssize_t read_again(int fd, char *dst, size_t cap)
{
	size_t len = 0;
	while (len < cap - 1) {
		ssize_t n = pread(fd, dst + len, cap - 1 - len, (off_t)len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	dst[len] = '\0';
	return (ssize_t)len;
}
