/* Finds the devices by index and matches them by UUID, so that a lost device is recognised
 * when it comes back. A sleeping device is not touched.
 *
 * A device that may not be opened, sleeps or is lost before it was ever asked has a placeholder
 * as its UUID, "pci-ADDRESS" or "index-N", until its own is known. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/str.h"
#include "driver/nvml/nvml.h"
#include "driver/nvml/nvml_host.h"

/* The device with this UUID, or the one with a placeholder for that address or index; or NULL.
 */
static struct nvml_device *find_device(struct nvml_source *s, const struct card_id *id)
{
	for (size_t i = 0; i < s->n_devices; i++)
		if (strcmp(s->devices[i].id.uuid, id->uuid) == 0)
			return &s->devices[i];
	for (size_t i = 0; i < s->n_devices; i++) {
		const struct card_id *other = &s->devices[i].id;
		if (card_has_uuid(other))
			continue;
		bool same = other->pci[0] && id->pci[0]
				    ? strcmp(other->pci, id->pci) == 0
				    : other->index == id->index && !s->devices[i].found;
		if (same)
			return &s->devices[i];
	}
	return NULL;
}

static struct nvml_device *add_device(struct nvml_source *s)
{
	if (!array_one_more(&s->devices, s->n_devices))
		return NULL;
	s->devices[s->n_devices] = (struct nvml_device){
		.persistence = -1, .accounting = -1, .gpm = -1, .power_limit_mw = NAN
	};
	return &s->devices[s->n_devices++];
}

static void read_pci(struct nvml_source *s, void *handle, struct card_id *id)
{
	struct nvml_pci pci = { 0 };
	if (NVML_CALL(s->lib.api.pci, handle, &pci) == NVML_OK)
		snprintf(id->pci, sizeof(id->pci), "%04x:%02x:%02x.0", pci.domain, pci.bus,
			pci.device);
}

/* Finds the device with this identity; adds it when it is new. A card with a placeholder gets
 * its true UUID. */
static struct nvml_device *claim_device(struct nvml_source *s, const struct card_id *id)
{
	struct nvml_device *d = find_device(s, id);
	if (!d)
		d = add_device(s);
	if (!d) {
		source_log_no_room();
		return NULL;
	}
	ssize_t card = d->id.uuid[0] ? nvml_find_card(s, d->id.uuid) : -1;
	if (card >= 0) {
		int64_t mem_total_bytes = s->base.cards[card].id.mem_total_bytes;
		s->base.cards[card].id = *id;
		s->base.cards[card].id.mem_total_bytes = mem_total_bytes;
	}
	d->id = *id;
	d->found = true;
	return d;
}

static size_t device_index(const struct nvml_source *s, const struct nvml_device *d)
{
	return (size_t)(d - s->devices);
}

/* What is known of the device at an index without asking it: from the kernel's list, or from
 * the last scan. */
static void guess_identity(const struct nvml_source *s, int index,
	const struct nvml_host_gpu *gpu, struct card_id *id)
{
	*id = (struct card_id){ .index = index,
		.mig_index = -1,
		.gpu_instance = -1,
		.compute_instance = -1,
		.mem_total_bytes = UNKNOWN_BYTES };
	if (gpu) {
		text_copy(id->pci, sizeof(id->pci), gpu->pci);
		text_copy(id->name, sizeof(id->name), gpu->name);
		text_copy(id->uuid, sizeof(id->uuid), gpu->uuid);
	}
	for (size_t i = 0; i < s->n_devices; i++) {
		const struct card_id *known = &s->devices[i].id;
		if (s->devices[i].found)
			continue;
		if (gpu ? strcmp(known->pci, gpu->pci) == 0 : known->index == index)
			*id = *known;
	}
	id->index = index;
	if (!id->uuid[0] && id->pci[0])
		snprintf(id->uuid, sizeof(id->uuid), "pci-%s", id->pci);
	else if (!id->uuid[0])
		snprintf(id->uuid, sizeof(id->uuid), "index-%d", index);
}

