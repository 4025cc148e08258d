/* Computes the metrics of a scenario's cards from utilisation, memory and power, and from the
 * kind of card, which is known by its name. */
#include "driver/sim/play.h"

/* What a card has or is. */
enum trait {
	HAS_ECC = 1,
	HAS_MIG = 2,   /* it supports MIG */
	FABRIC = 4,    /* it reports how far it is from slowing down, and can be in a fabric */
	JOINED = 8,    /* it has joined a fabric */
	NEWEST = 16,   /* it is in a rack, and has lost a part of its fabric */
	PASSIVE = 32,  /* it has no fans */
	FANS = 64,     /* it reports the temperature it keeps to */
	MIG_OFF = 128, /* it reports utilisation */
};

/* The kinds of cards, by a word in their names. */
static const struct model {
	const char *word;
	double brand, architecture;
	unsigned traits;
} models[] = {
	{ "GeForce RTX 30", 5, 7, 0 },
	{ "GeForce RTX 40", 5, 8, 0 },
	{ "GeForce", 5, NAN, 0 },
	{ "V100", 2, 5, HAS_ECC },
	{ "A100", 14, 7, HAS_ECC | HAS_MIG },
	{ "A30", 14, 7, HAS_ECC | HAS_MIG },
	{ "A40", 14, 7, HAS_ECC },
	{ "A6000", 13, 7, HAS_ECC },
	{ "L40", 14, 8, HAS_ECC },
	{ "H100", 14, 9, HAS_ECC | HAS_MIG | FABRIC | JOINED },
	{ "H200", 14, 9, HAS_ECC | HAS_MIG | FABRIC },
	{ "B200", 14, 10, HAS_ECC | HAS_MIG | FABRIC | JOINED | NEWEST },
	{ "", 14, NAN, 0 },
};

static const struct model *model_of(const struct scenario_card *c)
{
	const struct model *m = models;
	while (!strstr(c->id.name, m->word))
		m++;
	return m;
}

static unsigned traits_of(const struct scenario_card *c)
{
	bool passive = strstr(c->id.name, "SXM") || strstr(c->id.name, "HBM");
	return model_of(c)->traits | (passive ? PASSIVE : FANS) | (c->has_mig ? 0 : MIG_OFF);
}

bool play_metric_can_mig(const struct scenario_card *c)
{
	return (c->has_mig || model_of(c)->traits & HAS_MIG) && c->parent < 0;
}

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

/* Metrics that both cards and instances have. */
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

/* Values of cards while nothing uses them, and while something does. Of several rows of a
 * metric the first one counts whose traits the card has. */
