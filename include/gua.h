/* libgua: reads the GPUs of this host, and tracks what a process tree uses. libgua(3) is the
 * manual.
 *
 * The library runs inside other programs: it prints nothing, never exits, does not change
 * signal handling, does not read the environment, and links libc and libm only. gua_open()
 * opens the driver. Only a tracker starts a thread or a process (as its options say), which
 * runs from gua_tracker_start() to gua_tracker_stop(). Functions that can fail return 0 or a
 * negative enum gua_code, and gua_error() returns the message. Only one thread may use a handle
 * at a time; several handles may be open.
 *
 * A reading that the driver does not give is NAN (double) or -1 (integers), never 0. Structs
 * begin with their size, which the caller sets (GUA_INIT does), so that a later library can add
 * fields at the end without breaking a program that was built before. */
#ifndef GUA_H
#define GUA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Results of functions; gua_code_text() returns a text for each. */
enum gua_code {
	GUA_OK = 0,
	GUA_WRONG_USE = -1, /* a wrong argument: unknown source, index out of range, size ... */
	GUA_FAILED = -2,    /* not possible on this host: no driver, no such file ... */
	GUA_BUSY = -3,	    /* not possible now: try again later */
	GUA_NO_MEMORY = -4,
};

enum gua_card_status {
	GUA_CARD_OK = 0,
	GUA_CARD_LOST = 1,   /* fell off the bus; keeps its index when it returns */
	GUA_CARD_ASLEEP = 2, /* powered down; it is not woken */
	GUA_CARD_DENIED = 3, /* exists, but this user may not open it */
};

/* Bits of gua_process.kind. */
enum gua_process_kind {
	GUA_PROCESS_COMPUTE = 1,
	GUA_PROCESS_GRAPHICS = 2,
	GUA_PROCESS_MPS = 4, /* client of an MPS server */
};

/* Options of gua_open(). Zero, NULL and "" mean the default; the strings are copied. */
struct gua_options {
	size_t size;
	const char *source; /* "auto" (the default), "nvml", or "sim" (simulated); "nvml,sim" */
	const char *nvml_path; /* driver library instead of libnvidia-ml.so.1 */
	const char *scenario;  /* sim: a gua-scenario(5) file instead of the built-in lab */
	const char *root;      /* directory that contains proc and sys, instead of / */
};

/* A card. A MIG instance is a card too. */
struct gua_card {
	size_t size;
	char uuid[96];
	char name[96];
	char parent_uuid[96]; /* of a MIG instance, else "" */
	char pci[32];	      /* "0000:17:00.0", "" when unknown */
	int index;	      /* the driver's index of the physical card */
	int mig_index;	      /* of the instance within its card, or -1: not MIG */
	int gpu_instance;     /* GI id, or -1 */
	int compute_instance; /* CI id, or -1 */
	int status; /* enum gua_card_status; the values below are of the last refresh */
	int64_t mem_total_bytes, mem_used_bytes;
	double util_pct; /* the driver's newest sample, 0 to 100 */
	double power_w;
	double energy_j;	/* a counter that only increases: use differences */
	size_t processes;	/* number of rows of gua_card_process() */
	int processes_known;	/* 0: the lists could not be read, so processes is 0 */
	int64_t mem_free_bytes; /* total without what is used and what the driver reserves */
	double temperature_c; /* of the chip; read by gua_card() itself, if size includes it */
};

/* A process on a card. */
struct gua_process {
	size_t size;
	uint32_t pid;	   /* as seen by the driver */
	unsigned kind;	   /* gua_process_kind bits */
	int64_t mem_bytes; /* on this card */
	double sm_pct;	   /* its mean use between the last two refreshes, 0 to 100 */
};

/* struct gua_card card = GUA_INIT(struct gua_card); */
#ifdef __cplusplus
#define GUA_INIT(type)                                                                         \
	{                                                                                      \
		sizeof(type)                                                                   \
	}
#else
#define GUA_INIT(type)                                                                         \
	{                                                                                      \
		.size = sizeof(type)                                                           \
	}
#endif

struct gua; /* an open source of GPU numbers */

/* The library's version, "0.1.0"; and the text for a code. Both strings are constants. */
const char *gua_version(void);
const char *gua_code_text(int code);

/* Opens the source, finds the cards and reads them once. `options` may be NULL. On failure
 * *handle can still be passed to gua_error() and gua_close(); it is NULL if memory ran out. */
int gua_open(struct gua **handle, const struct gua_options *options);
/* Closes the handle; NULL does nothing. */
void gua_close(struct gua *handle);
/* Why the last call on this handle failed: one sentence, or "" if it did not fail. `handle` may
 * be NULL. The string is valid until the next call. */
