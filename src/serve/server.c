/* Connects libmicrohttpd with the routes. */
#include "serve/server.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "serve/access.h"
#include "serve/ask.h"
#include "serve/deadlines.h"
#include "serve/pool.h"
#include "serve/response.h"

enum { IO_THREADS = 2, WORKERS = 3, HEADER_BYTES = 8192 };
enum { STACK_BYTES = 256 * 1024 };
/* How long a connection without a request may stay open. */
enum { IDLE_S = 15 };

struct server {
	struct server_options o;
	struct MHD_Daemon *daemon;
	struct deadlines *deadlines;
	struct pool *pool;
	struct asker *asker; /* the pool's context */
	struct access_log log;
	pthread_rwlock_t secrets_lock; /* of o.gate.secrets */
};

/* One request, from its first line to its last byte. */
struct call {
	struct pool_job *job; /* that answers it; NULL: none yet */
	bool begun;	      /* its headers have come */
	struct access_line line;
	size_t len; /* of the target; what does not fit was cut */
	char target[REQUEST_MAX_BYTES + 1];
};

static const char *header(struct MHD_Connection *connection, const char *name)
{
	return name ? MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name) : NULL;
}

/* Headers of one name. */
struct named {
	const char *name, *value;
	size_t n;
};

static enum MHD_Result count_header(
	void *named, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct named *h = named;
	(void)kind;
	if (strcasecmp(name, h->name) == 0) {
		h->value = value;
		h->n++;
	}
	return MHD_YES;
}

/* The header of this name if there is one alone: a proxy that adds its own to the one that a
 * client has sent does not say who asks. */
static const char *only_header(struct MHD_Connection *connection, const char *name)
{
	struct named h = { .name = name };
	if (name)
		MHD_get_connection_values(connection, MHD_HEADER_KIND, count_header, &h);
	return h.n == 1 ? h.value : NULL;
}

static const struct sockaddr *address_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	return info ? info->client_addr : NULL;
}

static struct deadline *deadline_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	return info ? info->socket_context : NULL;
}

static enum gate_verdict check(
	struct server *s, struct MHD_Connection *connection, struct call *call, bool open)
{
	const struct gate_client client = { .address = address_of(connection),
		.host = header(connection, "Host"),
		.authorization = header(connection, "Authorization"),
		.user = only_header(connection, s->o.gate.user_header),
		.open = open };
	pthread_rwlock_rdlock(&s->secrets_lock);
	enum gate_verdict verdict = gate_check(&s->o.gate, &client, call->line.user);
	pthread_rwlock_unlock(&s->secrets_lock);
	gate_address(call->line.address, sizeof(call->line.address), client.address);
	return verdict;
}

static enum MHD_Result send_response(
	const struct response *r, struct call *call, struct MHD_Connection *connection)
{
	call->line.status = response_send(r, connection);
	call->line.bytes = r->bytes;
	return call->line.status ? MHD_YES : MHD_NO;
}

/* Answers at once with an error. */
static enum MHD_Result refuse(struct MHD_Connection *connection, struct call *call,
	const struct request *q, int status, const char *sentence)
{
	struct answer a = { .retry_s = status == 503 ? 1 : 0 };
	answer_fail(&a, q, status, sentence);
	struct response *r = response_new(&a, NULL);
	enum MHD_Result result = send_response(r, call, connection);
	response_free(r);
	return result;
}

static enum MHD_Result wait_or_send(struct server *s, struct MHD_Connection *connection,
	struct call *call, const struct request *q, const struct question *question)
{
	struct pool_question asked = question_asked(question);
	switch (pool_ask(s->pool, &asked, connection, &call->job)) {
	case POOL_WAIT:
		return MHD_YES;
	case POOL_READY:
		return send_response(call->job->result, call, connection);
	default:
		return refuse(connection, call, q, 503,
			"The server is busy with other requests; try again in a moment.");
	}
}

