/* Connects libmicrohttpd with the routes. */
#include "serve/server.h"

#include <microhttpd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum { IO_THREADS = 2, MAX_CONNECTIONS = 256, IDLE_S = 15, HEADER_BYTES = 8192 };

struct server {
	struct server_options o;
	struct MHD_Daemon *daemon;
	struct clock clock;
};

/* One request, from its first line to its last byte. */
struct call {
	char target[REQUEST_MAX_BYTES + 1];
	size_t len; /* of the target; longer than it fits: cut */
};

static const struct {
	const char *name, *value;
} fixed_headers[] = {
	{ "Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; "
				     "img-src 'self' data:; "
				     "connect-src 'self'; form-action 'self'; base-uri 'none'; "
				     "frame-ancestors 'none'" },
	{ "X-Content-Type-Options", "nosniff" },
	{ "X-Frame-Options", "DENY" },
	{ "Referrer-Policy", "no-referrer" },
	{ "Cross-Origin-Resource-Policy", "same-origin" },
	{ "Cross-Origin-Opener-Policy", "same-origin" },
	{ "Cache-Control", "no-cache" },
};

/* Makes a response; it owns the body then. */
static struct MHD_Response *make_response(struct answer *a)
{
	char *body = a->body.data;
	struct MHD_Response *r =
		body ? MHD_create_response_from_buffer(a->body.len, body, MHD_RESPMEM_MUST_FREE)
		     : MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
	if (!r) {
		str_finish(&a->body);
		return NULL;
	}
	for (size_t i = 0; i < sizeof(fixed_headers) / sizeof(fixed_headers[0]); i++)
		MHD_add_response_header(r, fixed_headers[i].name, fixed_headers[i].value);
	MHD_add_response_header(r, "Content-Type", a->type);
	if (a->status == 405)
		MHD_add_response_header(r, "Allow", "GET, HEAD");
	if (a->retry_s) {
		char seconds[16];
		snprintf(seconds, sizeof(seconds), "%d", a->retry_s);
		MHD_add_response_header(r, "Retry-After", seconds);
	}
	return r;
}

static enum MHD_Result send_answer(struct MHD_Connection *connection, struct answer *a)
{
	struct MHD_Response *r = make_response(a);
	if (!r)
		return MHD_NO;
	enum MHD_Result result = MHD_queue_response(connection, (unsigned)a->status, r);
	MHD_destroy_response(r);
	return result;
}

static const char *header(struct MHD_Connection *connection, const char *name)
{
	return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static void answer_call(const struct server *s, const struct call *call,
	struct MHD_Connection *connection, const char *method, struct answer *a)
{
	struct request q = { 0 };
	struct err e = { 0 };
	int rc = request_parse(&q, call->target, call->len, &e);
	q.accept = header(connection, "Accept");
	q.media = request_accept(q.accept);
	q.world = s->o.world;
	q.now_ms = s->o.world->now_ms ? s->o.world->now_ms : clock_wall_ms(&s->clock);
	*a = (struct answer){ .status = 200 };
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		answer_fail(a, &q, 405, "Only GET and HEAD are answered.");
	else if (rc)
		answer_err(a, &q, &e);
	else
		route_answer(s->o.routes, &q, a);
	request_finish(&q);
}

static enum MHD_Result on_request(void *server, struct MHD_Connection *connection,
	const char *url, const char *method, const char *version, const char *upload,
	size_t *upload_size, void **context)
{
	struct answer a;
	(void)url;
	(void)version;
	(void)upload;
	(void)upload_size;
	if (!*context)
		return MHD_NO;
	answer_call(server, *context, connection, method, &a);
	return send_answer(connection, &a);
}

/* Keeps the target as it was sent: libmicrohttpd's own parser is not used. */
static void *on_target(void *server, const char *uri, struct MHD_Connection *connection)
{
	struct call *call = malloc(sizeof(*call));
	(void)server;
	(void)connection;
	if (!call)
		return NULL;
	call->len = strlen(uri);
	snprintf(call->target, sizeof(call->target), "%s", uri);
	return call;
}

static void on_end(void *server, struct MHD_Connection *connection, void **context,
	enum MHD_RequestTerminationCode how)
{
	(void)server;
	(void)connection;
	(void)how;
	free(*context);
	*context = NULL;
}

/* Leaves the bytes as they are. */
static size_t no_unescape(void *server, struct MHD_Connection *connection, char *text)
{
	(void)server;
	(void)connection;
	return strlen(text);
}

int server_open(struct server **server, const struct server_options *o, struct err *e)
{
	struct server *s = calloc(1, sizeof(*s));
	*server = s;
	if (!s)
		return err_memory(e);
	s->o = *o;
	clock_init_real(&s->clock);
	s->daemon = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, on_request,
		s, MHD_OPTION_LISTEN_SOCKET, o->fd, MHD_OPTION_THREAD_POOL_SIZE,
		(unsigned)IO_THREADS, MHD_OPTION_CONNECTION_LIMIT, (unsigned)MAX_CONNECTIONS,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES,
		MHD_OPTION_URI_LOG_CALLBACK, on_target, s, MHD_OPTION_UNESCAPE_CALLBACK,
		no_unescape, s, MHD_OPTION_NOTIFY_COMPLETED, on_end, s, MHD_OPTION_END);
	if (!s->daemon)
		return err_set(e, ERR_WORLD, "cannot start the HTTP server");
	return 0;
}

void server_close(struct server *s)
{
	if (s && s->daemon)
		MHD_stop_daemon(s->daemon);
	free(s);
}
