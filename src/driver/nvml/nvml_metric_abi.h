/* The driver's layouts that single metrics need, as in nvml_abi.h. */
#ifndef GUA_DRIVER_NVML_NVML_METRIC_ABI_H
#define GUA_DRIVER_NVML_NVML_METRIC_ABI_H

#include "driver/nvml/nvml_abi.h"

struct nvml_pci_ext {
	uint32_t version; /* layout 1 */
	uint32_t domain, bus, device, ids, subsystem_ids, base_class, sub_class;
	char bus_id[32];
};
_Static_assert(sizeof(struct nvml_pci_ext) == 64, "driver ABI");

/* What several calls answer with. */
struct nvml_versioned {
	uint32_t version; /* layout 1 */
	int32_t value;
};

/* Errors of the memories on the chip: aggregate parity, secded, corrected; the same volatile;
 * aggregate in L2, SM, PCIe, MCU, elsewhere. */
enum { NVML_SRAM_COUNTS = 11 };
struct nvml_sram_errors {
	uint32_t version; /* layout 1 */
	uint64_t counts[NVML_SRAM_COUNTS];
	uint32_t threshold_exceeded;
};
_Static_assert(sizeof(struct nvml_sram_errors) == 104, "driver ABI");

/* Where in a rack a card is. */
struct nvml_platform {
	uint32_t version; /* layout 2 */
	unsigned char guid[16], chassis[16];
	unsigned char slot, tray, host, peer, module;
};
_Static_assert(sizeof(struct nvml_platform) == 44, "driver ABI");

enum { NVML_FABRIC_COMPLETED = 3, NVML_HOSTNAME_LEN = 64 };
struct nvml_fabric { /* what is before the state: once that is completed */
	unsigned char cluster[16];
	int32_t status; /* a code */
	uint32_t clique;
	unsigned char state; /* 0: it can be in none */
};
_Static_assert(sizeof(struct nvml_fabric) == 28, "driver ABI");

/* The same in its newer layouts, with the health: two bits a flag, 1 yes, 2 no. */
struct nvml_fabric_health {
	uint32_t version; /* layout 3; layout 2 is without the summary */
	unsigned char cluster[16];
	int32_t status;
	uint32_t clique;
	unsigned char state;
	uint32_t mask; /* from bit 0 on: bandwidth degraded, recovery, unhealthy, timeout */
	unsigned char summary; /* 1 healthy, 2 unhealthy, 3 limited capacity */
};
_Static_assert(sizeof(struct nvml_fabric_health) == 40, "driver ABI");
#define NVML_FABRIC_HEALTH_V2 0x02000024u

#endif
