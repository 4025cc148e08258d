/* libgua: a handle around one source. Every failure is reported as a code and a message. */
#include <gua.h>

#include "driver/source.h"
#include "lib/lib.h"
#include "version.h"

void gua_hand_struct(void *to, size_t to_size, const void *from, size_t from_size)
{
	size_t head = sizeof(size_t), n = to_size < from_size ? to_size : from_size;
	memcpy((char *)to + head, (const char *)from + head, n - head);
	if (to_size > from_size)
		memset((char *)to + from_size, 0, to_size - from_size);
}

struct gua {
	struct source *source; /* NULL: gua_open() failed */
	struct clock clock;
	struct err err;	     /* of the last call */
	double *util_pct;    /* newest sample of each card; kept if a refresh saw none */
	size_t n_util;	     /* how many of them */
	char texts[4][1024]; /* the caller's options, which the source borrows */
};

/* The numbers of the public interface are the same as the program's. */
_Static_assert((int)GUA_WRONG_USE == (int)ERR_USAGE, "codes");
_Static_assert((int)GUA_FAILED == (int)ERR_WORLD, "codes");
_Static_assert((int)GUA_BUSY == (int)ERR_BUSY, "codes");
_Static_assert((int)GUA_CARD_LOST == (int)CARD_STATUS_LOST, "status");
_Static_assert((int)GUA_CARD_ASLEEP == (int)CARD_STATUS_ASLEEP, "status");
_Static_assert((int)GUA_CARD_DENIED == (int)CARD_STATUS_DENIED, "status");
_Static_assert((int)GUA_PROCESS_COMPUTE == (int)PROCESS_COMPUTE, "kind");
_Static_assert((int)GUA_PROCESS_GRAPHICS == (int)PROCESS_GRAPHICS, "kind");
_Static_assert((int)GUA_PROCESS_MPS == (int)PROCESS_MPS, "kind");

API const char *gua_version(void)
{
	return GUA_VERSION;
}

API const char *gua_code_text(int code)
{
	switch (code) {
	case GUA_OK:
		return "no error";
	case GUA_WRONG_USE:
		return "wrong use";
	case GUA_FAILED:
		return "not possible on this host";
	case GUA_BUSY:
		return "not possible now";
	case GUA_NO_MEMORY:
		return ERR_MEMORY_TEXT;
	}
	return "unknown code";
}

API const char *gua_error(const struct gua *handle)
{
	return handle ? handle->err.text : gua_code_text(GUA_NO_MEMORY);
}

/* Copies the fields that the caller's struct has: that of an older program is shorter. */
static int take_options(
	struct gua *handle, const struct gua_options *given, struct source_options *taken)
{
	struct gua_options options = { 0 };
	if (given && given->size < sizeof(size_t))
		return err_set(&handle->err, GUA_WRONG_USE, "gua_options.size is not set");
	if (given)
		memcpy(&options, given,
			given->size < sizeof(options) ? given->size : sizeof(options));
	const char *texts[] = { options.source, options.nvml_path, options.scenario,
		options.root };
	for (size_t i = 0; i < 4; i++)
		if (texts[i] && !str_copy(handle->texts[i], sizeof(handle->texts[i]), texts[i]))
			return err_set(&handle->err, GUA_WRONG_USE, "an option is too long");
	*taken = (struct source_options){
		.name = handle->texts[0][0] ? handle->texts[0] : SOURCE_AUTO,
		.nvml_path = handle->texts[1][0] ? handle->texts[1] : NULL,
		.nvml_option = "nvml_path",
		.scenario = handle->texts[2][0] ? handle->texts[2] : NULL,
		.root = handle->texts[3],
		.clock = &handle->clock,
	};
	return 0;
}

