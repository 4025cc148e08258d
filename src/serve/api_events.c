/* Answers with the list of events. */
#include "report/event_list.h"
#include "render/documents.h"
#include "render/rows.h"
#include "serve/api.h"
#include "serve/params.h"
#include "serve/world.h"

struct events_params {
	struct window_words window;
	struct event_words only;
	const char *utc;
};

#define AT(member) .offset = offsetof(struct events_params, member)
static const struct option_row rows[] = {
	{ .kind = OPTION_TEXT, .name = "since", .arg = "TIME", AT(window.since) },
	{ .kind = OPTION_TEXT, .name = "until", .arg = "TIME", AT(window.until) },
	{ .kind = OPTION_TEXT, .name = "last", .arg = "TIME", AT(window.last) },
	{ .kind = OPTION_CHOICE, .name = "utc", .choices = "1|0", AT(utc) },
	{ .kind = OPTION_LIST, .name = "card", AT(only.cards) },
	{ .kind = OPTION_LIST, .name = "kind", AT(only.kinds) },
	{ 0 },
};

/* Reads the events; false: the answer says why they could not be read. */
static bool read_events(const struct request *q, struct answer *a, struct event_list *list)
{
	struct events_params p = { 0 };
	struct err e = { 0 };
	const struct serve_world *world = q->world;
	struct audit_question question = { .paths = (const char *const *)world->stores->paths,
		.n_paths = world->stores->n,
		.stop = q->stop };
	const struct event_choice choice = { event_list_takes, &p.only };
	int rc = params_read(q, rows, &p, &e);
	if (rc == 0)
		rc = event_list_check(&p.only, &e);
	if (rc == 0)
		rc = event_list_ask(&question, &p.window, q->now_ms,
			p.utc ? *p.utc == '1' : world->utc, &e);
	if (rc == 0)
		rc = event_list_read(list, &question, &choice, &e);
	if (rc)
		answer_err(a, q, &e);
	return rc == 0;
}

void api_events(const struct request *q, struct answer *a)
{
	struct event_list list = { 0 };
	if (read_events(q, a, &list))
		documents_events(&a->body, &list);
	event_list_finish(&list);
}

void api_events_csv(const struct request *q, struct answer *a)
{
	struct event_list list = { 0 };
	if (read_events(q, a, &list))
		rows_table(&a->body, &list.table);
	event_list_finish(&list);
}
