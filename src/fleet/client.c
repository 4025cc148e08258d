/* Sends queries to an engine with libcurl's multi interface. */
#include "fleet/client.h"

#include <ctype.h>
#include <curl/curl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "fleet/client_setup.h"
#include "fleet/verdict.h"

/* VictoriaMetrics answers four queries at a time by default, Prometheus twenty. */
enum {
	CONCURRENT = 4,
	POLL_MS = 200,
	BACKOFF_MS = 500,
	WAIT_MAX_MS = 60000,
	WARNINGS_MAX = 16
};

struct transfer {
	struct client *client;
	struct request *request;
	CURL *easy;
	struct err wrong; /* with the answer */
	unsigned tries;
	int64_t not_before_us;
	unsigned long long bytes;
	bool running, done;
};

struct client {
	struct client_setup setup;
	CURLM *multi;
	char *warnings[WARNINGS_MAX];
	size_t n_warnings, n_not_finite;
	client_progress *progress;
	void *progress_context;
	int64_t progress_us;
	unsigned long long bytes;
};

void request_param(struct request *r, const char *name, const char *value)
{
	str_addf(&r->form, "%s%s=", r->form.len ? "&" : "", name);
	for (const char *at = value; *at; at++)
		if (isalnum((unsigned char)*at) || strchr("-._~", *at))
			str_add_bytes(&r->form, at, 1);
		else
			str_addf(&r->form, "%%%02X", (unsigned char)*at);
}

void request_number(struct request *r, const char *name, double value)
{
	char text[64];
	snprintf(text, sizeof(text), "%.3f", value);
	request_param(r, name, text);
}

void request_finish(struct request *r)
{
	str_finish(&r->form);
	answer_finish(&r->answer);
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
	return new->multi ? client_setup_read(&new->setup, o, e) : err_memory(e);
}

void client_close(struct client *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n_warnings; i++)
		free(c->warnings[i]);
	if (c->multi)
		curl_multi_cleanup(c->multi);
	client_setup_finish(&c->setup);
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
	c->setup.options.body_max = body_max;
}

const char *client_url(const struct client *c)
{
	return c->setup.shown_url;
}

/* libcurl has bytes for the reader. Another number than `n` ends the transfer. */
static size_t take_bytes(char *bytes, size_t size, size_t n, void *context)
{
	struct transfer *t = context;
	size_t len = size * n;
	t->bytes += len;
	t->client->bytes += len;
	if (t->bytes > (unsigned long long)t->client->setup.options.body_max)
		err_set(&t->wrong, ERR_WORLD, "it is larger than %lld MiB",
			(long long)(t->client->setup.options.body_max >> 20));
	else if (!t->wrong.code)
		answer_feed(&t->request->answer, bytes, len, &t->wrong);
	return t->wrong.code ? 0 : len;
}

static int begin(struct client *c, struct transfer *t, struct err *e)
{
	t->bytes = 0;
	t->wrong = (struct err){ 0 };
	answer_start(&t->request->answer);
	if (t->request->form.failed)
		return err_memory(e);
	t->easy = client_setup_make(&c->setup, t->request->path, &t->request->form);
	if (!t->easy)
		return err_memory(e);
	curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, take_bytes);
	curl_easy_setopt(t->easy, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(t->easy, CURLOPT_PRIVATE, t);
	if (curl_multi_add_handle(c->multi, t->easy) != CURLM_OK)
		return err_memory(e);
	t->running = true;
	t->tries++;
	return 0;
}

static void stop(struct client *c, struct transfer *t)
{
	if (t->running)
		curl_multi_remove_handle(c->multi, t->easy);
	if (t->easy)
		curl_easy_cleanup(t->easy);
	t->easy = NULL;
	t->running = false;
}

/* Keeps what the engine warns of, each once. */
static void take_warnings(struct client *c, const struct answer *a)
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

/* When to try again: what the engine asks for, else twice as long each time; never longer than
 * WAIT_MAX_MS. */
