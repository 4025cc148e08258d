/* Reads the memory of the tree. */
#include "track/memory.h"

#include <sys/resource.h>

#include "proc/proc.h"

#define BUDGET 0.006	   /* of one core, for rounds */
#define FILES_BUDGET 0.003 /* and for the files of members */
#define CREDIT_FIRST_S 0.05
#define CREDIT_MOST_S 0.1
#define ROUND_EVERY_S 1.0   /* when anything has changed */
#define ROUND_ALWAYS_S 10.0 /* processes outside the tree share pages with it too */
#define COUNTED_MEMBERS 16
/* A peak that exceeds the readings by less than this comes from how the kernel counts. */
#define NOTABLE_BYTES (512 * 1024)
#define NOTABLE_PART 0.005
/* Short peaks below this are not worth a warning. */
#define UNSEEN_LEAST_BYTES (100 << 20)
/* Files of all members together, for what is charged. Of more, the first count. */
enum { FILES_MAX = 512 };

void memory_init(struct memory *m)
{
	struct rusage own;
	*m = (struct memory){ .round_s = -1,
		.status_s = -1,
		.credit_s = CREDIT_FIRST_S,
		.charged_bytes = -1,
		.map_again_s = 0 };
	for (int g = 0; g < TRACK_GROUPS; g++)
		m->now[g] = m->peak[g] = (struct track_ram){ -1, -1, -1, -1 };
	if (getrusage(RUSAGE_SELF, &own) == 0)
		m->own_rss_bytes = (int64_t)own.ru_maxrss * 1024;
}

