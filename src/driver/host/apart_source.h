/* The inside of a source whose calls are made by a helper, shared by apart_source.c and
 * apart_round.c. The helper's cards have places here that outlast it: after another one was
 * started, a card is found again by its UUID. */
#ifndef GUA_DRIVER_HOST_APART_SOURCE_H
#define GUA_DRIVER_HOST_APART_SOURCE_H

#include "base/arena.h"
#include "driver/host/apart_serve.h"
#include "driver/host/apart_site.h"
#include "driver/host/apart_wire.h"
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

/* Begins a request. */
struct str *apart_source_begin(struct apart_source *s, enum apart_call call);
/* Takes the state of the helper's source from an answer; false: it makes no sense. */
bool apart_source_read(struct apart_source *s, struct wire *in);
/* Whether the helper has the card in this place. */
bool apart_source_has(const struct apart_source *s, size_t place);
/* There is no helper any more: its arrays are gone. */
void apart_source_forget(struct apart_source *s);
/* The answer makes no sense: ends the helper. Returns ERR_WORLD. */
int apart_source_refuse(struct apart_source *s, struct err *e);

#endif
