/* Makes a call by its signature, and writes what it answered as text. */
#include "driver/capture/capture_call.h"

#include "driver/nvml/nvml_decode.h"
#include "driver/capture/capture_layout.h"
#include "driver/nvml/nvml_metric.h"

enum { ENTRIES = 4096 };

/* The calls by signature that nvml_calls_make() does not make. */
union listing_call {
	void *found;
	const char *(*error)(int);
	int (*list)(void *, unsigned *, void *);
	int (*samples)(void *, int, unsigned long long, int *, unsigned *, void *);
	int (*use)(void *, void *, unsigned *, unsigned long long);
	int (*use_v1)(void *, struct nvml_process_samples_v1 *);
};

/* A call that is being made. */
struct asking {
	struct capture_caller *c;
	const struct capture_request *request;
	const struct nvml_form *form;
	union listing_call call;
	void *handle;
	struct capture_reply *reply;
	struct str *text;
};

static void enter(struct capture_caller *c, const char *call)
{
	if (c->where)
		snprintf(c->where->text, sizeof(c->where->text), "%s", call);
}

/* Initialises the library. A helper that replaces a stuck one has to do this, too. */
static int start(struct capture_caller *c)
{
	if (c->started)
		return NVML_OK;
	enter(c, "nvmlInit");
	int code = c->lib.api.init();
	c->started = code == NVML_OK;
	return code;
}

static int find_card(struct capture_caller *c, int card)
{
	int code = start(c);
	if (code != NVML_OK || c->cards[card])
		return code;
	enter(c, "nvmlDeviceGetHandleByIndex");
	code = c->lib.api.by_index((unsigned)card, &c->cards[card]);
	if (code != NVML_OK)
		c->cards[card] = NULL;
	return code == NVML_OK && !c->cards[card] ? NVML_UNKNOWN : code;
}

static int find_handle(struct capture_caller *c, int card, int instance, void **handle)
{
	int code = find_card(c, card);
	*handle = c->cards[card];
	if (code != NVML_OK || instance < 0)
		return code;
	void **found = &c->instances[card][instance];
	if (!*found)
		code = NVML_CALL(
			c->lib.api.mig_by_index, c->cards[card], (unsigned)instance, found);
	*handle = *found;
	return code == NVML_OK && !*found ? NVML_UNKNOWN : code;
}

static void ask_out(struct asking *j)
{
	_Alignas(8) unsigned char bytes[NVML_PARTS * CAPTURE_LAYOUT_MAX + 256] = { 0 };
	size_t size = capture_layout_size(j->form->layout);
	uint32_t number = 0;
	j->reply->code =
		nvml_calls_make(j->form, j->call.found, j->handle, j->request->args, bytes);
	if (j->reply->code != NVML_OK)
		return;
	struct nvml_field field;
	memcpy(&field, bytes, sizeof(field));
	if (j->form->signature == NVML_SIG_FIELD && field.type == NVML_VALUE_U32)
		memset(bytes + offsetof(struct nvml_field, value) + 4, 0, 4);
	for (unsigned i = 0; i < nvml_calls_parts(j->form); i++)
		capture_layout_print(j->form->layout, bytes + i * size, j->text);
	memcpy(&number, bytes + (j->form->version ? 4 : 0), sizeof(number));
	j->reply->number = number;
}

static void ask_error(struct asking *j)
{
	char text[128] = "";
	snprintf(text, sizeof(text), "%s", j->call.error(j->request->args[0]));
	capture_layout_print("t96", text, j->text);
}

/* Writes entries, each on a line of its own. */
static void print_rows(struct asking *j, const char *layout, const unsigned char *bytes,
	size_t n, size_t stride)
{
	for (size_t i = 0; i < n; i++) {
		str_add(j->text, "\n ");
		capture_layout_print(layout, bytes + i * stride, j->text);
	}
}

