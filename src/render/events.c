/* Prints the list of events for programs. */
#include "render/events.h"

#include "render/json.h"
#include "render/rows.h"

void events_json(struct str *out, const struct event_list *l)
{
	struct json j = { .out = out, .lines = 2 };
	json_open(&j, NULL, '{');
	json_text(&j, "schema", "gua-events-1");
	json_bool(&j, "simulated", l->simulated);
	json_table(&j, "events", &l->table);
	json_close(&j, '}');
}
