/* Parsers for files of /proc, written by hand so that the tracker itself uses little CPU time.
 */
#include "proc/proc_parse.h"

/* More than any host has, and small enough that sums of a few do not overflow. */
#define MOST_KIB (INT64_C(1) << 50)
#define MOST_TICKS (INT64_C(1) << 59)
#define MOST_PROCESSORS 65536
#define MOST_PAGES (INT64_C(1) << 40)

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

static void skip_blanks(const char **p, const char *end)
{
	while (*p < end && (**p == ' ' || **p == '\t'))
		++*p;
}

/* Reads the digits at *p and moves *p after them; false when there are none, or when the number
 * is too large (then it is UINT64_MAX). */
static bool take_digits(const char **p, const char *end, uint64_t *number)
{
	const char *start = *p;
	bool large = false;
	uint64_t n = 0;
	for (; *p < end && is_digit(**p); ++*p)
		large |= __builtin_mul_overflow(n, 10, &n) ||
			 __builtin_add_overflow(n, (uint64_t)(**p - '0'), &n);
	*number = large ? UINT64_MAX : n;
	return *p > start && !large;
}

/* Reads the number at *p, after any blanks, and moves *p after it. A sign is allowed. False
 * when there is none before the end of the line. A number that is too large becomes INT64_MAX.
 */
static bool next_number(const char **p, const char *end, int64_t *number)
{
	const char *at = *p;
	uint64_t n = 0;
	skip_blanks(&at, end);
	bool minus = at < end && *at == '-';
	at += minus;
	const char *digits = at;
	if (!take_digits(&at, end, &n) && at == digits)
		return false;
	*p = at;
	*number = n > INT64_MAX ? INT64_MAX : (int64_t)n;
	if (minus)
		*number = -*number;
	return true;
}

bool proc_parse_number(const char *bytes, size_t len, uint64_t *number)
{
	const char *p = bytes, *end = bytes + len;
	if (!take_digits(&p, end, number))
		return false;
	while (p < end && is_space(*p))
		p++;
	return p == end;
}

/* Limits a count to more than any host reaches, so that callers can add several. */
static int64_t count(int64_t number)
{
	return number < 0 ? 0 : number > MOST_TICKS ? MOST_TICKS : number;
}

/* Returns what follows `key` (with its colon) at the start of a line; NULL: there is no such
 * line. */
static const char *find_key(const char *bytes, size_t len, const char *key)
{
	size_t key_len = strlen(key);
	const char *end = bytes + len;
	for (const char *line = bytes; line && line < end;) {
		if ((size_t)(end - line) > key_len && memcmp(line, key, key_len) == 0)
			return line + key_len;
		line = memchr(line, '\n', (size_t)(end - line));
		if (line)
			line++;
	}
	return NULL;
}

/* Returns the number after `key`; -1 when it is not there, or when the bytes end with it,
 * because it may have been longer. */
static int64_t keyed(const char *bytes, size_t len, const char *key)
{
	const char *p = find_key(bytes, len, key), *end = bytes + len;
	int64_t number;
	if (!p || !next_number(&p, end, &number))
		return -1;
	return p < end && number >= 0 ? count(number) : -1;
}

static int64_t keyed_kib(const char *bytes, size_t len, const char *key)
{
	int64_t kib = keyed(bytes, len, key);
	return kib < 0 || kib > MOST_KIB ? -1 : kib * 1024;
}

/* Fields after the comm: state is the first. */
enum {
	FIELD_PPID = 1,
	FIELD_SESSION = 3,
	FIELD_TTY = 4,
	FIELD_MINOR = 7,
	FIELD_THREADS = 17,
	FIELD_START = 19,
};

