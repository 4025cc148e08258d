/* What the apart*.c files share, of sources in processes of their own: the processes that are
 * stuck, the site of a kind of source, the requests and replies, and the serving side. */
#pragma once

#include "base/helper.h"
#include "driver/host/apart.h"
#include "driver/host/round.h"
#include "driver/host/wire.h"
#include "driver/source.h"

/* Processes that were given up because the driver did not answer them, and the cards that they
 * were asking. A card is not asked while its process lives, and for some time afterwards: a
 * minute, and twice as long each time it happens again. Times are monotonic microseconds. */

/* While this many such processes live, no other is started. */
enum { LEFT_MOST = 3, LEFT_ENTRIES = SOURCE_AVOID_MAX + LEFT_MOST };
#define LEFT_FIRST_US (60 * 1000000LL)
#define LEFT_LONGEST_US (3600 * 1000000LL)

struct left_process {
	pid_t pid;
	int pidfd; /* -1: it has ended, or the kernel has no pidfds */
};

struct left_card {
	struct source_avoid card;    /* its index is -1: the process is stuck on no card */
	struct left_process process; /* the process that is stuck on it */
	int64_t until_us;	     /* the card is not asked before this moment */
	int64_t wait_us;	     /* for how long it is not asked */
};

struct left {
	struct left_card cards[LEFT_ENTRIES];
	size_t n_cards;
};

/* Notes a process that was given up while it asked a card, or no card (NULL). This module
 * closes the pidfd. */
void apart_left_add(struct left *l, struct left_process process,
	const struct source_avoid *card, int64_t now_us);
/* Lists the processes that are alive, with their cards; returns how many. */
size_t apart_left_list(const struct left *l, struct source_stuck *out, size_t max);
/* Forgets processes that have ended and cards that may be asked again; returns how many
 * processes are alive. */
size_t apart_left_check(struct left *l, int64_t now_us);
/* Lists the cards that must not be asked. */
void apart_left_avoids(const struct left *l, int64_t now_us, struct source_avoids *out);
void apart_left_finish(struct left *l);

/* A site: the place where sources of one kind are opened. It lives as long as the host, while
 * sources and helpers come and go, so it knows which processes are stuck. */
struct apart_site {
	const struct source_kind *kind;
	struct source_options options; /* of the source, for its helpers */
	struct source_place *place;    /* shared with the helpers */
	struct helper *helper;	       /* or NULL */
	int stop_fd;		       /* readable: do not wait */
	int wake_fd;		       /* readable in the helper: end the patrol */
	const struct apart_manner *manner;
	bool busy;	   /* the helper has not answered yet ... */
	int64_t asked_us;  /* ... the request of this moment (monotonic) */
	int64_t patrol_us; /* set it before a request that is a patrol: how long it takes at
			      most before the answer is due. Meanwhile the helper is not given
			      up as long as it glances in time. 0: no patrol */
	struct left left;
	struct err why; /* why there is no helper */
};

/* Makes sure that there is a helper. 1: it is new, and has no source open. */
int apart_site_start(struct apart_site *s, struct err *e);
/* Sends a request to the helper and waits for the reply, which is valid until the next call.
 * ERR_BUSY: the wait was interrupted, or other sources wait (options.shared). ERR_WORLD: the
 * helper has ended or was given up. */
int apart_site_ask(struct apart_site *s, const struct str *request, const struct str **reply,
	struct err *e);
/* Takes the reply to a request for which apart_site_ask() returned ERR_BUSY. ERR_BUSY: there is
 * no reply yet. */
int apart_site_late(struct apart_site *s, const struct str **reply, struct err *e);
/* Ends the helper, because its reply makes no sense. Returns ERR_WORLD. */
int apart_site_refuse(struct apart_site *s, struct err *e);
/* Lists the cards that must not be asked now. */
void apart_site_avoids(struct apart_site *s, struct source_avoids *out);
/* Ends the helper, if there is one. */
void apart_site_end(struct apart_site *s);

/* apart_source.c: for struct source_host. */
int apart_source_open(struct source **s, struct apart_site *site, struct err *e);

/* Requests and replies. A request is a number of enum apart_call and what the call needs. A
 * reply is the result, the source's state (driver/host/wire.h), the answer and the cost. */
enum apart_call {
	APART_OPEN,	  /* cards to avoid */
	APART_SCAN,	  /* the same */
	APART_DRAIN,	  /* whether power is wanted, flags of cards */
	APART_GLANCE,	  /* enum glance */
	APART_LOOK,	  /* flags of cards */
	APART_METRICS,	  /* whether to drain and look first, whether power is wanted, number
			   * of requests, of each card, board and flags; answers the
			   * number of bytes, and of each what is wanted: the values, then for
			   * each text whether it was read, and the text */
	APART_BOARD,	  /* card; answers an identity */
	APART_ACCOUNTS,	  /* card, most records; answers their number and the records */
	APART_ROUND,	  /* see apart_source_round() */
	APART_FACILITIES, /* answers their number; of each: job, how, note, fallback, works */
	APART_CALLS
};

/* Flags of cards are sent as their number and the flags; NULL is sent as this number. */
#define APART_ALL (-1)

enum { APART_FACILITIES_MAX = 64, APART_ACCOUNTS_MAX = 4096, APART_HOW_CAP = 512 };

/* The memory of a helper; set the first two before it is started. */
struct apart_serving {
	const struct source_kind *kind;
	struct source_options options;
	int wake_fd; /* readable: the owner wants an answer now; or -1 */
	struct source *source;
	struct wire_sent sent;
	struct round *round;
	struct source_avoids avoids;
	bool *flags;
	size_t cap_flags;
	int64_t cost_us; /* CPU time reported so far */
};

/* For struct helper_work: the context is a struct apart_serving. */
void apart_serve_begin(void *context, struct helper_place *unused);
void apart_serve(void *context, const struct str *request, struct str *reply);
void apart_serve_end(void *context);

/* The bits of a metric in an answer that the source has left as it was: a NAN that no source
 * reports. The one who asked then keeps its value. */
#define APART_UNREAD 0x7FF9000000000001ULL

#define NOWHERE SIZE_MAX /* place of a card that another source already shows */

/* A source whose calls a helper makes. Its cards have places here that stay the same when
 * another helper is started: a card is found again by its UUID. */
struct apart_source {
	struct source base;
	struct source_ops ops; /* with the name of the kind */
	struct apart_site *site;
	bool open;		   /* the helper has the source open */
	bool plain;		   /* the last call has no answer of its own */
	struct mirror mirror;	   /* of the helper's source */
	size_t *at;		   /* the places of the helper's cards in base.cards */
	size_t n_at;		   /* how many of them have a place */
	struct source_avoids told; /* the cards that the helper was told to avoid */
	struct source_xid *xids;
	size_t cap_xids;
	struct str request;
	struct arena texts; /* of facilities */
	const struct metric_request
		*expected; /* by apart_expect(); those left are answered by: */
	size_t n_expected;
	struct wire metrics;
	struct wire rounds; /* the helper's answer about rounds that was not read yet */
};

/* Whether apart_source_open() opened it; the next two are only for such a source. */
bool apart_source_can_round(const struct source *s);
/* Like round_run() and round_next(). */
int apart_source_round(struct source *s, struct round *r, struct err *e);
int apart_source_round_next(struct source *s, struct round *r, struct err *e);
