/* The internals of the real driver's source, shared by the nvml_*.c files: the state as a
 * whole, and the functions of each file. */
#ifndef GUA_DRIVER_NVML_NVML_H
#define GUA_DRIVER_NVML_NVML_H

#include <sys/types.h>

#include "driver/nvml/nvml_card.h"
#include "driver/nvml/nvml_job.h"
#include "driver/nvml/nvml_lib.h"
#include "driver/nvml/nvml_metric.h"
#include "driver/capture/capture_play.h"
#include "driver/source.h"

struct nvml_source {
	struct source base;
	const char *path, *root;
	const char *path_option; /* what a user sets to name another library */
	struct clock *clock;	 /* like those of the options */
	struct source_place *place;
	const struct source_avoids *avoids;
	struct nvml_play *play; /* a capture is played instead of the driver; else NULL */
	struct nvml_lib lib;
	int64_t opened_ms; /* wall clock */
	int down;	   /* the code when the driver as a whole is down; NVML_OK: it is not */
	struct err why;	   /* while it is down: the sentence */
	struct nvml_device *devices;
	struct nvml_card *cards;
	size_t n_devices;
	void *event_set; /* or NULL */
	struct source_xid xids[16];
	bool gpm_used;	  /* GPM counters of a card were read */
	bool gpm_stopped; /* reading them broke other calls: not read again */
	bool gpm_mend;	  /* the next scan restarts the library, which may repair the calls */
	unsigned logged[NVML_JOBS]; /* bits: fallbacks that were logged */
	struct nvml_metric_calls metric_calls;
};
/* nvml.c: leaves word that `call` is made next, to a physical card (its index) or to none (-1).
 */
void nvml_enter(struct nvml_source *s, int index, const char *call);
/* Opens the source; `play`, which it takes over, may be NULL. */
int nvml_open(struct source **source, const struct source_options *options,
	struct nvml_play *play, struct err *e);

/* nvml_scan.c: finds the devices and shows their cards; opens those that woke up. */
int nvml_find_cards(struct nvml_source *s, struct err *e);
void nvml_check_awake(struct nvml_source *s);

/* nvml_cards.c: brings the cards in line with what a device has; drops what is not there. */
void nvml_show_device(struct nvml_source *s, size_t device);
void nvml_find_instances(struct nvml_source *s);
ssize_t nvml_find_card(const struct nvml_source *s, const char *uuid);
void nvml_drop_device(struct nvml_source *s, size_t device, enum card_status status, int code);
void nvml_lose_card(struct nvml_source *s, size_t card, int code);
void nvml_drop_handles(struct nvml_source *s);
void nvml_go_down(struct nvml_source *s, int code); /* until the next scan */
void nvml_read_text(int (*call)(void *, char *, unsigned), void *handle, char *dst, size_t cap);

/* nvml_captured.c: what a capture says of its host: its processes (source_ops.describe),
 * whether a card slept, and its cards in /proc (as many as NVML_HOST_GPUS). */
bool nvml_describe(struct source *base, uint32_t pid, struct process_id *id);
bool nvml_captured_asleep(const struct nvml_play *play, const char *pci);
size_t nvml_captured_gpus(const struct nvml_play *play, struct nvml_host_gpu *gpus);

/* nvml_events.c: registers for XIDs; collects them; unregisters (before a shutdown). */
void nvml_watch_events(struct nvml_source *s);
void nvml_collect_events(struct nvml_source *s);
void nvml_drop_events(struct nvml_source *s);

/* nvml_util.c, nvml_use.c, nvml_process.c, nvml_energy.c: one card's part of a round. */
void nvml_drain_util(struct nvml_source *s, size_t card);
void nvml_finish_util(struct nvml_source *s, size_t card); /* after all else of the card */
void nvml_keep_polled(struct nvml_card *c, int64_t wall_us, double util_pct);
void nvml_glance_util(struct nvml_source *s, size_t card);
void nvml_note_rings(struct nvml_source *s);
void nvml_drain_process_util(struct nvml_source *s, size_t card);
void nvml_read_energy(struct nvml_source *s, size_t card);
void nvml_read_power(struct nvml_source *s, size_t card);
void nvml_read_power_limit(struct nvml_source *s, struct nvml_device *d);
void nvml_look_processes(struct nvml_source *s, size_t card);
bool nvml_is_listed(const struct nvml_card *c, uint32_t pid);
/* The sum of the processes' memory, read again without changing the lists; -1: not known. */
int64_t nvml_glance_processes(struct nvml_source *s, size_t card);

/* nvml_memory.c: the used memory of a card. Where it is known only from the process lists,
 * `from` says whether they were read just now. */
enum nvml_memory_from { NVML_MEMORY_SCANNED, NVML_MEMORY_LOOKED, NVML_MEMORY_GLANCED };
void nvml_read_memory(struct nvml_source *s, size_t card, enum nvml_memory_from from);

#endif