#define SAME(metric, value) METRIC_##metric, value, value
static const struct plain {
	enum metric metric;
	double idle, busy;
	int halves;	 /* it grows, or falls, by so many times half the utilisation */
	unsigned traits; /* that a card must have */
} plain[] = {
	{ METRIC_CLOCK_GRAPHICS, 210, 1410, 0, 0 },
	{ METRIC_CLOCK_SM, 210, 1410, 0, 0 },
	{ METRIC_CLOCK_VIDEO, 585, 1275, 0, 0 },
	{ METRIC_PSTATE, 8, 0, 0, 0 },
	{ METRIC_PCIE_GEN_CURRENT, 1, 4, 0, 0 },
	{ METRIC_PCIE_GEN_GPU_CURRENT, 1, 4, 0, 0 },
	{ METRIC_REASONS, 1, 0, 0, 0 },
	{ SAME(REASONS_SUPPORTED, 0x1ff), 0, 0 },
	{ SAME(CLOCK_MEMORY, 1593), 0, 0 },
	{ SAME(CLOCK_MAX_MEMORY, 1593), 0, 0 },
	{ SAME(CLOCK_APP_MEMORY, 1593), 0, 0 },
	{ SAME(CLOCK_DEFAULT_MEMORY, 1593), 0, 0 },
	{ SAME(CLOCK_APP_GRAPHICS, 1275), 0, 0 },
	{ SAME(CLOCK_DEFAULT_GRAPHICS, 1275), 0, 0 },
	{ SAME(CLOCK_MAX_GRAPHICS, 1410), 0, 0 },
	{ SAME(CLOCK_MAX_SM, 1410), 0, 0 },
	{ SAME(CLOCK_MAX_VIDEO, 1290), 0, 0 },
	{ SAME(POWER_VIOLATION, 0), 0, 0 },
	{ SAME(THERMAL_VIOLATION, 0), 0, 0 },
	{ SAME(COUNTER_SW_POWER, 0), 0, 0 },
	{ SAME(COUNTER_SYNC, 0), 0, 0 },
	{ SAME(POWER_MANAGEMENT, 1), 0, 0 },
	{ SAME(PERSISTENCE_MODE, 1), 0, 0 },
	{ SAME(GSP_CURRENT, 1), 0, 0 },
	{ SAME(GSP_DEFAULT, 1), 0, 0 },
	{ SAME(DISPLAY_MODE, 0), 0, 0 },
	{ SAME(DISPLAY_ATTACHED, 0), 0, 0 },
	{ SAME(DISPLAY_ACTIVE, 0), 0, 0 },
	{ SAME(ADDRESSING_MODE, 0), 0, 0 },
	{ SAME(RESET_REQUIRED, 0), 0, 0 },
	{ SAME(RESET_RECOMMENDED, 0), 0, 0 },
	{ SAME(RECOVERY_ACTION, 0), 0, 0 },
	{ SAME(C2C_MODE, 0), 0, 0 },
	{ SAME(PROTECTED_TOTAL, 0), 0, 0 },
	{ SAME(PROTECTED_USED, 0), 0, 0 },
	{ SAME(PROTECTED_FREE, 0), 0, 0 },
	{ SAME(ACCOUNTING_BUFFER, 4000), 0, 0 },
	{ SAME(PCIE_REPLAYS, 0), 0, 0 },
	{ SAME(PCIE_ROLLOVERS, 0), 0, 0 },
	{ SAME(ENCODER_SESSIONS, 0), 0, 0 },
	{ SAME(ENCODER_FPS, 0), 0, 0 },
	{ SAME(ENCODER_LATENCY, 0), 0, 0 },
	{ SAME(COMPUTE_CAP, 8), 0, 0 },
	{ SAME(PCIE_GEN_MAX, 4), 0, 0 },
	{ SAME(PCIE_GEN_GPU_MAX, 4), 0, 0 },
	{ SAME(PCIE_WIDTH_CURRENT, 16), 0, 0 },
	{ SAME(PCIE_WIDTH_MAX, 16), 0, 0 },
	{ SAME(PCI_CLASS, 3), 0, 0 },
	{ SAME(PCI_DEVICE_ID, 0x20b210de), 0, 0 },
	{ SAME(PCI_SUB_DEVICE_ID, 0x146310de), 0, 0 },
	{ SAME(MULTI_GPU_BOARD, 0), 0, 0 },
	{ SAME(TEMPERATURE_SHUTDOWN, 92), 0, 0 },
	{ SAME(TEMPERATURE_SLOWDOWN, 89), 0, 0 },
	{ SAME(TEMPERATURE_MAX, 85), 0, 0 },
	{ SAME(TEMPERATURE_GPU, 30), 1, 0 },
	{ SAME(TEMPERATURE_MEMORY, 34), 1, PASSIVE },
	{ SAME(FAN_SPEED, 30), 1, FANS },
	{ SAME(TEMPERATURE_TARGET, 83), 0, FANS },
	{ SAME(TEMPERATURE_TARGET_MIN, 65), 0, FANS },
	{ SAME(TEMPERATURE_TARGET_MAX, 91), 0, FANS },
	{ SAME(TEMPERATURE_MARGIN, 55), -1, FABRIC },
	{ SAME(MARGIN_SHUTDOWN, -8), 0, FABRIC },
	{ SAME(MARGIN_SLOWDOWN, -2), 0, FABRIC },
	{ SAME(MARGIN_MAX, 0), 0, FABRIC },
	{ SAME(MARGIN_MEMORY_MAX, 0), 0, FABRIC },
	{ SAME(TEMPERATURE_MEMORY_MAX, 95), 0, HAS_ECC },
	{ SAME(UTILIZATION_MEMORY, 0), 1, MIG_OFF },
	{ SAME(UTILIZATION_ENCODER, 0), 0, MIG_OFF },
	{ SAME(UTILIZATION_DECODER, 0), 0, MIG_OFF },
	{ SAME(UTILIZATION_JPEG, 0), 0, MIG_OFF },
	{ SAME(UTILIZATION_OFA, 0), 0, MIG_OFF },
	{ SAME(MEMORY_POWER_AVERAGE, 40), 0, FABRIC },
	{ SAME(MEMORY_POWER_INSTANT, 40), 0, FABRIC },
	{ SAME(EDPP, 100), 0, FABRIC },
	{ SAME(REMAPPED_CORRECTABLE, 0), 0, HAS_ECC },
	{ SAME(REMAPPED_UNCORRECTABLE, 0), 0, HAS_ECC },
	{ SAME(REMAPPED_PENDING, 0), 0, HAS_ECC },
	{ SAME(REMAPPED_FAILURE, 0), 0, HAS_ECC },
	{ SAME(ECC_CURRENT, 1), 0, HAS_ECC },
	{ SAME(ECC_PENDING, 1), 0, HAS_ECC },
	{ SAME(INFOROM_CHECK, 1), 0, HAS_ECC },
	{ SAME(CLOCK_BOOST_MAX, 1410), 0, HAS_ECC },
	{ SAME(PCI_SUB_CLASS, 2), 0, HAS_ECC },
	{ SAME(PCI_SUB_CLASS, 0), 0, 0 },
	{ SAME(DRAM_ENCRYPTION_CURRENT, 0), 0, NEWEST },
	{ SAME(DRAM_ENCRYPTION_PENDING, 0), 0, NEWEST },
	{ SAME(FABRIC_STATE, 3), 0, JOINED },
	{ SAME(FABRIC_STATE, 2), 0, FABRIC },
	{ SAME(FABRIC_CLIQUE, 7), 0, JOINED },
	{ SAME(FABRIC_HEALTH, 3), 0, NEWEST },
	{ SAME(FABRIC_HEALTH, 1), 0, JOINED },
	{ SAME(FABRIC_BANDWIDTH, 1), 0, NEWEST },
	{ SAME(FABRIC_BANDWIDTH, 2), 0, JOINED },
	{ SAME(FABRIC_RECOVERY, 2), 0, JOINED },
	{ SAME(FABRIC_UNHEALTHY, 2), 0, JOINED },
	{ SAME(FABRIC_TIMEOUT, 2), 0, JOINED },
	{ SAME(PLATFORM_SLOT, 10), 0, NEWEST },
	{ SAME(PLATFORM_TRAY, 11), 0, NEWEST },
	{ SAME(PLATFORM_HOST, 12), 0, NEWEST },
	{ SAME(PLATFORM_PEER, 0), 0, NEWEST },
	{ SAME(PLATFORM_MODULE, 14), 0, NEWEST },
};

