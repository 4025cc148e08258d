/* /metrics: the counters and readings of the store for Prometheus. */
#ifndef GUA_SERVE_METRICS_H
#define GUA_SERVE_METRICS_H

#include "serve/answer.h"

void metrics_answer(const struct request *q, struct answer *a);

#endif