/* Reads the identity of the device at an index; returns the driver's code. */
static int open_index(struct nvml_source *s, int index)
{
	const struct nvml_api *api = &s->lib.api;
	struct card_id id = { .index = index,
		.mig_index = -1,
		.gpu_instance = -1,
		.compute_instance = -1,
		.mem_total_bytes = UNKNOWN_BYTES };
	void *handle = NULL;
	char uuid[UUID_CAP] = "";
	nvml_enter(s, index, "nvmlDeviceGetHandleByIndex");
	int code = api->by_index((unsigned)index, &handle);
	if (code == NVML_OK)
		code = handle ? api->uuid(handle, uuid, sizeof(uuid)) : NVML_UNKNOWN;
	if (code != NVML_OK)
		return code;
	text_escape(id.uuid, sizeof(id.uuid), uuid, strnlen(uuid, sizeof(uuid)));
	nvml_read_text(api->name, handle, id.name, sizeof(id.name));
	read_pci(s, handle, &id);
	struct nvml_device *d = claim_device(s, &id);
	if (!d)
		return NVML_NO_MEMORY;
	d->handle = handle;
	d->status = CARD_STATUS_OK;
	d->code = NVML_OK;
	unsigned on = 0;
	code = NVML_CALL(api->persistence, handle, &on);
	d->persistence = code == NVML_OK ? on != 0 : -1;
	d->accounting = nvml_read_accounting(s, handle);
	nvml_read_power_limit(s, d);
	return NVML_OK;
}

/* A device that exists but cannot be opened. */
static void refuse_index(
	struct nvml_source *s, int index, const struct nvml_host_gpu *gpu, int code)
{
	struct card_id id;
	guess_identity(s, index, gpu, &id);
	struct nvml_device *d = claim_device(s, &id);
	if (d)
		nvml_drop_device(s, device_index(s, d),
			code == NVML_NO_PERMISSION ? CARD_STATUS_DENIED : CARD_STATUS_LOST,
			code);
}

/* Whether a card sleeps; `power` is kept open. */
static bool is_asleep(
	const struct nvml_source *s, struct nvml_host_power *power, const char *pci)
{
	return s->play ? nvml_captured_asleep(s->play, pci)
		       : nvml_host_asleep(power, s->root, pci);
}

/* Leaves the device alone when it sleeps; the address must be known without asking. */
static bool leave_asleep(struct nvml_source *s, int index, const struct nvml_host_gpu *gpu)
{
	struct card_id id;
	struct nvml_host_power power = { 0 };
	guess_identity(s, index, gpu, &id);
	bool asleep = is_asleep(s, &power, id.pci);
	nvml_host_power_close(&power);
	if (!asleep)
		return false;
	struct nvml_device *d = claim_device(s, &id);
	if (d)
		nvml_drop_device(s, device_index(s, d), CARD_STATUS_ASLEEP, NVML_OK);
	return true;
}

static bool is_whole_driver(int code)
{
	return code == NVML_UNINITIALISED || code == NVML_NO_DRIVER || code == NVML_MISMATCH;
}

/* Opens what can be opened and does not sleep; codes[] says why the others were not opened.
 * `gpus` is what is at each index, as far as that is known, or NULL. Returns the code when the
 * driver as a whole is down. */
static int open_devices(struct nvml_source *s, size_t count, const struct nvml_host_gpu *gpus,
	bool may_sleep, int *codes)
{
	size_t nothing = 0;
	for (size_t i = 0; i < s->n_devices; i++)
		s->devices[i].found = false;
	for (size_t i = 0; i < count; i++) {
		const struct nvml_host_gpu *gpu = gpus ? &gpus[i] : NULL;
		codes[i] = NVML_OK;
		if (source_is_avoided(s->avoids, (int)i, gpu ? gpu->pci : ""))
			codes[i] = NVML_STUCK;
		else if (!may_sleep || !leave_asleep(s, (int)i, gpu))
			codes[i] = open_index(s, (int)i);
		if (is_whole_driver(codes[i]))
			return codes[i];
		nothing += codes[i] == NVML_UNKNOWN || codes[i] == NVML_BLOCKED;
	}
	return count && nothing == count ? codes[0] : NVML_OK;
}

