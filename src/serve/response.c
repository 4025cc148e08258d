/* Makes HTTP responses: headers and entity tags. */
#include "serve/response.h"

#include <inttypes.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLICY                                                                                 \
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "      \
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

static const struct {
	const char *name, *value;
} fixed_headers[] = {
	{ "Content-Security-Policy", POLICY },
	{ "X-Content-Type-Options", "nosniff" },
	{ "X-Frame-Options", "DENY" },
	{ "Referrer-Policy", "no-referrer" },
	{ "Cross-Origin-Resource-Policy", "same-origin" },
	{ "Cross-Origin-Opener-Policy", "same-origin" },
};

static void add_headers(
	struct MHD_Response *to, const struct response *r, const struct route *route)
{
	for (size_t i = 0; i < sizeof(fixed_headers) / sizeof(fixed_headers[0]); i++)
		MHD_add_response_header(to, fixed_headers[i].name, fixed_headers[i].value);
	/* A proxy must not store a page of one user and show it to another. */
	MHD_add_response_header(to, "Cache-Control",
		route && route->fixed ? "private, max-age=300" : "private, no-cache");
	if (*r->etag)
		MHD_add_response_header(to, "ETag", r->etag);
}

static void add_more(struct MHD_Response *to, const struct answer *a)
{
	char seconds[16];
	MHD_add_response_header(to, "Content-Type", a->type);
	if (a->status == 405)
		MHD_add_response_header(to, "Allow", "GET, HEAD");
	if (a->status == 401) /* makes browsers ask for name and password */
		MHD_add_response_header(to, "WWW-Authenticate", "Basic realm=\"gua\"");
	snprintf(seconds, sizeof(seconds), "%d", a->retry_s);
	if (a->retry_s)
		MHD_add_response_header(to, "Retry-After", seconds);
}

/* The empty response that is sent when out of memory. */
static const struct response none;

struct response *response_new(struct answer *a, const struct route *route)
{
	struct response *r = calloc(1, sizeof(*r));
	char *body = a->body.data;
	if (r)
		r->whole = body ? MHD_create_response_from_buffer(
					  a->body.len, body, MHD_RESPMEM_MUST_FREE)
				: MHD_create_response_from_buffer(
					  0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT);
	if (!r || !r->whole) {
		str_finish(&a->body);
		free(r);
		return (struct response *)(uintptr_t)&none;
	}
	r->status = a->status;
	r->bytes = a->body.len;
	if (a->status == 200) {
		snprintf(r->etag, sizeof(r->etag), "\"%016" PRIx64 "-%zx\"",
			str_sum(str_text(&a->body)), a->body.len);
		r->unchanged = MHD_create_response_from_buffer(
			0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT);
	}
	a->body = (struct str){ 0 };
	add_headers(r->whole, r, route);
	add_more(r->whole, a);
	if (r->unchanged)
		add_headers(r->unchanged, r, route);
	return r;
}

void response_free(struct response *r)
{
	if (!r->whole)
		return;
	MHD_destroy_response(r->whole);
	if (r->unchanged)
		MHD_destroy_response(r->unchanged);
	free(r);
}

/* Whether an If-None-Match header has the tag, or is "*". */
static bool has_tag(const char *header, const char *tag)
{
	return header && (strcmp(header, "*") == 0 || strstr(header, tag));
}

int response_send(const struct response *r, struct MHD_Connection *connection)
{
	const char *known =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "If-None-Match");
	if (!r->whole)
		return 0;
	bool same = r->unchanged && has_tag(known, r->etag);
	int status = same ? 304 : r->status;
	return MHD_queue_response(
		       connection, (unsigned)status, same ? r->unchanged : r->whole) == MHD_YES
		       ? status
		       : 0;
}
