/* Connects libmicrohttpd with the routes: responses, the access log, questions for the pool and
 * their answers, connections. */
#include "serve/server.h"

#include <malloc.h>
#include <microhttpd.h>
#include <pthread.h>

#include "serve/connections.h"
#include "serve/pool.h"
#include "store/foreign.h"

/* Answers in the form that libmicrohttpd sends, with the headers that all of them have. */

/* A response that can be sent many times. */
struct response {
	struct MHD_Response *whole, *unchanged; /* unchanged: the 304 response, or NULL */
	int status;
	size_t bytes; /* of the body */
	char etag[40];
};

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

/* The empty response that is sent when out of memory. */
static const struct response none;

/* Makes a response from an answer, whose body it takes over. When out of memory, it returns
 * one that closes the connection. */
static struct response *response_new(struct answer *a, const struct route *route)
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
	char seconds[16];
	MHD_add_response_header(r->whole, "Content-Type", a->type);
	if (a->status == 405)
		MHD_add_response_header(r->whole, "Allow", "GET, HEAD");
	if (a->status == 401) /* makes browsers ask for name and password */
		MHD_add_response_header(r->whole, "WWW-Authenticate", "Basic realm=\"gua\"");
	snprintf(seconds, sizeof(seconds), "%d", a->retry_s);
	if (a->retry_s)
		MHD_add_response_header(r->whole, "Retry-After", seconds);
	if (r->unchanged)
		add_headers(r->unchanged, r, route);
	return r;
}

static void response_free(struct response *r)
{
	if (!r->whole)
		return;
	MHD_destroy_response(r->whole);
	if (r->unchanged)
		MHD_destroy_response(r->unchanged);
	free(r);
}

/* Queues it; returns the status that is sent, or 0 on failure. */
static int response_send(const struct response *r, struct MHD_Connection *connection)
{
	const char *known =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "If-None-Match");
	if (!r->whole)
		return 0;
	bool same =
		r->unchanged && known && (strcmp(known, "*") == 0 || strstr(known, r->etag));
	int status = same ? 304 : r->status;
	return MHD_queue_response(
		       connection, (unsigned)status, same ? r->unchanged : r->whole) == MHD_YES
		       ? status
		       : 0;
}

/* The access log: one line for each request, without anything that may be secret: no headers,
 * and only the names of query parameters. */

struct access_line {
	char address[48], user[SECRET_NAME_CAP], method[16];
	int status; /* 0: no answer was sent */
	size_t bytes;
	int64_t began_us; /* monotonic */
};

/* Lines written per second at most: a flood of requests must not fill the disk. */
enum { ACCESS_LINES_A_SECOND = 100 };

struct access_log {
	pthread_mutex_t lock;
	int64_t second;
	unsigned written, dropped;
};

/* Whether one more line may be written now; sets how many lines were dropped before it. The
 * server must not block when nobody reads the log. */
static bool may_write(struct access_log *l, int64_t now_us, unsigned *dropped)
{
	struct pollfd errors = { .fd = STDERR_FILENO, .events = POLLOUT };
	pthread_mutex_lock(&l->lock);
	if (l->second != now_us / 1000000) {
		l->second = now_us / 1000000;
		l->written = 0;
	}
	bool may = l->written < ACCESS_LINES_A_SECOND && poll(&errors, 1, 0) == 1 &&
		   (errors.revents & POLLOUT);
	*dropped = may ? l->dropped : 0;
	l->dropped = may ? 0 : l->dropped + 1;
	l->written += may;
	pthread_mutex_unlock(&l->lock);
	return may;
}

/* Questions for the pool, and their answers. */

/* Longest time for an answer, and longest wait of a question in the queue; then it is
 * abandoned. */
enum { ANSWER_MS = 10000, QUEUE_MS = 5000 };
/* An answer is reused for this long, and longer if the store has not changed. */
enum { SURE_MS = 1000 };
/* Largest answer in bytes. */
enum { ANSWER_BYTES = 4 << 20 };
/* How often the stores are checked for changes. */
enum { VERSION_US = 100000 };
/* After an answer that took this long, free memory is returned to the system. */
enum { LONG_US = 20000 };

/* What the threads of the pool share. */
struct asker {
	const struct serve_world *world;
	struct clock clock;
	const atomic_bool *stopping;
	/* Under the pool's lock. */
	uint64_t version;
	int64_t version_us;
};

