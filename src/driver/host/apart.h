/* Sources in processes of their own. A call of a driver may never return, and a thread that is
 * stuck in it can be neither ended nor outlived by its process. So sources of a kind that may
 * block are opened in a helper (base/helper.h), and here is a source that hands each call to it
 * and mirrors what it answers.
 *
 * A call that gets no answer for `patience_ms` fails, and the helper is given up: it is killed,
 * or left behind if it cannot be. The next scan starts another one, which leaves alone the card
 * that the first one was asking (driver/host/apart_site.h). */
#ifndef GUA_DRIVER_HOST_APART_H
#define GUA_DRIVER_HOST_APART_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "driver/source.h"
#include "driver/source_host.h"

struct apart;

struct apart_manner {
	int64_t patience_ms; /* how long a helper is waited for before it is given up */
	int64_t turn_ms;     /* how long one of several sources may keep the others waiting */
	const char *name;    /* of the helpers' processes; NULL: "gua-" and the kind's name */
};
/* For a program that says after `deadline_ms` that the driver does not answer. A helper is
 * waited for longer than that: a late answer is an answer. */
struct apart_manner apart_manner_of(int64_t deadline_ms);

/* Makes a host for sources, and starts the helpers that `options` will need: early, because
 * a helper keeps a copy of all memory that the program has now. What the options point to must
 * outlive the host. */
int apart_new(struct apart **a, const struct source_options *options,
	const struct apart_manner *manner, struct err *e);
/* Ends all helpers; waits a moment for those that close their driver. Those that cannot be
 * ended are in source_host.stuck() then. */
void apart_stop(struct apart *a);
/* The same, and frees the host. */
void apart_free(struct apart *a);
/* A process that an earlier program has left behind is still stuck: before a source is opened.
 * The caller has checked that it is that process. */
void apart_remember(struct apart *a, const struct source_stuck *one);
/* For source_options.host. */
struct source_host *apart_host(struct apart *a);

#endif
