/* The real driver as a source: opens its library, and does scans, drains and looks over all
 * cards. A fault of one card becomes its status. A fault of the driver as a whole ends the
 * round, and the next scan opens everything again. */
#include "driver/nvml/nvml.h"

/* From here on: errors of a card that the driver reports (XIDs). gua registers for them once
 * and collects them at each drain without waiting. */

/* Finds the card that an event of a device is about: the instance, else the first card that is
 * present. One that is lost is the subject too: an XID says why. */
static ssize_t find_subject(const struct nvml_source *s, const struct nvml_event *event)
{
	ssize_t found = -1;
	for (size_t i = 0; i < s->base.n_cards; i++) {
		const struct card_id *id = &s->base.cards[i].id;
		if (s->devices[s->cards[i].device].event_handle != event->handle)
			continue;
		if (found < 0 || (!s->cards[found].handle && s->cards[i].handle))
			found = (ssize_t)i;
		if (s->cards[i].handle && id->mig_index >= 0 &&
			id->gpu_instance == (int)event->gpu_instance &&
			id->compute_instance == (int)event->compute_instance)
			return (ssize_t)i;
	}
	return found;
}

/* Registers for XIDs. */
static void watch_events(struct nvml_source *s)
{
	const struct nvml_api *api = &s->lib.api;
	for (size_t i = 0; i < s->n_devices; i++) {
		struct nvml_device *d = &s->devices[i];
		unsigned long long kinds = 0;
		if (!d->handle || d->events_on)
			continue;
		nvml_enter(s, d->id.index, "nvmlDeviceRegisterEvents");
		d->events_on = true; /* a card without events is not asked again */
		d->event_handle = d->handle;
		if (NVML_CALL(api->event_kinds, d->handle, &kinds) != NVML_OK ||
			!(kinds & NVML_EVENT_XID))
			continue;
		if (!s->event_set && NVML_CALL(api->event_set_new, &s->event_set) != NVML_OK)
			s->event_set = NULL;
		if (s->event_set)
			NVML_CALL(api->event_register, d->handle, NVML_EVENT_XID, s->event_set);
	}
}

static void collect_events(struct nvml_source *s)
{
	enum { MOST = sizeof(s->xids) / sizeof(s->xids[0]) };
	s->base.xids = s->xids;
	s->base.n_xids = s->n_kept;
	s->n_kept = 0;
	nvml_enter(s, -1, "nvmlEventSetWait");
	for (int tries = 0; s->event_set && tries < MOST && s->base.n_xids < MOST; tries++) {
		struct nvml_event event = { 0 };
		if (NVML_CALL(s->lib.api.event_wait, s->event_set, &event, 0) != NVML_OK)
			return;
		ssize_t card = event.kind & NVML_EVENT_XID ? find_subject(s, &event) : -1;
		if (card >= 0)
			s->xids[s->base.n_xids++] = (struct source_xid){ .card = (size_t)card,
				.number = (int64_t)event.data };
	}
}

static void drop_events(struct nvml_source *s)
{
	if (s->event_set && s->lib.ready)
		NVML_CALL(s->lib.api.event_set_free, s->event_set);
	s->event_set = NULL;
	s->base.n_xids = 0;
	for (size_t i = 0; i < s->n_devices; i++)
		s->devices[i].events_on = false;
}

bool nvml_reserve(struct nvml_buffer *b, size_t entries, size_t size)
{
	if (entries <= b->cap)
		return true;
	if (!array_resize_sized(&b->data, entries, size))
		return false;
	b->cap = entries;
	return true;
}

void nvml_enter(struct nvml_source *s, int index, const char *call)
{
	source_place_set(s->place, index, call);
}

void nvml_go_down(struct nvml_source *s, int code)
{
	s->down = s->base.code = code;
	nvml_lib_err(&s->lib, s->root, code, &s->why);
	nvml_cards_drop_handles(s);
}

