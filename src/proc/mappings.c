/* Reads how much of each file a process has in memory: /proc/PID/smaps. */
#include "proc/mappings.h"

enum {
	PIECE = 32 * 1024, /* longer than any line */
	LINE_CAP = 128,	   /* what is needed of a line */
	SHARED_LEAST = 16 * 1024,
	/* Less than the reader allows for one process: see reader.c. */
	LONGEST_US = 150 * 1000,
};
/* No process has more; sums of several stay small enough. */
#define KIB_MOST (INT64_C(1) << 33)

static int64_t shared_bytes(const struct mapping *row)
{
	return row->resident_bytes - row->share_bytes;
}

/* The row of the file, or one for it; NULL: there is no room, and all others are larger. */
static struct mapping *row_for(struct mappings *m, const struct mapping *open)
{
	struct mapping *least = NULL;
	for (size_t i = m->n; i-- > 0;) {
		struct mapping *row = &m->rows[i];
		if (row->inode == open->inode && row->device == open->device)
			return row;
		if (!least || shared_bytes(row) < shared_bytes(least))
			least = row;
	}
	if (m->n < MAPPINGS_MAX)
		least = &m->rows[m->n++];
	else if (shared_bytes(least) >= shared_bytes(open))
		return NULL;
	*least = (struct mapping){ .device = open->device, .inode = open->inode };
	return least;
}

/* The lines of a mapping are complete: adds it to those of its file. */
static void close_open(struct mappings *m)
{
	struct mapping *open = &m->open;
	open->resident_bytes -= m->copied_bytes;
	open->share_bytes -= m->copied_bytes;
	if (open->share_bytes < 0)
		open->share_bytes = 0;
	if (open->share_bytes > open->resident_bytes)
		open->share_bytes = open->resident_bytes;
	struct mapping *row = open->inode && open->resident_bytes > 0 ? row_for(m, open) : NULL;
	if (row) {
		row->resident_bytes += open->resident_bytes;
		row->share_bytes += open->share_bytes;
	}
	*open = (struct mapping){ 0 };
	m->copied_bytes = 0;
}

/* The value of a line, "  N kB". */
static int64_t bytes_in(const char *text)
{
	long long kib = strtoll(text, NULL, 10);
	return (kib < 0 ? 0 : kib > KIB_MOST ? KIB_MOST : kib) * 1024;
}

size_t mappings_parse(struct mappings *m, const char *bytes, size_t len)
{
	size_t at = 0;
	const char *newline;
	char line[LINE_CAP];
	while (at < len && (newline = memchr(bytes + at, '\n', len - at))) {
		size_t n = (size_t)(newline - bytes) - at;
		size_t kept = n < sizeof(line) - 1 ? n : sizeof(line) - 1;
		memcpy(line, bytes + at, kept);
		line[kept] = '\0';
		/* "START-END PERMS OFFSET MAJOR:MINOR INODE PATH", or "Name:  N kB". */
		unsigned major, minor;
		unsigned long long inode;
		if (strncmp(line, "Rss:", 4) == 0)
			m->open.resident_bytes = bytes_in(line + 4);
		else if (strncmp(line, "Pss:", 4) == 0)
			m->open.share_bytes = bytes_in(line + 4);
		else if (strncmp(line, "Anonymous:", 10) == 0)
			m->copied_bytes = bytes_in(line + 10);
		else if ((*line < 'A' || *line > 'Z') &&
			 sscanf(line, "%*[0-9a-f]-%*[0-9a-f] %*s %*[0-9a-f] %x:%x %llu", &major,
				 &minor, &inode) == 3) {
			close_open(m);
			m->open.device = (uint64_t)major << 32 | minor;
			m->open.inode = inode;
		}
		at += n + 1;
	}
	return at;
}

void mappings_end(struct mappings *m)
{
	size_t kept = 0;
	close_open(m);
	for (size_t i = 0; i < m->n; i++)
		if (shared_bytes(&m->rows[i]) >= SHARED_LEAST)
			m->rows[kept++] = m->rows[i];
	m->n = kept;
}

int mappings_read(int proc, uint32_t pid, struct mappings *m)
{
	char path[32], bytes[PIECE];
	size_t have = 0;
	ssize_t n;
	snprintf(path, sizeof(path), pid ? "%u/smaps" : "smaps", pid);
	int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	memset(m, 0, sizeof(*m));
	int64_t end_us = clock_monotonic_us() + LONGEST_US;
	while ((n = read(fd, bytes + have, sizeof(bytes) - have)) > 0) {
		have += (size_t)n;
		size_t used = mappings_parse(m, bytes, have);
		have = used ? have - used : 0; /* a line without an end is not of smaps */
		memmove(bytes, bytes + used, have);
		if (clock_monotonic_us() > end_us) {
			errno = ETIME;
			n = -1;
			break;
		}
	}
	int saved = errno;
	close(fd);
	errno = saved;
	mappings_end(m);
	return n < 0 ? -1 : 0;
}
