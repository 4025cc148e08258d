/* Removes the notices that a login shows, when they are over. Only for gua-enforce. */
#ifndef GUA_CMD_ENFORCE_LOGIN_H
#define GUA_CMD_ENFORCE_LOGIN_H

#include "config/config.h"
#include "audit/idle_history.h"
#include "store/policy/policy_file.h"

/* The session was used again, or gave its cards back: removes its user's notice, unless another
 * session of that user has one. */
void enforce_login_clear(const struct config_notices *config, struct policy_file *f,
	const struct idle_session *session);

#endif
