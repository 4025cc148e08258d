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
#include "serve/asker.h"
#include "serve/connections.h"
#include "serve/pool.h"
#include "serve/response.h"

enum { IO_THREADS = 2, HEADER_BYTES = 8192 };
/* Extra connections for those that are just being closed. */
enum { CLOSING = 64 };
/* Memory for all answers, and the kernel's send buffer of one connection, in bytes. */
enum { ANSWERS_BYTES = 4 << 20, SOCKET_BYTES = 64 * 1024 };
enum { STACK_BYTES = 256 * 1024 };
/* How long a connection without a request may stay open. */
enum { IDLE_S = 15 };

struct server {
	struct server_options o;
	struct MHD_Daemon *daemon;
	struct connections *connections;
	struct pool *pool;
	struct asker *asker; /* the pool's context */
	struct access_log log;
	pthread_rwlock_t secrets_lock; /* of o.gate.secrets */
};

/* One connection. */
struct line {
	struct connection connection;
	struct peer peer;
	struct call *call; /* its request; NULL: none */
};

/* One request, from its first line to its last byte. */
struct call {
	struct pool_job *job; /* the job that answers it; NULL: none yet */
	bool begun;	      /* its headers have come */
	struct access_line line;
	uint64_t client; /* the client whose limits apply */
	size_t len;	 /* of the target as it was sent */
	char target[];	 /* truncated if it is too long to be answered */
};

static const char *header(struct MHD_Connection *connection, const char *name)
{
	return name ? MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name) : NULL;
}

/* The headers with one name. */
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

/* The header of this name if it was sent exactly once: when a proxy adds its own header to
 * one that the client sent, neither can be trusted. */
static const char *only_header(struct MHD_Connection *connection, const char *name)
{
	struct named h = { .name = name };
	if (name)
		MHD_get_connection_values(connection, MHD_HEADER_KIND, count_header, &h);
	return h.n == 1 ? h.value : NULL;
}

static struct line *line_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	return info ? info->socket_context : NULL;
}

static enum gate_verdict check(
	struct server *s, struct MHD_Connection *connection, struct call *call, bool open)
{
	const struct peer *peer = &line_of(connection)->peer;
	const struct gate_client client = { .peer = peer,
		.host = header(connection, "Host"),
		.authorization = header(connection, "Authorization"),
		.user = only_header(connection, s->o.gate.user_header),
		.open = open };
	pthread_rwlock_rdlock(&s->secrets_lock);
	enum gate_verdict verdict = gate_check(&s->o.gate, &client, call->line.user);
	pthread_rwlock_unlock(&s->secrets_lock);
	str_copy(call->line.address, sizeof(call->line.address), peer->address);
	call->client =
		peer_client(peer, gate_is_proxy(&s->o.gate, peer) ? call->line.user : "");
	return verdict;
}

static enum MHD_Result send_response(struct server *s, const struct response *r,
	struct call *call, struct MHD_Connection *connection)
{
	struct connection *one = &line_of(connection)->connection;
	call->line.status = response_send(r, connection);
	call->line.bytes = r->bytes;
	connections_set(s->connections, one, CONNECTION_READING, s->o.response_ms, r->bytes);
	size_t bytes = pool_bytes(s->pool);
	if (bytes > ANSWERS_BYTES)
		connections_give_back(s->connections, one, bytes - ANSWERS_BYTES);
	return call->line.status ? MHD_YES : MHD_NO;
}

/* Why a request is refused. */
struct refusal {
	int status;
	const char *sentence;
};

/* Answers at once with an error. */
static enum MHD_Result refuse(struct server *s, struct MHD_Connection *connection,
	struct call *call, const struct request *q, const struct refusal *why)
{
	struct answer a = { .retry_s = why->status == 503 || why->status == 429 ? 1 : 0 };
	answer_fail(&a, q, why->status, why->sentence);
	struct response *r = response_new(&a, NULL);
	enum MHD_Result result = send_response(s, r, call, connection);
	response_free(r);
	return result;
}

static enum MHD_Result wait_or_send(struct server *s, struct MHD_Connection *connection,
	struct call *call, const struct request *q, const struct question *question)
{
	struct pool_question asked = asker_pool_question(question, call->client);
	switch (pool_ask(s->pool, &asked, connection, &call->job)) {
	case POOL_WAIT:
		return MHD_YES;
	case POOL_READY:
		return send_response(s, call->job->result, call, connection);
	case POOL_GREEDY:
		return refuse(s, connection, call, q,
			&(struct refusal){ 429, "Too many requests at a time; wait for the "
						"answers to your other requests." });
	default:
		return refuse(s, connection, call, q,
			&(struct refusal){ 503, "The server is busy with other requests; try "
						"again in a moment." });
	}
}

/* Refuses an unknown parameter at once, because it would make many different questions of
 * one. */
