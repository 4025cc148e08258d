/* The internals of the real driver's source, shared by the nvml_*.c files: devices (what the
 * driver has), cards (what is audited: a device, or each of its MIG instances), the state as a
 * whole, and the functions of each file. */
#pragma once

#include "base/fault.h"
#include "driver/capture/capture_play.h"
#include "driver/nvml/nvml_host.h"
#include "driver/nvml/nvml_job.h"
#include "driver/nvml/nvml_lib.h"
#include "driver/nvml/nvml_metric.h"
#include "driver/nvml/nvml_ring.h"
#include "driver/source.h"
#include "driver/use.h"

/* From here on: processes that have ended, by the driver's own records (accounting mode): the
 * only way to see a process that started and ended between two looks. Root turns the mode on
 * with `nvidia-smi -am 1`. */

/* A pid that has a record of the driver, and what is known about it. */
struct nvml_life {
	uint32_t pid;
	bool ended;
	unsigned asked_look; /* how many looks there had been when its record was read */
	int64_t start_us;
};

/* The records of a card. */
struct nvml_accounts {
	struct nvml_buffer pids;	/* of uint32_t: what the driver lists */
	struct nvml_buffer lives, next; /* of struct nvml_life, by pid; next: being made */
	size_t n_lives;
	struct nvml_buffer ended; /* of struct ended_process: since the last drain */
};

/* Whether the mode is on (1), off (0) or unknown (-1). */
int nvml_account_mode(struct nvml_source *s, void *handle);
/* A card's part of a drain: fills the reading's ended[]. */
void nvml_account_drain(struct nvml_source *s, size_t card);
/* source_ops.accounts */
size_t nvml_account_read(
	struct source *base, size_t card, struct process_account *out, size_t max);

/* GPM: counters of newer cards; two readings give the mean between them. They are the only
 * utilisation that the driver reports for MIG instances, and a cross-check for whole cards. On
 * some machines the first reading breaks other calls. So they are read last in a round, and are
 * not read again once that has happened. */

enum { NVML_GPM_NONE = -1 };

/* The counters of a card. The driver allocates the samples. */
struct nvml_gpm {
	void *samples[3]; /* NULL: not allocated yet */
	int base, last;	  /* index of the sample of the last drain, and of the last reading; or
			     NVML_GPM_NONE */
	int64_t last_mono_us; /* when the last one was taken */
	bool works;	      /* the last reading worked */
	bool dead;	      /* not supported: not asked again until re-init */
};

/* Reads the counters of a card. For an instance, the mean use since the last reading is kept
 * for the drain. A drain also fills sm_active_pct; whole cards are read only by drains. */
void nvml_gpm_read(struct nvml_source *s, size_t card, bool drains);
/* Forgets the counters of a card and frees the driver's samples. */
void nvml_gpm_free(struct nvml_source *s, size_t card);
/* Stops reading counters on this host, because a call that worked before fails now. */
void nvml_gpm_stop(struct nvml_source *s, size_t card, int code);

/* A running energy counter that never decreases, even when the driver's does. */
struct nvml_energy {
	double total_mj;	     /* NAN until the first reading */
	double counter_mj, power_mw; /* from the last reading; NAN: none to continue from */
	int64_t mono_us;	     /* when that was */
};

/* A physical card. */
struct nvml_device {
	struct card_id id; /* uuid may be a placeholder: see nvml_cards.c */
	void *handle;	   /* NULL: must not be asked */
	enum card_status status;
	int code;
	bool found;	       /* by the scan in progress */
	bool mig;	       /* MIG is on: its instances are the cards */
	bool no_mig;	       /* does not support MIG: not asked again until re-init */
	int persistence;       /* 1 on, 0 off, -1 unknown */
	int accounting;	       /* the same */
	int gpm;	       /* 1 supported, 0 not, -1 not asked yet */
	bool events_on;	       /* registered for events */
	void *event_handle;    /* as events name it, also when it is lost */
	double power_limit_mw; /* or NAN */
	struct nvml_host_power power;
	struct nvml_dead dead;
};

/* A pid that has a record of use but is in no process list. */
struct nvml_stranger {
	uint32_t pid;
	bool unlisted; /* a later look did not find it either: its records are garbage */
	bool left;     /* it was in a list before, and may come back: its records are true */
};

enum { NVML_STRANGERS = 16 };

enum { NVML_POLLED = 64 }; /* readings between two drains that are kept */

/* What the source remembers of a card; as many as base.cards, in the same order. */
struct nvml_card {
	size_t device; /* index into devices */
	void *handle;  /* NULL: must not be asked */
	bool found;    /* by the current enumeration of MIG instances */
	struct nvml_way ways[NVML_JOBS];
	bool answered;		 /* in this round */
	int failure;		 /* of this round: "unknown error" and the like, or NVML_OK */
	enum nvml_stamps stamps; /* the clock of the driver's stamps */
	struct nvml_ring ring;
	int64_t since_us; /* where this drain began, by that clock: the use of processes is read
			     from there on */
	struct nvml_energy energy;
	struct fault bad_power; /* it reports more power than the board can draw */
	struct nvml_buffer samples, utils, parts, processes, glanced;
	struct use_past past;
	size_t n_processes;
	unsigned n_looks;		     /* how often the lists were read */
	int64_t compute_bytes, listed_bytes; /* memory of the compute list, and of all; or -1 */
	bool listed;			     /* processes[] is what the driver listed last */
	struct nvml_stranger strangers[NVML_STRANGERS]; /* the latest ones; pid 0: none */
	size_t next_stranger;
	bool dry; /* the ring has been empty for some time: glances read utilisation */
	int64_t back_mono_us; /* when it came back after it was lost; 0: it never was */
	struct util_sample polled[NVML_POLLED]; /* readings since the drain before */
	size_t n_polled;
	struct nvml_accounts accounts;
	struct nvml_gpm gpm;
	struct nvml_dead dead; /* of the instance itself; those of the physical card belong to
				  the device */
};

