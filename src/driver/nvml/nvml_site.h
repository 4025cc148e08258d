/* Where the driver runs, and what the host shows of it without a call of its library: the
 * kernel module, the device nodes, and whether this is one of the places in which the driver
 * reports less than on a plain host. */
#ifndef GUA_DRIVER_NVML_NVML_SITE_H
#define GUA_DRIVER_NVML_NVML_SITE_H

#include <stdbool.h>
#include <stddef.h>

#include "model/reading.h"

/* Bits; several may apply. */
enum nvml_place {
	NVML_PLACE_WSL = 1,	  /* WSL2: the driver is Windows', behind /dev/dxg */
	NVML_PLACE_JETSON = 2,	  /* a Tegra board: the GPU is a part of the processor */
	NVML_PLACE_CONTAINER = 4, /* it has the devices that it was given */
	NVML_PLACE_GUEST = 8,	  /* a virtual machine with a vGPU: only the driver knows */
};
enum { NVML_PLACES = 4 };
/* Their names by bit: "wsl", "jetson" ... */
extern const char *const nvml_place_names[NVML_PLACES];

struct nvml_node {
	char name[24]; /* in /dev: "nvidiactl", "nvidia0", "dxg" */
	int error;     /* errno with which it may not be opened; 0: it may */
};
enum { NVML_NODES = 80 };

struct nvml_site {
	unsigned places; /* enum nvml_place */
	bool has_module;
	char module_version[VERSION_CAP]; /* "" when unknown */
	struct nvml_node nodes[NVML_NODES];
	size_t n_nodes;
};

/* Reads what is below `root` ("" for this host). It never reports NVML_PLACE_GUEST. */
void nvml_site_read(struct nvml_site *site, const char *root);

#endif
