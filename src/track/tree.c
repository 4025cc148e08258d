/* Finds the members of the process tree and reads them. */
#include "track/tree.h"

#include "base/piece.h"
#include "proc/cgroup.h"
#include "proc/command.h"
#include "proc/proc.h"
#include "track/tracker.h"

enum {
	/* For more new pids than this, listing all is cheaper than asking for each. */
	MOST_NEW_PIDS = 4096,
	PID_LIMIT = 4 * 1024 * 1024, /* the kernel's largest pid_max */
	FIRST_PID = 300,	     /* where the kernel continues after its largest pid */
};

uint32_t tree_find(const struct tree *t, pid_t pid)
{
	uint32_t ended = NO_MEMBER, i;
	size_t step = 0;
	while ((i = idmap_next(&t->by_pid, pid, &step)) != IDMAP_NONE) {
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

/* Reads CPU time to the nanosecond, because ticks are 10 ms. The difference is added to the
 * larger of user and system time. */
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

static void take_stat(struct tree *t, struct member *m, const struct proc_stat *s, double now_s)
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
	/* statm, where the resident size is exact, is one more file: it is read only when stat
	 * shows that the size may have changed. */
	if (m->faults != m->faults_at_resident || s->rss_pages != m->stat_pages) {
		int64_t pages = proc_read_resident(t->proc_fd, m->shown.id.pid);
		pages = pages < 0 ? s->rss_pages : pages;
		m->faults_at_resident = m->faults;
		m->stat_pages = s->rss_pages;
		if (pages >= 0)
			m->rss_bytes = (int64_t)((double)pages * t->page_bytes);
	}
	tree_raise(&m->shown.max_threads, m->threads);
	tree_raise(&m->shown.max_rss_bytes, m->rss_bytes);
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

/* Notes the program's name; true if it has changed. */
static bool is_renamed(struct member *m, const struct proc_stat *s)
{
	char comm[sizeof(m->comm)] = { 0 };
	memcpy(comm, s->comm, s->comm_len < sizeof(comm) ? s->comm_len : sizeof(comm));
	bool renamed = memcmp(comm, m->comm, sizeof(comm)) != 0;
	memcpy(m->comm, comm, sizeof(comm));
	return renamed;
}

static const struct elsewhere elsewhere_rows[] = {
	{ "srun", .use = "srun gua track -- COMMAND", .in_job = true },
	{ "sbatch", .use = "gua track -- COMMAND in the script" },
	{ "docker", "run exec start up", .use = "gua track --pid N for its process" },
	{ "podman", "run exec start up", .use = "gua track --pid N for its process" },
	{ "systemd-run", .unless = "--scope", .use = "systemd-run gua track -- COMMAND" },
	{ "ssh", .use = "ssh HOST gua track -- COMMAND", .of_shell = true },
};

/* Whether the word is in a list that is separated by blanks. */
static bool is_in(struct piece word, const char *list)
{
	for (size_t n; *list; list += n + (list[n] == ' ')) {
		n = strcspn(list, " ");
		if (word.len == n && memcmp(word.at, list, n) == 0)
			return true;
	}
	return false;
}

/* Whether the arguments after the program's name are such that its work is elsewhere. */
static bool has_words(const struct elsewhere *row, struct proc_arguments arguments)
{
	bool found = !row->verbs;
	struct piece word;
	while (proc_next_argument(&arguments, &word.at, &word.len)) {
		if (row->unless && piece_is_like(word, row->unless))
			return false;
		found |= row->verbs && is_in(word, row->verbs);
	}
	return found;
}

/* The row of a command whose work does not run below it; NULL: it does. The name of the process
 * and its arguments, which may be empty, say which command it is. */
static const struct elsewhere *find_elsewhere(const struct proc_stat *s, struct piece bytes)
{
	struct proc_arguments arguments = { .bytes = bytes.at, .len = bytes.len };
	struct piece program = { "", 0 };
	if (proc_next_argument(&arguments, &program.at, &program.len))
		program = piece_basename(program);
	for (size_t i = 0; i < sizeof(elsewhere_rows) / sizeof(elsewhere_rows[0]); i++) {
		const struct elsewhere *row = &elsewhere_rows[i];
		bool named =
			piece_is_like(program, row->program) ||
			piece_is_like((struct piece){ s->comm, s->comm_len }, row->program);
		if (named && has_words(row, arguments))
			return row;
	}
	return NULL;
}

/* Reads the command of a process; one that blocks has its name instead. Notes a member whose
 * work is not below it. */
static void describe(struct tree *t, struct member *m, const struct proc_stat *s)
{
	struct process_id *id = &m->shown.id;
	char bytes[PROC_ARGUMENTS_CAP];
	const struct track_files *files = t->files;
	ssize_t n = files ? files->arguments(files->reader, id, bytes, sizeof(bytes))
			  : proc_read_arguments(t->proc_fd, id->pid, bytes, sizeof(bytes));
	struct piece all = { bytes, n < 0 ? 0 : (size_t)n };
	command_text(id->command, sizeof(id->command), bytes, all.len, s);
	const struct elsewhere *e = find_elsewhere(s, all);
	const char *above = m->parent != NO_MEMBER ? t->members[m->parent].comm : NULL;
	bool of_program =
		above && !is_in((struct piece){ above, strnlen(above, sizeof(m->comm)) },
				 "sh bash dash zsh ksh fish");
	if (!e || (e->of_shell && of_program))
		return;
	if (!e->in_job) {
		t->elsewhere = e;
	} else if (!t->launcher) {
		t->launcher = e;
		t->launched_ticks = s->start_ticks;
		t->launcher_is_new = true;
	}
}

/* Reads a member's stat through its open file, which never belongs to another process, or by
 * its path, where the start time must be the same. */
static void read_member(struct tree *t, struct member *m, double now_s)
{
	struct proc_stat s;
	uint32_t pid = m->shown.id.pid;
	if (m->stat_fd < 0 && t->n_open < TREE_OPEN_FILES) {
		m->stat_fd = proc_open_file(t->proc_fd, pid, "stat");
		t->n_open += m->stat_fd >= 0;
	}
	int rc = m->stat_fd >= 0 ? proc_read_stat_again(m->stat_fd, &s)
				 : proc_read_stat(t->proc_fd, pid, &s);
	if (rc != 0 || s.start_ticks != m->shown.id.start_ticks) {
		lose(t, m, now_s);
		return;
	}
	bool renamed = is_renamed(m, &s);
	take_stat(t, m, &s, now_s);
	/* The command is read again if the process has executed another program; and once in
	 * any case, because a forked python may execute another python. */
	if (renamed || (!m->settled && !m->zombie))
		describe(t, m, &s);
	m->settled = true;
}

/* Adds a process to the members; false: out of memory. */
static bool add_member(struct tree *t, pid_t pid, const struct proc_stat *s, int64_t uid)
{
	uint32_t parent = find_living(t, s->ppid);
	if (!array_reserve(&t->members, &t->cap, t->n + 1) ||
		!idmap_add(&t->by_pid, pid, (uint32_t)t->n)) {
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
		.faults_at_resident = -1,
	};
	t->n++;
	t->seen++;
	t->changed = true;
	is_renamed(m, s);
	describe(t, m, s);
	return true;
}

/* Whether it is another tracker's helper. */
static bool is_helper(const struct proc_stat *s)
{
	static const char name[] = TRACK_HELPER_NAME;
	return s->comm_len == sizeof(name) - 1 && memcmp(s->comm, name, s->comm_len) == 0;
}

bool tree_is_helper(const struct tree *t, pid_t pid)
{
	struct proc_stat s;
	return proc_read_stat(t->proc_fd, (uint32_t)pid, &s) == 0 && is_helper(&s);
}

/* Whether it is work of the launcher: see tree.h. The daemon that starts the tasks is not. */
static bool is_launched(const struct tree *t, pid_t pid, const struct proc_stat *s)
{
	static const char daemon[] = "slurmstepd";
	char cgroup[TREE_CGROUP_CAP];
	struct cgroup_labels labels;
	if (!t->launcher || s->start_ticks < t->launched_ticks ||
		(s->comm_len >= sizeof(daemon) - 1 &&
			memcmp(s->comm, daemon, sizeof(daemon) - 1) == 0))
		return false;
	ssize_t n = proc_read_cgroup(t->proc_fd, (uint32_t)pid, cgroup, sizeof(cgroup));
	if (n <= 0 || strcmp(cgroup, t->cgroup) == 0)
		return false;
	cgroup_parse(cgroup, (size_t)n, &labels);
	return labels.job[0] &&
	       (strcmp(labels.job, t->jobs[0]) == 0 || strcmp(labels.job, t->jobs[1]) == 0);
}

/* Whether a pid that is not a member is now a process of the tree; if so, adds it. Threads have
 * pids and stat files too, but their thread group has another number. */
static bool consider(struct tree *t, pid_t pid)
{
	struct proc_stat s;
	struct proc_status status;
	for (size_t i = 0; i < t->n_excluded; i++)
		if (t->excluded[i] == pid)
			return false;
	if (pid == t->owner || (t->files && t->files->owns(t->files->reader, pid)) ||
		proc_read_stat(t->proc_fd, (uint32_t)pid, &s) != 0 || is_helper(&s))
		return false;
	bool adopted = t->owner && s.ppid == t->owner;
	bool below = adopted || find_living(t, s.ppid) != NO_MEMBER;
	if (!below && !is_launched(t, pid, &s))
		return false;
	uint32_t known = find_living(t, pid);
	if (known != NO_MEMBER && t->members[known].shown.id.start_ticks == s.start_ticks)
		return false;
	if (proc_read_status(t->proc_fd, (uint32_t)pid, &status) != 0 || status.tgid != pid)
		return false;
	t->n_launched += !below;
	return add_member(t, pid, &s, status.uid);
}

/* Considers all processes, until none is added: a child may be listed before its parent. */
static void consider_all(struct tree *t)
{
	bool added = true;
	for (int rounds = 0; added && rounds < 16; rounds++) {
		added = false;
		DIR *all = proc_open_list(t->proc_fd);
		if (!all)
			return;
		for (uint32_t pid; (pid = proc_next_listed(all)) != 0;)
			if (find_living(t, (pid_t)pid) == NO_MEMBER)
				added |= consider(t, (pid_t)pid);
		closedir(all);
	}
}

/* Considers the pids above `from` up to `to`; if the numbers have wrapped around, both ends. */
static void consider_range(struct tree *t, int64_t from, int64_t to)
{
	if (to < from) {
		/* The last pid before the numbers wrapped is not known. */
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

/* Sums up what the members used. Each second of CPU is counted in one place at a time: at the
 * process that used it while it runs or is a zombie, then at the process that waited for it,
 * and so on upwards. If a process ended and its parent never got its seconds (the parent
 * ignores SIGCHLD, or is init), the last reading of the process counts. */

void tree_count_usage(double counters[COUNTERS], const struct rusage *usage)
{
	enum { BLOCK = 512 };
	const double values[COUNTERS] = {
		[COUNT_USER] =
			(double)usage->ru_utime.tv_sec + (double)usage->ru_utime.tv_usec / 1e6,
		[COUNT_SYSTEM] =
			(double)usage->ru_stime.tv_sec + (double)usage->ru_stime.tv_usec / 1e6,
		[COUNT_MINOR] = (double)usage->ru_minflt,
		[COUNT_MAJOR] = (double)usage->ru_majflt,
		[COUNT_VOLUNTARY] = (double)usage->ru_nvcsw,
		[COUNT_INVOLUNTARY] = (double)usage->ru_nivcsw,
		[COUNT_READ] = (double)usage->ru_inblock * BLOCK,
		[COUNT_WRITTEN] = (double)usage->ru_oublock * BLOCK,
	};
	memcpy(counters, values, sizeof(values));
}

/* Returns a member's own use and everything that is accounted to it. dead[] is what members
 * below it had when they were last seen: normally the member waited for them, and waited[] has
 * it too. */
static double total(const struct member *m, enum counter c)
{
	if (m->reaped)
		return fmax(m->exact[c], m->own[c] + m->dead[c]);
	return m->own[c] + fmax(m->waited[c], m->dead[c]);
}

/* Returns the use without children. The exact numbers include children: the use after the last
 * reading is divided in the same ratio as the use before, unless that reading was final. */
static double own(const struct member *m, enum counter c)
{
	if (!m->reaped)
		return m->own[c];
	double below = fmax(m->waited[c], m->dead[c]);
	double rest = fmax(m->exact[c] - m->own[c] - below, 0);
	double part = m->own[c] + below > 0 ? m->own[c] / (m->own[c] + below) : 1;
	return m->own[c] + (m->final_read ? rest : rest * part);
}

void tree_sum(struct tree *t, double sums[TRACK_GROUPS][COUNTERS])
{
	for (size_t i = 0; i < t->n; i++)
		memcpy(t->members[i].dead, t->members[i].folded, sizeof(t->members[i].dead));
	memcpy(sums[TRACK_COMBINED], t->forgotten, sizeof(t->forgotten));
	for (size_t i = t->n; i-- > 0;) {
		struct member *m = &t->members[i];
		bool absorbed = m->gone && m->parent < i;
		double *to = absorbed ? t->members[m->parent].dead : sums[TRACK_COMBINED];
		for (int c = 0; c < COUNTERS; c++)
			to[c] += total(m, (enum counter)c);
		m->shown.user_s = own(m, COUNT_USER) - m->before_user_s;
		m->shown.system_s = own(m, COUNT_SYSTEM) - m->before_system_s;
	}
	for (int c = 0; c < COUNTERS; c++) {
		double all = sums[TRACK_COMBINED][c];
		double main = t->n ? own(&t->members[0], (enum counter)c) : 0;
		sums[TRACK_MAIN][c] = main < all ? main : all;
		sums[TRACK_DESCENDANTS][c] = all - sums[TRACK_MAIN][c];
	}
}

void tree_forget(struct tree *t, uint32_t i)
{
	/* Members that ended below it are part of it, so they are forgotten first. */
	for (uint32_t k = (uint32_t)t->n; k-- > i + 1;)
		if (k < t->n && t->members[k].parent == i && t->members[k].gone)
			tree_forget(t, k);
	struct member *m = &t->members[i];
	double *to = m->parent < i ? t->members[m->parent].folded : t->forgotten;
	memcpy(m->dead, m->folded, sizeof(m->dead));
	for (int c = 0; c < COUNTERS; c++)
		to[c] += total(m, (enum counter)c);
	t->others.user_s += own(m, COUNT_USER) - m->before_user_s;
	t->others.system_s += own(m, COUNT_SYSTEM) - m->before_system_s;
	t->n_forgotten++;
	for (size_t k = 0; k < t->n; k++) {
		uint32_t *parent = &t->members[k].parent;
		if (*parent != NO_MEMBER && *parent == i)
			*parent = m->parent < i ? m->parent : NO_MEMBER;
		else if (*parent != NO_MEMBER && *parent > i)
			--*parent;
	}
	memmove(m, m + 1, (t->n - i - 1) * sizeof(*m));
	t->n--;
}

/* Forgets ended members when there are more than the result has room for: only those that ended
 * at least two looks ago, so that no process names them as its parent; the smallest first. */
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
		idmap_clear(&t->by_pid);
		for (uint32_t i = 0; i < t->n; i++)
			idmap_add(&t->by_pid, t->members[i].shown.id.pid, i);
	}
}

void tree_look(struct tree *t, double now_s)
{
	/* Parents are read before their children. So what a child used is never both in its
	 * parent's numbers and in its own. */
	/* The kernel gives out a pid a moment before its process can be seen, so each pid is
	 * asked for at two looks. */
	int64_t newest = proc_read_newest(t->newest_fd);
	if (newest < 0 || t->launcher_is_new)
		consider_all(t);
	else if (newest != t->newest_before)
		consider_range(t, t->newest_before, newest);
	t->launcher_is_new = false;
	t->newest_before = t->newest_pid;
	t->newest_pid = newest;
	t->alive = 0;
	for (size_t i = 0; i < t->n; i++) {
		struct member *m = &t->members[i];
		if (!m->gone)
			read_member(t, m, now_s);
		else
			m->looks_gone++;
		t->alive += !m->gone && !m->zombie;
	}
	tree_raise(&t->peak_alive, t->alive);
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
	tree_count_usage(m->exact, usage);
	m->reaped = true;
	m->parent = NO_MEMBER;
	lose(t, m, now_s);
	return i;
}

int tree_open(struct tree *t, const char *root, pid_t pid, bool fresh, struct err *e)
{
	struct proc_stat s;
	struct proc_status status;
	int rc = proc_open(&t->proc_fd, root, e);
	if (rc)
		return rc;
	t->newest_fd = proc_open_file(t->proc_fd, 0, "loadavg");
	long ticks = sysconf(_SC_CLK_TCK), page = sysconf(_SC_PAGESIZE);
	t->tick_s = 1.0 / (double)(ticks > 0 ? ticks : 100);
	t->page_bytes = (double)(page > 0 ? page : 4096);
	t->real = root[0] == '\0';
	if (proc_read_stat(t->proc_fd, (uint32_t)pid, &s) != 0)
		return err_set(e, ERR_WORLD, "there is no process %d", (int)pid);
	proc_read_status(t->proc_fd, (uint32_t)pid, &status);
	/* The job that the first process is in. */
	struct cgroup_labels labels;
	ssize_t n = proc_read_cgroup(t->proc_fd, (uint32_t)pid, t->cgroup, sizeof(t->cgroup));
	cgroup_parse(t->cgroup, n < 0 ? 0 : (size_t)n, &labels);
	memcpy(t->jobs[0], labels.job, sizeof(labels.job));
	if (!add_member(t, pid, &s, status.uid))
		return err_memory(e);
	t->newest_pid = t->newest_before = fresh ? pid : proc_read_newest(t->newest_fd);
	if (!fresh)
		consider_all(t);
	return 0;
}

void tree_close(struct tree *t)
{
	for (size_t i = 0; i < t->n; i++)
		file_close(t->members[i].stat_fd);
	file_close(t->proc_fd);
	file_close(t->newest_fd);
	free(t->members);
	idmap_finish(&t->by_pid);
}
