/* Combines the parts of a tracker into its result. */
#include "track/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "track/tracker_private.h"
#include "track/tree.h"

static void fill_memory(const struct tracker *t, struct track_result *r)
{
	r->ram_capacity_bytes = t->host.capacity_bytes;
	r->ram_system_max_bytes = t->host.max_used_bytes;
	bool none_below = t->tree.seen <= 1;
	for (int g = 0; g < TRACK_GROUPS; g++)
		r->ram[g] = t->memory.peak[g];
	/* Without processes the memory is 0; with one that cannot be read it is unknown. */
	if (none_below ||
		(r->ram[TRACK_DESCENDANTS].total_bytes < 0 && !t->memory.some_unreadable))
		if (r->ram[TRACK_DESCENDANTS].total_bytes < 0)
			r->ram[TRACK_DESCENDANTS] = (struct track_ram){ 0, 0, 0, 0 };
}

double tracker_max(double max, double mean)
{
	return max >= mean || isnan(mean) ? max : mean;
}

static void fill_cpu(const struct tracker *t, struct track_result *r)
{
	r->core_count = t->host.cores;
	r->expected_cores = t->o.expected_cores ? t->o.expected_cores : t->host.cores;
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
		r->max_threads[g] = t->max_threads[g];
	}
	r->cpu_system.mean_sum_pct =
		host_cpu_pct(&t->host, t->host.first_busy_ticks, t->host.first_all_ticks);
	r->cpu_system.max_sum_pct = tracker_max(max.system_pct, r->cpu_system.mean_sum_pct);
}

static void fill_counts(const struct tracker *t, struct track_result *r)
{
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
}

static void fill_processes(struct tracker *t, struct track_result *r)
{
	if (!array_reserve(&r->processes, &t->cap_processes, t->tree.n))
		return;
	for (size_t i = 0; i < t->tree.n; i++)
		r->processes[i] = t->tree.members[i].shown;
	r->n_processes = t->tree.n;
	r->others = t->tree.others;
	r->n_others = t->tree.n_forgotten;
}

const struct track_result *tracker_result(struct tracker *t)
{
	struct track_result *r = &t->result;
	r->elapsed_s = t->stopped ? t->stopped_s : tracker_now_s(t);
	r->exit_status = t->exit_status;
	r->exited = t->tree.members[0].gone || t->tree.members[0].zombie;
	r->samples = t->samples;
	fill_memory(t, r);
	fill_cpu(t, r);
	fill_counts(t, r);
	fill_processes(t, r);
	if (t->gpu)
		gpu_fill(t->gpu, r);
	else
		gpu_fill_none(r);
	return r;
}

/* Sums up what the members used. Each second of CPU is counted in one place at a time: at the
 * process that used it while it runs or is a zombie, then at the process that waited for it,
 * and so on upwards. If a process ended and its parent never got its seconds (the parent
 * ignores SIGCHLD, or is init), the last reading of the process counts. */

void counters_of_rusage(double counters[COUNTERS], const struct rusage *usage)
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

static double larger(double a, double b)
{
	return a > b ? a : b;
}

/* Returns a member's own use and everything that is accounted to it. dead[] is what members
 * below it had when they were last seen: normally the member waited for them, and waited[] has
 * it too. */
static double total(const struct member *m, enum counter c)
{
	if (m->reaped)
		return larger(m->exact[c], m->own[c] + m->dead[c]);
	return m->own[c] + larger(m->waited[c], m->dead[c]);
}

/* Returns the use without children. The exact numbers include children: the use after the last
 * reading is divided in the same ratio as the use before, unless that reading was final. */
static double own(const struct member *m, enum counter c)
{
	if (!m->reaped)
		return m->own[c];
	double below = larger(m->waited[c], m->dead[c]);
	double rest = larger(m->exact[c] - m->own[c] - below, 0);
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

static void add_to_others(struct tree *t, const struct member *m)
{
	struct track_process *o = &t->others;
	o->user_s += own(m, COUNT_USER) - m->before_user_s;
	o->system_s += own(m, COUNT_SYSTEM) - m->before_system_s;
	t->n_forgotten++;
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
	add_to_others(t, m);
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

void member_was_there(struct member *m)
{
	m->before_user_s = m->own[COUNT_USER];
	m->before_system_s = m->own[COUNT_SYSTEM];
	m->peak_before_bytes = m->peak_rss_bytes;
	m->explained_rss_bytes = m->peak_rss_bytes;
	m->shown.max_rss_bytes = m->rss_bytes;
}
