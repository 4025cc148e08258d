/* Asks the driver for single numbers by a table: which call, how it is called, what to do with
 * the answer. The calls that measure PCIe traffic are not in it, because each blocks for 20 ms:
 * running counters are. */
#include "source/nvml_metric.h"

#include <math.h>
#include <string.h>

#include "base/str.h"
#include "source/nvml.h"
#include "source/nvml_decode.h"

/* Signatures. */
enum shape {
	ONE,	/* (device, unsigned *) */
	TWO,	/* (device, unsigned *, unsigned *) */
	POINT,	/* the same: what is before and behind the point of one number */
	THREE,	/* the same with three */
	FOUR,	/* and with four */
	LONG,	/* (device, unsigned long long *) */
	OF,	/* (device, int which, unsigned *) */
	ERRORS, /* (device, int type, int counter, unsigned long long *) */
	TEXT,	/* (device, char *, unsigned length) */
	BYTES,	/* (device, {u64 total, free, used} *) */
	FIELD,	/* nvmlDeviceGetFieldValues with one field */
	PCI,	/* the calls of the source itself */
	MEMORY,
	RATES,
};

struct row {
	enum metric metric;
	enum shape shape;
	const char *symbol, *older; /* the first that is there is taken; NULL: none */
	int which;		    /* OF, FIELD: the number; ERRORS: the type */
	int other;		    /* ERRORS: the counter */
	int out;		    /* which of several answers */
	double scale;		    /* the answer times this is the value; 0: 1 */
	bool instance;		    /* MIG instances have one of their own */
};

