/* The cards' readings at the last tick, and who has had time on a card: what exporters and
 * pages need besides the sums. */
#ifndef GUA_STORE_READINGS_H
#define GUA_STORE_READINGS_H

#include <stdbool.h>

#include "model/tick.h"

struct store;

/* Replaces the readings; the ids of the cards are set. False: it failed. */
bool readings_write(struct store *s, const struct tick *t);
/* Notes that this user is known from this tick on. */
bool readings_note_user(struct store *s, const char *user, int64_t at_ms);
/* The user that was known by the number `number` has this name. */
bool readings_name_user(struct store *s, const char *number, const char *name);
/* Sets *newborn if an exporter has shown this user with no time yet. */
bool readings_is_newborn(struct store *s, const char *user, int64_t at_ms, int64_t *newborn);
/* The processes of the user that was known by the number `number` have a name now. */
bool readings_note_named(struct store *s, const char *number);
/* Before the connection is closed. */
void readings_disconnect(struct store *s);

#endif
