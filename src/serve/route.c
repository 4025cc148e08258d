/* The table of all routes; finds the route of a request and calls its handler. */
#include "serve/route.h"

#include "export/exposition.h"
#include "openapi.h"
#include "serve/api.h"
#include "serve/page.h"
#include "web_js.h"
#include "web_svg.h"

static bool matches(const char *pattern, const struct request *q)
{
	size_t i = 0;
	for (const char *at = pattern + 1; *at; i++) {
		size_t len = strcspn(at, "/");
		if (i == q->n_parts)
			return false;
		bool any = len == 1 && *at == '*' && *q->parts[i];
		if (!any && (strlen(q->parts[i]) != len || strncmp(q->parts[i], at, len) != 0))
			return false;
		at += len + (at[len] == '/');
	}
	return i == q->n_parts;
}

const struct route *route_find(const struct route *table, const struct request *q)
{
	for (const struct route *r = table; r->path; r++)
		if (matches(r->path, q))
			return r;
	return NULL;
}

/* Whether a list of names, separated by blanks, contains the name. */
static bool has_name(const char *names, const char *name)
{
	size_t len = strlen(name);
	for (const char *at = names ? names : ""; *at; at += strspn(at, " ")) {
		size_t word = strcspn(at, " ");
		if (word == len && strncmp(at, name, len) == 0)
			return true;
		at += word;
	}
	return false;
}

int route_check(const struct route *r, const struct request *q, struct err *e)
{
	for (size_t i = 0; i < q->n_params; i++) {
		if (has_name(r->params, q->params[i].name))
			continue;
		if (!r->params)
			return err_set(e, ERR_USAGE,
				"there is no parameter '%s': %s takes none", q->params[i].name,
				r->path);
		return err_set(e, ERR_USAGE, "there is no parameter '%s': %s takes %s",
			q->params[i].name, r->path, r->params);
	}
	return 0;
}

void route_answer(const struct route *r, const struct request *q, struct answer *a)
{
	struct err e = { 0 };
	*a = (struct answer){ .status = 200, .type = r->type, .body = { .limit = q->limit } };
	if (route_check(r, q, &e) != 0) {
		answer_err(a, q, &e);
		return;
	}
	if (r->text)
		str_add(&a->body, r->text);
	else
		r->answer(q, a);
	if (!a->body.failed)
		return;
	/* A body of more than half the limit failed by the limit, not for lack of memory. */
	if (q->limit && a->body.len > q->limit->bytes / 2) {
		answer_fail(a, q, 400,
			"The answer is too large; ask for a shorter window, or for fewer rows "
			"(top).");
	} else {
		answer_fail(a, q, 503, ERR_MEMORY_TEXT);
		a->retry_s = 5;
	}
}

/* Parameters of a page with a report and a sortable table of holders. */
#define PAGE_PARAMS REPORT_PARAMS " order print"
/* Parameters of a page about one user, card or notebook, without those that select another
 * one. */
#define OWN_PARAMS WINDOW_PARAMS " by group host model sort compare top longest order print"

/* How long a report may be reused if the store has not changed: only the end of its window
 * moves. */
enum { REPORT_MS = 5000 };

const struct route route_table[] = {
	{ "/", page_now, TYPE_HTML, "order print", .first = true },
	{ "/audit", page_audit, TYPE_HTML, PAGE_PARAMS, .cache_ms = REPORT_MS },
	{ "/card/*", page_audit_card, TYPE_HTML, OWN_PARAMS " user notebook",
		.cache_ms = REPORT_MS },
	{ "/user/*", page_audit_user, TYPE_HTML, OWN_PARAMS " card notebook",
		.cache_ms = REPORT_MS },
	{ "/notebook/*/*", page_audit_notebook, TYPE_HTML, OWN_PARAMS " card",
		.cache_ms = REPORT_MS },
	{ "/me", page_audit_me, TYPE_HTML, OWN_PARAMS " card notebook", .cache_ms = REPORT_MS,
		.personal = true },
	{ "/policy", page_policy, TYPE_HTML, .params = "print" },
	{ "/assets/gua.css", page_css, "text/css; charset=utf-8", .first = true,
		.fixed = true },
	{ "/assets/gua.js", .type = "text/javascript; charset=utf-8", .first = true,
		.fixed = true, .text = web_js },
	{ "/assets/gua.svg", .type = "image/svg+xml", .first = true, .fixed = true,
		.text = web_svg },
	{ "/healthz", api_health, TYPE_JSON, .open = true, .first = true },
	{ "/api/v1/health", api_health, TYPE_JSON, .first = true },
	{ "/api/v1/report", api_report, TYPE_JSON, REPORT_PARAMS, .cache_ms = REPORT_MS },
	{ "/api/v1/report.csv", api_report, TYPE_CSV, REPORT_PARAMS " table",
		.cache_ms = REPORT_MS },
	{ "/api/v1/events", api_events, TYPE_JSON, .params = EVENTS_PARAMS },
	{ "/api/v1/events.csv", api_events, TYPE_CSV, .params = EVENTS_PARAMS },
	{ "/api/v1/policy", api_policy, TYPE_JSON, .params = WINDOW_PARAMS },
	{ "/api/v1/policy.csv", api_policy, TYPE_CSV, .params = WINDOW_PARAMS },
	{ "/api/v1/status", api_status, TYPE_JSON, "host", .quick = true },
	{ "/api/v1/now", api_now, TYPE_JSON, .first = true },
	{ "/api/v1/who", api_who, TYPE_JSON, WHO_PARAMS, .quick = true },
	{ "/api/v1/who.csv", api_who, TYPE_CSV, WHO_PARAMS, .quick = true },
	{ "/api/v1/openapi.json", .type = TYPE_JSON, .first = true, .fixed = true,
		.text = openapi },
	{ "/metrics", api_metrics, EXPOSITION_TEXT_TYPE, .cache_ms = 5000, .first = true,
		.negotiate = api_metrics_type },
	{ 0 },
};