static void ask_list(struct asking *j)
{
	unsigned n = ENTRIES;
	size_t size = (size_t)ENTRIES * NVML_ENTRY_LARGEST;
	unsigned char *bytes = malloc(size);
	if (!bytes) {
		j->reply->code = NVML_NO_MEMORY;
		return;
	}
	memset(bytes, NVML_FILL, size);
	j->reply->code = j->call.list(j->handle, &n, bytes);
	if (j->reply->code == NVML_OK && n <= ENTRIES && strcmp(j->form->row, "u") == 0) {
		print_rows(j, "u", bytes, n, 4);
	} else if (j->reply->code == NVML_OK && n <= ENTRIES) {
		bool suffixed = strstr(j->form->symbol, "_v") != NULL;
		size_t stride = nvml_decode_stride(bytes, size, n, suffixed ? 24 : 16);
		print_rows(j,
			stride == 16   ? "uQ"
			: stride == 24 ? "uQuu"
				       : "uQuuQ",
			bytes, n, stride);
	}
	free(bytes);
}

static void ask_samples(struct asking *j)
{
	static struct nvml_sample rows[ENTRIES];
	unsigned n = ENTRIES;
	int type = NVML_VALUE_U32;
	memset(rows, 0, sizeof(rows));
	j->reply->code = j->call.samples(
		j->handle, j->request->args[0], j->request->since_us, &type, &n, rows);
	j->reply->number = j->request->since_us;
	if (j->reply->code != NVML_OK)
		return;
	str_addf(j->text, " %d", type);
	n = n < ENTRIES ? n : ENTRIES;
	for (unsigned i = 0; i < n; i++) {
		if (type == NVML_VALUE_U32)
			memset(rows[i].value + 4, 0, 4);
		if (rows[i].wall_us <= INT64_MAX && rows[i].wall_us > j->reply->number)
			j->reply->number = rows[i].wall_us;
	}
	print_rows(j, j->form->row, (unsigned char *)rows, n, sizeof(rows[0]));
}

static void ask_use(struct asking *j)
{
	static struct nvml_process_sample rows[ENTRIES];
	unsigned n = ENTRIES;
	memset(rows, 0, sizeof(rows));
	j->reply->code = j->call.use(j->handle, rows, &n, j->request->since_us);
	if (j->reply->code == NVML_OK)
		print_rows(j, j->form->row, (unsigned char *)rows, n < ENTRIES ? n : ENTRIES,
			sizeof(rows[0]));
}

static void ask_use_v1(struct asking *j)
{
	static struct nvml_process_sample_v1 rows[ENTRIES];
	memset(rows, 0, sizeof(rows));
	struct nvml_process_samples_v1 all = { .version = NVML_VERSION_WORD(
						       struct nvml_process_samples_v1, 1),
		.count = ENTRIES,
		.last_seen_us = j->request->since_us,
		.samples = rows };
	j->reply->code = j->call.use_v1(j->handle, &all);
	if (j->reply->code == NVML_OK)
		print_rows(j, j->form->row, (unsigned char *)rows,
			all.count < ENTRIES ? all.count : ENTRIES, sizeof(rows[0]));
}

/* The samples of a card, or of a GPU instance of it. */
static void **gpm_samples(struct asking *j, int gpu_instance)
{
	int at = gpu_instance < 0 || gpu_instance >= CAPTURE_INSTANCES ? CAPTURE_INSTANCES
								       : gpu_instance;
	return j->c->samples[j->request->card][at];
}

static void ask_gpm_metric(struct asking *j)
{
	const struct nvml_api *api = &j->c->lib.api;
	void **samples = gpm_samples(j, j->request->args[0]);
	struct nvml_gpm_metrics get = { .version = 1,
		.count = 1,
		.samples = { samples[0], samples[1] },
		.metric = { .id = (uint32_t)j->request->args[1] } };
	bool both = samples[0] && samples[1];
	j->reply->code = both ? NVML_CALL(api->gpm_metrics, &get) : NVML_NO_DATA;
	if (j->reply->code == NVML_OK)
		capture_layout_print(j->form->layout, &get, j->text);
}

static void ask_gpm(struct asking *j)
{
	const struct nvml_api *api = &j->c->lib.api;
	bool mig = j->form->n_args == 1;
	void **sample = &gpm_samples(j, mig ? j->request->args[0] : -1)[j->request->since_us];
	int code = *sample ? NVML_OK : NVML_CALL(api->gpm_alloc, sample);
	if (code == NVML_OK && mig)
		code = NVML_CALL(
			api->gpm_mig_sample, j->handle, (unsigned)j->request->args[0], *sample);
	else if (code == NVML_OK)
		code = NVML_CALL(api->gpm_sample, j->handle, *sample);
	j->reply->code = code;
}

