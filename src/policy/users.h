/* What users ask gua enforce run, and what it answers: policy/user_socket.h. Only for
 * gua-enforce. */
#ifndef GUA_POLICY_USERS_H
#define GUA_POLICY_USERS_H

#include "config/settings.h"
#include "policy/enforcer.h"
#include "policy/user_socket.h"

struct users;

/* Both are borrowed; the file of the enforcer may be opened and closed in between. */
int users_open(struct users **out, struct enforcer *enforcer, const struct settings *settings,
	struct err *e);
void users_close(struct users *u);

/* Answers what has been asked; `now_ms` is the present that passes judge. */
void users_step(struct users *u, int64_t now_ms);
/* For poll(2), as user_socket_fds() and user_socket_wait_ms(). NULL is nobody. */
enum { USERS_FDS = USER_PLACES + 1 };
size_t users_fds(const struct users *u, struct pollfd *fds);
int64_t users_wait_ms(const struct users *u);

#endif
