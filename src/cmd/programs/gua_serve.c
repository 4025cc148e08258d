/* gua-serve: the web server. It is a separate program because it links libmicrohttpd. */
#include <malloc.h>
#include <pwd.h>
#include <signal.h>
#include <sys/socket.h>

#include "cmd/share/choose_db.h"
#include "cmd/cmd.h"
#include "cmd/cmd_serve.h"
#include "base/notify.h"
#include "serve/listen.h"
#include "serve/server.h"
#include "store/foreign.h"

/* How long a stop waits for requests that are being answered. */
enum { STOP_S = 3 };
/* The first descriptor that a service manager passes. */
enum { PASSED_FD = 3 };

/* A server that is being set up, and what its options point to. */
struct setup {
	const struct config_serve *conf;
	struct server_options options;
	struct listen_address address;
	bool passed; /* a service manager has opened the socket */
	struct listen_owner owner;
	char *cert, *key;
};

/* Checks the options. Other hosts need secrets and encryption. */
static int check_options(const struct setup *s, struct err *e)
{
	if (!s->conf->tls_cert != !s->conf->tls_key)
		return err_set(e, ERR_USAGE, "--tls-cert and --tls-key need each other");
	if (s->conf->trust_proxy && gate_check_proxy(s->conf->trust_proxy, e) != 0)
		return err_prefix(e, "--trust-proxy");
	if (gate_check_header(s->conf->user_header, e) != 0)
		return err_prefix(e, "--user-header");
	if (listen_is_local(&s->address))
		return 0;
	if (!s->conf->auth_file)
		return err_set(e, ERR_USAGE,
			"other hosts could connect: give --auth-file, or listen on 127.0.0.1");
	if (!s->conf->tls_cert && !s->conf->insecure)
		return err_set(e, ERR_USAGE,
			"other hosts could connect without encryption: give --tls-cert and "
			"--tls-key, or --insecure");
	return 0;
}

/* Finds the user as whom the proxy on this host runs; the header of that user is believed. */
static int find_proxy(struct setup *s, struct err *e)
{
	const char *name = s->conf->proxy_user;
	const struct passwd *user = NULL;
	bool is_unix = s->address.at.any.sa_family == AF_UNIX;
	struct stat st;
	char *end = NULL;
	s->owner = (struct listen_owner){ .uid = geteuid(), .gid = getegid() };
	s->owner.closed = is_unix && s->conf->trust_proxy;
	if (name) {
		unsigned long uid = strtoul(name, &end, 10);
		bool number = *name >= '0' && *name <= '9' && !*end && uid < UINT32_MAX;
		user = number ? getpwuid((uid_t)uid) : getpwnam(name);
		if (!user && !number)
			return err_set(
				e, ERR_USAGE, "--proxy-user: there is no user '%s'", name);
		s->owner.uid = number ? (uint32_t)uid : user->pw_uid;
		s->owner.gid = user ? user->pw_gid : s->owner.gid;
	} else if (is_unix && s->passed && lstat(s->address.at.un.sun_path, &st) == 0) {
		s->owner.uid = st.st_uid;
	}
	return 0;
}

static int set_up(struct setup *s, struct err *e)
{
	struct secrets *secrets = NULL;
	const struct config_serve *c = s->conf;
	struct file_content cert = { 0 };
	size_t len = 0;
	/* Where to listen, unless a service manager opened the socket (sd_listen_fds(3)). */
	const char *pid = secure_getenv("LISTEN_PID"), *fds = secure_getenv("LISTEN_FDS");
	s->passed = pid && fds && strtol(pid, NULL, 10) == getpid() && strcmp(fds, "1") == 0;
	int rc = s->passed ? listen_of(&s->address, s->options.fd = PASSED_FD, e)
			   : listen_parse(&s->address, c->listen, e);
	if (rc)
		return s->passed ? rc : err_prefix(e, "--listen");
	if (check_options(s, e) || find_proxy(s, e) ||
		(c->auth_file && secrets_read(&secrets, c->auth_file, e)))
		rc = e->code;
	if (rc == 0 && c->tls_cert) {
		rc = file_read_regular(c->tls_cert, 1 << 20, &cert, e);
		s->options.tls_cert = s->cert = cert.data;
		if (rc == 0)
			rc = secrets_read_file(c->tls_key, &s->key, &len, e);
		s->options.tls_key = s->key;
	}
	if (rc == 0 && !s->passed)
		rc = s->options.fd = listen_open(&s->address, &s->owner, e);
	s->options.gate = (struct gate){ .conf = c,
		.any_host = s->address.at.any.sa_family == AF_UNIX,
		.secrets = secrets,
		.proxy_uid = s->owner.uid };
	if (rc < 0)
		secrets_free(secrets);
	return rc < 0 ? rc : 0;
}

