/* The findings about NVIDIA's driver that do not need its library. */
#ifndef GUA_SOURCE_NVML_DIAGNOSE_H
#define GUA_SOURCE_NVML_DIAGNOSE_H

#include "source/diagnosis.h"
#include "source/nvml/nvml_site.h"

void nvml_diagnose_places(
	const struct diagnosis *d, const struct nvml_site *site, struct findings *f);
void nvml_diagnose_module(
	const struct diagnosis *d, const struct nvml_site *site, struct findings *f);
void nvml_diagnose_nodes(
	const struct diagnosis *d, const struct nvml_site *site, struct findings *f);

#endif
