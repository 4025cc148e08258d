/* /metrics: the counters and readings of the store for Prometheus. */
#ifndef GUA_SERVE_METRICS_H
#define GUA_SERVE_METRICS_H

#include "serve/answer.h"

/* The format that an Accept header (NULL: none) prefers: OpenMetrics 1.0, or text. */
const char *metrics_type(const char *accept);
void metrics_answer(const struct request *q, struct answer *a);

#endif
