/* What a webhook is sent: JSON as the receiving service wants it. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "policy/channel.h"

/* Words behind an @ that call everybody. */
static const char *const crowds[] = { "all", "channel", "everyone", "here" };

/* Whether the text begins with such a word. */
static bool calls_everybody(const char *text)
{
	for (size_t i = 0; i < sizeof(crowds) / sizeof(crowds[0]); i++)
		if (strncasecmp(text, crowds[i], strlen(crowds[i])) == 0)
			return true;
	return false;
}

/* Adds a text in which a name calls nobody and closes no fence: a space without width follows
 * such an @, and a backtick becomes an apostrophe. */
static void add_calm(struct str *out, const char *text)
{
	for (; *text; text++) {
		str_add_bytes(out, *text == '`' ? "'" : text, 1);
		if (*text == '@' && calls_everybody(text + 1))
			str_add(out, "\xe2\x80\x8b");
	}
}

/* The whole notice between fences: there, no character has a meaning, and nothing becomes a
 * link, but for the fence itself. */
static void add_fenced(struct str *out, const struct channel_job *job)
{
	str_add(out, "```\n");
	add_calm(out, str_text(&job->text->subject));
	str_add(out, "\n\n");
	add_calm(out, str_text(&job->text->body));
	str_add(out, "```");
}

/* Slack replaces & < > before it looks for fences. */
static void add_slack(struct str *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '&')
			str_add(out, "&amp;");
		else if (*text == '<')
			str_add(out, "&lt;");
		else if (*text == '>')
			str_add(out, "&gt;");
		else
			str_add_bytes(out, text, 1);
	}
}

static json_t *slack(const struct channel_job *job)
{
	struct str plain = { 0 }, text = { 0 };
	add_fenced(&plain, job);
	add_slack(&text, str_text(&plain));
	json_t *object = json_pack("{s:s, s:b, s:b, s:b}", "text", str_text(&text),
		"link_names", 0, "unfurl_links", 0, "unfurl_media", 0);
	str_finish(&plain);
	str_finish(&text);
	return object;
}

static json_t *mattermost(const struct channel_job *job)
{
	struct str text = { 0 };
	add_fenced(&text, job);
	json_t *object = json_pack("{s:s,s:s}", "username", "gua", "text", str_text(&text));
	str_finish(&text);
	return object;
}

/* One line of a card. A TextBlock would be Markdown, in which a name can be a link; a
 * RichTextBlock is not. Without "entities", <at> calls nobody. */
static json_t *card_line(const char *line, size_t len, bool subject)
{
	return json_pack("{s:s, s:s, s:[{s:s, s:s%, s:s}]}", "type", "RichTextBlock", "spacing",
		"None", "inlines", "type", "TextRun", "text", line, len,
		subject ? "weight" : "fontType", subject ? "Bolder" : "Monospace");
}

static json_t *teams(const struct channel_job *job)
{
	json_t *lines = json_array();
	const char *at = str_text(&job->text->subject);
	json_array_append_new(lines, card_line(at, strlen(at), true));
	at = str_text(&job->text->body);
	for (size_t len; *at; at += len + (at[len] == '\n')) {
		len = strcspn(at, "\n");
		/* A line of no character has no height. */
		json_array_append_new(lines, card_line(len ? at : " ", len ? len : 1, false));
	}
	return json_pack("{s:s, s:[{s:s, s:{s:s, s:s, s:o}}]}", "type", "message",
		"attachments", "contentType", "application/vnd.microsoft.card.adaptive",
		"content", "type", "AdaptiveCard", "version", "1.4", "body", lines);
}

static const struct {
	const char *kind;
	json_t *(*make)(const struct channel_job *job);
} makers[] = {
	{ "slack", slack },
	{ "mattermost", mattermost },
	{ "teams", teams },
};

int channel_webhook_body(struct str *out, const struct channel_job *job, struct err *e)
{
	const struct notice_extra extra = { str_text(&job->text->subject),
		str_text(&job->text->body) };
	for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
		if (strcmp(makers[i].kind, job->config->webhook_kind) != 0)
			continue;
		json_t *object = makers[i].make(job);
		char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
		str_add(out, text ? text : "");
		json_decref(object);
		free(text);
		return text && !out->failed ? 0 : err_memory(e);
	}
	return notice_to_json_with(job->notice, &extra, out, e);
}
