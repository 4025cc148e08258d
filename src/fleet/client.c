/* Sends queries to an engine with libcurl, a few at a time; reads the address, credentials
 * and headers that all of them share; reports how a query ended. */
#include "fleet/client.h"

#include <ctype.h>
#include <curl/curl.h>

#include "version.h"

enum verdict {
	VERDICT_GOOD,
	VERDICT_REFUSED, /* the engine refuses this query */
	VERDICT_AGAIN,	 /* a temporary fault: try again */
	VERDICT_BAD,
};

enum { WARNINGS_MAX = 16 };

struct client {
	struct client_options options;
	char *url; /* with a slash at its end */
	char shown_url[256];
	char *bearer, *basic;
	struct curl_slist *headers;
	struct str params; /* "&NAME=VALUE" */
	CURLM *multi;
	char *warnings[WARNINGS_MAX];
	size_t n_warnings, n_not_finite;
	client_progress *progress;
	void *progress_context;
	int64_t progress_us;
	unsigned long long bytes;
};

/* Connection faults, and what to do about them. */
static const struct fault {
	CURLcode code;
	enum verdict verdict;
	const char *text;
} faults[] = {
	{ CURLE_COULDNT_RESOLVE_HOST, VERDICT_BAD, "there is no host of that name" },
	{ CURLE_COULDNT_CONNECT, VERDICT_AGAIN, "nothing accepts a connection there" },
	{ CURLE_PARTIAL_FILE, VERDICT_AGAIN,
		"the connection was closed before the whole answer had arrived" },
	{ CURLE_RECV_ERROR, VERDICT_AGAIN, "the connection broke while the answer arrived" },
	{ CURLE_SEND_ERROR, VERDICT_AGAIN, "the connection broke while the query was sent" },
	{ CURLE_GOT_NOTHING, VERDICT_AGAIN, "the connection was closed without an answer" },
	{ CURLE_UNSUPPORTED_PROTOCOL, VERDICT_BAD, "it does not speak HTTP" },
	{ CURLE_WEIRD_SERVER_REPLY, VERDICT_BAD, "it does not speak HTTP" },
	{ CURLE_HTTP2, VERDICT_AGAIN, "the connection broke while the answer arrived" },
	{ CURLE_PEER_FAILED_VERIFICATION, VERDICT_BAD,
		"its certificate is not trusted; --ca names a file with the authority, and the "
		"URL must have a name that is in the certificate" },
	{ CURLE_SSL_CERTPROBLEM, VERDICT_BAD,
		"the client's certificate or key cannot be used (--cert, --key)" },
	{ CURLE_SSL_CACERT_BADFILE, VERDICT_BAD, "the file of --ca cannot be used" },
	{ CURLE_SSL_CONNECT_ERROR, VERDICT_BAD,
		"TLS could not be set up; does the engine answer with http:// there, and do "
		"--cert and --key belong together?" },
	{ CURLE_OUT_OF_MEMORY, VERDICT_BAD, ERR_MEMORY_TEXT },
};

static enum verdict judge_fault(const struct client_request *r, CURLcode code, struct err *e)
{
	const struct fault *fault = faults, *end = faults + sizeof(faults) / sizeof(faults[0]);
	if (code == CURLE_OPERATION_TIMEDOUT) {
		err_set(e, ERR_WORLD,
			"no complete answer within %s; ask for a shorter time, or for more "
			"patience with --timeout",
			duration_option(r->client->options.conf.timeout_ms).text);
		return VERDICT_BAD;
	}
	while (fault < end && fault->code != code)
		fault++;
	err_set(e, ERR_WORLD, "%s", fault < end ? fault->text : curl_easy_strerror(code));
	return fault < end ? fault->verdict : VERDICT_BAD;
}

static enum verdict judge_status(const struct client_request *r, long status, struct err *e)
{
	bool passes = status == 429 || status == 502 || status == 503 || status == 504;
	const char *says = r->answer.error;
	const char *advice =
		status == 400 && !*says ? "; it may want https://"
		: status == 401		? "; give --bearer-file or --basic-file"
		: status == 403		? "; the credentials are not allowed to do this"
		: status == 404 ? "; the URL may need a path, such as /prometheus, or none"
		: status == 405 ? "; --from takes a Prometheus-compatible engine, not gua serve"
		: status == 422 ? "; a shorter --since asks for less"
				: "";
	if (*says)
		err_set(e, ERR_WORLD, "the engine refused the query: %s (HTTP %ld%s%s)%s", says,
			status, *r->answer.error_type ? ", " : "", r->answer.error_type,
			advice);
	else
		err_set(e, ERR_WORLD, "the engine answered with HTTP %ld%s", status, advice);
	return passes ? VERDICT_AGAIN : VERDICT_REFUSED;
}