/* A request as bytes: equal requests are equal bytes. */
struct question {
	struct pool_question asked;
	char bytes[REQUEST_MAX_BYTES + 1024];
};

/* The fixed part of a question; it is followed by the texts: target, Accept header, user. */
struct question_head {
	const struct route *route;
	enum media media;
};

static bool add_text(struct question *q, const char *text)
{
	size_t len = strlen(text) + 1;
	if (q->asked.len + len > sizeof(q->bytes))
		return false;
	memcpy(q->bytes + q->asked.len, text, len);
	q->asked.len += len;
	return true;
}

/* Fills a question; false: it does not fit. `q` has been parsed from `target`. */
static bool make_question(struct question *question, const struct route *route,
	const char *target, const struct request *q, const char *user)
{
	struct question_head head;
	memset(&head, 0, sizeof(head)); /* also the padding between the members, because
					   questions are compared as bytes */
	head.route = route;
	head.media = q->media;
	/* A path without parameters is one question, however the client wrote it. */
	bool plain = q->n_params == 0 && !strchr(route->path, '*');
	unsigned ms = route->cache_ms > SURE_MS ? route->cache_ms : SURE_MS;
	question->asked = (struct pool_question){ .bytes = question->bytes,
		.len = sizeof(head),
		.lane = route->first && plain	       ? POOL_FIRST
			: route->first || route->quick ? POOL_QUICK
						       : POOL_HEAVY,
		.max_age_us = (int64_t)ms * 1000,
		.sure_us = SURE_MS * 1000 };
	memcpy(question->bytes, &head, sizeof(head));
	return add_text(question, plain ? route->path : target) &&
	       add_text(question, route->negotiate ? route->negotiate(q->accept) : "") &&
	       add_text(question, route->personal ? user : "");
}

/* The time limit of a request. */
struct limit {
	const atomic_bool *stopping;
	int64_t until_us;
};

static int must_end(void *limit)
{
	const struct limit *l = limit;
	return *l->stopping || clock_monotonic_us() > l->until_us;
}

static bool text_must_end(void *limit)
{
	return must_end(limit);
}

static void answer_in_time(
	struct asker *asker, const struct route *route, struct request *q, struct answer *a)
{
	struct limit limit = { asker->stopping, clock_monotonic_us() + ANSWER_MS * 1000 };
	struct foreign_stop stop = { must_end, &limit };
	struct str_limit text = { ANSWER_BYTES, text_must_end, &limit };
	struct request limited = *q;
	limited.stop = &stop;
	limited.limit = &text;
	route_answer(route, &limited, a);
	if (must_end(&limit) && a->status != 200) {
		answer_fail(a, q, 503,
			"The answer took too long; ask for a shorter window, or try again.");
		a->retry_s = 5;
	}
	a->body.limit = NULL; /* it ends here */
}

/* Answers a question of the pool with a struct response. */
static void *answer(void *context, const struct pool_question *asked, int64_t asked_us)
{
	struct asker *asker = context;
	struct question_head head;
	struct request q;
	struct err e = { 0 };
	struct answer a = { .status = 200 };
	int64_t began_us = clock_monotonic_us();
	const char *target = (const char *)asked->bytes + sizeof(head);
	const char *accept = target + strlen(target) + 1;
	const char *user = accept + strlen(accept) + 1;
	memcpy(&head, asked->bytes, sizeof(head));
	int rc = request_parse(&q, target, strlen(target), &e);
	q.media = head.media;
	q.accept = *accept ? accept : NULL;
	q.user = *user ? user : NULL;
	q.world = asker->world;
	q.now_ms = q.world->now_ms ? q.world->now_ms : clock_wall_ms(&asker->clock);
	if (rc)
		answer_err(&a, &q, &e);
	else if (*asker->stopping || began_us - asked_us > QUEUE_MS * 1000)
		answer_fail(&a, &q, 503, "The server is busy or stops; try again in a moment.");
	else
		answer_in_time(asker, head.route, &q, &a);
	struct response *r = response_new(&a, head.route);
	request_finish(&q);
	if (clock_monotonic_us() - began_us > LONG_US)
		malloc_trim(0);
	return r;
}

static size_t response_size(const void *response)
{
	return ((const struct response *)response)->bytes;
}

static void drop_response(void *response)
{
	response_free(response);
}

