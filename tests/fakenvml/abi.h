/* The NVML ABI as far as the fake library speaks it: numbers of the real one, declared anew. */
#ifndef FAKENVML_ABI_H
#define FAKENVML_ABI_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

enum code {
	SUCCESS = 0,
	UNINITIALIZED = 1,
	INVALID_ARGUMENT = 2,
	NOT_SUPPORTED = 3,
	NOT_FOUND = 6,
	INSUFFICIENT_SIZE = 7,
	TIMEOUT = 10,
	FUNCTION_NOT_FOUND = 13,
	CORRUPTED_INFOROM = 14,
	GPU_IS_LOST = 15,
	IN_USE = 19,
	NO_DATA = 21,
	VERSION_MISMATCH = 25,
};

struct abi_utilization {
	uint32_t gpu, memory;
};
struct abi_sample {
	uint64_t stamp_us;
	union {
		double d;
		uint32_t u;
		uint64_t u64;
	} value;
};
struct abi_memory {
	uint64_t total, free, used;
};
struct abi_memory_v2 {
	uint32_t version;
	uint64_t total, reserved, free, used;
};
struct abi_process_sample {
	uint32_t pid;
	uint64_t stamp_us;
	uint32_t sm, mem, enc, dec;
};
struct abi_process_use {
	uint64_t stamp_us;
	uint32_t pid, sm, mem, enc, dec, jpg, ofa;
};
struct abi_processes_use {
	uint32_t version, count;
	uint64_t last_seen_us;
	struct abi_process_use *items;
};
struct abi_process_detail {
	uint32_t pid;
	uint64_t mem;
	uint32_t gi, ci;
	uint64_t protected_mem;
};
struct abi_process_details {
	uint32_t version, mode, count;
	struct abi_process_detail *items;
};
struct abi_pci {
	char legacy[16];
	uint32_t domain, bus, device, device_id, subsystem_id;
	char bus_id[32];
};
struct abi_attributes {
	uint32_t sms, ces, decoders, encoders, jpegs, ofas, gi_slices, ci_slices;
	uint64_t memory_mb;
};
struct abi_field {
	uint32_t id, scope;
	int64_t stamp_us, latency_us;
	uint32_t type, code;
	uint64_t value;
};
struct abi_versioned {
	uint32_t version;
	int32_t value;
};
struct abi_pci_ext {
	uint32_t version, domain, bus, device, device_id, subsystem_id, base_class, sub_class;
	char bus_id[32];
};
struct abi_sram {
	uint32_t version;
	uint64_t agg_parity, agg_secded, agg_corrected, vol_parity, vol_secded, vol_corrected;
	uint64_t l2, sm, pcie, mcu, other;
	uint32_t threshold;
};
struct abi_histogram {
	uint32_t max, high, partial, low, none;
};
struct abi_fabric {
	unsigned char cluster[16];
	uint32_t status, clique;
	unsigned char state;
};
struct abi_fabric_health {
	uint32_t version;
	unsigned char cluster[16];
	uint32_t status, clique;
	unsigned char state;
	uint32_t mask;
	unsigned char summary; /* not in layout 2 */
};
struct abi_hostname {
	char value[64];
};
struct abi_platform {
	uint32_t version;
	unsigned char guid[16], chassis[16], slot, tray, host, peer, module;
};
struct abi_accounting {
	uint32_t gpu, memory;
	uint64_t peak, time_ms, start_us;
	uint32_t running, reserved[5];
};
struct abi_gpm_support {
	uint32_t version, is_supported;
};
struct abi_gpm_metric {
	uint32_t id, code;
	double value;
	const char *short_name, *long_name, *unit;
};
/* The library touches `count` metrics, whatever the length of the caller's array. */
struct abi_gpm_metrics {
	uint32_t version, count;
	struct gpm_sample *samples[2];
	struct abi_gpm_metric metrics[];
};
struct abi_event {
	void *device;
	uint64_t type, data;
	uint32_t gi, ci;
};

static_assert(sizeof(struct abi_sample) == 16, "nvmlSample_t");
static_assert(sizeof(struct abi_memory_v2) == 40, "nvmlMemory_v2_t");
static_assert(sizeof(struct abi_process_sample) == 32, "nvmlProcessUtilizationSample_t");
static_assert(sizeof(struct abi_process_use) == 40, "nvmlProcessUtilizationInfo_v1_t");
static_assert(sizeof(struct abi_processes_use) == 24, "nvmlProcessesUtilizationInfo_v1_t");
static_assert(sizeof(struct abi_process_detail) == 32, "nvmlProcessDetail_v1_t");
static_assert(sizeof(struct abi_process_details) == 24, "nvmlProcessDetailList_v1_t");
static_assert(sizeof(struct abi_pci) == 68, "nvmlPciInfo_t");
static_assert(sizeof(struct abi_attributes) == 40, "nvmlDeviceAttributes_t");
static_assert(sizeof(struct abi_field) == 40, "nvmlFieldValue_t");
static_assert(sizeof(struct abi_pci_ext) == 64, "nvmlPciInfoExt_v1_t");
static_assert(sizeof(struct abi_sram) == 104, "nvmlEccSramErrorStatus_v1_t");
static_assert(sizeof(struct abi_platform) == 44, "nvmlPlatformInfo_v2_t");
static_assert(sizeof(struct abi_fabric) == 28, "nvmlGpuFabricInfo_t");
static_assert(sizeof(struct abi_fabric_health) == 40, "nvmlGpuFabricInfo_v3_t");
static_assert(sizeof(struct abi_accounting) == 56, "nvmlAccountingStats_t");
static_assert(sizeof(struct abi_gpm_metric) == 40, "nvmlGpmMetric_t");
static_assert(offsetof(struct abi_gpm_metrics, metrics) == 24, "nvmlGpmMetricsGet_t");
static_assert(sizeof(struct abi_event) == 32, "nvmlEventData_t");

#endif
