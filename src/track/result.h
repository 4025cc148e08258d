/* What a tracked command or process tree used: the numbers, in base units (bytes, seconds,
 * percent of one core, joules). The renderers choose formats and units. Unknown is NAN or
 * -1, never 0. */
#pragma once

#include "model/process.h"
#include "model/reading.h"

/* Maximum rows of the process table; further processes are summed up. */
enum { TRACK_PROCESSES_MAX = 512 };

/* Groups of processes: the first process, all processes below it, both together. */
enum track_group { TRACK_MAIN, TRACK_DESCENDANTS, TRACK_COMBINED, TRACK_GROUPS };

/* Memory of a group; each field has its own peak. */
struct track_ram {
	int64_t total_bytes;   /* proportional (PSS): a page shared in the group counts once */
	int64_t private_bytes; /* unique (USS) */
	int64_t shared_bytes;  /* total less private, at one moment */
	int64_t swap_bytes;    /* proportional swap */
};

/* CPU in percent of one core: 200 is two cores busy. */
struct track_cpu {
	double max_sum_pct;  /* highest over one sampling interval; a rest at the end belongs to
				the last one; never below the mean or above cores x 100 */
	double mean_sum_pct; /* CPU time divided by elapsed time */
};

/* One process that was seen in the tree; TRACK_PROCESSES_MAX are kept, the rest is summed. */
struct track_process {
	struct process_id id;
	int64_t ppid;
	double started_s,
		ended_s;	 /* after the start of tracking; ended NAN: alive at the end */
	double user_s, system_s; /* own CPU time, without its children */
	int64_t max_total_bytes, max_private_bytes, max_rss_bytes;
	int64_t max_gpu_bytes; /* over all cards, or -1 */
	int64_t max_threads;
	bool unreadable; /* memory could not be read: another user's */
};

/* One card during the tracking. */
struct track_card {
	struct card_id id;
	int64_t max_used_bytes; /* whole card */
	int64_t max_tree_bytes; /* the tree's processes together; -1: the driver does not report
				   it */
	double max_util_pct, mean_util_pct; /* whole card; NAN unknown */
	double max_tree_pct,
		mean_tree_pct; /* SM use of the tree's own processes; NAN unknown */
	double energy_j;       /* of the card while the tree ran; NAN unknown */
	double tree_energy_j;  /* an estimate: the tree's share of active time by SM use */
	double active_s, idle_held_s; /* of the tree on this card, by the audit's rule for
					 presence; NAN unknown */
	size_t peak_tree_processes;   /* processes of the tree on the card at the peak */
	enum card_status status;      /* at the end */
	bool observed;		      /* there was a reading */
};

struct track_result {
	double elapsed_s;
	int exit_status; /* as from wait(2), or -1: not known (a pid that is not our child) */
	bool exited;
	int64_t samples; /* how many were taken */

	int64_t ram_capacity_bytes, ram_system_max_bytes; /* the host's */
	int64_t ram_limit_bytes, core_limit; /* of its job, container or service: less than the
						host has; -1: there is none */
	struct track_ram ram[TRACK_GROUPS];
	int64_t ram_charged_bytes; /* the peak that a job's limit must allow: as the combined
				      total, but what a process of the tree has of a file or of
				      shared memory counts whole, whoever else has it; -1 */

	int64_t core_count;	/* of the host */
	int64_t expected_cores; /* --nec, else core_limit, else core_count */
	struct track_cpu cpu_system, cpu[TRACK_GROUPS];
	int64_t max_threads[TRACK_GROUPS];
	double user_s[TRACK_GROUPS], system_s[TRACK_GROUPS];

	int64_t read_bytes, written_bytes; /* storage I/O of the tree; -1 unknown */
	int64_t minor_faults, major_faults;
	int64_t voluntary_switches, involuntary_switches;
	int64_t processes_seen, processes_peak;

	bool gpu_known;	       /* a driver answered */
	bool gpu_awaited;      /* it has not answered yet */
	char gpu_note[256];    /* why not, or which fallback was used; "" */
	int64_t gpu_count;     /* of the host */
	int64_t expected_gpus; /* that count in utilisation */
	int64_t gpu_capacity_bytes, gpu_system_max_bytes; /* of the host; -1 unknown */
	int64_t gpu_ram[TRACK_GROUPS];			  /* peaks; -1 unknown */
	struct track_cpu gpu_util;	      /* sum over the chosen cards; NAN unknown */
	double gpu_active_s, gpu_idle_held_s; /* sum over cards; NAN unknown */
	int64_t gpu_context_bytes; /* bare context in the combined peak; -1 unknown */
	double energy_j, tree_energy_j;

	struct track_card *cards; /* see tracker_options.own_gpus */
	size_t n_cards;
	struct track_process *processes;
	size_t n_processes;
	int64_t launched;      /* processes that were found in its Slurm job, not below it */
	char use_instead[128]; /* how to track work that is not in these numbers; "": all is */
	struct track_process others; /* sums of the processes without a row: CPU time only */
	int64_t n_others;

	char warnings[8][200]; /* each appears once */
	size_t n_warnings;
};

/* One moment, for the tracking file, progress and snapshots. */
struct track_sample {
	int64_t wall_us;
	double elapsed_s;
	bool early; /* one of the few looks within the first interval, for short commands: not a
		       row of a tracking file */
	int64_t ram_bytes[TRACK_GROUPS], system_ram_bytes;	   /* total (PSS) */
	int64_t gpu_ram_bytes[TRACK_GROUPS], system_gpu_ram_bytes; /* -1 unknown */
	double gpu_sum_pct; /* chosen cards; NAN unknown */
	int64_t threads[TRACK_GROUPS];
	double cpu_pct[TRACK_GROUPS], system_cpu_pct; /* since the previous sample */
	int64_t processes;
};
