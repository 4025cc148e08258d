/* Computes the metrics of a scenario's cards from utilisation, memory and power, and from the
 * kind of card, which is known by its name. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/sim/play.h"

/* The kinds of cards, by a word in their names. */
static const struct model {
	const char *word;
	double brand, architecture;
	bool ecc;    /* it has error correction */
	bool mig;    /* it supports MIG */
	bool fabric; /* it reports how far it is from slowing down, and can be in a fabric */
	bool joined; /* it has joined a fabric */
} models[] = {
	{ "GeForce RTX 30", 5, 7, false, false, false, false },
	{ "GeForce RTX 40", 5, 8, false, false, false, false },
	{ "GeForce", 5, NAN, false, false, false, false },
	{ "V100", 2, 5, true, false, false, false },
	{ "A100", 14, 7, true, true, false, false },
	{ "A30", 14, 7, true, true, false, false },
	{ "A40", 14, 7, true, false, false, false },
	{ "A6000", 13, 7, true, false, false, false },
	{ "L40", 14, 8, true, false, false, false },
	{ "H100", 14, 9, true, true, true, true },
	{ "H200", 14, 9, true, true, true, false },
	{ "B200", 14, 10, true, true, true, true },
	{ "", 14, NAN, false, false, false, false },
};

static const struct model *model_of(const struct scenario_card *c)
{
	const struct model *m = models;
	while (!strstr(c->id.name, m->word))
		m++;
	return m;
}

bool play_metric_can_mig(const struct scenario_card *c)
{
	return (c->has_mig || model_of(c)->mig) && c->parent < 0;
}

/* Metrics that both cards and instances have. */
/* The engines of a MIG instance, by the slices in its name: "MIG 3g.20gb". */
static double engine_metric(const struct scenario_card *c, enum metric m)
{
	const char *profile = strstr(c->id.name, "MIG ");
	int slices = profile ? atoi(profile + strlen("MIG ")) : 1;
	switch (m) {
	case METRIC_INSTANCE_SMS:
		return 14 * slices;
	case METRIC_INSTANCE_COPIERS:
		return slices;
	case METRIC_INSTANCE_DECODERS:
		return (slices + 1) / 2;
	case METRIC_INSTANCE_ENCODERS:
	case METRIC_INSTANCE_JPEGS:
	case METRIC_INSTANCE_OFAS:
		return 0;
	default:
		return NAN;
	}
}

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
	case METRIC_BAR1_FREE:
		return (total > 32e9 ? 128.0 * (1 << 30) : 256.0 * (1 << 20)) - 4.0 * (1 << 20);
	case METRIC_COMPUTE_MODE:
		return 0;
	case METRIC_ECC_UNCORRECTED_VOLATILE_SRAM:
		return c->parent >= 0 ? 0 : NAN;
	default:
		return c->parent >= 0 ? engine_metric(c, m) : NAN;
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
	case METRIC_PCIE_TX:
	case METRIC_PCIE_RX:
		return floor(play_energy_mj(p, unit)) * (m == METRIC_PCIE_TX ? 1000 : 3000);
	default:
		return NAN;
	}
}

/* Values that all cards report: while nothing uses them, and while something does. */
#define ALWAYS(metric, value)                                                                  \
	{                                                                                      \
		METRIC_##metric, value, value                                                  \
	}
