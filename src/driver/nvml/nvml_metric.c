/* Asks the driver for single numbers by a table: which call, how it is called, what to do with
 * the answer. The calls that measure PCIe traffic are not in the table, because each blocks
 * for 20 ms; the running counters are. */
#include "driver/nvml/nvml_metric.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "driver/nvml/nvml.h"
#include "driver/nvml/nvml_decode.h"
#include "driver/nvml/nvml_host.h"
#include "driver/nvml/nvml_abi.h"

/* clang-format off */
#define ROW(metric_, shape_, ...)                                                              \
	{ .metric = METRIC_##metric_, .shape = SHAPE_##shape_, __VA_ARGS__ },
#define CALL(metric_, shape_, symbol_, ...)                                                    \
	ROW(metric_, shape_, .symbol = "nvmlDeviceGet" symbol_, __VA_ARGS__)
#define VALUE(metric_, number, ...)                                                            \
	ROW(metric_, FIELD, .symbol = "nvmlDeviceGetFieldValues", .which = (number), __VA_ARGS__)
const struct nvml_call nvml_metric_rows[] = {
#include "driver/nvml/nvml_metrics.def"
};
/* clang-format on */
enum { ROWS = sizeof(nvml_metric_rows) / sizeof(nvml_metric_rows[0]) };
_Static_assert((int)ROWS <= (int)NVML_METRIC_ROWS, "room for every row");
const size_t nvml_n_metric_rows = ROWS;

void nvml_metric_find_calls(struct nvml_source *s)
{
	for (size_t i = 0; i < nvml_n_metric_rows; i++) {
		void *found = nvml_metric_rows[i].symbol
				      ? nvml_lib_find(&s->lib, nvml_metric_rows[i].symbol)
				      : NULL;
		if (!found && nvml_metric_rows[i].older)
			found = nvml_lib_find(&s->lib, nvml_metric_rows[i].older);
		s->metric_calls.call[i] = found;
	}
}

/* One answer of the driver: numbers or a text. */
struct answer {
	double numbers[12];
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
	/* Cards that share the host's memory report 0. */
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

static int ask_library(const struct nvml_source *s, struct answer *a)
{
	str_copy(a->text, sizeof(a->text), s->lib.version);
	return NVML_OK;
}

static int ask_root_port(struct nvml_source *s, void *handle, struct answer *a)
{
	char address[PCI_CAP];
	struct nvml_pci pci = { 0 };
	int code = NVML_CALL(s->lib.api.pci, handle, &pci);
	snprintf(address, sizeof(address), "%04x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
	a->numbers[0] = code == NVML_OK ? nvml_host_root_port_gen(s->root, address) : NAN;
	return code;
}

static double field_number(const struct nvml_field *f)
{
	struct nvml_sample sample = { 0 };
	memcpy(sample.value, f->value, sizeof(sample.value));
	return nvml_decode_value(&sample, (int)f->type);
}

static int ask_field(int (*call)(void *, int, struct nvml_field *), const struct nvml_call *row,
	void *handle, struct answer *a)
{
	struct nvml_field field = { .id = (uint32_t)row->which, .scope = (uint32_t)row->other };
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
	int (*place)(void *, int, int, int, unsigned long long *);
	int (*text)(void *, char *, unsigned);
	int (*text_of)(void *, int, char *, unsigned);
	int (*name)(void *, char *);
	int (*system)(int *);
	int (*check)(void *);
	int (*versioned)(void *, struct nvml_versioned *);
	int (*versioned_two)(void *, struct nvml_versioned *, struct nvml_versioned *);
	int (*classes)(void *, struct nvml_pci_ext *);
	int (*sram)(void *, struct nvml_sram_errors *);
	int (*fabric)(void *, struct nvml_fabric *);
	int (*health)(void *, struct nvml_fabric_health *);
	int (*platform)(void *, struct nvml_platform *);
	int (*bytes)(void *, struct nvml_memory *);
	int (*field)(void *, int, struct nvml_field *);
};

static int ask_call(
	const struct nvml_call *row, union call call, void *handle, struct answer *a)
{
	unsigned out[5] = { 0 };
	unsigned long long number = 0;
	struct nvml_memory bytes = { 0 };
	int code = NVML_NO_FUNCTION;
	if (row->shape == SHAPE_ONE)
		code = call.one(handle, &out[0]);
	else if (row->shape == SHAPE_TWO || row->shape == SHAPE_POINT)
		code = call.two(handle, &out[0], &out[1]);
	else if (row->shape == SHAPE_THREE)
		code = call.three(handle, &out[0], &out[1], &out[2]);
	else if (row->shape == SHAPE_FOUR)
		code = call.four(handle, &out[0], &out[1], &out[2], &out[3]);
	else if (row->shape == SHAPE_FIVE)
		code = call.one(handle, out);
	else if (row->shape == SHAPE_OF)
		code = call.of(handle, row->which, &out[0]);
	else if (row->shape == SHAPE_LONG)
		code = call.number(handle, &number);
	else if (row->shape == SHAPE_ERRORS)
		code = call.errors(handle, row->which, row->other, &number);
	else if (row->shape == SHAPE_PLACE)
		code = call.place(handle, row->which, row->other, row->place, &number);
	else if (row->shape == SHAPE_FIELD)
		return ask_field(call.field, row, handle, a);
	else if (row->shape == SHAPE_BYTES)
		code = call.bytes(handle, &bytes);
	for (size_t i = 0; i < 5; i++)
		a->numbers[i] = out[i];
	if (row->shape == SHAPE_LONG || row->shape == SHAPE_ERRORS || row->shape == SHAPE_PLACE)
		a->numbers[0] = (double)number;
	if (row->shape == SHAPE_POINT)
		a->numbers[0] += a->numbers[1] / 10;
	if (row->shape == SHAPE_BYTES) {
		a->numbers[0] = (double)bytes.total;
		a->numbers[1] = (double)bytes.free;
		a->numbers[2] = (double)bytes.used;
	}
	return code;
}

static int ask_text(
	const struct nvml_call *row, union call call, void *handle, struct answer *a)
{
	char raw[METRIC_TEXT_CAP] = "";
	int code = row->shape == SHAPE_TEXT
			   ? call.text(handle, raw, sizeof(raw))
			   : call.text_of(handle, row->which, raw, sizeof(raw));
	str_escape(a->text, sizeof(a->text), raw, strnlen(raw, sizeof(raw)));
	return code;
}

static int ask_name(union call call, void *handle, struct answer *a)
{
	char raw[NVML_HOSTNAME_LEN] = "";
	int code = call.name(handle, raw);
	str_escape(a->text, sizeof(a->text), raw, strnlen(raw, sizeof(raw)));
	return code;
}

static int ask_system(union call call, struct answer *a)
{
	int number = 0;
	int code = call.system(&number);
	a->numbers[0] = number;
	return code;
}

/* A damaged infoROM is a valid answer, too. */
static int ask_check(union call call, void *handle, struct answer *a)
{
	int code = call.check(handle);
	a->numbers[0] = code == NVML_OK;
	return code == NVML_CORRUPTED ? NVML_OK : code;
}

static int ask_versioned(
	const struct nvml_call *row, union call call, void *handle, struct answer *a)
{
	struct nvml_versioned one = { .version = NVML_VERSION_WORD(one, 1) }, two = one;
	int code = row->shape == SHAPE_VERSIONED ? call.versioned(handle, &one)
						 : call.versioned_two(handle, &one, &two);
	a->numbers[0] = one.value;
	a->numbers[1] = two.value;
	return code;
}

static int ask_classes(union call call, void *handle, struct answer *a)
{
	struct nvml_pci_ext pci = { .version = NVML_VERSION_WORD(pci, 1) };
	int code = call.classes(handle, &pci);
	a->numbers[0] = pci.base_class;
	a->numbers[1] = pci.sub_class;
	return code;
}

static int ask_sram(union call call, void *handle, struct answer *a)
{
	struct nvml_sram_errors errors = { .version = NVML_VERSION_WORD(errors, 1) };
	int code = call.sram(handle, &errors);
	for (size_t i = 0; i < NVML_SRAM_COUNTS; i++)
		a->numbers[i] = (double)errors.counts[i];
	a->numbers[NVML_SRAM_COUNTS] = errors.threshold_exceeded != 0;
	return code;
}

/* The driver's own name of a code. */
static void error_name(struct nvml_source *s, int code, char *dst, size_t cap)
{
	union {
		void *found;
		const char *(*name)(int);
	} call = { .found = nvml_lib_find(&s->lib, "nvmlErrorString") };
	const char *name = call.found ? call.name(code) : "";
	str_escape(dst, cap, name, strlen(name));
}

/* The state says when a card cannot be in a fabric. For a card that has not joined yet, only
 * the state is valid. */
static int ask_fabric(struct nvml_source *s, const struct nvml_call *row, union call call,
	void *handle, struct answer *a)
{
	struct nvml_fabric fabric = { 0 };
	const unsigned char *u = fabric.cluster;
	int code = call.fabric(handle, &fabric);
	a->numbers[0] = fabric.state;
	bool joined = fabric.state == NVML_FABRIC_COMPLETED;
	a->numbers[1] = joined ? (double)fabric.clique : NAN;
	if (row->shape == SHAPE_FABRIC_RESULT)
		error_name(s, fabric.status, a->text, sizeof(a->text));
	else
		snprintf(a->text, sizeof(a->text),
			"%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
			u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10],
			u[11], u[12], u[13], u[14], u[15]);
	if (code == NVML_OK && fabric.state == 0)
		return NVML_NOT_SUPPORTED;
	return code == NVML_OK && !joined && row->shape != SHAPE_FABRIC ? NVML_NO_DATA : code;
}

/* A driver that does not know layout 3 has no summary. */
static int ask_health(union call call, void *handle, struct answer *a)
{
	struct nvml_fabric_health fabric = { .version = NVML_VERSION_WORD(fabric, 3) };
	int code = call.health(handle, &fabric);
	if (code == NVML_NO_FUNCTION || code == NVML_BAD_VERSION) {
		fabric = (struct nvml_fabric_health){ .version = NVML_FABRIC_HEALTH_V2 };
		code = call.health(handle, &fabric);
		fabric.summary = 0;
	}
	a->numbers[0] = fabric.summary;
	for (size_t i = 0; i < 4; i++)
		a->numbers[i + 1] = fabric.mask >> 2 * i & 3;
	return code == NVML_OK && fabric.state != NVML_FABRIC_COMPLETED ? NVML_NO_DATA : code;
}

static int ask_platform(
	const struct nvml_call *row, union call call, void *handle, struct answer *a)
{
	struct nvml_platform p = { .version = NVML_VERSION_WORD(p, 2) };
	const unsigned char *g = p.guid;
	int code = call.platform(handle, &p);
	const double numbers[] = { p.slot, p.tray, p.host, p.peer, p.module };
	memcpy(a->numbers, numbers, sizeof(numbers));
	if (row->shape == SHAPE_PLATFORM_GUID)
		snprintf(a->text, sizeof(a->text), "0x%02X%02X%02X%02X%02X%02X%02X%02X", g[0],
			g[1], g[2], g[3], g[4], g[5], g[6], g[7]);
	else
		str_escape(a->text, sizeof(a->text), (char *)p.chassis,
			strnlen((char *)p.chassis, sizeof(p.chassis)));
	return code;
}

/* The calls that fill in a struct, or a text. */
static int ask_struct(struct nvml_source *s, const struct nvml_call *row, union call call,
	void *handle, struct answer *a)
{
	switch (row->shape) {
	case SHAPE_TEXT:
	case SHAPE_TEXT_OF:
		return ask_text(row, call, handle, a);
	case SHAPE_NAME:
		return ask_name(call, handle, a);
	case SHAPE_SYSTEM:
		return ask_system(call, a);
	case SHAPE_CHECK:
		return ask_check(call, handle, a);
	case SHAPE_VERSIONED:
	case SHAPE_VERSIONED_TWO:
		return ask_versioned(row, call, handle, a);
	case SHAPE_CLASSES:
		return ask_classes(call, handle, a);
	case SHAPE_SRAM:
		return ask_sram(call, handle, a);
	case SHAPE_FABRIC:
	case SHAPE_FABRIC_RESULT:
	case SHAPE_FABRIC_CLUSTER:
		return ask_fabric(s, row, call, handle, a);
	case SHAPE_HEALTH:
		return ask_health(call, handle, a);
	case SHAPE_PLATFORM:
	case SHAPE_PLATFORM_GUID:
		return ask_platform(row, call, handle, a);
	default:
		return ask_call(row, call, handle, a);
	}
}

static int ask(struct nvml_source *s, size_t row, void *handle, struct answer *a)
{
	union call call = { .found = s->metric_calls.call[row] };
	switch (nvml_metric_rows[row].shape) {
	case SHAPE_MEMORY:
		return ask_memory(s, handle, a);
	case SHAPE_PCI:
		return ask_pci(s, handle, a);
	case SHAPE_RATES:
		return ask_rates(s, handle, a);
	case SHAPE_LIBRARY:
		return ask_library(s, a);
	case SHAPE_ROOT_PORT:
		return ask_root_port(s, handle, a);
	default:
		break;
	}
	if (!call.found)
		return NVML_NO_FUNCTION;
	return ask_struct(s, &nvml_metric_rows[row], call, handle, a);
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
static bool same_call(const struct nvml_call *a, const struct nvml_call *b)
{
	bool same_symbol = a->symbol && b->symbol ? strcmp(a->symbol, b->symbol) == 0
						  : a->symbol == b->symbol;
	return a->shape == b->shape && same_symbol && a->which == b->which &&
	       a->other == b->other && a->place == b->place;
}

static void take_answer(
	const struct nvml_call *row, const struct answer *a, double *values, metric_texts texts)
{
	double number = a->numbers[row->out] * (row->scale != 0 ? row->scale : 1);
	if (metrics[row->metric].form == METRIC_FORM_DRIVER_TEXT)
		memcpy(texts[row->metric], a->text, METRIC_TEXT_CAP);
	else
		values[row->metric] = number;
}

void nvml_metrics(struct source *base, const struct metric_request *request, double *values,
	metric_texts texts)
{
	struct nvml_source *s = (struct nvml_source *)base;
	struct nvml_card *c = &s->cards[request->card];
	struct nvml_device *d = &s->devices[c->device];
	bool board = request->board;
	struct nvml_dead *dead = board ? &d->dead : &c->dead;
	const struct nvml_call *last = NULL;
	struct answer a = { 0 };
	int code = NVML_OK;
	for (size_t i = 0; i < nvml_n_metric_rows; i++) {
		void *handle = board ? d->handle : c->handle;
		if (!handle || s->down)
			return;
		if (!request->wanted[nvml_metric_rows[i].metric] || dead->row[i] ||
			(!board && !nvml_metric_rows[i].instance))
			continue;
		nvml_enter(s, d->id.index,
			nvml_metric_rows[i].symbol ? nvml_metric_rows[i].symbol
						   : metrics[nvml_metric_rows[i].metric].name);
		if (!last || !same_call(last, &nvml_metric_rows[i]))
			code = ask(s, i, handle, &a);
		last = &nvml_metric_rows[i];
		dead->row[i] = is_for_good(code);
		if (is_fatal(code))
			nvml_job_heed(s, request->card, code);
		if (code == NVML_OK)
			take_answer(&nvml_metric_rows[i], &a, values, texts);
	}
}
