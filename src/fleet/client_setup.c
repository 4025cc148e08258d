/* Reads what all requests of a client share, and prepares libcurl's handles. */
#include "fleet/client_setup.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "version.h"

enum { SECRET_MAX = 65536, CONNECT_MS = 10000 };

static int read_url(struct client_setup *s, const char *url, struct err *e)
{
	const char *host = strstr(url, "://");
	text_escape(s->shown_url, sizeof(s->shown_url), url, strlen(url));
	if (!host || (strncasecmp(url, "http://", 7) && strncasecmp(url, "https://", 8)) ||
		!host[3] || strpbrk(url, " \t\n?#"))
		return err_set(e, ERR_USAGE,
			"'%s' is not the address of an engine; it looks like "
			"http://HOST:9090 or https://HOST/PATH",
			url);
	if (memchr(host, '@', 3 + strcspn(host + 3, "/")))
		return err_set(e, ERR_USAGE,
			"a password in an address can be read by all users of this host; put "
			"USER:PASSWORD into a file for --basic-file");
	size_t len = strlen(url);
	while (len > 0 && url[len - 1] == '/')
		len--;
	s->url = strndup(url, len);
	s->shown_url[strlen(s->shown_url) > len ? len : strlen(s->shown_url)] = '\0';
	return s->url ? 0 : err_memory(e);
}

/* Reads a secret: the first line of a file, without the blanks around it. */
static int read_secret(char **to, const char *path, struct err *e)
{
	struct file_content f = { 0 };
	if (!path)
		return 0;
	int rc = file_read_regular(path, SECRET_MAX, &f, e);
	if (rc == 0) {
		size_t from = 0, len = 0;
		while (from < f.len && isspace((unsigned char)f.data[from]))
			from++;
		while (from + len < f.len && (unsigned char)f.data[from + len] > 31)
			len++;
		while (len > 0 && f.data[from + len - 1] == ' ')
			len--;
		*to = strndup(f.data + from, len);
		rc = !*to    ? err_memory(e)
		     : !**to ? err_set(e, ERR_WORLD, "%s is empty", path)
			     : 0;
	}
	free(f.data);
	return rc;
}

static int add_header(struct client_setup *s, const char *line, bool of_file, struct err *e)
{
	size_t name = strcspn(line, ":");
	if (name == 0 || line[name] != ':' || strpbrk(line, "\r\n") || memchr(line, ' ', name))
		return err_set(
			e, ERR_USAGE, "a header looks like 'X-Scope-OrgID: a', not '%s'", line);
	if (!of_file && name == 13 && strncasecmp(line, "Authorization", name) == 0)
		return err_set(e, ERR_USAGE,
			"a credential in --header can be read by all users of this host; use "
			"--bearer-file, --basic-file or --header-file");
	struct curl_slist *list = curl_slist_append(s->headers, line);
	if (!list)
		return err_memory(e);
	s->headers = list;
	return 0;
}

static int read_header_file(struct client_setup *s, const char *path, struct err *e)
{
	struct file_content f = { 0 };
	if (!path)
		return 0;
	int rc = file_read_regular(path, SECRET_MAX, &f, e);
	char *save = NULL;
	for (char *line = rc ? NULL : strtok_r(f.data, "\r\n", &save); line && rc == 0;
		line = strtok_r(NULL, "\r\n", &save)) {
		if (*line != '#')
			rc = add_header(s, line, true, e);
		if (rc)
			err_prefix(e, "%s", path);
	}
	free(f.data);
	return rc;
}

static bool has_param(const struct client_setup *s, const char *name)
{
	char key[64];
	snprintf(key, sizeof(key), "&%s=", name);
	return strstr(str_text(&s->params), key) != NULL;
}

static int add_param(struct client_setup *s, const char *text, struct err *e)
{
	size_t name = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_[]");
	char *value =
		text[name] == '=' && name ? curl_easy_escape(NULL, text + name + 1, 0) : NULL;
	if (!value)
		return err_set(
			e, ERR_USAGE, "a parameter looks like dedup=false, not '%s'", text);
	str_addf(&s->params, "&%.*s=%s", (int)name, text, value);
	curl_free(value);
	return 0;
}

