/* GPM: counters of newer cards; two readings give the mean between them. They are the only
 * utilisation that the driver reports for MIG instances, and a cross-check for whole cards. On
 * some machines the first reading breaks other calls. So they are read last in a round, and
 * never again once that has happened. */
#ifndef GUA_DRIVER_NVML_NVML_GPM_H
#define GUA_DRIVER_NVML_NVML_GPM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nvml_source;

enum { NVML_GPM_NONE = -1 };

/* The counters of a card. The driver allocates the samples. */
struct nvml_gpm {
	void *samples[3]; /* NULL: not there yet */
	int base, last;	  /* index of the sample of the last drain, and of the last reading; or
			     NONE */
	int64_t last_mono_us; /* when the last one was taken */
	bool works;	      /* the last reading worked */
	bool dead;	      /* not supported: not asked again until re-init */
};

/* Reads the counters of a card. For an instance, the mean use since the reading before is kept
 * for the drain. A drain also fills sm_active_pct; only drains read whole cards. */
void nvml_read_gpm(struct nvml_source *s, size_t card, bool drains);
/* Forgets the counters of a card and frees the driver's samples. */
void nvml_free_gpm(struct nvml_source *s, size_t card);
/* Stops reading counters on this host, because a call that worked before now fails. */
void nvml_stop_gpm(struct nvml_source *s, size_t card, int code);

#endif
