/* gua serve: runs gua-serve, the only program that links an HTTP server. */
#include "cmd/cmd_serve.h"

#include "cmd/cmd.h"

#define AT(field) .offset = offsetof(struct serve_values, field)

static const struct option_row options[] = {
	KEY_ROW(0, "listen", "serve.listen"),
	{ .name = "port",
		.kind = OPTION_MAYBE,
		.hidden = true,
		.instead = "--listen ADDRESS:PORT, for example --listen 127.0.0.1:8080" },
	{ OPTION_TEXTS, 0, "db", "PATH",
		"store to read, or a directory of stores; may be given several times", AT(db) },
	KEY_ROW(0, "host-names", "serve.host_names"),
	KEY_ROW(0, "auth-file", "serve.auth_file"),
	KEY_ROW(0, "tls-cert", "serve.tls_cert"),
	KEY_ROW(0, "tls-key", "serve.tls_key"),
	KEY_ROW(0, "insecure", "serve.insecure"),
	KEY_ROW(0, "trust-proxy", "serve.trust_proxy"),
	KEY_ROW(0, "proxy-user", "serve.proxy_user"),
	KEY_ROW(0, "user-header", "serve.user_header"),
	KEY_ROW(0, "max-connections", "serve.max_connections"),
	KEY_ROW(0, "max-per-address", "serve.max_per_address"),
	KEY_ROW(0, "compat", "metrics.compat"),
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
