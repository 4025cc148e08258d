/* The table of calls, and the calls of metrics in the same form. */
#include "driver/nvml/nvml_calls.h"

#include <string.h>

#include "driver/capture/capture_layout.h"
#include "driver/nvml/nvml_abi.h"
#include "driver/nvml/nvml_metric.h"

#define VERSIONED(type, number) .version = NVML_VERSION_WORD(struct type, number)
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
	return f->parts ? f->parts : 1;
}

/* The calls by signature; pointers to what is filled in have no type here. */
union driver_call {
	void *found;
	int (*system)(void *);
	int (*version)(char *, unsigned);
	int (*check)(void *);
	int (*out1)(void *, void *);
	int (*out2)(void *, void *, void *);
	int (*out3)(void *, void *, void *, void *);
	int (*out4)(void *, void *, void *, void *, void *);
	int (*of1)(void *, int, void *);
	int (*of2)(void *, int, int, void *);
	int (*of3)(void *, int, int, int, void *);
	int (*text)(void *, char *, unsigned);
	int (*text_of)(void *, int, char *, unsigned);
	int (*field)(void *, int, struct nvml_field *);
};

int nvml_calls_make(
	const struct nvml_form *form, void *function, void *handle, const int *args, void *out)
{
	union driver_call call = { .found = function };
	size_t size = capture_layout_size(form->layout);
	unsigned char *part = out;
	/* The number of a call for the health of the fabric is the number of its layout. */
	bool older = form->version && form->n_args == 1 && args[0] == 2;
	uint32_t word = older ? NVML_FABRIC_HEALTH_V2 : form->version;
	for (size_t i = 0; word && i < nvml_calls_parts(form); i++)
		memcpy(part + i * size, &word, sizeof(word));
	switch (form->signature) {
	case NVML_SIG_SYSTEM:
		return call.system(out);
	case NVML_SIG_VERSION:
		return call.version(out, (unsigned)size);
	case NVML_SIG_CHECK:
		return call.check(handle);
	case NVML_SIG_TEXT:
		return call.text(handle, out, (unsigned)size);
	case NVML_SIG_TEXT_OF:
		return call.text_of(handle, args[0], out, (unsigned)size);
	case NVML_SIG_FIELD:
		return call.field(handle, 1, out);
	case NVML_SIG_OF:
		return form->n_args == 1   ? call.of1(handle, args[0], out)
		       : form->n_args == 2 ? call.of2(handle, args[0], args[1], out)
					   : call.of3(handle, args[0], args[1], args[2], out);
	default:
		/* As many pointers as the form has parts. */
		switch (nvml_calls_parts(form)) {
		case 1:
			return call.out1(handle, part);
		case 2:
			return call.out2(handle, part, part + size);
		case 3:
			return call.out3(handle, part, part + size, part + 2 * size);
		default:
			return call.out4(
				handle, part, part + size, part + 2 * size, part + 3 * size);
		}
	}
}

#define OUT(layout_) .signature = NVML_SIG_OUT, .layout = (layout_)
#define OF(n, layout_) .signature = NVML_SIG_OF, .layout = (layout_), .n_args = (n)
#define FABRIC_FORM OUT("x16iub"), .secret = NVML_SECRET_ID
#define PLATFORM_FORM OUT("Vx16x16bbbbb"), VERSIONED(nvml_platform, 2), .secret = NVML_SECRET_ID

