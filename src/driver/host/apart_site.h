/* A site: where sources of one kind are opened. It lives as long as the host, while sources and
 * helpers come and go, so it knows which processes are stuck. Shared by apart.c and
 * apart_source.c. */
#ifndef GUA_DRIVER_HOST_APART_SITE_H
#define GUA_DRIVER_HOST_APART_SITE_H

#include "base/helper.h"
#include "driver/host/apart.h"
#include "driver/host/apart_left.h"

struct apart_site {
	const struct source_kind *kind;
	struct source_options options; /* of the source, for its helpers */
	struct source_place *place;    /* shared with the helpers */
	struct helper *helper;	       /* or NULL */
	int stop_fd;		       /* readable: do not wait */
	int wake_fd;		       /* readable in the helper: end the patrol */
	const struct apart_manner *manner;
	bool busy;	   /* the helper has not answered yet ... */
	int64_t asked_us;  /* ... what it was asked at this moment (monotonic) */
	int64_t patrol_us; /* how long it may take before the answer is due; 0: no patrol */
	struct left left;
	struct err why; /* why there is no helper */
};

/* Makes sure that there is a helper. 1: it is new, and has no source open. */
int apart_site_start(struct apart_site *s, struct err *e);
/* Asks the helper and waits for the reply, which is valid until the next call. When it fails
 * with ERR_BUSY, the wait was interrupted, or others wait (options.shared); with ERR_WORLD,
 * there is no helper any more. */
int apart_site_ask(struct apart_site *s, const struct str *request, const struct str **reply,
	struct err *e);
/* Before apart_site_ask(): the request is a patrol, and takes at most `patrol_us`. Until then
 * the helper is waited for as long as it glances in time. */
void apart_site_patrol(struct apart_site *s, int64_t patrol_us);
/* Takes the reply to a request for which apart_site_ask() has failed with ERR_BUSY; ERR_BUSY:
 * there is none yet. */
int apart_site_late(struct apart_site *s, const struct str **reply, struct err *e);
/* The reply makes no sense: ends the helper. Returns ERR_WORLD. */
int apart_site_refuse(struct apart_site *s, struct err *e);
/* The cards to leave alone now. */
void apart_site_avoids(struct apart_site *s, struct source_avoids *out);
/* Ends the helper, if there is one. */
void apart_site_end(struct apart_site *s);

/* apart_source.c: for struct source_host. */
int apart_source_open(struct source **s, struct apart_site *site, struct err *e);

#endif
