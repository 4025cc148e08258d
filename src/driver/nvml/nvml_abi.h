/* The part of the driver library's ABI that gua uses, declared by gua itself: return codes,
 * layouts and signatures for 64-bit Linux. Handles are opaque pointers. If a layout starts with
 * `version`, the caller sets that member before every call: the size of the struct, with the
 * layout's number in the top byte. */
#pragma once

#include "base/base.h"
#include "driver/source_host.h"

enum nvml_code {
	NVML_OK = 0,
	NVML_UNINITIALISED = 1,
	NVML_BAD_ARGUMENT = 2, /* also: a MIG handle that died */
	NVML_NOT_SUPPORTED = 3,
	NVML_NO_PERMISSION = 4,
	NVML_NOT_FOUND = 6, /* no sample since, no instance at this index */
	NVML_TOO_SMALL = 7, /* the count that is needed has been written */
	NVML_NO_DRIVER = 9,
	NVML_TIMEOUT = 10,
	NVML_NO_LIBRARY = 12,
	NVML_NO_FUNCTION =
		13, /* also for a wrong version member; gua uses it for a missing symbol too */
	NVML_CORRUPTED = 14, /* the infoROM */
	NVML_LOST = 15,
	NVML_RESET_REQUIRED = 16,
	NVML_BLOCKED = 17, /* by the operating system */
	NVML_MISMATCH = 18,
	NVML_IN_USE = 19, /* by another client */
	NVML_NO_MEMORY = 20,
	NVML_NO_DATA = 21,
	NVML_BAD_VERSION = 25,
	NVML_DEPRECATED = 26,
	NVML_NO_GPU = 28,
	NVML_UNKNOWN = 999,
	NVML_STUCK = CARD_CODE_STUCK, /* gua's own: a call to the card is stuck, so it must not
					 be asked */
};

#define NVML_VERSION_WORD(type, number) ((uint32_t)(sizeof(type) | ((uint32_t)(number) << 24)))
#define NVML_UNKNOWN_MEMORY UINT64_MAX

struct nvml_pci {
	char bus_id_old[16];
	uint32_t domain, bus, device;
	uint32_t ids, subsystem_ids;
	char bus_id[32];
};
_Static_assert(sizeof(struct nvml_pci) == 68, "driver ABI");

/* `used` includes the memory that the driver reserves. */
struct nvml_memory {
	uint64_t total, free, used;
};

/* `used` does not include it. */
struct nvml_memory_v2 {
	uint32_t version; /* layout 2 */
	uint64_t total, reserved, free, used;
};
_Static_assert(sizeof(struct nvml_memory_v2) == 40, "driver ABI");

struct nvml_rates {
	uint32_t gpu_pct, memory_pct;
};

enum { NVML_SAMPLE_GPU = 1 }; /* the ring of GPU utilisation */

/* How a sample's eight bytes are to be read. */
enum nvml_value_type {
	NVML_VALUE_DOUBLE,
	NVML_VALUE_U32,
	NVML_VALUE_ULONG,
	NVML_VALUE_U64,
	NVML_VALUE_S64,
	NVML_VALUE_S32,
	NVML_VALUE_U16,
};

struct nvml_sample {
	uint64_t wall_us;
	unsigned char value[8];
};
_Static_assert(sizeof(struct nvml_sample) == 16, "driver ABI");

struct nvml_process_sample {
	uint32_t pid;
	uint64_t wall_us;
	uint32_t sm_pct, memory_pct, encoder_pct, decoder_pct;
};
_Static_assert(sizeof(struct nvml_process_sample) == 32, "driver ABI");

/* The same for nvmlDeviceGetProcessesUtilizationInfo. */
struct nvml_process_sample_v1 {
	uint64_t wall_us;
	uint32_t pid, sm_pct, memory_pct, encoder_pct, decoder_pct, jpeg_pct, flow_pct;
};
_Static_assert(sizeof(struct nvml_process_sample_v1) == 40, "driver ABI");

struct nvml_process_samples_v1 {
	uint32_t version; /* layout 1 */
	uint32_t count;
	uint64_t last_seen_us;
	struct nvml_process_sample_v1 *samples;
};
_Static_assert(sizeof(struct nvml_process_samples_v1) == 24, "driver ABI");

/* Process lists are arrays of entries of 16, 24 or 32 bytes, by symbol and driver; all have the
 * pid (u32) at 0 and the memory (u64) at 8. */
enum { NVML_ENTRY_SMALLEST = 16, NVML_ENTRY_LARGEST = 32 };

/* What accounting mode keeps of a process. */
struct nvml_account_stats {
	uint32_t gpu_pct, memory_pct;
	uint64_t peak_bytes;
	uint64_t time_ms; /* 0 while it runs */
	uint64_t start_us;
	uint32_t running, reserved[5];
};
_Static_assert(sizeof(struct nvml_account_stats) == 56, "driver ABI");

/* GPM's layouts have a plain version. */
struct nvml_gpm_support {
	uint32_t version; /* 1 */
	uint32_t is_supported;
};

struct nvml_gpm_metric {
	uint32_t id, code;
	double value;
	const char *names[3];
};
_Static_assert(sizeof(struct nvml_gpm_metric) == 40, "driver ABI");

/* The driver's array is longer; it touches `count` entries. */
struct nvml_gpm_metrics {
	uint32_t version; /* 1 */
	uint32_t count;
	void *samples[2];
	struct nvml_gpm_metric metric;
};
_Static_assert(sizeof(struct nvml_gpm_metrics) == 64, "driver ABI");

/* One value of nvmlDeviceGetFieldValues. */
struct nvml_field {
	uint32_t id, scope;
	int64_t wall_us, latency_us;
	uint32_t type; /* enum nvml_value_type */
	int32_t code;  /* of this field */
	unsigned char value[8];
};
_Static_assert(sizeof(struct nvml_field) == 40, "driver ABI");

struct nvml_event {
	void *handle;
	uint64_t kind; /* NVML_EVENT_XID */
	uint64_t data; /* the XID's number */
	uint32_t gpu_instance, compute_instance;
};
_Static_assert(sizeof(struct nvml_event) == 32, "driver ABI");
#define NVML_EVENT_XID 8ULL

/* The place of a card in a rack. */
struct nvml_platform {
	uint32_t version; /* layout 2 */
	unsigned char guid[16], chassis[16];
	unsigned char slot, tray, host, peer, module;
};
_Static_assert(sizeof(struct nvml_platform) == 44, "driver ABI");

enum { NVML_FABRIC_COMPLETED = 3, NVML_HOSTNAME_LEN = 64 };
struct nvml_fabric { /* the members before `state` are valid once joining is completed */
	unsigned char cluster[16];
	int32_t status; /* a code */
	uint32_t clique;
	unsigned char state; /* 0: the card cannot be in a fabric */
};
_Static_assert(sizeof(struct nvml_fabric) == 28, "driver ABI");

/* The same in its newer layouts, with the health: two bits for each flag, 1 yes, 2 no. */
struct nvml_fabric_health {
	uint32_t version; /* layout 3; layout 2 has no summary */
	unsigned char cluster[16];
	int32_t status;
	uint32_t clique;
	unsigned char state;
	uint32_t mask; /* from bit 0 on: bandwidth degraded, recovery, unhealthy, timeout */
	unsigned char summary; /* 1 healthy, 2 unhealthy, 3 limited capacity */
};
_Static_assert(sizeof(struct nvml_fabric_health) == 40, "driver ABI");
#define NVML_FABRIC_HEALTH_V2 0x02000024u
