/* gua events: lists what happened to cards, drivers, the host and the recorder. */
#include "cmd/share/choose_db.h"
#include "cmd/share/terminal.h"
#include "model/sentence.h"
#include "report/event_list.h"
#include "render/documents.h"
#include "render/rows.h"

struct events_options {
	struct texts db;
	struct window_words window;
	struct event_words only;
	const char *now, *format;
	bool json, csv, utc, ascii;
};

#define ROW(member) .offset = offsetof(struct events_options, member)
static const struct option_row rows[] = {
	{ OPTION_TEXTS, 0, "db", "PATH",
		"store to read, or a directory of stores; may be given several times",
		ROW(db) },
	WINDOW_OPTIONS(struct events_options, window, "7d ago", "now"),
	{ OPTION_LIST, 0, "card", "CARD,...",
		"only events of these cards: index, index:instance, UUID (or its beginning) or "
		"PCI address",
		ROW(only.cards) },
	{ OPTION_LIST, 0, "kind", "KIND,...", "only events of these kinds: xid, card-lost, gap",
		ROW(only.kinds), .words = event_list_kinds },
	{ OPTION_CHOICE, 0, "format", "FORMAT", "text, json or csv (default text)",
		.choices = "text|json|csv", ROW(format) },
	{ OPTION_FLAG, 0, "json", .help = "same as --format json", ROW(json) },
	{ OPTION_FLAG, 0, "csv", .help = "same as --format csv", ROW(csv) },
	{ OPTION_FLAG, 0, "utc", .help = "times in UTC instead of local time", ROW(utc) },
	{ OPTION_FLAG, 0, "ascii", .help = "use only ASCII characters", ROW(ascii) },
	NOW_OPTION(struct events_options, now),
	{ 0 },
};

static int list_events(const struct call *call, struct audit_question *q,
	const struct store_list *stores, struct err *e)
{
	const struct events_options *o = call->values;
	struct event_list list = { 0 };
	struct str out = { 0 };
	struct event_choice choice = { event_list_takes, &o->only };
	const struct text_style style = terminal_style(o->ascii, o->utc);
	bool csv = strcmp(o->format, "csv") == 0, text = strcmp(o->format, "text") == 0;
	q->paths = (const char *const *)stores->paths;
	q->n_paths = stores->n;
	if (stores->n > 1) /* all are open at the same time */
		file_allow_many();
	if (event_list_read(&list, q, &choice, e) != 0) {
		event_list_finish(&list);
		return e->code;
	}
	bool any = list.table.n_rows > 0;
	/* What the output cannot say is on standard error. */
	if (list.simulated && csv)
		log_notice("%s", list.captured ? CAPTURED_NOTE : SIMULATED_NOTE);
	if (!any && text)
		log_notice("no event between %s and %s", moment_text(q->since_ms, q->utc).text,
			moment_text(q->until_ms, q->utc).text);
	if (csv) {
		rows_table(&out, &list.table);
	} else if (!text) {
		documents_events(&out, &list);
	} else if (any) {
		if (list.simulated) {
			text_add_colored(&out,
				list.captured ? CAPTURED_WARNING : SIMULATED_WARNING, "1;31",
				&style);
			str_add(&out, "\n");
		}
		text_add_table(&out, &list.table, &style);
	}
	event_list_finish(&list);
	return cmd_print(call->self, &out);
}

static int run(const struct call *call, struct err *e)
{
	struct events_options *o = call->values;
	struct audit_question q = { 0 };
	struct store_list stores = { 0 };
	int64_t now_ms;
	if (o->json + o->csv + (o->format != NULL) > 1)
		return err_set(e, ERR_USAGE, "--format, --json and --csv exclude each other");
	if (!o->format)
		o->format = o->json ? "json" : o->csv ? "csv" : "text";
	int rc = event_list_check(&o->only, e) || cmd_now(o->now, &now_ms, e) ||
		 event_list_ask(&q, &o->window, now_ms, o->utc, e) ||
		 choose_db_list(&stores, &o->db, e);
	choose_db_note_unread(&stores);
	rc = rc ? e->code : list_events(call, &q, &stores, e);
	store_list_finish(&stores);
	return rc;
}

const struct command cmd_events = {
	.name = "events",
	.summary = "list lost cards, XIDs, driver reloads, suspends and gaps",
	.usage = "[--db PATH]... [--since TIME | --last LENGTH] [--until TIME] [OPTIONS]",
	.details = WINDOW_DETAILS,
	.options = rows,
	.values_size = sizeof(struct events_options),
	.run = run,
};
