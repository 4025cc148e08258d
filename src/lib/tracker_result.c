/* gua_tracker: copies its numbers into the public structs. */
#include <gua.h>

#include <string.h>

#include "base/str.h"
#include "lib/lib.h"
#include "lib/sampler.h"
#include "lib/tracker_rows.h"

static void fill_groups(struct gua_track_result *to, const struct track_result *r)
{
	for (int g = 0; g < TRACK_GROUPS; g++) {
		to->ram_total_bytes[g] = r->ram[g].total_bytes;
		to->ram_private_bytes[g] = r->ram[g].private_bytes;
		to->ram_shared_bytes[g] = r->ram[g].shared_bytes;
		to->ram_swap_bytes[g] = r->ram[g].swap_bytes;
		to->cpu_max_pct[g] = r->cpu[g].max_sum_pct;
		to->cpu_mean_pct[g] = r->cpu[g].mean_sum_pct;
		to->threads_max[g] = r->max_threads[g];
		to->user_s[g] = r->user_s[g];
		to->system_s[g] = r->system_s[g];
		to->gpu_ram_bytes[g] = r->gpu_ram[g];
	}
}

static void fill_gpu(struct gua_track_result *to, const struct track_result *r)
{
	to->gpu_known = r->gpu_known;
	text_copy(to->gpu_note, sizeof(to->gpu_note), r->gpu_note);
	to->gpu_count = r->gpu_count;
	to->expected_gpus = r->expected_gpus;
	to->gpu_capacity_bytes = r->gpu_capacity_bytes;
	to->gpu_system_max_bytes = r->gpu_system_max_bytes;
	to->gpu_util_max_pct = r->gpu_util.max_sum_pct;
	to->gpu_util_mean_pct = r->gpu_util.mean_sum_pct;
	to->gpu_active_s = r->gpu_active_s;
	to->gpu_idle_held_s = r->gpu_idle_held_s;
	to->gpu_context_bytes = r->gpu_context_bytes;
	to->energy_j = r->energy_j;
	to->tree_energy_j = r->tree_energy_j;
}

API int gua_tracker_result(struct gua_tracker *tracker, struct gua_track_result *result)
{
	struct image *seen;
	if (!tracker)
		return GUA_WRONG_USE;
	int rc = tracker_look(tracker, result, result ? result->size : 0, &seen);
	if (rc)
		return rc;
	const struct track_result *r = &seen->result;
	struct gua_track_result found = {
		.elapsed_s = r->elapsed_s,
		.exited = r->exited,
		.samples = r->samples,
		.ram_capacity_bytes = r->ram_capacity_bytes,
		.ram_system_max_bytes = r->ram_system_max_bytes,
		.core_count = r->core_count,
		.expected_cores = r->expected_cores,
		.cpu_system_max_pct = r->cpu_system.max_sum_pct,
		.cpu_system_mean_pct = r->cpu_system.mean_sum_pct,
		.read_bytes = r->read_bytes,
		.written_bytes = r->written_bytes,
		.minor_faults = r->minor_faults,
		.major_faults = r->major_faults,
		.voluntary_switches = r->voluntary_switches,
		.involuntary_switches = r->involuntary_switches,
		.processes_seen = r->processes_seen,
		.processes_peak = r->processes_peak,
		.cards = seen->n_cards,
		.processes = seen->n_processes,
		.others = r->n_others,
		.warnings = r->n_warnings,
	};
	fill_groups(&found, r);
	fill_gpu(&found, r);
	hand_struct(result, result->size, &found, sizeof(found));
	return 0;
}

static void fill_sample(
	struct gua_track_sample *sample, const struct track_sample *s, int64_t number)
{
	struct gua_track_sample found = {
		.elapsed_s = s->elapsed_s,
		.wall_us = s->wall_us,
		.ram_system_bytes = s->system_ram_bytes,
		.gpu_system_bytes = s->system_gpu_ram_bytes,
		.gpu_util_pct = s->gpu_sum_pct,
		.cpu_system_pct = s->system_cpu_pct,
		.processes = s->processes,
		.early = s->early,
		.number = number,
	};
	for (int g = 0; g < TRACK_GROUPS; g++) {
		found.ram_bytes[g] = s->ram_bytes[g];
		found.gpu_ram_bytes[g] = s->gpu_ram_bytes[g];
		found.threads[g] = s->threads[g];
		found.cpu_pct[g] = s->cpu_pct[g];
	}
	hand_struct(sample, sample->size, &found, sizeof(found));
}