static const struct plain {
	enum metric metric;
	double idle, busy;
} plain[] = {
	{ METRIC_CLOCK_GRAPHICS, 210, 1410 },
	{ METRIC_CLOCK_SM, 210, 1410 },
	{ METRIC_CLOCK_VIDEO, 585, 1275 },
	{ METRIC_PSTATE, 8, 0 },
	{ METRIC_PCIE_GEN_CURRENT, 1, 4 },
	{ METRIC_PCIE_GEN_GPU_CURRENT, 1, 4 },
	{ METRIC_REASONS, 1, 0 },
	ALWAYS(REASONS_SUPPORTED, 0x1ff),
	ALWAYS(CLOCK_MEMORY, 1593),
	ALWAYS(CLOCK_MAX_MEMORY, 1593),
	ALWAYS(CLOCK_APP_MEMORY, 1593),
	ALWAYS(CLOCK_DEFAULT_MEMORY, 1593),
	ALWAYS(CLOCK_APP_GRAPHICS, 1275),
	ALWAYS(CLOCK_DEFAULT_GRAPHICS, 1275),
	ALWAYS(CLOCK_MAX_GRAPHICS, 1410),
	ALWAYS(CLOCK_MAX_SM, 1410),
	ALWAYS(CLOCK_MAX_VIDEO, 1290),
	ALWAYS(POWER_VIOLATION, 0),
	ALWAYS(THERMAL_VIOLATION, 0),
	ALWAYS(COUNTER_SW_POWER, 0),
	ALWAYS(COUNTER_SYNC, 0),
	ALWAYS(POWER_MANAGEMENT, 1),
	ALWAYS(PERSISTENCE_MODE, 1),
	ALWAYS(GSP_CURRENT, 1),
	ALWAYS(GSP_DEFAULT, 1),
	ALWAYS(DISPLAY_MODE, 0),
	ALWAYS(DISPLAY_ATTACHED, 0),
	ALWAYS(DISPLAY_ACTIVE, 0),
	ALWAYS(ADDRESSING_MODE, 0),
	ALWAYS(RESET_REQUIRED, 0),
	ALWAYS(RESET_RECOMMENDED, 0),
	ALWAYS(RECOVERY_ACTION, 0),
	ALWAYS(C2C_MODE, 0),
	ALWAYS(PROTECTED_TOTAL, 0),
	ALWAYS(PROTECTED_USED, 0),
	ALWAYS(PROTECTED_FREE, 0),
	ALWAYS(ACCOUNTING_BUFFER, 4000),
	ALWAYS(PCIE_REPLAYS, 0),
	ALWAYS(PCIE_ROLLOVERS, 0),
	ALWAYS(ENCODER_SESSIONS, 0),
	ALWAYS(ENCODER_FPS, 0),
	ALWAYS(ENCODER_LATENCY, 0),
	ALWAYS(COMPUTE_CAP, 8),
	ALWAYS(PCIE_GEN_MAX, 4),
	ALWAYS(PCIE_GEN_GPU_MAX, 4),
	ALWAYS(PCIE_WIDTH_CURRENT, 16),
	ALWAYS(PCIE_WIDTH_MAX, 16),
	ALWAYS(PCI_CLASS, 3),
	ALWAYS(PCI_DEVICE_ID, 0x20b210de),
	ALWAYS(PCI_SUB_DEVICE_ID, 0x146310de),
	ALWAYS(MULTI_GPU_BOARD, 0),
	ALWAYS(TEMPERATURE_SHUTDOWN, 92),
	ALWAYS(TEMPERATURE_SLOWDOWN, 89),
	ALWAYS(TEMPERATURE_MAX, 85),
};

static double plain_metric(double util, enum metric m)
{
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (plain[i].metric == m)
			return util > 0 ? plain[i].busy : plain[i].idle;
	return NAN;
}

/* Old cards report errors: a different number in each counter. */
static double error_metric(const struct scenario_card *c, enum metric m)
{
	enum {
		PLACES_AND_TOTAL =
			METRIC_ECC_CORRECTED_VOLATILE - METRIC_ECC_CORRECTED_VOLATILE_DEVICE + 1
	};
	int at = (int)m - METRIC_ECC_CORRECTED_VOLATILE_DEVICE;
	bool counts_dram = m < METRIC_SRAM_VOLATILE_PARITY && at % PLACES_AND_TOTAL == 0;
	if (!model_of(c)->ecc)
		return NAN;
	if (m == METRIC_ROWS_MAX)
		return 640;
	if (!strstr(c->id.name, "V100"))
		return 0;
	return m == METRIC_SRAM_THRESHOLD ? 1 : at + (counts_dram ? 1 : 0);
}

