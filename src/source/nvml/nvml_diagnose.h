/* The checks of NVIDIA's driver that do not call its library. */
#ifndef GUA_SOURCE_NVML_DIAGNOSE_H
#define GUA_SOURCE_NVML_DIAGNOSE_H

#include "source/diagnosis.h"

void nvml_diagnose_module(const struct diagnosis *d, struct findings *f);
void nvml_diagnose_nodes(const struct diagnosis *d, struct findings *f);

#endif