static double plain_metric(const struct scenario_card *c, double util, enum metric m)
{
	unsigned traits = traits_of(c);
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (plain[i].metric == m && !(plain[i].traits & ~traits))
			return (util > 0 ? plain[i].busy : plain[i].idle) +
			       plain[i].halves * floor(util / 2);
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
	if (!(model_of(c)->traits & HAS_ECC))
		return NAN;
	if (m == METRIC_ROWS_MAX)
		return 640;
	if (!strstr(c->id.name, "V100"))
		return 0;
	return m == METRIC_SRAM_THRESHOLD ? 1 : at + (counts_dram ? 1 : 0);
}

static double card_metric(const struct scenario_card *c, double util, enum metric m)
{
	unsigned domain = 0, bus = 0;
	if ((m >= METRIC_ECC_CORRECTED_VOLATILE_DEVICE && m <= METRIC_SRAM_IN_OTHER) ||
		(m >= METRIC_ROWS_MAX && m <= METRIC_ROWS_NONE))
		return error_metric(c, m);
	switch (m) {
	case METRIC_MINOR_NUMBER:
		return c->id.index;
	case METRIC_MODULE_ID:
		return c->id.index + 1;
	case METRIC_BOARD_ID:
		return sscanf(c->id.pci, "%x:%x", &domain, &bus) == 2 ? (double)(bus << 8)
								      : NAN;
	case METRIC_BRAND:
		return model_of(c)->brand;
	case METRIC_ARCHITECTURE:
		return model_of(c)->architecture;
	case METRIC_VIRTUALIZATION: /* the name of a guest's virtual GPU shows it */
		return strstr(c->id.name, "GRID") ? 2 : 0;
	case METRIC_MIG_CURRENT:
	case METRIC_MIG_PENDING:
		return play_metric_can_mig(c) ? c->has_mig : NAN;
	case METRIC_UTILIZATION_GPU:
		return c->has_mig ? NAN : util;
	default:
		return plain_metric(c, util, m);
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
	return isnan(value) ? card_metric(c, util, m) : value;
}

/* Texts that are the same for all cards with these traits. */
static const struct plain_text {
	enum metric metric;
	unsigned traits;
	const char *text;
} plain_texts[] = {
	{ METRIC_INFOROM_IMAGE, 0, "G500.0200.00.03" },
	{ METRIC_INFOROM_OEM, 0, "2.1" },
	{ METRIC_INFOROM_ECC, HAS_ECC, "6.16" },
	{ METRIC_FABRIC_STATUS, JOINED, "Success" },
	{ METRIC_FABRIC_CLUSTER, JOINED, "00010203-0405-0607-0809-0a0b0c0d0e0f" },
	{ METRIC_PLATFORM_CHASSIS, NEWEST, "1821325190344" },
	{ METRIC_PLATFORM_GUID, NEWEST, "0xFFEEDDCCBBAA9988" },
};

bool play_metric_text(
	const struct scenario *s, size_t unit, enum metric m, char *dst, size_t cap)
{
	const struct scenario_card *c = &s->cards[unit];
	unsigned traits = model_of(c)->traits;
	const char *dot = strchr(s->nvml, '.');
	if (c->parent >= 0)
		return false;
	for (size_t i = 0; i < sizeof(plain_texts) / sizeof(plain_texts[0]); i++)
		if (plain_texts[i].metric == m)
			return !(plain_texts[i].traits & ~traits) &&
			       str_copy(dst, cap, plain_texts[i].text);
	if (m == METRIC_SERIAL)
		snprintf(dst, cap, "15%011u", (unsigned)unit + 1);
	else if (m == METRIC_VBIOS_VERSION)
		snprintf(dst, cap, "92.00.%02X.00.01", (unsigned)unit + 0x19);
	else if (m == METRIC_NVML_VERSION) /* without the CUDA version that comes first */
		snprintf(dst, cap, "%s", dot ? dot + 1 : s->nvml);
	else if (m == METRIC_GSP_FIRMWARE)
		snprintf(dst, cap, "%s", s->driver);
	else if (m == METRIC_BOARD_PART && traits & HAS_ECC)
		snprintf(dst, cap, "692-2G506-0212-%03u", (unsigned)unit + 1);
	else if (m == METRIC_HOSTNAME && traits & NEWEST)
		snprintf(dst, cap, "tray-%u", (unsigned)unit);
	else
		return false;
	return true;
}
