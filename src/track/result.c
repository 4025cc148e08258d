/* Combines the parts of a tracker into its result. */
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "track/tracker_private.h"

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

double track_max(double max, double mean)
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
		r->cpu[g].max_sum_pct = track_max(max.pct[g], r->cpu[g].mean_sum_pct);
		r->max_threads[g] = t->max_threads[g];
	}
	r->cpu_system.mean_sum_pct =
		host_cpu_pct(&t->host, t->host.first_busy_ticks, t->host.first_all_ticks);
	r->cpu_system.max_sum_pct = track_max(max.system_pct, r->cpu_system.mean_sum_pct);
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