API int gua_open(struct gua **handle, const struct gua_options *options)
{
	struct source_options source_options;
	struct gua *g = calloc(1, sizeof(*g));
	*handle = g;
	if (!g)
		return GUA_NO_MEMORY;
	clock_init_real(&g->clock);
	int rc = take_options(g, options, &source_options);
	if (rc)
		return rc;
	rc = source_open(&g->source, &source_options, &g->err);
	if (rc) {
		g->source = NULL;
		return rc;
	}
	g->source->drains = DRAIN_POWER;
	return gua_refresh(g);
}

API void gua_close(struct gua *handle)
{
	if (!handle)
		return;
	source_close(handle->source);
	clock_finish(&handle->clock);
	free(handle->util_pct);
	free(handle);
}

API int gua_refresh(struct gua *handle)
{
	if (!handle)
		return GUA_WRONG_USE;
	if (!handle->source)
		return err_set(&handle->err, GUA_WRONG_USE, "the handle is not open");
	handle->err = (struct err){ 0 };
	int rc = source_scan(handle->source, &handle->err);
	if (rc)
		return rc;
	/* Room for a card's newest sample; new cards have none yet. */
	size_t n = handle->source->n_cards;
	if (n > handle->n_util && !array_resize(&handle->util_pct, n))
		return err_set(&handle->err, GUA_NO_MEMORY, ERR_MEMORY_TEXT);
	for (; handle->n_util < n; handle->n_util++)
		handle->util_pct[handle->n_util] = NAN;
	rc = source_drain(handle->source, NULL, &handle->err);
	if (rc)
		return rc;
	/* Samples are valid until the source's next call. */
	for (size_t i = 0; i < handle->source->n_cards; i++) {
		const struct card_reading *card = &handle->source->cards[i];
		if (card->status != CARD_STATUS_OK || !reading_util_is_known(card->util_kind))
			handle->util_pct[i] = NAN;
		else if (card->n_samples)
			handle->util_pct[i] = card->samples[card->n_samples - 1].util_pct;
	}
	return source_look(handle->source, NULL, &handle->err);
}

API size_t gua_card_count(const struct gua *handle)
{
	return handle && handle->source ? handle->source->n_cards : 0;
}

static int check_call(struct gua *handle, size_t card, const void *out, size_t size)
{
	if (!handle)
		return GUA_WRONG_USE;
	handle->err = (struct err){ 0 };
	if (!out || size < sizeof(size_t))
		return err_set(&handle->err, GUA_WRONG_USE, "the struct's size is not set");
	if (card >= gua_card_count(handle))
		return err_set(&handle->err, GUA_WRONG_USE, "there is no card %zu of %zu", card,
			gua_card_count(handle));
	return 0;
}

API int gua_card(struct gua *handle, size_t index, struct gua_card *card)
{
	int rc = check_call(handle, index, card, card ? card->size : 0);
	if (rc)
		return rc;
	const struct card_reading *reading = &handle->source->cards[index];
	/* As the driver counts: what it reserves for itself is neither used nor free. */
	int64_t total = reading->id.mem_total_bytes, used = reading->mem_used_bytes;
	int64_t left = total - used - reading->mem_reserved_bytes;
	struct gua_card found = {
		.index = reading->id.index,
		.mig_index = reading->id.mig_index,
		.gpu_instance = reading->id.gpu_instance,
		.compute_instance = reading->id.compute_instance,
		.status = (int)reading->status,
		.mem_total_bytes = reading->id.mem_total_bytes,
		.mem_used_bytes = reading->mem_used_bytes,
		.util_pct = handle->util_pct[index],
		.power_w = reading->power_mw / 1e3,
		.energy_j = reading->energy_mj / 1e3,
		.processes = reading->processes_known ? reading->n_processes : 0,
		.processes_known = reading->processes_known,
		.mem_free_bytes = total < 0 || used < 0 ? -1
				  : left > 0		? left
							: 0,
		.temperature_c = NAN,
	};
	struct source *s = handle->source;
	if (card->size >= sizeof(found) && s->ops->metrics &&
		reading->status == CARD_STATUS_OK) {
		static const unsigned char wanted[METRIC_COUNT] = { [METRIC_TEMPERATURE_GPU] =
									    1 };
		double values[METRIC_COUNT];
		metric_texts texts;
		metric_clear(values, texts);
		s->ops->metrics(
			s, &(struct metric_request){ index, true, wanted }, values, texts);
		found.temperature_c = values[METRIC_TEMPERATURE_GPU];
	}
	str_copy(found.uuid, sizeof(found.uuid), reading->id.uuid);
	str_copy(found.name, sizeof(found.name), reading->id.name);
	str_copy(found.parent_uuid, sizeof(found.parent_uuid), reading->id.parent_uuid);
	str_copy(found.pci, sizeof(found.pci), reading->id.pci);
	gua_hand_struct(card, card->size, &found, sizeof(found));
	return 0;
}

