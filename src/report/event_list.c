/* Lists events: parses which events a user wants, sorts them, and makes their table. */
#include "report/event_list.h"

#include "audit/gather.h"
#include "driver/source.h"
#include "model/card.h"
#include "model/tick.h"
#include "model/event.h"
#include "report/report_parts.h"

void event_list_kinds(struct str *out)
{
	for (int i = 0; i < EVENT_KINDS; i++)
		str_addf(out, "%s ", event_kind_names[i]);
}

bool event_list_takes(const void *words, const struct card_id *card, const char *kind)
{
	const struct event_words *w = words;
	if (card ? !options_list_takes(&w->cards, card_matches, card) : w->cards.n > 0)
		return false;
	return options_list_takes(&w->kinds, NULL, kind);
}

int event_list_check(const struct event_words *words, struct err *e)
{
	const struct text_list *kinds = &words->kinds;
	char word[TEXT_LIST_WORD_CAP];
	struct str known = { 0 };
	int rc = options_list_check("card", &words->cards, e);
	if (rc == 0)
		rc = options_list_check("kind", kinds, e);
	event_list_kinds(&known);
	for (size_t i = 0; i < kinds->n && rc == 0; i++)
		for (const char *at = kinds->items[i]; rc == 0 && options_list_word(&at, word);)
			if (event_kind_of(word) == EVENT_KINDS)
				rc = err_set(e, ERR_USAGE,
					"there is no kind '%s'; write one of: %s", word,
					str_text(&known));
	str_finish(&known);
	return rc;
}

int event_list_ask(struct audit_question *q, const struct window_words *words, int64_t now_ms,
	bool utc, struct err *e)
{
	struct window window = { .until_ms = now_ms };
	struct window_words own = *words;
	if (!own.since && !own.last)
		own.last = "7d";
	if (period_parse_window(&window, &own, now_ms, utc, e) != 0)
		return ERR_USAGE;
	q->now_ms = now_ms;
	q->since_ms = window.since_ms;
	q->until_ms = window.until_ms;
	q->utc = utc;
	return 0;
}

/* An event that matches; its texts are in the arena. */
struct kept {
	int64_t at_ms, value;
	uint32_t host, card;
	size_t order; /* the order of reading: sorts events of the same moment */
	const char *kind, *text;
};

struct keeper {
	const struct event_choice *choice;
	struct kept *items;
	size_t n;
	struct arena texts;
};

static int keep_event(struct event_taker *t, const struct event_row *row, struct err *e)
{
	struct keeper *k = t->context;
	const struct card_id *card =
		row->card == IDMAP_NONE ? NULL : &t->g->a->cards[row->card].id;
	if (k->choice->wants && !k->choice->wants(k->choice->context, card, row->kind))
		return 0;
	if (!array_one_more(&k->items, k->n))
		return err_memory(e);
	k->items[k->n] = (struct kept){ row->at_ms, row->value, row->host, row->card, k->n,
		arena_text(&k->texts, row->kind), arena_text(&k->texts, row->text) };
	k->n++;
	return k->texts.failed ? err_memory(e) : 0;
}

static int compare_kept(const void *x, const void *y)
{
	const struct kept *p = x, *q = y;
	if (p->at_ms != q->at_ms)
		return p->at_ms < q->at_ms ? -1 : 1;
	return p->order < q->order ? -1 : p->order > q->order;
}

/* The data of a row of the list. */
struct event_line {
	const char *host, *uuid, *kind, *text, *meaning; /* uuid, meaning NULL: none */
	int64_t at_ms, index;				 /* index of the card; -1: none */
	double value;
	char at[40], where[160], label[EVENT_KIND_CAP], what[EVENT_TEXT_CAP];
};

#define OF(member) offsetof(struct event_line, member)
static const struct column line_columns[] = {
	{ "at", KNOWN(MOMENT, at_ms) },
	{ .title = "time", CHARS(at) },
	{ "host", STRING(host) },
	{ "gpu", STRING(uuid) },
	{ "gpu_index", KNOWN(COUNT, index) },
	{ .title = "gpu", CHARS(where), .width = -20 },
	{ "kind", STRING(kind) },
	{ .title = "event", CHARS(label) },
	{ "value", NUMBER(COUNT, value) },
	{ "text", STRING(text) },
	{ "meaning", STRING(meaning) },
	{ .title = "what happened", CHARS(what), .flexible = true, .wraps = true },
};
#undef OF

static void add_line(struct table *t, const struct audit *a, const struct kept *event, bool utc)
{
	const struct card_id *card =
		event->card == IDMAP_NONE ? NULL : &a->cards[event->card].id;
	bool xid = event_kind_of(event->kind) == EVENT_XID;
	struct tm tm = moment_fields(event->at_ms, utc);
	struct event_line line = { .host = a->hosts[event->host].hostname,
		.uuid = card ? card->uuid : NULL,
		.kind = event->kind,
		.text = event->text,
		.meaning = xid ? event_xid_meaning(event->value) : NULL,
		.at_ms = event->at_ms,
		.index = card ? card->index : -1,
		.value = (double)event->value };
	bool several = a->n_hosts > 1;
	snprintf(line.where, sizeof(line.where), "%s%s%s", several ? line.host : "",
		several && card ? " " : "",
		card	  ? card_label(card).text
		: several ? ""
			  : "-");
	snprintf(line.at, sizeof(line.at), "%04d-%02d-%02d %02d:%02d:%02d%s", tm.tm_year + 1900,
		tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, utc ? " UTC" : "");
	event_label(line.label, sizeof(line.label), event->kind, event->value);
	str_copy(line.what, sizeof(line.what), line.meaning ? line.meaning : line.text);
	table_add(t, &line);
}

static int read_file(struct gather *g, struct gather_file *file, struct err *e)
{
	return events_of(g->context, file, e);
}

int event_list_read(struct event_list *l, const struct audit_question *q,
	const struct event_choice *choice, struct err *e)
{
	static const struct gather_pass pass = { .add = read_file };
	struct audit a;
	struct gather g = { .a = &a, .q = q, .strict = true };
	struct keeper k = { .choice = choice };
	struct event_taker taker = { &g, q->since_ms, q->until_ms, keep_event, &k };
	int rc;
	*l = (struct event_list){ .table = TABLE_OF(line_columns) };
	audit_init(&a);
	rc = gather_list(&g, e) || gather_survey(&g, e) ? e->code : 0;
	g.context = &taker;
	if (rc == 0)
		rc = gather_each(&g, &pass, e);
	array_sort(k.items, k.n, compare_kept);
	for (size_t i = 0; i < k.n && rc == 0; i++)
		add_line(&l->table, &a, &k.items[i], q->utc);
	/* Which kinds of sources ran in the window. */
	for (size_t i = 0; i < g.n_runs; i++) {
		const struct gather_run *run = &g.runs[i];
		if (run->started_ms >= g.q->until_ms || run->last_tick_ms < g.q->since_ms)
			continue;
		l->simulated |= source_is_invented(run->source);
		l->captured |= source_is_captured(run->source);
	}
	free(k.items);
	arena_finish(&k.texts);
	gather_close(&g);
	audit_finish(&a);
	return rc;
}

void event_list_finish(struct event_list *l)
{
	table_finish(&l->table);
}
