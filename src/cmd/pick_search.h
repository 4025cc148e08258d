/* Looks for free cards, at once or in turn with other picks that wait, and reserves them. */
#ifndef GUA_CMD_PICK_SEARCH_H
#define GUA_CMD_PICK_SEARCH_H

#include "cmd/share/cmd_live.h"
#include "pick/pick_result.h"
#include "present/filter.h"
#include "pick/pick.h"

struct pick_request {
	const struct live_values *live;
	const struct filter_values *filter; /* only --id is used */
	struct pick_wish wish;		    /* without its rules */
	int64_t wait_ms;		    /* 0: do not wait; -1: without limit */
	const char *lock_dir;		    /* NULL: the usual one */
	bool ignore_reservations;	    /* of other users */
};

/* Finds the cards. Everything is closed again except their reservations, which are in *r. On
 * failure *r has what is known about the cards. */
int pick_search(struct pick_result *r, const struct pick_request *q, struct err *e);

#endif
