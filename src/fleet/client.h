/* An HTTP client of a Prometheus-compatible engine: sends queries, a few at a time, and feeds
 * the answers to their readers as they arrive. Only here and in client.c: libcurl. It follows
 * no redirect, so that credentials and questions reach only the host that the user named. */
#ifndef GUA_FLEET_CLIENT_H
#define GUA_FLEET_CLIENT_H

#include <stdint.h>

#include "base/options.h"
#include "fleet/engine_answer.h"

struct client_options {
	const char *url;		  /* may have a path; no user or password */
	const char *bearer_file;	  /* a token; NULL: none, like all that follow */
	const char *basic_file;		  /* "USER:PASSWORD" */
	const char *cert_file, *key_file; /* of the client */
	const char *ca_file;		  /* whom to trust instead of the system's */
	const struct text_list *headers;  /* "NAME: VALUE" */
	const char *header, *header_file; /* one more; lines of them */
	const struct text_list *params;	  /* "NAME=VALUE", added to each query */
	const char *param;		  /* one more */
	int64_t timeout_ms;		  /* of one query */
	int64_t retries;		  /* of one query, after faults that may pass */
	int64_t body_max;		  /* bytes of one answer */
};

/* One question. Set `path` and `answer`, and add parameters; zero the rest. */
struct client_request {
	const char *path; /* below /api/v1/ */
	struct str form;
	struct engine_answer answer;
	bool may_fail; /* a refusal is not an error: `refused` is set, and the rest goes on */
	bool refused;
	/* Private. */
	struct transfer *transfer;
};
void client_request_param(struct client_request *r, const char *name, const char *value);
void client_request_number(struct client_request *r, const char *name, double value);
void client_request_finish(struct client_request *r);

struct client;
/* Called as answers arrive, at most a few times a second. */
typedef void client_progress(
	void *context, size_t n_done, size_t n_all, unsigned long long bytes);

int client_open(struct client **c, const struct client_options *o, struct err *e);
void client_close(struct client *c);
/* No answer may be larger, in bytes. */
void client_bound(struct client *c, int64_t body_max);
void client_watch(struct client *c, client_progress *progress, void *context);
/* Sends all requests, and returns when all are answered or one failed. A reader may be started
 * again (engine_answer_start) when its request is repeated: what it does with a sample must not
 * depend on whether it has seen the sample before. */
int client_run(struct client *c, struct client_request *requests, size_t n, struct err *e);

/* The warnings of the engine, each once, safe for a terminal. */
size_t client_warnings(const struct client *c, const char *const **texts);
/* NaN and infinite values that were left out. */
size_t client_not_finite(const struct client *c);
/* "http://host:9090/prefix", safe for a terminal. */
const char *client_url(const struct client *c);

#endif
