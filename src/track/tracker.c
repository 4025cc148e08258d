/* The tracker: decides when to take a sample, and takes it. */
#include "track/tracker.h"

#include "proc/proc.h"
#include "track/tracker_private.h"

/* Helpers of a command, such as those of Python's multiprocessing, end just after it. */
#define ENDING_US 100000
/* Over less time than this, CPU use depends more on the kernel's ticks than on the process. */
#define LEAST_WINDOW_S 0.05
/* A counter grows by a nanosecond at least; less is an error of the sum. */
#define LEAST_STEP 1e-9
/* Looks within the first interval, at 1/16, 1/8, 1/4 and 1/2 of it. */
enum { EARLY_LOOKS = 4 };
#define EARLY_LEAST_US 20000

static double now_s(const struct tracker *t)
{
	return (double)(clock_now(&t->clock).boot_us - t->start_us) / 1e6;
}

void tracker_warn(struct track_result *r, const char *format, ...)
{
	char text[sizeof(r->warnings[0])];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	for (size_t i = 0; i < r->n_warnings; i++)
		if (strcmp(r->warnings[i], text) == 0)
			return;
	if (r->n_warnings < sizeof(r->warnings) / sizeof(r->warnings[0]))
		memcpy(r->warnings[r->n_warnings++], text, sizeof(text));
}

static void host_look(struct tracker *t)
{
	struct host *h = &t->host;
	struct proc_memory memory;
	struct proc_cpu cpu;
	if (proc_read_memory(h->memory_fd, &memory)) {
		t->result.ram_capacity_bytes = memory.total_bytes;
		h->used_bytes = memory.used_bytes;
		tree_raise(&t->result.ram_system_max_bytes, h->used_bytes);
	}
	if (proc_read_cpu(h->cpu_fd, &cpu)) {
		h->busy_ticks = cpu.busy_ticks;
		h->all_ticks = cpu.all_ticks;
	}
}

/* Percent of one core since then; NAN when there is no time between. */
static double host_cpu_pct(const struct host *h, const struct cpu_mark *from)
{
	int64_t all = h->all_ticks - from->all_ticks, busy = h->busy_ticks - from->busy_ticks;
	if (from->all_ticks < 0 || all <= 0)
		return NAN;
	double part = (double)busy / (double)all;
	return 100.0 * (double)h->cores * (part < 0 ? 0 : part > 1 ? 1 : part);
}

static struct cpu_mark mark(const struct tracker *t, double at_s)
{
	struct cpu_mark m = {
		.at_s = at_s, .busy_ticks = t->host.busy_ticks, .all_ticks = t->host.all_ticks
	};
	for (int g = 0; g < TRACK_GROUPS; g++)
		m.cpu_s[g] = t->sums[g][COUNT_USER] + t->sums[g][COUNT_SYSTEM];
	return m;
}

static double group_pct(const struct tracker *t, const struct cpu_mark *from,
	const struct cpu_mark *to, int group)
{
	double cpu_s = to->cpu_s[group] - from->cpu_s[group];
	double pct = 100.0 * cpu_s / (to->at_s - from->at_s);
	double most = 100.0 * (double)t->host.cores;
	return pct < 0 ? 0 : pct > most ? most : pct;
}

static void raise_max(double *max, double value)
{
	if (!isnan(value) && !(value <= *max))
		*max = value;
}

/* Whether the time since `from` is long enough for a window of its own. */
static bool is_window(
	const struct tracker *t, const struct cpu_mark *from, const struct cpu_mark *now)
{
	double least_s = 0.5 * (double)t->o.interval_ms / 1e3;
	double long_s = now->at_s - from->at_s;
	return long_s >= least_s && long_s >= LEAST_WINDOW_S;
}

static void raise_maxima(
	const struct tracker *t, const struct cpu_mark *from, struct cpu_max *max)
{
	const struct cpu_mark *now = &t->sample_mark;
	for (int g = 0; g < TRACK_GROUPS && now->at_s > from->at_s; g++)
		raise_max(&max->pct[g], group_pct(t, from, now, g));
	raise_max(&max->system_pct, host_cpu_pct(&t->host, from));
}

