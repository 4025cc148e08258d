/* Sources in processes of their own. A call of a driver may never return. A thread that is
 * stuck in it cannot be ended, and its process cannot end without it. So sources of a kind that
 * may block are opened in a helper (base/helper.h). The source here passes each call to the
 * helper and mirrors what it answers.
 *
 * A call that gets no answer for `patience_ms` fails, and the helper is given up: it is killed,
 * or left behind if it cannot be killed. The next scan starts another one, which does not ask
 * the card that the first one was asking (driver/host/apart_site.h). */
#pragma once

#include "base/base.h"
#include "driver/source_host.h"

struct apart;

struct apart_manner {
	int64_t patience_ms; /* how long to wait for a helper before it is given up */
	int64_t turn_ms;     /* how long one of several sources may make the others wait */
	const char *name;    /* of the helpers' processes; NULL: "gua-" and the kind's name */
};
/* For a program that reports after `deadline_ms` that the driver does not answer. It waits
 * longer than that for a helper, because a late answer can still be used. */
struct apart_manner apart_manner_of(int64_t deadline_ms);

/* Makes a host for sources, and starts the helpers that `options` will need. It starts them
 * early, because a helper keeps a copy of all memory that the program has at that moment. What
 * the options point to must outlive the host. */
int apart_new(struct apart **a, const struct source_options *options,
	const struct apart_manner *manner, struct err *e);
/* Ends all helpers; waits a moment for those that are closing their driver. Afterwards
 * source_host.stuck() lists those that cannot be ended. */
void apart_stop(struct apart *a);
/* The same, and frees the host. */
void apart_free(struct apart *a);
/* Notes that a process which an earlier program left behind is still stuck. Call it before a
 * source is opened. The caller has checked that it is the same process. */
void apart_remember(struct apart *a, const struct source_stuck *one);
/* For source_options.host. */
struct source_host *apart_host(struct apart *a);
