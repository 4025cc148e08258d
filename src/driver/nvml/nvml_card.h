/* What the real driver's source knows: devices (what the driver has) and cards (what is
 * audited: a device, or each of its MIG instances). */
#ifndef GUA_DRIVER_NVML_NVML_CARD_H
#define GUA_DRIVER_NVML_NVML_CARD_H

#include "base/fault.h"
#include "driver/nvml/nvml_account.h"
#include "driver/nvml/nvml_gpm.h"
#include "driver/nvml/nvml_host.h"
#include "driver/nvml/nvml_job.h"
#include "driver/nvml/nvml_metric.h"
#include "driver/nvml/nvml_ring.h"

/* A running energy counter that never goes back, even when the driver's does. */
struct nvml_energy {
	double total_mj;	     /* NAN until the first reading */
	double counter_mj, power_mw; /* of the reading before; NAN: none to continue from */
	int64_t mono_us;	     /* when that was */
};

/* A physical card. */
struct nvml_device {
	struct card_id id; /* uuid may be a placeholder: see nvml_scan.c */
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
	double power_limit_mw; /* or NAN */
	struct nvml_host_power power;
	struct nvml_dead dead;
};

/* A pid that has a record of use but is in no process list. */
struct nvml_stranger {
	uint32_t pid;
	bool unlisted; /* a later look did not find it either: its records are garbage */
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
	int64_t since_us; /* where this drain began, by that clock: process use is read from
			     there on */
	struct nvml_energy energy;
	struct fault bad_power; /* it reports more power than the board can draw */
	struct nvml_buffer raw_samples, samples, raw_utils, utils, raw_list, processes, glanced;
	size_t n_processes;
	unsigned n_looks;		     /* how often the lists were read */
	int64_t compute_bytes, listed_bytes; /* memory of the compute list, and of all; or -1 */
	bool listed;			     /* processes[] is what the driver listed last */
	struct nvml_stranger strangers[NVML_STRANGERS]; /* the latest ones; pid 0: none */
	size_t next_stranger;
	bool dry;	      /* the ring was empty for a while: glances read utilisation */
	int64_t back_mono_us; /* when it came back after it was lost; 0: it never was */
	struct util_sample polled[NVML_POLLED]; /* readings since the drain before */
	size_t n_polled;
	struct nvml_accounts accounts;
	struct nvml_gpm gpm;
	struct nvml_dead dead; /* of the instance itself; those of the physical card belong to
				  the device */
};

#endif