/* Metrics that only some kinds of cards have: errors, a fabric, a place in a rack. */
static double model_metric(const struct scenario_card *c, enum metric m)
{
	const struct model *model = model_of(c);
	/* The newest cards are in a rack, and have lost a part of their fabric. */
	bool newest = strstr(c->id.name, "B200") != NULL;
	if ((m >= METRIC_ECC_CORRECTED_VOLATILE_DEVICE && m <= METRIC_SRAM_IN_OTHER) ||
		(m >= METRIC_ROWS_MAX && m <= METRIC_ROWS_NONE))
		return error_metric(c, m);
	if (m == METRIC_PLATFORM_PEER)
		return newest ? 0 : NAN;
	if (m >= METRIC_PLATFORM_SLOT && m <= METRIC_PLATFORM_MODULE)
		return newest ? (double)(m - METRIC_PLATFORM_SLOT + 10) : NAN;
	if (m == METRIC_FABRIC_HEALTH)
		return !model->joined ? NAN : newest ? 3 : 1;
	if (m > METRIC_FABRIC_HEALTH && m <= METRIC_FABRIC_TIMEOUT)
		return !model->joined ? NAN : m == METRIC_FABRIC_BANDWIDTH && newest ? 1 : 2;
	switch (m) {
	case METRIC_BRAND:
		return model->brand;
	case METRIC_ARCHITECTURE:
		return model->architecture;
	case METRIC_REMAPPED_CORRECTABLE:
	case METRIC_REMAPPED_UNCORRECTABLE:
	case METRIC_REMAPPED_PENDING:
	case METRIC_REMAPPED_FAILURE:
		return model->ecc ? 0 : NAN;
	case METRIC_ECC_CURRENT:
	case METRIC_ECC_PENDING:
	case METRIC_INFOROM_CHECK:
		return model->ecc ? 1 : NAN;
	case METRIC_PCI_SUB_CLASS:
		return model->ecc ? 2 : 0;
	case METRIC_CLOCK_BOOST_MAX:
		return model->ecc ? 1410 : NAN;
	case METRIC_TEMPERATURE_MEMORY_MAX:
		return model->ecc ? 95 : NAN;
	case METRIC_DRAM_ENCRYPTION_CURRENT:
	case METRIC_DRAM_ENCRYPTION_PENDING:
		return newest ? 0 : NAN;
	case METRIC_EDPP:
		return model->fabric ? 100 : NAN;
	case METRIC_FABRIC_STATE:
		return model->joined ? 3 : model->fabric ? 2 : NAN;
	case METRIC_FABRIC_CLIQUE:
		return model->joined ? 7 : NAN;
	default:
		return NAN;
	}
}

/* Cards of a fabric report their margin, the others with fans the temperature they keep to. */
static double heat_metric(const struct scenario_card *c, double util, enum metric m)
{
	bool passive = strstr(c->id.name, "SXM") || strstr(c->id.name, "HBM");
	double fans = passive ? NAN : 0, fabric = model_of(c)->fabric ? 0 : NAN;
	switch (m) {
	case METRIC_TEMPERATURE_GPU:
		return 30 + floor(util / 2);
	case METRIC_TEMPERATURE_MEMORY:
		return passive ? 34 + floor(util / 2) : NAN;
	case METRIC_FAN_SPEED:
		return fans + 30 + floor(util / 2);
	case METRIC_TEMPERATURE_TARGET:
		return fans + 83;
	case METRIC_TEMPERATURE_TARGET_MIN:
		return fans + 65;
	case METRIC_TEMPERATURE_TARGET_MAX:
		return fans + 91;
	case METRIC_TEMPERATURE_MARGIN:
		return fabric + 55 - floor(util / 2);
	case METRIC_MARGIN_SHUTDOWN:
		return fabric - 8;
	case METRIC_MARGIN_SLOWDOWN:
		return fabric - 2;
	case METRIC_MARGIN_MAX:
	case METRIC_MARGIN_MEMORY_MAX:
		return fabric;
	default:
		return model_metric(c, m);
	}
}

