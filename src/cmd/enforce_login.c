/* Removes a login notice if no session of its user is warned any more. */
#include "cmd/enforce_login.h"

#include <string.h>

#include "base/log.h"
#include "policy/channel.h"

struct others {
	const char *key, *user;
	bool any;
};

static int take_other(
	void *context, const char *key, const char *user, const struct policy_state *state)
{
	struct others *o = context;
	o->any |= state->stage != STAGE_NONE && strcmp(user, o->user) == 0 &&
		  strcmp(key, o->key) != 0;
	return 0;
}

void enforce_login_clear(const struct config_notices *config, struct policy_file *f,
	const struct idle_session *session)
{
	struct others others = { session->key, session->user, false };
	struct err e = { 0 };
	if (!channel_configured(CHANNEL_LOGIN, config) ||
		policy_file_sessions(f, take_other, &others, &e) != 0 || others.any)
		return;
	if (channel_login_clear(config->login_directory, session->user, &e) != 0)
		log_warning("%s", e.text);
}
