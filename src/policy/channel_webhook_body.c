/* What a webhook is sent: JSON as the receiving service wants it. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "policy/channel.h"

/* Slack's text: & < > are its own. */
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

/* Text between fences, where nothing has a meaning but the fence. */
static void add_fenced(struct str *out, const char *text)
{
	str_add(out, "```\n");
	for (; *text; text++)
		str_add_bytes(out, *text == '`' ? "'" : text, 1);
	str_add(out, "```");
}

static json_t *slack(const struct channel_job *job)
{
	struct str text = { 0 };
	add_slack(&text, str_text(&job->text->subject));
	str_add(&text, "\n");
	struct str body = { 0 };
	add_fenced(&body, str_text(&job->text->body));
	add_slack(&text, str_text(&body));
	json_t *object = json_pack("{s:s}", "text", str_text(&text));
	str_finish(&body);
	str_finish(&text);
	return object;
}

static json_t *mattermost(const struct channel_job *job)
{
	struct str text = { 0 };
	add_fenced(&text, str_text(&job->text->subject));
	str_add(&text, "\n");
	add_fenced(&text, str_text(&job->text->body));
	json_t *object = json_pack("{s:s,s:s}", "username", "gua", "text", str_text(&text));
	str_finish(&text);
	return object;
}

static json_t *teams(const struct channel_job *job)
{
	return json_pack("{s:s,s:[{s:s,s:{s:s,s:s,s:[{s:s,s:s,s:s,s:b},{s:s,s:s,s:s,s:b}]}}]}",
		"type", "message", "attachments", "contentType",
		"application/vnd.microsoft.card.adaptive", "content", "type", "AdaptiveCard",
		"version", "1.4", "body", "type", "TextBlock", "weight", "Bolder", "text",
		str_text(&job->text->subject), "wrap", 1, "type", "TextBlock", "fontType",
		"Monospace", "text", str_text(&job->text->body), "wrap", 1);
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