static double card_metric(const struct scenario_card *c, double util, enum metric m)
{
	unsigned domain = 0, bus = 0;
	switch (m) {
	case METRIC_MINOR_NUMBER:
		return c->id.index;
	case METRIC_MODULE_ID:
		return c->id.index + 1;
	case METRIC_BOARD_ID:
		return sscanf(c->id.pci, "%x:%x", &domain, &bus) == 2 ? (double)(bus << 8)
								      : NAN;
	case METRIC_VIRTUALIZATION: /* the name of a guest's virtual GPU shows it */
		return strstr(c->id.name, "GRID") ? 2 : 0;
	case METRIC_MIG_CURRENT:
	case METRIC_MIG_PENDING:
		return play_metric_can_mig(c) ? c->has_mig : NAN;
	case METRIC_UTILIZATION_GPU:
		return c->has_mig ? NAN : util;
	case METRIC_UTILIZATION_MEMORY:
		return c->has_mig ? NAN : floor(util / 2);
	case METRIC_UTILIZATION_ENCODER:
	case METRIC_UTILIZATION_DECODER:
	case METRIC_UTILIZATION_JPEG:
	case METRIC_UTILIZATION_OFA:
		return c->has_mig ? NAN : 0;
	case METRIC_MEMORY_POWER_AVERAGE:
	case METRIC_MEMORY_POWER_INSTANT:
		return model_of(c)->fabric ? 40 : NAN;
	default:
		return heat_metric(c, util, m);
	}
}

double play_metric(const struct play *p, const struct scenario *s, size_t unit, enum metric m)
{
	const struct scenario_card *c = &s->cards[unit];
	size_t n = play_ring_size(p, unit);
	double value = memory_metric(p, c, unit, m);
	double util = n ? play_ring_at(p, unit, n - 1)->util_pct : 0;
	if (!isnan(value) || c->parent >= 0)
		return value;
	if (m == METRIC_CUDA_VERSION)
		return s->cuda;
	if (m == METRIC_ACCOUNTING_MODE)
		return s->accounting && !c->has_mig; /* MIG turns it off */
	value = power_metric(p, c, unit, m);
	value = isnan(value) ? plain_metric(util, m) : value;
	return isnan(value) ? card_metric(c, util, m) : value;
}

bool play_metric_text(
	const struct scenario *s, size_t unit, enum metric m, char *dst, size_t cap)
{
	const struct scenario_card *c = &s->cards[unit];
	const struct model *model = model_of(c);
	const char *dot = strchr(s->nvml, '.');
	bool newest = strstr(c->id.name, "B200") != NULL;
	if (c->parent >= 0)
		return false;
	if (m == METRIC_SERIAL)
		snprintf(dst, cap, "15%011u", (unsigned)unit + 1);
	else if (m == METRIC_VBIOS_VERSION)
		snprintf(dst, cap, "92.00.%02X.00.01", (unsigned)unit + 0x19);
	else if (m == METRIC_NVML_VERSION) /* without the CUDA version that comes first */
		snprintf(dst, cap, "%s", dot ? dot + 1 : s->nvml);
	else if (m == METRIC_GSP_FIRMWARE)
		snprintf(dst, cap, "%s", s->driver);
	else if (m == METRIC_BOARD_PART && model->ecc)
		snprintf(dst, cap, "692-2G506-0212-%03u", (unsigned)unit + 1);
	else if (m == METRIC_HOSTNAME && newest)
		snprintf(dst, cap, "tray-%u", (unsigned)unit);
	else if (m == METRIC_INFOROM_IMAGE)
		snprintf(dst, cap, "G500.0200.00.03");
	else if (m == METRIC_INFOROM_OEM)
		snprintf(dst, cap, "2.1");
	else if (m == METRIC_INFOROM_ECC && model->ecc)
		snprintf(dst, cap, "6.16");
	else if (m == METRIC_FABRIC_STATUS && model->joined)
		snprintf(dst, cap, "Success");
	else if (m == METRIC_PLATFORM_CHASSIS && newest)
		snprintf(dst, cap, "1821325190344");
	else if (m == METRIC_PLATFORM_GUID && newest)
		snprintf(dst, cap, "0xFFEEDDCCBBAA9988");
	else if (m == METRIC_FABRIC_CLUSTER && model->joined)
		snprintf(dst, cap, "00010203-0405-0607-0809-0a0b0c0d0e0f");
	else
		return false;
	return true;
}
