/* The ways in which a user may name a card, and what people call its model. */
#ifndef GUA_MODEL_CARD_NAME_H
#define GUA_MODEL_CARD_NAME_H

#include "model/reading.h"

/* Whether `id` names the card: its index ("0"), index and instance ("0:1"), UUID or the
 * beginning of it (also of the card that an instance is on), or PCI address. */
bool card_is_named(const char *id, const struct card_id *card);
/* A card's model without the name of its maker. */
const char *card_short_name(const char *name);

#endif