/* What the user gave; and what Thanos needs so that it fails instead of answering in part. */
static int read_params(struct client_setup *s, const struct client_options *o, struct err *e)
{
	static const char *const usual[][2] = { { "partial_response", "false" },
		{ "dedup", "true" }, { "max_source_resolution", "0s" } };
	int rc = o->param ? add_param(s, o->param, e) : 0;
	for (size_t i = 0; o->params && i < o->params->n && rc == 0; i++)
		rc = add_param(s, o->params->items[i], e);
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		if (!has_param(s, usual[i][0]))
			str_addf(&s->params, "&%s=%s", usual[i][0], usual[i][1]);
	return rc;
}

static int check_files(const struct client_options *o, struct err *e)
{
	const char *const paths[] = { o->cert_file, o->key_file, o->ca_file };
	int rc = 0;
	for (size_t i = 0; i < 3 && rc == 0; i++)
		rc = paths[i] ? file_check_regular(paths[i], e) : 0;
	if (rc == 0 && o->bearer_file && o->basic_file)
		return err_set(
			e, ERR_USAGE, "--bearer-file and --basic-file exclude each other");
	return rc;
}

int client_setup_read(struct client_setup *s, const struct client_options *o, struct err *e)
{
	s->options = *o;
	int rc = read_url(s, o->url, e);
	if (rc == 0)
		rc = check_files(o, e);
	if (rc == 0)
		rc = read_secret(&s->bearer, o->bearer_file, e);
	if (rc == 0)
		rc = read_secret(&s->basic, o->basic_file, e);
	if (rc == 0 && s->basic && !strchr(s->basic, ':'))
		rc = err_set(
			e, ERR_WORLD, "%s: there is no USER:PASSWORD in it", o->basic_file);
	if (rc == 0 && o->header)
		rc = add_header(s, o->header, true, e);
	for (size_t i = 0; o->headers && i < o->headers->n && rc == 0; i++)
		rc = add_header(s, o->headers->items[i], false, e);
	if (rc == 0)
		rc = read_header_file(s, o->header_file, e);
	if (rc == 0)
		rc = read_params(s, o, e);
	if (rc == 0 && s->params.failed)
		rc = err_memory(e);
	return rc;
}

static void forget(char *secret)
{
	if (secret)
		explicit_bzero(secret, strlen(secret));
	free(secret);
}

void client_setup_finish(struct client_setup *s)
{
	forget(s->bearer);
	forget(s->basic);
	free(s->url);
	curl_slist_free_all(s->headers);
	str_finish(&s->params);
	*s = (struct client_setup){ 0 };
}

static void set_credentials(CURL *easy, const struct client_setup *s)
{
	const struct client_options *o = &s->options;
	if (s->bearer) {
		curl_easy_setopt(easy, CURLOPT_XOAUTH2_BEARER, s->bearer);
		curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
	}
	if (s->basic) {
		curl_easy_setopt(easy, CURLOPT_USERPWD, s->basic);
		curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
	}
	if (o->cert_file)
		curl_easy_setopt(easy, CURLOPT_SSLCERT, o->cert_file);
	if (o->key_file)
		curl_easy_setopt(easy, CURLOPT_SSLKEY, o->key_file);
	if (o->ca_file)
		curl_easy_setopt(easy, CURLOPT_CAINFO, o->ca_file);
}

CURL *client_setup_make(const struct client_setup *s, const char *path, const struct str *form)
{
	CURL *easy = curl_easy_init();
	struct str url = { 0 }, body = { 0 };
	if (!easy)
		return NULL;
	str_addf(&url, "%s/api/v1/%s", s->url, path);
	curl_easy_setopt(easy, CURLOPT_URL, str_text(&url));
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "gua-fleet/" GUA_VERSION);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)s->options.timeout_ms);
	curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 256L * 1024);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, s->headers);
	if (form->len) {
		str_addf(&body, "%s%s", str_text(form), str_text(&s->params));
		curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)body.len);
		curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, str_text(&body));
	}
	set_credentials(easy, s);
	bool failed = url.failed || body.failed;
	str_finish(&url);
	str_finish(&body);
	if (failed)
		curl_easy_cleanup(easy);
	return failed ? NULL : easy;
}
