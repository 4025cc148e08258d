/* Reads the lines of a scenario that describe cards, MIG instances, processes and events.
 * Private to scenario*.c. */
#pragma once

#include "driver/sim/line.h"
#include "driver/sim/scenario.h"

/* Reads the rest of a line after its first word. */
int scenario_parse_card(struct scenario *s, struct line *l);
int scenario_parse_mig(struct scenario *s, struct line *l);
int scenario_parse_process(struct scenario *s, struct line *l);
/* Reads the rest of a line after `at T`. */
int scenario_parse_verb(struct scenario *s, struct line *l, int64_t at_us);