static void take_fields(struct proc_stat *stat, const int64_t field[FIELD_START])
{
	stat->ppid = (pid_t)field[FIELD_PPID];
	stat->session = (pid_t)field[FIELD_SESSION];
	stat->tty = (int)field[FIELD_TTY];
	stat->minor_faults = count(field[FIELD_MINOR]);
	stat->waited_minor_faults = count(field[FIELD_MINOR + 1]);
	stat->major_faults = count(field[FIELD_MINOR + 2]);
	stat->waited_major_faults = count(field[FIELD_MINOR + 3]);
	stat->user_ticks = count(field[FIELD_MINOR + 4]);
	stat->system_ticks = count(field[FIELD_MINOR + 5]);
	stat->waited_user_ticks = count(field[FIELD_MINOR + 6]);
	stat->waited_system_ticks = count(field[FIELD_MINOR + 7]);
	stat->threads = count(field[FIELD_THREADS]);
}

/* Reads two counts of pages and returns the second: the first is the size, the second what is
 * resident. -1: the second is not complete, or is more than any host has. */
static int64_t second_pages(const char *p, const char *end)
{
	int64_t size, pages;
	if (!next_number(&p, end, &size) || !next_number(&p, end, &pages) || p == end ||
		pages < 0 || pages > MOST_PAGES)
		return -1;
	return pages;
}

/* "PID (COMM) STATE PPID ...": the comm may contain anything, even parentheses, so it ends at
 * the last one; only numbers follow the state. */
bool proc_parse_stat(const char *bytes, size_t len, struct proc_stat *stat)
{
	const char *open = memchr(bytes, '(', len), *end = bytes + len;
	const char *close = memrchr(bytes, ')', len);
	int64_t field[FIELD_START] = { 0 };
	if (!open || !close || close < open)
		return false;
	stat->comm_len = (size_t)(close - open) - 1;
	if (stat->comm_len > sizeof(stat->comm))
		stat->comm_len = sizeof(stat->comm);
	memcpy(stat->comm, open + 1, stat->comm_len);
	const char *p = close + 1;
	skip_blanks(&p, end);
	if (p == end || is_space(*p))
		return false;
	stat->state = *p++;
	for (int i = 1; i < FIELD_START; i++)
		if (!next_number(&p, end, &field[i]))
			return false;
	take_fields(stat, field);
	skip_blanks(&p, end);
	if (!take_digits(&p, end, &stat->start_ticks) || p == end || !is_space(*p))
		return false;
	stat->rss_pages = second_pages(p, end);
	return true;
}

int64_t proc_parse_resident(const char *bytes, size_t len)
{
	return second_pages(bytes, bytes + len);
}

/* Returns the least of the four numbers after "Uid:"; -1: not all are there. */
static int64_t least_uid(const char *bytes, size_t len)
{
	const char *line = find_key(bytes, len, "Uid:"), *end = bytes + len;
	int64_t least = UINT32_MAX, number;
	for (int i = 0; i < 4; i++) {
		if (!line || !next_number(&line, end, &number) || number < 0)
			return -1;
		least = number < least ? number : least;
	}
	return line == end ? -1 : least;
}

/* Counts the numbers in "Cpus_allowed_list:\t0-3,8"; -1: not a whole line. */
static int64_t processors(const char *bytes, size_t len)
{
	const char *at = find_key(bytes, len, "Cpus_allowed_list:"), *end = bytes + len;
	int64_t n = 0, first, last;
	while (at && at < end && *at != '\n') {
		if (!next_number(&at, end, &first) || first < 0 || at == end)
			return -1;
		last = first;
		if (*at == '-' && (at++, !next_number(&at, end, &last) || last < first))
			return -1;
		n += last - first < MOST_PROCESSORS ? last - first + 1 : MOST_PROCESSORS;
		n = n < MOST_PROCESSORS ? n : MOST_PROCESSORS;
		at += at < end && *at == ',';
	}
	return at && at < end && n ? n : -1;
}

void proc_parse_status(const char *bytes, size_t len, struct proc_status *status)
{
	status->tgid = keyed(bytes, len, "Tgid:");
	/* "Uid:\tREAL\tEFFECTIVE\tSAVED\tFS" */
	status->uid = keyed(bytes, len, "Uid:");
	if (status->uid > UINT32_MAX)
		status->uid = -1;
	status->least_uid = least_uid(bytes, len);
	status->peak_rss_bytes = keyed_kib(bytes, len, "VmHWM:");
	status->processors = processors(bytes, len);
	status->voluntary = keyed(bytes, len, "voluntary_ctxt_switches:");
	status->involuntary = keyed(bytes, len, "nonvoluntary_ctxt_switches:");
}

