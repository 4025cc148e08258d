/* Errors of a card that the driver reports (XIDs): gua registers for them once and collects
 * them at each drain without waiting. */
#include "driver/nvml/nvml.h"

/* The card that an event of a device is about: the instance, else the first card that is
 * present. */
static ssize_t find_subject(const struct nvml_source *s, const struct nvml_event *event)
{
	ssize_t found = -1;
	for (size_t i = 0; i < s->base.n_cards; i++) {
		const struct card_id *id = &s->base.cards[i].id;
		if (s->devices[s->cards[i].device].handle != event->handle ||
			!s->cards[i].handle)
			continue;
		if (found < 0)
			found = (ssize_t)i;
		if (id->mig_index >= 0 && id->gpu_instance == (int)event->gpu_instance &&
			id->compute_instance == (int)event->compute_instance)
			return (ssize_t)i;
	}
	return found;
}

void nvml_watch_events(struct nvml_source *s)
{
	const struct nvml_api *api = &s->lib.api;
	for (size_t i = 0; i < s->n_devices; i++) {
		struct nvml_device *d = &s->devices[i];
		unsigned long long kinds = 0;
		if (!d->handle || d->events_on)
			continue;
		nvml_enter(s, d->id.index, "nvmlDeviceRegisterEvents");
		d->events_on = true; /* a card without events is not asked again */
		if (NVML_CALL(api->event_kinds, d->handle, &kinds) != NVML_OK ||
			!(kinds & NVML_EVENT_XID))
			continue;
		if (!s->event_set && NVML_CALL(api->event_set_new, &s->event_set) != NVML_OK)
			s->event_set = NULL;
		if (s->event_set)
			NVML_CALL(api->event_register, d->handle, NVML_EVENT_XID, s->event_set);
	}
}

void nvml_collect_events(struct nvml_source *s)
{
	enum { MOST = sizeof(s->xids) / sizeof(s->xids[0]) };
	s->base.xids = s->xids;
	s->base.n_xids = 0;
	nvml_enter(s, -1, "nvmlEventSetWait");
	for (int tries = 0; s->event_set && tries < MOST; tries++) {
		struct nvml_event event = { 0 };
		if (NVML_CALL(s->lib.api.event_wait, s->event_set, &event, 0) != NVML_OK)
			return;
		ssize_t card = event.kind & NVML_EVENT_XID ? find_subject(s, &event) : -1;
		if (card >= 0)
			s->xids[s->base.n_xids++] = (struct source_xid){ .card = (size_t)card,
				.number = (int64_t)event.data };
	}
}

void nvml_drop_events(struct nvml_source *s)
{
	if (s->event_set && s->lib.ready)
		NVML_CALL(s->lib.api.event_set_free, s->event_set);
	s->event_set = NULL;
	s->base.n_xids = 0;
	for (size_t i = 0; i < s->n_devices; i++)
		s->devices[i].events_on = false;
}
