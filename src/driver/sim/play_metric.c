/* The metrics of a scenario's cards: numbers computed from utilisation, memory and power, and
 * from the kind of card, which its name gives. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "driver/sim/play.h"

static bool has_word(const struct scenario_card *c, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strstr(c->id.name, words[i]))
			return true;
	return false;
}

bool play_metric_can_mig(const struct scenario_card *c)
{
	static const char *const models[] = { "A100", "A30", "H100", "H200", "B200" };
	return (c->has_mig || has_word(c, models, 5)) && c->parent < 0;
}

/* Cards with error correction. */
static bool has_ecc(const struct scenario_card *c)
{
	static const char *const models[] = { "A100", "A30", "A40", "H100", "H200", "B200",
		"L40", "V100", "A6000" };
	return has_word(c, models, 9);
}

/* Cards that report how far they are from slowing down, and can be in a fabric. */
static bool is_hopper(const struct scenario_card *c)
{
	static const char *const models[] = { "H100", "H200", "B200" };
	return has_word(c, models, 3);
}

/* Of those, one kind has not joined its fabric yet. */
static bool has_joined(const struct scenario_card *c)
{
	return is_hopper(c) && !strstr(c->id.name, "H200");
}

static double newest_util(const struct play *p, size_t unit)
{
	size_t n = play_ring_size(p, unit);
	return n ? play_ring_at(p, unit, n - 1)->util_pct : 0;
}

/* Of cards and of instances alike. */
static double memory_metric(
	const struct play *p, const struct scenario_card *c, size_t unit, enum metric m)
{
	double total = (double)c->id.mem_total_bytes, reserved = (double)c->reserved_bytes;
	double used = (double)play_memory_used(p, unit);
	switch (m) {
	case METRIC_MEMORY_TOTAL:
		return total;
	case METRIC_MEMORY_RESERVED:
		return reserved;
	case METRIC_MEMORY_USED:
		return used;
	case METRIC_MEMORY_FREE:
		return total - reserved - used;
	case METRIC_BAR1_TOTAL:
		return total > 32e9 ? 128.0 * (1 << 30) : 256.0 * (1 << 20);
	case METRIC_BAR1_USED:
		return 4.0 * (1 << 20);
	case METRIC_COMPUTE_MODE:
		return 0;
	default:
		return NAN;
	}
}

static double power_metric(
	const struct play *p, const struct scenario_card *c, size_t unit, enum metric m)
{
	switch (m) {
	case METRIC_POWER_DRAW:
	case METRIC_POWER_AVERAGE:
	case METRIC_POWER_INSTANT:
		return (double)play_power_mw(p, unit) / 1000;
	case METRIC_POWER_LIMIT:
	case METRIC_POWER_ENFORCED:
	case METRIC_POWER_DEFAULT:
	case METRIC_POWER_MAX:
		return (double)c->max_mw / 1000;
	case METRIC_POWER_MIN:
		return (double)(c->max_mw / 4) / 1000;
	case METRIC_ENERGY:
		return floor(play_energy_mj(p, unit)) / 1000;
	case METRIC_POWER_VIOLATION:
	case METRIC_THERMAL_VIOLATION:
	case METRIC_COUNTER_SW_POWER:
	case METRIC_COUNTER_SYNC:
		return 0;
	case METRIC_POWER_MANAGEMENT:
		return 1;
	case METRIC_PCIE_TX:
	case METRIC_PCIE_RX:
		return floor(play_energy_mj(p, unit)) * (m == METRIC_PCIE_TX ? 1000 : 3000);
	default:
		return NAN;
	}
}