static enum MHD_Result refuse_param(struct server *s, struct MHD_Connection *connection,
	struct call *call, const struct request *q, const struct err *e)
{
	char sentence[ERR_TEXT_CAP];
	answer_sentence(sentence, e);
	return refuse(s, connection, call, q, &(struct refusal){ 400, sentence });
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
		result = refuse(s, connection, call, &q,
			&(struct refusal){ 421,
				"This name is not a name of the server; the administrator "
				"can allow it with --host-names." });
	else if (verdict == GATE_NO_SECRET)
		result = refuse(s, connection, call, &q,
			&(struct refusal){ 401,
				"This server requires a token, or a name and a password." });
	else if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		result = refuse(s, connection, call, &q,
			&(struct refusal){ 405, "Only GET and HEAD are answered." });
	else if (rc)
		result = refuse(s, connection, call, &q, &(struct refusal){ 400, e.text });
	else if (!route)
		result = refuse(s, connection, call, &q, &(struct refusal){ 404, ROUTE_NONE });
	else if (route_check(route, &q, &e) != 0)
		result = refuse_param(s, connection, call, &q, &e);
	else if (!asker_question(&question, route, call->target, &q, call->line.user))
		result = refuse(s, connection, call, &q,
			&(struct refusal){ 400, "The request is too long." });
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
	if (!call || !line_of(connection))
		return MHD_NO;
	if (call->job) /* the pool has answered it */
		return send_response(s, call->job->result, call, connection);
	/* Answering before the whole request has come closes the connection. This is right
	 * only for a request with a body, which nobody reads. */
	if (!call->begun && !has_body(connection, method)) {
		call->begun = true;
		return MHD_YES;
	}
	connections_set(s->connections, &line_of(connection)->connection, CONNECTION_WAITING,
		s->o.response_ms, 0);
	str_copy(call->line.method, sizeof(call->line.method), method);
	return begin_call(s, connection, call, method);
}

/* Keeps the target as it was sent: libmicrohttpd's parser is not used. */
static void *on_target(void *server, const char *uri, struct MHD_Connection *connection)
{
	size_t len = strlen(uri), room = len < REQUEST_MAX_BYTES ? len : REQUEST_MAX_BYTES;
	struct call *call = calloc(1, sizeof(*call) + room + 1);
	struct line *line = line_of(connection);
	(void)server;
	if (!call || !line) {
		free(call);
		return NULL;
	}
	line->call = call;
	call->line = (struct access_line){ .began_us = clock_monotonic_us() };
	call->len = len;
	str_copy(call->target, room + 1, uri);
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
	line_of(connection)->call = NULL;
	connections_set(s->connections, &line_of(connection)->connection, CONNECTION_QUIET,
		IDLE_S * 1000, 0);
	if (s->o.access_log && call->line.status)
		access_log_add(&s->log, &call->line, call->target);
	pool_release(s->pool, call->job);
	free(call);
}

/* NULL: out of memory; no request of the connection is answered. */
static struct line *begin_line(struct server *s, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct line *line = info ? calloc(1, sizeof(*line)) : NULL;
	if (!line)
		return NULL;
	line->connection.fd = info->connect_fd;
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	peer_find(&line->peer, line->connection.fd, info ? info->client_addr : NULL);
	line->connection.client = peer_client(&line->peer, "");
	line->connection.unlimited = gate_is_proxy(&s->o.gate, &line->peer);
	connections_add(s->connections, &line->connection, s->o.request_ms);
	return line;
}

/* Watches the connection while it is open. */
static void on_connection(void *server, struct MHD_Connection *connection, void **context,
	enum MHD_ConnectionNotificationCode what)
{
	struct server *s = server;
	struct line *line = *context;
	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		*context = begin_line(s, connection);
	} else if (line) {
		connections_remove(s->connections, &line->connection);
		/* libmicrohttpd has not ended a request whose parameters it has no room for. */
		free(line->call);
		free(line);
		*context = NULL;
	}
}

/* Disables the unescaping of libmicrohttpd. */
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
	/* We enforce the limits ourselves, so libmicrohttpd must accept every connection.
	 * Each of its threads has an equal part of its own limit. */
	unsigned limit = IO_THREADS * ((unsigned)o->max_connections + CLOSING);
	int bytes = SOCKET_BYTES;
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
	setsockopt(o->fd, SOL_SOCKET, SO_SNDBUF, &bytes,
		sizeof(bytes)); /* connections inherit it */
	s->daemon = MHD_start_daemon(flags, 0, NULL, NULL, on_request, s, MHD_OPTION_ARRAY,
		o->tls_cert ? tls : &tls[3], MHD_OPTION_LISTEN_SOCKET, o->fd,
		MHD_OPTION_THREAD_POOL_SIZE, (unsigned)IO_THREADS, MHD_OPTION_THREAD_STACK_SIZE,
		(size_t)STACK_BYTES, MHD_OPTION_CONNECTION_LIMIT, limit,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES,
		MHD_OPTION_URI_LOG_CALLBACK, on_target, s, MHD_OPTION_UNESCAPE_CALLBACK,
		no_unescape, s, MHD_OPTION_NOTIFY_COMPLETED, on_end, s,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_END);
	if (s->daemon)
		return 0;
	return err_set(e, ERR_WORLD,
		o->tls_cert
			? "cannot start the HTTP server; check that certificate and key match"
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
	int rc = s->asker ? connections_open(&s->connections, (size_t)o->max_connections,
				    (size_t)o->max_per_address, e)
			  : err_memory(e);
	struct pool_ops ops = asker_ops(s->asker);
	ops.sleep = sleep_call;
	ops.wake = wake_call;
	if (rc == 0)
		rc = pool_open(&s->pool, &ops, e);
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
	/* No connection may be suspended when the daemon stops. */
	if (s->pool)
		pool_stop(s->pool);
	if (s->daemon)
		MHD_stop_daemon(s->daemon);
	pool_close(s->pool);
	connections_close(s->connections);
	access_log_finish(&s->log);
	asker_free(s->asker);
	secrets_free((struct secrets *)(uintptr_t)s->o.gate.secrets);
	pthread_rwlock_destroy(&s->secrets_lock);
	free(s);
}
