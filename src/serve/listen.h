/* The listening socket: opened here, because libmicrohttpd would listen on all interfaces. */
#pragma once

#include <netinet/in.h>
#include <sys/un.h>

#include "base/base.h"

/* Where to listen. */
struct listen_address {
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_un un;
	} at;
	socklen_t len;
};

/* Reads "ADDRESS:PORT", "[ADDRESS]:PORT", "localhost:PORT" or "unix:PATH". ERR_USAGE: it has
 * none of these forms. Names are not looked up. */
int listen_parse(struct listen_address *a, const char *text, struct err *e);
/* Whether only this host can connect. */
bool listen_is_local(const struct listen_address *a);
/* The owner of a unix socket; ignored for other sockets. */
struct listen_owner {
	bool closed;  /* only the owner and the group can connect */
	uint32_t uid; /* with `closed`: owner and group, as far as we may set them */
	uint32_t gid;
};
/* Opens the socket; a stale unix socket is replaced. Returns the descriptor or an error. */
int listen_open(
	const struct listen_address *a, const struct listen_owner *owner, struct err *e);
/* The address of a socket that is already open: the port that replaced port 0, or a socket
 * from a service manager. */
int listen_of(struct listen_address *a, int fd, struct err *e);
/* "127.0.0.1:9848", "unix:/run/gua.sock". */
void listen_text(char *dst, size_t cap, const struct listen_address *a);