/* After this every handle is invalid, and calls that were not supported may work again. */
static void forget(struct nvml_source *s)
{
	drop_events(s);
	nvml_cards_drop_handles(s);
	for (size_t i = 0; i < s->base.n_cards; i++) {
		nvml_gpm_free(s, i);
		nvml_job_forget_ways(&s->cards[i], s->base.cards[i].id.mig_index >= 0);
	}
	s->gpm_mend = false;
	for (size_t i = 0; i < s->n_devices; i++) {
		s->devices[i].gpm = -1;
		s->devices[i].no_mig = false;
		s->devices[i].dead = (struct nvml_dead){ 0 };
	}
}

/* Whether the module is missing. A library may work without it: WSL2 has a different one. */
static bool misses_module(const struct nvml_source *s)
{
	return !s->path && !s->play && !nvml_host_has_module(s->root);
}

static int not_loaded(const struct nvml_source *s, struct err *e)
{
	err_set(e, ERR_WORLD,
		"no NVIDIA driver is loaded (neither %s/sys/module/nvidia nor "
		"%s/proc/driver/nvidia/version is there); load it, or name its library with %s",
		s->root, s->root, s->path_option);
	return err_number(e, ERR_WORLD, NVML_NO_DRIVER);
}

/* Loads and initialises the library; its answer decides whether there is a driver. The library
 * of this host knows nothing of the cards of a recorded tree, unless the tree has the library.
 */
static int load(struct nvml_source *s, struct err *e)
{
	const struct nvml_lib_choice choice = {
		.path = s->path, .option = s->path_option, .root = s->root, .play = s->play
	};
	if (s->root[0] && misses_module(s) && !nvml_lib_is_below(s->root))
		return not_loaded(s, e);
	if (nvml_lib_open(&s->lib, &choice, e) != 0) {
		int code = e->number;
		if (misses_module(s))
			err_number(e, not_loaded(s, e), code);
		return e->code;
	}
	nvml_enter(s, -1, "nvmlInit");
	if (nvml_lib_start(&s->lib, s->root, e) != 0) {
		bool no_driver = s->lib.code == NVML_NO_DRIVER && misses_module(s);
		return no_driver ? not_loaded(s, e) : e->code;
	}
	char version[VERSION_CAP] = "";
	if (NVML_CALL(s->lib.api.driver_version, version, sizeof(version)) == NVML_OK)
		str_escape(s->base.driver_version, sizeof(s->base.driver_version), version,
			strnlen(version, sizeof(version)));
	else
		nvml_host_module_version(
			s->root, s->base.driver_version, sizeof(s->base.driver_version));
	s->down = NVML_OK;
	return 0;
}

/* Whether a device is lost that a restart may bring back: not one that must not be asked. */
static bool has_lost_device(const struct nvml_source *s)
{
	for (size_t i = 0; i < s->n_devices; i++)
		if (s->devices[i].status == CARD_STATUS_LOST &&
			s->devices[i].code != NVML_STUCK)
			return true;
	return false;
}

/* Loads the library again, or initialises it again: a lost card may be back after that. */
static int start_again(struct nvml_source *s, struct err *e)
{
	int rc = 0;
	if (s->down || !s->lib.ready) {
		forget(s);
		nvml_lib_close(&s->lib);
		rc = load(s, e);
	} else {
		/* The XID of a lost card comes just before this; the next drain has it. */
		collect_events(s);
		s->n_kept = s->base.n_xids;
		nvml_enter(s, -1, "nvmlShutdown and nvmlInit");
		forget(s);
		nvml_lib_stop(&s->lib);
		rc = nvml_lib_start(&s->lib, s->root, e);
	}
	if (rc == 0)
		return 0;
	s->down = s->base.code = NVML_UNINITIALISED;
	s->why = *e;
	nvml_cards_drop_handles(s);
	return e->code;
}

static int nvml_scan(struct source *base, struct err *e)
{
	struct nvml_source *s = (struct nvml_source *)base;
	bool again = s->down || !s->lib.ready || s->gpm_mend || has_lost_device(s);
	int rc = again ? start_again(s, e) : 0;
	if (rc == 0)
		rc = nvml_cards_find(s, e);
	if (rc == 0)
		watch_events(s);
	return rc;
}

