/* Matches users, hosts and cards with what an audit is restricted to. */
#ifndef GUA_AUDIT_RESTRICTION_H
#define GUA_AUDIT_RESTRICTION_H

#include <stdbool.h>

#include "model/audit.h"
#include "model/restriction.h"

/* "user" ...: the name of the option. */
extern const char *const restriction_names[RESTRICTIONS];

/* Whether only the time of some users counts, and whether only some cards do. */
bool restriction_of_users(const struct restriction *r);
bool restriction_of_cards(const struct restriction *r);
bool restriction_takes_host(const struct restriction *r, const char *hostname);
/* The host of the card is not checked. */
bool restriction_takes_card(const struct restriction *r, const struct audit_card *card);
/* `group` may be NULL: none. */
bool restriction_takes_user(const struct restriction *r, const char *user, const char *group);

/* A walk over what was given of one kind. Zero-initialise. */
struct restriction_word {
	size_t item;
	const char *at;
	char safe[1024]; /* escaped for a terminal */
};
/* Goes to the next word; false: there is none. */
bool restriction_next(
	const struct restriction *r, enum restriction_kind kind, struct restriction_word *word);

#endif
