/* The table of all routes. */
#include "serve/api.h"
#include "render/exposition.h"
#include "serve/health.h"
#include "serve/metrics.h"
#include "serve/pages.h"
#include "serve/params.h"
#include "serve/route.h"

/* Of a page with a report, and a table of holders that can be sorted. */
#define PAGE_PARAMS REPORT_PARAMS " order print"

const struct route serve_routes[] = {
	{ .path = "/", .answer = page_now, .type = TYPE_HTML, .params = "order print" },
	{ .path = "/audit", .answer = page_audit, .type = TYPE_HTML, .params = PAGE_PARAMS },
	{ .path = "/card/*", .answer = page_card, .type = TYPE_HTML, .params = PAGE_PARAMS },
	{ .path = "/user/*", .answer = page_user, .type = TYPE_HTML, .params = PAGE_PARAMS },
	{ .path = "/notebook/*/*",
		.answer = page_notebook,
		.type = TYPE_HTML,
		.params = PAGE_PARAMS },
	{ .path = "/me", .answer = page_me, .type = TYPE_HTML, .params = PAGE_PARAMS },
	{ .path = "/policy", .answer = page_policy, .type = TYPE_HTML },
	{ .path = "/assets/gua.css", .answer = asset_css, .type = "text/css; charset=utf-8" },
	{ .path = "/assets/gua.js",
		.answer = asset_js,
		.type = "text/javascript; charset=utf-8" },
	{ .path = "/assets/gua.svg", .answer = asset_icon, .type = "image/svg+xml" },
	{ .path = "/healthz", .answer = health_answer, .type = TYPE_JSON, .open = true },
	{ .path = "/api/v1/health", .answer = health_answer, .type = TYPE_JSON },
	{ .path = "/api/v1/report",
		.answer = api_report,
		.type = TYPE_JSON,
		.params = REPORT_PARAMS },
	{ .path = "/api/v1/report.csv",
		.answer = api_report_csv,
		.type = TYPE_CSV,
		.params = REPORT_PARAMS " table" },
	{ .path = "/api/v1/events",
		.answer = api_events,
		.type = TYPE_JSON,
		.params = EVENTS_PARAMS },
	{ .path = "/api/v1/events.csv",
		.answer = api_events_csv,
		.type = TYPE_CSV,
		.params = EVENTS_PARAMS },
	{ .path = "/api/v1/status", .answer = api_status, .type = TYPE_JSON, .params = "host" },
	{ .path = "/api/v1/now", .answer = api_now, .type = TYPE_JSON },
	{ .path = "/api/v1/who", .answer = api_who, .type = TYPE_JSON, .params = WHO_PARAMS },
	{ .path = "/metrics", .answer = metrics_answer, .type = EXPOSITION_TEXT_TYPE },
	{ 0 },
};
