/* An HTTP client of a Prometheus-compatible engine: sends queries, a few at a time, and
 * feeds the answers to their readers as they arrive. Only client.c uses libcurl. It follows
 * no redirect, so that credentials and queries reach only the host that the user named. */
#pragma once

#include "base/options.h"
#include "config/config.h"
#include "fleet/engine_answer.h"

struct client_options {
	struct config_fleet conf;	 /* url: may have a path; no user or password */
	const struct text_list *headers; /* "NAME: VALUE", in addition to those of `conf` */
	const struct text_list *params;	 /* "NAME=VALUE", the same; added to each query */
	int64_t body_max;		 /* bytes of one answer */
};

/* One question. Set `path` and `answer`, and add parameters; zero the rest. */
struct client_request {
	const char *path; /* below /api/v1/ */
	struct str form;
	struct engine_answer answer;
	bool may_fail; /* a refusal is not an error: `refused` is set, and the other requests
			  continue */
	bool refused;
	/* Private: its transfer, which is repeated after temporary faults. */
	struct client *client;
	void *easy;	  /* NULL: it is not running */
	struct err wrong; /* an error in the answer */
	unsigned tries;
	int64_t not_before_us;
	unsigned long long bytes;
	bool done;
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
/* Sets the largest size of an answer, in bytes. */
void client_bound(struct client *c, int64_t body_max);
void client_watch(struct client *c, client_progress *progress, void *context);
/* Sends all requests, and returns when all are answered or one failed. When a request is
 * repeated, its reader is started again (engine_answer_start), so a reader must be able to
 * take the same sample twice. */
int client_run(struct client *c, struct client_request *requests, size_t n, struct err *e);

/* The warnings of the engine, each once, safe for a terminal. */
size_t client_warnings(const struct client *c, const char *const **texts);
/* The number of NaN and infinite values that were left out. */
size_t client_not_finite(const struct client *c);
/* "http://host:9090/prefix", safe for a terminal. */
const char *client_url(const struct client *c);
