/* gua enforce run: a pass every minute; between passes it handles deliveries, endings and
 * requests of users. Only for gua-enforce. */
#pragma once

#include "config/settings.h"
#include "policy/post.h"
#include "policy/rules.h"

/* All texts are borrowed. */
struct service_options {
	const char *db, *policy_db, *root;
	const char *clock; /* as in clock_open() */
	int64_t fixed_ms;  /* the moment that passes judge; -1: read the clock */
	bool once;	   /* one pass, and what follows from it */
	const char *end_program, *end_socket; /* of gua-end, as in end_link_new() */
	const char *nvml;		      /* the driver's library; NULL: the usual one */
	const char *notify_socket;	      /* of the service manager; NULL: none */
	struct post_program post;
};

struct service;

/* `policy` and `settings` are the configuration; what they point to lasts until the service is
 * closed. */
int service_open(struct service **s, const struct service_options *o,
	const struct policy *policy, const struct settings *settings, struct err *e);
void service_close(struct service *s);
/* Continues with another configuration. The old one must stay valid: running deliveries may
 * refer to its texts. */
void service_configure(
	struct service *s, const struct policy *policy, const struct settings *settings);

/* Runs until SIGTERM or SIGINT (returns 0) or SIGHUP (returns SERVICE_RELOAD: read the
 * configuration again). */
enum { SERVICE_RELOAD = 1 };
int service_run(struct service *s, struct err *e);
