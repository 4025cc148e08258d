/* Finds the devices and the cards that are audited: a device is one card; with MIG on, each of
 * its instances is a card. Devices are matched by UUID, so that a lost device is recognised
 * when it comes back. */
#include "driver/nvml/nvml.h"

/* Marks a card that can no longer be asked. Its measurements start again when it comes back. */
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
	reading_clear(&s->base.cards[card], status, code);
	s->base.cards[card].gone = status == CARD_STATUS_LOST && code == NVML_NOT_FOUND;
}

/* Adds a card of a device; returns its index, or -1 when out of memory. */
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
	nvml_job_forget_ways(&s->cards[n], id->mig_index >= 0);
	struct card_reading *r = &s->base.cards[n];
	*r = (struct card_reading){ .id = *id, .own_processes = s->play != NULL };
	str_copy(r->source, sizeof(r->source), s->base.ops->name);
	reading_clear(r, CARD_STATUS_OK, NVML_OK);
	s->base.n_cards++;
	return (ssize_t)n;
}

static ssize_t find_card(const struct nvml_source *s, const char *uuid)
{
	for (size_t i = 0; i < s->base.n_cards; i++)
		if (strcmp(s->base.cards[i].id.uuid, uuid) == 0)
			return (ssize_t)i;
	return -1;
}

static void drop_device(struct nvml_source *s, size_t device, enum card_status status, int code)
{
	s->devices[device].handle = NULL;
	s->devices[device].status = status;
	s->devices[device].code = code;
	for (size_t i = 0; i < s->base.n_cards; i++)
		if (s->cards[i].device == device && !s->base.cards[i].gone)
			drop_card(s, i, status, code);
}

void nvml_cards_lose(struct nvml_source *s, size_t card, int code)
{
	if (code == NVML_NOT_FOUND)
		drop_card(s, card, CARD_STATUS_LOST, code);
	else
		drop_device(s, s->cards[card].device, CARD_STATUS_LOST, code);
}

void nvml_cards_drop_handles(struct nvml_source *s)
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
	ssize_t card = find_card(s, id->uuid);
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
		nvml_process_read_memory(s, (size_t)card, NVML_MEMORY_SCANNED);
}

static void read_text(
	int (*call)(void *, char *, unsigned), void *handle, char *dst, size_t cap)
{
	char raw[96] = "";
	if (NVML_CALL(call, handle, raw, sizeof(raw)) != NVML_OK)
		return;
	str_escape(dst, cap, raw, strnlen(raw, sizeof(raw)));
}

/* Shows an instance of a device with MIG on. */
static void show_instance(struct nvml_source *s, size_t device, void *handle, unsigned index)
{
	const struct nvml_device *d = &s->devices[device];
	struct card_id id = d->id;
	unsigned gpu_instance = 0, compute_instance = 0;
	id.uuid[0] = '\0';
	read_text(s->lib.api.uuid, handle, id.uuid, sizeof(id.uuid));
	if (!id.uuid[0])
		return;
	read_text(s->lib.api.name, handle, id.name, sizeof(id.name));
	str_copy(id.parent_uuid, sizeof(id.parent_uuid), d->id.uuid);
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
		if (nvml_job_is_lost(code))
			drop_device(s, device, CARD_STATUS_LOST, code);
		else if (code == NVML_OK && handle)
			show_instance(s, device, handle, i);
	}
}

/* Asks whether MIG is on; after an error the mode that is known stays. */
static void read_mig_mode(struct nvml_source *s, size_t device)
{
	struct nvml_device *d = &s->devices[device];
	unsigned current = 0, pending = 0;
	int code = d->no_mig ? NVML_NOT_SUPPORTED
			     : NVML_CALL(s->lib.api.mig_mode, d->handle, &current, &pending);
	if (code == NVML_OK)
		d->mig = current == 1;
	else if (nvml_job_is_lost(code))
		drop_device(s, device, CARD_STATUS_LOST, code);
	else if (code == NVML_NOT_SUPPORTED || code == NVML_NO_FUNCTION)
		d->mig = !(d->no_mig = true);
}

/* A device that cannot be asked is shown as one card if none of its cards is known. */
static void show_absent(struct nvml_source *s, size_t device)
{
	const struct nvml_device *d = &s->devices[device];
	for (size_t i = 0; i < s->base.n_cards; i++)
		if (s->cards[i].device == device && !s->base.cards[i].gone)
			return;
	ssize_t card = find_card(s, d->id.uuid);
	if (card < 0)
		card = add_card(s, device, &d->id);
	if (card >= 0)
		drop_card(s, (size_t)card, d->status, d->code);
}