static double cpu_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* CPU time of the process that reads for the tracker. It is 0 again in a new process. */
static double cpu_elsewhere(const struct tree *t)
{
	return t->files ? t->files->cpu_s(t->files->reader) : 0;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Whether memory grew so much, compared with the total, that a round should read it soon. */
static bool is_notable(int64_t bytes, int64_t of_bytes)
{
	double part = (double)(of_bytes < 0 ? 0 : of_bytes) * NOTABLE_PART;
	return (double)(bytes < 0 ? -bytes : bytes) > part + NOTABLE_BYTES;
}

static bool is_living(const struct member *m)
{
	return !m->gone && !m->zombie;
}

static bool is_due(const struct memory *m, const struct tree *t, double now_s)
{
	/* Whether a member's memory has changed since the last round: notably, or at all. */
	bool notably = t->changed, at_all = false;
	int64_t whole = m->now[TRACK_COMBINED].total_bytes;
	double since_s = now_s - m->round_s;
	for (size_t i = 0; i < t->n; i++) {
		const struct member *p = &t->members[i];
		if (!is_living(p) || p->shown.unreadable)
			continue;
		at_all |= p->faults != p->faults_at_roll;
		notably |= !p->rolled || is_notable(p->rss_bytes - p->roll.rss_bytes, whole);
		notably |= is_notable((p->faults - p->faults_at_roll) * 4096, whole);
	}
	if (t->alive == 0 || m->round_s < 0)
		return t->alive != 0;
	return m->credit_s > 0 &&
	       (notably || since_s >= ROUND_ALWAYS_S || (at_all && since_s >= ROUND_EVERY_S));
}

/* Reads the high-water mark, switches and I/O. */
static void read_status(struct tree *t, struct member *p)
{
	struct proc_status s;
	struct proc_io io;
	if (proc_read_status(t->proc_fd, p->shown.id.pid, &s) != 0)
		return;
	bool first = p->peak_rss_bytes < 0;
	/* If the mark went down, the process has executed another program. */
	if (s.peak_rss_bytes >= 0 && s.peak_rss_bytes < p->peak_rss_bytes)
		p->explained_rss_bytes = 0;
	if (s.peak_rss_bytes >= 0)
		p->peak_rss_bytes = s.peak_rss_bytes;
	if (s.peak_rss_bytes > p->peak_before_bytes)
		tree_raise(&p->shown.max_rss_bytes, s.peak_rss_bytes);
	/* A forked copy that has not executed another program has its parent's pages without a
	 * fault, and they count for the parent. */
	bool faulted = (double)p->peak_rss_bytes <= (double)p->faults * t->page_bytes * 1.1;
	if (first && p->parent != NO_MEMBER && !faulted)
		p->explained_rss_bytes = t->members[p->parent].shown.max_rss_bytes;
	p->shown.id.uid = s.uid;
	p->own[COUNT_VOLUNTARY] = (double)(s.voluntary < 0 ? 0 : s.voluntary);
	p->own[COUNT_INVOLUNTARY] = (double)(s.involuntary < 0 ? 0 : s.involuntary);
	int rc = t->files ? t->files->io(t->files->reader, &p->shown.id, &io)
			  : proc_read_io(t->proc_fd, p->shown.id.pid, &io);
	if (rc == 0) {
		p->waited[COUNT_READ] = (double)io.read_bytes;
		p->waited[COUNT_WRITTEN] = (double)io.written_bytes;
		t->io_known = true;
	}
	p->faults_at_status = p->faults;
}

/* False: the member may not be read, or has just ended. Its memory was not zero: if it was
 * never read, its high-water mark is used at the end. */
static bool read_rollup(struct memory *m, struct tree *t, struct member *p)
{
	struct proc_rollup r = { 0 };
	p->faults_at_roll = p->faults;
	const struct track_files *files = t->files;
	int rc = files ? files->rollup(files->reader, &p->shown.id, &r)
		       : proc_read_rollup(t->proc_fd, p->shown.id.pid, &r);
	if (rc != 0 && errno == EBUSY) {
		/* It cannot be read now, because reading it would block. What it has more than
		 * at its last reading is taken as private memory, because nothing else is
		 * known; without a reading, that is its resident size. */
		int64_t more = p->rss_bytes - p->roll.rss_bytes;
		if (!p->rolled && !m->locked_pid)
			m->locked_pid = p->shown.id.pid;
		r = p->roll;
		r.rss_bytes += more > 0 ? more : 0;
		r.pss_bytes += more > 0 ? more : 0;
		r.uss_bytes += more > 0 ? more : 0;
		rc = 0;
	}
	if (rc != 0 && (errno == EACCES || errno == EPERM)) {
		p->shown.unreadable = true;
		m->some_unreadable = true;
		return false;
	}
	p->rolled = true;
	if (rc != 0) {
		p->roll = (struct proc_rollup){ 0 };
		return false;
	}
	p->roll = r;
	tree_raise(&p->shown.max_total_bytes, r.pss_bytes);
	tree_raise(&p->shown.max_private_bytes, r.uss_bytes);
	tree_raise(&p->shown.max_rss_bytes, r.rss_bytes);
	tree_raise(&p->explained_rss_bytes, r.rss_bytes);
	tree_raise(&m->largest_rss_bytes, p->shown.max_rss_bytes);
	return true;
}

static void add_ram(struct track_ram *to, const struct proc_rollup *r)
{
	if (to->total_bytes < 0)
		*to = (struct track_ram){ 0, 0, 0, 0 };
	to->total_bytes += r->pss_bytes;
	to->private_bytes += least(r->uss_bytes, r->pss_bytes);
	to->swap_bytes += r->swap_bytes;
	to->shared_bytes = to->total_bytes - to->private_bytes;
}

/* A helper that was forked from the first process shares its pages, so the kernel counts half
 * of them for the helper. Those pages belong to the first process, and are private to it except
 * for the helper. */
static void add_helpers_part(struct tree *t, struct track_ram *main, struct track_ram *all)
{
	struct proc_rollup r;
	for (size_t i = 0; i < t->n_excluded; i++) {
		if (proc_read_rollup(t->proc_fd, (uint32_t)t->excluded[i], &r) != 0 ||
			main->total_bytes < 0)
			continue;
		int64_t half = r.pss_bytes - least(r.uss_bytes, r.pss_bytes);
		struct track_ram *const both[] = { main, all };
		for (int k = 0; k < 2; k++) {
			struct track_ram *to = both[k];
			to->total_bytes += half;
			to->private_bytes +=
				least(2 * half, to->total_bytes - to->private_bytes);
			to->shared_bytes = to->total_bytes - to->private_bytes;
		}
	}
}

static void raise_peaks(struct track_ram *peak, const struct track_ram *now)
{
	tree_raise(&peak->total_bytes, now->total_bytes);
	tree_raise(&peak->private_bytes, now->private_bytes);
	tree_raise(&peak->shared_bytes, now->shared_bytes);
	tree_raise(&peak->swap_bytes, now->swap_bytes);
}

/* What the tree's job is charged for is not what the kernel shares out: a page that processes
 * outside the tree have too counts whole for the job that read it first. */
static void raise_charged(struct memory *m, int64_t total_bytes)
{
	if (total_bytes >= 0)
		tree_raise(&m->charged_bytes, total_bytes + m->unshared_bytes);
}

/* Adds what a member has of each file: the largest resident part, and the shares of all. */
static size_t add_files(struct mapping *files, size_t n, const struct mappings *member)
{
	for (size_t i = 0; i < member->n; i++) {
		const struct mapping *row = &member->rows[i];
		size_t at = 0;
		while (at < n &&
			(files[at].inode != row->inode || files[at].device != row->device))
			at++;
		if (at == FILES_MAX)
			continue;
		if (at == n)
			files[n++] = (struct mapping){ row->device, row->inode, 0, 0 };
		tree_raise(&files[at].resident_bytes, row->resident_bytes);
		files[at].share_bytes += row->share_bytes;
	}
	return n;
}

/* Reads which files the members share with processes outside the tree. It costs more than a
 * round. So it is done when more has become resident than at the last time, once a second at
 * most, and within a budget of its own. */
static void look_at_files(struct memory *m, struct tree *t, double now_s)
{
	struct mapping files[FILES_MAX];
	struct mappings one;
	size_t n = 0;
	int64_t rss = 0;
	int64_t charged = m->now[TRACK_COMBINED].total_bytes + m->unshared_bytes;
	for (size_t i = 0; i < t->n; i++)
		rss += is_living(&t->members[i]) ? t->members[i].roll.rss_bytes : 0;
	bool more = rss > m->mapped_rss_bytes && is_notable(rss - m->mapped_rss_bytes, rss);
	more |= charged > m->charged_bytes && is_notable(charged - m->charged_bytes, charged);
	if (!more || now_s < m->map_again_s)
		return;
	double before_s = cpu_now() + cpu_elsewhere(t);
	for (size_t i = 0; i < t->n; i++) {
		struct member *p = &t->members[i];
		bool shares = is_living(p) && !p->shown.unreadable && p->rolled &&
			      is_notable(p->roll.rss_bytes - p->roll.pss_bytes, 0);
		int rc = !shares    ? -1
			 : t->files ? t->files->mappings(t->files->reader, &p->shown.id, &one)
				    : mappings_read(t->proc_fd, p->shown.id.pid, &one);
		if (rc == 0)
			n = add_files(files, n, &one);
	}
	m->mapped_rss_bytes = rss;
	double took_s = cpu_now() + cpu_elsewhere(t) - before_s;
	double rest_s = took_s > 0 ? took_s / FILES_BUDGET : 0;
	m->credit_s += took_s > 0 ? took_s : 0; /* memory_look() subtracts it */
	/* In the first second more often, for short commands. */
	bool first = now_s < 1 && took_s < CREDIT_FIRST_S / 10;
	m->map_again_s = first			  ? now_s
			 : rest_s > ROUND_EVERY_S ? now_s + rest_s
						  : now_s + 0.9 * ROUND_EVERY_S;
	m->unshared_bytes = 0;
	for (size_t i = 0; i < n; i++)
		if (files[i].resident_bytes > files[i].share_bytes)
			m->unshared_bytes += files[i].resident_bytes - files[i].share_bytes;
}

/* A member had `bytes` more for a moment than at the last round. It is taken as private memory,
 * because nothing else is known. */
static void raise_by(struct memory *m, enum track_group group, int64_t bytes)
{
	const enum track_group groups[] = { group, TRACK_COMBINED };
	for (int i = 0; i < 2; i++) {
		struct track_ram then = m->now[groups[i]];
		if (then.total_bytes < 0)
			then = (struct track_ram){ 0, 0, 0, 0 };
		then.total_bytes += bytes;
		then.private_bytes += bytes;
		raise_peaks(&m->peak[groups[i]], &then);
		if (groups[i] == TRACK_COMBINED)
			raise_charged(m, then.total_bytes);
	}
}

/* Adds memory that was taken and freed since the last round. Of several members only the
 * largest counts, because it is not known whether they had it at the same moment or shared it;
 * a warning says so. */
static void add_spikes(struct memory *m, struct tree *t)
{
	int64_t largest[2] = { 0, 0 }, all = 0;
	for (size_t i = 0; i < t->n; i++) {
		struct member *p = &t->members[i];
		if (!is_living(p) || !p->rolled)
			continue;
		int64_t above = p->peak_rss_bytes - p->explained_rss_bytes;
		if (is_notable(above, 0) && p->peak_rss_bytes > p->roll.rss_bytes) {
			tree_raise(&largest[i > 0], p->peak_rss_bytes - p->roll.rss_bytes);
			all += p->peak_rss_bytes - p->roll.rss_bytes;
		}
		tree_raise(&p->explained_rss_bytes, p->peak_rss_bytes);
		tree_raise(&m->largest_rss_bytes, p->peak_rss_bytes);
	}
	int64_t most = largest[0] > largest[1] ? largest[0] : largest[1];
	if (all - most > UNSEEN_LEAST_BYTES)
		tree_raise(&m->unseen_bytes, most);
	if (largest[0])
		raise_by(m, TRACK_MAIN, largest[0]);
	if (largest[1])
		raise_by(m, TRACK_DESCENDANTS, largest[1]);
}

/* The members were read one after the other, so a page that became shared in between is in two
 * readings. Subtracts at most that much; a later round in a calm moment reads everything. */
static void take_skew(struct tree *t, struct track_ram *now, double now_s)
{
	int64_t moved = 0; /* bytes faulted in since the members were read */
	if (t->alive < 2)
		return;
	for (size_t i = 0; i < t->n; i++) {
		struct member *p = &t->members[i];
		int64_t faults = p->faults, rss = p->rss_bytes;
		if (!is_living(p))
			continue;
		tree_read_again(t, (pid_t)p->shown.id.pid, now_s);
		int64_t faulted = (int64_t)((double)(p->faults - faults) * t->page_bytes);
		int64_t grown = is_living(p) ? p->rss_bytes - rss : 0;
		moved += faulted > grown ? faulted : grown;
	}
	for (int g = TRACK_DESCENDANTS; g <= TRACK_COMBINED; g++) {
		struct track_ram *r = &now[g];
		if (r->total_bytes < 0)
			continue;
		r->total_bytes -= least(moved, r->total_bytes);
		r->private_bytes = least(r->private_bytes, r->total_bytes);
		r->shared_bytes = r->total_bytes - r->private_bytes;
	}
}

static void make_round(struct memory *m, struct tree *t, double now_s)
{
	struct track_ram now[TRACK_GROUPS];
	for (int g = 0; g < TRACK_GROUPS; g++)
		now[g] = (struct track_ram){ -1, -1, -1, -1 };
	t->changed = false;
	for (size_t i = 0; i < t->n; i++) {
		struct member *p = &t->members[i];
		if (!is_living(p) || p->shown.unreadable)
			continue;
		if (!read_rollup(m, t, p))
			continue;
		add_ram(&now[i == 0 ? TRACK_MAIN : TRACK_DESCENDANTS], &p->roll);
		add_ram(&now[TRACK_COMBINED], &p->roll);
	}
	add_helpers_part(t, &now[TRACK_MAIN], &now[TRACK_COMBINED]);
	take_skew(t, now, now_s);
	for (int g = 0; g < TRACK_GROUPS; g++) {
		m->now[g] = now[g];
		raise_peaks(&m->peak[g], &now[g]);
	}
	look_at_files(m, t, now_s);
	raise_charged(m, m->now[TRACK_COMBINED].total_bytes);
}

void memory_look(struct memory *m, struct tree *t, double now_s)
{
	m->credit_s += (now_s - m->accrued_s) * BUDGET;
	m->accrued_s = now_s;
	if (m->credit_s > CREDIT_MOST_S)
		m->credit_s = CREDIT_MOST_S;
	/* Switches and I/O change without page faults. For a command that we wait for, wait4()
	 * reports them at the end; for others they are read every second, for a few members. */
	size_t n = 0;
	if (!t->owner && now_s - m->counters_s >= 0.9 * ROUND_EVERY_S) {
		m->counters_s = now_s;
		for (size_t i = 0; i < t->n && n < COUNTED_MEMBERS; i++) {
			struct member *p = &t->members[i];
			if (!is_living(p) || p->faults_at_status < 0)
				continue;
			read_status(t, p);
			n++;
		}
	}
	if (!is_due(m, t, now_s))
		return;
	double before_s = cpu_now() + cpu_elsewhere(t);
	/* Read marks before rollups: a mark that is read later could include memory that the
	 * rollup does not have, and that memory would count as taken and freed. */
	bool all = m->status_s < 0 || now_s - m->status_s >= 0.9 * ROUND_EVERY_S;
	for (size_t i = 0; i < t->n; i++) {
		struct member *p = &t->members[i];
		if (is_living(p) && p->faults != p->faults_at_status &&
			(all || p->faults_at_status < 0))
			read_status(t, p);
	}
	if (all)
		m->status_s = now_s;
	make_round(m, t, now_s);
	add_spikes(m, t);
	m->round_s = now_s;
	double took_s = cpu_now() + cpu_elsewhere(t) - before_s;
	m->credit_s -= took_s > 0 ? took_s : 0;
}

void memory_reaped(struct memory *m, struct tree *t, uint32_t i, int64_t maxrss_bytes)
{
	struct member *p = &t->members[i];
	struct proc_status own;
	int64_t own_bytes = m->own_rss_bytes;
	/* getrusage() would also count what the owner was before it executed this program. */
	if (proc_read_status(t->proc_fd, (uint32_t)getpid(), &own) == 0 &&
		own.peak_rss_bytes > 0)
		own_bytes = own.peak_rss_bytes;
	/* The mark is the largest of the process and of all children it waited for, and
	 * includes the program that forked the process. */
	bool telling = maxrss_bytes > own_bytes || m->peak[TRACK_COMBINED].total_bytes < 0;
	bool had_children = p->waited[COUNT_MINOR] > 0 || p->dead[COUNT_MINOR] > 0;
	if (!telling || !is_notable(maxrss_bytes - m->largest_rss_bytes, 0))
		return;
	if (had_children) {
		/* It is unknown which process had this much; it is more than any member had. */
		raise_by(m, TRACK_DESCENDANTS, maxrss_bytes - m->largest_rss_bytes);
		if (maxrss_bytes - m->largest_rss_bytes > UNSEEN_LEAST_BYTES)
			tree_raise(&m->unseen_bytes, maxrss_bytes);
	} else {
		tree_raise(&p->shown.max_rss_bytes, maxrss_bytes);
		raise_by(m, i == 0 ? TRACK_MAIN : TRACK_DESCENDANTS,
			maxrss_bytes - p->roll.rss_bytes);
	}
	m->largest_rss_bytes = maxrss_bytes;
}
