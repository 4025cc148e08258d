/* Posts a notice to a URL. Only this file knows curl. */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/hmac.h"
#include "policy/channel.h"

enum { TIMEOUT_MS = 5000, SECRET_MOST = 4096 };

/* The body is read for curl's sake alone. */
static size_t drop(char *bytes, size_t size, size_t n, void *context)
{
	(void)bytes;
	(void)context;
	return size * n;
}

/* Adds "X-Gua-Signature: sha256=HEX": who knows the secret can check that the message is ours.
 */
static int add_signature(struct curl_slist **headers, const struct channel_job *job,
	const struct str *body, struct err *e)
{
	struct file_content file = { 0 };
	char line[HMAC_HEX_CAP + 64], hex[HMAC_HEX_CAP];
	const char *path = job->config->webhook_secret;
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
	snprintf(line, sizeof(line), "X-Gua-Signature: sha256=%s", hex);
	*headers = curl_slist_append(*headers, line);
	return 0;
}

/* Certificates are checked; a redirect is not followed, because the body is for the URL that
 * the administrator wrote. */
static void set_options(CURL *curl, const struct channel_job *job, const struct str *body)
{
	int64_t limit = job->config->timeout_ms;
	curl_easy_setopt(curl, CURLOPT_URL, job->config->webhook_url);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https,http");
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L);
	curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(
		curl, CURLOPT_TIMEOUT_MS, (long)(limit < TIMEOUT_MS ? limit : TIMEOUT_MS));
	curl_easy_setopt(curl, CURLOPT_POST, 1L);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, str_text(body));
	curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)body->len);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, drop);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "gua");
}

/* Sends it; true: accepted. A URL may hold a secret, so no message names it. */
static bool post(CURL *curl, char why[CHANNEL_WHY_CAP])
{
	char detail[CURL_ERROR_SIZE] = "";
	long status = 0;
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, detail);
	CURLcode code = curl_easy_perform(curl);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, NULL);
	if (code != CURLE_OK)
		snprintf(why, CHANNEL_WHY_CAP, "the webhook failed: %.150s",
			curl_easy_strerror(code));
	else if (status >= 300 && status < 400)
		snprintf(why, CHANNEL_WHY_CAP,
			"the webhook answered with status %ld, a redirect, which is not "
			"followed",
			status);
	else
		snprintf(why, CHANNEL_WHY_CAP, "the webhook answered with status %ld", status);
	return code == CURLE_OK && status >= 200 && status < 300;
}

enum delivery channel_webhook(const struct channel_job *job, char why[CHANNEL_WHY_CAP])
{
	struct str body = { 0 };
	struct err e = { 0 };
	struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
	CURL *curl = curl_easy_init();
	bool done = false;
	int rc = curl && headers ? channel_webhook_body(&body, job, &e) : err_memory(&e);
	if (rc == 0)
		rc = add_signature(&headers, job, &body, &e);
	if (rc == 0) {
		set_options(curl, job, &body);
		curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
		done = post(curl, why);
	} else {
		text_copy(why, CHANNEL_WHY_CAP, e.text);
	}
	if (curl)
		curl_easy_cleanup(curl);
	curl_slist_free_all(headers);
	str_finish(&body);
	return done ? DELIVERY_DONE : DELIVERY_FAILED;
}