/* Adds to a checksum what changes with each write to a file, and when another replaces it. */
static uint64_t add_file(uint64_t sum, const char *path, const char *suffix)
{
	char name[4096 + 16];
	struct stat st;
	snprintf(name, sizeof(name), "%s%s", path, suffix);
	if (stat(name, &st) != 0)
		return sum * 31 + 1;
	const uint64_t parts[] = { st.st_dev, st.st_ino, (uint64_t)st.st_size,
		(uint64_t)st.st_mtim.tv_sec, (uint64_t)st.st_mtim.tv_nsec };
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		sum = (sum ^ parts[i]) * UINT64_C(1099511628211);
	return sum;
}

/* A number that changes when one of the stores does: the pool's version. */
static uint64_t stores_version(void *context)
{
	struct asker *a = context;
	const struct store_list *stores = a->world->stores;
	int64_t now_us = clock_monotonic_us();
	if (a->version && now_us - a->version_us < VERSION_US)
		return a->version;
	uint64_t sum = 1;
	for (size_t i = 0; i < stores->n; i++) {
		sum = add_file(sum, stores->paths[i], "");
		sum = add_file(sum, stores->paths[i], "-wal");
	}
	a->version = sum ? sum : 1;
	a->version_us = now_us;
	return a->version;
}

/* The server. */

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
	struct asker asker; /* the pool's context */
	struct access_log log;
	pthread_rwlock_t secrets_lock; /* of o.gate.secrets */
};

/* One connection. */
struct http_line {
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

static struct http_line *line_of(struct MHD_Connection *connection)
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
		.user = only_header(connection, s->o.gate.conf->user_header),
		.open = open };
	pthread_rwlock_rdlock(&s->secrets_lock);
	enum gate_verdict verdict = gate_check(&s->o.gate, &client, call->line.user);
	pthread_rwlock_unlock(&s->secrets_lock);
	str_copy(call->line.address, sizeof(call->line.address), peer->address);
	call->client = gate_client_number(
		peer, gate_is_proxy(&s->o.gate, peer) ? call->line.user : "");
	return verdict;
}