static void read_secrets_again(struct server *server, const struct config_serve *c)
{
	struct secrets *secrets = NULL;
	struct err e = { 0 };
	if (!c->auth_file)
		return;
	if (secrets_read(&secrets, c->auth_file, &e) != 0) {
		secrets_free(secrets);
		log_error("%s; the secrets read before stay in force", e.text);
		return;
	}
	server_replace_secrets(server, secrets);
	log_notice("read %s again", c->auth_file);
}

/* Ends the program. Requests that do not end in time are dropped. */
static void end_now(int number)
{
	(void)number;
	_exit(0);
}

static void serve_until_signal(
	struct server *server, const struct setup *s, const sigset_t *signals)
{
	const struct store_list *stores = s->options.world->stores;
	struct listen_address a;
	char text[160];
	int number = 0;
	if (listen_of(&a, s->options.fd, NULL) == 0) {
		bool is_unix = a.at.any.sa_family == AF_UNIX;
		const char *scheme = s->cert ? "https://" : "http://";
		listen_text(text, sizeof(text), &a);
		log_notice(
			"listening on %s%s%s", is_unix ? "" : scheme, text, is_unix ? "" : "/");
	}
	/* A store may be made later by a recorder, but a misspelt name is reported at once. */
	for (size_t i = 0; i < stores->n; i++)
		if (access(stores->paths[i], F_OK) != 0)
			log_warning("cannot read %s: %s; it is tried again at each request",
				stores->paths[i], strerror(errno));
	notify_send(secure_getenv("NOTIFY_SOCKET"), "READY=1");
	while (sigwait(signals, &number) != 0 || number == SIGHUP)
		if (number == SIGHUP)
			read_secrets_again(server, s->conf);
	signal(SIGALRM, end_now);
	alarm(STOP_S);
}

static int serve(
	const struct serve_world *world, const struct config_serve *conf, struct err *e)
{
	struct server *server = NULL;
	sigset_t signals;
	struct setup s = { .conf = conf, .options = { .fd = -1, .world = world } };
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL); /* all threads inherit it */
	signal(SIGPIPE, SIG_IGN);
	s.options.routes = route_table;
	int rc = set_up(&s, e) || server_open(&server, &s.options, e) ? e->code : 0;
	if (rc == 0)
		serve_until_signal(server, &s, &signals);
	server_close(server);
	if (!s.passed && s.address.at.any.sa_family == AF_UNIX && rc == 0)
		unlink(s.address.at.un.sun_path);
	free(s.cert);
	free(s.key);
	return rc;
}

/* The page "For me" waits at most this long for a user's name, in all within ten seconds. */
enum { NAME_WAIT_MS = 500 };

static int run(const struct call *call, struct err *e)
{
	const struct serve_values *v = call->values;
	const struct config *config = &call->conf->values;
	struct store_list stores = { 0 };
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct serve_world world = {
		.stores = &stores, .config = config, .utc = v->utc, .users_lock = &lock
	};
	if (getenv("JOURNAL_STREAM"))
		log_setup(LOG_LEVEL_NOTICE, LOG_STYLE_JOURNAL);
	/* One heap for all threads, and large pieces allocated on their own, so that the memory
	 * of a long report goes back to the system. */
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, 128 * 1024);
	file_allow_many();
	bool failed = (v->now && cmd_now(v->now, &world.now_ms, e)) ||
		      user_names_new(&world.users, user_find_system, NULL, NAME_WAIT_MS, e) ||
		      choose_db_list(&stores, &v->db, e);
	choose_db_note_unread(&stores);
	int rc = failed ? e->code : serve(&world, &config->serve, e);
	user_names_free(world.users);
	store_list_finish(&stores);
	return rc;
}

int main(int argc, char **argv)
{
	struct command own = cmd_serve;
	own.run = run;
	file_hold_standard();
	foreign_start_heap();
	return cmd_run(&own, argc, argv);
}