/* Checks a request whose headers are complete, and answers it or asks the pool to. */
static enum MHD_Result begin_call(struct server *s, struct MHD_Connection *connection,
	struct call *call, const char *method)
{
	struct request q = { 0 };
	struct err e = { 0 };
	struct question question;
	int rc = request_parse(&q, call->target, call->len, &e);
	q.accept = header(connection, "Accept");
	q.media = request_accept(q.accept);
	const struct route *route = rc ? NULL : route_find(s->o.routes, &q);
	enum gate_verdict verdict = check(s, connection, call, route && route->open);
	enum MHD_Result result;
	if (verdict == GATE_WRONG_HOST)
		result = refuse(connection, call, &q, 421,
			"This name is not a name of the server; the administrator can allow it "
			"with --host-names.");
	else if (verdict == GATE_NO_SECRET)
		result = refuse(connection, call, &q, 401,
			"This server answers only those who have a token or a password.");
	else if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		result = refuse(connection, call, &q, 405, "Only GET and HEAD are answered.");
	else if (rc)
		result = refuse(connection, call, &q, 400, e.text);
	else if (!route)
		result = refuse(connection, call, &q, 404, ROUTE_NONE);
	else if (!question_init(&question, route, call->target, &q, call->line.user))
		result = refuse(connection, call, &q, 400, "The request is too long.");
	else
		result = wait_or_send(s, connection, call, &q, &question);
	request_finish(&q);
	return result;
}

static bool has_body(struct MHD_Connection *connection, const char *method)
{
	const char *length = header(connection, "Content-Length");
	return (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) ||
	       header(connection, "Transfer-Encoding") || (length && strcmp(length, "0") != 0);
}

static enum MHD_Result on_request(void *server, struct MHD_Connection *connection,
	const char *url, const char *method, const char *version, const char *upload,
	size_t *upload_size, void **context)
{
	struct server *s = server;
	struct call *call = *context;
	(void)url;
	(void)version;
	(void)upload;
	(void)upload_size;
	if (!call)
		return MHD_NO;
	if (call->job) /* the pool has answered it */
		return send_response(call->job->result, call, connection);
	/* An answer before the request has come whole closes the connection: right for a
	 * request with a body, which nobody will read. */
	if (!call->begun && !has_body(connection, method)) {
		call->begun = true;
		return MHD_YES;
	}
	deadline_set(deadline_of(connection), s->o.response_ms);
	text_copy(call->line.method, sizeof(call->line.method), method);
	return begin_call(s, connection, call, method);
}

/* Keeps the target as it was sent: libmicrohttpd's own parser is not used. */
static void *on_target(void *server, const char *uri, struct MHD_Connection *connection)
{
	struct call *call = malloc(sizeof(*call));
	(void)server;
	(void)connection;
	if (!call)
		return NULL;
	call->job = NULL;
	call->begun = false;
	call->line = (struct access_line){ .began_us = clock_monotonic_us() };
	call->len = strlen(uri);
	text_copy(call->target, sizeof(call->target), uri);
	return call;
}

static void on_end(void *server, struct MHD_Connection *connection, void **context,
	enum MHD_RequestTerminationCode how)
{
	struct server *s = server;
	struct call *call = *context;
	(void)how;
	*context = NULL;
	if (!call)
		return;
	deadline_set(deadline_of(connection), IDLE_S * 1000);
	if (s->o.access_log && call->line.status)
		access_log_add(&s->log, &call->line, call->target);
	pool_release(s->pool, call->job);
	free(call);
}

/* Watches the connection while it is open. */
static void on_connection(void *server, struct MHD_Connection *connection, void **context,
	enum MHD_ConnectionNotificationCode what)
{
	struct server *s = server;
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	if (what == MHD_CONNECTION_NOTIFY_STARTED && info) {
		*context = deadline_begin(s->deadlines, info->connect_fd, s->o.request_ms);
	} else if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		deadline_end(s->deadlines, *context);
		*context = NULL;
	}
}

