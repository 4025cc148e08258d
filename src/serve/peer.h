/* The other end of a connection: which address, and on this host which user, as the kernel
 * says. */
#ifndef GUA_SERVE_PEER_H
#define GUA_SERVE_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct peer {
	char address[48]; /* "192.0.2.1", "unix" */
	bool local;	  /* a unix socket, or the loopback interface */
	bool has_uid;
	uint32_t uid;
};

/* Finds out who has opened a connection. A unix socket knows its peer (SO_PEERCRED); of a
 * connection over the loopback interface the kernel is asked who owns the other socket
 * (sock_diag(7)). The uid stays unknown where it does not say, and for a socket that its
 * process has closed already. `address` is the client's; NULL: a unix socket. */
void peer_find(struct peer *p, int fd, const struct sockaddr *address);

/* A number of those whose limits are one: a user of this host, or the network of an address.
 * `user` is who asks through a trusted proxy; "": not through one. */
uint64_t peer_client(const struct peer *p, const char *user);

#endif
