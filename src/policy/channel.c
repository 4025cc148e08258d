/* Which channels there are, and which are configured. */
#include "policy/channel.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *const channel_names[CHANNELS] = { "terminal", "mail", "webhook", "command",
	"login" };
const char *const delivery_names[] = { "delivered", "nobody", "failed" };

/* Finds the next word; false at the end. */
static bool next_word(const char **at, const char **word, size_t *len)
{
	*word = *at + strspn(*at, " \t,");
	*len = strcspn(*word, " \t,");
	*at = *word + *len;
	return *len > 0;
}

static bool is_listed(enum channel c, const char *list)
{
	const char *word;
	size_t len;
	while (list && next_word(&list, &word, &len))
		if (strlen(channel_names[c]) == len && memcmp(channel_names[c], word, len) == 0)
			return true;
	return false;
}

/* The key that a channel cannot do without, if it is missing; NULL: nothing is. */
static const char *lacks(enum channel c, const struct config_notices *config)
{
	if (c == CHANNEL_WEBHOOK && !config->webhook_url)
		return "webhook_url";
	if (c == CHANNEL_COMMAND && !config->command)
		return "command";
	return NULL;
}

bool channel_configured(enum channel c, const struct config_notices *config)
{
	return is_listed(c, config->channels) && !lacks(c, config);
}

bool channel_counts(enum channel c)
{
	return c != CHANNEL_LOGIN;
}

int channel_check(const struct config_notices *config, struct err *e)
{
	const char *list = config->channels, *word;
	size_t len;
	while (next_word(&list, &word, &len)) {
		bool known = false;
		for (int i = 0; i < CHANNELS; i++)
			known |= strlen(channel_names[i]) == len &&
				 memcmp(channel_names[i], word, len) == 0;
		if (!known)
			return err_set(e, ERR_USAGE,
				"channels: '%.*s' is not one of terminal, mail, webhook, "
				"command, login",
				(int)len, word);
	}
	for (int i = 0; i < CHANNELS; i++)
		if (is_listed((enum channel)i, config->channels) &&
			lacks((enum channel)i, config))
			return err_set(e, ERR_USAGE,
				"channels: %s needs %s in the section [notices]",
				channel_names[i], lacks((enum channel)i, config));
	return 0;
}

bool channel_misses(const struct config_notices *config, char why[CHANNEL_REACH_CAP])
{
	bool mail = channel_configured(CHANNEL_MAIL, config);
	bool sends = access(config->sendmail, X_OK) == 0;
	const char *failed = sends ? NULL : strerror(errno);
	if ((mail && sends) || channel_configured(CHANNEL_WEBHOOK, config) ||
		channel_configured(CHANNEL_COMMAND, config))
		return false;
	bool terminal = channel_configured(CHANNEL_TERMINAL, config);
	int n = snprintf(why, CHANNEL_REACH_CAP,
		"%s cannot be reached ([notices] channels = %s), so nothing happens to their "
		"sessions; ",
		terminal ? "users without a terminal" : "users", config->channels);
	if (n < 0 || n >= CHANNEL_REACH_CAP)
		return true;
	if (sends)
		text_copy(why + n, (size_t)(CHANNEL_REACH_CAP - n),
			"add mail there, or webhook or command");
	else
		snprintf(why + n, (size_t)(CHANNEL_REACH_CAP - n),
			"add webhook or command there, or mail once %s works: %s",
			config->sendmail, failed);
	return true;
}
