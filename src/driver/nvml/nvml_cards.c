/* The audited cards: a device is one card; with MIG on, each of its instances is one. A card
 * is never removed or moved. A card that cannot be asked has no handle, and its status says
 * why. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/str.h"
#include "driver/nvml/nvml.h"

static void clear_reading(struct nvml_source *s, size_t card, enum card_status status, int code)
{
	struct card_reading *r = &s->base.cards[card];
	*r = (struct card_reading){ .id = r->id,
		.own_processes = s->play != NULL,
		.status = status,
		.code = code,
		.gone = status == CARD_STATUS_LOST && code == NVML_NOT_FOUND,
		.energy_mj = NAN,
		.power_mw = NAN,
		.sm_active_pct = NAN,
		.mem_used_bytes = UNKNOWN_BYTES };
	text_copy(r->source, sizeof(r->source), s->base.ops->name);
}

/* The card can no longer be asked. Its measurements start again when it comes back. */
static void drop_card(struct nvml_source *s, size_t card, enum card_status status, int code)
{
	struct nvml_card *c = &s->cards[card];
	c->handle = NULL;
	c->listed = false;
	c->n_processes = 0;
	c->n_polled = 0;
	c->gpm.base = c->gpm.last = NVML_GPM_NONE;
	c->gpm.works = false;
	if (status != CARD_STATUS_OK || s->down)
		c->energy.counter_mj = c->energy.power_mw = NAN;
	clear_reading(s, card, status, code);
}

/* Adds a card of a device; returns its index, or -1 without memory. */
static ssize_t add_card(struct nvml_source *s, size_t device, const struct card_id *id)
{
	size_t n = s->base.n_cards;
	if (!array_one_more(&s->base.cards, n) || !array_one_more(&s->cards, n)) {
		source_log_no_room();
		return -1;
	}
	s->cards[n] = (struct nvml_card){ .device = device,
		.energy = { .total_mj = NAN, .counter_mj = NAN, .power_mw = NAN },
		.gpm = { .base = NVML_GPM_NONE, .last = NVML_GPM_NONE } };
	nvml_forget_ways(&s->cards[n], id->mig_index >= 0);
	s->base.cards[n].id = *id;
	clear_reading(s, n, CARD_STATUS_OK, NVML_OK);
	s->base.n_cards++;
	return (ssize_t)n;
}

ssize_t nvml_find_card(const struct nvml_source *s, const char *uuid)
{
	for (size_t i = 0; i < s->base.n_cards; i++)
		if (strcmp(s->base.cards[i].id.uuid, uuid) == 0)
			return (ssize_t)i;
	return -1;
}

void nvml_drop_device(struct nvml_source *s, size_t device, enum card_status status, int code)
{
	s->devices[device].handle = NULL;
	s->devices[device].status = status;
	s->devices[device].code = code;
	for (size_t i = 0; i < s->base.n_cards; i++)
		if (s->cards[i].device == device && !s->base.cards[i].gone)
			drop_card(s, i, status, code);
}

void nvml_lose_card(struct nvml_source *s, size_t card, int code)
{
	if (code == NVML_NOT_FOUND)
		drop_card(s, card, CARD_STATUS_LOST, code);
	else
		nvml_drop_device(s, s->cards[card].device, CARD_STATUS_LOST, code);
}

void nvml_drop_handles(struct nvml_source *s)
{
	for (size_t i = 0; i < s->base.n_cards; i++) {
		s->cards[i].handle = NULL;
		if (s->down)
			drop_card(s, i, s->base.cards[i].status, s->base.cards[i].code);
	}
	for (size_t i = 0; i < s->n_devices; i++)
		s->devices[i].handle = NULL;
}

/* Takes a card into use by its UUID. */
static void show_card(
	struct nvml_source *s, size_t device, void *handle, const struct card_id *id)
{
	ssize_t card = nvml_find_card(s, id->uuid);
	if (card < 0)
		card = add_card(s, device, id);
	if (card < 0)
		return;
	struct card_reading *r = &s->base.cards[card];
	int64_t mem_total_bytes = r->id.mem_total_bytes;
	r->id = *id;
	r->id.mem_total_bytes = mem_total_bytes;
	if (r->status != CARD_STATUS_OK) {
		s->cards[card].back_mono_us = clock_now(s->clock).mono_us;
		s->cards[card].dry = false;
	}
	r->status = CARD_STATUS_OK;
	r->code = NVML_OK;
	r->gone = false;
	s->cards[card].device = device;
	s->cards[card].handle = handle;
	s->cards[card].found = true;
	if (mem_total_bytes < 0)
		nvml_read_memory(s, (size_t)card, NVML_MEMORY_SCANNED);
}