struct cpu_max tracker_cpu_max(const struct tracker *t)
{
	struct cpu_max max = t->max;
	bool whole = is_window(t, &t->window, &t->sample_mark);
	raise_maxima(t, whole ? &t->window : &t->window_before, &max);
	return max;
}

static void take_cpu(struct tracker *t, double now_s, bool early)
{
	double sums[TRACK_GROUPS][COUNTERS];
	tree_sum(&t->tree, sums);
	for (int g = 0; g < TRACK_GROUPS; g++)
		for (int c = 0; c < COUNTERS; c++)
			if (sums[g][c] - t->before[g][c] - t->sums[g][c] > LEAST_STEP)
				t->sums[g][c] = sums[g][c] - t->before[g][c];
	struct cpu_mark now = mark(t, now_s);
	if (now_s > t->sample_mark.at_s) {
		for (int g = 0; g < TRACK_GROUPS; g++)
			t->sample_pct[g] = group_pct(t, &t->sample_mark, &now, g);
		double pct = host_cpu_pct(&t->host, &t->sample_mark);
		t->sample_system_pct = isnan(pct) ? t->sample_system_pct : pct;
	}
	t->sample_mark = now;
	/* A window is a whole interval: the early samples do not end one. */
	if (early || !is_window(t, &t->window, &t->sample_mark))
		return;
	raise_maxima(t, &t->window, &t->max);
	t->window_before = t->window;
	t->window = t->sample_mark;
}

/* Samples are due at multiples of the interval from the start; a missed one is skipped. */
static void schedule(struct tracker *t)
{
	int64_t interval_us = t->o.interval_ms * 1000;
	int64_t past_us = clock_now(&t->clock).boot_us - t->start_us;
	while (t->early > 0 && interval_us >> t->early <= past_us)
		t->early--;
	if (t->early > 0)
		t->next_us = t->start_us + (interval_us >> t->early);
	else
		t->next_us = t->start_us + (past_us / interval_us + 1) * interval_us;
}

static void look(struct tracker *t, bool early)
{
	double at_s = now_s(t);
	tree_look(&t->tree, at_s);
	memory_look(&t->memory, &t->tree, at_s);
	int64_t n[TRACK_GROUPS] = { 0 };
	for (size_t i = 0; i < t->tree.n; i++)
		n[i == 0 ? TRACK_MAIN : TRACK_DESCENDANTS] += t->tree.members[i].threads;
	/* At the first and the last look, not all of the tracker's own threads are running. */
	if (n[TRACK_MAIN] > 0 && t->o.own_threads)
		n[TRACK_MAIN] =
			n[TRACK_MAIN] > t->o.own_threads ? n[TRACK_MAIN] - t->o.own_threads : 1;
	n[TRACK_COMBINED] = n[TRACK_MAIN] + n[TRACK_DESCENDANTS];
	for (int g = 0; g < TRACK_GROUPS; g++) {
		t->threads[g] = n[g];
		tree_raise(&t->result.max_threads[g], n[g]);
	}
	host_look(t);
	/* No time counts after the last process has ended. */
	bool ended = t->tree.alive == 0 && t->last_end_s >= 0;
	take_cpu(t, ended ? t->last_end_s : at_s, early);
	if (t->gpu)
		gpu_look(t->gpu, &t->tree, &t->result);
	if (t->memory.some_unreadable)
		tracker_warn(&t->result, "the memory of a process of another user cannot be "
					 "read and is not counted; its CPU time is");
	if (t->memory.locked_pid)
		tracker_warn(&t->result,
			"process %u cannot be read: its memory is locked; its resident size "
			"is counted, which includes pages that it shares",
			t->memory.locked_pid);
	if (t->tree.failed)
		tracker_warn(&t->result, ERR_MEMORY_TEXT ": not every process is followed");
	if (t->tree.alive == 0 && t->last_end_s < 0)
		t->last_end_s = at_s;
	t->result.samples++;
}

