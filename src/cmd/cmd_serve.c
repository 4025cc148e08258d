/* gua serve: runs gua-serve, the only program that links an HTTP server. */
#include "cmd/cmd_serve.h"

#include "cmd/cmd.h"

#define AT(field) .offset = offsetof(struct serve_values, field)

static const struct option_row options[] = {
	{ OPTION_TEXT, 0, "listen", "ADDRESS",
		"where to listen: ADDRESS:PORT or unix:PATH (default 127.0.0.1:9848)",
		AT(conf_serve.listen) },
	{ .name = "port",
		.kind = OPTION_MAYBE,
		.hidden = true,
		.instead = "--listen ADDRESS:PORT, for example --listen 127.0.0.1:8080" },
	{ OPTION_TEXTS, 0, "db", "PATH",
		"store to read, or a directory of stores; may be given several times", AT(db) },
	{ OPTION_TEXT, 0, "host-names", "NAMES",
		"names by which clients may call the server, besides localhost and addresses",
		AT(conf_serve.host_names) },
	{ OPTION_TEXT, 0, "auth-file", "FILE",
		"ask for a token or a password; FILE has lines NAME:SECRET",
		AT(conf_serve.auth_file) },
	{ OPTION_TEXT, 0, "tls-cert", "FILE", "certificate for TLS", AT(conf_serve.tls_cert) },
	{ OPTION_TEXT, 0, "tls-key", "FILE", "its key", AT(conf_serve.tls_key) },
	{ OPTION_FLAG, 0, "insecure", .help = "answer other hosts without TLS",
		AT(conf_serve.insecure) },
	{ OPTION_TEXT, 0, "trust-proxy", "ADDRESS",
		"believe the user header of requests from ADDRESS, or from a unix socket: unix",
		AT(conf_serve.trust_proxy) },
	{ OPTION_TEXT, 0, "proxy-user", "USER",
		"the user as whom a proxy on this host runs (default: the owner of the socket)",
		AT(conf_serve.proxy_user) },
	{ OPTION_TEXT, 0, "user-header", "NAME",
		"the header in which the proxy says who asks (default X-Forwarded-User)",
		AT(conf_serve.user_header) },
	{ OPTION_COUNT, 0, "max-connections", "N", "connections at a time (default 256)",
		AT(conf_serve.max_connections), .min = 4, .max = 10000 },
	{ OPTION_COUNT, 0, "max-per-address", "N",
		"connections at a time of one client (default 64)",
		AT(conf_serve.max_per_address), .min = 1, .max = 10000 },
	{ OPTION_CHOICE, 0, "compat", "EXPORTER",
		"show the cards also by the names of this exporter: dcgm, or off (default off)",
		.choices = COMPAT_WORDS, AT(compat) },
	{ OPTION_FLAG, 0, "utc", .help = "times in UTC instead of local time", AT(utc) },
	CONFIGURE_ROWS(struct serve_values, conf),
	NOW_OPTION(struct serve_values, now),
	{ 0 },
};

const struct command cmd_serve = {
	.name = "serve",
	.summary = "show the cards and the audit as web pages and JSON, from the store",
	.usage = "[--listen ADDRESS] [--db PATH]... [OPTIONS]",
	.details =
		"It only reads the store. Other hosts are answered only with --auth-file, and "
		"with\n"
		"TLS unless --insecure is given. SIGHUP reads --auth-file again; SIGTERM and\n"
		"Ctrl-C end the server.",
	.options = options,
	.values_size = sizeof(struct serve_values),
	.handed_over = true,
	.reads_configuration = true,
};
