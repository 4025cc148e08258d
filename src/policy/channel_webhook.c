/* Posts a notice to a URL through the program gua-post, which runs for this one request. What
 * the network needs (curl, TLS) is never a part of gua-enforce, which runs all the time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/child.h"
#include "base/file.h"
#include "base/hmac.h"
#include "policy/channel.h"

/* gua-post keeps the deadline itself; this much later it is killed. */
enum { KILL_MS = 500, SECRET_MOST = 4096, HEADER_CAP = HMAC_HEX_CAP + 64 };

/* Writes "X-Gua-Signature: sha256=HEX": who knows the secret can check that the message is
 * ours. "" without a secret. */
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
	hmac_sha256_hex(hex, &key, str_text(body), body->len);
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
		text_copy(why, CHANNEL_WHY_CAP, e.text);
	else if (r.status == 0 || r.status == 1)
		text_copy(why, CHANNEL_WHY_CAP, r.output);
	else
		child_result_text(why, CHANNEL_WHY_CAP, "gua-post", &r);
	return rc == 0 && r.status == 0 ? DELIVERY_DONE : DELIVERY_FAILED;
}