bool tracker_sample(struct tracker *t, struct track_sample *out)
{
	bool early = t->early > 0;
	if (!t->stopped) {
		look(t, early);
		schedule(t);
	}
	if (out) {
		*out = (struct track_sample){
			.wall_us = clock_now(&t->clock).wall_us,
			.elapsed_s = now_s(t),
			.early = early,
			.system_ram_bytes = t->host.used_bytes,
			.system_gpu_ram_bytes = -1,
			.gpu_ram_bytes = { -1, -1, -1 },
			.gpu_sum_pct = NAN,
			.system_cpu_pct = t->sample_system_pct,
			.processes = t->tree.alive,
		};
		for (int g = 0; g < TRACK_GROUPS; g++) {
			int64_t bytes = t->memory.now[g].total_bytes;
			out->ram_bytes[g] = bytes < 0 && !t->memory.some_unreadable ? 0 : bytes;
			out->threads[g] = t->threads[g];
			out->cpu_pct[g] = t->sample_pct[g];
		}
		if (t->gpu)
			gpu_sample(t->gpu, out);
	}
	return t->tree.alive > 0;
}

int64_t tracker_next_us(const struct tracker *t)
{
	return t->next_us;
}

/* Takes the first sample. What it used before (CPU time, peak memory) is not counted. */
static void begin(struct tracker *t)
{
	t->window = t->window_before = t->sample_mark = t->first;
	look(t, true);
	if (t->o.started_us == 0) {
		memcpy(t->before, t->sums, sizeof(t->before));
		memset(t->sums, 0, sizeof(t->sums));
		for (size_t i = 0; i < t->tree.n; i++) {
			struct member *m = &t->tree.members[i];
			m->before_user_s = m->own[COUNT_USER];
			m->before_system_s = m->own[COUNT_SYSTEM];
			m->peak_before_bytes = m->explained_rss_bytes = m->peak_rss_bytes;
			m->shown.max_rss_bytes = m->rss_bytes;
		}
		/* The first look saw high-water marks from before the tracking. */
		memcpy(t->memory.peak, t->memory.now, sizeof(t->memory.peak));
		t->memory.charged_bytes = t->memory.now[TRACK_COMBINED].total_bytes < 0
						  ? -1
						  : t->memory.now[TRACK_COMBINED].total_bytes +
							    t->memory.unshared_bytes;
		t->sample_mark = mark(t, now_s(t));
		t->window = t->window_before = t->sample_mark;
		memset(t->sample_pct, 0, sizeof(t->sample_pct));
	}
	schedule(t);
}

static int open_parts(struct tracker *t, struct err *e)
{
	t->tree.owner = t->o.subreaper ? getpid() : 0;
	t->tree.files = t->o.files;
	t->tree.excluded = t->o.excluded;
	t->tree.n_excluded = t->o.n_excluded;
	if (t->o.slurm_job)
		snprintf(t->tree.jobs[1], sizeof(t->tree.jobs[1]), "slurm:%s", t->o.slurm_job);
	t->tree.start_s = (double)t->start_us / 1e6;
	memory_init(&t->memory);
	int rc = tree_open(&t->tree, t->o.root, t->o.pid, t->o.started_us > 0, e);
	if (rc)
		return rc;
	struct host *h = &t->host;
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	*h = (struct host){
		.memory_fd = proc_open_file(t->tree.proc_fd, 0, "meminfo"),
		.cpu_fd = proc_open_file(t->tree.proc_fd, 0, "stat"),
		.cores = cores > 0 ? cores : 1,
		.used_bytes = -1,
		.busy_ticks = -1,
		.all_ticks = -1,
	};
	host_look(t);
	t->first = mark(t, 0);
	h->limits = limits_read(t->tree.proc_fd, (uint32_t)t->o.pid, t->o.root);
	return t->o.source.name ? gpu_open(&t->gpu, &t->o, e) : 0;
}