static enum MHD_Result send_response(struct server *s, const struct response *r,
	struct call *call, struct MHD_Connection *connection)
{
	struct connection *one = &line_of(connection)->connection;
	call->line.status = response_send(r, connection);
	call->line.bytes = r->bytes;
	connections_set(s->connections, one, CONNECTION_READING,
		s->o.gate.conf->response_timeout_ms, r->bytes);
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
	struct call *call, const struct request *q, struct pool_question *asked)
{
	asked->client = call->client;
	switch (pool_ask(s->pool, asked, connection, &call->job)) {
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

/* Checks a request whose headers are complete, and answers it or asks the pool to. */
static enum MHD_Result begin_call(struct server *s, struct MHD_Connection *connection,
	struct call *call, const char *method)
{
	struct request q = { 0 };
	struct err e = { 0 };
	struct question question = { 0 };
	char sentence[ERR_TEXT_CAP];
	int rc = request_parse(&q, call->target, call->len, &e);
	q.accept = header(connection, "Accept");
	q.media = request_accept(q.accept);
	const struct route *route = rc ? NULL : route_find(s->o.routes, &q);
	enum gate_verdict verdict = check(s, connection, call, route && route->open);
	struct refusal why = { 0 };
	if (verdict == GATE_WRONG_HOST)
		why = (struct refusal){ 421, "This name is not a name of the server; the "
					     "administrator can allow it with --host-names." };
	else if (verdict == GATE_NO_SECRET)
		why = (struct refusal){ 401,
			"This server requires a token, or a name and a password." };
	else if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		why = (struct refusal){ 405, "Only GET and HEAD are answered." };
	else if (rc)
		why = (struct refusal){ 400, e.text };
	else if (!route)
		why = (struct refusal){ 404, ROUTE_NONE };
	else if (route_check(route, &q, &e) != 0) {
		/* At once: an unknown parameter would make many different questions of one. */
		answer_sentence(sentence, &e);
		why = (struct refusal){ 400, sentence };
	} else if (!make_question(&question, route, call->target, &q, call->line.user))
		why = (struct refusal){ 400, "The request is too long." };
	enum MHD_Result result =
		why.status ? refuse(s, connection, call, &q, &why)
			   : wait_or_send(s, connection, call, &q, &question.asked);
	request_finish(&q);
	return result;
}

static enum MHD_Result on_request(void *server, struct MHD_Connection *connection,
	const char *url, const char *method, const char *version, const char *upload,
	size_t *upload_size, void **context)
{
	struct server *s = server;
	struct call *call = *context;
	(void)url, (void)version, (void)upload, (void)upload_size;
	if (!call || !line_of(connection))
		return MHD_NO;
	if (call->job) /* the pool has answered it */
		return send_response(s, call->job->result, call, connection);
	/* Answering before the whole request has come closes the connection. This is right
	 * only for a request with a body, which nobody reads. */
	const char *length = header(connection, "Content-Length");
	bool body = (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) ||
		    header(connection, "Transfer-Encoding") ||
		    (length && strcmp(length, "0") != 0);
	if (!call->begun && !body) {
		call->begun = true;
		return MHD_YES;
	}
	connections_set(s->connections, &line_of(connection)->connection, CONNECTION_WAITING,
		s->o.gate.conf->response_timeout_ms, 0);
	str_copy(call->line.method, sizeof(call->line.method), method);
	return begin_call(s, connection, call, method);
}

/* Keeps the target as it was sent: libmicrohttpd's parser is not used. */
static void *on_target(void *server, const char *uri, struct MHD_Connection *connection)
{
	size_t len = strlen(uri), room = len < REQUEST_MAX_BYTES ? len : REQUEST_MAX_BYTES;
	struct call *call = calloc(1, sizeof(*call) + room + 1);
	struct http_line *line = line_of(connection);
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
	if (s->o.gate.conf->access_log && call->line.status) {
		char shown[512];
		unsigned dropped = 0;
		int64_t now_us = clock_monotonic_us();
		if (may_write(&s->log, now_us, &dropped)) {
			request_target_shown(shown, sizeof(shown), call->target);
			if (dropped)
				log_notice("%u requests were not logged", dropped);
			log_notice("%s %s %s %s %d %zu bytes %.1f ms", call->line.address,
				*call->line.user ? call->line.user : "-", call->line.method,
				shown, call->line.status, call->line.bytes,
				(double)(now_us - call->line.began_us) / 1000);
		}
	}
	pool_release(s->pool, call->job);
	free(call);
}

/* NULL: out of memory; no request of the connection is answered. */
static struct http_line *begin_line(struct server *s, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct http_line *line = info ? calloc(1, sizeof(*line)) : NULL;
	if (!line)
		return NULL;
	line->connection.fd = info->connect_fd;
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	gate_find_peer(&line->peer, line->connection.fd, info ? info->client_addr : NULL);
	line->connection.client = gate_client_number(&line->peer, "");
	line->connection.unlimited = gate_is_proxy(&s->o.gate, &line->peer);
	connections_add(s->connections, &line->connection, s->o.gate.conf->request_timeout_ms);
	return line;
}

static void on_connection(void *server, struct MHD_Connection *connection, void **context,
	enum MHD_ConnectionNotificationCode what)
{
	struct server *s = server;
	struct http_line *line = *context;
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
	unsigned limit = IO_THREADS * ((unsigned)o->gate.conf->max_connections + CLOSING);
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
	pthread_mutex_init(&s->log.lock, NULL);
	s->asker.world = o->world;
	clock_init_real(&s->asker.clock);
	int rc = connections_open(&s->connections, (size_t)o->gate.conf->max_connections,
		(size_t)o->gate.conf->max_per_address, e);
	const struct pool_ops ops = { .answer = answer,
		.size = response_size,
		.drop = drop_response,
		.sleep = sleep_call,
		.wake = wake_call,
		.version = stores_version,
		.context = &s->asker };
	if (rc || pool_open(&s->pool, &ops, e))
		return e->code;
	s->asker.stopping = pool_stopping(s->pool);
	return start_daemon(s, e);
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
	/* Otherwise libmicrohttpd would shut down the socket, which a service manager keeps for
	 * the next server. */
	if (s->daemon)
		close(MHD_quiesce_daemon(s->daemon));
	/* No connection may be suspended when the daemon stops. */
	if (s->pool)
		pool_stop(s->pool);
	if (s->daemon)
		MHD_stop_daemon(s->daemon);
	pool_close(s->pool);
	connections_close(s->connections);
	pthread_mutex_destroy(&s->log.lock);
	secrets_free((struct secrets *)(uintptr_t)s->o.gate.secrets);
	pthread_rwlock_destroy(&s->secrets_lock);
	free(s);
}
