/* The ways in which a notice reaches people. Each delivery runs in a process of its own with a
 * deadline (courier.h), so a function here may block. */
#pragma once

#include "config/config.h"
#include "policy/notice.h"
#include "policy/post.h"

enum channel {
	CHANNEL_TERMINAL,
	CHANNEL_MAIL,
	CHANNEL_WEBHOOK,
	CHANNEL_COMMAND,
	CHANNEL_LOGIN,
	CHANNELS,
};
/* Whether the configuration asks for the channel and has what it needs. */
bool channel_configured(enum channel c, const struct config_notices *config);
/* ERR_USAGE: the list of channels has an unknown word, or a channel that lacks a setting. */
int channel_check(const struct config_notices *config, struct err *e);

/* Writes a sentence about the users that the configured channels cannot reach, and which
 * channel would reach them. False: some configured channel reaches everybody. */
enum { CHANNEL_REACH_CAP = 320 };
bool channel_misses(const struct config_notices *config, char why[CHANNEL_REACH_CAP]);

enum delivery {
	DELIVERY_DONE,
	DELIVERY_NOBODY, /* nobody can be told now: no terminal, no address */
	DELIVERY_FAILED,
};
extern const char *const delivery_names[]; /* delivered nobody failed */

/* One delivery: what a channel function is given. */
struct channel_job {
	const struct notice *notice;
	const struct notice_text *text;
	const struct config_notices *config;
	const struct post_program *post; /* for webhooks; NULL: there is none */
};
enum { CHANNEL_WHY_CAP = 256 };

/* What gua knows of a channel. A new channel is a row of the table in channel.c, its constant
 * above, and a function that delivers. */
struct channel_kind {
	const char *name; /* as in gua.conf */
	const char *key;  /* the key of [notices] that it needs, or NULL */
	size_t value;	  /* of that key: offset of its text in struct config_notices */
	bool counts;	  /* a delivery counts as a warning: its user reads it soon. The login
			     notice waits for a login */
	bool everybody;	  /* also reaches users without a terminal */
	bool alarms;	  /* also reaches administrators: alarms are sent here */
	/* Writes into `why` the reason for a failure, or how many people were reached. */
	enum delivery (*deliver)(const struct channel_job *job, char why[CHANNEL_WHY_CAP]);
};
extern const struct channel_kind channel_kinds[CHANNELS];

/* Removes the login notice of a user, when it no longer applies. */
int channel_login_clear(const char *directory, const char *user, struct err *e);

/* The texts that channels send, also for tests. The mail has headers; `to`: the address. */
void channel_mail_text(struct str *out, const struct channel_job *job, const char *to);
/* The body that is posted to a webhook of this kind (WEBHOOK_WORDS). */
#define WEBHOOK_WORDS "generic|slack|mattermost|teams"
int channel_webhook_body(struct str *out, const struct channel_job *job, struct err *e);
/* The text for a terminal: at most six lines, but all of a digest; lines end with \r\n. */
void channel_terminal_text(struct str *out, const struct channel_job *job);
