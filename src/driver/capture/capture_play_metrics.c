/* A function for each row of nvml_metrics.def, with the signature of its shape. */
#include <string.h>

#include "driver/nvml/nvml_metric_abi.h"
#include "driver/nvml/nvml_metric_rows.h"
#include "driver/capture/capture_play_private.h"

/* The name by which the capture has the call of a metric. */
static const char *symbol_of(enum metric metric)
{
	const struct nvml_recorded *r = play_current()->recorded;
	for (size_t i = 0; i < nvml_n_metric_rows; i++) {
		const struct nvml_call *row = &nvml_metric_rows[i];
		if (row->metric == metric)
			return row->older && !nvml_recorded_has(r, row->symbol) ? row->older
										: row->symbol;
	}
	return "";
}

static int play_many(enum metric metric, void *handle, void *const *out)
{
	const struct play_call call = { .handle = handle, .symbol = symbol_of(metric) };
	return play_out(&call, out);
}

/* With the caller's numbers. */
static int play_of(enum metric metric, void *handle, const int *args, void *out)
{
	struct play_call call = { .handle = handle, .symbol = symbol_of(metric) };
	memcpy(call.args, args, sizeof(call.args));
	return play_out(&call, &out);
}

static int play_words(enum metric metric, void *handle, int which, char *text, unsigned length)
{
	const struct play_call call = {
		.handle = handle, .symbol = symbol_of(metric), .args = { which }
	};
	return play_text(&call, text, length);
}

static int play_field(void *handle, int count, struct nvml_field *field)
{
	const struct play_call call = { .handle = handle,
		.symbol = "nvmlDeviceGetFieldValues",
		.args = { (int)field->id, (int)field->scope } };
	struct {
		uint32_t type;
		int32_t code;
		uint64_t value;
	} got = { 0 };
	void *out = &got;
	(void)count;
	int code = play_out(&call, &out);
	field->type = got.type;
	field->code = got.code;
	memcpy(field->value, &got.value, sizeof(got.value));
	return code;
}

static int play_health(enum metric metric, void *handle, struct nvml_fabric_health *health)
{
	const int args[NVML_ARGS] = { (int)(health->version >> 24) };
	return play_of(metric, handle, args, health);
}

/* clang-format off */
#define OUT1(m) static int play_##m(void *h, void *a)                                          \
	{ void *out[] = { a }; return play_many(METRIC_##m, h, out); }
#define OUT2(m) static int play_##m(void *h, void *a, void *b)                                 \
	{ void *out[] = { a, b }; return play_many(METRIC_##m, h, out); }
#define OUT3(m) static int play_##m(void *h, void *a, void *b, void *c)                        \
	{ void *out[] = { a, b, c }; return play_many(METRIC_##m, h, out); }
#define OUT4(m) static int play_##m(void *h, void *a, void *b, void *c, void *d)               \
	{ void *out[] = { a, b, c, d }; return play_many(METRIC_##m, h, out); }
#define FUNCTION_ONE(m) OUT1(m)
#define FUNCTION_TWO(m) OUT2(m)
#define FUNCTION_POINT(m) OUT2(m)
#define FUNCTION_THREE(m) OUT3(m)
#define FUNCTION_FOUR(m) OUT4(m)
#define FUNCTION_FIVE(m) OUT1(m)
#define FUNCTION_LONG(m) OUT1(m)
#define FUNCTION_OF(m) static int play_##m(void *h, int x, void *a)                            \
	{ const int args[NVML_ARGS] = { x }; return play_of(METRIC_##m, h, args, a); }
#define FUNCTION_ERRORS(m) static int play_##m(void *h, int x, int y, void *a)                 \
	{ const int args[NVML_ARGS] = { x, y }; return play_of(METRIC_##m, h, args, a); }
#define FUNCTION_PLACE(m) static int play_##m(void *h, int x, int y, int z, void *a)           \
	{ const int args[NVML_ARGS] = { x, y, z }; return play_of(METRIC_##m, h, args, a); }
#define FUNCTION_TEXT(m) static int play_##m(void *h, char *text, unsigned length)             \
	{ return play_words(METRIC_##m, h, 0, text, length); }
#define FUNCTION_TEXT_OF(m) static int play_##m(void *h, int x, char *text, unsigned length)   \
	{ return play_words(METRIC_##m, h, x, text, length); }
#define FUNCTION_NAME(m) OUT1(m)
#define FUNCTION_SYSTEM(m) static int play_##m(void *a)                                        \
	{ void *out[] = { a }; return play_many(METRIC_##m, NULL, out); }
#define FUNCTION_CHECK(m) static int play_##m(void *h)                                         \
	{ return play_many(METRIC_##m, h, NULL); }
#define FUNCTION_VERSIONED(m) OUT1(m)
#define FUNCTION_VERSIONED_TWO(m) OUT2(m)
#define FUNCTION_CLASSES(m) OUT1(m)
#define FUNCTION_SRAM(m) OUT1(m)
#define FUNCTION_FABRIC(m) OUT1(m)
#define FUNCTION_FABRIC_RESULT(m) OUT1(m)
#define FUNCTION_FABRIC_CLUSTER(m) OUT1(m)
#define FUNCTION_HEALTH(m) static int play_##m(void *h, struct nvml_fabric_health *a)          \
	{ return play_health(METRIC_##m, h, a); }
#define FUNCTION_PLATFORM(m) OUT1(m)
#define FUNCTION_PLATFORM_GUID(m) OUT1(m)
#define FUNCTION_BYTES(m) OUT1(m)
/* Shapes without a call of their own. */
#define FUNCTION_PCI(m) enum { play_##m };
#define FUNCTION_MEMORY(m) enum { play_##m };
#define FUNCTION_RATES(m) enum { play_##m };
#define FUNCTION_LIBRARY(m) enum { play_##m };
#define FUNCTION_ROOT_PORT(m) enum { play_##m };

#define ROW(m, shape, ...) FUNCTION_##shape(m)
#define CALL(m, shape, ...) FUNCTION_##shape(m)
#define VALUE(m, ...)
#include "driver/nvml/nvml_metrics.def"
#undef ROW
#undef CALL
#undef VALUE

#define ROW(m, ...) [METRIC_##m] = (void *)play_##m,
#define CALL(m, ...) [METRIC_##m] = (void *)play_##m,
#define VALUE(m, ...) [METRIC_##m] = (void *)play_field,
static void *const functions[METRIC_COUNT] = {
#include "driver/nvml/nvml_metrics.def"
};
/* clang-format on */

void *play_find_metric(const char *symbol)
{
	for (size_t i = 0; i < nvml_n_metric_rows; i++) {
		const struct nvml_call *row = &nvml_metric_rows[i];
		bool same = row->symbol && strcmp(row->symbol, symbol) == 0;
		if (same || (row->older && strcmp(row->older, symbol) == 0))
			return functions[row->metric];
	}
	return NULL;
}