static double clock_metric(double util, enum metric m)
{
	switch (m) {
	case METRIC_CLOCK_GRAPHICS:
	case METRIC_CLOCK_SM:
		return util > 0 ? 1410 : 210;
	case METRIC_CLOCK_VIDEO:
		return util > 0 ? 1275 : 585;
	case METRIC_CLOCK_MEMORY:
	case METRIC_CLOCK_MAX_MEMORY:
	case METRIC_CLOCK_APP_MEMORY:
	case METRIC_CLOCK_DEFAULT_MEMORY:
		return 1593;
	case METRIC_CLOCK_APP_GRAPHICS:
	case METRIC_CLOCK_DEFAULT_GRAPHICS:
		return 1275;
	case METRIC_CLOCK_MAX_GRAPHICS:
	case METRIC_CLOCK_MAX_SM:
		return 1410;
	case METRIC_PSTATE:
		return util > 0 ? 0 : 8;
	case METRIC_PCIE_GEN_CURRENT:
	case METRIC_PCIE_GEN_GPU_CURRENT:
		return util > 0 ? 4 : 1;
	case METRIC_REASONS:
		return util > 0 ? 0 : 1;
	case METRIC_REASONS_SUPPORTED:
		return 0x1ff;
	default:
		return NAN;
	}
}

/* Old cards have had errors: another number in each counter. */
static double error_metric(const struct scenario_card *c, enum metric m)
{
	enum {
		PLACES_AND_TOTAL =
			METRIC_ECC_CORRECTED_VOLATILE - METRIC_ECC_CORRECTED_VOLATILE_DEVICE + 1
	};
	int at = (int)m - METRIC_ECC_CORRECTED_VOLATILE_DEVICE;
	bool counts_dram = m < METRIC_SRAM_VOLATILE_PARITY && at % PLACES_AND_TOTAL == 0;
	if (!has_ecc(c))
		return NAN;
	if (m == METRIC_ROWS_MAX)
		return 640;
	if (!strstr(c->id.name, "V100"))
		return 0;
	return m == METRIC_SRAM_THRESHOLD ? 1 : at + (counts_dram ? 1 : 0);
}

/* What all cards say. */
static const struct constant {
	enum metric metric;
	double value;
} constants[] = {
	{ METRIC_PERSISTENCE_MODE, 1 },
	{ METRIC_GSP_CURRENT, 1 },
	{ METRIC_GSP_DEFAULT, 1 },
	{ METRIC_DISPLAY_MODE, 0 },
	{ METRIC_DISPLAY_ATTACHED, 0 },
	{ METRIC_DISPLAY_ACTIVE, 0 },
	{ METRIC_ADDRESSING_MODE, 0 },
	{ METRIC_RECOVERY_ACTION, 0 },
	{ METRIC_C2C_MODE, 0 },
	{ METRIC_PROTECTED_TOTAL, 0 },
	{ METRIC_PROTECTED_USED, 0 },
	{ METRIC_PROTECTED_FREE, 0 },
	{ METRIC_ACCOUNTING_BUFFER, 4000 },
	{ METRIC_PCIE_REPLAYS, 0 },
	{ METRIC_ENCODER_SESSIONS, 0 },
	{ METRIC_ENCODER_FPS, 0 },
	{ METRIC_ENCODER_LATENCY, 0 },
	{ METRIC_COMPUTE_CAP, 8 },
	{ METRIC_PCIE_GEN_MAX, 4 },
	{ METRIC_PCIE_GEN_GPU_MAX, 4 },
	{ METRIC_PCIE_WIDTH_CURRENT, 16 },
	{ METRIC_PCIE_WIDTH_MAX, 16 },
	{ METRIC_PCI_CLASS, 3 },
	{ METRIC_PCI_DEVICE_ID, 0x20b210de },
	{ METRIC_PCI_SUB_DEVICE_ID, 0x146310de },
	{ METRIC_MULTI_GPU_BOARD, 0 },
	{ METRIC_TEMPERATURE_SHUTDOWN, 92 },
	{ METRIC_TEMPERATURE_SLOWDOWN, 89 },
	{ METRIC_TEMPERATURE_MAX, 85 },
	{ METRIC_CLOCK_MAX_VIDEO, 1290 },
};

static double constant_metric(enum metric m)
{
	for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++)
		if (constants[i].metric == m)
			return constants[i].value;
	return NAN;
}

/* Newest cards are in a rack. */
static double rack_metric(const struct scenario_card *c, enum metric m)
{
	if (!strstr(c->id.name, "B200"))
		return NAN;
	return m == METRIC_PLATFORM_PEER ? 0 : (double)((int)m - METRIC_PLATFORM_SLOT + 10);
}

