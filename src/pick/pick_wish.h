/* The wish of a pick as text. A pick that waits writes it into its ticket, so that the picks
 * that came later know which cards to leave for it. */
#ifndef GUA_PICK_WISH_H
#define GUA_PICK_WISH_H

#include "base/str.h"
#include "pick/pick.h"

/* The most cards of one pick, and the longest text of a wish: that many UUIDs. */
enum { PICK_MAX_CARDS = 64, PICK_WISH_CAP = 4096 };

struct pick_ask {
	struct pick_wish wish;	   /* without its rules */
	char cards[PICK_WISH_CAP]; /* UUIDs separated by commas; "*": any card */
};

/* Appends one line. `cards`: UUIDs separated by commas; "": any card. */
void pick_wish_add(struct str *out, const struct pick_wish *wish, const char *cards);

/* Reads such a line. Another user wrote it: it may hold anything. */
bool pick_ask_parse(const char *bytes, size_t len, struct pick_ask *ask);

/* Whether the wish is for this card, among others. */
bool pick_ask_names(const struct pick_ask *ask, const char *uuid);

#endif
