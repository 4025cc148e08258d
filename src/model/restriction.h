/* What an audit is restricted to: some users, some cards. Of the values of one kind, one must
 * match; all kinds that are given must match. */
#ifndef GUA_MODEL_RESTRICTION_H
#define GUA_MODEL_RESTRICTION_H

#include "base/options.h"

enum restriction_kind {
	ONLY_USER,     /* whose time */
	ONLY_GROUP,    /* of whose users */
	ONLY_NOTEBOOK, /* of what they run: a path or a kernel, always one, also with a comma */
	ONLY_CARD,     /* as card_is_named() reads it */
	ONLY_HOST,
	ONLY_MODEL, /* a part of its name, in upper or lower case */
	RESTRICTIONS,
};
/* Each item may be several words with commas between them, but not that of a notebook. Zero: no
 * restriction. */
struct restriction {
	struct text_list lists[RESTRICTIONS];
};

#endif
