/* Answers with the metrics of the store, in the format that the client prefers. */
#include "serve/metrics.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "export/scrape.h"
#include "export/exposition.h"
#include "serve/world.h"

/* One range of an Accept header, without blanks: "text/plain;version=0.0.4;q=0.5". */
struct range {
	const char *at;
	size_t len;
};

/* The value of a parameter of the range; NULL: it has none. */
static const char *parameter(const struct range *r, const char *name)
{
	size_t len = strlen(name);
	for (size_t i = 0; i + len + 1 < r->len; i++) {
		const char *at = r->at + i;
		if (*at != ';')
			continue;
		while (i + len + 1 < r->len && (at[1] == ' ' || at[1] == '\t')) {
			at++;
			i++;
		}
		if (strncasecmp(at + 1, name, len) == 0 && at[1 + len] == '=')
			return at + len + 2;
	}
	return NULL;
}

static double quality(const struct range *r)
{
	const char *q = parameter(r, "q");
	double value = q ? strtod(q, NULL) : 1;
	return value >= 0 && value <= 1 ? value : 0;
}

static bool is_type(const struct range *r, const char *type)
{
	size_t len = strlen(type);
	return r->len >= len && strncasecmp(r->at, type, len) == 0 &&
	       (r->len == len || strchr("; \t", r->at[len]));
}

/* Version 1.0.0, or no version. */
static bool is_openmetrics(const struct range *r)
{
	const char *version = parameter(r, "version");
	return is_type(r, "application/openmetrics-text") &&
	       (!version || strncmp(version, "1.0.0", 5) == 0);
}

const char *metrics_type(const char *accept)
{
	double open = 0, text = 0;
	for (const char *at = accept ? accept : ""; *at;) {
		at += strspn(at, ", \t");
		struct range r = { at, strcspn(at, ",") };
		double q = quality(&r);
		if (is_openmetrics(&r))
			open = q > open ? q : open;
		else if (is_type(&r, "text/plain"))
			text = q > text ? q : text;
		at += r.len;
	}
	return open > 0 && open >= text ? EXPOSITION_OPENMETRICS_TYPE : EXPOSITION_TEXT_TYPE;
}

void metrics_answer(const struct request *q, struct answer *a)
{
	const struct store_list *stores = q->world->stores;
	struct identity_names names;
	struct scrape s = { 0 };
	struct err e = { 0 };
	bool openmetrics = q->accept && strcmp(q->accept, EXPOSITION_OPENMETRICS_TYPE) == 0;
	int rc = 0;
	if (stores->n != 1)
		rc = err_set(&e, ERR_NOTHING,
			"/metrics is about one store, and this server has %zu: run a gua serve "
			"or gua metrics for each",
			stores->n);
	if (rc == 0)
		rc = identity_names_init(&names, q->world->config, NULL, &e);
	if (rc == 0)
		rc = scrape_read(&s, stores->paths[0], &names, q->now_ms, &e);
	if (rc)
		answer_err(a, q, &e);
	else
		exposition_print(&a->body, &s, openmetrics);
	if (rc == 0 && openmetrics)
		a->type = EXPOSITION_OPENMETRICS_TYPE;
	scrape_finish(&s);
}
