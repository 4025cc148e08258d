/* What all requests of a client share: the address, credentials and headers. Only for client.c.
 */
#ifndef GUA_FLEET_CLIENT_SETUP_H
#define GUA_FLEET_CLIENT_SETUP_H

#include <curl/curl.h>

#include "fleet/client.h"

struct client_setup {
	struct client_options options;
	char *url; /* with a slash at its end */
	char shown_url[256];
	char *bearer, *basic;
	struct curl_slist *headers;
	struct str params; /* "&NAME=VALUE" */
};

/* Reads the options and the files that they name. */
int client_setup_read(struct client_setup *s, const struct client_options *o, struct err *e);
void client_setup_finish(struct client_setup *s);
/* A handle for one request; NULL: out of memory. */
CURL *client_setup_make(const struct client_setup *s, const char *path, const struct str *form);

#endif