/* Fills `e` unless the verdict is good. */
static enum verdict verdict_of(const struct client_request *r, CURLcode code, struct err *e)
{
	long status = 0;
	char *to = NULL, *type = NULL;
	curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(r->easy, CURLINFO_REDIRECT_URL, &to);
	curl_easy_getinfo(r->easy, CURLINFO_CONTENT_TYPE, &type);
	if (code != CURLE_OK && code != CURLE_WRITE_ERROR)
		return judge_fault(r, code, e);
	if (status >= 300 && status < 400) {
		err_set(e, ERR_WORLD,
			"the engine redirects to %s (HTTP %ld), and gua follows no "
			"redirect, so that credentials go nowhere else; give that address",
			to ? to : "nowhere", status);
		return VERDICT_BAD;
	}
	if (status != 200)
		return judge_status(r, status, e);
	if (r->wrong.code || code == CURLE_WRITE_ERROR) {
		if (type && strstr(type, "html"))
			err_set(e, ERR_WORLD,
				"the answer is a web page, not JSON; the URL may need a "
				"path, such as /prometheus");
		else
			err_set(e, ERR_WORLD, "the answer is wrong: %s", r->wrong.text);
		return VERDICT_BAD;
	}
	if (!r->answer.success) {
		err_set(e, ERR_WORLD, "the engine reports an error: %s",
			*r->answer.error ? r->answer.error : "it does not say which");
		return VERDICT_REFUSED;
	}
	return VERDICT_GOOD;
}

enum { SECRET_MAX = 65536, CONNECT_MS = 10000 };

static int read_url(struct client *c, const char *url, struct err *e)
{
	const char *host = strstr(url, "://");
	str_escape(c->shown_url, sizeof(c->shown_url), url, strlen(url));
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
	c->url = strndup(url, len);
	c->shown_url[strlen(c->shown_url) > len ? len : strlen(c->shown_url)] = '\0';
	return c->url ? 0 : err_memory(e);
}

/* Reads a secret: the first line of a file, without the blanks around it. */
static int read_secret(char **to, const char *path, struct err *e)
{
	struct file_content f = { 0 };
	size_t from = 0, len = 0;
	if (!path)
		return 0;
	int rc = file_read_regular(path, SECRET_MAX, &f, e);
	if (rc) {
		free(f.data);
		return rc;
	}
	while (from < f.len && isspace((unsigned char)f.data[from]))
		from++;
	while (from + len < f.len && (unsigned char)f.data[from + len] > 31)
		len++;
	while (len > 0 && f.data[from + len - 1] == ' ')
		len--;
	*to = strndup(f.data + from, len);
	free(f.data);
	if (!*to)
		return err_memory(e);
	return **to ? 0 : err_set(e, ERR_WORLD, "%s is empty", path);
}

static int add_header(struct client *c, const char *line, bool of_file, struct err *e)
{
	size_t name = strcspn(line, ":");
	if (name == 0 || line[name] != ':' || strpbrk(line, "\r\n") || memchr(line, ' ', name))
		return err_set(
			e, ERR_USAGE, "a header looks like 'X-Scope-OrgID: a', not '%s'", line);
	if (!of_file && name == 13 && strncasecmp(line, "Authorization", name) == 0)
		return err_set(e, ERR_USAGE,
			"a credential in --header can be read by all users of this host; use "
			"--bearer-file, --basic-file or --header-file");
	struct curl_slist *list = curl_slist_append(c->headers, line);
	if (!list)
		return err_memory(e);
	c->headers = list;
	return 0;
}

static int read_header_file(struct client *c, const char *path, struct err *e)
{
	struct file_content f = { 0 };
	if (!path)
		return 0;
	int rc = file_read_regular(path, SECRET_MAX, &f, e);
	char *save = NULL;
	for (char *line = rc ? NULL : strtok_r(f.data, "\r\n", &save); line && rc == 0;
		line = strtok_r(NULL, "\r\n", &save)) {
		if (*line != '#')
			rc = add_header(c, line, true, e);
		if (rc)
			err_prefix(e, "%s", path);
	}
	free(f.data);
	return rc;
}

