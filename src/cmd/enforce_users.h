/* What users ask gua enforce run, and what it answers: policy/user_socket.h. Only for
 * gua-enforce. */
#ifndef GUA_CMD_ENFORCE_USERS_H
#define GUA_CMD_ENFORCE_USERS_H

#include "cmd/enforce.h"
#include "policy/enforcer.h"
#include "policy/user_socket.h"

struct enforce_users;

/* Both are borrowed; the file of the enforcer may be opened and closed in between. */
int enforce_users_open(struct enforce_users **out, struct enforce *x, struct enforcer *enforcer,
	struct err *e);
void enforce_users_close(struct enforce_users *u);

/* Answers what has been asked; `now_ms` is the present that passes judge. */
void enforce_users_step(struct enforce_users *u, int64_t now_ms);
/* For poll(2), as user_socket_fds() and user_socket_wait_ms(). NULL is nobody. */
enum { ENFORCE_USERS_FDS = USER_PLACES + 1 };
size_t enforce_users_fds(const struct enforce_users *u, struct pollfd *fds);
int64_t enforce_users_wait_ms(const struct enforce_users *u);

#endif
