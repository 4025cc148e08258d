/* The inside of a source whose calls are made by a helper. The helper's cards have places here
 * that outlast it: after another one was started, a card is found again by its UUID. */
#ifndef GUA_DRIVER_HOST_APART_SOURCE_H
#define GUA_DRIVER_HOST_APART_SOURCE_H

#include "base/arena.h"
#include "driver/host/apart_serve.h"
#include "driver/host/apart_site.h"
#include "driver/host/wire.h"
#include "driver/host/round.h"
#include "driver/source.h"

#define NOWHERE SIZE_MAX /* place of a card that is shown by others */

struct apart_source {
	struct source base;
	struct source_ops ops; /* with the name of the kind */
	struct apart_site *site;
	bool open;		   /* the helper has the source open */
	bool plain;		   /* the call that was made last has no answer of its own */
	struct mirror mirror;	   /* of the helper's source */
	size_t *at;		   /* places of its cards in base.cards */
	size_t n_at;		   /* how many have one */
	struct source_avoids told; /* the cards that the helper leaves alone */
	struct source_xid *xids;
	size_t cap_xids;
	struct str request;
	struct arena texts; /* of facilities */
	struct wire rounds; /* what the helper has answered about rounds and was not read yet */
};

/* Whether the source is one of apart_source_open(), which these are for. */
bool apart_source_can_round(const struct source *s);
/* As round_run() and round_next(). */
int apart_source_round(struct source *s, struct round *r, struct err *e);
int apart_source_round_next(struct source *s, struct round *r, struct err *e);

#endif
