/* The table of all routes. */
#include "serve/health.h"
#include "serve/route.h"

const struct route serve_routes[] = {
	{ .path = "/healthz", .answer = health_answer, .type = TYPE_JSON, .open = true },
	{ .path = "/api/v1/health", .answer = health_answer, .type = TYPE_JSON },
	{ 0 },
};
