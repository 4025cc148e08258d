/* Reads the language of scenarios: lines, their words, and the check of the whole. Private to
 * scenario*.c. */
#ifndef GUA_DRIVER_SIM_SCENARIO_PARSE_H
#define GUA_DRIVER_SIM_SCENARIO_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "driver/sim/scenario.h"

enum { WORDS_MAX = 64, LINE_CAP = 2048 };

/* One line cut into words; `next` moves as they are taken. */
struct words {
	char text[LINE_CAP]; /* the words, each terminated */
	char *items[WORDS_MAX];
	size_t n, next;
	const char *where; /* name of the file */
	int line;
	int64_t day_us; /* of a line that begins with `on`: the start of the day it is read for
			 */
	struct err *e;
};

/* Fails with "FILE:LINE: sentence"; returns ERR_USAGE. */
int line_fail(const struct words *w, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The next word, or NULL at the end of the line. */
const char *line_peek(const struct words *w);
/* Takes the next word when it is `word`. */
bool line_take(struct words *w, const char *word);

/* These take one word and fail with a sentence when there is none or it is something else.
 * `what` names it in the sentence. */
int line_text(struct words *w, const char *what, const char **text);
int line_copy(struct words *w, const char *what, char *dst, size_t cap);
int line_count(struct words *w, const char *what, int64_t min, int64_t max, int64_t *value);
int line_duration(struct words *w, const char *what, int64_t *us);
/* As line_duration, with a sign before it. */
int line_signed_duration(struct words *w, const char *what, int64_t *us);
/* "80GiB", "8GB", "512KiB", "0B" ... */
int line_size(struct words *w, const char *what, int64_t *bytes);
/* "60W", "0.5W" or "60000mW". */
int line_power(struct words *w, const char *what, int64_t *mw);

/* Slots of scenario.by_name. */
enum { SCENARIO_NAMES = 2 * SCENARIO_PROCESSES_MAX };

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

/* ---- parts of those lines ---- */

#endif