static int64_t or_zero(int64_t n)
{
	return n < 0 ? 0 : n;
}

bool proc_parse_rollup(const char *bytes, size_t len, struct proc_rollup *rollup)
{
	/* None of the first three includes pages of hugetlbfs. */
	int64_t huge = or_zero(keyed_kib(bytes, len, "Private_Hugetlb:"));
	int64_t rss = keyed_kib(bytes, len, "Rss:"), pss = keyed_kib(bytes, len, "Pss:");
	if (rss < 0 || pss < 0)
		return false;
	rollup->rss_bytes = rss + huge;
	rollup->pss_bytes = pss + huge;
	rollup->uss_bytes = or_zero(keyed_kib(bytes, len, "Private_Clean:")) +
			    or_zero(keyed_kib(bytes, len, "Private_Dirty:")) + huge;
	int64_t swap = keyed_kib(bytes, len, "SwapPss:");
	rollup->swap_bytes = or_zero(swap < 0 ? keyed_kib(bytes, len, "Swap:") : swap);
	return true;
}

bool proc_parse_io(const char *bytes, size_t len, struct proc_io *io)
{
	io->read_bytes = keyed(bytes, len, "read_bytes:");
	io->written_bytes = keyed(bytes, len, "write_bytes:");
	return io->read_bytes >= 0 && io->written_bytes >= 0;
}

bool proc_next_argument(struct proc_arguments *a, const char **arg, size_t *arg_len)
{
	if (a->at >= a->len)
		return false;
	*arg = a->bytes + a->at;
	*arg_len = strnlen(*arg, a->len - a->at);
	a->at += *arg_len + 1;
	return true;
}

bool proc_parse_memory(const char *bytes, size_t len, struct proc_memory *memory)
{
	int64_t total = keyed_kib(bytes, len, "MemTotal:");
	int64_t free = keyed_kib(bytes, len, "MemFree:");
	if (total < 0 || free < 0)
		return false;
	int64_t used = total - free - or_zero(keyed_kib(bytes, len, "Buffers:")) -
		       or_zero(keyed_kib(bytes, len, "Cached:")) -
		       or_zero(keyed_kib(bytes, len, "SReclaimable:"));
	memory->total_bytes = total;
	memory->used_bytes = used < 0 ? total - free : used;
	return true;
}

/* "cpu  USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL GUEST GUEST_NICE": user and nice already
 * include the guests. */
bool proc_parse_cpu(const char *bytes, size_t len, struct proc_cpu *cpu)
{
	enum { IDLE = 3, IOWAIT = 4, FIELDS = 8 };
	if (len < 4 || memcmp(bytes, "cpu ", 4) != 0)
		return false;
	const char *p = bytes + 4, *end = bytes + len;
	int64_t number, all = 0, idle = 0;
	for (int i = 0; i < FIELDS && next_number(&p, end, &number); i++) {
		if (number < 0 || number > MOST_TICKS)
			return false;
		all += number;
		idle += i == IDLE || i == IOWAIT ? number : 0;
	}
	*cpu = (struct proc_cpu){ .busy_ticks = all - idle, .all_ticks = all };
	return all > 0;
}

int64_t proc_parse_boot_time(const char *bytes, size_t len)
{
	static const char key[] = "\nbtime ";
	const char *line = memmem(bytes, len, key, sizeof(key) - 1), *end = bytes + len;
	if (!line)
		return -1;
	const char *p = line + sizeof(key) - 1;
	uint64_t seconds = 0;
	bool whole = take_digits(&p, end, &seconds) && p < end && *p == '\n';
	return whole && seconds < INT64_MAX / 4000 ? (int64_t)seconds : -1;
}

bool proc_parse_newest(const char *bytes, size_t len, int64_t *newest_pid)
{
	while (len > 0 && (bytes[len - 1] == '\n' || bytes[len - 1] == '\0'))
		len--;
	const char *blank = memrchr(bytes, ' ', len), *end = bytes + len;
	return blank && next_number(&blank, end, newest_pid) && blank == end;
}