API int gua_tracker_snapshot(struct gua_tracker *tracker, struct gua_track_sample *sample)
{
	struct image *seen;
	if (!tracker)
		return GUA_WRONG_USE;
	int rc = tracker_look(tracker, sample, sample ? sample->size : 0, &seen);
	if (!rc)
		fill_sample(sample, &seen->sample, seen->number);
	return rc;
}

API int gua_tracker_sample(
	struct gua_tracker *tracker, int64_t number, struct gua_track_sample *sample)
{
	struct track_sample kept;
	if (!tracker)
		return GUA_WRONG_USE;
	int rc =
		tracker_sample_from(tracker, sample, sample ? sample->size : 0, &number, &kept);
	if (!rc)
		fill_sample(sample, &kept, number);
	return rc;
}

API int gua_tracker_card(struct gua_tracker *tracker, size_t index, struct gua_track_card *card)
{
	struct image *seen;
	if (!tracker)
		return GUA_WRONG_USE;
	int rc = tracker_row(tracker, card, card ? card->size : 0, &seen);
	if (rc)
		return rc;
	if (index >= seen->n_cards)
		return tracker_no_row(tracker, "card", index);
	const struct track_card *c = &seen->cards[index];
	struct gua_track_card found = {
		.index = c->id.index,
		.mig_index = c->id.mig_index,
		.status = (int)c->status,
		.mem_total_bytes = c->id.mem_total_bytes,
		.used_max_bytes = c->max_used_bytes,
		.tree_max_bytes = c->max_tree_bytes,
		.util_max_pct = c->max_util_pct,
		.util_mean_pct = c->mean_util_pct,
		.tree_util_max_pct = c->max_tree_pct,
		.tree_util_mean_pct = c->mean_tree_pct,
		.energy_j = c->energy_j,
		.tree_energy_j = c->tree_energy_j,
		.active_s = c->active_s,
		.idle_held_s = c->idle_held_s,
		.tree_processes = c->peak_tree_processes,
	};
	text_copy(found.uuid, sizeof(found.uuid), c->id.uuid);
	text_copy(found.name, sizeof(found.name), c->id.name);
	hand_struct(card, card->size, &found, sizeof(found));
	return 0;
}

API int gua_tracker_process(
	struct gua_tracker *tracker, size_t index, struct gua_track_process *process)
{
	struct image *seen;
	if (!tracker)
		return GUA_WRONG_USE;
	int rc = tracker_row(tracker, process, process ? process->size : 0, &seen);
	if (rc)
		return rc;
	if (index >= seen->n_processes)
		return tracker_no_row(tracker, "process", index);
	const struct track_process *p = &seen->processes[index];
	struct gua_track_process found = {
		.pid = p->id.pid,
		.ppid = p->ppid,
		.uid = p->id.uid,
		.started_s = p->started_s,
		.ended_s = p->ended_s,
		.user_s = p->user_s,
		.system_s = p->system_s,
		.ram_total_bytes = p->max_total_bytes,
		.ram_private_bytes = p->max_private_bytes,
		.rss_bytes = p->max_rss_bytes,
		.gpu_ram_bytes = p->max_gpu_bytes,
		.threads_max = p->max_threads,
		.unreadable = p->unreadable,
	};
	text_copy(found.command, sizeof(found.command), p->id.command);
	hand_struct(process, process->size, &found, sizeof(found));
	return 0;
}

API const char *gua_tracker_warning(const struct gua_tracker *tracker, size_t index)
{
	const struct image *seen = tracker_seen(tracker);
	return seen && index < seen->result.n_warnings ? seen->result.warnings[index] : NULL;
}
