/* Functions that the files of the watch share. */
#ifndef GUA_RECORD_WATCH_PRIVATE_H
#define GUA_RECORD_WATCH_PRIVATE_H

#include "record/watch.h"

/* The holders of card `i`, for its account. */
struct account_scene watch_scene(struct watch *w, size_t i);
/* Takes the status of the card: lost, answering again, gone ... */
void watch_status(struct watch *w, size_t i, const struct card_reading *r, int64_t now_ms);
/* Updates last_active_ms of the lives from their stretches. */
void watch_note_activity(struct watch *w);

#endif