/* Starts a round over the cards; false when there is no driver to ask. */
static bool begin_round(struct nvml_source *s)
{
	if (!s->down)
		nvml_cards_check_awake(s);
	for (size_t i = 0; i < s->base.n_cards; i++) {
		s->cards[i].answered = false;
		s->cards[i].failure = NVML_OK;
	}
	return !s->down;
}

/* A card that answered every call with "unknown error" is lost. When no other card answered
 * either, the driver is down. */
static int end_round(struct nvml_source *s, struct err *e)
{
	bool any_answered = false;
	int failure = NVML_OK;
	for (size_t i = 0; i < s->base.n_cards; i++) {
		any_answered |= s->cards[i].answered;
		if (!s->cards[i].answered && s->cards[i].failure)
			failure = s->cards[i].failure;
	}
	if (failure && !any_answered && !s->down)
		nvml_go_down(s, failure);
	if (s->down) {
		*e = s->why;
		return s->why.code;
	}
	for (size_t i = 0; i < s->base.n_cards; i++)
		if (!s->cards[i].answered && s->cards[i].failure && s->cards[i].handle)
			nvml_cards_lose(s, i, s->cards[i].failure);
	return 0;
}

/* Whether the card is selected and can be asked. */
static bool is_meant(const struct nvml_source *s, const bool *which, size_t i)
{
	return !s->down && s->cards[i].handle && (!which || which[i]);
}

static int nvml_drain(struct source *base, const bool *which, struct err *e)
{
	struct nvml_source *s = (struct nvml_source *)base;
	base->n_xids = 0;
	for (size_t i = 0; i < base->n_cards; i++)
		if (!which || which[i])
			reading_clear_drained(&base->cards[i]);
	bool go_on = begin_round(s);
	if (go_on)
		collect_events(s);
	for (size_t i = 0; go_on && i < base->n_cards; i++)
		if (is_meant(s, which, i)) {
			nvml_util_drain(s, i);
			if (s->cards[i].handle)
				nvml_use_drain(s, i);
			if (s->cards[i].handle)
				nvml_account_drain(s, i);
			if (s->cards[i].handle && !(s->base.drains & DRAIN_BRIEF))
				nvml_energy_read(s, i);
			if (s->cards[i].handle && s->base.drains & DRAIN_POWER)
				nvml_energy_read_power(s, i);
		}
	for (size_t i = 0; go_on && i < base->n_cards; i++)
		if (is_meant(s, which, i))
			nvml_gpm_read(s, i, true);
	for (size_t i = 0; go_on && i < base->n_cards; i++)
		if (is_meant(s, which, i))
			nvml_util_finish(s, i);
	nvml_util_note_rings(s);
	return end_round(s, e);
}

/* Reads memory or energy of all cards; returns what that cost. */
static int64_t glance_at(struct nvml_source *s, enum glance what)
{
	int64_t before_us = clock_cost_us(s->clock);
	for (size_t i = 0; i < s->base.n_cards && !s->down; i++) {
		if (!s->cards[i].handle)
			continue;
		if (what == GLANCE_MEMORY)
			nvml_process_read_memory(s, i, NVML_MEMORY_GLANCED);
		else
			nvml_energy_read(s, i);
	}
	return clock_cost_us(s->clock) - before_us;
}

static int nvml_glance(struct source *base, unsigned what, struct err *e)
{
	struct nvml_source *s = (struct nvml_source *)base;
	base->memory_cost_us = base->energy_cost_us = 0;
	bool go_on = begin_round(s);
	if (go_on && what & GLANCE_MEMORY)
		base->memory_cost_us = glance_at(s, GLANCE_MEMORY);
	if (go_on && what & GLANCE_ENERGY)
		base->energy_cost_us = glance_at(s, GLANCE_ENERGY);
	for (size_t i = 0; go_on && i < base->n_cards && !s->down; i++)
		if (s->cards[i].handle)
			nvml_util_glance(s, i);
	for (size_t i = 0; go_on && i < base->n_cards && !s->down; i++)
		if (s->cards[i].handle)
			nvml_gpm_read(s, i, false);
	return end_round(s, e);
}

