/* The fake library's answers that are structs: errors by place, margins, the fabric. A wrong
 * version word is refused as the real library does it. */
#include "fake.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exports.h"

enum {
	PAIR_WORD = 0x01000008,
	PCI_WORD = 0x01000040,
	SRAM_WORD = 0x01000068,
	PLATFORM_WORD = 0x0200002C,
	HEALTH_WORD_2 = 0x02000024,
	HEALTH_WORD_3 = 0x03000028,
};

/* The number of a card; NAN: it has none. */
static double number(size_t unit, enum metric m)
{
	struct fake *f = fake_state();
	return play_metric(f->play, f->scenario, unit, m);
}

static int give_pair(size_t unit, enum metric m, struct abi_versioned *pair)
{
	double value = number(unit, m);
	if (pair->version != PAIR_WORD)
		return VERSION_MISMATCH;
	if (isnan(value))
		return NOT_SUPPORTED;
	pair->value = (int32_t)value;
	return SUCCESS;
}

EXPORT int nvmlDeviceGetMarginTemperature(void *device, struct abi_versioned *margin)
{
	ENTER_DEVICE(device, "%s", "");
	(void)f;
	return fake_leave(give_pair(unit, METRIC_TEMPERATURE_MARGIN, margin));
}

EXPORT int nvmlDeviceGetAddressingMode(void *device, struct abi_versioned *mode)
{
	ENTER_DEVICE(device, "%s", "");
	(void)f;
	return fake_leave(give_pair(unit, METRIC_ADDRESSING_MODE, mode));
}

EXPORT int nvmlDeviceGetDramEncryptionMode(
	void *device, struct abi_versioned *current, struct abi_versioned *pending)
{
	ENTER_DEVICE(device, "%s", "");
	(void)f;
	int code = give_pair(unit, METRIC_DRAM_ENCRYPTION_CURRENT, current);
	if (code == SUCCESS)
		code = give_pair(unit, METRIC_DRAM_ENCRYPTION_PENDING, pending);
	return fake_leave(code);
}

EXPORT int nvmlDeviceGetPciInfoExt(void *device, struct abi_pci_ext *pci)
{
	ENTER_DEVICE(device, "%s", "");
	(void)f;
	if (pci->version != PCI_WORD)
		return fake_leave(VERSION_MISMATCH);
	pci->base_class = (uint32_t)number(unit, METRIC_PCI_CLASS);
	pci->sub_class = (uint32_t)number(unit, METRIC_PCI_SUB_CLASS);
	return fake_leave(SUCCESS);
}

EXPORT int nvmlDeviceGetInforomVersion(void *device, int object, char *text, unsigned length)
{
	static const enum metric objects[] = { METRIC_INFOROM_OEM, METRIC_INFOROM_ECC,
		METRIC_INFOROM_POWER };
	ENTER_DEVICE(device, "object=%d", object);
	if (object < 0 || object > 2)
		return fake_leave(INVALID_ARGUMENT);
	bool has = play_metric_text(f->scenario, unit, objects[object], text, length);
	return fake_leave(has ? SUCCESS : NOT_SUPPORTED);
}

EXPORT int nvmlDeviceValidateInforom(void *device)
{
	ENTER_DEVICE(device, "%s", "");
	(void)f;
	double valid = number(unit, METRIC_INFOROM_CHECK);
	return fake_leave(isnan(valid) ? NOT_SUPPORTED
			  : valid != 0 ? SUCCESS
				       : CORRUPTED_INFOROM);
}

EXPORT int nvmlDeviceGetConfComputeProtectedMemoryUsage(void *device, struct abi_memory *memory)
{
	ENTER_DEVICE(device, "%s", "");
	(void)f;
	double total = number(unit, METRIC_PROTECTED_TOTAL);
	if (isnan(total))
		return fake_leave(NOT_SUPPORTED);
	*memory = (struct abi_memory){ (uint64_t)total,
		(uint64_t)number(unit, METRIC_PROTECTED_FREE),
		(uint64_t)number(unit, METRIC_PROTECTED_USED) };
	return fake_leave(SUCCESS);
}

EXPORT int nvmlDeviceGetMemoryErrorCounter(
	void *device, int type, int counter, int place, unsigned long long *n)
{
	/* In the order of the driver's numbers of places, below the first metric of a counter.
	 */
	static const int places[] = { 3, 4, 1, 2, 5, -1, 6, 7 };
	static const enum metric firsts[2][2] = {
		{ METRIC_ECC_CORRECTED_VOLATILE_DEVICE, METRIC_ECC_CORRECTED_AGGREGATE_DEVICE },
		{ METRIC_ECC_UNCORRECTED_VOLATILE_DEVICE,
			METRIC_ECC_UNCORRECTED_AGGREGATE_DEVICE }
	};
	ENTER_DEVICE(device, "type=%d counter=%d place=%d", type, counter, place);
	(void)f;
	if (type < 0 || type > 1 || counter < 0 || counter > 1 || place < 0 || place > 7 ||
		places[place] < 0)
		return fake_leave(INVALID_ARGUMENT);
	double count = number(unit, (enum metric)((int)firsts[type][counter] + places[place]));
	*n = isnan(count) ? 0 : (unsigned long long)count;
	return fake_leave(isnan(count) ? NOT_SUPPORTED : SUCCESS);
}