/* Whether an opened device is not at the place that the list gives. */
static bool is_other_order(const struct nvml_source *s, const struct nvml_host_gpu *gpus)
{
	for (size_t i = 0; i < s->n_devices; i++) {
		const struct nvml_device *d = &s->devices[i];
		if (d->found && d->handle && d->id.pci[0] &&
			strcmp(d->id.pci, gpus[d->id.index].pci) != 0)
			return true;
	}
	return false;
}

/* Devices that the driver no longer counts are lost. */
static void lose_the_rest(struct nvml_source *s)
{
	for (size_t i = 0; i < s->n_devices; i++) {
		const struct nvml_device *d = &s->devices[i];
		if (!d->found)
			nvml_drop_device(s, i, CARD_STATUS_LOST,
				d->status == CARD_STATUS_LOST ? d->code : NVML_LOST);
	}
}

/* By index, so that new cards come in the driver's order. */
static void show_devices(struct nvml_source *s)
{
	for (int index = 0; index < NVML_HOST_GPUS; index++)
		for (size_t i = 0; i < s->n_devices; i++)
			if (s->devices[i].id.index == index)
				nvml_show_device(s, i);
}

int nvml_find_cards(struct nvml_source *s, struct err *e)
{
	struct nvml_host_gpu gpus[NVML_HOST_GPUS];
	int codes[NVML_HOST_GPUS];
	unsigned count = 0;
	nvml_enter(s, -1, "nvmlDeviceGetCount");
	int code = s->lib.api.count(&count);
	for (size_t i = 0; i < s->n_devices; i++) /* addresses may change */
		nvml_host_power_close(&s->devices[i].power);
	if (count > NVML_HOST_GPUS)
		count = NVML_HOST_GPUS;
	/* The driver numbers the cards by bus address. A list with another length or order
	 * cannot be used; then a sleeping card may be woken. */
	size_t known = s->play ? nvml_captured_gpus(s->play, gpus)
			       : nvml_host_gpus(s->root, gpus, NVML_HOST_GPUS);
	bool matched = known == count;
	if (code == NVML_OK)
		code = open_devices(s, count, matched ? gpus : NULL, true, codes);
	if (code == NVML_OK && matched && is_other_order(s, gpus)) {
		matched = false;
		code = open_devices(s, count, NULL, false, codes);
	}
	if (code != NVML_OK) {
		nvml_go_down(s, code);
		*e = s->why;
		return e->code;
	}
	for (size_t i = 0; i < count; i++)
		if (codes[i] != NVML_OK)
			refuse_index(s, (int)i, matched ? &gpus[i] : NULL, codes[i]);
	lose_the_rest(s);
	show_devices(s);
	return 0;
}

/* A device that slept at the last scan and is awake now. */
static void wake_device(struct nvml_source *s, size_t device)
{
	int index = s->devices[device].id.index;
	s->devices[device].found = false;
	int code = open_index(s, index);
	if (is_whole_driver(code))
		nvml_go_down(s, code);
	else if (code != NVML_OK)
		refuse_index(s, index, NULL, code);
	else if (s->devices[device].handle)
		nvml_show_device(s, device);
}

void nvml_check_awake(struct nvml_source *s)
{
	for (size_t i = 0; i < s->n_devices && !s->down; i++) {
		struct nvml_device *d = &s->devices[i];
		if (d->status != CARD_STATUS_OK && d->status != CARD_STATUS_ASLEEP)
			continue;
		bool asleep = is_asleep(s, &d->power, d->id.pci);
		if (asleep && d->status == CARD_STATUS_OK)
			nvml_drop_device(s, i, CARD_STATUS_ASLEEP, NVML_OK);
		else if (!asleep && d->status == CARD_STATUS_ASLEEP)
			wake_device(s, i);
	}
}
