/* Adds up the CPU time of processes and of those they started, and finds their terminals. */
#include "proc/activity.h"

#include <sys/sysmacros.h>

#include "proc/cgroup.h"
#include "proc/proc.h"

/* The numbers of Unix98 ptys: eight majors of 256 each, kept for them by the kernel. */
enum { PTY_MAJOR = 136, PTY_MAJORS = 8 };
enum { CGROUP_CAP = 4096 };
/* Pids, and so POSIX sessions, are below this: PID_MAX_LIMIT of the kernel. */
enum { PIDS = 4194304 };

struct counted_process {
	uint32_t pid;
	pid_t ppid, session;
	int64_t ticks;
	bool counts;
};

struct counted {
	struct counted_process *items;
	size_t n, cap;
	unsigned char *pids,
		*sessions; /* a bit for each pid and each POSIX session that counts */
};

/* Number 0 is never in a set: POSIX session 0 is of kernel threads or another pid namespace. */
static bool has(const unsigned char *set, int64_t number)
{
	return number > 0 && number < PIDS && (set[number / 8] >> number % 8 & 1);
}

static void add(unsigned char *set, int64_t number)
{
	if (number > 0 && number < PIDS)
		set[number / 8] |= (unsigned char)(1 << number % 8);
}

static bool read_list(struct counted *l, int proc)
{
	DIR *directory = proc_open_list(proc);
	struct proc_stat stat;
	bool ok = directory != NULL;
	for (uint32_t pid; ok && (pid = proc_next_listed(directory)) != 0;) {
		if (proc_read_stat(proc, pid, &stat) != 0)
			continue;
		ok = array_reserve(&l->items, &l->cap, l->n + 1);
		if (ok)
			l->items[l->n++] = (struct counted_process){ .pid = pid,
				.ppid = stat.ppid,
				.session = stat.session,
				.ticks = stat.user_ticks + stat.system_ticks +
					 stat.waited_user_ticks + stat.waited_system_ticks };
	}
	if (directory)
		closedir(directory);
	return ok;
}

static void count(struct counted *l, struct counted_process *e)
{
	e->counts = true;
	add(l->pids, e->pid);
	add(l->sessions, e->session);
}

static bool is_same(const char *own, const char *label)
{
	return *label && strcmp(own, label) == 0;
}

static void read_labels(int proc, uint32_t pid, struct cgroup_labels *labels)
{
	char cgroup[CGROUP_CAP];
	ssize_t n = proc_read_cgroup(proc, pid, cgroup, sizeof(cgroup));
	cgroup_parse(cgroup, n > 0 ? (size_t)n : 0, labels);
}

/* Whether the process belongs to the session, or its manager put it into the same job, pod
 * (by its uid) or container. */
static bool is_member(
	int proc, uint32_t pid, const struct activity_group *s, const char *pod_uid)
{
	struct cgroup_labels labels;
	for (size_t i = 0; i < s->n; i++)
		if (s->processes[i].pid == pid)
			return true;
	if (!*s->job && !*s->container && !*pod_uid)
		return false;
	read_labels(proc, pid, &labels);
	return is_same(labels.job, s->job) || is_same(labels.container, s->container) ||
	       is_same(labels.pod, pod_uid);
}

double activity_cpu_s(int proc, const struct activity_group *s)
{
	struct counted l = { 0 };
	int64_t ticks = 0;
	struct cgroup_labels own;
	/* The uid of the group's pod, which cgroups have, or "". */
	own.pod[0] = '\0';
	for (size_t i = 0; *s->pod && i < s->n && !*own.pod; i++)
		read_labels(proc, s->processes[i].pid, &own);
	l.pids = calloc(2, PIDS / 8);
	bool more = l.pids && read_list(&l, proc);
	double seconds = more ? 0 : (double)NAN;
	l.sessions = l.pids ? l.pids + PIDS / 8 : NULL;
	for (size_t i = 0; more && i < l.n; i++)
		if (is_member(proc, l.items[i].pid, s, own.pod))
			count(&l, &l.items[i]);
	while (more) {
		more = false;
		for (size_t i = 0; i < l.n; i++)
			if (!l.items[i].counts &&
				(has(l.pids, l.items[i].ppid) ||
					has(l.sessions, l.items[i].session))) {
				count(&l, &l.items[i]);
				more = true;
			}
	}
	for (size_t i = 0; i < l.n; i++)
		ticks += l.items[i].counts ? l.items[i].ticks : 0;
	free(l.items);
	free(l.pids);
	return seconds + (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

void activity_terminal(char *dst, size_t cap, int number)
{
	unsigned major_number = major((dev_t)(unsigned)number);
	unsigned minor_number = minor((dev_t)(unsigned)number);
	*dst = '\0';
	if (number > 0 && major_number >= PTY_MAJOR && major_number < PTY_MAJOR + PTY_MAJORS)
		snprintf(dst, cap, "/dev/pts/%u",
			(major_number - PTY_MAJOR) * 256 + minor_number);
}

int64_t activity_input_ms(int proc, const struct proc_life *processes, size_t n)
{
	int64_t newest_ms = -1;
	for (size_t i = 0; i < n; i++) {
		char path[32];
		struct proc_stat stat;
		struct stat st;
		if (proc_read_stat(proc, processes[i].pid, &stat) != 0 ||
			stat.start_ticks != processes[i].start_ticks)
			continue;
		activity_terminal(path, sizeof(path), stat.tty);
		if (!*path || lstat(path, &st) != 0 || !S_ISCHR(st.st_mode))
			continue;
		int64_t at_ms =
			(int64_t)st.st_atim.tv_sec * 1000 + st.st_atim.tv_nsec / 1000000;
		newest_ms = at_ms > newest_ms ? at_ms : newest_ms;
	}
	return newest_ms;
}

bool activity_has_ended(int proc, const struct proc_life *p)
{
	struct proc_stat stat;
	errno = 0;
	if (proc_read_stat(proc, p->pid, &stat) != 0)
		return errno == ENOENT || errno == ESRCH;
	return stat.start_ticks != p->start_ticks || stat.state == 'Z' || stat.state == 'X';
}