/* The kinds of cards by a word of their names. */
static const struct model {
	const char *word;
	double brand, architecture;
} models[] = {
	{ "GeForce RTX 30", 5, 7 },
	{ "GeForce RTX 40", 5, 8 },
	{ "GeForce", 5, NAN },
	{ "V100", 2, 5 },
	{ "A100", 14, 7 },
	{ "A30", 14, 7 },
	{ "A40", 14, 7 },
	{ "A6000", 13, 7 },
	{ "L40", 14, 8 },
	{ "H100", 14, 9 },
	{ "H200", 14, 9 },
	{ "B200", 14, 10 },
};

static double model_metric(const struct scenario_card *c, enum metric m)
{
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
		if (strstr(c->id.name, models[i].word))
			return m == METRIC_BRAND ? models[i].brand : models[i].architecture;
	return m == METRIC_BRAND ? 14 : NAN;
}

/* Of cards that have joined; one kind has lost a part of its fabric. */
static double fabric_metric(const struct scenario_card *c, enum metric m)
{
	bool degraded = strstr(c->id.name, "B200") != NULL;
	if (!has_joined(c))
		return NAN;
	if (m == METRIC_FABRIC_HEALTH)
		return degraded ? 3 : 1;
	return m == METRIC_FABRIC_BANDWIDTH && degraded ? 1 : 2;
}

static double identity_metric(const struct scenario_card *c, enum metric m)
{
	unsigned domain = 0, bus = 0;
	switch (m) {
	case METRIC_BRAND:
	case METRIC_ARCHITECTURE:
		return model_metric(c, m);
	case METRIC_MINOR_NUMBER:
		return c->id.index;
	case METRIC_BOARD_ID:
		return sscanf(c->id.pci, "%x:%x", &domain, &bus) == 2 ? (double)(bus << 8)
								      : NAN;
	case METRIC_CLOCK_BOOST_MAX:
		return has_ecc(c) ? 1410 : NAN;
	case METRIC_TEMPERATURE_MEMORY_MAX:
		return has_ecc(c) ? 95 : NAN;
	case METRIC_EDPP:
		return is_hopper(c) ? 100 : NAN;
	case METRIC_VIRTUALIZATION: /* a virtual GPU of a guest is named so */
		return strstr(c->id.name, "GRID") ? 2 : 0;
	default:
		return m >= METRIC_FABRIC_HEALTH && m <= METRIC_FABRIC_TIMEOUT
			       ? fabric_metric(c, m)
			       : NAN;
	}
}

static double health_metric(const struct scenario_card *c, enum metric m)
{
	if ((m >= METRIC_ECC_CORRECTED_VOLATILE_DEVICE && m <= METRIC_SRAM_IN_OTHER) ||
		(m >= METRIC_ROWS_MAX && m <= METRIC_ROWS_NONE))
		return error_metric(c, m);
	switch (m) {
	case METRIC_REMAPPED_CORRECTABLE:
	case METRIC_REMAPPED_UNCORRECTABLE:
	case METRIC_REMAPPED_PENDING:
	case METRIC_REMAPPED_FAILURE:
		return has_ecc(c) ? 0 : NAN;
	case METRIC_ECC_CURRENT:
	case METRIC_ECC_PENDING:
	case METRIC_INFOROM_CHECK:
		return has_ecc(c) ? 1 : NAN;
	case METRIC_MIG_CURRENT:
	case METRIC_MIG_PENDING:
		return play_metric_can_mig(c) ? c->has_mig : NAN;
	case METRIC_DRAM_ENCRYPTION_CURRENT:
	case METRIC_DRAM_ENCRYPTION_PENDING:
		return strstr(c->id.name, "B200") ? 0 : NAN;
	case METRIC_FABRIC_STATE:
		return has_joined(c) ? 3 : is_hopper(c) ? 2 : NAN;
	case METRIC_FABRIC_CLIQUE:
		return has_joined(c) ? 7 : NAN;
	case METRIC_PCI_SUB_CLASS:
		return has_ecc(c) ? 2 : 0;
	default:
		return m >= METRIC_PLATFORM_SLOT && m <= METRIC_PLATFORM_MODULE
			       ? rack_metric(c, m)
			       : constant_metric(m);
	}
}