static int64_t wait_ms(const struct transfer *t)
{
	curl_off_t after_s = 0;
	curl_easy_getinfo(t->easy, CURLINFO_RETRY_AFTER, &after_s);
	int64_t ms = after_s > 0 && after_s < WAIT_MAX_MS
			     ? (int64_t)after_s * 1000
			     : (int64_t)BACKOFF_MS << (t->tries < 8 ? t->tries - 1 : 7);
	return ms < WAIT_MAX_MS ? ms : WAIT_MAX_MS;
}

/* Judges a transfer that ended. */
static int end(struct client *c, struct transfer *t, CURLcode code, struct err *e)
{
	struct request *r = t->request;
	struct err wrong = t->wrong;
	if (code == CURLE_OK && !wrong.code)
		answer_end(&r->answer, &wrong);
	struct outcome outcome = { .easy = t->easy,
		.code = code,
		.wrong = &wrong,
		.answer = &r->answer,
		.url = c->setup.shown_url,
		.timeout_ms = c->setup.options.timeout_ms };
	enum verdict verdict = verdict_of(&outcome, e);
	bool again = verdict == VERDICT_AGAIN && t->tries <= c->setup.options.retries;
	t->not_before_us = again ? clock_monotonic_us() + 1000 * wait_ms(t) : 0;
	stop(c, t);
	if (again)
		return 0;
	t->done = true;
	if (verdict == VERDICT_GOOD)
		take_warnings(c, &r->answer);
	r->refused = verdict == VERDICT_REFUSED;
	return verdict == VERDICT_GOOD || (r->refused && r->may_fail) ? 0 : ERR_WORLD;
}

/* Starts what may start. */
static int start_some(struct client *c, struct transfer *all, size_t n, struct err *e)
{
	size_t running = 0;
	int64_t now_us = clock_monotonic_us();
	int rc = 0;
	for (size_t i = 0; i < n; i++)
		running += all[i].running;
	for (size_t i = 0; i < n && running < CONCURRENT && rc == 0; i++) {
		if (all[i].done || all[i].running || all[i].not_before_us > now_us)
			continue;
		rc = begin(c, &all[i], e);
		running++;
	}
	return rc;
}

static int take_ended(struct client *c, struct err *e)
{
	int left = 0, rc = 0;
	const CURLMsg *message;
	while (rc == 0 && (message = curl_multi_info_read(c->multi, &left))) {
		char *private = NULL;
		if (message->msg != CURLMSG_DONE)
			continue;
		CURLcode code = message->data.result;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private);
		rc = end(c, (struct transfer *)(void *)private, code, e);
	}
	return rc;
}

static void tell_progress(struct client *c, const struct transfer *all, size_t n)
{
	size_t n_done = 0;
	int64_t now_us = clock_monotonic_us();
	if (!c->progress || now_us - c->progress_us < 1000 * POLL_MS)
		return;
	for (size_t i = 0; i < n; i++)
		n_done += all[i].done;
	c->progress_us = now_us;
	c->progress(c->progress_context, n_done, n, c->bytes);
}

static bool all_done(const struct transfer *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!all[i].done)
			return false;
	return true;
}

int client_run(struct client *c, struct request *requests, size_t n, struct err *e)
{
	struct transfer *all = calloc(n + 1, sizeof(*all));
	int rc = all ? 0 : err_memory(e), running = 0;
	for (size_t i = 0; i < n && rc == 0; i++) {
		all[i].client = c;
		all[i].request = &requests[i];
	}
	while (rc == 0 && !all_done(all, n)) {
		rc = start_some(c, all, n, e);
		if (rc == 0 && curl_multi_perform(c->multi, &running) != CURLM_OK)
			rc = err_memory(e);
		if (rc == 0)
			rc = take_ended(c, e);
		if (rc == 0 && !all_done(all, n))
			curl_multi_poll(c->multi, NULL, 0, POLL_MS, NULL);
		tell_progress(c, all, n);
	}
	for (size_t i = 0; i < n && all; i++)
		stop(c, &all[i]);
	free(all);
	return rc;
}