static int add_param(struct client *c, const char *text, struct err *e)
{
	size_t name = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_[]");
	char *value =
		text[name] == '=' && name ? curl_easy_escape(NULL, text + name + 1, 0) : NULL;
	if (!value)
		return err_set(
			e, ERR_USAGE, "a parameter looks like dedup=false, not '%s'", text);
	str_addf(&c->params, "&%.*s=%s", (int)name, text, value);
	curl_free(value);
	return 0;
}

/* Adds the user's parameters, and those that keep Thanos from returning a partial answer. */
static int read_params(struct client *c, const struct client_options *o, struct err *e)
{
	static const char *const usual[][2] = { { "partial_response", "false" },
		{ "dedup", "true" }, { "max_source_resolution", "0s" } };
	int rc = o->conf.param ? add_param(c, o->conf.param, e) : 0;
	for (size_t i = 0; o->params && i < o->params->n && rc == 0; i++)
		rc = add_param(c, o->params->items[i], e);
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
		char key[64];
		snprintf(key, sizeof(key), "&%s=", usual[i][0]);
		if (!strstr(str_text(&c->params), key))
			str_addf(&c->params, "%s%s", key, usual[i][1]);
	}
	return rc == 0 && c->params.failed ? err_memory(e) : rc;
}

/* Reads the secrets and checks the files that the options name. */
static int read_credentials(struct client *c, const struct config_fleet *o, struct err *e)
{
	const char *const paths[] = { o->cert_file, o->key_file, o->ca_file };
	int rc = 0;
	for (size_t i = 0; i < 3 && rc == 0; i++)
		rc = paths[i] ? file_check_regular(paths[i], e) : 0;
	if (rc == 0 && o->bearer_file && o->basic_file)
		rc = err_set(e, ERR_USAGE, "--bearer-file and --basic-file exclude each other");
	if (rc || read_secret(&c->bearer, o->bearer_file, e) ||
		read_secret(&c->basic, o->basic_file, e))
		return e->code;
	return !c->basic || strchr(c->basic, ':')
		       ? 0
		       : err_set(e, ERR_WORLD, "%s: there is no USER:PASSWORD in it",
				 o->basic_file);
}

/* Reads the options and the files that they name. */
static int read_options(struct client *c, const struct client_options *o, struct err *e)
{
	c->options = *o;
	if (read_url(c, o->conf.url, e) || read_credentials(c, &o->conf, e) ||
		(o->conf.header && add_header(c, o->conf.header, true, e)))
		return e->code;
	for (size_t i = 0; o->headers && i < o->headers->n; i++)
		if (add_header(c, o->headers->items[i], false, e))
			return e->code;
	return read_header_file(c, o->conf.header_file, e) ? e->code : read_params(c, o, e);
}

static void set_credentials(CURL *easy, const struct client *c)
{
	const struct config_fleet *o = &c->options.conf;
	if (c->bearer) {
		curl_easy_setopt(easy, CURLOPT_XOAUTH2_BEARER, c->bearer);
		curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
	}
	if (c->basic) {
		curl_easy_setopt(easy, CURLOPT_USERPWD, c->basic);
		curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
	}
	if (o->cert_file)
		curl_easy_setopt(easy, CURLOPT_SSLCERT, o->cert_file);
	if (o->key_file)
		curl_easy_setopt(easy, CURLOPT_SSLKEY, o->key_file);
	if (o->ca_file)
		curl_easy_setopt(easy, CURLOPT_CAINFO, o->ca_file);
}

/* Passes bytes from libcurl to the reader. A return value other than `n` ends the transfer. */
static size_t take_bytes(char *bytes, size_t size, size_t n, void *context)
{
	struct client_request *r = context;
	size_t len = size * n;
	r->bytes += len;
	r->client->bytes += len;
	if (r->bytes > (unsigned long long)r->client->options.body_max)
		err_set(&r->wrong, ERR_WORLD, "it is larger than %lld MiB",
			(long long)(r->client->options.body_max >> 20));
	else if (!r->wrong.code)
		engine_answer_feed(&r->answer, bytes, len, &r->wrong);
	return r->wrong.code ? 0 : len;
}