void nvml_read_text(int (*call)(void *, char *, unsigned), void *handle, char *dst, size_t cap)
{
	char raw[96] = "";
	if (NVML_CALL(call, handle, raw, sizeof(raw)) != NVML_OK)
		return;
	text_escape(dst, cap, raw, strnlen(raw, sizeof(raw)));
}

/* An instance of a device with MIG on. */
static void show_instance(struct nvml_source *s, size_t device, void *handle, unsigned index)
{
	const struct nvml_device *d = &s->devices[device];
	struct card_id id = d->id;
	unsigned gpu_instance = 0, compute_instance = 0;
	id.uuid[0] = '\0';
	nvml_read_text(s->lib.api.uuid, handle, id.uuid, sizeof(id.uuid));
	if (!id.uuid[0])
		return;
	nvml_read_text(s->lib.api.name, handle, id.name, sizeof(id.name));
	text_copy(id.parent_uuid, sizeof(id.parent_uuid), d->id.uuid);
	id.mig_index = (int)index;
	if (NVML_CALL(s->lib.api.gpu_instance, handle, &gpu_instance) == NVML_OK)
		id.gpu_instance = (int)gpu_instance;
	if (NVML_CALL(s->lib.api.compute_instance, handle, &compute_instance) == NVML_OK)
		id.compute_instance = (int)compute_instance;
	id.mem_total_bytes = UNKNOWN_BYTES;
	show_card(s, device, handle, &id);
}

static void look_for_instances(struct nvml_source *s, size_t device)
{
	unsigned max = 0;
	void *parent = s->devices[device].handle;
	if (NVML_CALL(s->lib.api.mig_max, parent, &max) != NVML_OK)
		return;
	for (unsigned i = 0; i < max && s->devices[device].handle; i++) {
		void *handle = NULL;
		int code = NVML_CALL(s->lib.api.mig_by_index, parent, i, &handle);
		if (code == NVML_LOST || code == NVML_RESET_REQUIRED)
			nvml_drop_device(s, device, CARD_STATUS_LOST, code);
		else if (code == NVML_OK && handle)
			show_instance(s, device, handle, i);
	}
}

/* Asks whether MIG is on; other errors leave the known mode as it is. */
static void read_mig_mode(struct nvml_source *s, size_t device)
{
	struct nvml_device *d = &s->devices[device];
	unsigned current = 0, pending = 0;
	int code = d->no_mig ? NVML_NOT_SUPPORTED
			     : NVML_CALL(s->lib.api.mig_mode, d->handle, &current, &pending);
	if (code == NVML_OK)
		d->mig = current == 1;
	else if (code == NVML_LOST || code == NVML_RESET_REQUIRED)
		nvml_drop_device(s, device, CARD_STATUS_LOST, code);
	else if (code == NVML_NOT_SUPPORTED || code == NVML_NO_FUNCTION)
		d->mig = !(d->no_mig = true);
}

/* A device that cannot be asked is shown as one card when none of its cards is known. */
static void show_absent(struct nvml_source *s, size_t device)
{
	const struct nvml_device *d = &s->devices[device];
	for (size_t i = 0; i < s->base.n_cards; i++)
		if (s->cards[i].device == device && !s->base.cards[i].gone)
			return;
	ssize_t card = nvml_find_card(s, d->id.uuid);
	if (card < 0)
		card = add_card(s, device, &d->id);
	if (card >= 0)
		drop_card(s, (size_t)card, d->status, d->code);
}

void nvml_show_device(struct nvml_source *s, size_t device)
{
	struct nvml_device *d = &s->devices[device];
	nvml_enter(s, d->id.index, "nvmlDeviceGetMigMode");
	if (d->handle)
		read_mig_mode(s, device);
	for (size_t i = 0; i < s->base.n_cards; i++)
		s->cards[i].found = s->cards[i].device != device;
	if (d->handle && d->mig)
		look_for_instances(s, device);
	else if (d->handle)
		show_card(s, device, d->handle, &d->id);
	for (size_t i = 0; d->handle && i < s->base.n_cards; i++)
		if (!s->cards[i].found)
			drop_card(s, i, CARD_STATUS_LOST, NVML_NOT_FOUND);
	if (!d->handle)
		show_absent(s, device);
}

void nvml_find_instances(struct nvml_source *s)
{
	for (size_t i = 0; i < s->n_devices; i++)
		if (s->devices[i].handle && !s->devices[i].no_mig)
			nvml_show_device(s, i);
}
