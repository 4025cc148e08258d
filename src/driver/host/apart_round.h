/* Rounds that the process of a source makes itself, and patrols: the glances before a round.
 * What crosses is one request and one answer, which has the results of all rounds that were
 * made. See driver/host/round.h. */
#ifndef GUA_DRIVER_HOST_APART_ROUND_H
#define GUA_DRIVER_HOST_APART_ROUND_H

#include "driver/host/round.h"

/* Whether the source is one of apart_source_open(), which these are for. */
bool apart_can_round(const struct source *s);
/* As round_run() and round_next(). */
int apart_round(struct source *s, struct round *r, struct err *e);
int apart_round_next(struct source *s, struct round *r, struct err *e);

#endif
