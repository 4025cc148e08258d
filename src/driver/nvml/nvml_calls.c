/* The table of calls, and the calls of metrics in the same form. */
#include "driver/nvml/nvml_calls.h"

#include "driver/capture/capture_layout.h"
#include "driver/nvml/nvml_abi.h"
#include "driver/nvml/nvml_metric.h"

#define DRIVER(sig, layout_) .signature = NVML_SIG_##sig, .layout = (layout_)
#define CARD(sig, layout_) DRIVER(sig, layout_), .subject = NVML_OF_CARD
#define ANY(sig, layout_) DRIVER(sig, layout_), .subject = NVML_OF_ANY

/* clang-format off */
const struct nvml_form nvml_forms[] = {
#define CALL(member, parameters, required, symbol_, ...) { .symbol = #symbol_, __VA_ARGS__ },
#define OLDER(member, symbol_, ...) { .symbol = #symbol_, .spare = true, __VA_ARGS__ },
/* Entries of process lists may have fewer members: 16, 24 or 32 bytes. */
#define LIST(list, way, symbol_) { .symbol = #symbol_, ANY(LIST, ""), .row = "uQuuQ", .rounds = true },
#define OBJECT(...)
#define ASKED(member, symbol_, ...) { .symbol = #symbol_, __VA_ARGS__ },
#include "driver/nvml/nvml_calls.def"
};
/* clang-format on */
const size_t nvml_n_forms = sizeof(nvml_forms) / sizeof(nvml_forms[0]);

unsigned nvml_calls_parts(const struct nvml_form *f)
{
	return !f->layout[0] ? 0 : f->parts ? f->parts : 1;
}

unsigned nvml_calls_passed(const struct nvml_form *f)
{
	bool in_struct = f->signature == NVML_SIG_LAYOUT || f->signature == NVML_SIG_FIELD ||
			 f->signature == NVML_SIG_GPM_METRIC;
	return in_struct ? 0 : f->n_args;
}

int nvml_calls_make(
	const struct nvml_form *form, void *function, void *handle, const int *args, void *out)
{
	union {
		void *found;
		nvml_function function;
	} call = { .found = function };
	uintptr_t words[NVML_WORDS] = { 0 };
	unsigned char *part = out;
	size_t size = capture_layout_size(form->layout), n = 0;
	bool older = form->signature == NVML_SIG_LAYOUT && args[0] == 2;
	uint32_t version = older		    ? NVML_FABRIC_HEALTH_V2
			   : form->layout[0] == 'V' ? (uint32_t)size | form->version << 24
						    : form->version;
	if (form->subject != NVML_OF_DRIVER)
		words[n++] = (uintptr_t)handle;
	for (unsigned i = 0; i < nvml_calls_passed(form); i++)
		words[n++] = (uintptr_t)args[i];
	if (form->signature == NVML_SIG_FIELD) {
		words[n++] = 1;
		memcpy(out, args, 2 * sizeof(args[0]));
	}
	for (unsigned i = 0; i < nvml_calls_parts(form); i++, part += size) {
		if (version)
			memcpy(part, &version, sizeof(version));
		words[n++] = (uintptr_t)part;
	}
	if (form->signature == NVML_SIG_TEXT)
		words[n++] = size;
	return call.function(words[0], words[1], words[2], words[3], words[4], words[5]);
}

#define OUT(layout_) .signature = NVML_SIG_VALUES, .layout = (layout_)
#define OF(n, layout_) OUT(layout_), .n_args = (n)
#define TEXT(layout_) .signature = NVML_SIG_TEXT, .layout = (layout_)
#define LAYOUT(layout_) .signature = NVML_SIG_LAYOUT, .layout = (layout_), .n_args = 1
#define FIELD(layout_) .signature = NVML_SIG_FIELD, .layout = (layout_), .n_args = 2

/* The form of a call for each shape; a shape without a layout makes no call of its own. */
static const struct nvml_form shape_forms[] = {
#define SHAPE(name, ...) [SHAPE_##name] = { __VA_ARGS__ },
#include "driver/nvml/nvml_shapes.def"
};

/* Finds the call of a row of nvml_metrics.def. */
static bool of_metric(size_t row, struct nvml_form *form, int args[NVML_ARGS])
{
	const struct nvml_call *call = &nvml_metric_rows[row];
	*form = shape_forms[call->shape];
	if (!form->layout || !call->symbol)
		return false;
	form->symbol = call->symbol;
	form->older = call->older;
	if (call->shape != SHAPE_SYSTEM)
		form->subject = call->instance ? NVML_OF_ANY : NVML_OF_CARD;
	if (call->metric == METRIC_SERIAL)
		form->secret = NVML_SECRET_SERIAL;
	memcpy(args, call->args, sizeof(call->args));
	return true;
}

size_t nvml_calls_count(void)
{
	return nvml_n_forms + nvml_n_metric_rows;
}

bool nvml_calls_at(size_t place, struct nvml_form *form, int args[NVML_ARGS])
{
	memset(args, 0, NVML_ARGS * sizeof(args[0]));
	if (place >= nvml_n_forms)
		return of_metric(place - nvml_n_forms, form, args);
	*form = nvml_forms[place];
	return true;
}

bool nvml_calls_find(const char *symbol, struct nvml_form *form)
{
	bool found = false;
	for (size_t i = 0; i < nvml_calls_count(); i++) {
		struct nvml_form own;
		int args[NVML_ARGS];
		if (!nvml_calls_at(i, &own, args) ||
			(strcmp(own.symbol, symbol) != 0 &&
				(!own.older || strcmp(own.older, symbol) != 0)))
			continue;
		/* Of the rows of a call, some may be about instances. */
		if (!found || own.subject == NVML_OF_ANY)
			*form = own;
		found = true;
		if (i < nvml_n_forms)
			break;
	}
	return found;
}