EXPORT int nvmlDeviceGetSramEccErrorStatus(void *device, struct abi_sram *errors)
{
	ENTER_DEVICE(device, "%s", "");
	(void)f;
	if (errors->version != SRAM_WORD)
		return fake_leave(VERSION_MISMATCH);
	if (isnan(number(unit, METRIC_SRAM_IN_L2)))
		return fake_leave(NOT_SUPPORTED);
	*errors = (struct abi_sram){ SRAM_WORD,
		.agg_parity = (uint64_t)number(unit, METRIC_SRAM_AGGREGATE_PARITY),
		.agg_secded = (uint64_t)number(unit, METRIC_SRAM_AGGREGATE_SECDED),
		.vol_parity = (uint64_t)number(unit, METRIC_SRAM_VOLATILE_PARITY),
		.vol_secded = (uint64_t)number(unit, METRIC_SRAM_VOLATILE_SECDED),
		.l2 = (uint64_t)number(unit, METRIC_SRAM_IN_L2),
		.sm = (uint64_t)number(unit, METRIC_SRAM_IN_SM),
		.pcie = (uint64_t)number(unit, METRIC_SRAM_IN_PCIE),
		.mcu = (uint64_t)number(unit, METRIC_SRAM_IN_MCU),
		.other = (uint64_t)number(unit, METRIC_SRAM_IN_OTHER),
		.threshold = (uint32_t)number(unit, METRIC_SRAM_THRESHOLD) };
	return fake_leave(SUCCESS);
}

EXPORT int nvmlDeviceGetRowRemapperHistogram(void *device, struct abi_histogram *rows)
{
	ENTER_DEVICE(device, "%s", "");
	(void)f;
	double max = number(unit, METRIC_ROWS_MAX);
	if (isnan(max))
		return fake_leave(NOT_SUPPORTED);
	*rows = (struct abi_histogram){ (uint32_t)max, (uint32_t)number(unit, METRIC_ROWS_HIGH),
		(uint32_t)number(unit, METRIC_ROWS_PARTIAL),
		(uint32_t)number(unit, METRIC_ROWS_LOW),
		(uint32_t)number(unit, METRIC_ROWS_NONE) };
	return fake_leave(SUCCESS);
}

EXPORT int nvmlDeviceGetGpuFabricInfo(void *device, struct abi_fabric *fabric)
{
	ENTER_DEVICE(device, "%s", "");
	(void)f;
	double state = number(unit, METRIC_FABRIC_STATE);
	*fabric = (struct abi_fabric){ .state = 0 };
	if (isnan(state))
		return fake_leave(SUCCESS); /* as the real one: in none, by its state */
	for (unsigned char i = 0; i < sizeof(fabric->cluster); i++)
		fabric->cluster[i] = i;
	double clique = number(unit, METRIC_FABRIC_CLIQUE);
	fabric->clique = isnan(clique) ? 0 : (uint32_t)clique;
	fabric->state = (unsigned char)state;
	return fake_leave(SUCCESS);
}

EXPORT int nvmlDeviceGetGpuFabricInfoV(void *device, struct abi_fabric_health *fabric)
{
	static const enum metric flags[] = { METRIC_FABRIC_BANDWIDTH, METRIC_FABRIC_RECOVERY,
		METRIC_FABRIC_UNHEALTHY, METRIC_FABRIC_TIMEOUT };
	ENTER_DEVICE(device, "version=%x", fabric->version);
	double state = number(unit, METRIC_FABRIC_STATE);
	/* Old drivers know layout 2 only: here those before 530. */
	bool summary = fabric->version == HEALTH_WORD_3 && atoi(f->scenario->driver) >= 530;
	if (!summary && fabric->version != HEALTH_WORD_2)
		return fake_leave(VERSION_MISMATCH);
	fabric->state = isnan(state) ? 0 : (unsigned char)state;
	fabric->mask = 0;
	for (unsigned i = 0; i < 4 && !isnan(number(unit, flags[i])); i++)
		fabric->mask |= (uint32_t)number(unit, flags[i]) << 2 * i;
	if (summary && !isnan(number(unit, METRIC_FABRIC_HEALTH)))
		fabric->summary = (unsigned char)number(unit, METRIC_FABRIC_HEALTH);
	return fake_leave(SUCCESS);
}

EXPORT int nvmlDeviceGetHostname_v1(void *device, struct abi_hostname *hostname)
{
	ENTER_DEVICE(device, "%s", "");
	bool has = play_metric_text(
		f->scenario, unit, METRIC_HOSTNAME, hostname->value, sizeof(hostname->value));
	return fake_leave(has ? SUCCESS : NOT_SUPPORTED);
}

EXPORT int nvmlDeviceGetPlatformInfo(void *device, struct abi_platform *platform)
{
	static const unsigned char guid[] = { 0xFF, 0xEE, 0xDD, 0xCC, 0xBB, 0xAA, 0x99, 0x88 };
	char chassis[sizeof(platform->chassis)] = "";
	ENTER_DEVICE(device, "%s", "");
	double slot = number(unit, METRIC_PLATFORM_SLOT);
	if (platform->version != PLATFORM_WORD)
		return fake_leave(VERSION_MISMATCH);
	if (isnan(slot))
		return fake_leave(NOT_SUPPORTED);
	play_metric_text(f->scenario, unit, METRIC_PLATFORM_CHASSIS, chassis, sizeof(chassis));
	*platform = (struct abi_platform){ .version = PLATFORM_WORD,
		.slot = (unsigned char)slot,
		.tray = (unsigned char)number(unit, METRIC_PLATFORM_TRAY),
		.host = (unsigned char)number(unit, METRIC_PLATFORM_HOST),
		.peer = (unsigned char)number(unit, METRIC_PLATFORM_PEER),
		.module = (unsigned char)number(unit, METRIC_PLATFORM_MODULE) };
	memcpy(platform->guid, guid, sizeof(guid));
	memcpy(platform->chassis, chassis, sizeof(chassis));
	return fake_leave(SUCCESS);
}
