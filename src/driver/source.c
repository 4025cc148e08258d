/* Opens the sources in a list of names; calls go through the source's table of functions. */
#include "driver/source.h"

#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "driver/kind.h"
#include "driver/source_set.h"

int source_open(struct source **s, const struct source_options *options, struct err *e)
{
	struct source_list list;
	int rc = source_list_read(&list, options->name, false, e);
	if (rc)
		return rc;
	if (list.n == 1)
		return source_kind_open(list.kinds[0], s, options, e);
	return source_set_open(s, &list, options, e);
}

bool source_kind_is_apart(const struct source_kind *kind, const struct source_options *options)
{
	return options->host && kind->may_block && clock_is_shared(options->clock);
}

int source_kind_open(const struct source_kind *kind, struct source **s,
	const struct source_options *options, struct err *e)
{
	if (source_kind_is_apart(kind, options))
		return options->host->open(options->host, s, kind, options, e);
	return kind->open(s, options, e);
}

void source_place_set(struct source_place *p, int card, const char *call)
{
	if (!p)
		return;
	p->card = card;
	str_copy(p->call, sizeof(p->call), call);
}

int source_unsaid(struct source *s, struct err *e)
{
	int rc = s->unsaid.code;
	if (rc)
		*e = s->unsaid;
	s->unsaid = (struct err){ 0 };
	return rc;
}

void source_lose_card(struct card_reading *r, int code)
{
	struct card_reading lost = { .id = r->id,
		.own_processes = r->own_processes,
		.status = r->status == CARD_STATUS_OK ? CARD_STATUS_LOST : r->status,
		.code = r->status == CARD_STATUS_OK ? code : r->code,
		.gone = r->gone,
		.energy_mj = NAN,
		.power_mw = NAN,
		.sm_active_pct = NAN,
		.mem_used_bytes = UNKNOWN_BYTES };
	str_copy(lost.source, sizeof(lost.source), r->source);
	*r = lost;
}

bool source_is_avoided(const struct source_avoids *a, int index, const char *pci)
{
	for (size_t i = 0; a && i < a->n; i++) {
		const struct source_avoid *one = &a->cards[i];
		bool both = one->pci[0] && pci[0];
		if (both ? strcmp(one->pci, pci) == 0 : one->index == index)
			return true;
	}
	return false;
}

void source_close(struct source *s)
{
	if (s)
		s->ops->close(s);
}

int source_scan(struct source *s, struct err *e)
{
	return s->ops->scan(s, e);
}

int source_drain(struct source *s, const bool *which, struct err *e)
{
	return s->ops->drain(s, which, e);
}

int source_glance(struct source *s, unsigned what, struct err *e)
{
	return s->ops->glance(s, what, e);
}

int source_look(struct source *s, const bool *which, struct err *e)
{
	return s->ops->look(s, which, e);
}

int source_late(struct source *s, struct err *e)
{
	return s->ops->late ? s->ops->late(s, e) : 0;
}

void source_log_no_room(void)
{
	log_error("not enough memory for another card");
}
