/* The inside of the real driver's source, shared by the nvml_*.c files: devices (what the
 * driver has), cards (what is audited: a device, or each of its MIG instances), and for each
 * job the ways to do it, best first. */
#ifndef GUA_SOURCE_NVML_H
#define GUA_SOURCE_NVML_H

#include <sys/types.h>

#include "source/nvml_host.h"
#include "source/nvml_job.h"
#include "source/nvml_lib.h"
#include "source/nvml_metric.h"
#include "source/source.h"

/* A running energy counter that never goes back, whatever the driver's does. */
struct nvml_energy {
	double total_mj;	     /* NAN until the first reading */
	double counter_mj, power_mw; /* of the reading before; NAN: none to continue from */
	int64_t mono_us;	     /* when that was */
};

/* A physical card. */
struct nvml_device {
	struct card_id id; /* uuid may be a stand-in: see nvml_cards.c */
	void *handle;	   /* NULL: must not be asked */
	enum card_status status;
	int code;
	bool found;	 /* by the scan in progress */
	bool mig;	 /* MIG is on: its instances are the cards */
	bool no_mig;	 /* knows no MIG: not asked again until re-init */
	int persistence; /* 1 on, 0 off, -1 unknown */
	bool events_on;	 /* registered for events */
	struct nvml_host_power power;
	struct nvml_dead dead;
};

/* What the source remembers of a card; as many as base.cards, in the same order. */
struct nvml_card {
	size_t device; /* index into devices */
	void *handle;  /* NULL: must not be asked */
	bool found;    /* by the look at the MIG instances in progress */
	struct nvml_way ways[NVML_JOBS];
	bool answered; /* in this round */
	int failure;   /* of this round: "unknown error" and the like, or NVML_OK */
	int64_t util_seen_us, process_seen_us; /* newest stamps: asked from there */
	struct nvml_energy energy;
	struct nvml_buffer raw_samples, samples, raw_utils, utils, raw_list, processes;
	size_t n_processes;
	bool listed;	       /* processes[] is what the driver listed last */
	uint32_t unlisted[16]; /* pids that were used and are in no list */
	size_t n_unlisted;
	struct nvml_dead dead; /* of an instance itself; its card's are the device's */
};

struct nvml_source {
	struct source base;
	const char *path, *root;
	struct clock *clock; /* like those of the options */
	struct nvml_lib lib;
	int down; /* code that says that the driver as a whole is gone; NVML_OK: it is not */
	struct err why; /* while it is down: the sentence */
	struct nvml_device *devices;
	struct nvml_card *cards;
	size_t n_devices;
	void *event_set; /* or NULL */
	struct source_xid xids[16];
	unsigned logged[NVML_JOBS]; /* bits: fallbacks that were logged */
	struct nvml_metric_calls metric_calls;
};
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

/* nvml_events.c: registers for XIDs; collects them; ends that (before a shutdown). */
void nvml_watch_events(struct nvml_source *s);
void nvml_collect_events(struct nvml_source *s);
void nvml_drop_events(struct nvml_source *s);

/* nvml_util.c, nvml_process.c, nvml_energy.c: one card's part of a drain or a look. */
void nvml_drain_util(struct nvml_source *s, size_t card);
void nvml_drain_process_util(struct nvml_source *s, size_t card);
void nvml_drain_energy(struct nvml_source *s, size_t card);
void nvml_look_processes(struct nvml_source *s, size_t card);
void nvml_look_memory(struct nvml_source *s, size_t card);

#endif
