/* Connects to the engine of a fleet, and shows progress on a terminal. */
#include "cmd/fleet_engine.h"

#include <stdio.h>
#include <unistd.h>

#include "audit/restriction.h"

/* No answer is larger: 100,000 hosts fit. */
#define BODY_MAX ((int64_t)4 << 30)

static void show_progress(void *context, size_t n_done, size_t n_all, unsigned long long bytes)
{
	(void)context;
	fprintf(stderr, "\r\033[Kasking the engine: %zu of %zu queries answered, %.1f MiB",
		n_done, n_all, (double)bytes / (1 << 20));
	fflush(stderr);
}

void fleet_engine_quiet(void)
{
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
}

int fleet_engine_check(const struct audit_question *q, struct err *e)
{
	bool of_cards = by_has(&q->by, IDENTITY_CARD) || by_has(&q->by, IDENTITY_MODEL);
	bool of_users = by_has(&q->by, IDENTITY_USER) || by_has(&q->by, IDENTITY_GROUP);
	bool others = q->want_processes;
	for (size_t i = 0; i < q->by.n; i++)
		others |= identity_kinds[q->by.kinds[i]].column &&
			  q->by.kinds[i] != IDENTITY_USER;
	if (q->only.lists[ONLY_NOTEBOOK].n)
		return err_set(e, ERR_USAGE,
			"the metrics of a fleet have no notebooks: --notebook needs the store "
			"of a host");
	if (q->present_of)
		return err_set(e, ERR_USAGE,
			"the metrics of a fleet do not say what a user holds now: --digest "
			"with --user needs the store of a host");
	if (others)
		return err_set(e, ERR_USAGE,
			"the metrics of a fleet have no processes: with --from, --by takes "
			"user, group, host, card and model; a host's own store has the rest");
	if (of_cards && of_users)
		return err_set(e, ERR_USAGE,
			"the metrics of a fleet say who used a host, not on which card: with "
			"--from, --by does not combine users or groups with cards or models");
	return 0;
}

int fleet_engine_connect(struct fleet *f, const struct fleet_values *v,
	const struct config_fleet *c, struct err *e)
{
	const char *url = v->from && *v->from ? v->from : c->url;
	if (!url || !*url)
		return err_set(e, ERR_USAGE,
			"no engine is known: give --from http://HOST:9090, or url in [fleet] "
			"of "
			"gua.conf");
	const struct fleet_options o = { .client = { .url = url,
						 .bearer_file = c->bearer_file,
						 .basic_file = c->basic_file,
						 .cert_file = c->cert_file,
						 .key_file = c->key_file,
						 .ca_file = c->ca_file,
						 .headers = &v->headers,
						 .header = c->header,
						 .header_file = c->header_file,
						 .params = &v->params,
						 .param = c->param,
						 .timeout_ms = c->timeout_ms,
						 .retries = c->retries,
						 .body_max = BODY_MAX },
		.match = c->match,
		.host_label = c->host_label };
	int rc = fleet_open(f, &o, e);
	if (rc == 0 && isatty(STDERR_FILENO))
		client_watch(f->client, show_progress, NULL);
	return rc;
}