const char *gua_error(const struct gua *handle);

/* Reads everything again: utilisation, power, energy, memory, process lists; looks for new
 * cards and for lost cards that are back. A lost card sets its status; it is not a failure. */
int gua_refresh(struct gua *handle);

/* The number of cards; it never decreases while the handle is open. 0 if gua_open() failed. */
size_t gua_card_count(const struct gua *handle);
/* Fills `card`, whose size must be set, with the readings of the last refresh. */
int gua_card(struct gua *handle, size_t index, struct gua_card *card);
/* Fills `process` with process number `index` of a card; `index` < gua_card.processes. */
int gua_card_process(
	struct gua *handle, size_t card, size_t index, struct gua_process *process);

/* The most used values, over all cards. */
struct gua_host {
	size_t size;
	char driver[80]; /* its version, "" when unknown */
	size_t cards;	 /* number of cards; a card with MIG on counts once */
	size_t cards_ok; /* number of cards that can be read now */
	int64_t mem_total_bytes, mem_used_bytes; /* sums of the known values */
	double util_mean_pct; /* over the cards that report it; NAN: none does */
	double util_max_pct;  /* of the busiest card */
	double power_w;	      /* sum of the known values */
	size_t processes;     /* entries of all process lists */
};
/* Sums up the readings of the last refresh. */
int gua_host_summary(struct gua *handle, struct gua_host *host);

/* ---- The tracker: measures what a process and all processes below it use ---- */

/* Where the sampling of a tracker runs. */
enum gua_helper {
	GUA_HELPER_THREAD = 0,	/* a thread of the caller: the default */
	GUA_HELPER_PROCESS = 1, /* a child process, forked from the caller: copies its page
				   tables, and continues while the caller is stopped */
};

enum gua_tracker_state {
	GUA_TRACKER_NEW = 0,
	GUA_TRACKER_STARTED = 1,
	GUA_TRACKER_STOPPED = 2, /* a tracker cannot be started again */
};

/* Indexes of the arrays below: the process itself, all processes below it, both. */
enum gua_group { GUA_MAIN = 0, GUA_DESCENDANTS = 1, GUA_COMBINED = 2 };

/* Zero, NULL and "" mean the default; the strings are copied. */
struct gua_tracker_options {
	size_t size;
	int64_t pid;		/* the process to track; 0: the caller */
	double interval_s;	/* between samples, at least 0.01; default 1 */
	int64_t expected_cores; /* copied to the result; default: all it may use */
	const char *uuids;     /* cards that count in utilisation, comma-separated; NULL: all */
	const char *source;    /* as in struct gua_options, or "none": no GPU */
	const char *nvml_path; /* as in struct gua_options */
	const char *scenario;
	const char *root;
	int helper; /* enum gua_helper */
};

/* What was used since the start, in bytes, seconds, joules and percent of one core or card (200
 * is two cores). Unknown is -1 or NAN. */
struct gua_track_result {
	size_t size;
	double elapsed_s;
	int exited; /* the process has ended */
	int64_t samples;
	int64_t ram_capacity_bytes, ram_system_max_bytes; /* the host's */
	int64_t ram_total_bytes[3];   /* by enum gua_group; peak of proportional memory: memory
					 shared within the group counts once */
	int64_t ram_private_bytes[3]; /* peak of memory that only the group uses */
	int64_t ram_shared_bytes[3];  /* peak of the difference */
	int64_t ram_swap_bytes[3];
	int64_t core_count, expected_cores;
	double cpu_system_max_pct, cpu_system_mean_pct;
	double cpu_max_pct[3], cpu_mean_pct[3];
	int64_t threads_max[3];
	double user_s[3], system_s[3];
	int64_t read_bytes, written_bytes;
	int64_t minor_faults, major_faults;
	int64_t voluntary_switches, involuntary_switches;
	int64_t processes_seen, processes_peak;
	int gpu_known;	    /* 1: a driver was read */
	char gpu_note[256]; /* if not: the reason */
	int64_t gpu_count, expected_gpus;
	int64_t gpu_capacity_bytes, gpu_system_max_bytes;
	int64_t gpu_ram_bytes[3];		    /* peaks */
	double gpu_util_max_pct, gpu_util_mean_pct; /* sums over the chosen cards */
	double gpu_active_s, gpu_idle_held_s;	    /* of the tree, over all cards */
	int64_t gpu_context_bytes; /* the part of the combined peak that is bare context */
	double energy_j, tree_energy_j;
	size_t cards;		   /* number of rows of gua_tracker_card() */
	size_t processes;	   /* number of rows of gua_tracker_process() */
	int64_t others;		   /* number of processes without a row */
	size_t warnings;	   /* number of texts of gua_tracker_warning() */
	int64_t ram_charged_bytes; /* peak that a job's limit must allow: as the combined total,
				      but files and memory that are shared with processes
				      outside the tree count whole */
	int64_t ram_limit_bytes; /* that its job, container or service may use, if less than the
				    host has; -1: no limit */
	int64_t core_limit;	 /* the same for cores; expected_cores is this by default */
	char use_instead[128];	 /* how to track work that is not in these numbers, as the tasks
				    of   srun; "": all of it is */
};

