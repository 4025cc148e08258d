/* The part of a report about memory that no living process explains: a sentence for each card
 * that has some, and the same as a table for programs. */
#include <stdio.h>

#include "base/size.h"
#include "base/timetext.h"
#include "report/report_parts.h"

struct orphan_row {
	const char *host, *uuid;
	int64_t index, pid, mem_kib, since_ms; /* -1 unknown */
};

#define OF(member) get_known, .of = offsetof(struct orphan_row, member)
static const struct column orphan_columns[] = {
	{ .key = "host",
		.kind = COLUMN_TEXT,
		.get = get_string,
		.of = offsetof(struct orphan_row, host) },
	{ .key = "gpu",
		.kind = COLUMN_TEXT,
		.get = get_string,
		.of = offsetof(struct orphan_row, uuid) },
	{ .key = "gpu_index", .kind = COLUMN_COUNT, .get = OF(index) },
	{ .key = "pid", .kind = COLUMN_COUNT, .get = OF(pid) },
	{ .key = "mem_bytes", .kind = COLUMN_KIB, .get = OF(mem_kib) },
	{ .key = "since", .kind = COLUMN_MOMENT, .get = OF(since_ms) },
};
#undef OF

static void say(struct report *r, const struct audit *a, const struct audit_orphan *o)
{
	const struct audit_card *card = &a->cards[o->card];
	bool several = a->n_hosts > 1;
	char label[CARD_LABEL_CAP], since[48], size[SIZE_TEXT_CAP] = "Memory",
					       what[64] = "no process that the driver lists";
	card_label(label, sizeof(label), &card->id);
	moment_text(since, sizeof(since), o->since_ms, r->utc);
	if (o->mem_bytes >= 0)
		size_text(size, (double)o->mem_bytes);
	if (o->pid)
		snprintf(what, sizeof(what), "a process that has ended (pid %u)", o->pid);
	report_say(r, SENTENCE_CARD, NULL,
		"GPU %s%s%s: %s held by %s, since %s. gua-memory(7) says how to free it.",
		label, several ? " on " : "", several ? a->hosts[card->host].hostname : "",
		size, what, since);
}

void report_add_orphans(struct report *r, const struct audit *a)
{
	r->orphans = (struct table)TABLE_OF(orphan_columns);
	for (size_t i = 0; i < a->orphans.n; i++) {
		const struct audit_orphan *o = &a->orphans.items[i];
		const struct audit_card *card = &a->cards[o->card];
		table_add(&r->orphans,
			&(struct orphan_row){ .host = a->hosts[card->host].hostname,
				.uuid = card->id.uuid,
				.index = card->id.index,
				.pid = o->pid ? (int64_t)o->pid : -1,
				.mem_kib = o->mem_bytes < 0 ? -1 : o->mem_bytes / 1024,
				.since_ms = o->since_ms });
		if (!r->of_users)
			say(r, a, o);
	}
}
