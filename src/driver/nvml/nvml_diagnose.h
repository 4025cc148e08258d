/* The findings about NVIDIA's driver, on this host or on a captured one. */
#ifndef GUA_DRIVER_NVML_NVML_DIAGNOSE_H
#define GUA_DRIVER_NVML_NVML_DIAGNOSE_H

#include "driver/source.h"
#include "driver/nvml/nvml_host.h"

/* nvml_diagnose.c: all of them. */
void nvml_diagnose_at(
	const struct diagnosis *d, const struct nvml_site *site, struct findings *f);

#endif
