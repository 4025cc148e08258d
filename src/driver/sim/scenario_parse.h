/* What the files that read the language share. Private to scenario*.c. */
#ifndef GUA_DRIVER_SIM_SCENARIO_PARSE_H
#define GUA_DRIVER_SIM_SCENARIO_PARSE_H

#include "driver/sim/scenario.h"
#include "driver/sim/scenario_words.h"

/* Slots of scenario.by_name. */
enum { SCENARIO_NAMES = 2 * SCENARIO_PROCESSES_MAX };

/* Adds an event at `at_us` of kind `verb` with nothing else set; NULL: failed. The pointer is
 * valid until the next event. */
struct scenario_event *scenario_add_event(
	struct scenario *s, struct words *w, int64_t at_us, enum scenario_verb verb);

/* Adds a fault and the events that turn it on and off; `fault` is copied. */
int scenario_add_fault(
	struct scenario *s, struct words *w, int64_t at_us, const struct scenario_fault *fault);

/* Index of the process of that name, or -1. */
int scenario_find_process(const struct scenario *s, const char *name);

/* The rest of a line behind its first word. */
int scenario_parse_card(struct scenario *s, struct words *w);
int scenario_parse_mig(struct scenario *s, struct words *w);
int scenario_parse_process(struct scenario *s, struct words *w);
/* The rest of a line behind `at T`; of one that is a fault when no other verb is. */
int scenario_parse_verb(struct scenario *s, struct words *w, int64_t at_us);
int scenario_parse_fault(struct scenario *s, struct words *w, int64_t at_us);

/* ---- parts of those lines ---- */

/* [until T], later than `at_us`; INT64_MAX when it is not there. */
int scenario_until(struct words *w, int64_t at_us, int64_t *until_us);
/* "card N" or "mig N/I" -> index into cards[]. */
int scenario_card_ref(struct scenario *s, struct words *w, int *card);
/* An event of a card with value 1; it is not added. */
struct scenario_event scenario_span(
	struct words *w, int64_t at_us, enum scenario_verb verb, int card);
/* Adds an event of a card that ends at [until T] with its opposite: value 0, or status ok. */
int scenario_add_span(struct scenario *s, struct words *w, struct scenario_event event);
/* card N [until T], for a physical card. */
int scenario_card_span(struct scenario *s, struct words *w, int64_t at_us,
	enum scenario_verb verb, int64_t value);

/* Checks the whole, sorts the events and makes the seats; see scenario_finish.c. */
int scenario_finish(struct scenario *s, const char *name, struct err *e);

#endif
