/* What the host shows of NVIDIA cards without calling their library: /proc, /sys, the kernel
 * module, device nodes, and whether this is a place in which the driver reports less than on a
 * plain host. */
#pragma once

#include "base/base.h"
#include "model/reading.h"
#include "proc/proc_cards.h"

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

/* proc_cards_read() for ROOT/proc. */
size_t nvml_host_cards(const char *root, struct proc_card cards[PROC_CARDS_MAX]);

/* Bits; several may apply. */
enum nvml_place {
	NVML_PLACE_WSL = 1,	  /* WSL2: the driver is Windows', behind /dev/dxg */
	NVML_PLACE_JETSON = 2,	  /* a Tegra board: the GPU is a part of the processor */
	NVML_PLACE_CONTAINER = 4, /* a container: it has only the devices that it was given */
	NVML_PLACE_GUEST = 8, /* a virtual machine with a vGPU: only the driver reports this */
};

enum { NVML_PLACES = 4 };

/* Their names by bit: "wsl", "jetson" ... */
extern const char *const nvml_place_names[NVML_PLACES];

struct nvml_node {
	char name[24]; /* in /dev: "nvidiactl", "nvidia0", "dxg" */
	int error;     /* errno if it may not be opened; 0: it may */
};

enum { NVML_NODES = 80 };

struct nvml_site {
	unsigned places; /* enum nvml_place */
	bool has_module;
	char module_version[VERSION_CAP]; /* "" when unknown */
	struct nvml_node nodes[NVML_NODES];
	size_t n_nodes;
};

/* Reads what is below `root` ("" for this host). It never sets NVML_PLACE_GUEST. */
void nvml_host_read_site(struct nvml_site *site, const char *root);
