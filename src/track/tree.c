/* Finding and reading the members. */
#include "track/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "proc/proc.h"
#include "track/tracker.h"

enum {
	FIRST_MEMBERS = 32,
	/* A list of all processes is cheaper than asking for more pids than this. */
	MOST_NEW_PIDS = 4096,
	PID_LIMIT = 4 * 1024 * 1024, /* the kernel's largest pid_max */
	FIRST_PID = 300,	     /* where the kernel goes on after its largest */
};

static size_t hash_place(const struct tree *t, pid_t pid)
{
	return ((size_t)pid * 0x9E3779B97F4A7C15u >> 20) & (2 * t->cap - 1);
}

static void index_member(struct tree *t, uint32_t i)
{
	size_t at = hash_place(t, (pid_t)t->members[i].shown.id.pid);
	while (t->by_pid[at])
		at = (at + 1) & (2 * t->cap - 1);
	t->by_pid[at] = i + 1;
}

static void index_all(struct tree *t)
{
	memset(t->by_pid, 0, 2 * t->cap * sizeof(*t->by_pid));
	for (uint32_t i = 0; i < t->n; i++)
		index_member(t, i);
}

uint32_t tree_find(const struct tree *t, pid_t pid)
{
	uint32_t ended = NO_MEMBER;
	for (size_t at = hash_place(t, pid); t->by_pid[at]; at = (at + 1) & (2 * t->cap - 1)) {
		uint32_t i = t->by_pid[at] - 1;
		if ((pid_t)t->members[i].shown.id.pid != pid)
			continue;
		if (!t->members[i].gone)
			return i;
		if (ended == NO_MEMBER || i > ended)
			ended = i;
	}
	return ended;
}

static uint32_t find_living(const struct tree *t, pid_t pid)
{
	uint32_t i = tree_find(t, pid);
	return i != NO_MEMBER && !t->members[i].gone ? i : NO_MEMBER;
}

/* Room for one more; a power of two, because places are masked. */
static bool grow(struct tree *t)
{
	if (t->n < t->cap)
		return true;
	size_t cap = t->cap ? 2 * t->cap : FIRST_MEMBERS;
	struct member *members = reallocarray(t->members, cap, sizeof(*members));
	if (members)
		t->members = members;
	uint32_t *by_pid = members ? reallocarray(t->by_pid, 2 * cap, sizeof(*by_pid)) : NULL;
	if (!by_pid)
		return false;
	t->by_pid = by_pid;
	t->cap = cap;
	index_all(t);
	return true;
}

ssize_t tree_read_file(struct tree *t, pid_t pid, const char *name)
{
	char path[48];
	proc_name(path, sizeof(path), pid, name);
	return file_read_at(t->proc_fd, path, t->buffer, sizeof(t->buffer));
}

static bool read_stat(struct tree *t, pid_t pid, struct stat_line *s)
{
	ssize_t n = tree_read_file(t, pid, "stat");
	return n > 0 && stat_line_parse(t->buffer, (size_t)n, s);
}

/* CPU time to the nanosecond, where ticks are 10 ms: what is missing goes to the larger part.
 */
