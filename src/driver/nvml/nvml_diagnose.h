/* The findings about NVIDIA's driver, on this host or on a captured one. */
#ifndef GUA_DRIVER_NVML_NVML_DIAGNOSE_H
#define GUA_DRIVER_NVML_NVML_DIAGNOSE_H

#include "driver/diagnosis.h"
#include "driver/nvml/nvml_site.h"

/* nvml_diagnose.c: all of them. */
void nvml_diagnose_at(
	const struct diagnosis *d, const struct nvml_site *site, struct findings *f);

/* nvml_diagnose_host.c: those that do not need the driver's library. */
void nvml_diagnose_places(
	const struct diagnosis *d, const struct nvml_site *site, struct findings *f);
void nvml_diagnose_module(
	const struct diagnosis *d, const struct nvml_site *site, struct findings *f);
void nvml_diagnose_nodes(
	const struct diagnosis *d, const struct nvml_site *site, struct findings *f);

#endif
