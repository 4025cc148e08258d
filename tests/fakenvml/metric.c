/* The fake library's single numbers: temperatures, clocks, limits, modes, errors; what they are
 * is told by the same functions as in the simulated source. */
#include "fake.h"

#include <math.h>
#include <string.h>

#include "exports.h"

/* Writes a metric; NOT_SUPPORTED when the card has none. */
static int give(unsigned *value, size_t unit, enum metric m, double scale)
{
	struct fake *f = fake_state();
	double number = play_metric(f->play, f->scenario, unit, m);
	if (isnan(number))
		return NOT_SUPPORTED;
	*value = (unsigned)(number * scale);
	return SUCCESS;
}

static int give_long(unsigned long long *value, size_t unit, enum metric m)
{
	struct fake *f = fake_state();
	double number = play_metric(f->play, f->scenario, unit, m);
	if (isnan(number))
		return NOT_SUPPORTED;
	*value = (unsigned long long)number;
	return SUCCESS;
}

#define ONE(Name, metric, scale)                                                               \
	EXPORT int nvmlDeviceGet##Name(void *device, unsigned *value)                          \
	{                                                                                      \
		ENTER_DEVICE(device, "%s", "");                                                \
		(void)f;                                                                       \
		return fake_leave(give(value, unit, METRIC_##metric, scale));                  \
	}
/* The second number may be one that no metric has. */
#define TWO(Name, first, second, scale)                                                        \
	EXPORT int nvmlDeviceGet##Name(void *device, unsigned *a, unsigned *b)                 \
	{                                                                                      \
		ENTER_DEVICE(device, "%s", "");                                                \
		(void)f;                                                                       \
		if (give(b, unit, METRIC_##second, scale) != SUCCESS)                          \
			*b = 167000;                                                           \
		return fake_leave(give(a, unit, METRIC_##first, scale));                       \
	}
#define OF(Name, ...)                                                                          \
	EXPORT int nvmlDeviceGet##Name(void *device, int which, unsigned *value)               \
	{                                                                                      \
		static const enum metric list[] = { __VA_ARGS__ };                             \
		ENTER_DEVICE(device, "which=%d", which);                                       \
		(void)f;                                                                       \
		if (which < 0 || which >= (int)(sizeof(list) / sizeof(list[0])))               \
			return fake_leave(INVALID_ARGUMENT);                                   \
		return fake_leave(give(value, unit, list[which], 1));                          \
	}
#define LONG(Name, metric)                                                                     \
	EXPORT int nvmlDeviceGet##Name(void *device, unsigned long long *value)                \
	{                                                                                      \
		ENTER_DEVICE(device, "%s", "");                                                \
		(void)f;                                                                       \
		return fake_leave(give_long(value, unit, METRIC_##metric));                    \
	}
#define TEXT(Name, metric)                                                                     \
	EXPORT int nvmlDeviceGet##Name(void *device, char *text, unsigned length)              \
	{                                                                                      \
		ENTER_DEVICE(device, "%s", "");                                                \
		bool has = play_metric_text(f->scenario, unit, METRIC_##metric, text, length); \
		return fake_leave(has ? SUCCESS : NOT_SUPPORTED);                              \
	}
#include "metrics.def"

EXPORT int nvmlDeviceGetEncoderStats(
	void *device, unsigned *sessions, unsigned *fps, unsigned *us)
{
	ENTER_DEVICE(device, "%s", "");
	(void)f;
	*fps = *us = 0;
	return fake_leave(give(sessions, unit, METRIC_ENCODER_SESSIONS, 1));
}

EXPORT int nvmlDeviceGetRemappedRows(void *device, unsigned *corrected, unsigned *others,
	unsigned *pending, unsigned *failed)
{
	ENTER_DEVICE(device, "%s", "");
	(void)f;
	*others = *pending = *failed = 0;
	return fake_leave(give(corrected, unit, METRIC_REMAPPED_CORRECTABLE, 1));
}

EXPORT int nvmlDeviceGetTotalEccErrors(
	void *device, int type, int counter, unsigned long long *n)
{
	static const enum metric list[2][2] = { { METRIC_ECC_CORRECTED_VOLATILE,
							METRIC_ECC_CORRECTED_AGGREGATE },
		{ METRIC_ECC_UNCORRECTED_VOLATILE, METRIC_ECC_UNCORRECTED_AGGREGATE } };
	ENTER_DEVICE(device, "type=%d counter=%d", type, counter);
	(void)f;
	if (type < 0 || type > 1 || counter < 0 || counter > 1)
		return fake_leave(INVALID_ARGUMENT);
	return fake_leave(give_long(n, unit, list[type][counter]));
}

EXPORT int nvmlDeviceGetBAR1MemoryInfo(void *device, struct abi_memory *memory)
{
	ENTER_DEVICE(device, "%s", "");
	(void)f;
	unsigned long long total = 0, used = 0;
	int code = give_long(&total, unit, METRIC_BAR1_TOTAL);
	if (code == SUCCESS)
		code = give_long(&used, unit, METRIC_BAR1_USED);
	*memory = (struct abi_memory){ total, total - used, used };
	return fake_leave(code);
}

/* Fields that it has: id, metric, what one unit of the metric is in the driver's. */
static const struct field {
	uint32_t id;
	enum metric metric;
	double scale;
	uint32_t scope;
} fields_known[] = {
	{ 74, METRIC_POWER_VIOLATION, 1, 0 },
	{ 75, METRIC_THERMAL_VIOLATION, 1, 0 },
	{ 76, METRIC_COUNTER_SYNC, 1, 0 },
	{ 82, METRIC_TEMPERATURE_MEMORY, 1, 0 },
	{ 95, METRIC_PCIE_ROLLOVERS, 1, 0 },
	{ 185, METRIC_POWER_AVERAGE, 1000, 0 },
	{ 186, METRIC_POWER_INSTANT, 1000, 0 },
	{ 185, METRIC_MEMORY_POWER_AVERAGE, 1000, 2 },
	{ 186, METRIC_MEMORY_POWER_INSTANT, 1000, 2 },
	{ 193, METRIC_MARGIN_SHUTDOWN, 1, 0 },
	{ 194, METRIC_MARGIN_SLOWDOWN, 1, 0 },
	{ 195, METRIC_MARGIN_MEMORY_MAX, 1, 0 },
	{ 196, METRIC_MARGIN_MAX, 1, 0 },
	{ 197, METRIC_PCIE_TX, 1, 0 },
	{ 198, METRIC_PCIE_RX, 1, 0 },
	{ 226, METRIC_RESET_REQUIRED, 1, 0 },
	{ 227, METRIC_RESET_RECOMMENDED, 1, 0 },
	{ 230, METRIC_RECOVERY_ACTION, 1, 0 },
	{ 274, METRIC_EDPP, 1, 0 },
};

static void give_field(struct fake *f, size_t unit, struct abi_field *field)
{
	field->code = NOT_SUPPORTED;
	for (size_t i = 0; i < sizeof(fields_known) / sizeof(fields_known[0]); i++) {
		const struct field *known = &fields_known[i];
		double number = play_metric(f->play, f->scenario, unit, known->metric);
		if (known->id != field->id || field->scope != known->scope || isnan(number))
			continue;
		field->code = SUCCESS;
		field->type = number < 0 ? 4 : 3; /* 64 bits, signed or not */
		field->value = (uint64_t)(int64_t)(number * known->scale);
	}
}

EXPORT int nvmlDeviceGetFieldValues(void *device, int count, struct abi_field *fields)
{
	ENTER_DEVICE(device, "count=%d first=%u", count, count > 0 ? fields[0].id : 0);
	for (int i = 0; i < count; i++)
		give_field(f, unit, &fields[i]);
	return fake_leave(SUCCESS);
}

EXPORT int nvmlDeviceGetGspFirmwareVersion(void *device, char *version)
{
	ENTER_DEVICE(device, "%s", "");
	bool has = play_metric_text(f->scenario, unit, METRIC_GSP_FIRMWARE, version, 64);
	return fake_leave(has ? SUCCESS : NOT_SUPPORTED);
}