/* Brings the cards in line with what the device has now, and drops those that are gone. */
static void show_device(struct nvml_source *s, size_t device)
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

void nvml_cards_find_instances(struct nvml_source *s)
{
	for (size_t i = 0; i < s->n_devices; i++)
		if (s->devices[i].handle && !s->devices[i].no_mig)
			show_device(s, i);
}

/* From here on: finds the devices by index and matches them by UUID, so that a lost device is
 * recognised when it comes back. A sleeping device is not touched.
 *
 * A device that may not be opened, sleeps, or was lost before it was ever asked has a
 * placeholder as its UUID, "pci-ADDRESS" or "index-N", until its own is known. */

/* Finds the device with this UUID, or with a placeholder for that address or index; or NULL. */
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

/* Finds the device with this identity; adds it when it is new. A card with a placeholder gets
 * its true UUID. */
static struct nvml_device *claim_device(struct nvml_source *s, const struct card_id *id)
{
	struct nvml_device *d = find_device(s, id);
	if (!d && !array_one_more(&s->devices, s->n_devices)) {
		source_log_no_room();
		return NULL;
	}
	if (!d) {
		d = &s->devices[s->n_devices++];
		*d = (struct nvml_device){
			.persistence = -1, .accounting = -1, .gpm = -1, .power_limit_mw = NAN
		};
	}
	ssize_t card = d->id.uuid[0] ? find_card(s, d->id.uuid) : -1;
	if (card >= 0) {
		int64_t mem_total_bytes = s->base.cards[card].id.mem_total_bytes;
		s->base.cards[card].id = *id;
		s->base.cards[card].id.mem_total_bytes = mem_total_bytes;
	}
	d->id = *id;
	d->found = true;
	return d;
}

/* Finds what is known of the device at an index without asking it: from the kernel's list, or
 * from the last scan. */
static void guess_identity(
	const struct nvml_source *s, int index, const struct proc_card *gpu, struct card_id *id)
{
	*id = (struct card_id){ .index = index,
		.mig_index = -1,
		.gpu_instance = -1,
		.compute_instance = -1,
		.mem_total_bytes = UNKNOWN_BYTES };
	if (gpu) {
		str_copy(id->pci, sizeof(id->pci), gpu->pci);
		str_copy(id->name, sizeof(id->name), gpu->name);
		str_copy(id->uuid, sizeof(id->uuid), gpu->uuid);
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
	str_escape(id.uuid, sizeof(id.uuid), uuid, strnlen(uuid, sizeof(uuid)));
	read_text(api->name, handle, id.name, sizeof(id.name));
	struct nvml_pci pci = { 0 };
	if (NVML_CALL(api->pci, handle, &pci) == NVML_OK)
		snprintf(id.pci, sizeof(id.pci), "%04x:%02x:%02x.0", pci.domain, pci.bus,
			pci.device);
	struct nvml_device *d = claim_device(s, &id);
	if (!d)
		return NVML_NO_MEMORY;
	d->handle = handle;
	d->status = CARD_STATUS_OK;
	d->code = NVML_OK;
	unsigned on = 0;
	code = NVML_CALL(api->persistence, handle, &on);
	d->persistence = code == NVML_OK ? on != 0 : -1;
	d->accounting = nvml_account_mode(s, handle);
	nvml_energy_read_limit(s, d);
	return NVML_OK;
}

/* Notes a device that exists but cannot be opened. */
static void refuse_index(
	struct nvml_source *s, int index, const struct proc_card *gpu, int code)
{
	struct card_id id;
	guess_identity(s, index, gpu, &id);
	struct nvml_device *d = claim_device(s, &id);
	if (d)
		drop_device(s, (size_t)(d - s->devices),
			code == NVML_NO_PERMISSION ? CARD_STATUS_DENIED : CARD_STATUS_LOST,
			code);
}

/* Whether a card sleeps; `power` is kept open. */
static bool is_asleep(
	const struct nvml_source *s, struct nvml_host_power *power, const char *pci)
{
	return s->play ? captured_asleep(s->play, pci) : nvml_host_asleep(power, s->root, pci);
}

/* Does not touch the device if it sleeps; false: it is awake, or its address is not known. */
static bool leave_asleep(struct nvml_source *s, int index, const struct proc_card *gpu)
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
		drop_device(s, (size_t)(d - s->devices), CARD_STATUS_ASLEEP, NVML_OK);
	return true;
}

