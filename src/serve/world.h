/* What all requests share: the stores, the configuration, the clock, and the names of users. */
#ifndef GUA_SERVE_WORLD_H
#define GUA_SERVE_WORLD_H

#include <pthread.h>

#include "config/config.h"
#include "proc/user.h"
#include "store/store_list.h"

struct serve_world {
	const struct store_list *stores; /* at least one */
	const struct config *config;
	int64_t now_ms;		  /* a fixed clock, for tests; 0: the real one */
	bool utc;		  /* times on pages in UTC instead of local time */
	struct user_names *users; /* of this host; under the next */
	pthread_mutex_t *users_lock;
};

#endif
