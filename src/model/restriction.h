/* What an audit is restricted to: some users, some cards. At least one value of each kind that
 * is given must match. */
#pragma once

#include "base/options.h"

enum restriction_kind {
	ONLY_USER,     /* the time of these users */
	ONLY_GROUP,    /* users in these groups */
	ONLY_NOTEBOOK, /* notebooks: a path or a kernel; always a single value, even with a
			  comma */
	ONLY_JOB,      /* as process_is_job() reads it */
	ONLY_CARD,     /* as card_is_named() reads it */
	ONLY_HOST,
	ONLY_MODEL, /* a part of its name, in upper or lower case */
	RESTRICTIONS,
};
/* Items may be words separated by commas, except a notebook. Zero: no restriction. */
struct restriction {
	struct text_list lists[RESTRICTIONS];
};