/* Opens the devices that can be opened and do not sleep; codes[] says why the others were not
 * opened. `gpus` is the card at each index, as far as it is known, or NULL. Returns the code
 * when the driver as a whole is down. */
static int open_devices(struct nvml_source *s, size_t count, const struct proc_card *gpus,
	bool may_sleep, int *codes)
{
	size_t nothing = 0;
	for (size_t i = 0; i < s->n_devices; i++)
		s->devices[i].found = false;
	for (size_t i = 0; i < count; i++) {
		const struct proc_card *gpu = gpus ? &gpus[i] : NULL;
		codes[i] = NVML_OK;
		if (source_is_avoided(s->avoids, (int)i, gpu ? gpu->pci : ""))
			codes[i] = NVML_STUCK;
		else if (!may_sleep || !leave_asleep(s, (int)i, gpu))
			codes[i] = open_index(s, (int)i);
		if (nvml_job_is_fatal(codes[i]))
			return codes[i];
		nothing += codes[i] == NVML_UNKNOWN || codes[i] == NVML_BLOCKED;
	}
	return count && nothing == count ? codes[0] : NVML_OK;
}

/* Whether an opened device is at another place than in the list. */
static bool is_other_order(const struct nvml_source *s, const struct proc_card *gpus)
{
	for (size_t i = 0; i < s->n_devices; i++) {
		const struct nvml_device *d = &s->devices[i];
		if (d->found && d->handle && d->id.pci[0] &&
			strcmp(d->id.pci, gpus[d->id.index].pci) != 0)
			return true;
	}
	return false;
}

int nvml_cards_find(struct nvml_source *s, struct err *e)
{
	struct proc_card gpus[PROC_CARDS_MAX];
	int codes[PROC_CARDS_MAX];
	unsigned count = 0;
	nvml_enter(s, -1, "nvmlDeviceGetCount");
	int code = s->lib.api.count(&count);
	for (size_t i = 0; i < s->n_devices; i++) /* they may change */
		nvml_host_power_close(&s->devices[i].power);
	if (count > PROC_CARDS_MAX)
		count = PROC_CARDS_MAX;
	/* The driver numbers the cards by bus address. A list with another length or order
	 * cannot be used; then a sleeping card may be woken. */
	size_t known = s->play ? captured_gpus(s->play, gpus) : nvml_host_cards(s->root, gpus);
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
	/* Devices that the driver no longer counts are lost. */
	for (size_t i = 0; i < s->n_devices; i++) {
		const struct nvml_device *d = &s->devices[i];
		if (!d->found)
			drop_device(s, i, CARD_STATUS_LOST,
				d->status == CARD_STATUS_LOST ? d->code : NVML_LOST);
	}
	/* By index, so that new cards come in the driver's order. */
	for (int index = 0; index < PROC_CARDS_MAX; index++)
		for (size_t i = 0; i < s->n_devices; i++)
			if (s->devices[i].id.index == index)
				show_device(s, i);
	return 0;
}

/* Opens a device that slept at the last scan and is awake now. */
static void wake_device(struct nvml_source *s, size_t device)
{
	int index = s->devices[device].id.index;
	s->devices[device].found = false;
	int code = open_index(s, index);
	if (nvml_job_is_fatal(code))
		nvml_go_down(s, code);
	else if (code != NVML_OK)
		refuse_index(s, index, NULL, code);
	else if (s->devices[device].handle)
		show_device(s, device);
}

void nvml_cards_check_awake(struct nvml_source *s)
{
	for (size_t i = 0; i < s->n_devices && !s->down; i++) {
		struct nvml_device *d = &s->devices[i];
		if (d->status != CARD_STATUS_OK && d->status != CARD_STATUS_ASLEEP)
			continue;
		bool asleep = is_asleep(s, &d->power, d->id.pci);
		if (asleep && d->status == CARD_STATUS_OK)
			drop_device(s, i, CARD_STATUS_ASLEEP, NVML_OK);
		else if (!asleep && d->status == CARD_STATUS_ASLEEP)
			wake_device(s, i);
	}
}