/* Leaves the bytes as they are. */
static size_t no_unescape(void *server, struct MHD_Connection *connection, char *text)
{
	(void)server;
	(void)connection;
	return strlen(text);
}

static void sleep_call(void *connection)
{
	MHD_suspend_connection(connection);
}

static void wake_call(void *connection)
{
	MHD_resume_connection(connection);
}

static int start_daemon(struct server *s, struct err *e)
{
	const struct server_options *o = &s->o;
	unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME;
	const struct MHD_OptionItem tls[] = {
		{ MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)o->tls_cert },
		{ MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)o->tls_key },
		{ MHD_OPTION_HTTPS_PRIORITIES, 0,
			(void *)(uintptr_t) "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2" },
		{ MHD_OPTION_END, 0, NULL },
	};
	if (o->tls_cert && MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
		return err_set(e, ERR_WORLD, "this libmicrohttpd was built without TLS");
	if (o->tls_cert)
		flags |= MHD_USE_TLS;
	s->daemon = MHD_start_daemon(flags, 0, NULL, NULL, on_request, s, MHD_OPTION_ARRAY,
		o->tls_cert ? tls : &tls[3], MHD_OPTION_LISTEN_SOCKET, o->fd,
		MHD_OPTION_THREAD_POOL_SIZE, (unsigned)IO_THREADS, MHD_OPTION_THREAD_STACK_SIZE,
		(size_t)STACK_BYTES, MHD_OPTION_CONNECTION_LIMIT, (unsigned)o->max_connections,
		MHD_OPTION_PER_IP_CONNECTION_LIMIT, (unsigned)o->max_per_address,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES,
		MHD_OPTION_URI_LOG_CALLBACK, on_target, s, MHD_OPTION_UNESCAPE_CALLBACK,
		no_unescape, s, MHD_OPTION_NOTIFY_COMPLETED, on_end, s,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_END);
	if (s->daemon)
		return 0;
	return err_set(e, ERR_WORLD,
		o->tls_cert
			? "cannot start the HTTP server; do certificate and key fit together?"
			: "cannot start the HTTP server");
}

int server_open(struct server **server, const struct server_options *o, struct err *e)
{
	struct server *s = calloc(1, sizeof(*s));
	*server = s;
	if (!s)
		return err_memory(e);
	s->o = *o;
	pthread_rwlock_init(&s->secrets_lock, NULL);
	access_log_init(&s->log);
	s->asker = asker_new(o->world);
	int rc = s->asker ? deadlines_open(&s->deadlines, e) : err_memory(e);
	struct pool_ops ops = asker_ops(s->asker);
	ops.sleep = sleep_call;
	ops.wake = wake_call;
	if (rc == 0)
		rc = pool_open(&s->pool, &ops, WORKERS, e);
	if (rc == 0) {
		asker_stop_with(s->asker, pool_stopping(s->pool));
		rc = start_daemon(s, e);
	}
	return rc;
}

void server_replace_secrets(struct server *s, struct secrets *secrets)
{
	pthread_rwlock_wrlock(&s->secrets_lock);
	const struct secrets *old = s->o.gate.secrets;
	s->o.gate.secrets = secrets;
	pthread_rwlock_unlock(&s->secrets_lock);
	secrets_free((struct secrets *)(uintptr_t)old);
}

void server_close(struct server *s)
{
	if (!s)
		return;
	/* No connection may be asleep when the daemon stops. */
	if (s->pool)
		pool_stop(s->pool);
	if (s->daemon)
		MHD_stop_daemon(s->daemon);
	pool_close(s->pool);
	deadlines_close(s->deadlines);
	access_log_finish(&s->log);
	asker_free(s->asker);
	secrets_free((struct secrets *)(uintptr_t)s->o.gate.secrets);
	pthread_rwlock_destroy(&s->secrets_lock);
	free(s);
}
