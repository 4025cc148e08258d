/* Lists of events and of what gua enforce did, and the status of a recorder, as JSON
 * documents. */
#pragma once

#include "model/table.h"
#include "report/event_list.h"
#include "store/recorder_status.h"

/* What `gua events --json` prints. */
void documents_events(struct str *out, const struct event_list *l);

/* What `gua enforce log --json` prints, of a report_policy_log(). */
void documents_policy_log(struct str *out, const struct table *log);

/* What `gua status --json` prints. */
void documents_status(struct str *out, const struct recorder_status *s);