/* The form of a call for each shape; a shape without a layout makes no call of its own. */
static const struct nvml_form shape_forms[] = {
	[SHAPE_ONE] = { OUT("u") },
	[SHAPE_TWO] = { OUT("u"), .parts = 2 },
	[SHAPE_POINT] = { OUT("u"), .parts = 2 },
	[SHAPE_THREE] = { OUT("u"), .parts = 3 },
	[SHAPE_FOUR] = { OUT("u"), .parts = 4 },
	[SHAPE_FIVE] = { OUT("uuuuu") },
	[SHAPE_LONG] = { OUT("Q") },
	[SHAPE_OF] = { OF(1, "u") },
	[SHAPE_ERRORS] = { OF(2, "Q") },
	[SHAPE_PLACE] = { OF(3, "Q") },
	[SHAPE_TEXT] = { .signature = NVML_SIG_TEXT, .layout = "t96" },
	[SHAPE_TEXT_OF] = { .signature = NVML_SIG_TEXT_OF, .layout = "t96", .n_args = 1 },
	[SHAPE_NAME] = { OUT("t64"), .secret = NVML_SECRET_HOST },
	[SHAPE_VERSION] = { OUT("t64") },
	[SHAPE_ENGINES] = { OUT("uuuuuuuuQ") },
	[SHAPE_SYSTEM] = { .signature = NVML_SIG_SYSTEM, .layout = "i" },
	[SHAPE_CHECK] = { .signature = NVML_SIG_CHECK, .layout = "" },
	[SHAPE_VERSIONED] = { OUT("Vi"), VERSIONED(nvml_versioned, 1) },
	[SHAPE_VERSIONED_TWO] = { OUT("Vi"), .parts = 2, VERSIONED(nvml_versioned, 1) },
	[SHAPE_CLASSES] = { OUT("Vuuuuuuut32"), VERSIONED(nvml_pci_ext, 1) },
	[SHAPE_SRAM] = { OUT("VQQQQQQQQQQQu"), VERSIONED(nvml_sram_errors, 1) },
	[SHAPE_FABRIC] = { FABRIC_FORM },
	[SHAPE_FABRIC_RESULT] = { FABRIC_FORM },
	[SHAPE_FABRIC_CLUSTER] = { FABRIC_FORM },
	/* The number is the layout's, which is in the version word. */
	[SHAPE_HEALTH] = { OUT("Vx16iubub"), VERSIONED(nvml_fabric_health, 3), .n_args = 1,
		.secret = NVML_SECRET_ID },
	[SHAPE_PLATFORM] = { PLATFORM_FORM },
	[SHAPE_PLATFORM_GUID] = { PLATFORM_FORM },
	[SHAPE_BYTES] = { OUT("QQQ") },
	[SHAPE_FIELD] = { .signature = NVML_SIG_FIELD, .layout = "uiQ", .n_args = 2 },
	[SHAPE_ROOT_PORT] = { .layout = NULL },
};

bool nvml_calls_of_metric(size_t row, struct nvml_form *form, int args[NVML_ARGS])
{
	const struct nvml_call *call = &nvml_metric_rows[row];
	*form = shape_forms[call->shape];
	if (!form->layout || !call->symbol)
		return false;
	form->symbol = call->symbol;
	if (form->signature != NVML_SIG_SYSTEM)
		form->subject = call->instance ? NVML_OF_ANY : NVML_OF_CARD;
	if (call->metric == METRIC_SERIAL)
		form->secret = NVML_SECRET_SERIAL;
	int numbers[NVML_ARGS] = { call->which, call->other, call->place };
	if (call->shape == SHAPE_HEALTH)
		numbers[0] = 3;
	for (unsigned i = 0; i < NVML_ARGS; i++)
		args[i] = i < form->n_args ? numbers[i] : 0;
	return true;
}

bool nvml_calls_find(const char *symbol, struct nvml_form *form)
{
	int args[NVML_ARGS];
	bool found = false;
	for (size_t i = 0; i < nvml_n_forms; i++)
		if (strcmp(nvml_forms[i].symbol, symbol) == 0) {
			*form = nvml_forms[i];
			return true;
		}
	/* Of the rows of a call, some may be about instances. */
	for (size_t i = 0; i < nvml_n_metric_rows; i++) {
		struct nvml_form own;
		const char *older = nvml_metric_rows[i].older;
		if (!nvml_calls_of_metric(i, &own, args) ||
			(strcmp(own.symbol, symbol) != 0 &&
				(!older || strcmp(older, symbol) != 0)))
			continue;
		own.symbol = symbol;
		if (!found || own.subject == NVML_OF_ANY)
			*form = own;
		found = true;
	}
	return found;
}
