/* Posts a notice to a URL through the program gua-post, which runs for this one request.
 * Network libraries (curl, TLS) are therefore never loaded into gua-enforce, which runs all
 * the time. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/child.h"
#include "base/file.h"
#include "base/sha256.h"
#include "policy/channel.h"

/* gua-post keeps the deadline itself; it is killed if it has not ended this long after it. */
enum { KILL_MS = 500, SECRET_MOST = 4096, HEADER_CAP = HMAC_HEX_CAP + 64 };

/* Writes "X-Gua-Signature: sha256=HEX", with which a receiver that knows the secret can
 * check that the message is ours. "" without a secret. */
static int sign(char header[HEADER_CAP], const struct channel_job *job, const struct str *body,
	struct err *e)
{
	struct file_content file = { 0 };
	char hex[HMAC_HEX_CAP];
	const char *path = job->config->webhook_secret;
	*header = '\0';
	if (!path)
		return 0;
	int rc = file_read_regular(path, SECRET_MOST, &file, e);
	if (rc)
		return rc;
	if (file.st.st_mode & S_IROTH) {
		free(file.data);
		return err_set(e, ERR_WORLD, "others can read the secret in %s; chmod o-r %s",
			path, path);
	}
	while (file.len && strchr("\r\n", file.data[file.len - 1]))
		file.len--;
	const struct hmac_key key = { file.data, file.len };
	sha256_hmac_hex(hex, &key, str_text(body), body->len);
	explicit_bzero(file.data, file.len);
	free(file.data);
	snprintf(header, HEADER_CAP, "X-Gua-Signature: sha256=%s", hex);
	return 0;
}

static int make_request(struct str *request, const struct channel_job *job, struct err *e)
{
	struct str body = { 0 };
	char header[HEADER_CAP];
	int64_t limit = job->config->timeout_ms;
	int rc = channel_webhook_body(&body, job, e);
	if (rc == 0)
		rc = sign(header, job, &body, e);
	if (rc == 0) {
		const struct post_request r = {
			.timeout_ms = limit < POST_LONGEST_MS ? limit : POST_LONGEST_MS,
			.url = job->config->webhook_url,
			.header = header,
			.body = str_text(&body),
			.body_len = body.len
		};
		rc = post_write(request, &r, e);
	}
	str_finish(&body);
	return rc;
}

static int post(
	const struct channel_job *job, const char *path, struct child_result *r, struct err *e)
{
	struct str request = { 0 };
	const char *argv[] = { path, NULL };
	int64_t limit = job->config->timeout_ms;
	int rc = make_request(&request, job, e);
	const struct child_command command = { .argv = argv,
		.env = job->post->env,
		.input = str_text(&request),
		.input_len = request.len,
		.timeout_ms = (limit < POST_LONGEST_MS ? limit : POST_LONGEST_MS) + KILL_MS };
	if (rc == 0)
		rc = child_run(&command, r, e);
	str_finish(&request);
	return rc;
}

enum delivery channel_webhook(const struct channel_job *job, char why[CHANNEL_WHY_CAP])
{
	struct err e = { 0 };
	struct child_result r = { .status = -1 };
	const char *path = job->post ? job->post->path : NULL;
	int rc = path ? post(job, path, &r, &e)
		      : err_set(&e, ERR_WORLD,
				"the program gua-post, which sends webhooks, is not installed; "
				"build gua with libcurl");
	if (rc)
		str_copy(why, CHANNEL_WHY_CAP, e.text);
	else if (r.status == 0 || r.status == 1)
		str_copy(why, CHANNEL_WHY_CAP, r.output);
	else
		child_result_text(why, CHANNEL_WHY_CAP, "gua-post", &r);
	return rc == 0 && r.status == 0 ? DELIVERY_DONE : DELIVERY_FAILED;
}

/* Builds the JSON that each receiving service expects. */

/* Words that notify everybody in a channel when they follow an @. */
static const char *const crowds[] = { "all", "channel", "everyone", "here" };

/* Whether the text begins with such a word. */
static bool calls_everybody(const char *text)
{
	for (size_t i = 0; i < sizeof(crowds) / sizeof(crowds[0]); i++)
		if (strncasecmp(text, crowds[i], strlen(crowds[i])) == 0)
			return true;
	return false;
}

/* Adds text in which no name notifies anybody and nothing closes a code fence: a zero-width
 * space follows such an @, and a backtick becomes an apostrophe. */
static void add_calm(struct str *out, const char *text)
{
	for (; *text; text++) {
		str_add_bytes(out, *text == '`' ? "'" : text, 1);
		if (*text == '@' && calls_everybody(text + 1))
			str_add(out, "\xe2\x80\x8b");
	}
}

/* Adds the whole notice as a fenced code block, in which no character is markup and nothing
 * becomes a link; only the fence itself has a meaning. */
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
 * RichTextBlock is not. Without "entities", <at> notifies nobody. */
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
		/* An empty line would have no height. */
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
