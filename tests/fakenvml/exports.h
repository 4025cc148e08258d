/* Declares every call that the fake library exports. */
#ifndef FAKENVML_EXPORTS_H
#define FAKENVML_EXPORTS_H

#include "abi.h"

struct event_set;
struct gpm_sample;

int nvmlInit_v2(void);
int nvmlInitWithFlags(unsigned flags);
int nvmlShutdown(void);
const char *nvmlErrorString(int code);
int nvmlSystemGetDriverVersion(char *version, unsigned length);
int nvmlSystemGetNVMLVersion(char *version, unsigned length);
int nvmlSystemGetCudaDriverVersion(int *version);
int nvmlSystemGetCudaDriverVersion_v2(int *version);
int nvmlInternalGetExportTable(const void **table, const unsigned char *id);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device);
int nvmlDeviceGetIndex(void *device, unsigned *index);
int nvmlDeviceGetUUID(void *device, char *uuid, unsigned length);
int nvmlDeviceGetName(void *device, char *name, unsigned length);
int nvmlDeviceGetSerial(void *device, char *serial, unsigned length);
int nvmlDeviceGetMinorNumber(void *device, unsigned *minor);
int nvmlDeviceGetPciInfo_v3(void *device, struct abi_pci *pci);
int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor);
int nvmlDeviceGetUtilizationRates(void *device, struct abi_utilization *rates);
int nvmlDeviceGetSamples(void *device, int type, unsigned long long last_seen, int *value_type,
	unsigned *count, struct abi_sample *samples);
int nvmlDeviceGetMemoryInfo(void *device, struct abi_memory *memory);
int nvmlDeviceGetMemoryInfo_v2(void *device, struct abi_memory_v2 *memory);
int nvmlDeviceGetPowerUsage(void *device, unsigned *mw);
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *mj);
#define ONE(Name, metric, scale) int nvmlDeviceGet##Name(void *device, unsigned *value);
#define TWO(Name, first, second, scale)                                                        \
	int nvmlDeviceGet##Name(void *device, unsigned *a, unsigned *b);
#define OF(Name, ...) int nvmlDeviceGet##Name(void *device, int which, unsigned *value);
#define LONG(Name, metric) int nvmlDeviceGet##Name(void *device, unsigned long long *value);
#define TEXT(Name, metric) int nvmlDeviceGet##Name(void *device, char *text, unsigned length);
#include "metrics.def"
#undef ONE
#undef TWO
#undef OF
#undef LONG
#undef TEXT
int nvmlDeviceGetEncoderStats(void *device, unsigned *sessions, unsigned *fps, unsigned *us);
int nvmlDeviceGetRemappedRows(void *device, unsigned *corrected, unsigned *others,
	unsigned *pending, unsigned *failed);
int nvmlDeviceGetTotalEccErrors(void *device, int type, int counter, unsigned long long *n);
int nvmlDeviceGetBAR1MemoryInfo(void *device, struct abi_memory *memory);
int nvmlDeviceGetConfComputeProtectedMemoryUsage(void *device, struct abi_memory *memory);
int nvmlDeviceGetMemoryErrorCounter(
	void *device, int type, int counter, int place, unsigned long long *n);
int nvmlDeviceGetSramEccErrorStatus(void *device, struct abi_sram *errors);
int nvmlDeviceGetRowRemapperHistogram(void *device, struct abi_histogram *rows);
int nvmlDeviceGetInforomVersion(void *device, int object, char *text, unsigned length);
int nvmlDeviceValidateInforom(void *device);
int nvmlDeviceGetMarginTemperature(void *device, struct abi_versioned *margin);
int nvmlDeviceGetAddressingMode(void *device, struct abi_versioned *mode);
int nvmlDeviceGetDramEncryptionMode(
	void *device, struct abi_versioned *current, struct abi_versioned *pending);
int nvmlDeviceGetPciInfoExt(void *device, struct abi_pci_ext *pci);
int nvmlDeviceGetPlatformInfo(void *device, struct abi_platform *platform);
int nvmlDeviceGetGpuFabricInfo(void *device, struct abi_fabric *fabric);
int nvmlDeviceGetGpuFabricInfoV(void *device, struct abi_fabric_health *fabric);
int nvmlDeviceGetHostname_v1(void *device, struct abi_hostname *hostname);
int nvmlDeviceGetFieldValues(void *device, int count, struct abi_field *fields);
int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending);
int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *count);
int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **mig);
int nvmlDeviceIsMigDeviceHandle(void *device, unsigned *is);
int nvmlDeviceGetGpuInstanceId(void *device, unsigned *id);
int nvmlDeviceGetComputeInstanceId(void *device, unsigned *id);
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *device, void **parent);
int nvmlDeviceGetGspFirmwareVersion(void *device, char *version);
int nvmlDeviceGetAttributes_v2(void *device, struct abi_attributes *attributes);
int nvmlDeviceGetRunningProcessDetailList(void *device, struct abi_process_details *list);
int nvmlDeviceGetConfComputeMemSizeInfo(void *device, void *info);
int nvmlDeviceGetProcessUtilization(void *device, struct abi_process_sample *samples,
	unsigned *count, unsigned long long last_seen);
int nvmlDeviceGetProcessesUtilizationInfo(void *device, struct abi_processes_use *info);
int nvmlDeviceGetAccountingPids(void *device, unsigned *count, unsigned *pids);
int nvmlDeviceGetAccountingStats(void *device, unsigned pid, struct abi_accounting *stats);
int nvmlGpmQueryDeviceSupport(void *device, struct abi_gpm_support *support);
int nvmlGpmSampleAlloc(struct gpm_sample **sample);
int nvmlGpmSampleFree(struct gpm_sample *sample);
int nvmlGpmSampleGet(void *device, struct gpm_sample *sample);
int nvmlGpmMigSampleGet(void *device, unsigned gpu_instance, struct gpm_sample *sample);
int nvmlGpmMetricsGet(struct abi_gpm_metrics *get);
int nvmlEventSetCreate(struct event_set **set);
int nvmlEventSetFree(struct event_set *set);
int nvmlDeviceGetSupportedEventTypes(void *device, unsigned long long *types);
int nvmlDeviceRegisterEvents(void *device, unsigned long long types, struct event_set *set);
int nvmlEventSetWait_v2(struct event_set *set, struct abi_event *data, unsigned timeout_ms);
int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned *count, void *infos);
int nvmlDeviceGetComputeRunningProcesses_v2(void *device, unsigned *count, void *infos);
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, void *infos);
int nvmlDeviceGetGraphicsRunningProcesses(void *device, unsigned *count, void *infos);
int nvmlDeviceGetGraphicsRunningProcesses_v2(void *device, unsigned *count, void *infos);
int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *count, void *infos);
int nvmlDeviceGetMPSComputeRunningProcesses(void *device, unsigned *count, void *infos);
int nvmlDeviceGetMPSComputeRunningProcesses_v2(void *device, unsigned *count, void *infos);
int nvmlDeviceGetMPSComputeRunningProcesses_v3(void *device, unsigned *count, void *infos);

#endif
