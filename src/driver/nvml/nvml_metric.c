/* Asks the driver for single numbers by a table: which call, how it is called, what to do with
 * the answer. The calls that measure PCIe traffic are not in the table, because each blocks for
 * 20 ms; the running counters of that traffic are. */
#include "driver/nvml/nvml_metric.h"

#include "driver/capture/capture_layout.h"
#include "driver/nvml/nvml.h"
#include "driver/nvml/nvml_decode.h"

/* clang-format off */
#define ROW(metric_, shape_, ...)                                                              \
	{ .metric = METRIC_##metric_, .shape = SHAPE_##shape_, __VA_ARGS__ },
#define CALL(metric_, shape_, symbol_, ...)                                                    \
	ROW(metric_, shape_, .symbol = "nvmlDeviceGet" symbol_, __VA_ARGS__)
#define VALUE(metric_, number, ...)                                                            \
	ROW(metric_, FIELD, .symbol = "nvmlDeviceGetFieldValues", .args[0] = (number), __VA_ARGS__)
const struct nvml_call nvml_metric_rows[] = {
#include "driver/nvml/nvml_metrics.def"
};
/* clang-format on */
enum { ROWS = sizeof(nvml_metric_rows) / sizeof(nvml_metric_rows[0]) };
_Static_assert((int)ROWS <= (int)NVML_METRIC_ROWS, "room for every row");
const size_t nvml_n_metric_rows = ROWS;

/* One answer of the driver: numbers or a text. */
struct answer {
	double numbers[12];
	char text[METRIC_TEXT_CAP];
};

static int ask_memory(struct nvml_source *s, void *handle, struct answer *a)
{
	struct nvml_memory_v2 m;
	int way = 0, code = nvml_process_ask_memory(s, handle, way, &m);
	if (code != NVML_OK)
		code = nvml_process_ask_memory(s, handle, way = 1, &m);
	/* Cards that share the host's memory report 0. */
	if (code == NVML_OK && m.total == 0)
		return NVML_NOT_SUPPORTED;
	a->numbers[0] = (double)m.total;
	a->numbers[1] = way ? NAN : (double)m.reserved;
	a->numbers[2] = (double)m.free;
	a->numbers[3] = (double)m.used;
	return code;
}

/* Reads both PCI identities, or the highest generation of the port above the card. */
static int ask_pci(struct nvml_source *s, void *handle, enum nvml_shape shape, struct answer *a)
{
	char address[PCI_CAP];
	struct nvml_pci pci = { 0 };
	int code = NVML_CALL(s->lib.api.pci, handle, &pci);
	snprintf(address, sizeof(address), "%04x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
	a->numbers[0] = pci.ids;
	a->numbers[1] = pci.subsystem_ids;
	if (shape == SHAPE_ROOT_PORT)
		a->numbers[0] =
			code == NVML_OK ? nvml_host_root_port_gen(s->root, address) : NAN;
	return code;
}

static int ask_field(const struct nvml_form *form, void *call, void *handle, const int *args,
	struct answer *a)
{
	struct nvml_field field = { 0 };
	struct nvml_sample sample = { 0 };
	int code = nvml_calls_make(form, call, handle, args, &field);
	memcpy(sample.value, field.value, sizeof(sample.value));
	a->numbers[0] = nvml_decode_value(&sample, (int)field.type);
	return code == NVML_OK ? field.code : code;
}

/* The state shows whether a card cannot be in a fabric. For a card that has not joined yet,
 * only the state is valid. */
static int take_fabric(
	struct nvml_source *s, enum nvml_shape shape, const void *bytes, struct answer *a)
{
	struct nvml_fabric fabric;
	const unsigned char *u = fabric.cluster;
	memcpy(&fabric, bytes, sizeof(fabric));
	bool joined = fabric.state == NVML_FABRIC_COMPLETED;
	a->numbers[0] = fabric.state;
	a->numbers[1] = joined ? (double)fabric.clique : NAN;
	if (shape == SHAPE_FABRIC_RESULT) {
		/* The driver's own name of the code. */
		union {
			void *found;
			const char *(*name)(int);
		} call = { .found = nvml_lib_find(&s->lib, "nvmlErrorString") };
		const char *name = call.found ? call.name(fabric.status) : "";
		str_escape(a->text, sizeof(a->text), name, strlen(name));
	} else
		snprintf(a->text, sizeof(a->text),
			"%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
			u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10],
			u[11], u[12], u[13], u[14], u[15]);
	if (fabric.state == 0)
		return NVML_NOT_SUPPORTED;
	return joined || shape == SHAPE_FABRIC ? NVML_OK : NVML_NO_DATA;
}

static int take_health(const void *bytes, struct answer *a)
{
	struct nvml_fabric_health fabric;
	memcpy(&fabric, bytes, sizeof(fabric));
	/* A driver that does not know layout 3 reports no summary. */
	a->numbers[0] = fabric.version == NVML_FABRIC_HEALTH_V2 ? 0 : fabric.summary;
	for (size_t i = 0; i < 4; i++)
		a->numbers[i + 1] = fabric.mask >> 2 * i & 3;
	return fabric.state == NVML_FABRIC_COMPLETED ? NVML_OK : NVML_NO_DATA;
}

/* Handles answers that are not simply numbers; returns their code. */
static int take_special(
	struct nvml_source *s, enum nvml_shape shape, const char *bytes, struct answer *a)
{
	struct nvml_platform platform;
	const unsigned char *g = platform.guid;
	const char *chassis = (const char *)platform.chassis;
	memcpy(&platform, bytes, sizeof(platform));
	switch (shape) {
	case SHAPE_POINT:
		a->numbers[0] += a->numbers[1] / 10;
		return NVML_OK;
	case SHAPE_SRAM:
		a->numbers[11] = a->numbers[11] != 0; /* whether the threshold was exceeded */
		return NVML_OK;
	case SHAPE_CHECK:
		a->numbers[0] = 1;
		return NVML_OK;
	case SHAPE_TEXT:
	case SHAPE_TEXT_OF:
	case SHAPE_NAME:
	case SHAPE_VERSION:
		str_escape(a->text, sizeof(a->text), bytes, strnlen(bytes, METRIC_TEXT_CAP));
		return NVML_OK;
	case SHAPE_PLATFORM:
		str_escape(a->text, sizeof(a->text), chassis,
			strnlen(chassis, sizeof(platform.chassis)));
		return NVML_OK;
	case SHAPE_PLATFORM_GUID:
		snprintf(a->text, sizeof(a->text), "0x%02X%02X%02X%02X%02X%02X%02X%02X", g[0],
			g[1], g[2], g[3], g[4], g[5], g[6], g[7]);
		return NVML_OK;
	case SHAPE_FABRIC:
	case SHAPE_FABRIC_RESULT:
	case SHAPE_FABRIC_CLUSTER:
		return take_fabric(s, shape, bytes, a);
	case SHAPE_HEALTH:
		return take_health(bytes, a);
	default:
		return NVML_OK;
	}
}

/* Makes the call of a row, by its form. */
static int ask_call(struct nvml_source *s, size_t row, void *handle, struct answer *a)
{
	enum nvml_shape shape = nvml_metric_rows[row].shape;
	_Alignas(8) char bytes[NVML_PARTS * CAPTURE_LAYOUT_MAX] = { 0 };
	struct nvml_form form;
	int args[NVML_ARGS];
	if (!nvml_calls_at(nvml_n_forms + row, &form, args))
		return NVML_NO_FUNCTION;
	void *call = nvml_lib_find(&s->lib, form.symbol);
	if (!call && form.older)
		call = nvml_lib_find(&s->lib, form.older);
	if (!call)
		return NVML_NO_FUNCTION;
	if (shape == SHAPE_FIELD)
		return ask_field(&form, call, handle, args, a);
	if (shape == SHAPE_TEXT || shape == SHAPE_TEXT_OF)
		form.layout = "t64";
	int code = nvml_calls_make(&form, call, handle, args, bytes);
	if (shape == SHAPE_HEALTH && (code == NVML_NO_FUNCTION || code == NVML_BAD_VERSION)) {
		args[0] = 2; /* the older layout */
		memset(bytes, 0, sizeof(bytes));
		code = nvml_calls_make(&form, call, handle, args, bytes);
	}
	size_t size = capture_layout_size(form.layout), n = 0;
	for (size_t i = 0; i < nvml_calls_parts(&form); i++)
		n += capture_layout_numbers(form.layout, bytes + i * size, a->numbers + n);
	if (shape == SHAPE_CHECK && code == NVML_CORRUPTED) {
		a->numbers[0] = 0; /* that the infoROM is damaged is a valid answer, too */
		return NVML_OK;
	}
	return code == NVML_OK ? take_special(s, shape, bytes, a) : code;
}

static int ask(struct nvml_source *s, size_t row, void *handle, struct answer *a)
{
	switch (nvml_metric_rows[row].shape) {
	case SHAPE_MEMORY:
		return ask_memory(s, handle, a);
	case SHAPE_PCI:
	case SHAPE_ROOT_PORT:
		return ask_pci(s, handle, nvml_metric_rows[row].shape, a);
	case SHAPE_LIBRARY:
		str_copy(a->text, sizeof(a->text), s->lib.version);
		return NVML_OK;
	default:
		return ask_call(s, row, handle, a);
	}
}

/* Whether the row asks the card, and not the library or the host. */
static bool asks_card(const struct nvml_call *row)
{
	return row->shape != SHAPE_SYSTEM && row->shape != SHAPE_LIBRARY &&
	       row->shape != SHAPE_ROOT_PORT;
}

/* Whether one call answers both rows: they are neighbours of the same kind. */
static bool same_call(const struct nvml_call *a, const struct nvml_call *b)
{
	bool same_symbol = a->symbol && b->symbol ? strcmp(a->symbol, b->symbol) == 0
						  : a->symbol == b->symbol;
	return a->shape == b->shape && same_symbol &&
	       memcmp(a->args, b->args, sizeof(a->args)) == 0;
}

/* What a card does not have is no failure. Neither is a value that another call gave. */
static void note_failure(double *value, int code)
{
	bool absent = nvml_job_is_for_good(code) || code == NVML_BAD_ARGUMENT ||
		      code == NVML_NO_DATA || code == NVML_OK;
	if (!absent && isnan(*value))
		*value = metric_failed(code);
}

void nvml_metric_read(struct source *base, const struct metric_request *request, double *values,
	metric_texts texts)
{
	struct nvml_source *s = (struct nvml_source *)base;
	struct nvml_card *c = &s->cards[request->card];
	struct nvml_device *d = &s->devices[c->device];
	bool board = request->board;
	struct nvml_dead *dead = board ? &d->dead : &c->dead;
	const struct nvml_call *last = NULL;
	struct answer a = { 0 };
	int code = NVML_OK, fatal = NVML_OK, lost = NVML_OK;
	bool answered = false;
	for (size_t i = 0; i < nvml_n_metric_rows; i++) {
		const struct nvml_call *row = &nvml_metric_rows[i];
		void *handle = board ? d->handle : c->handle;
		if (!request->wanted[row->metric] || dead->row[i] || (!board && !row->instance))
			continue;
		if (!handle || s->down) {
			note_failure(&values[row->metric], fatal);
			continue;
		}
		nvml_enter(
			s, d->id.index, row->symbol ? row->symbol : metrics[row->metric].name);
		if (!last || !same_call(last, row))
			code = ask(s, i, handle, &a);
		last = row;
		dead->row[i] = nvml_job_is_for_good(code) || code == NVML_BAD_ARGUMENT;
		if (nvml_job_is_fatal(code)) {
			fatal = code;
			nvml_job_heed(s, request->card, code);
		}
		lost = nvml_job_is_lost(code) ? code : lost;
		answered |= code == NVML_OK && asks_card(row);
		if (code != NVML_OK)
			note_failure(&values[row->metric], code);
		else if (metrics[row->metric].form == METRIC_FORM_DRIVER_TEXT)
			memcpy(texts[row->metric], a.text, METRIC_TEXT_CAP);
		else
			values[row->metric] =
				a.numbers[row->out] * (row->scale != 0 ? row->scale : 1);
		if (row->metric == METRIC_POWER_DRAW &&
			!nvml_energy_is_plausible(d, values[row->metric] * 1e3))
			values[row->metric] = NAN;
	}
	/* A card that answers other calls is not lost. */
	if (lost && !answered)
		nvml_job_heed(s, request->card, lost);
}