/* Makes the handle of a request; false: out of memory. */
static bool make_handle(struct client_request *r)
{
	const struct client *c = r->client;
	CURL *easy = r->easy = curl_easy_init();
	struct str url = { 0 }, body = { 0 };
	if (!easy)
		return false;
	str_addf(&url, "%s/api/v1/%s", c->url, r->path);
	curl_easy_setopt(easy, CURLOPT_URL, str_text(&url));
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "gua-fleet/" GUA_VERSION);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)c->options.conf.timeout_ms);
	curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 256L * 1024);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, c->headers);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_bytes);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, r);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, r);
	if (r->form.len) {
		str_addf(&body, "%s%s", str_text(&r->form), str_text(&c->params));
		curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)body.len);
		curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, str_text(&body));
	}
	set_credentials(easy, c);
	bool failed = url.failed || body.failed || r->form.failed;
	str_finish(&url);
	str_finish(&body);
	return !failed;
}

/* VictoriaMetrics answers four queries at a time by default, Prometheus twenty. */
enum { CONCURRENT = 4, POLL_MS = 200, BACKOFF_MS = 500, WAIT_MAX_MS = 60000 };

void client_request_param(struct client_request *r, const char *name, const char *value)
{
	str_addf(&r->form, "%s%s=", r->form.len ? "&" : "", name);
	for (const char *at = value; *at; at++)
		if (isalnum((unsigned char)*at) || strchr("-._~", *at))
			str_add_bytes(&r->form, at, 1);
		else
			str_addf(&r->form, "%%%02X", (unsigned char)*at);
}

void client_request_number(struct client_request *r, const char *name, double value)
{
	char text[64];
	snprintf(text, sizeof(text), "%.3f", value);
	client_request_param(r, name, text);
}

void client_request_finish(struct client_request *r)
{
	str_finish(&r->form);
	engine_answer_finish(&r->answer);
}

int client_open(struct client **c, const struct client_options *o, struct err *e)
{
	struct client *new = calloc(1, sizeof(*new));
	*c = new;
	if (!new)
		return err_memory(e);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return err_set(e, ERR_WORLD, "libcurl cannot be used here");
	new->multi = curl_multi_init();
	return new->multi ? read_options(new, o, e) : err_memory(e);
}

void client_close(struct client *c)
{
	if (!c)
		return;
	char *secrets[] = { c->bearer, c->basic };
	for (size_t i = 0; i < 2; i++) {
		if (secrets[i])
			explicit_bzero(secrets[i], strlen(secrets[i]));
		free(secrets[i]);
	}
	free(c->url);
	curl_slist_free_all(c->headers);
	str_finish(&c->params);
	for (size_t i = 0; i < c->n_warnings; i++)
		free(c->warnings[i]);
	if (c->multi)
		curl_multi_cleanup(c->multi);
	free(c);
	curl_global_cleanup();
}

void client_watch(struct client *c, client_progress *progress, void *context)
{
	c->progress = progress;
	c->progress_context = context;
}

size_t client_warnings(const struct client *c, const char *const **texts)
{
	*texts = (const char *const *)c->warnings;
	return c->n_warnings;
}

size_t client_not_finite(const struct client *c)
{
	return c->n_not_finite;
}

void client_bound(struct client *c, int64_t body_max)
{
	c->options.body_max = body_max;
}

const char *client_url(const struct client *c)
{
	return c->shown_url;
}

static int begin(struct client *c, struct client_request *r, struct err *e)
{
	r->bytes = 0;
	r->wrong = (struct err){ 0 };
	r->tries++;
	engine_answer_start(&r->answer);
	bool begun = make_handle(r) && curl_multi_add_handle(c->multi, r->easy) == CURLM_OK;
	return begun ? 0 : err_memory(e);
}

static void stop(struct client *c, struct client_request *r)
{
	if (!r->easy)
		return;
	curl_multi_remove_handle(c->multi, r->easy);
	curl_easy_cleanup(r->easy);
	r->easy = NULL;
}

/* Keeps the warnings of the engine, each once. */
static void take_warnings(struct client *c, const struct engine_answer *a)
{
	c->n_not_finite += a->n_not_finite;
	for (size_t i = 0; i < a->n_warnings; i++) {
		size_t k = 0;
		while (k < c->n_warnings && strcmp(c->warnings[k], a->warnings[i]) != 0)
			k++;
		if (k < c->n_warnings || k == WARNINGS_MAX)
			continue;
		c->warnings[k] = strdup(a->warnings[i]);
		c->n_warnings += c->warnings[k] != NULL;
	}
}