int tracker_open(struct tracker **out, const struct tracker_options *o, struct err *e)
{
	struct tracker *t = calloc(1, sizeof(*t));
	if (!t)
		return err_memory(e);
	t->o = *o;
	t->o.root = o->root ? o->root : "";
	clock_init_real(&t->clock);
	if (!t->o.source.clock)
		t->o.source.clock = &t->clock;
	t->start_us = o->started_us > 0 ? o->started_us : clock_now(&t->clock).boot_us;
	t->result.exit_status = -1;
	t->result.ram_capacity_bytes = t->result.ram_system_max_bytes = -1;
	t->last_end_s = -1;
	t->tree.proc_fd = t->tree.newest_fd = -1;
	t->host.memory_fd = t->host.cpu_fd = -1;
	t->max.system_pct = t->sample_system_pct = NAN;
	for (int g = 0; g < TRACK_GROUPS; g++)
		t->max.pct[g] = NAN;
	int rc = open_parts(t, e);
	if (rc) {
		tracker_close(t);
		return rc;
	}
	while (t->early < EARLY_LOOKS &&
		o->interval_ms * 1000 >> (t->early + 1) >= EARLY_LEAST_US)
		t->early++;
	begin(t);
	*out = t;
	return 0;
}

void tracker_close(struct tracker *t)
{
	if (!t)
		return;
	gpu_close(t->gpu);
	file_close(t->host.memory_fd);
	file_close(t->host.cpu_fd);
	tree_close(&t->tree);
	free(t->result.cards);
	free(t->result.processes);
	free(t);
}

void tracker_exiting(struct tracker *t, pid_t pid)
{
	double at_s = now_s(t);
	t->last_end_s = at_s;
	tree_read_again(&t->tree, pid, at_s);
}

bool tracker_is_helper(struct tracker *t, pid_t pid)
{
	return tree_is_helper(&t->tree, pid);
}

void tracker_reaped(struct tracker *t, pid_t pid, int status, const struct rusage *usage)
{
	double at_s = now_s(t);
	uint32_t i = tree_reaped(&t->tree, pid, usage, at_s);
	if (i == NO_MEMBER) {
		/* The process started and ended between two looks; the owner has no other
		 * children. */
		double more[COUNTERS];
		tree_count_usage(more, usage);
		for (int c = 0; c < COUNTERS; c++)
			t->tree.forgotten[c] += more[c];
		t->tree.seen++;
		return;
	}
	if (!t->tree.members[i].final_read || t->last_end_s < 0)
		t->last_end_s = at_s;
	if (i == 0)
		t->result.exit_status = status;
	memory_reaped(&t->memory, &t->tree, i, (int64_t)usage->ru_maxrss * 1024);
}

/* What a command leaves running may need more than all that was measured. */
static void warn_of_rest(struct tracker *t)
{
	uint32_t pid = 0;
	size_t left = 0;
	if (!t->tree.members[0].gone && !t->tree.members[0].zombie)
		return;
	if (t->tree.alive)
		usleep(ENDING_US);
	for (size_t i = 1; i < t->tree.n; i++) {
		struct member *m = &t->tree.members[i];
		if (!m->gone && !m->zombie)
			tree_read_again(&t->tree, (pid_t)m->shown.id.pid, t->stopped_s);
		if (m->gone || m->zombie)
			continue;
		pid = m->shown.id.pid;
		left++;
	}
	if (left)
		tracker_warn(&t->result,
			"the command has left %zu process%s running (pid %u%s): what %s from "
			"now on is not counted",
			left, left == 1 ? "" : "es", pid, left == 1 ? "" : " and others",
			left == 1 ? "it uses" : "they use");
}

void tracker_stop(struct tracker *t)
{
	if (t->stopped)
		return;
	look(t, true);
	if (t->memory.unseen_bytes)
		tracker_warn(&t->result,
			"a process had %lld MiB between two samples; what others had then is "
			"not counted: a shorter sampling interval (--st) shows more",
			(long long)t->memory.unseen_bytes >> 20);
	/* The time does not include that of waiting for the driver. */
	t->stopped_s = t->tree.alive == 0 && t->last_end_s >= 0 ? t->last_end_s : now_s(t);
	if (t->gpu)
		gpu_stop(t->gpu, &t->tree, &t->result);
	warn_of_rest(t);
	t->stopped = true;
}

double tracker_max(double max, double mean)
{
	return max >= mean || isnan(mean) ? max : mean;
}

