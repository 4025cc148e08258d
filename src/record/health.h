/* How well the recorder sees the cards: for its schedule, and for its log. */
#ifndef GUA_RECORD_HEALTH_H
#define GUA_RECORD_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

#include "record/schedule.h"
#include "record/watch.h"

/* `down`: the driver does not answer; `incomplete`: a part of the source has failed. */
enum health health_of(const struct watch *w, bool down, bool incomplete);
/* Writes the log line of a tick: what was read, and what is waiting for the store. */
void health_tick_line(const struct watch *w, int64_t ticks, char *line, size_t size);

#endif
