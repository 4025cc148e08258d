/* Counts the events of a window by kind, for reports. */
#include <stdlib.h>

#include "base/str.h"
#include "audit/columns.h"
#include "audit/gather_parts.h"
#include "store/sql.h"

/* The kinds that a report mentions, in its order. Others are ordinary: a card that is back,
 * asleep, new. */
static const struct mentioned {
	enum event_kind kind;
	bool lasts;	     /* the value is how long it lasted */
	int64_t at_least_ms; /* shorter ones are not mentioned */
} mentioned[] = {
	{ EVENT_CARD_LOST, false, 0 },
	{ EVENT_XID, false, 0 },
	{ EVENT_DRIVER_DOWN, false, 0 },
	{ EVENT_SUSPECT, false, 0 },
	{ EVENT_STORE_FAULT, false, 0 },
	{ EVENT_GAP, true, 0 },
	{ EVENT_RECORDER_OFF, true, 60000 }, /* less is a restart */
	{ EVENT_SUSPEND, true, 0 },
	{ EVENT_CLOCK_STEP, false, 0 },
};
enum { N_MENTIONED = sizeof(mentioned) / sizeof(mentioned[0]) };

static size_t rank_of(enum event_kind kind)
{
	size_t i = 0;
	while (i < N_MENTIONED && mentioned[i].kind != kind)
		i++;
	return i;
}

/* More XID numbers than a driver has: a damaged store cannot make the report long. */
enum { MOST_GROUPS = 64 };

/* The group of the event; NULL: out of memory, or there are too many. */
static struct audit_event *group_of(
	struct audit *a, enum event_kind kind, int64_t xid, struct err *e)
{
	for (size_t i = 0; i < a->n_events; i++)
		if (a->events[i].kind == kind && a->events[i].xid == xid)
			return &a->events[i];
	struct audit_event *group = a->n_events < MOST_GROUPS ? audit_add_event(a, e) : NULL;
	if (group) {
		group->kind = kind;
		group->xid = xid;
		group->total_ms = mentioned[rank_of(kind)].lasts ? 0 : -1;
	}
	return group;
}

static int count_event(struct event_taker *t, const struct event_row *row, struct err *e)
{
	enum event_kind kind = event_kind_of(row->kind);
	size_t rank = rank_of(kind);
	if (rank == N_MENTIONED ||
		(mentioned[rank].lasts && row->value < mentioned[rank].at_least_ms))
		return 0;
	if (columns_mark(t->g->a, t->context, row, kind, e))
		return e->code;
	struct audit_event *group =
		group_of(t->g->a, kind, kind == EVENT_XID ? row->value : -1, e);
	if (!group)
		return e->code;
	group->times++;
	if (mentioned[rank].lasts && row->value > 0)
		group->total_ms += row->value > ROW_MAX ? ROW_MAX : row->value;
	if (row->at_ms < group->last_ms)
		return 0;
	group->last_ms = row->at_ms;
	group->last_host = row->host;
	group->last_card = row->card == IDMAP_NONE ? AUDIT_NO_CARD : row->card;
	text_copy(group->last_text, sizeof(group->last_text), row->text);
	return 0;
}

static int compare_groups(const void *x, const void *y)
{
	const struct audit_event *p = x, *q = y;
	size_t a = rank_of(p->kind), b = rank_of(q->kind);
	if (a != b)
		return a < b ? -1 : 1;
	return p->xid < q->xid ? -1 : p->xid > q->xid;
}

int events_add(struct gather *g, struct gather_file *file, struct err *e)
{
	struct event_taker t = { .g = g,
		.since_ms = g->a->since_ms,
		.until_ms = g->a->until_ms,
		.take = count_event,
		.context = &g->marks };
	return events_of(&t, file, e);
}

void events_sort(struct audit *a)
{
	if (a->n_events)
		qsort(a->events, a->n_events, sizeof(*a->events), compare_groups);
}