static void fill_cpu(const struct tracker *t, struct track_result *r)
{
	r->core_count = t->host.cores;
	r->core_limit = t->host.limits.cores < t->host.cores ? t->host.limits.cores : -1;
	r->expected_cores = t->o.expected_cores ? t->o.expected_cores
			    : r->core_limit > 0 ? r->core_limit
						: r->core_count;
	double most = 100.0 * (double)t->host.cores;
	struct cpu_max max = tracker_cpu_max(t);
	for (int g = 0; g < TRACK_GROUPS; g++) {
		r->user_s[g] = t->sums[g][COUNT_USER];
		r->system_s[g] = t->sums[g][COUNT_SYSTEM];
		double pct = r->elapsed_s > 0
				     ? 100.0 * (r->user_s[g] + r->system_s[g]) / r->elapsed_s
				     : 0;
		r->cpu[g].mean_sum_pct = pct < most ? pct : most;
		r->cpu[g].max_sum_pct = tracker_max(max.pct[g], r->cpu[g].mean_sum_pct);
	}
	r->cpu_system.mean_sum_pct = host_cpu_pct(&t->host, &t->first);
	r->cpu_system.max_sum_pct = tracker_max(max.system_pct, r->cpu_system.mean_sum_pct);
}

/* The work of a member may not be in the numbers: what to do instead. */
static void fill_elsewhere(const struct tracker *t, struct track_result *r)
{
	const struct tree *tree = &t->tree;
	const struct elsewhere *e = tree->elsewhere ? tree->elsewhere : tree->launcher;
	r->launched = tree->n_launched;
	r->use_instead[0] = '\0';
	if (!e || (e->in_job && tree->n_launched))
		return;
	snprintf(r->use_instead, sizeof(r->use_instead), "use %s", e->use);
	if (t->stopped)
		tracker_warn(r,
			"the work of %s may run outside of this process tree, where it is not "
			"measured; use %s",
			e->program, e->use);
}

const struct track_result *tracker_result(struct tracker *t)
{
	struct track_result *r = &t->result;
	r->elapsed_s = t->stopped ? t->stopped_s : now_s(t);
	r->exited = t->tree.members[0].gone || t->tree.members[0].zombie;
	r->ram_limit_bytes = t->host.limits.memory_bytes;
	if (r->ram_capacity_bytes >= 0 && r->ram_limit_bytes >= r->ram_capacity_bytes)
		r->ram_limit_bytes = -1;
	memcpy(r->ram, t->memory.peak, sizeof(r->ram));
	r->ram_charged_bytes = t->memory.charged_bytes;
	/* Without processes the memory is 0; with one that cannot be read it is unknown. */
	struct track_ram *below = &r->ram[TRACK_DESCENDANTS];
	if (below->total_bytes < 0 && (t->tree.seen <= 1 || !t->memory.some_unreadable))
		*below = (struct track_ram){ 0, 0, 0, 0 };
	fill_cpu(t, r);
	const double *all = t->sums[TRACK_COMBINED];
	bool io_known = t->tree.io_known || all[COUNT_READ] > 0 || all[COUNT_WRITTEN] > 0;
	r->read_bytes = io_known ? (int64_t)all[COUNT_READ] : -1;
	r->written_bytes = io_known ? (int64_t)all[COUNT_WRITTEN] : -1;
	r->minor_faults = (int64_t)all[COUNT_MINOR];
	r->major_faults = (int64_t)all[COUNT_MAJOR];
	r->voluntary_switches = (int64_t)all[COUNT_VOLUNTARY];
	r->involuntary_switches = (int64_t)all[COUNT_INVOLUNTARY];
	r->processes_seen = t->tree.seen;
	r->processes_peak = t->tree.peak_alive;
	if (array_reserve(&r->processes, &t->cap_processes, t->tree.n)) {
		for (size_t i = 0; i < t->tree.n; i++)
			r->processes[i] = t->tree.members[i].shown;
		r->n_processes = t->tree.n;
		r->others = t->tree.others;
		r->n_others = t->tree.n_forgotten;
	}
	fill_elsewhere(t, r);
	if (t->gpu)
		gpu_fill(t->gpu, r);
	else
		gpu_fill_none(r);
	return r;
}
