/* What gua.conf(5) says about the web server: section [serve]. */
#ifndef GUA_CONFIG_WEB_H
#define GUA_CONFIG_WEB_H

#include <stdbool.h>
#include <stdint.h>

/* NULL: not given. */
struct config_serve {
	const char *listen, *host_names, *auth_file, *tls_cert, *tls_key;
	const char *trust_proxy, *proxy_user, *user_header;
	int64_t max_connections, max_per_address, request_ms, response_ms;
	bool insecure, access_log;
};

#endif