/* clang-format off */
#define CALL(metric_, shape_, symbol_, ...)                                                    \
	{ .metric = METRIC_##metric_, .shape = shape_, .symbol = "nvmlDeviceGet" symbol_, __VA_ARGS__ }
#define VALUE(metric_, number, ...)                                                            \
	{ .metric = METRIC_##metric_, .shape = FIELD, .symbol = "nvmlDeviceGetFieldValues",    \
		.which = (number), __VA_ARGS__ }
/* clang-format on */

static const struct row rows[] = {
	CALL(SERIAL, TEXT, "Serial"),
	CALL(VBIOS_VERSION, TEXT, "VbiosVersion"),
	CALL(INFOROM_IMAGE, TEXT, "InforomImageVersion"),
	{ METRIC_PCI_DEVICE_ID, PCI, .out = 0 },
	{ METRIC_PCI_SUB_DEVICE_ID, PCI, .out = 1 },
	{ METRIC_MEMORY_TOTAL, MEMORY, .out = 0, .instance = true },
	{ METRIC_MEMORY_RESERVED, MEMORY, .out = 1, .instance = true },
	{ METRIC_MEMORY_FREE, MEMORY, .out = 2, .instance = true },
	{ METRIC_MEMORY_USED, MEMORY, .out = 3, .instance = true },
	{ METRIC_UTILIZATION_GPU, RATES, .out = 0 },
	{ METRIC_UTILIZATION_MEMORY, RATES, .out = 1 },
	CALL(PCIE_GEN_CURRENT, ONE, "CurrPcieLinkGeneration"),
	CALL(PCIE_GEN_MAX, ONE, "MaxPcieLinkGeneration"),
	CALL(PCIE_GEN_GPU_MAX, ONE, "GpuMaxPcieLinkGeneration"),
	CALL(PCIE_WIDTH_CURRENT, ONE, "CurrPcieLinkWidth"),
	CALL(PCIE_WIDTH_MAX, ONE, "MaxPcieLinkWidth"),
	CALL(PCIE_REPLAYS, ONE, "PcieReplayCounter"),
	VALUE(PCIE_TX, 197),
	VALUE(PCIE_RX, 198),
	CALL(PERSISTENCE_MODE, ONE, "PersistenceMode"),
	CALL(COMPUTE_CAP, POINT, "CudaComputeCapability"),
	CALL(COMPUTE_MODE, ONE, "ComputeMode", .instance = true),
	CALL(DISPLAY_MODE, ONE, "DisplayMode"),
	CALL(DISPLAY_ACTIVE, ONE, "DisplayActive"),
	CALL(ACCOUNTING_MODE, ONE, "AccountingMode"),
	CALL(ACCOUNTING_BUFFER, ONE, "AccountingBufferSize"),
	CALL(PSTATE, ONE, "PerformanceState"),
	CALL(REASONS_SUPPORTED, LONG, "SupportedClocksEventReasons",
		.older = "nvmlDeviceGetSupportedClocksThrottleReasons"),
	CALL(REASONS, LONG, "CurrentClocksEventReasons",
		.older = "nvmlDeviceGetCurrentClocksThrottleReasons"),
	CALL(TEMPERATURE_GPU, OF, "Temperature", .which = 0),
	VALUE(TEMPERATURE_MEMORY, 82),
	CALL(FAN_SPEED, ONE, "FanSpeed"),
	CALL(UTILIZATION_ENCODER, TWO, "EncoderUtilization"),
	CALL(UTILIZATION_DECODER, TWO, "DecoderUtilization"),
	CALL(UTILIZATION_JPEG, TWO, "JpgUtilization"),
	CALL(UTILIZATION_OFA, TWO, "OfaUtilization"),
	CALL(ENCODER_SESSIONS, THREE, "EncoderStats", .out = 0),
	CALL(ENCODER_FPS, THREE, "EncoderStats", .out = 1),
	CALL(ENCODER_LATENCY, THREE, "EncoderStats", .out = 2),
	CALL(BAR1_TOTAL, BYTES, "BAR1MemoryInfo", .out = 0, .instance = true),
	CALL(BAR1_USED, BYTES, "BAR1MemoryInfo", .out = 2, .instance = true),
	CALL(POWER_DRAW, ONE, "PowerUsage", .scale = 1e-3),
	VALUE(POWER_AVERAGE, 185, .scale = 1e-3),
	VALUE(POWER_INSTANT, 186, .scale = 1e-3),
	CALL(POWER_LIMIT, ONE, "PowerManagementLimit", .scale = 1e-3),
	CALL(POWER_ENFORCED, ONE, "EnforcedPowerLimit", .scale = 1e-3),
	CALL(POWER_DEFAULT, ONE, "PowerManagementDefaultLimit", .scale = 1e-3),
	CALL(POWER_MIN, TWO, "PowerManagementLimitConstraints", .out = 0, .scale = 1e-3),
	CALL(POWER_MAX, TWO, "PowerManagementLimitConstraints", .out = 1, .scale = 1e-3),
	CALL(ENERGY, LONG, "TotalEnergyConsumption", .scale = 1e-3),
	VALUE(POWER_VIOLATION, 74),
	VALUE(THERMAL_VIOLATION, 75),
	CALL(CLOCK_GRAPHICS, OF, "ClockInfo", .which = 0),
	CALL(CLOCK_SM, OF, "ClockInfo", .which = 1),
	CALL(CLOCK_MEMORY, OF, "ClockInfo", .which = 2),
	CALL(CLOCK_VIDEO, OF, "ClockInfo", .which = 3),
	CALL(CLOCK_APP_GRAPHICS, OF, "ApplicationsClock", .which = 0),
	CALL(CLOCK_APP_MEMORY, OF, "ApplicationsClock", .which = 2),
	CALL(CLOCK_DEFAULT_GRAPHICS, OF, "DefaultApplicationsClock", .which = 0),
	CALL(CLOCK_DEFAULT_MEMORY, OF, "DefaultApplicationsClock", .which = 2),
	CALL(CLOCK_MAX_GRAPHICS, OF, "MaxClockInfo", .which = 0),
	CALL(CLOCK_MAX_SM, OF, "MaxClockInfo", .which = 1),
	CALL(CLOCK_MAX_MEMORY, OF, "MaxClockInfo", .which = 2),
	CALL(ECC_CURRENT, TWO, "EccMode", .out = 0),
	CALL(ECC_PENDING, TWO, "EccMode", .out = 1),
	CALL(ECC_CORRECTED_VOLATILE, ERRORS, "TotalEccErrors", .which = 0, .other = 0),
	CALL(ECC_CORRECTED_AGGREGATE, ERRORS, "TotalEccErrors", .which = 0, .other = 1),
	CALL(ECC_UNCORRECTED_VOLATILE, ERRORS, "TotalEccErrors", .which = 1, .other = 0),
	CALL(ECC_UNCORRECTED_AGGREGATE, ERRORS, "TotalEccErrors", .which = 1, .other = 1),
	VALUE(RETIRED_SBE, 29),
	VALUE(RETIRED_DBE, 30),
	VALUE(RETIRED_PENDING, 31),
	CALL(REMAPPED_CORRECTABLE, FOUR, "RemappedRows", .out = 0),
	CALL(REMAPPED_UNCORRECTABLE, FOUR, "RemappedRows", .out = 1),
	CALL(REMAPPED_PENDING, FOUR, "RemappedRows", .out = 2),
	CALL(REMAPPED_FAILURE, FOUR, "RemappedRows", .out = 3),
	CALL(MIG_CURRENT, TWO, "MigMode", .out = 0),
	CALL(MIG_PENDING, TWO, "MigMode", .out = 1),
	CALL(GOM_CURRENT, TWO, "GpuOperationMode", .out = 0),
	CALL(GOM_PENDING, TWO, "GpuOperationMode", .out = 1),
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };
_Static_assert((int)ROWS <= (int)NVML_METRIC_ROWS, "room for every row");

void nvml_find_metrics(struct nvml_source *s)
{
	for (size_t i = 0; i < ROWS; i++) {
		void *found = rows[i].symbol ? nvml_lib_find(&s->lib, rows[i].symbol) : NULL;
		if (!found && rows[i].older)
			found = nvml_lib_find(&s->lib, rows[i].older);
		s->metric_calls.call[i] = found;
	}
}

/* One answer of the driver: numbers or a text. */
struct answer {
	double numbers[4];
	char text[METRIC_TEXT_CAP];
};

static int ask_memory(struct nvml_source *s, void *handle, struct answer *a)
{
	struct nvml_memory_v2 v2 = { .version = NVML_VERSION_WORD(struct nvml_memory_v2, 2) };
	struct nvml_memory v1 = { 0 };
	int code = NVML_CALL(s->lib.api.memory_v2, handle, &v2);
	double numbers[] = { (double)v2.total, (double)v2.reserved, (double)v2.free,
		(double)v2.used };
	if (code != NVML_OK) {
		code = NVML_CALL(s->lib.api.memory, handle, &v1);
		double older[] = { (double)v1.total, NAN, (double)v1.free, (double)v1.used };
		memcpy(numbers, older, sizeof(numbers));
	}
	/* Cards that share the host's memory say 0. */
	if (code == NVML_OK && numbers[0] == 0)
		return NVML_NOT_SUPPORTED;
	memcpy(a->numbers, numbers, sizeof(numbers));
	return code;
}

static int ask_pci(struct nvml_source *s, void *handle, struct answer *a)
{
	struct nvml_pci pci = { 0 };
	int code = NVML_CALL(s->lib.api.pci, handle, &pci);
	a->numbers[0] = pci.ids;
	a->numbers[1] = pci.subsystem_ids;
	return code;
}

static int ask_rates(struct nvml_source *s, void *handle, struct answer *a)
{
	struct nvml_rates rates = { 0 };
	int code = NVML_CALL(s->lib.api.rates, handle, &rates);
	a->numbers[0] = rates.gpu_pct;
	a->numbers[1] = rates.memory_pct;
	return code;
}

static double field_number(const struct nvml_field *f)
{
	struct nvml_sample sample = { 0 };
	memcpy(sample.value, f->value, sizeof(sample.value));
	return nvml_sample_value(&sample, (int)f->type);
}

static int ask_field(
	int (*call)(void *, int, struct nvml_field *), void *handle, int id, struct answer *a)
{
	struct nvml_field field = { .id = (uint32_t)id };
	int code = call(handle, 1, &field);
	if (code == NVML_OK)
		code = field.code;
	a->numbers[0] = field_number(&field);
	return code;
}

/* The calls by signature. */
union call {
	void *found;
	int (*one)(void *, unsigned *);
	int (*two)(void *, unsigned *, unsigned *);
	int (*three)(void *, unsigned *, unsigned *, unsigned *);
	int (*four)(void *, unsigned *, unsigned *, unsigned *, unsigned *);
	int (*number)(void *, unsigned long long *);
	int (*of)(void *, int, unsigned *);
	int (*errors)(void *, int, int, unsigned long long *);
	int (*text)(void *, char *, unsigned);
	int (*bytes)(void *, struct nvml_memory *);
	int (*field)(void *, int, struct nvml_field *);
};

static int ask_call(const struct row *row, union call call, void *handle, struct answer *a)
{
	unsigned out[4] = { 0 };
	unsigned long long number = 0;
	struct nvml_memory bytes = { 0 };
	int code = NVML_NO_FUNCTION;
	if (row->shape == ONE)
		code = call.one(handle, &out[0]);
	else if (row->shape == TWO || row->shape == POINT)
		code = call.two(handle, &out[0], &out[1]);
	else if (row->shape == THREE)
		code = call.three(handle, &out[0], &out[1], &out[2]);
	else if (row->shape == FOUR)
		code = call.four(handle, &out[0], &out[1], &out[2], &out[3]);
	else if (row->shape == OF)
		code = call.of(handle, row->which, &out[0]);
	else if (row->shape == LONG)
		code = call.number(handle, &number);
	else if (row->shape == ERRORS)
		code = call.errors(handle, row->which, row->other, &number);
	else if (row->shape == FIELD)
		return ask_field(call.field, handle, row->which, a);
	else if (row->shape == BYTES)
		code = call.bytes(handle, &bytes);
	for (size_t i = 0; i < 4; i++)
		a->numbers[i] = out[i];
	if (row->shape == LONG || row->shape == ERRORS)
		a->numbers[0] = (double)number;
	if (row->shape == POINT)
		a->numbers[0] += a->numbers[1] / 10;
	if (row->shape == BYTES) {
		a->numbers[0] = (double)bytes.total;
		a->numbers[2] = (double)bytes.used;
	}
	return code;
}

static int ask_text(union call call, void *handle, struct answer *a)
{
	char raw[METRIC_TEXT_CAP] = "";
	int code = call.text(handle, raw, sizeof(raw));
	text_escape(a->text, sizeof(a->text), raw, strnlen(raw, sizeof(raw)));
	return code;
}

static int ask(struct nvml_source *s, size_t row, void *handle, struct answer *a)
{
	union call call = { .found = s->metric_calls.call[row] };
	switch (rows[row].shape) {
	case MEMORY:
		return ask_memory(s, handle, a);
	case PCI:
		return ask_pci(s, handle, a);
	case RATES:
		return ask_rates(s, handle, a);
	default:
		break;
	}
	if (!call.found)
		return NVML_NO_FUNCTION;
	return rows[row].shape == TEXT ? ask_text(call, handle, a)
				       : ask_call(&rows[row], call, handle, a);
}

static bool is_for_good(int code)
{
	return code == NVML_NOT_SUPPORTED || code == NVML_NO_FUNCTION ||
	       code == NVML_BAD_VERSION || code == NVML_DEPRECATED || code == NVML_BAD_ARGUMENT;
}

static bool is_fatal(int code)
{
	return code == NVML_LOST || code == NVML_RESET_REQUIRED || code == NVML_UNINITIALISED ||
	       code == NVML_NO_DRIVER || code == NVML_MISMATCH;
}

/* Whether two rows are answered by one call: neighbours of the same kind. */
static bool same_call(const struct row *a, const struct row *b)
{
	bool same_symbol = a->symbol && b->symbol ? strcmp(a->symbol, b->symbol) == 0
						  : a->symbol == b->symbol;
	return a->shape == b->shape && same_symbol && a->which == b->which &&
	       a->other == b->other;
}

static void take_answer(
	const struct row *row, const struct answer *a, double *values, metric_texts texts)
{
	double number = a->numbers[row->out] * (row->scale != 0 ? row->scale : 1);
	if (row->shape == TEXT)
		memcpy(texts[row->metric], a->text, METRIC_TEXT_CAP);
	else
		values[row->metric] = number;
}

void nvml_metrics(struct source *base, size_t card, bool board, const unsigned char *wanted,
	double *values, metric_texts texts)
{
	struct nvml_source *s = (struct nvml_source *)base;
	struct nvml_card *c = &s->cards[card];
	struct nvml_device *d = &s->devices[c->device];
	struct nvml_dead *dead = board ? &d->dead : &c->dead;
	const struct row *last = NULL;
	struct answer a = { 0 };
	int code = NVML_OK;
	for (size_t i = 0; i < ROWS; i++) {
		void *handle = board ? d->handle : c->handle;
		if (!handle || s->down)
			return;
		if (!wanted[rows[i].metric] || dead->row[i] || (!board && !rows[i].instance))
			continue;
		if (!last || !same_call(last, &rows[i]))
			code = ask(s, i, handle, &a);
		last = &rows[i];
		dead->row[i] = is_for_good(code);
		if (is_fatal(code))
			nvml_heed(s, card, code);
		if (code == NVML_OK)
			take_answer(&rows[i], &a, values, texts);
	}
}
