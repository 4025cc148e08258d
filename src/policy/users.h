/* Answers the requests of users to gua enforce run (policy/user_socket.h). Only for
 * gua-enforce. */
#ifndef GUA_POLICY_USERS_H
#define GUA_POLICY_USERS_H

#include "config/settings.h"
#include "policy/enforcer.h"
#include "policy/user_socket.h"

struct users;

/* Both are borrowed; the enforcer's policy.db may be closed and opened again between calls. */
int users_open(struct users **out, struct enforcer *enforcer, const struct settings *settings,
	struct err *e);
void users_close(struct users *u);

/* Answers the requests that have come; `now_ms` is the moment that passes judge. */
void users_step(struct users *u, int64_t now_ms);
/* For poll(2), as user_socket_fds() and user_socket_wait_ms(). NULL: no socket is open. */
enum { USERS_FDS = USER_PLACES + 1 };
size_t users_fds(const struct users *u, struct pollfd *fds);
int64_t users_wait_ms(const struct users *u);

#endif