/* One sample. */
struct gua_track_sample {
	size_t size;
	double elapsed_s;
	int64_t wall_us; /* since 1970, microseconds */
	int64_t ram_bytes[3], ram_system_bytes;
	int64_t gpu_ram_bytes[3], gpu_system_bytes;
	double gpu_util_pct; /* sum over the chosen cards */
	int64_t threads[3];
	double cpu_pct[3], cpu_system_pct; /* since the previous sample */
	int64_t processes;
	int early;	/* 1: an additional sample within the first interval */
	int64_t number; /* of the sample: 1, 2 ...; unchanged if there is no new sample */
};

/* One card during the tracking. */
struct gua_track_card {
	size_t size;
	char uuid[96];
	char name[96];
	int index, mig_index;
	int status; /* enum gua_card_status, at the end */
	int64_t mem_total_bytes;
	int64_t used_max_bytes, tree_max_bytes; /* of the whole card; of the tree's processes */
	double util_max_pct, util_mean_pct;	/* the whole card */
	double tree_util_max_pct, tree_util_mean_pct;
	double energy_j, tree_energy_j;
	double active_s, idle_held_s; /* of the tree */
	size_t tree_processes;	      /* at the tree's peak */
};

/* One process of the tree. */
struct gua_track_process {
	size_t size;
	uint32_t pid;
	int64_t ppid, uid;
	char command[256];
	double started_s, ended_s; /* after the start of the tracker; ended NAN: running */
	double user_s, system_s;
	int64_t ram_total_bytes, ram_private_bytes, rss_bytes; /* peaks */
	int64_t gpu_ram_bytes;
	int64_t threads_max;
	int unreadable; /* 1: another user's process, so its memory is unknown */
};

struct gua_tracker;

/* Creates a tracker; nothing runs yet. `options` may be NULL. On failure *tracker can still be
 * passed to gua_tracker_error() and gua_tracker_free(); it is NULL if memory ran out. */
int gua_tracker_new(struct gua_tracker **tracker, const struct gua_tracker_options *options);
/* Frees the tracker, and stops it first if it runs; NULL does nothing. */
void gua_tracker_free(struct gua_tracker *tracker);
const char *gua_tracker_error(const struct gua_tracker *tracker);
int gua_tracker_state(const struct gua_tracker *tracker);

/* GUA_WRONG_USE if it has been started before; GUA_FAILED if the process does not exist. A
 * missing driver is not a failure: the result has the reason in gpu_note. */
int gua_tracker_start(struct gua_tracker *tracker);
/* GUA_WRONG_USE if it is not running. Returns within some seconds: if a process of the tree or
 * the driver blocks the sampler for ever, the sampler is left behind, its memory is not freed,
 * and the numbers are those of the last sample, with a warning. */
int gua_tracker_stop(struct gua_tracker *tracker);

/* The newest sample. Can be called after gua_tracker_start(). */
int gua_tracker_snapshot(struct gua_tracker *tracker, struct gua_track_sample *sample);
/* The sample with this number, or the oldest kept one after it; the last 1024 samples are kept.
 * GUA_BUSY if there is none yet. A caller that always asks for the number after the last one it
 * received gets each sample once. */
int gua_tracker_sample(
	struct gua_tracker *tracker, int64_t number, struct gua_track_sample *sample);
/* The numbers so far, or the final ones after the stop. Can be called after
 * gua_tracker_start(). */
int gua_tracker_result(struct gua_tracker *tracker, struct gua_track_result *result);
/* Rows that belong to the last gua_tracker_result(). */
int gua_tracker_card(struct gua_tracker *tracker, size_t index, struct gua_track_card *card);
int gua_tracker_process(
	struct gua_tracker *tracker, size_t index, struct gua_track_process *process);
/* The text of a warning, or NULL; valid until the next gua_tracker_result(). */
const char *gua_tracker_warning(const struct gua_tracker *tracker, size_t index);

#ifdef __cplusplus
}
#endif

#endif
