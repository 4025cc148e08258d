/* The list of events as JSON. */
#ifndef GUA_RENDER_EVENTS_H
#define GUA_RENDER_EVENTS_H

#include "base/str.h"
#include "report/event_list.h"

/* What `gua events --json` prints. */
void events_json(struct str *out, const struct event_list *l);

#endif