static void ask_events(struct asking *j)
{
	const struct nvml_api *api = &j->c->lib.api;
	int code = j->c->events ? NVML_OK : NVML_CALL(api->event_set_new, &j->c->events);
	if (code == NVML_OK)
		code = NVML_CALL(api->event_register, j->handle, NVML_EVENT_XID, j->c->events);
	j->reply->code = code;
}

/* Makes the calls that return a handle, or nothing. */
static void ask_handle(struct asking *j)
{
	struct capture_caller *c = j->c;
	int card = j->request->card, index = j->request->args[0];
	if (j->form->signature == NVML_SIG_PLAIN)
		j->reply->code = start(c);
	else if (j->form->signature == NVML_SIG_INDEX)
		j->reply->code = find_card(c, card);
	else
		j->reply->code = find_handle(c, card, index, &j->handle);
}

static void (*const askers[])(struct asking *j) = {
	[NVML_SIG_PLAIN] = ask_handle,
	[NVML_SIG_ERROR] = ask_error,
	[NVML_SIG_INDEX] = ask_handle,
	[NVML_SIG_VALUES] = ask_out,
	[NVML_SIG_TEXT] = ask_out,
	[NVML_SIG_LAYOUT] = ask_out,
	[NVML_SIG_FIELD] = ask_out,
	[NVML_SIG_LIST] = ask_list,
	[NVML_SIG_SAMPLES] = ask_samples,
	[NVML_SIG_USE] = ask_use,
	[NVML_SIG_USE_V1] = ask_use_v1,
	[NVML_SIG_INSTANCE] = ask_handle,
	[NVML_SIG_GPM] = ask_gpm,
	[NVML_SIG_GPM_METRIC] = ask_gpm_metric,
	[NVML_SIG_EVENTS] = ask_events,
};

static void serve_call(struct capture_caller *c, const struct capture_request *request,
	struct capture_reply *reply, struct str *text)
{
	struct nvml_form form;
	int unused[NVML_ARGS];
	struct asking j = {
		.c = c, .request = request, .form = &form, .reply = reply, .text = text
	};
	if (!nvml_calls_at((size_t)request->place, &form, unused))
		return;
	j.call.found = nvml_lib_find(&c->lib, form.symbol);
	reply->older = !j.call.found && form.older;
	if (reply->older)
		j.call.found = nvml_lib_find(&c->lib, form.older);
	if (!j.call.found) {
		reply->missing = true;
		return;
	}
	if (form.subject != NVML_OF_DRIVER && askers[form.signature] != ask_handle)
		reply->code = find_handle(c, request->card, request->instance, &j.handle);
	enter(c, form.symbol);
	if (reply->code == NVML_OK)
		askers[form.signature](&j);
}

void capture_call_begin(void *context, struct helper_place *where)
{
	struct capture_caller *c = context;
	c->where = where;
}

void capture_call_serve(void *context, const struct str *request, struct str *out)
{
	struct capture_caller *c = context;
	struct capture_request asked = { 0 };
	struct capture_reply reply = { 0 };
	struct str text = { 0 };
	if (request->len == sizeof(asked))
		memcpy(&asked, request->data, sizeof(asked));
	if (asked.place < 0 || !c->opened) {
		struct err e = { 0 };
		enter(c, "loading the library");
		c->opened = nvml_lib_open(&c->lib, &c->choice, &e) == 0;
		reply.code = c->opened ? NVML_OK : NVML_NO_LIBRARY;
		str_add(&text, c->opened ? c->lib.path : e.text);
	}
	if (asked.place >= 0 && c->opened) {
		str_clear(&text);
		serve_call(c, &asked, &reply, &text);
	}
	str_add_bytes(out, (const char *)&reply, sizeof(reply));
	str_add(out, str_text(&text));
	out->failed |= text.failed;
	str_finish(&text);
}

void capture_call_end(void *context)
{
	struct capture_caller *c = context;
	const struct nvml_api *api = &c->lib.api;
	void **samples = &c->samples[0][0][0];
	for (size_t i = 0; i < sizeof(c->samples) / sizeof(void *); i++)
		if (samples[i])
			NVML_CALL(api->gpm_free, samples[i]);
	if (c->events)
		NVML_CALL(api->event_set_free, c->events);
	if (c->started)
		api->shutdown();
}
