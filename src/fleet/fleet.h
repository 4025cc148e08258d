/* A fleet: the hosts whose metrics a Prometheus-compatible engine stores. Builds the queries
 * for its families of metrics, and sends them in batches. The formulas are in gua-fleet(7). */
#pragma once

#include "fleet/client.h"

/* The families of metrics that are read. */
#define FAMILY_CARD "gua_gpu_state_seconds_total"
#define FAMILY_ENERGY "gua_gpu_energy_joules_total"
#define FAMILY_IDENTITY "gua_identity_gpu_seconds_total"
#define FAMILY_SQUATTING "gua_identity_squatting_seconds_total"
#define FAMILY_INFO "gua_gpu_info"
#define FAMILY_TIME "gua_sample_timestamp_seconds"
#define FAMILY_BUILD "gua_build_info"
#define FAMILY_GPUS "gua_gpus"
/* What a recording rule computes from the first family: the sum over the cards of a host. */
#define FAMILY_HOST_SUM "instance_state:gua_gpu_state_seconds:sum"

enum { FLEET_LABELS = 4, HOST_KEY_CAP = 512 };

struct fleet {
	struct client *client;
	char *matchers; /* without braces */
	char *narrow;	/* matchers of the hosts that were asked for, each with a comma */
	char *labels[FLEET_LABELS];
	size_t n_labels;
	char by[256];	  /* the labels with commas */
	char engine[192]; /* "Prometheus 2.42.0"; "": not known yet */
	int64_t timeout_ms;
};

int fleet_open(struct fleet *f, const struct client_options *o, struct err *e);
void fleet_close(struct fleet *f);

/* Asks which engine it is, and its version. */
int fleet_probe(struct fleet *f, struct err *e);

/* Restricts all queries to these hosts, as far as labels can: series that have one of the
 * labels, NULL after the last, have it with one of these names. Without labels: with those of
 * the fleet, with or without a port. No hosts: to none. */
int fleet_narrow(struct fleet *f, const char *const *labels, const struct text_list *hosts,
	struct err *e);
/* The name of a host: the values of its labels, separated by slashes, safe for a terminal.
 * ERR_WORLD: the series has none of the labels. */
int fleet_host(
	const struct fleet *f, const struct labels *l, char key[HOST_KEY_CAP], struct err *e);
/* ERR_WORLD: there are too many hosts. An endless answer must not fill memory. */
int fleet_bound(const struct fleet *f, size_t n_hosts, struct err *e);

/* Adds a value to a matcher of one label; the caller begins with an empty one, and closes it
 * with a quotation mark. False: the query would become too long. */
bool fleet_match_more(struct str *out, const char *label, const char *value);

/* Requests that are sent together, and the texts of which queries are made. */
struct batch {
	struct fleet *fleet;
	struct client_request *items;
	size_t n;
	struct arena texts; /* it fails when memory runs out, and fleet_run() says so */
};
/* The text "family{matchers,extra}". */
const char *fleet_select(struct batch *b, const char *family, const char *extra);
/* A text that is finished, and kept. */
const char *fleet_keep(struct batch *b, struct str *text);
/* A text as a string of PromQL. */
const char *fleet_quote(struct batch *b, const char *text);
/* A matcher for hosts, `instance=~"a|b"`: as many of the `n` keys from `*at` < n on as fit into
 * a query; moves *at after them. */
const char *fleet_match_hosts(struct batch *b, const char *const *keys, size_t n, size_t *at);
/* Adds an instant query; fleet_query_hours(): one for each hour from one moment to another. */
void fleet_query(struct batch *b, const char *query, double time_s, engine_answer_take *take,
	void *context);
struct fleet_span {
	double first_s, last_s;
};
void fleet_query_hours(struct batch *b, const char *query, struct fleet_span span,
	engine_answer_take *take, void *context);
/* Frees the texts of which the queries until now were made: for a batch of many. */
void fleet_free_texts(struct batch *b);
/* Sends all, and empties the batch. */
int fleet_run(struct batch *b, struct err *e);
void fleet_finish_batch(struct batch *b);