struct nvml_source {
	struct source base;
	const char *path, *root;
	const char *path_option; /* the option that names another library */
	struct clock *clock;	 /* the same as in the options */
	struct source_place *place;
	const struct source_avoids *avoids;
	struct capture_play *play; /* a capture is played instead of the driver; else NULL */
	struct nvml_lib lib;
	int64_t opened_ms; /* wall clock */
	int down;	   /* the code when the driver as a whole is down; NVML_OK: it is not */
	struct err why;	   /* while it is down: the sentence that says why */
	struct nvml_device *devices;
	struct nvml_card *cards;
	/* What the driver answered last, of whichever card. */
	struct nvml_buffer raw_samples, raw_utils, raw_list;
	size_t n_devices;
	void *event_set; /* or NULL */
	size_t n_kept;	 /* XIDs that were collected before the next drain */
	struct source_xid xids[16];
	bool gpm_used;	  /* GPM counters of a card were read */
	bool gpm_stopped; /* reading them broke other calls: not read again */
	bool gpm_mend; /* the next scan restarts the library, which may repair broken calls */
	unsigned logged[NVML_JOBS]; /* bits: fallbacks that were logged */
};

/* nvml.c: notes for other processes that `call` is made next, to a physical card (its index) or
 * to none (-1). */
void nvml_enter(struct nvml_source *s, int index, const char *call);
/* Opens the source and takes over `play`, which may be NULL. */
int nvml_open(struct source **source, const struct source_options *options,
	struct capture_play *play, struct err *e);

/* nvml_cards.c: finds the devices and shows their cards; opens those that woke up. */
int nvml_cards_find(struct nvml_source *s, struct err *e);
void nvml_cards_check_awake(struct nvml_source *s);

void nvml_cards_find_instances(struct nvml_source *s);
void nvml_cards_lose(struct nvml_source *s, size_t card, int code);
void nvml_cards_drop_handles(struct nvml_source *s);
void nvml_go_down(struct nvml_source *s, int code); /* until the next scan */

/* nvml_diagnose.c: the findings about the driver on this host, or on a captured one. */
void nvml_diagnose_at(
	const struct diagnosis *d, const struct nvml_site *site, struct findings *f);

/* captured.c: what a capture says about its host: its processes (source_ops.describe), whether
 * a card was asleep, and its cards in /proc (as many as PROC_CARDS_MAX). */
bool captured_describe(struct source *base, uint32_t pid, struct process_id *id);
bool captured_asleep(const struct capture_play *play, const char *pci);
size_t captured_gpus(const struct capture_play *play, struct proc_card *gpus);

/* nvml_util.c, nvml_use.c, nvml_process.c, nvml_energy.c: one card's part of a round. */
void nvml_util_drain(struct nvml_source *s, size_t card);
void nvml_util_finish(struct nvml_source *s, size_t card); /* called last for the card */
void nvml_util_keep_polled(struct nvml_card *c, int64_t wall_us, double util_pct);
void nvml_util_glance(struct nvml_source *s, size_t card);
void nvml_util_note_rings(struct nvml_source *s);
void nvml_use_drain(struct nvml_source *s, size_t card);
void nvml_energy_read(struct nvml_source *s, size_t card);
void nvml_energy_read_power(struct nvml_source *s, size_t card);
/* Some drivers report far more power than a board can draw: such a reading is unknown. */
bool nvml_energy_is_plausible(const struct nvml_device *d, double power_mw);
void nvml_energy_read_limit(struct nvml_source *s, struct nvml_device *d);
void nvml_process_look(struct nvml_source *s, size_t card);
bool nvml_process_is_listed(const struct nvml_card *c, uint32_t pid);
/* What is known of a pid that is in no list; NULL: nothing. */
struct nvml_stranger *nvml_process_find_stranger(struct nvml_card *c, uint32_t pid);
/* Remembers such a pid; returns what is known of it. */
struct nvml_stranger *nvml_process_add_stranger(struct nvml_card *c, uint32_t pid);

/* nvml_process.c: asks for the memory of a card by the driver's newer call (way 0) or by the
 * older one, in which `used` includes what the driver reserves. Returns the driver's code. */
int nvml_process_ask_memory(
	struct nvml_source *s, void *handle, int way, struct nvml_memory_v2 *m);

/* Reads the used memory of a card. Where it is known only from the process lists, `from` says
 * whether they were read just now. */
enum nvml_memory_from { NVML_MEMORY_SCANNED, NVML_MEMORY_LOOKED, NVML_MEMORY_GLANCED };

void nvml_process_read_memory(struct nvml_source *s, size_t card, enum nvml_memory_from from);