static int nvml_look(struct source *base, const bool *which, struct err *e)
{
	struct nvml_source *s = (struct nvml_source *)base;
	bool go_on = begin_round(s);
	if (go_on && !which)
		nvml_cards_find_instances(s);
	for (size_t i = 0; go_on && i < base->n_cards && !s->down; i++) {
		if (which && !which[i])
			continue;
		base->cards[i].processes_known = false;
		base->cards[i].n_processes = 0;
		if (s->cards[i].handle)
			nvml_process_look(s, i);
		if (s->cards[i].handle)
			nvml_process_read_memory(s, i, NVML_MEMORY_LOOKED);
	}
	return end_round(s, e);
}

static void nvml_close(struct source *base)
{
	struct nvml_source *s = (struct nvml_source *)base;
	drop_events(s);
	for (size_t i = 0; i < base->n_cards; i++)
		nvml_gpm_free(s, i);
	nvml_lib_close(&s->lib);
	capture_play_close(s->play);
	for (size_t i = 0; i < base->n_cards; i++) {
		struct nvml_card *c = &s->cards[i];
		struct nvml_buffer *buffers[] = { &c->samples, &c->utils, &c->parts,
			&c->processes, &c->glanced, &c->accounts.pids, &c->accounts.lives,
			&c->accounts.next, &c->accounts.ended };
		for (size_t k = 0; k < sizeof(buffers) / sizeof(buffers[0]); k++)
			free(buffers[k]->data);
		use_finish(&c->past);
	}
	for (size_t i = 0; i < s->n_devices; i++)
		nvml_host_power_close(&s->devices[i].power);
	free(s->raw_samples.data);
	free(s->raw_utils.data);
	free(s->raw_list.data);
	free(s->cards);
	free(s->devices);
	free(base->cards);
	free(s);
}

static void nvml_board(struct source *base, size_t card, struct card_id *id)
{
	const struct nvml_source *s = (struct nvml_source *)base;
	*id = s->devices[s->cards[card].device].id;
}

#define NVML_OPS                                                                               \
	.scan = nvml_scan, .drain = nvml_drain, .glance = nvml_glance, .look = nvml_look,      \
	.metrics = nvml_metric_read, .accounts = nvml_account_read, .board = nvml_board,       \
	.facilities = nvml_job_facilities, .close = nvml_close
static const struct source_ops nvml_ops = { .name = "nvml", NVML_OPS };
/* The capture describes the processes of its host. */
static const struct source_ops captured_ops = {
	.name = "capture", .describe = captured_describe, NVML_OPS
};

/* For the cards of another host, nothing of this host may be read: no file is below this path.
 */
#define NO_ROOT "/dev/null"

int nvml_open(struct source **source, const struct source_options *options,
	struct capture_play *play, struct err *e)
{
	struct nvml_source *s = calloc(1, sizeof(*s));
	if (!s) {
		capture_play_close(play);
		return err_memory(e);
	}
	s->base.ops = play ? &captured_ops : &nvml_ops;
	s->play = play;
	s->path = play ? NULL : options->nvml_path;
	s->path_option = options->nvml_option ? options->nvml_option : "--nvml PATH";
	s->root = play ? NO_ROOT : options->root ? options->root : "";
	s->clock = options->clock;
	s->place = options->place;
	s->avoids = options->avoids;
	s->opened_ms = clock_wall_ms(s->clock);
	if (nvml_scan(&s->base, e) != 0) {
		int code = e->code;
		nvml_close(&s->base);
		return code;
	}
	*source = &s->base;
	return 0;
}

int nvml_source_open(
	struct source **source, const struct source_options *options, struct err *e)
{
	return nvml_open(source, options, NULL, e);
}
