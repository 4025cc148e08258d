/* The JSON API: the documents of the commands' --json, and their CSV; health, and metrics. */
#pragma once

#include "serve/answer.h"

/* Handlers whose route has the type CSV answer with that. */

/* What `gua report --json` and `gua report --format csv` print. */
void api_report(const struct request *q, struct answer *a);
/* What `gua events --json` and `--csv` print. */
void api_events(const struct request *q, struct answer *a);
/* What `gua enforce log --json` prints, and the same as CSV. */
void api_policy(const struct request *q, struct answer *a);
/* What `gua status --json` prints, for the first store or for the store of the given host. */
void api_status(const struct request *q, struct answer *a);
/* The cards and their holders at the last tick. */
void api_now(const struct request *q, struct answer *a);
/* The holders as `gua who --json` lists them, at the last tick. */
void api_who(const struct request *q, struct answer *a);

#define EVENTS_PARAMS WINDOW_PARAMS " card kind"
#define WHO_PARAMS "user card idle"

/* How old the last tick is; 503 when it is too old or a store cannot be read. */
void api_health(const struct request *q, struct answer *a);

/* The format that an Accept header (NULL: none) prefers: OpenMetrics 1.0, or text. */
const char *api_metrics_type(const char *accept);
void api_metrics(const struct request *q, struct answer *a);
