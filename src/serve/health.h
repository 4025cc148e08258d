/* /healthz: reports whether the data of the server is up to date. */
#ifndef GUA_SERVE_HEALTH_H
#define GUA_SERVE_HEALTH_H

#include "serve/answer.h"

/* How old the last tick is; 503 when it is too old or a store cannot be read. */
void health_answer(const struct request *q, struct answer *a);

#endif