/* When to try again: after the time that the engine asks for, else after twice as long each
 * time; never after more than WAIT_MAX_MS. */
static int64_t wait_ms(const struct client_request *r)
{
	curl_off_t after_s = 0;
	curl_easy_getinfo(r->easy, CURLINFO_RETRY_AFTER, &after_s);
	int64_t ms = after_s > 0 && after_s < WAIT_MAX_MS
			     ? (int64_t)after_s * 1000
			     : (int64_t)BACKOFF_MS << (r->tries < 8 ? r->tries - 1 : 7);
	return ms < WAIT_MAX_MS ? ms : WAIT_MAX_MS;
}

/* Decides what follows from a finished transfer. */
static int end(struct client *c, struct client_request *r, CURLcode code, struct err *e)
{
	if (code == CURLE_OK && !r->wrong.code)
		engine_answer_end(&r->answer, &r->wrong);
	enum verdict verdict = verdict_of(r, code, e);
	if (verdict != VERDICT_GOOD)
		err_prefix(e, "%s", c->shown_url);
	bool again = verdict == VERDICT_AGAIN && r->tries <= c->options.conf.retries;
	r->not_before_us = again ? clock_monotonic_us() + 1000 * wait_ms(r) : 0;
	stop(c, r);
	if (again)
		return 0;
	r->done = true;
	if (verdict == VERDICT_GOOD)
		take_warnings(c, &r->answer);
	r->refused = verdict == VERDICT_REFUSED;
	return verdict == VERDICT_GOOD || (r->refused && r->may_fail) ? 0 : ERR_WORLD;
}

/* Starts as many transfers as may run at a time. */
static int start_some(struct client *c, struct client_request *all, size_t n, struct err *e)
{
	size_t running = 0;
	int64_t now_us = clock_monotonic_us();
	int rc = 0;
	for (size_t i = 0; i < n; i++)
		running += all[i].easy != NULL;
	for (size_t i = 0; i < n && running < CONCURRENT && rc == 0; i++) {
		if (all[i].done || all[i].easy || all[i].not_before_us > now_us)
			continue;
		rc = begin(c, &all[i], e);
		running++;
	}
	return rc;
}

/* Sets *any if a transfer has ended. */
static int take_ended(struct client *c, bool *any, struct err *e)
{
	int left = 0, rc = 0;
	*any = false;
	const CURLMsg *message;
	while (rc == 0 && (message = curl_multi_info_read(c->multi, &left))) {
		char *private = NULL;
		if (message->msg != CURLMSG_DONE)
			continue;
		CURLcode code = message->data.result;
		*any = true;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private);
		rc = end(c, (struct client_request *)(void *)private, code, e);
	}
	return rc;
}

/* The number of finished requests; reports it to the caller a few times a second. */
static size_t count_done(struct client *c, const struct client_request *all, size_t n)
{
	size_t n_done = 0;
	int64_t now_us = clock_monotonic_us();
	for (size_t i = 0; i < n; i++)
		n_done += all[i].done;
	if (c->progress && now_us - c->progress_us >= 1000 * POLL_MS) {
		c->progress_us = now_us;
		c->progress(c->progress_context, n_done, n, c->bytes);
	}
	return n_done;
}

int client_run(struct client *c, struct client_request *requests, size_t n, struct err *e)
{
	int rc = 0, running = 0;
	size_t n_done = 0;
	for (size_t i = 0; i < n; i++)
		requests[i].client = c;
	while (rc == 0 && n_done < n) {
		bool any_ended = false;
		rc = start_some(c, requests, n, e);
		if (rc == 0 && curl_multi_perform(c->multi, &running) != CURLM_OK)
			rc = err_memory(e);
		if (rc == 0)
			rc = take_ended(c, &any_ended, e);
		n_done = count_done(c, requests, n);
		/* Where one has ended, the next can begin: nothing is waited for. */
		if (rc == 0 && n_done < n && !any_ended)
			curl_multi_poll(c->multi, NULL, 0, POLL_MS, NULL);
	}
	for (size_t i = 0; i < n; i++)
		stop(c, &requests[i]);
	return rc;
}