API int gua_card_process(
	struct gua *handle, size_t card, size_t index, struct gua_process *process)
{
	int rc = check_call(handle, card, process, process ? process->size : 0);
	if (rc)
		return rc;
	const struct card_reading *reading = &handle->source->cards[card];
	if (!reading->processes_known || index >= reading->n_processes)
		return err_set(&handle->err, GUA_WRONG_USE, "card %zu has no process %zu", card,
			index);
	const struct card_process *of = &reading->processes[index];
	struct gua_process found = {
		.pid = of->pid,
		.kind = of->kind,
		.mem_bytes = of->mem_bytes,
		.sm_pct = reading_process_pct(reading, of->pid),
	};
	gua_hand_struct(process, process->size, &found, sizeof(found));
	return 0;
}

/* A MIG card reports memory and use twice, for itself and for its instances. */
static void add_to_host(struct gua_host *host, const struct card_reading *card, double util_pct,
	size_t *n_utils)
{
	bool whole = card->id.mig_index < 0, ok = card->status == CARD_STATUS_OK;
	if (ok && card->processes_known)
		host->processes += card->n_processes;
	if (!isnan(util_pct)) {
		host->util_mean_pct = isnan(host->util_mean_pct) ? 0 : host->util_mean_pct;
		host->util_mean_pct += util_pct;
		++*n_utils;
		if (!(util_pct <= host->util_max_pct))
			host->util_max_pct = util_pct;
	}
	if (!whole)
		return;
	host->cards++;
	host->cards_ok += ok;
	if (card->id.mem_total_bytes >= 0)
		host->mem_total_bytes =
			(host->mem_total_bytes < 0 ? 0 : host->mem_total_bytes) +
			card->id.mem_total_bytes;
	if (ok && card->mem_used_bytes >= 0)
		host->mem_used_bytes = (host->mem_used_bytes < 0 ? 0 : host->mem_used_bytes) +
				       card->mem_used_bytes;
	if (ok && !isnan(card->power_mw))
		host->power_w =
			(isnan(host->power_w) ? 0 : host->power_w) + card->power_mw / 1e3;
}

API int gua_host_summary(struct gua *handle, struct gua_host *host)
{
	if (!handle)
		return GUA_WRONG_USE;
	handle->err = (struct err){ 0 };
	if (!host || host->size < sizeof(size_t))
		return err_set(&handle->err, GUA_WRONG_USE, "the struct's size is not set");
	if (!handle->source)
		return err_set(&handle->err, GUA_WRONG_USE, "the handle is not open");
	struct gua_host found = { .mem_total_bytes = -1,
		.mem_used_bytes = -1,
		.util_mean_pct = NAN,
		.util_max_pct = NAN,
		.power_w = NAN };
	size_t n_utils = 0;
	str_copy(found.driver, sizeof(found.driver), handle->source->driver_version);
	for (size_t i = 0; i < handle->source->n_cards; i++)
		add_to_host(&found, &handle->source->cards[i], handle->util_pct[i], &n_utils);
	if (n_utils)
		found.util_mean_pct /= (double)n_utils;
	gua_hand_struct(host, host->size, &found, sizeof(found));
	return 0;
}
