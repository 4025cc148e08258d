/* Removes a login notice if no session of its user is warned any more; else it is written
 * again, about the others. */
#include "cmd/enforce_login.h"

#include <string.h>

#include "base/log.h"
#include "policy/channel.h"
#include "store/policy/policy_digest.h"

struct others {
	const char *key, *user;
	char other[SESSION_KEY_CAP]; /* "": there is none */
};

static int take_other(
	void *context, const char *key, const char *user, const struct policy_state *state)
{
	struct others *o = context;
	if (state->stage != STAGE_NONE && strcmp(user, o->user) == 0 &&
		strcmp(key, o->key) != 0)
		text_copy(o->other, sizeof(o->other), key);
	return 0;
}

void enforce_login_clear(const struct config_notices *config, struct policy_file *f,
	const struct idle_session *session)
{
	struct others others = { session->key, session->user, "" };
	struct err e = { 0 };
	if (!channel_configured(CHANNEL_LOGIN, config) ||
		policy_file_sessions(f, take_other, &others, &e) != 0)
		return;
	int rc =
		*others.other
			? policy_digest_renew(f, others.other, channel_names[CHANNEL_LOGIN], &e)
			: channel_login_clear(config->login_directory, session->user, &e);
	if (rc)
		log_warning("%s", e.text);
}
