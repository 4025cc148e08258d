/* What /proc and /sys say about NVIDIA cards. Reading it neither wakes a card nor calls the
 * driver's library. `root` is where they are: "" for the real ones. */
#ifndef GUA_DRIVER_NVML_NVML_HOST_H
#define GUA_DRIVER_NVML_NVML_HOST_H

#include <stdbool.h>
#include <stddef.h>

#include "model/reading.h"

enum { NVML_HOST_GPUS = 64 }; /* more cards than any host has */

/* One directory of /proc/driver/nvidia/gpus. */
struct nvml_host_gpu {
	char pci[PCI_CAP];	  /* sysfs form "0000:17:00.0" */
	char uuid[UUID_CAP];	  /* "" while the driver does not know it */
	char name[CARD_NAME_CAP]; /* "" when unknown */
};

/* Whether the kernel module is loaded. */
bool nvml_host_has_module(const char *root);
/* Its version, "535.261.03"; false when it is not known. */
bool nvml_host_module_version(const char *root, char *dst, size_t cap);

/* The file that says whether a card is runtime-suspended. It is read in each round, so it
 * stays open after the first time; all zero: not looked for yet. */
struct nvml_host_power {
	bool known, there;
	int fd;
};
/* Whether the card at the address is suspended; false when that is not known. */
bool nvml_host_asleep(struct nvml_host_power *p, const char *root, const char *pci);
void nvml_host_power_close(struct nvml_host_power *p);

/* The highest PCIe generation of the root port above the card at the address; NAN: not known,
 * as in a virtual machine. */
double nvml_host_root_port_gen(const char *root, const char *pci);

/* The cards that the module has, ordered by bus address; returns how many. */
size_t nvml_host_gpus(const char *root, struct nvml_host_gpu *gpus, size_t max);

#endif