static void sharpen_cpu(const struct tree *t, struct member *m)
{
	struct timespec cpu;
	clockid_t clock;
	if (!t->real || clock_getcpuclockid((pid_t)m->shown.id.pid, &clock) != 0 ||
		clock_gettime(clock, &cpu) != 0)
		return;
	double rest = (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9 - m->own[COUNT_USER] -
		      m->own[COUNT_SYSTEM];
	if (rest <= 0 || rest > 4 * t->tick_s)
		return;
	m->own[m->own[COUNT_USER] >= m->own[COUNT_SYSTEM] ? COUNT_USER : COUNT_SYSTEM] += rest;
}

static void note_end(struct member *m, double now_s)
{
	if (isnan(m->shown.ended_s))
		m->shown.ended_s = now_s;
	m->threads = 0;
	m->rss_bytes = 0;
}

static void take_stat(struct tree *t, struct member *m, const struct stat_line *s, double now_s)
{
	m->own[COUNT_USER] = (double)s->user_ticks * t->tick_s;
	m->own[COUNT_SYSTEM] = (double)s->system_ticks * t->tick_s;
	m->own[COUNT_MINOR] = (double)s->minor_faults;
	m->own[COUNT_MAJOR] = (double)s->major_faults;
	m->waited[COUNT_USER] = (double)s->waited_user_ticks * t->tick_s;
	m->waited[COUNT_SYSTEM] = (double)s->waited_system_ticks * t->tick_s;
	m->waited[COUNT_MINOR] = (double)s->waited_minor_faults;
	m->waited[COUNT_MAJOR] = (double)s->waited_major_faults;
	sharpen_cpu(t, m);
	m->faults = s->minor_faults + s->major_faults;
	m->zombie = s->state == 'Z' || s->state == 'X';
	if (m->zombie) {
		m->final_read = true;
		t->changed |= isnan(m->shown.ended_s);
		note_end(m, now_s);
		return;
	}
	m->threads = s->threads;
	m->rss_bytes = (int64_t)((double)s->rss_pages * t->page_bytes);
	if (m->threads > m->shown.max_threads)
		m->shown.max_threads = m->threads;
	if (m->rss_bytes > m->shown.max_rss_bytes)
		m->shown.max_rss_bytes = m->rss_bytes;
	if (s->ppid != (pid_t)m->shown.ppid) {
		m->shown.ppid = s->ppid;
		m->parent = find_living(t, s->ppid);
	}
}

static void lose(struct tree *t, struct member *m, double now_s)
{
	m->gone = true;
	m->zombie = false;
	note_end(m, now_s);
	t->changed = true;
	if (m->stat_fd >= 0) {
		close(m->stat_fd);
		t->n_open--;
	}
	m->stat_fd = -1;
}

/* Notes the program's name in a stat line; whether it is another one than before. */
static bool is_renamed(struct member *m, const char *line, size_t len)
{
	char comm[sizeof(m->comm)] = { 0 };
	const char *open = memchr(line, '(', len), *close = memrchr(line, ')', len);
	size_t n = open && close > open ? (size_t)(close - open - 1) : 0;
	memcpy(comm, open ? open + 1 : line, n < sizeof(comm) ? n : sizeof(comm));
	bool renamed = memcmp(comm, m->comm, sizeof(comm)) != 0;
	memcpy(m->comm, comm, sizeof(comm));
	return renamed;
}

/* Who it is: its command. */
static void describe(struct tree *t, struct member *m)
{
	struct process_id *id = &m->shown.id;
	struct proc_stat stat;
	char line[1024];
	ssize_t n = tree_read_file(t, (pid_t)id->pid, "stat");
	if (n <= 0 || !proc_parse_stat(t->buffer, (size_t)n, &stat))
		return;
	/* The comm is in the buffer that the arguments are read into. */
	size_t len = stat.comm_len < sizeof(line) ? stat.comm_len : sizeof(line);
	memcpy(line, stat.comm, len);
	stat.comm = line;
	stat.comm_len = len;
	is_renamed(m, t->buffer, (size_t)n);
	n = tree_read_file(t, (pid_t)id->pid, "cmdline");
	proc_command(id->command, sizeof(id->command), t->buffer, n < 0 ? 0 : (size_t)n, &stat);
}

/* Takes a stat line, which is in the buffer. Who has executed another program since is
 * described again; and once in any case, because a copy of python may become another one. */
static void take_line(
	struct tree *t, struct member *m, const struct stat_line *s, size_t len, double now_s)
{
	bool renamed = is_renamed(m, t->buffer, len);
	take_stat(t, m, s, now_s);
	if (renamed || (!m->settled && !m->zombie))
		describe(t, m);
	m->settled = true;
}

/* Reads a member's stat through its open file, which cannot become another process', or by
 * its path, where the start time tells. */
static void read_member(struct tree *t, struct member *m, double now_s)
{
	struct stat_line s;
	char path[32];
	pid_t pid = (pid_t)m->shown.id.pid;
	if (m->stat_fd < 0 && t->n_open < TREE_OPEN_FILES) {
		proc_name(path, sizeof(path), pid, "stat");
		m->stat_fd = openat(t->proc_fd, path, O_RDONLY | O_CLOEXEC);
		t->n_open += m->stat_fd >= 0;
	}
	ssize_t n = m->stat_fd >= 0 ? read_again(m->stat_fd, t->buffer, sizeof(t->buffer))
				    : tree_read_file(t, pid, "stat");
	if (n <= 0 || !stat_line_parse(t->buffer, (size_t)n, &s) ||
		s.start_ticks != m->shown.id.start_ticks)
		lose(t, m, now_s);
	else
		take_line(t, m, &s, (size_t)n, now_s);
}

static bool is_excluded(const struct tree *t, pid_t pid)
{
	for (size_t i = 0; i < t->n_excluded; i++)
		if (t->excluded[i] == pid)
			return true;
	return pid == t->owner;
}

/* Takes a process in; false when there is no memory for it. */
static bool add_member(struct tree *t, pid_t pid, const struct stat_line *s, int64_t uid)
{
	uint32_t parent = find_living(t, s->ppid);
	if (!grow(t)) {
		t->failed = true;
		return false;
	}
	struct member *m = &t->members[t->n];
	*m = (struct member){
		.shown = { .id = { .pid = (uint32_t)pid,
				   .start_ticks = s->start_ticks,
				   .started_ms = -1,
				   .uid = uid },
			.ppid = s->ppid,
			.started_s = (double)s->start_ticks * t->tick_s - t->start_s,
			.ended_s = NAN,
			.max_total_bytes = -1,
			.max_private_bytes = -1,
			.max_rss_bytes = -1,
			.max_gpu_bytes = -1 },
		.parent = parent,
		.stat_fd = -1,
		.peak_rss_bytes = -1,
		.faults_at_status = -1,
		.faults_at_roll = -1,
	};
	index_member(t, (uint32_t)t->n++);
	t->seen++;
	t->changed = true;
	describe(t, m);
	return true;
}

/* Whether a stat line is that of another tracker's helper. */
static bool is_helper(const char *line)
{
	static const char name[] = "(" TRACK_HELPER_NAME ")";
	const char *comm = strchr(line, '(');
	return comm && strncmp(comm, name, sizeof(name) - 1) == 0;
}

/* Whether a pid that is no member is a process of the tree now, and takes it in. Threads have
 * pids and stat files too: the group that they are in tells them apart. */
static bool consider(struct tree *t, pid_t pid)
{
	struct stat_line s;
	struct status_lines status;
	if (is_excluded(t, pid) || !read_stat(t, pid, &s) || is_helper(t->buffer))
		return false;
	bool adopted = t->owner && s.ppid == t->owner;
	if (!adopted && find_living(t, s.ppid) == NO_MEMBER)
		return false;
	uint32_t known = find_living(t, pid);
	if (known != NO_MEMBER && t->members[known].shown.id.start_ticks == s.start_ticks)
		return false;
	ssize_t n = tree_read_file(t, pid, "status");
	status_parse(t->buffer, n < 0 ? 0 : (size_t)n, &status);
	if (status.tgid != pid)
		return false;
	return add_member(t, pid, &s, status.uid);
}

/* All processes, until none is added: a child may stand before its parent. */
static void consider_all(struct tree *t)
{
	bool added = true;
	for (int rounds = 0; added && rounds < 16; rounds++) {
		added = false;
		int fd = openat(t->proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		DIR *all = fd < 0 ? NULL : fdopendir(fd);
		if (!all) {
			if (fd >= 0)
				close(fd);
			return;
		}
		for (struct dirent *d = readdir(all); d; d = readdir(all)) {
			char *end;
			long pid = strtol(d->d_name, &end, 10);
			if (pid > 0 && pid <= INT_MAX && !*end &&
				find_living(t, (pid_t)pid) == NO_MEMBER)
				added |= consider(t, (pid_t)pid);
		}
		closedir(all);
	}
}

static int64_t newest_pid(struct tree *t)
{
	int64_t newest;
	ssize_t n = t->loadavg_fd < 0 ? -1
				      : read_again(t->loadavg_fd, t->buffer, sizeof(t->buffer));
	return n > 0 && loadavg_parse(t->buffer, (size_t)n, &newest) ? newest : -1;
}

/* Pids above `from` up to `to`; where the numbers began anew, both ends are asked. */
static void consider_range(struct tree *t, int64_t from, int64_t to)
{
	if (to < from) {
		/* The last pid before the start is not known: nothing above it exists. */
		int64_t top =
			from + MOST_NEW_PIDS < PID_LIMIT ? from + MOST_NEW_PIDS : PID_LIMIT;
		consider_range(t, from, top);
		from = FIRST_PID - 1 < to ? FIRST_PID - 1 : 0;
	}
	if (to - from > MOST_NEW_PIDS) {
		consider_all(t);
		return;
	}
	for (int64_t pid = from + 1; pid <= to; pid++)
		consider(t, (pid_t)pid);
}

/* A pid is handed out a moment before its process can be seen: so each is asked for at two
 * looks. */
static void find_new(struct tree *t)
{
	int64_t newest = newest_pid(t);
	if (newest < 0)
		consider_all(t);
	else if (newest != t->newest_before)
		consider_range(t, t->newest_before, newest);
	t->newest_before = t->newest_pid;
	t->newest_pid = newest;
}

/* Forgets ended members when there are more than the result has room for: those that ended
 * at least two looks ago, so that nobody names them as a parent, the smallest first. */
static void forget_some(struct tree *t)
{
	while (t->n > TRACK_PROCESSES_MAX) {
		uint32_t least = NO_MEMBER;
		double least_s = 0;
		for (uint32_t i = 1; i < t->n; i++) {
			const struct member *m = &t->members[i];
			double cpu_s = m->own[COUNT_USER] + m->own[COUNT_SYSTEM];
			if (!m->gone || m->looks_gone < 2 ||
				(least != NO_MEMBER && cpu_s >= least_s))
				continue;
			least = i;
			least_s = cpu_s;
		}
		if (least == NO_MEMBER)
			return;
		tree_forget(t, least);
		index_all(t);
	}
}

void tree_look(struct tree *t, double now_s)
{
	/* Parents are read before their children: what a child used is then never in its
	 * parent's numbers and in its own at once. */
	find_new(t);
	t->alive = 0;
	for (size_t i = 0; i < t->n; i++) {
		struct member *m = &t->members[i];
		if (!m->gone)
			read_member(t, m, now_s);
		else
			m->looks_gone++;
		t->alive += !m->gone && !m->zombie;
	}
	if (t->alive > t->peak_alive)
		t->peak_alive = t->alive;
	if (t->n > TRACK_PROCESSES_MAX)
		forget_some(t);
}

void tree_read_again(struct tree *t, pid_t pid, double now_s)
{
	uint32_t i = find_living(t, pid);
	if (i != NO_MEMBER)
		read_member(t, &t->members[i], now_s);
}

uint32_t tree_reaped(struct tree *t, pid_t pid, const struct rusage *usage, double now_s)
{
	uint32_t i = find_living(t, pid);
	if (i == NO_MEMBER)
		return NO_MEMBER;
	struct member *m = &t->members[i];
	counters_of_rusage(m->exact, usage);
	m->reaped = true;
	m->parent = NO_MEMBER;
	lose(t, m, now_s);
	return i;
}

static int open_proc(struct tree *t, const char *root, struct err *e)
{
	char path[PATH_MAX];
	if (snprintf(path, sizeof(path), "%s/proc", root) >= (int)sizeof(path))
		return err_set(e, ERR_USAGE, "the path %s is too long", root);
	t->proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->proc_fd < 0)
		return err_set(e, ERR_WORLD, "cannot look at processes in %s: %s", path,
			strerror(errno));
	t->loadavg_fd = openat(t->proc_fd, "loadavg", O_RDONLY | O_CLOEXEC);
	return 0;
}

int tree_open(struct tree *t, const char *root, pid_t pid, bool fresh, struct err *e)
{
	struct stat_line s;
	struct status_lines status;
	int rc = open_proc(t, root, e);
	if (rc)
		return rc;
	long ticks = sysconf(_SC_CLK_TCK), page = sysconf(_SC_PAGESIZE);
	t->tick_s = 1.0 / (double)(ticks > 0 ? ticks : 100);
	t->page_bytes = (double)(page > 0 ? page : 4096);
	t->real = root[0] == '\0';
	if (!grow(t))
		return err_set(e, ERR_WORLD, "out of memory");
	if (!read_stat(t, pid, &s))
		return err_set(e, ERR_WORLD, "there is no process %d", (int)pid);
	ssize_t n = tree_read_file(t, pid, "status");
	status_parse(t->buffer, n < 0 ? 0 : (size_t)n, &status);
	add_member(t, pid, &s, status.uid);
	t->newest_pid = t->newest_before = fresh ? pid : newest_pid(t);
	if (!fresh)
		consider_all(t);
	return 0;
}

void tree_close(struct tree *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->members[i].stat_fd >= 0)
			close(t->members[i].stat_fd);
	if (t->proc_fd >= 0)
		close(t->proc_fd);
	if (t->loadavg_fd >= 0)
		close(t->loadavg_fd);
	free(t->members);
	free(t->by_pid);
}