static double use_metric(const struct scenario_card *c, double util, enum metric m)
{
	bool passive = strstr(c->id.name, "SXM") || strstr(c->id.name, "HBM");
	switch (m) {
	case METRIC_UTILIZATION_GPU:
		return c->has_mig ? NAN : util;
	case METRIC_UTILIZATION_MEMORY:
		return c->has_mig ? NAN : floor(util / 2);
	case METRIC_UTILIZATION_ENCODER:
	case METRIC_UTILIZATION_DECODER:
	case METRIC_UTILIZATION_JPEG:
	case METRIC_UTILIZATION_OFA:
		return c->has_mig ? NAN : 0;
	case METRIC_TEMPERATURE_GPU:
		return 30 + floor(util / 2);
	case METRIC_TEMPERATURE_MARGIN:
		return is_hopper(c) ? 55 - floor(util / 2) : NAN;
	case METRIC_TEMPERATURE_MEMORY:
		return passive ? 34 + floor(util / 2) : NAN;
	case METRIC_FAN_SPEED:
		return passive ? NAN : 30 + floor(util / 2);
	default:
		return NAN;
	}
}

double play_metric(const struct play *p, const struct scenario *s, size_t unit, enum metric m)
{
	const struct scenario_card *c = &s->cards[unit];
	double value = memory_metric(p, c, unit, m), util = newest_util(p, unit);
	if (!isnan(value) || c->parent >= 0)
		return value;
	if (m == METRIC_CUDA_VERSION)
		return s->cuda;
	if (m == METRIC_ACCOUNTING_MODE)
		return s->accounting && !c->has_mig; /* MIG turns it off */
	value = power_metric(p, c, unit, m);
	value = isnan(value) ? clock_metric(util, m) : value;
	value = isnan(value) ? identity_metric(c, m) : value;
	value = isnan(value) ? health_metric(c, m) : value;
	return isnan(value) ? use_metric(c, util, m) : value;
}

/* Without the CUDA version that comes first. */
static const char *library_version(const struct scenario *s)
{
	const char *dot = strchr(s->nvml, '.');
	return dot ? dot + 1 : s->nvml;
}

bool play_metric_text(
	const struct scenario *s, size_t unit, enum metric m, char *dst, size_t cap)
{
	if (s->cards[unit].parent >= 0)
		return false;
	if (m == METRIC_SERIAL)
		snprintf(dst, cap, "15%011u", (unsigned)unit + 1);
	else if (m == METRIC_VBIOS_VERSION)
		snprintf(dst, cap, "92.00.%02X.00.01", (unsigned)unit + 0x19);
	else if (m == METRIC_NVML_VERSION)
		snprintf(dst, cap, "%s", library_version(s));
	else if (m == METRIC_BOARD_PART && has_ecc(&s->cards[unit]))
		snprintf(dst, cap, "692-2G506-0212-%03u", (unsigned)unit + 1);
	else if (m == METRIC_HOSTNAME && strstr(s->cards[unit].id.name, "B200"))
		snprintf(dst, cap, "tray-%u", (unsigned)unit);
	else if (m == METRIC_INFOROM_IMAGE)
		snprintf(dst, cap, "G500.0200.00.03");
	else if (m == METRIC_INFOROM_OEM)
		snprintf(dst, cap, "2.1");
	else if (m == METRIC_INFOROM_ECC && has_ecc(&s->cards[unit]))
		snprintf(dst, cap, "6.16");
	else if (m == METRIC_FABRIC_STATUS && has_joined(&s->cards[unit]))
		snprintf(dst, cap, "Success");
	else if (m == METRIC_PLATFORM_CHASSIS && strstr(s->cards[unit].id.name, "B200"))
		snprintf(dst, cap, "1821325190344");
	else if (m == METRIC_PLATFORM_GUID && strstr(s->cards[unit].id.name, "B200"))
		snprintf(dst, cap, "0xFFEEDDCCBBAA9988");
	else if (m == METRIC_FABRIC_CLUSTER && has_joined(&s->cards[unit]))
		snprintf(dst, cap, "00010203-0405-0607-0809-0a0b0c0d0e0f");
	else
		return false;
	return true;
}
