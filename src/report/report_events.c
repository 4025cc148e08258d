/* The part of a report about events: its table, and a sentence for each kind. */
#include "report/report_parts.h"

#include "model/event.h"

/* The data of a row. */
struct event_group_row {
	struct audit_event event;
	const char *kind, *host, *uuid, *meaning; /* uuid, meaning NULL: none */
	int64_t index;				  /* of the last one's card; -1: none */
};

#define OF(member) offsetof(struct event_group_row, member)
static const struct column event_columns[] = {
	{ "kind", STRING(kind) },
	{ "xid", KNOWN(COUNT, event.xid) },
	{ "meaning", STRING(meaning) },
	{ "times", SIZE(event.times) },
	{ "total_seconds", KNOWN(MS, event.total_ms) },
	{ "last", KNOWN(MOMENT, event.last_ms) },
	{ "last_host", STRING(host) },
	{ "last_gpu", STRING(uuid) },
	{ "last_gpu_index", KNOWN(COUNT, index) },
	{ "last_text", CHARS(event.last_text) },
};
#undef OF

void report_events_add(struct table *t, const struct audit *a)
{
	*t = (struct table)TABLE_OF(event_columns);
	for (size_t i = 0; i < a->n_events; i++) {
		const struct audit_event *event = &a->events[i];
		bool has_card = event->last_card != AUDIT_NO_CARD;
		const struct card_id *card = has_card ? &a->cards[event->last_card].id : NULL;
		struct event_group_row row = { .event = *event,
			.kind = event_kind_names[event->kind],
			.host = a->hosts[event->last_host].hostname,
			.uuid = card ? card->uuid : NULL,
			.meaning = event_xid_meaning(event->xid),
			.index = card ? card->index : -1 };
		table_add(t, &row);
	}
}

/* The beginning of the sentence about a kind, and whether it ends with the text of the last
 * event. */
static const struct {
	const char *label;
	bool text;
} words[EVENT_KINDS] = {
	[EVENT_CARD_LOST] = { "card lost", false },
	[EVENT_XID] = { "XID", false },
	[EVENT_DRIVER_DOWN] = { "driver down", true },
	[EVENT_SUSPECT] = { "suspect use", true },
	[EVENT_STORE_FAULT] = { "store fault", true },
	[EVENT_GAP] = { "gap", false },
	[EVENT_RECORDER_OFF] = { "no recorder", false },
	[EVENT_SUSPEND] = { "suspended", false },
	[EVENT_CLOCK_STEP] = { "clock set", true },
};

static void add_event(struct report *r, const struct audit *a, const struct audit_event *event)
{
	char number[24] = "", times[32] = "once", total[128] = "";
	const char *why = words[event->kind].text ? event->last_text : "";
	if (event->kind == EVENT_XID) {
		const char *meaning = event_xid_meaning(event->xid);
		why = meaning ? meaning : "the kernel log (dmesg) says more";
		snprintf(number, sizeof(number), "%lld, ", (long long)event->xid);
	}
	if (event->times > 1)
		snprintf(times, sizeof(times), "%zu times", event->times);
	if (event->total_ms >= 0)
		snprintf(total, sizeof(total), ", %s%s%s", duration_text(event->total_ms).text,
			event->kind == EVENT_GAP ? " of GPU time without readings" : "",
			event->times > 1 ? " in all" : "");
	/* "GPU 2 of lab", "lab" or "": where the last one happened. */
	const char *host = a->n_hosts > 1 ? a->hosts[event->last_host].hostname : "";
	bool card = event->last_card != AUDIT_NO_CARD;
	const char *place = card ? report_gpu(r, event->last_card, " of ") : host;
	const char *before = event->total_ms >= 0 ? " until" /* the stored moment is its end */
			     : *place || event->times > 1 ? ","
							  : "";
	report_say(r, SENTENCE_EVENT, words[event->kind].label, "%s%s%s,%s%s%s%s %s%s%s",
		number, times, total, event->times > 1 ? " the last" : "", *place ? " on " : "",
		place, before, moment_text(event->last_ms, r->utc).text, *why ? ": " : "", why);
}

void report_events_say(struct report *r, const struct audit *a)
{
	for (size_t i = 0; i < a->n_events; i++)
		add_event(r, a, &a->events[i]);
	if (a->n_events)
		report_say(r, SENTENCE_EVENT, NULL,
			"gua events, with the same --since and --until, lists them one by "
			"one.");
}
