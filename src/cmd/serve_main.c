/* gua-serve: the web server. It is a separate program because it links libmicrohttpd. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "cmd/choose_db.h"
#include "cmd/cmd.h"
#include "cmd/serve.h"
#include "cmd/window.h"
#include "serve/listen.h"
#include "serve/server.h"

/* Opens the listening socket and says where it is. Returns it, or a negative code. */
static int open_socket(const struct serve_values *v, struct err *e)
{
	struct listen_address address;
	char text[160];
	int rc = listen_parse(&address, v->listen ? v->listen : LISTEN_DEFAULT, e);
	if (rc)
		return err_prefix(e, "--listen");
	int fd = listen_open(&address, e);
	if (fd < 0 || listen_of(&address, fd, e) != 0)
		return fd;
	listen_text(text, sizeof(text), &address);
	bool is_unix = strncmp(text, "unix:", 5) == 0;
	log_notice("listening on %s%s%s", is_unix ? "" : "http://", text, is_unix ? "" : "/");
	return fd;
}

static void wait_for_end(const sigset_t *signals)
{
	int number = 0;
	while (sigwait(signals, &number) != 0 || number == SIGHUP)
		continue;
}

static int serve(const struct serve_values *v, const struct configuration *conf)
{
	struct err e = { 0 };
	struct store_list stores = { 0 };
	struct server *server = NULL;
	sigset_t signals;
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	struct serve_world world = {
		.stores = &stores, .config = &conf->values, .utc = v->utc
	};
	struct server_options o = { .world = &world, .routes = serve_routes };
	int rc = v->now ? cmd_now(v->now, &world.now_ms, &e) : 0;
	if (rc == 0)
		rc = choose_db_list(&stores, &v->db, &e);
	if (rc == 0)
		rc = o.fd = open_socket(v, &e);
	if (rc >= 0)
		rc = server_open(&server, &o, &e);
	int status = rc < 0 ? cmd_fail(&cmd_serve, &e) : 0;
	if (rc >= 0)
		wait_for_end(&signals);
	server_close(server);
	store_list_finish(&stores);
	return status;
}

int main(int argc, char **argv)
{
	struct serve_values v = { 0 };
	struct configuration conf = { 0 };
	struct command_line line = { .argc = argc, .argv = argv, .given = conf.given };
	int status = 0;
	file_hold_standard();
	if (!cmd_line_only(&cmd_serve, &line, &v, &status) &&
		!configure(&cmd_serve, &conf, &v.conf, &v, &status))
		status = serve(&v, &conf);
	configuration_finish(&conf);
	texts_finish(&v.db);
	return status;
}
